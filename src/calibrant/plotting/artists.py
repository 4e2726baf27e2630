"""Artists that every diagram is made of: bands, weighted lines, points, the histogram, the diagonal.

Each function takes the axes and arrays, draws, and returns the artist. No style sheet and no `rcParams`
is touched: every property is set on the artist.
"""

from __future__ import annotations

import unicodedata
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.errors import InputError, show_value
from calibrant.plotting.neighborhoods import runs
from calibrant.plotting.themes import DARK, LIGHT, Theme

Floats = NDArray[np.float64]

SHARED = "calibrant-shared"
"""Mark of lines to compare with: where they are on the axes already, another diagram stands beside others."""
THINNEST, THICKEST = 0.8, 2.5
"""Points; the line is as wide as the share of rows that it stands for."""
WIDTHS = 12
DRAWN_POINTS = 320
"""Points of a curve that a file keeps: finer than a printer at the width of a column."""
BARS = 50
LOWEST_BAR, RUG = 0.05, 0.2
"""Height below which a bar is a hairline, and the height of that, as shares of the highest."""
LABELLED_BAR = 0.3
"""Share of the rows from which on a bar says it: the others are so low that heights compare badly."""
LABEL_ROOM, BESIDE_TEXT = 0.64, 0.3
"""Part of the axis that two such texts need, and the height (of the highest) of bars in their way."""
STRIP, THIN_STRIP = (-0.115, -0.015), 0.06
"""Strip of the histogram, below 0, and the height of each of several, in lengths of the axis."""
LONGEST_NAME = 60


def display_name(value: object, longest: int = LONGEST_NAME) -> str:
    r"""Text of a name that every format can hold: one line, no control characters, no lone surrogates.

    Examples
    --------
    >>> display_name("a\x00b\ud800"), display_name(None), display_name("x" * 80, 8)
    ('a�b�', '', 'xxxxxxx…')
    """
    text = "" if value is None else " ".join(str(value).split())
    none = ("\ufffe", "\uffff")  # which XML has no place for
    text = "".join(
        "\ufffd" if c in none or unicodedata.category(c) in ("Cc", "Cs") else c for c in text
    )
    return text if len(text) <= longest else text[: longest - 1] + "…"


def require_axes(ax: Any) -> None:
    """Refuse what is not rectangular matplotlib axes in a figure."""
    axes = require("matplotlib.axes", caller="plot")
    if not isinstance(ax, axes.Axes):
        several = isinstance(ax, np.ndarray | list | tuple)
        raise InputError(
            f"`ax` must be a matplotlib Axes; it is {show_value(type(ax).__name__)}.",
            argument="ax",
            hint="Pass one of them, such as ax[0]." if several else "Make one with plt.subplots().",
        )
    if ax.name != "rectilinear":
        raise InputError(
            f"`ax` must have rectangular axes; its projection is {ax.name!r}.",
            argument="ax",
            hint="Make one with plt.subplots().",
        )
    if ax.figure is None:
        raise InputError("`ax` belongs to no figure: it was removed.", argument="ax")


def theme_of(ax: Any) -> Theme:
    """Dark on axes with a dark background, light on others."""
    from matplotlib.colors import to_rgba

    red, green, blue, alpha = to_rgba(ax.get_facecolor())
    if alpha == 0:
        red, green, blue, alpha = to_rgba(ax.figure.get_facecolor())
    dark = alpha > 0 and 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.4
    return DARK if dark else LIGHT


def next_color(ax: Any) -> Any:
    """The next colour of the axes' own cycle, as `ax.plot` would take it."""
    (scout,) = ax.plot([], [])
    color = scout.get_color()
    scout.remove()
    return color


