"""An end of the axes drawn once more, closer: where most predictions lie in a thousandth of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.plotting.panel import Band, Blank, Dots, Line, Mark, Trail, Words

__all__ = ["CLOSER", "closer_marks"]

Floats = NDArray[np.float64]

CLOSER = "closer"
"""The key of all marks of the closer view."""
# The view shows the last twentieth or tenth of the axes, where so many rows are in a twentieth.
_WIDTHS = (0.02, 0.05, 0.1)
_CROWDED, _SHARE = 0.05, 0.3
_THICK = 0.25
_SIDE = 0.27
# Lower left corners of the view; those above the diagonal leave room for notes first.
_BELOW = tuple((left, bottom) for bottom in (0.22, 0.12) for left in (0.7, 0.66, 0.62, 0.57))
_ABOVE = tuple((left, bottom) for bottom in (0.58, 0.65, 0.7) for left in (0.085, 0.13, 0.18, 0.22))
_ROOM = 0.02
_ROOM_FOR_WORDS = 0.06
_ROOM_FOR_NUMBERS = 0.085
# The view may cover what so little evidence speaks for, where no corner is free.
_HARDLY_ANY = 0.35


@dataclass(frozen=True)
class _View:
    """A square of the unit square from (start, start), moved to another place and enlarged."""

    start: float
    width: float
    left: float
    bottom: float

    def x(self, values: Floats) -> Floats:
        return np.asarray(self.left + (values - self.start) / self.width * _SIDE)

    def y(self, values: Floats) -> Floats:
        inside = np.clip(values, self.start, self.start + self.width)
        return np.asarray(self.bottom + (inside - self.start) / self.width * _SIDE)

    def blank(self) -> Blank:
        """Its place, where nothing else is seen: the frame, and the numbers beside and below it."""
        x = np.array([self.left - _ROOM_FOR_NUMBERS, self.left + _SIDE])
        return Blank(
            key=CLOSER, x=x, y=np.array([self.bottom - _ROOM_FOR_WORDS, self.bottom + _SIDE])
        )

    def shows(self, values: Floats) -> NDArray[np.bool_]:
        slack = 1e-9
        return (values >= self.start - slack) & (values <= self.start + self.width + slack)


def closer_marks(marks: Sequence[Mark], models: Sequence[tuple[Floats, Floats]]) -> list[Mark]:
    """Marks of a small picture in an empty corner; none where the whole one can be read.

    Parameters
    ----------
    marks : sequence of Mark
        Of a picture from 0 to 1 on both axes.
    models : sequence of (float64[k], float64[k])
        Of each curve, predictions and how many rows have each.
    """
    curves = [mark for mark in marks if isinstance(mark, Trail) and mark.ink == "series"]
    if not curves:
        return []
    ends = [end for end in (1.0, 0.0) if any(_crowded(p, rows, end) for p, rows in models)]
    both = len(ends) == 2
    below = _first_free(marks, curves, _BELOW)
    above = _first_free(marks, curves, _ABOVE)
    free = [below, above] if both or 1.0 in ends else [above, below]
    views = [
        _View(end - width if end else 0.0, width, *corner)
        for end, corner in zip(ends, (each for each in free if each is not None), strict=False)
        if (width := _width(curves, end)) is not None
    ]
    says = "in the boxes: both ends, closer" if len(views) > 1 else ""
    blanks: list[Mark] = [view.blank() for view in views]
    return blanks + [mark for view in views for mark in _viewed(marks, view, says)]


def _crowded(p: Floats, rows: Floats, end: float) -> bool:
    return bool(rows[np.abs(p - end) <= _CROWDED].sum() >= _SHARE * rows.sum())


def _width(curves: Sequence[Trail], end: float) -> float | None:
    """The narrowest view that shows the thick part of each curve at this end."""
    far = -1.0
    for curve in curves:
        near = (np.abs(curve.x - end) <= _WIDTHS[-1]) & (curve.weight >= _THICK)
        if near.any():
            gap = np.nanmax(np.abs(curve.y[near] - end))
            far = max(far, float(np.abs(curve.x[near] - end).max()), float(gap))
    return next((width for width in _WIDTHS if 0.0 <= far <= 0.9 * width), None)


def _first_free(
    marks: Sequence[Mark], curves: Sequence[Trail], corners: Sequence[tuple[float, float]]
) -> tuple[float, float] | None:
    """A corner in which nothing lies, or else nothing that more than a few rows speak for."""
    for least in (0.0, _HARDLY_ANY):
        for corner in corners:
            if not any(_covered(mark, curves, corner, least) for mark in marks):
                return corner
    return None


def _covered(
    mark: Mark, curves: Sequence[Trail], corner: tuple[float, float], least: float
) -> bool:
    """Whether a mark lies where the view would be, with at least so much evidence for it."""
    left, bottom = corner
    if isinstance(mark, Line | Trail | Dots):
        low = high = mark.y
    elif isinstance(mark, Band):
        low, high = mark.low, mark.high
    else:
        return False
    across = (mark.x > left - _ROOM_FOR_NUMBERS) & (mark.x < left + _SIDE + _ROOM)
    up = (high > bottom - _ROOM_FOR_WORDS) & (low < bottom + _SIDE + _ROOM)
    hidden = across & up
    if least > 0.0 and isinstance(mark, Trail | Band):
        hidden &= _evidence(mark, curves) >= least
    return bool(np.any(hidden))


def _evidence(mark: Trail | Band, curves: Sequence[Trail]) -> Floats:
    """How much evidence there is along a mark: that of its curve."""
    own = next((curve for curve in curves if curve.series == mark.series), curves[0])
    if own.evidence is None:
        return np.ones(mark.x.size)
    return np.asarray(np.interp(mark.x, own.x, own.evidence))


def _viewed(marks: Sequence[Mark], view: _View, says: str) -> list[Mark]:
    shown = [drawn for mark in marks if (drawn := _enlarged(mark, view)) is not None]
    end = view.start + view.width
    right, top = view.left + _SIDE, view.bottom + _SIDE
    side = "above" if view.start else "below"
    says = says or f"in the box: predictions {side} {view.start or end:g}, closer"
    level, across, up = (
        np.ones(9),
        np.linspace(view.left, right, 9),
        np.linspace(view.bottom, top, 9),
    )
    edges = (
        (across, view.bottom * level),
        (across, top * level),
        (view.left * level, up),
        (right * level, up),
    )
    frame = [Line(key=CLOSER, ink="neutral", x=x, y=y, says=says) for x, y in edges]
    texts = (f"{view.start:g}", f"{end:g}")
    beside = view.left - 0.012 * (1.0 + max(map(len, texts)))
    words = Words(
        key=CLOSER,
        ink="neutral",
        x=np.array([view.left, right, beside, beside]),
        y=np.array([view.bottom - 0.033] * 2 + [view.bottom + 0.018, top - 0.01]),
        texts=2 * texts,
        small=True,
    )
    return [*shown, *frame, words]


def _enlarged(mark: Mark, view: _View) -> Mark | None:
    if isinstance(mark, Dots):
        at = view.shows(mark.x) & view.shows(mark.y)
        return replace(
            mark,
            key=CLOSER,
            says="",
            details={name: column[at] for name, column in mark.details.items()},
            x=view.x(mark.x[at]),
            y=view.y(mark.y[at]),
            low=view.y(mark.low[at]),
            high=view.y(mark.high[at]),
            weight=mark.weight[at],
        )
    if not isinstance(mark, Line | Trail | Band):
        return None
    x = mark.x[view.shows(mark.x)]
    if not x.size:
        return None
    x = np.union1d(x, np.linspace(max(view.start, mark.x[0]), x[-1], 33))

    def along(values: Floats) -> Floats:
        return np.asarray(np.interp(x, mark.x, values))

    changes: dict[str, Any] = {"x": view.x(x)}
    if isinstance(mark, Band):
        changes |= {"low": view.y(along(mark.low)), "high": view.y(along(mark.high))}
    else:
        y = along(mark.y)
        changes["y"] = np.where(view.shows(y), view.y(y), np.nan)
    if isinstance(mark, Trail):
        changes["weight"] = along(mark.weight)
        changes["evidence"] = None if mark.evidence is None else along(mark.evidence)
    details = {name: along(column) for name, column in mark.details.items()}
    return replace(mark, key=CLOSER, says="", details=details, **changes)
