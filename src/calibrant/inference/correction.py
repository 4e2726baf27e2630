"""Corrections of p-values for how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from calibrant.errors import InputError

__all__ = ["Correction", "adjusted_p_values", "require_correction", "smallest_p_value"]

Correction = Literal["holm", "bonferroni", "none"]


def adjusted_p_values(p_values: Sequence[float], correction: Correction) -> list[float]:
    """P-values that can be compared with one level together, whatever their dependence.

    Examples
    --------
    >>> [round(p, 3) for p in adjusted_p_values([0.01, 0.04, 0.03], "holm")]
    [0.03, 0.06, 0.06]
    """
    require_correction(correction)
    p = np.asarray(p_values, dtype=np.float64)
    if correction == "none":
        return [float(value) for value in p]
    if correction == "bonferroni":
        return [float(value) for value in np.minimum(p * p.size, 1.0)]
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def smallest_p_value(p_values: Sequence[float], *, independent: bool) -> float:
    """P-value of the smallest of k p-values: 1 - (1 - p)^k (Šidák), or k p where they may depend.

    Examples
    --------
    >>> round(smallest_p_value([0.01, 0.5, 0.7, 0.3], independent=True), 4)
    0.0394
    """
    if not independent:
        return float(min(len(p_values) * min(p_values), 1.0))
    return float(-np.expm1(len(p_values) * np.log1p(-min(min(p_values), 1.0 - 1e-16))))


def require_correction(correction: Correction) -> None:
    """Refuse a correction that there is not."""
    if correction not in get_args(Correction):
        raise InputError(
            f'`correction` must be "holm", "bonferroni" or "none"; got {correction!r}.'
        )
