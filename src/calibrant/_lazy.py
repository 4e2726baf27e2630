"""Public names of a package, loaded when they are first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package, from its public names to the modules they live in.

    Examples
    --------
    >>> load, listed = lazy_names("calibrant.errors", {"Cure": "errors"})
    >>> load("Cure").__name__, listed()
    ('Cure', ['Cure'])
    """

    def load(name: str) -> Any:
        """Load a public name when it is first asked for."""
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"calibrant.{homes[name]}"), name)

    class Room(ModuleType):
        """Python binds a module to its package when it is loaded; a verb of that name takes its place."""

        def __setattr__(self, name: str, value: Any) -> None:
            if name in homes and isinstance(value, ModuleType):
                value = getattr(value, name, value)
            super().__setattr__(name, value)

    sys.modules[package].__class__ = Room
    return load, lambda: sorted(homes)
