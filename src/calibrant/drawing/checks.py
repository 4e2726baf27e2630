"""What a caller may ask of a picture: colours, names and sizes that every renderer can draw."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from calibrant._arguments import is_number
from calibrant._optional import find
from calibrant.errors import InputError

__all__ = ["Color", "as_color", "as_name", "require_pixels", "require_print_size", "shortened"]

Color: TypeAlias = str | Sequence[float]

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
        f'`color` must be the name of a colour, "#rrggbb", or three numbers from 0 to 1; got {color!r}.'
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
                f"`{name}` must be from {_PIXELS[0]} to {_PIXELS[1]:,} pixels; got {size!r}."
            )


def require_print_size(width: Any, dpi: Any, *, columns: int = 1) -> None:
    """Refuse sizes of a saved picture that leave no room for its panels, or a file too large."""
    least, most = _INCHES[0] * columns, _INCHES[1]
    if not _within(width, (least, most)):
        panels = f" for {columns} panels side by side" if columns > 1 else ""
        raise InputError(
            f"`width` must be from {least:g} to {most:g} inches{panels}; got {width!r}. "
            "A column of a paper has 3.3."
        )
    if not _within(dpi, _DPI) or width * dpi > _MOST_PIXELS:
        raise InputError(
            f"`dpi` must be from {_DPI[0]} to {_DPI[1]}, and the picture at most {_MOST_PIXELS:,} pixels "
            f"wide; got {dpi!r}. For print, 300 is enough."
        )


def _within(size: Any, limits: tuple[float, float]) -> bool:
    return is_number(size) and bool(limits[0] <= size <= limits[1])
