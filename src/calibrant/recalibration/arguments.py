"""What arguments of maps must be."""

from __future__ import annotations

from typing import Any

from calibrant.errors import InputError

__all__ = ["require_map"]


def require_map(value: Any, kind: type, name: str) -> None:
    """Refuse what is no map of two classes, such as its name, its class or a map of logits."""
    if not isinstance(value, kind):
        seen = value.__name__ if isinstance(value, type) else repr(value)
        raise InputError(f"{name} must be a Recalibrator, such as PlattRecalibrator(); got {seen}.")
