"""A fitted map as SQL, so that the repair runs where the predictions are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number
from calibrant.data.scales import Scale, as_scale
from calibrant.errors import InputError
from calibrant.read.sql import Expression, piecewise_linear
from calibrant.recalibration.smooth import SmoothRecalibrator

if TYPE_CHECKING:
    from calibrant.recalibration.interface import Recalibrator

__all__ = ["to_sql"]

Floats = NDArray[np.float64]
EVEN_STEPS = 1 << 13
SMALLEST = 1e-9
RELATIVE = 100.0
"""How far off the map may be next to its distance from 0 or 1, in units of the tolerance."""


def to_sql(
    recalibrator: Recalibrator,
    prob: str | Expression,
    dialect: str = "duckdb",
    *,
    tolerance: float = 1e-5,
) -> Expression:
    """The map of a fitted recalibrator as an SQL expression of a column.

    The text is a piecewise-linear map with as few knots as keep it close to `transform`, found by a tree
    of comparisons: it needs no function that a warehouse may lack. What is no prediction (NULL, NaN,
    below 0, above 1) is left as it is, so that a query over it still counts such rows by reason.

    Parameters
    ----------
    recalibrator : Recalibrator
        One that is fitted.
    prob : str or Expression
        The column of the predictions.
    dialect : str
        As for `calibrant.read.sql.query`.
    tolerance : float
        The largest distance from `transform`. Near 0 and 1 the map is also kept within 100 times this
        share, 0.1% unless told, of its distance from them; for predictions closer to them than 1e-9,
        that is not promised.

    Examples
    --------
    >>> import duckdb
    >>> from calibrant.recalibration import IsotonicRecalibrator
    >>> steps = IsotonicRecalibrator().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> text = to_sql(steps, "p").text
    >>> duckdb.sql(f"SELECT round({text}, 6) FROM (SELECT 0.25 AS p)").fetchall()
    [(0.5,)]
    """
    if not (is_number(tolerance) and 0 < tolerance < 1):
        raise InputError(f"`tolerance` must lie between 0 and 1; got {tolerance!r}.")
    if recalibrator.kind == "randomized":
        raise InputError(
            "a randomised map has no expression in SQL; fit a SmoothRecalibrator, which has one."
        )
    x = _places(recalibrator)
    y = recalibrator.transform(x)
    kept = _thinned(x, y, tolerance)
    return piecewise_linear(prob, x[kept], y[kept], dialect, beyond="unchanged")


def _places(recalibrator: Recalibrator) -> Floats:
    """Where the map is looked at: evenly, closer and closer to the ends, and at its own knots."""
    near = np.logspace(np.log10(SMALLEST), -2, 2000)
    state = recalibrator.state
    own = np.asarray(state.get("p", []), dtype=np.float64)
    if isinstance(recalibrator, SmoothRecalibrator):
        given = recalibrator.scale
        scale = given if isinstance(given, Scale) else as_scale(state["scale"])
        own = scale.prediction(np.linspace(0.0, 1.0, len(state["values"])))
    even = np.arange(EVEN_STEPS + 1) / EVEN_STEPS
    return np.unique(np.clip(np.concatenate([even, near, 1.0 - near, own]), 0.0, 1.0))


def _thinned(x: Floats, y: Floats, tolerance: float) -> NDArray[np.int64]:
    """Points between which straight lines stay close to all others."""
    from_ends = np.maximum(np.minimum(y, 1.0 - y), SMALLEST)
    allowed = tolerance * np.minimum(1.0, RELATIVE * from_ends)
    kept = {0, x.size - 1}
    waiting = [(0, x.size - 1)]
    while waiting:
        low, high = waiting.pop()
        if high - low < 2:
            continue
        inside = slice(low + 1, high)
        line = np.interp(x[inside], x[[low, high]], y[[low, high]])
        gap = np.abs(line - y[inside]) / allowed[inside]
        worst = int(np.argmax(gap))
        if gap[worst] > 1.0:
            middle = low + 1 + worst
            kept.add(middle)
            waiting += [(low, middle), (middle, high)]
    return np.array(sorted(kept), dtype=np.int64)
