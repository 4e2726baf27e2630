"""Public names of a package, loaded when they are first asked for; its stub says where they are."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def attach_stub(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, from the imports of its stub `__init__.pyi`.

    Type checkers read the same file, so both see the functions themselves.

    Examples
    --------
    >>> import calibrant.decisions
    >>> load, listed, names = attach_stub("calibrant.decisions", calibrant.decisions.__file__)
    >>> load("certify").__name__, "selective" in names
    ('certify', True)
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    homes = {
        name: module
        for module, name in re.findall(r"^from (\S+) import \(?\s*\w+ as (\w+)", stub, re.MULTILINE)
    }

    def load(name: str) -> Any:
        """Load a public name when it is first asked for."""
        if name not in homes:
            text = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(
                text, name=name, obj=sys.modules[package]
            )  # Python adds the nearest
        home = importlib.import_module(homes[name])
        value = getattr(home, name, None) if homes[name] != package else None
        if value is None:
            value = importlib.import_module(f"{homes[name]}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    class Package(ModuleType):
        """Python binds a module to its package when it is loaded; a function of that name takes its place."""

        def __setattr__(self, name: str, value: Any) -> None:
            if homes.get(name, package) != package and isinstance(value, ModuleType):
                value = getattr(value, name, value)
            super().__setattr__(name, value)

    sys.modules[package].__class__ = Package
    return load, lambda: sorted(homes), sorted(homes)