def drawn_points(drawn: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Indices of the points to draw, evenly many of each stretch, and -1 for the gaps between stretches."""
    step = max(1, int(drawn.sum()) // DRAWN_POINTS)
    parts: list[Any] = []
    for run in runs(drawn):
        parts += [np.arange(run.start, run.stop - 1, step), [run.stop - 1], [-1]]
    return np.concatenate([*parts[:-1], []]).astype(np.intp)


def at_points(values: Floats, indices: NDArray[np.intp]) -> Floats:
    """Values at the points to draw, NaN in the gaps."""
    return np.where(indices >= 0, values[indices], np.nan)


def band(ax: Any, x: Floats, low: Floats, high: Floats, **style: Any) -> Any:
    """Filled area between two curves, with gaps where either is NaN."""
    return ax.fill_between(x, low, high, linewidth=0, **style)


def line(ax: Any, x: Any, y: Any, **style: Any) -> Any:
    """Line of one width."""
    (drawn,) = ax.plot(x, y, **style)
    return drawn


def weighted_line(
    ax: Any, x: Floats, y: Floats, weight: Floats, linewidth: float | None = None, **style: Any
) -> Any:
    """Line whose width grows with the square root of a weight between 0 and 1; gaps where y is NaN."""
    from matplotlib.collections import LineCollection

    step = np.round(np.sqrt(np.clip(np.nan_to_num(weight), 0.0, 1.0)) * (WIDTHS - 1))
    segments: list[Floats] = []
    widths: list[float] = []
    for run in runs(np.isfinite(x) & np.isfinite(y)):
        if run.stop - run.start < 2:
            continue
        points = np.column_stack([x[run], y[run]])
        of = np.maximum(step[run][1:], step[run][:-1])
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(of)) + 1, [of.size]])
        if linewidth is not None:
            cuts = np.array([0, of.size])
        for first, last in pairwise(cuts):
            segments.append(points[first : last + 1])
            widths.append(THINNEST + (THICKEST - THINNEST) * of[first] / (WIDTHS - 1))
    style.setdefault("capstyle", "round")
    style.setdefault("joinstyle", "round")
    lines = LineCollection(segments, linewidths=widths or [THINNEST], **style)
    if linewidth is not None:
        lines.set_linewidth(linewidth)
    ax.add_collection(lines, autolim=False)
    return lines


def points(
    ax: Any,
    x: Floats,
    y: Floats,
    low: Floats,
    high: Floats,
    *,
    color: Any,
    size: Any = 22.0,
    alpha: float | None = None,
    label: str | None = None,
) -> list[Any]:
    """Dots with their intervals: the dots first, then the bars."""
    bars = ax.vlines(x, low, high, linewidth=1.4, color=color, alpha=alpha, zorder=4)
    edge = {"edgecolors": [ax.get_facecolor()], "linewidths": 0.6, "zorder": 4.1}
    dots = ax.scatter(x, y, s=size, facecolors=color, alpha=alpha, label=label, **edge)
    return [dots, bars]


def bars(ax: Any, x: Floats, low: Floats, high: Floats, width: float, **style: Any) -> Any:
    """Upright bars: the consistency band of single points."""
    ends = np.add.outer(x, [-width / 2, width / 2, np.nan]).ravel()
    return band(ax, ends, np.repeat(low, 3), np.repeat(high, 3), **style)


def straight(ax: Any, theme: Theme, y: Any = (0.0, 1.0), x: Any = (0.0, 1.0), **style: Any) -> Any:
    """Straight line to compare with: by default the diagonal, of perfect calibration."""
    settings = {"color": theme.reference, "linewidth": 1.0, "zorder": 2, "gid": SHARED, **style}
    return line(ax, x, y, **settings)


def histogram(
    ax: Any,
    p: Floats,
    weight: Floats,
    limits: tuple[float, float],
    theme: Theme,
    color: Any = None,
    strip: tuple[float, float] = STRIP,
) -> list[Any]:
    """Bars of the share of rows along the axis, in a strip below 0; the highest fills it.

    Bars too low to be seen are hairlines; in the theme's own colour, one that holds many rows has their share
    beside it. Bars stand on the values of a predictor that emits few.
    """
    low, high = limits
    span = high - low
    wide = span / BARS
    values = np.unique(p[(p >= low) & (p <= high)])
    apart = np.diff(values).min(initial=wide)
    edges = np.linspace(low, high, BARS + 1)
    if values.size < BARS and apart >= 0.5 * wide:
        edges = np.add.outer(values, [-0.49 * apart, 0.49 * apart]).ravel()
    counts, moments = (np.histogram(p, edges, weights=w)[0] for w in (weight, weight * p))
    bottom, top = low + strip[0] * span, low + strip[1] * span
    share = counts / max(float(counts.max(initial=0.0)), 1e-300)
    rug = (counts > 0) & (share < LOWEST_BAR)
    look = {"color": color or theme.histogram, "alpha": 0.7 if color else None, "zorder": 1}
    heights = bottom + (top - bottom) * np.where(rug, 0.0, share)
    drawn = [ax.stairs(heights, edges, baseline=bottom, fill=True, linewidth=0, **look)]
    if rug.any():
        tip = bottom + RUG * (top - bottom)
        drawn.append(ax.vlines(moments[rug] / counts[rug], bottom, tip, linewidth=0.5, **look))
    part = counts / max(float(weight.sum()), 1e-300)
    middle = 0.5 * (edges[1:] + edges[:-1])
    for k in np.flatnonzero(part >= LABELLED_BAR) if color is None else ():
        inward = -1 if 2.0 * middle[k] > low + high else 1
        ahead = inward * (middle - middle[k])
        if share[(ahead > 0.0) & (ahead < LABEL_ROOM * span)].max(initial=0.0) < BESIDE_TEXT:
            drawn.append(
                ax.annotate(
                    f"{part[k]:.0%} of rows",
                    (edges[k] if inward < 0 else edges[k + 1], 0.5 * (bottom + top)),
                    xytext=(3 * inward, 0),
                    textcoords="offset points",
                    ha="right" if inward < 0 else "left",
                    va="center",
                    fontsize=8.0,
                    color=theme.muted,
                    clip_on=True,
                )
            )
    return drawn


def attributes(ax: Any, theme: Theme, rate: float) -> dict[str, list[Any]]:
    """The attributes diagram: climatology, the line of no skill, and the area that adds to the Brier skill.

    Predictions add to the Brier skill score where they lie closer to the observed frequency than the event
    rate does: between the line y = (x + rate) / 2 and the vertical at the rate.

    References
    ----------
    Hsu and Murphy, *The attributes diagram: a geometrical framework for assessing the quality of
    probability forecasts*, 1986.
    """
    x = np.array([0.0, rate, 1.0])
    half = (x + rate) / 2.0
    skill = band(
        ax,
        x,
        np.array([0.0, rate, half[2]]),
        np.array([half[0], rate, 1.0]),
        color=theme.histogram,
        alpha=0.18,
        zorder=0.5,
    )
    thin: dict[str, Any] = {"linewidth": 0.8, "zorder": 1.5}
    return {
        "skill": [skill],
        "no_skill": [straight(ax, theme, half[[0, 2]], linestyle=":", **thin)],
        "climatology": [
            straight(ax, theme, (rate, rate), linestyle="--", **thin),
            straight(ax, theme, x=(rate, rate), linestyle="--", **thin),
        ],
    }
