"""The only place that tries an import of something that may not be installed."""

from __future__ import annotations

import importlib
from types import ModuleType

from calibrant.errors import MissingDependency

__all__ = ["find", "require"]

_EXTRA_OF = {
    "matplotlib": "plot",
    "pyarrow": "io",
    "typer": "cli",
    "rich": "cli",
    "altair": "report",
    "vl_convert": "report",
    "jinja2": "report",
    "sklearn": "sklearn",
    "torch": "torch",
    "torchmetrics": "torch",
    "pyspark": "spark",
    "dask": "dask",
    "ray": "ray",
}


def require(module: str, *, caller: str) -> ModuleType:
    """Import `module`, or say who needs it and how to install it.

    Parameters
    ----------
    module : str
        Dotted name, such as ``"matplotlib.pyplot"``.
    caller : str
        What the user called, such as ``"ReliabilityDiagram.plot"``.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != top:
            raise
        extra = _EXTRA_OF.get(top)
        command = f'pip install "calibrant[{extra}]"' if extra else f"pip install {top}"
        raise MissingDependency(
            "{caller} needs {package}, which is not installed",
            cure="Install it with {command}.",
            caller=caller,
            package=top,
            command=f"`{command}`",
        ) from error


def find(module: str) -> ModuleType | None:
    """The module if it is installed; for what only makes things nicer."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return None
