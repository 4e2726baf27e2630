"""Corrections for multiple testing: Holm, Benjamini–Hochberg, Bonferroni."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from calibrant._arguments import require_choice

Correction = Literal["holm", "bh", "bonferroni", "none"]


def adjusted_p_values(p_values: Sequence[float], correction: Correction) -> list[float]:
    """Adjusted p-values, which can be compared with one level together.

    "holm" and "bonferroni" keep the chance of a single false finding below the level, whatever the
    dependence. "bh" (Benjamini and Hochberg, 1995) keeps the expected share of false ones among all
    findings below it, for tests that are independent or positively dependent: more findings, each a
    little less sure.

    Examples
    --------
    >>> [round(p, 3) for p in adjusted_p_values([0.01, 0.04, 0.03], "holm")]
    [0.03, 0.06, 0.06]
    >>> [round(p, 3) for p in adjusted_p_values([0.01, 0.04, 0.03], "bh")]
    [0.03, 0.04, 0.04]
    """
    require_correction(correction)
    p = np.asarray(p_values, dtype=np.float64)
    if correction == "none":
        return [float(value) for value in p]
    if correction == "bonferroni":
        return [float(value) for value in np.minimum(p * p.size, 1.0)]
    order = np.argsort(p, kind="stable")
    if correction == "holm":
        stepped = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    else:
        scaled = p[order] * p.size / np.arange(1, p.size + 1)
        stepped = np.minimum.accumulate(scaled[::-1])[::-1]
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1.0)
    return [float(value) for value in adjusted]


def decision_level(p_values: Sequence[float], correction: Correction, level: float) -> float:
    """The level at which each raw p-value is decided: adjusted ≤ `level` exactly where raw is at most this.

    Intervals at this level leave their null value exactly where the adjusted p-value rejects it. For
    Benjamini and Hochberg they are the false coverage rate intervals of Benjamini and Yekutieli (2005).

    Examples
    --------
    >>> round(decision_level([0.01, 0.04, 0.03], "holm", 0.05), 4)
    0.0167
    """
    number = len(p_values)
    adjusted = adjusted_p_values(p_values, correction)
    rejected = max(sum(p <= level + 1e-12 for p in adjusted), 1)
    if correction == "holm":
        return level / (number - rejected + 1)
    if correction == "bh":
        return level * rejected / number
    return level / number if correction == "bonferroni" else level


def require_correction(correction: Correction) -> None:
    """Refuse an unknown correction."""
    require_choice("correction", correction, get_args(Correction))
