"""What counts as one number among arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["is_number"]


def is_number(value: Any) -> bool:
    """Whether it is one real number, and no truth value.

    Examples
    --------
    >>> is_number(0.5), is_number(True), is_number("0.5")
    (True, False, False)
    """
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
