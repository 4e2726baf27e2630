"""An end of the axes drawn once more, closer: where most predictions lie in a thousandth of the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.drawing.panel import Band, Line, Mark, Points, Trail, Words

__all__ = ["CLOSER", "closer_marks"]

Floats = NDArray[np.float64]

CLOSER = "closer"
"""The key of all marks of the closer view."""
# The view shows the last twentieth or tenth of the axes, where so many rows are in a twentieth.
_WIDTHS = (0.02, 0.05, 0.1)
_CROWDED, _SHARE = 0.05, 0.3
_THICK = 0.25
_SIDE = 0.27
# Lower left corners of the view. Where there are two, the one above the diagonal leaves room for notes.
_BELOW = tuple((left, bottom) for bottom in (0.22, 0.12) for left in (0.7, 0.66, 0.62, 0.57))
_ABOVE = tuple((left, bottom) for bottom in (0.58, 0.65, 0.72) for left in (0.06, 0.03, 0.12))
_ABOVE_AND_NOTES = tuple(corner for corner in _ABOVE if corner[1] < 0.6)
_ROOM = 0.02
_ROOM_FOR_WORDS = 0.06


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

    def shows(self, values: Floats) -> NDArray[np.bool_]:
        slack = 1e-9
        return (values >= self.start - slack) & (values <= self.start + self.width + slack)


def closer_marks(marks: Sequence[Mark], p: Floats, rows: Floats) -> list[Mark]:
    """Marks of a small picture in an empty corner; none where the whole one can be read.

    Parameters
    ----------
    marks : sequence of Mark
        Of a picture from 0 to 1 on both axes.
    p, rows : float64[k]
        Predictions, and how many rows have each.
    """
    curve = next((mark for mark in marks if isinstance(mark, Trail)), None)
    if curve is None:
        return []
    total = rows.sum()
    ends = [
        end
        for end, near in ((1.0, p >= 1 - _CROWDED), (0.0, p <= _CROWDED))
        if rows[near].sum() >= _SHARE * total
    ]
    both = len(ends) == 2
    below = _first_free(marks, _BELOW)
    above = _first_free(marks, _ABOVE_AND_NOTES if both else _ABOVE)
    free = [below, above] if both or 1.0 in ends else [above, below]
    views = [
        _View(end - width if end else 0.0, width, *corner)
        for end, corner in zip(ends, (each for each in free if each is not None), strict=False)
        if (width := _width(curve, end)) is not None
    ]
    says = "in the boxes: both ends, closer" if len(views) > 1 else ""
    return [mark for view in views for mark in _viewed(marks, view, says)]


def _width(curve: Trail, end: float) -> float | None:
    """The narrowest view that shows the thick part of the curve at this end."""
    near = (np.abs(curve.x - end) <= _WIDTHS[-1]) & (curve.weight >= _THICK)
    if not near.any():
        return None
    far = max(np.abs(curve.x[near] - end).max(), np.nanmax(np.abs(curve.y[near] - end)))
    return next((width for width in _WIDTHS if far <= 0.9 * width), None)


def _first_free(
    marks: Sequence[Mark], corners: Sequence[tuple[float, float]]
) -> tuple[float, float] | None:
    return next((at for at in corners if not any(_covered(mark, at) for mark in marks)), None)


def _covered(mark: Mark, corner: tuple[float, float]) -> bool:
    """Whether a mark lies where the view would be."""
    left, bottom = corner
    if isinstance(mark, Line | Trail | Points):
        low = high = mark.y
    elif isinstance(mark, Band):
        low, high = mark.low, mark.high
    else:
        return False
    across = (mark.x > left - _ROOM) & (mark.x < left + _SIDE + _ROOM)
    up = (high > bottom - _ROOM_FOR_WORDS) & (low < bottom + _SIDE + _ROOM)
    return bool(np.any(across & up))


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
    words = Words(
        key=CLOSER,
        ink="neutral",
        x=np.array([view.left, right]),
        y=np.full(2, view.bottom - 0.03),
        texts=texts,
        small=True,
    )
    return [*shown, *frame, words]


def _enlarged(mark: Mark, view: _View) -> Mark | None:
    if isinstance(mark, Points):
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
