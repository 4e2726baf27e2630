"""Colours: for a light page, a dark one, and one printed without colour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from calibrant.drawing.marks import Ink, Mark, Panel
from calibrant.errors import InputError

__all__ = ["DARK", "LIGHT", "PRINT", "Theme", "as_theme", "color_of", "series_colors"]


@dataclass(frozen=True)
class Theme:
    """The colours of a picture.

    The series colours keep apart for every common kind of colour blindness (chosen by search over
    simulated vision), and no meaning rests on hue alone: several series also differ by marker.
    """

    name: str
    paper: str
    ink: str
    neutral: str
    faint: str
    accent: str
    series: tuple[str, ...]
    band_opacity: float = 0.22
    neutral_opacity: float = 0.28


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#1f2328",
    neutral="#6b7280",
    faint="#b6bcc6",
    accent="#b3400e",
    series=("#0b62a8", "#d55e00", "#00b58a", "#882255", "#1a1a1a", "#332288"),
)
DARK = Theme(
    name="dark",
    paper="#14171c",
    ink="#e6e9ee",
    neutral="#9aa3b2",
    faint="#565f6e",
    accent="#ffb27d",
    series=("#62b4ff", "#d17a22", "#a8e05f", "#e39bcb", "#ffffff", "#8f8f8f"),
    band_opacity=0.28,
    neutral_opacity=0.30,
)
PRINT = Theme(
    name="print",
    paper="#ffffff",
    ink="#000000",
    neutral="#777777",
    faint="#bbbbbb",
    accent="#000000",
    series=("#000000", "#6e6e6e", "#a0a0a0", "#3c3c3c", "#8a8a8a", "#555555"),
    band_opacity=0.20,
    neutral_opacity=0.22,
)
_THEMES = {theme.name: theme for theme in (LIGHT, DARK, PRINT)}


def as_theme(theme: str | Theme) -> Theme:
    """Return the theme of that name, or the theme itself."""
    if isinstance(theme, Theme):
        return theme
    if not isinstance(theme, str) or theme not in _THEMES:
        raise InputError(f"theme must be one of {', '.join(map(repr, _THEMES))}; got {theme!r}.")
    return _THEMES[theme]


def series_colors(panel: Panel, theme: Theme, *, start: int = 0) -> Mapping[str, str]:
    """Give each series its own colour, or the one that was asked for; `start` are in use."""
    names = panel.series()
    return {
        name: panel.colors.get(name, theme.series[k % len(theme.series)])
        for k, name in enumerate(names, start)
    }


def color_of(mark: Mark, colors: Mapping[str, str], theme: Theme) -> str:
    """The colour that a mark is drawn with."""
    if mark.ink == "series":
        return colors.get(mark.series, theme.series[0])
    inks: dict[Ink, str] = {
        "neutral": theme.neutral,
        "faint": theme.faint,
        "accent": theme.accent,
    }
    return inks[mark.ink]
