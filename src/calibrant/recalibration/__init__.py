# ruff: noqa: F403
"""Recalibration: maps from predictions to better calibrated ones, their choice and their effect.

Every class in a module of this package that carries `@register` is a name of the package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if (
    TYPE_CHECKING
):  # what type checkers see; a map in another module is of type Any until it has a line here
    from calibrant.recalibration.adaptive import *
    from calibrant.recalibration.choice import *
    from calibrant.recalibration.class_map import *
    from calibrant.recalibration.cross_fitted import *
    from calibrant.recalibration.effect import *
    from calibrant.recalibration.group_map import *
    from calibrant.recalibration.histogram import *
    from calibrant.recalibration.isotonic import *
    from calibrant.recalibration.learned_map import *
    from calibrant.recalibration.parametric import *
    from calibrant.recalibration.randomized import *
    from calibrant.recalibration.scaling import *
    from calibrant.recalibration.smooth import *
    from calibrant.recalibration.spline import *

_HOME = {
    "ClassRecalibrator": "class_map",
    "Recalibrator": "learned_map",
    "choose_recalibrator": "choice",
    "cross_fitted_error": "cross_fitted",
    "evaluate": "effect",
    "load_recalibrator": "learned_map",
    "make_map": "learned_map",
    "map_names": "learned_map",
}


def _load(name: str) -> Any:
    return importlib.import_module(f"calibrant.recalibration.{name}")


def __dir__() -> list[str]:
    maps = (one.__name__ for one in _load("learned_map").registered_maps().values())
    return sorted([*_HOME, *maps])


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name == "__all__":
        return __dir__()
    if name in _HOME:
        return getattr(_load(_HOME[name]), name)
    if not name.startswith("_"):
        for one in _load("learned_map").registered_maps().values():
            if one.__name__ == name:
                return one
    raise AttributeError(f"module 'calibrant.recalibration' has no attribute {name!r}")
