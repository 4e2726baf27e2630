"""What a caller may choose of a picture: colours, names, sizes and themes that every renderer can draw."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from calibrant._arguments import is_number, require_choice
from calibrant._optional import find
from calibrant.errors import InputError
from calibrant.plotting.panel import Ink, Mark, Panel

__all__ = [
    "DARK",
    "LIGHT",
    "OUTLINE_OPACITY",
    "PRINT",
    "Color",
    "Theme",
    "as_color",
    "as_name",
    "as_theme",
    "color_of",
    "require_pixels",
    "require_print_size",
    "series_colors",
    "shortened",
]

Color: TypeAlias = str | Sequence[float]

OUTLINE_OPACITY = 0.75
"""Of the outline that tells the band of a calibrated model from others, also without colour."""
_HEX = re.compile(r"#(?:[0-9a-f]{3}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE)
_INCHES = (2.5, 60.0)
_DPI = (20, 2400)
_MOST_PIXELS = 20_000
_PIXELS = (100, 10_000)


def as_color(color: Any) -> str:
    """A colour as matplotlib, Altair and a browser all understand it.

    Parameters
    ----------
    color : str or sequence of 3 or 4 numbers in [0, 1]
        "#1f77b4", or the name of a colour; with matplotlib installed, all that it knows, such as "C0".

    Examples
    --------
    >>> as_color((1, 0, 0)), as_color("#0b62a8")
    ('#ff0000', '#0b62a8')
    """
    if isinstance(color, str) and _HEX.fullmatch(color):
        return color
    matplotlib = find("matplotlib.colors") if isinstance(color, str) else None
    if matplotlib is not None and matplotlib.is_color_like(color) and color.lower() != "none":
        return str(matplotlib.to_hex(color, keep_alpha=True)).removesuffix("ff")
    if matplotlib is None and isinstance(color, str) and color.isalpha():
        return color  # a browser knows the names
    if isinstance(color, Sequence | np.ndarray) and not isinstance(color, str) and _is_rgb(color):
        return "#" + "".join(f"{round(255 * float(part)):02x}" for part in color)
    raise InputError(
        'must be the name of a colour, "#rrggbb", or three numbers from 0 to 1',
        argument="color",
        seen=color,
        cure='Pass a colour such as "#1f77b4".',
    )


def _is_rgb(color: Any) -> bool:
    numbers = all(isinstance(part, int | float | np.number) for part in color)
    return len(color) in (3, 4) and numbers and all(0 <= part <= 1 for part in color)


def as_name(name: Any) -> str:
    """A name as text; None for no name."""
    return "" if name is None else str(name)


def shortened(name: str, longest: int = 32) -> str:
    """A name that fits into a picture: the middle of a longer one is left out.

    Examples
    --------
    >>> shortened("a-rather-long-name-of-a-model-version-17")
    'a-rather-long-name-o…version-17'
    """
    if len(name) <= longest:
        return name
    end = longest // 3
    return name[: longest - end - 2] + "…" + name[-end:]


def require_pixels(**sizes: Any) -> None:
    """Refuse sizes of a picture on a screen, in pixels, that cannot be drawn."""
    for name, size in sizes.items():
        if not _within(size, _PIXELS):
            raise InputError(
                "must be from {least} to {most} pixels",
                argument=name,
                seen=size,
                cure="Leave it out for the default.",
                least=_PIXELS[0],
                most=f"{_PIXELS[1]:,}",
            )


def require_print_size(width: Any, dpi: Any, *, columns: int = 1) -> None:
    """Refuse sizes of a saved picture that leave no room for its panels, or a file too large."""
    least, most = _INCHES[0] * columns, _INCHES[1]
    if not _within(width, (least, most)):
        raise InputError(
            "must be from {least} to {most} inches"
            if columns == 1
            else "must be from {least} to {most} inches for {columns} panels side by side",
            argument="width",
            seen=width,
            cure="A column of a paper has 3.3.",
            least=f"{least:g}",
            most=f"{most:g}",
            columns=columns,
        )
    if not _within(dpi, _DPI) or width * dpi > _MOST_PIXELS:
        raise InputError(
            "must be from {least} to {most}, and the picture at most {pixels} pixels wide",
            argument="dpi",
            seen=dpi,
            cure="For print, 300 is enough.",
            least=_DPI[0],
            most=_DPI[1],
            pixels=f"{_MOST_PIXELS:,}",
        )


def _within(size: Any, limits: tuple[float, float]) -> bool:
    return is_number(size) and bool(limits[0] <= size <= limits[1])


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
    require_choice("theme", theme, tuple(_THEMES))
    return _THEMES[theme]


def series_colors(panel: Panel, theme: Theme, *, start: int = 0) -> Mapping[str, str]:
    """Give each series its own colour, or the one that was asked for; `start` are in use."""
    names = panel.series()
    return {
        name: panel.colors.get(name, theme.series[k % len(theme.series)])
        for k, name in enumerate(names, start + panel.turn)
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
