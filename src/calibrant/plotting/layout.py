"""Where things go inside a panel, in fractions of its height; shared by the three renderers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.plotting.panel import (
    Band,
    Dots,
    Hill,
    Line,
    Mark,
    Panel,
    Side,
    Steps,
    Trail,
    Words,
)

__all__ = [
    "MARKERS",
    "Corner",
    "empty_corner",
    "fitted",
    "hill_span",
    "place_for_notes",
    "runs",
    "tick_span",
]

# Strokes along an edge take the outer 3%; a density starts beyond them and rises by up to 17%. Bars fill
# the strip below 0 that axes of frequencies have.
_TICK = 0.030
_HILL_BASE, _HILL_HEIGHT = 0.045, 0.17
_BARS_BASE, _BARS_HEIGHT = 0.006, 0.088

# The fields of marks that lie along an axis.
_ALONG = {"x": "x", "left": "x", "right": "x", "y": "y", "ys": "y", "low": "y", "high": "y"}

# One for each series in turn, so that series differ by shape as well as by colour. There is one more
# than there are colours: where these start again, the shapes are out of step with them.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def tick_span(side: Side) -> tuple[float, float]:
    """The strip of strokes along an edge."""
    return (0.0, _TICK) if side == "bottom" else (1.0 - _TICK, 1.0)


def hill_span(hill: Hill) -> tuple[float, NDArray[np.float64]]:
    """Base of a density and its outline."""
    base = _BARS_BASE if hill.bars else _HILL_BASE
    rise = (_BARS_HEIGHT if hill.bars else _HILL_HEIGHT) * np.clip(hill.height, 0.0, 1.0)
    return (base, base + rise) if hill.side == "bottom" else (1.0 - base, 1.0 - base - rise)


def fitted(panel: Panel) -> Panel:
    """The panel with what a logit axis cannot show moved just beyond its edge."""
    marks = []
    for mark in panel.marks:
        changes: dict[str, Any] = {}
        for item in fields(mark):
            axis = {"x": panel.x, "y": panel.y}.get(_ALONG.get(item.name, ""))
            if axis is not None and axis.scale == "logit":
                low, high = axis.low / 4, 1 - (1 - axis.high) / 4
                changes[item.name] = np.clip(getattr(mark, item.name), low, high)
        marks.append(replace(mark, **changes))
    return replace(panel, marks=tuple(marks))


def runs(*arrays: NDArray[np.float64]) -> list[slice]:
    """Stretches in which every array is finite."""
    finite = np.all([np.isfinite(a) for a in arrays], axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], finite.astype(np.int8), [0]])))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@dataclass(frozen=True)
class Corner:
    """A corner of a panel for some text.

    Attributes
    ----------
    side : {"top", "bottom"}
    left : bool
        At the left edge, or at the right one.
    offset : float
        Distance from the top or the bottom, clear of the strokes and the densities there.
    covered : int
        How many points of the marks the text would cover.
    """

    side: Side
    left: bool
    offset: float
    covered: int

    def place(self, pad: float) -> tuple[float, float]:
        """The corner of the text's box, in fractions of the panel from the bottom left."""
        x = pad if self.left else 1.0 - pad
        return x, 1.0 - self.offset if self.side == "top" else self.offset


def empty_corner(
    panel: Panel, width: float, height: float, *, taken: Corner | None = None
) -> Corner:
    """The corner that the marks leave emptiest for a text of this width and height.

    Top left and bottom right first: a curve of calibration runs between the other two. Not the one
    that is `taken` by other words.
    """
    sides: tuple[tuple[Side, bool], ...] = (
        ("top", True),
        ("bottom", False),
        ("top", False),
        ("bottom", True),
    )
    free = [side for side in sides if taken is None or side != (taken.side, taken.left)]
    corners = [_corner(panel, side, left, width, height) for side, left in free]
    return min(corners, key=lambda corner: corner.covered)


def place_for_notes(
    panel: Panel, size_of: Callable[[Sequence[str]], tuple[float, float]]
) -> tuple[Corner | None, tuple[str, ...]]:
    """A corner where the notes cover neither curve nor band, and their lines, broken where that helps.

    There may be no such corner: then they stand above the axes.
    """
    narrow = (part for line in panel.notes for part in line.replace(" (", "\n(").split("\n"))
    for lines in (panel.notes, tuple(narrow)):
        corner = empty_corner(panel, *size_of(lines))
        if not corner.covered:
            return corner, lines
    return None, panel.notes


def _corner(panel: Panel, side: Side, left: bool, width: float, height: float) -> Corner:
    clear = _clearance(panel, side, left, width)
    covered = 0
    for mark in panel.marks:
        for x, y in _outline(mark):
            across, up = panel.x.fraction(x), panel.y.fraction(y)
            near = across < width if left else across > 1 - width
            beyond = clear + height + 0.02
            covered += int(np.sum(near & (up > 1 - beyond if side == "top" else up < beyond)))
    return Corner(side, left, clear, covered)


def _clearance(panel: Panel, side: Side, left: bool, width: float) -> float:
    clear = 0.03
    for mark in panel.marks:
        if isinstance(mark, Hill) and mark.side == side and mark.ink != "faint":
            across = panel.x.fraction(mark.x)
            near = across < width if left else across > 1 - width
            rise = float(
                np.max(mark.height[near], initial=0.0, where=np.isfinite(mark.height[near]))
            )
            full = _BARS_HEIGHT if mark.bars else _HILL_HEIGHT
            base = _BARS_BASE if mark.bars else _HILL_BASE
            clear = max(clear, base + full * min(rise, 1.0) + 0.015)
        elif getattr(mark, "side", None) == side:
            clear = max(clear, _HILL_BASE)
    return clear


def _outline(mark: Mark) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    if mark.ink == "faint":
        return []
    if isinstance(mark, Line | Trail | Words):
        return [(mark.x, mark.y)]
    if isinstance(mark, Band):
        shares = np.linspace(0.0, 1.0, 13)[:, None]
        inside = mark.low + (mark.high - mark.low) * shares
        return [(np.tile(mark.x, len(shares)), inside.ravel())]
    if isinstance(mark, Dots):
        return [(mark.x, mark.y), (mark.x, mark.low), (mark.x, mark.high)]
    if isinstance(mark, Steps):
        steps = np.linspace(0.0, 1.0, 9)[:, None]
        return [((mark.left + (mark.right - mark.left) * steps).ravel(), np.tile(mark.y, 9))]
    return []
