"""Imports of optional packages."""

from __future__ import annotations

import importlib
from types import ModuleType

from calibrant.errors import MissingDependency

_EXTRA_OF = {
    "matplotlib": "plot",
    "pyarrow": "io",
    "typer": "cli",
    "rich": "cli",
    "jinja2": "report",
    "sklearn": "sklearn",
    "torch": "torch",
    "torchmetrics": "torch",
    "pyspark": "spark",
    "dask": "dask",
    "ray": "ray",
}


def require(module: str, *, caller: str) -> ModuleType:
    """The module, or an error that says who needs it and how to install it.

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
            f"{caller} needs {top}, which is not installed.", hint=f"Install it with `{command}`."
        ) from error


def find(module: str) -> ModuleType | None:
    """The module, or None where it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        return None
