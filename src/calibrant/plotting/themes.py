"""Themes: the colours of a picture, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType

from calibrant._arguments import require_choice
from calibrant.errors import InputError, show_value


@dataclass(frozen=True)
class Theme:
    """The colours of a picture.

    Series colours keep apart for the common kinds of colour blindness (chosen by search over simulated
    vision).

    Attributes
    ----------
    name : str
    paper, ink, muted : color
        Background, text, and text of less weight.
    reference, histogram : color
        The diagonal with its consistency band, and the bars of the histogram.
    accent : color
        What should be seen first, such as a miscalibrated group.
    series : tuple of color
        Curves, in order.
    band_alpha, reference_alpha : float
        Opacity of confidence bands and of the consistency band.
    """

    name: str
    paper: str
    ink: str
    muted: str
    reference: str
    histogram: str
    accent: str
    series: tuple[str, ...]
    band_alpha: float = 0.22
    reference_alpha: float = 0.24


LIGHT = Theme(
    name="light",
    paper="#ffffff",
    ink="#1f2328",
    muted="#59616c",
    reference="#6b7280",
    histogram="#a3aab5",
    accent="#b3400e",
    series=("#0b62a8", "#d55e00", "#00966f", "#882255", "#1a1a1a", "#332288"),
)
DARK = Theme(
    name="dark",
    paper="#14171c",
    ink="#e6e9ee",
    muted="#a9b1be",
    reference="#9aa3b2",
    histogram="#565f6e",
    accent="#ffb27d",
    series=("#62b4ff", "#f09a3e", "#a8e05f", "#e39bcb", "#ffffff", "#8f8f8f"),
    band_alpha=0.28,
    reference_alpha=0.30,
)
PRINT = Theme(
    name="print",
    paper="#ffffff",
    ink="#000000",
    muted="#444444",
    reference="#777777",
    histogram="#aaaaaa",
    accent="#000000",
    series=("#000000", "#6e6e6e", "#a0a0a0", "#3c3c3c", "#8a8a8a", "#555555"),
    reference_alpha=0.22,
)
_REGISTERED = {theme.name: theme for theme in (LIGHT, DARK, PRINT)}
THEMES: Mapping[str, Theme] = MappingProxyType(_REGISTERED)
"""Registered themes, by name."""


def register_theme(theme: Theme) -> Theme:
    """The theme, from now on known by its name to every `theme=`.

    Examples
    --------
    >>> from dataclasses import replace
    >>> register_theme(replace(LIGHT, name="sepia", paper="#f4ecd8")).name in THEMES
    True
    """
    from matplotlib.colors import is_color_like

    if not isinstance(theme, Theme):
        raise InputError(
            f"`theme` must be a Theme; it is {show_value(theme)}.",
            argument="theme",
            hint="Make one with dataclasses.replace(calibrant.plotting.LIGHT, name=..., paper=...).",
        )
    colors = [getattr(theme, f.name) for f in fields(theme) if f.type == "str" and f.name != "name"]
    for color in (*colors, *theme.series):
        if not is_color_like(color):
            raise InputError(f"`theme` has {show_value(color)} for a colour.", argument="theme")
    _REGISTERED[theme.name] = theme
    return theme


def as_theme(theme: str | Theme) -> Theme:
    """The theme of that name, or the theme itself."""
    if isinstance(theme, Theme):
        return theme
    require_choice("theme", theme, tuple(THEMES))
    return THEMES[theme]
