"""What arguments of maps must be."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.errors import InputError

__all__ = ["is_number", "require_map"]


def is_number(value: Any) -> bool:
    """Whether it is one real number, and no truth value.

    Examples
    --------
    >>> is_number(0.5), is_number(True), is_number("0.5")
    (True, False, False)
    """
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def require_map(value: Any, kind: type, name: str) -> None:
    """Refuse what is no map of two classes, such as its name, its class or a map of logits."""
    if not isinstance(value, kind):
        seen = value.__name__ if isinstance(value, type) else repr(value)
        raise InputError(f"{name} must be a Recalibrator, such as PlattRecalibrator(); got {seen}.")
