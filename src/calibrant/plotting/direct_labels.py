"""Names beside the curves that they belong to: where several share a panel and there is room."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from calibrant.plotting.axis import Axis
from calibrant.plotting.panel import Band, Blank, Dots, Line, Mark, Panel, Trail, Words

__all__ = ["direct_labels"]

Floats = NDArray[np.float64]

MOST_LABELLED = 6
# Of a panel of the usual size, a letter takes this share of the width and a line this of the height.
_LETTER, _LINE = 0.0225, 0.05
_CLEAR = 0.016
_PLACES = 25
_LATE = 0.6  # a label near the upper end of its curve is looked for first
_SHADED, _FAR = 0.4, 4.0  # what it costs to lie on a band, and away from its curve


def direct_labels(panel: Panel, names: Mapping[str, str]) -> list[Words]:
    """A label for each series, next to its curve and clear of all others; none where there is no room.

    Parameters
    ----------
    panel : Panel
        With the curves of several series.
    names : mapping of series to name
        What each label says.

    Examples
    --------
    >>> x = np.linspace(0, 1, 50)
    >>> low, high = (Line(key="curve", series=s, x=x, y=y) for s, y in (("a", x / 4), ("b", 1 - x / 4)))
    >>> panel = Panel((low, high), Axis("x", 0, 1), Axis("y", 0, 1))
    >>> [label.texts for label in direct_labels(panel, {"a": "model a", "b": "model b"})]
    [('model a',), ('model b',)]
    """
    curves = {name: _path(panel, name) for name in names}
    if len(curves) > MOST_LABELLED:
        return []
    lines = [_along(panel, mark) for mark in panel.marks if mark.key == "diagonal"]
    bands = [_along(panel, edge) for mark in panel.marks for edge in _edges(mark)]
    taken = [_box(panel, mark) for mark in panel.marks if isinstance(mark, Blank)]
    labels = []
    for series, name in names.items():
        own = curves[series]
        if not len(own):
            continue
        half = np.array([(_LETTER * len(name)) / 2, _LINE / 2])
        others = [path for other, path in curves.items() if other != series and len(path)]
        place = _place(own, others, lines, bands, taken, half)
        if place is None:
            return []  # some names alone would read as if the other curves had none
        taken.append((place - half, place + half))
        x, y = (_value(axis, at) for axis, at in ((panel.x, place[0]), (panel.y, place[1])))
        labels.append(Words(key="label", series=series, x=x, y=y, texts=(name,)))
    return labels


def _place(
    own: Floats,
    others: list[Floats],
    lines: list[Floats],
    bands: list[Floats],
    taken: list[tuple[Floats, Floats]],
    half: Floats,
) -> Floats | None:
    """The centre of a label that covers nothing and lies nearer to its own curve than to any other."""
    near = own[np.unique(np.linspace(0, len(own) - 1, _PLACES).astype(int))]
    away = half + 2 * _CLEAR
    steps = np.array([[x, y] for x in (-1.0, -0.5, 0.0, 0.5, 1.0) for y in (1.0, -1.0)]) * away
    centres = (near[:, None, :] + steps).reshape(-1, 2)
    rank = np.repeat(np.abs(np.linspace(0, 1, len(near)) - _LATE), len(steps))
    inside = ((centres - half > 0.01) & (centres + half < 0.99)).all(axis=1)
    rank += _FAR * np.array([_distance(centre, half, own) for centre in centres])
    shaded = [any(_covers(centre, half, edge) for edge in bands) for centre in centres]
    for k in np.argsort(rank + _SHADED * np.array(shaded), kind="stable"):
        centre = centres[k]
        if not inside[k] or any(
            (np.abs(centre - (low + high) / 2) < half + (high - low) / 2 + _CLEAR).all()
            for low, high in taken
        ):
            continue
        if any(_covers(centre, half, path) for path in (own, *others, *lines)):
            continue
        if all(_nearer(centre, box, own, path) for path in others for box in (half, 0.0 * half)):
            return np.asarray(centre)
    return None


def _covers(centre: Floats, half: Floats, path: Floats) -> bool:
    return bool((np.abs(path - centre) < half + _CLEAR).all(axis=1).any())


def _nearer(centre: Floats, half: Floats, own: Floats, other: Floats) -> bool:
    return _distance(centre, half, own) + _CLEAR < _distance(centre, half, other)


def _distance(centre: Floats, half: Floats, path: Floats) -> float:
    return float(np.linalg.norm(np.maximum(np.abs(path - centre) - half, 0.0), axis=1).min())


def _path(panel: Panel, series: str) -> Floats:
    """Dots along the curve of a series, in fractions of the panel; those that can be seen."""
    for mark in panel.marks:
        if mark.series == series and isinstance(mark, Line | Trail | Dots):
            path = _along(panel, mark)
            seen = ((path > 0.0) & (path < 1.0)).all(axis=1)
            return path[seen]
    return np.empty((0, 2))


def _box(panel: Panel, mark: Blank) -> tuple[Floats, Floats]:
    """Lower left and upper right corner, in fractions of the panel."""
    corners = np.column_stack([panel.x.fraction(mark.x), panel.y.fraction(mark.y)])
    return corners[0], corners[1]


def _edges(mark: Mark) -> list[Line]:
    if not isinstance(mark, Band):
        return []
    return [Line(key=mark.key, x=mark.x, y=y) for y in (mark.low, mark.high)]


def _along(panel: Panel, mark: Mark) -> Floats:
    assert isinstance(mark, Line | Trail | Dots)
    points = np.column_stack([panel.x.fraction(mark.x), panel.y.fraction(mark.y)])
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) < 2:
        return np.asarray(points)
    passed = np.concatenate([[0.0], np.hypot(*np.diff(points, axis=0).T).cumsum()])
    even = np.linspace(0.0, passed[-1], 400)
    return np.column_stack([np.interp(even, passed, column) for column in points.T])


def _value(axis: Axis, fraction: float) -> Floats:
    """The value that stands at a fraction of an axis."""
    low, high = axis.limits()
    at = low + (high - low) * fraction
    return np.array([1 / (1 + np.exp(-at)) if axis.scale == "logit" else at])
