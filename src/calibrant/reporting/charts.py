"""The pictures of a report: SVG whose colours follow the theme of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from calibrant.plotting.diagram import Diagram
from calibrant.plotting.diagrams import Diagrams
from calibrant.plotting.forest import forest_plot
from calibrant.plotting.reliability import ReliabilityDiagram
from calibrant.plotting.themes import DARK, LIGHT, Theme
from calibrant.reporting.summary import Summary

__all__ = [
    "DARK_OF_LIGHT",
    "MOST_SHOWN",
    "color_variable",
    "forest_svg",
    "overview_svg",
    "picture_svg",
]

MOST_SHOWN = 4
OVERVIEW, SMALL = 5.4, 3.9
"""Widths in inches: of the first picture, and of those in the text."""


def _colors(theme: Theme) -> list[str]:
    named = [getattr(theme, f.name) for f in fields(theme) if f.type == "str" and f.name != "name"]
    return [*named, *theme.series]


DARK_OF_LIGHT = dict(zip(_colors(LIGHT), _colors(DARK), strict=True))
"""Each colour of a light picture, and its counterpart in the dark."""


def color_variable(color: str) -> str:
    """Name of the style sheet's variable that holds a colour of the light theme."""
    return f"--c-{color[1:]}"


def picture_svg(diagram: Diagram, *, width: float = SMALL) -> str:
    """One diagram with its title and legend."""
    return _themed(diagram.to_svg(width=width))


def overview_svg(diagrams: Mapping[str, ReliabilityDiagram]) -> str:
    """The only diagram, or the worst few on one pair of axes."""
    if len(diagrams) == 1:
        (diagram,) = diagrams.values()
        return picture_svg(diagram, width=OVERVIEW)
    worst = dict(list(diagrams.items())[:MOST_SHOWN])
    return _themed(Diagrams(worst).to_svg(width=OVERVIEW, layout="overlay"))


def forest_svg(summary: Summary) -> str:
    """The forest plot of all groups."""
    plot = forest_plot({group.name: group.assessment for group in summary.groups})
    return _themed(plot.to_svg(width=OVERVIEW + 1.0))


def _themed(svg: str) -> str:
    """SVG with variables of the page's style sheet for colours."""
    for color in DARK_OF_LIGHT:
        svg = svg.replace(color, f"var({color_variable(color)})")
    return svg
