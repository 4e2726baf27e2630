"""Marks as rows of plain values, in the coordinates of their axes, for charts made of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.drawing.layout import hill_span, runs, tick_span
from calibrant.drawing.marks import (
    Band,
    Bundle,
    Hill,
    Line,
    Mark,
    Panel,
    Points,
    Steps,
    Ticks,
    Trail,
)

__all__ = ["Rows", "rounded", "rows_of"]

Rows: TypeAlias = list[dict[str, Any]]


def rounded(value: float) -> float:
    """Five significant digits, more than a screen can show and short in a file; numbers of rows whole."""
    return (
        float(round(value)) if abs(value) >= 1e5 and np.isfinite(value) else float(f"{value:.5g}")
    )


def _table(columns: Mapping[str, NDArray[Any]], run: slice, name: int | str) -> Rows:
    kept = {key: [rounded(v) for v in column[run].tolist()] for key, column in columns.items()}
    return [
        {"run": name, **dict(zip(kept, row, strict=True))}
        for row in zip(*kept.values(), strict=True)
    ]


def _stretches(columns: Mapping[str, NDArray[Any]], required: Sequence[str]) -> Rows:
    found = runs(*(columns[name] for name in required))
    return [row for k, run in enumerate(found) for row in _table(columns, run, k)]


def _height(panel: Panel, fraction: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = panel.y.limits()
    return np.asarray(low + (high - low) * fraction)


@singledispatch
def rows_of(mark: Mark, panel: Panel) -> Rows:
    """The rows of one mark; `run` numbers its unbroken stretches."""
    raise TypeError(f"no chart for {type(mark).__name__}")


@rows_of.register
def _(mark: Line, panel: Panel) -> Rows:
    place = {"x": panel.x.forward(mark.x), "y": panel.y.forward(mark.y)}
    return _stretches({**place, **mark.details}, list(place))


@rows_of.register
def _(mark: Trail, panel: Panel) -> Rows:
    place = {"x": panel.x.forward(mark.x), "y": panel.y.forward(mark.y)}
    place["size"] = 1.4 + 5.6 * np.clip(mark.weight, 0, 1)
    return _stretches({**place, **mark.details}, list(place))


@rows_of.register
def _(mark: Bundle, panel: Panel) -> Rows:
    x, ys = panel.x.forward(mark.x), panel.y.forward(mark.ys)
    found = [(y, run) for y in ys for run in runs(x, y)]
    return [row for k, (y, run) in enumerate(found) for row in _table({"x": x, "y": y}, run, k)]


@rows_of.register
def _(mark: Band, panel: Panel) -> Rows:
    low, high = panel.y.forward(mark.low), panel.y.forward(mark.high)
    return _stretches({"x": panel.x.forward(mark.x), "y": low, "y2": high}, ["x", "y", "y2"])


@rows_of.register
def _(mark: Hill, panel: Panel) -> Rows:
    base, outline = hill_span(mark)
    y, y2 = _height(panel, np.full_like(outline, base)), _height(panel, outline)
    return _stretches({"x": panel.x.forward(mark.x), "y": y, "y2": y2}, ["x", "y", "y2"])


@rows_of.register
def _(mark: Ticks, panel: Panel) -> Rows:
    x = panel.x.forward(mark.x)
    low, high = _height(panel, np.array(tick_span(mark.side)))
    columns = {"x": x, "y": np.full_like(x, low), "y2": np.full_like(x, high)}
    return _stretches(columns, ["x"])


@rows_of.register
def _(mark: Points, panel: Panel) -> Rows:
    place = {"x": panel.x.forward(mark.x), "y": panel.y.forward(mark.y)}
    place["size"] = 30 + 120 * np.clip(mark.weight, 0, 1)
    ends = {"low_end": panel.y.forward(mark.low), "high_end": panel.y.forward(mark.high)}
    return _stretches({**place, **ends, **mark.details}, [*place, *ends])


@rows_of.register
def _(mark: Steps, panel: Panel) -> Rows:
    columns = {"x": panel.x.forward(mark.left), "x2": panel.x.forward(mark.right)}
    return _stretches({**columns, "y": panel.y.forward(mark.y)}, ["x", "x2", "y"])
