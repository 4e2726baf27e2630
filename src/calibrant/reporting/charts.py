"""The pictures of a report: interactive specs with their data packed, and the same as static SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.plotting.altair import Slider, chart
from calibrant.plotting.closer_view import CLOSER
from calibrant.plotting.diagram import plain
from calibrant.plotting.forest import forest_plot
from calibrant.plotting.group import Diagrams
from calibrant.plotting.looks import DARK, LIGHT, color_of, series_colors
from calibrant.plotting.panel import Band, Dash, Dots, Hill, Line, Mark, Panel, Trail
from calibrant.plotting.smooth import ReliabilityDiagram, reliability_diagram
from calibrant.plotting.smooth_numbers import drawn_bandwidth
from calibrant.plotting.svg import render
from calibrant.reporting.summary import Summary

__all__ = [
    "DARK_OF_LIGHT",
    "FEW_ENOUGH_FOR_BANDS",
    "MOST_EXPLORED",
    "MOST_SHOWN",
    "Look",
    "color_variable",
    "explored",
    "forest_svg",
    "key_of",
    "keyed_svg",
    "looks",
    "main_spec",
    "marked_panel",
    "overview",
    "small_svg",
    "svg",
]

Named = Mapping[str, ReliabilityDiagram]
DASHES: tuple[Dash, ...] = ("solid", "dashed", "dotted", "dash-dotted")

MOST_SHOWN = 5
MOST_EXPLORED = 3
FEW_ENOUGH_FOR_BANDS = 3
CHART_POINTS, ALL_CHART_POINTS = 128, 1600
STATIC_POINTS, SMALL_POINTS = 80, 40
WIDTH, HEIGHT = 560, 460
KEYED_WIDTH = 420  # as wide as a phone shows without making words small
MOST_IN_FOREST = 40
POWERS = range(-4, 5)
EXPLORE_NODES = 1 << 13

_LIGHT = (LIGHT.paper, LIGHT.ink, LIGHT.neutral, LIGHT.faint, LIGHT.accent, *LIGHT.series)
_DARK = (DARK.paper, DARK.ink, DARK.neutral, DARK.faint, DARK.accent, *DARK.series)
DARK_OF_LIGHT = dict(zip(_LIGHT, _DARK, strict=True))
"""Each colour of a light picture, and what takes its place in the dark."""


@dataclass(frozen=True)
class Look:
    """How the curve of one series is told apart: first by colour, then by dashes."""

    color: str
    dash: Dash


def looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for each name; the first ones get the colours, the next the same colours dashed.

    Examples
    --------
    >>> [look.dash for look in looks("abcdefgh").values()][-3:]
    ['solid', 'dashed', 'dashed']
    """
    palette = LIGHT.series
    return {
        name: Look(palette[k % len(palette)], DASHES[k // len(palette) % len(DASHES)])
        for k, name in enumerate(names)
    }


def color_variable(color: str) -> str:
    """The name of the style sheet's variable that holds a colour of the light theme."""
    return f"--c-{color[1:]}"


def marked_panel(diagram: ReliabilityDiagram, color: str | None = None) -> Panel:
    """The diagram with the area of each contributing region filled: together they are the number."""
    panel = diagram.panel(color=color)
    marks = list(panel.marks if diagram.resamples else _without_bounds(panel.marks))
    at = next((k for k, mark in enumerate(marks) if mark.key in ("band", "curve")), len(marks))
    return replace(
        panel, marks=(*marks[:at], *_regions(diagram), *marks[at:]), notes=(), subtitle=""
    )


def _without_bounds(marks: Iterable[Mark]) -> list[Mark]:
    """The marks of diagrams without resamples: no bands and no whiskers, also where one points at."""
    kept: list[Mark] = []
    for mark in marks:
        if mark.key in ("band", "consistency"):
            continue
        details = {key: v for key, v in mark.details.items() if key not in ("low", "high")}
        if isinstance(mark, Dots):
            mark = replace(mark, low=mark.y, high=mark.y)
        kept.append(replace(mark, details=details))
    return kept


def _regions(diagram: ReliabilityDiagram) -> list[Mark]:
    curve, reference = diagram.regression, diagram.smoothed_predictions
    marks: list[Mark] = []
    for region in diagram.regions:
        inside = (diagram.grid >= region.low) & (diagram.grid <= region.high)
        low = np.where(inside, np.minimum(curve, reference), np.nan)
        high = np.where(inside, np.maximum(curve, reference), np.nan)
        says = "the error, by region" if not marks else ""
        marks.append(Band(key="region", ink="accent", x=reference, low=low, high=high, says=says))
    return marks


def overview(diagrams: Named, looks: Mapping[str, Look]) -> Panel:
    """One marked diagram, or all of them on one axis.

    Bands, and the lines of calibrated models, only while they can be told apart.
    """
    if len(diagrams) == 1:
        (diagram,) = diagrams.values()
        return marked_panel(diagram)
    few = len(diagrams) <= FEW_ENOUGH_FOR_BANDS
    panel = Diagrams(diagrams).panel(band="pointwise" if few else None)
    marks = tuple(mark for mark in panel.marks if few or mark.key != "values")
    if not all(diagram.resamples for diagram in diagrams.values()):
        marks = tuple(_without_bounds(marks))
    return _with_looks(replace(panel, marks=marks, notes=()), looks)


def _with_looks(panel: Panel, looks: Mapping[str, Look]) -> Panel:
    """The panel in these colours; a curve that shares its colour with another is dashed."""
    marks: list[Mark] = []
    for mark in panel.marks:
        look = looks.get(mark.series)
        if isinstance(mark, Trail) and look is not None and look.dash != "solid":
            key = f"{mark.key}-{look.dash}"  # a layer of its own
            mark = Line(
                key=key,
                series=mark.series,
                ink=mark.ink,
                details=mark.details,
                x=mark.x,
                y=mark.y,
                dash=look.dash,
            )
        marks.append(mark)
    colors = {name: look.color for name, look in looks.items()}
    return replace(panel, marks=tuple(marks), colors=colors)


def forest_svg(summary: Summary) -> str:
    """The error of every group, for the top of the page."""
    plot = forest_plot({group.name: group.assessment for group in summary.groups})
    lines = min(len(summary.groups), MOST_IN_FOREST)
    panel = plot.panel(most=MOST_IN_FOREST)
    return _themed(
        panel, panel.finding, width=KEYED_WIDTH, height=max(120 + 30 * lines, 210), keyed=True
    )


def svg(panel: Panel, title: str) -> str:
    """The panel as SVG; the title is for those who hear the page, which has its legend."""
    return _themed(panel.thinned(STATIC_POINTS), title, width=WIDTH, height=HEIGHT, keyed=False)


def keyed_svg(panel: Panel, title: str) -> str:
    """A picture of another kind, under which a legend says what each mark is."""
    thin = panel.thinned(STATIC_POINTS)
    height = 320 + 15 * sum(entry.lines for entry in panel.entries())
    return _themed(thin, title, width=KEYED_WIDTH, height=height, keyed=True)


def key_of(panel: Panel) -> list[dict[str, str]]:
    """What each mark is, for the page to list: its words, its kind and its colour."""
    colors = series_colors(panel, LIGHT)
    kinds = {Band: "band", Hill: "bars", Dots: "dot", Trail: "curve"}
    return [
        {
            "text": entry.text,
            "kind": "reference"
            if isinstance(entry.mark, Band) and entry.mark.ink == "neutral"
            else kinds.get(type(entry.mark), "line"),
            "color": color_variable(color_of(entry.mark, colors, LIGHT)),
        }
        for entry in replace(panel, legend={}).entries()
    ]


def small_svg(diagram: ReliabilityDiagram, title: str, color: str | None = None) -> str:
    """A marked diagram, small and without a legend."""
    panel = marked_panel(diagram, color).thinned(SMALL_POINTS)
    thin = replace(panel, marks=tuple(mark for mark in panel.marks if mark.key != CLOSER))
    return _themed(thin, title, width=380, height=320, keyed=False)


def _themed(panel: Panel, title: str, *, width: int, height: int, keyed: bool) -> str:
    """SVG whose colours are variables of the page's style sheet."""
    bare = replace(panel, legend={}, finding=title, keyed=keyed)
    drawn = render(bare, width=width, height=height)
    for color in DARK_OF_LIGHT:
        drawn = drawn.replace(f'"{color}"', f'"var({color_variable(color)})"')
    return drawn


def main_spec(diagrams: Named, looks: Mapping[str, Look]) -> Any:
    """The interactive overview: hover to read a curve."""
    points = min(CHART_POINTS, ALL_CHART_POINTS // len(diagrams))
    panel = replace(overview(diagrams, looks), keyed=False).thinned(points)
    return packed(chart([panel], width=WIDTH, height=HEIGHT).to_dict(validate=False))


def explored(diagrams: Named, looks: Mapping[str, Look]) -> tuple[Any, list[str]]:
    """A chart with a slider through bandwidths around each diagram's own, and what each step shows."""
    coarse = {
        name: d.sketch.rebin(min(d.sketch.nodes, EXPLORE_NODES)) for name, d in diagrams.items()
    }
    panels, labels = [], []
    for power in POWERS:
        factor = 2.0 ** (power / 2)
        each = {
            name: reliability_diagram(
                coarse[name],
                bandwidth=drawn_bandwidth(coarse[name], d.bandwidth * factor),
                resamples=0,
            )
            for name, d in diagrams.items()
        }
        panels.append(_plain_panel(each, looks))
        labels.append(_step(factor, each))
    slider = Slider("bandwidth", start=-POWERS.start)
    return packed(
        chart(panels, slider=slider, width=WIDTH, height=HEIGHT).to_dict(validate=False)
    ), labels


def _plain_panel(diagrams: Named, looks: Mapping[str, Look]) -> Panel:
    if len(diagrams) == 1:
        (diagram,) = diagrams.values()
        panel = diagram.panel(band=None)
        marks = tuple(mark for mark in panel.marks if mark.key != "values")
    else:
        panel = Diagrams(diagrams).panel(band=None)
        marks = tuple(mark for mark in panel.marks if mark.key != "values")
    bare = replace(panel, marks=tuple(_without_bounds(marks)), notes=(), subtitle="", keyed=False)
    return _with_looks(bare, looks).thinned(CHART_POINTS)


def _step(factor: float, diagrams: Named) -> str:
    errors = [
        (f"{name}: " if len(diagrams) > 1 else "")
        + f"bandwidth {d.bandwidth:.3g}, error {d.smooth_ece.value:.3g}"
        for name, d in diagrams.items()
    ]
    own = "The diagram's own bandwidth, which equals the error" if factor == 1 else ""
    return (
        (own or f"{factor:.3g} times the diagram's own bandwidth") + ". " + "; ".join(errors) + "."
    )


def packed(value: Any) -> Any:
    """A spec with its tables as lists of values under their names, and the legend left to the page."""
    if isinstance(value, list) and len(value) > 2 and _is_table(value):
        return {"packed": [list(value[0]), *(plain(list(row.values())) for row in value)]}
    if isinstance(value, list):
        return [packed(item) for item in value]
    if isinstance(value, dict):
        return {k: None if k == "legend" else packed(item) for k, item in value.items()}
    return value


def _is_table(rows: Sequence[Any]) -> bool:
    if not all(isinstance(row, dict) for row in rows):
        return False
    names = list(rows[0])
    return all(list(row) == names for row in rows)
