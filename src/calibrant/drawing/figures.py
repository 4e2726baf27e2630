"""Matplotlib figures to draw on, and files written from them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._files import replaced_when_whole
from calibrant._optional import require
from calibrant.drawing.themes import Theme
from calibrant.errors import InputError

__all__ = ["new_axes", "new_figure", "save"]

_FORMATS = ("svg", "pdf", "png")


def new_axes(rows: int = 1, columns: int = 1, *, caller: str, theme: Theme | None = None) -> Any:
    """Axes in a new pyplot figure, so that notebooks and scripts show it as any other.

    Without a theme they look as the user's own settings have it.
    """
    pyplot = require("matplotlib.pyplot", caller=caller)
    size = (1.0 + 3.4 * columns, 0.9 + 3.4 * rows)
    figure, axes = pyplot.subplots(
        rows,
        columns,
        figsize=size,
        squeeze=False,
        layout="constrained",
    )
    for ax in axes.flat:
        ax.set_box_aspect(1)
        if theme is not None:
            _dress(ax, theme, 10.0)
    if theme is not None:
        figure.set_facecolor(theme.paper)
    return axes


def new_figure(
    rows: int = 1, columns: int = 1, *, theme: Theme, width: float, caller: str
) -> tuple[Any, Any]:
    """Build a figure outside pyplot, dressed in a theme, `width` inches wide."""
    figures = require("matplotlib.figure", caller=caller)
    panel = width / columns
    figure = figures.Figure(
        figsize=(width, rows * panel), layout="constrained", facecolor=theme.paper
    )
    axes = figure.subplots(rows, columns, squeeze=False)
    size = float(np.clip(2.55 * panel, 6.0, 26.0))
    for ax in axes.flat:
        ax.set_box_aspect(1)
        _dress(ax, theme, size)
    return figure, axes


def _dress(ax: Any, theme: Theme, size: float) -> None:
    ax.set_facecolor(theme.paper)
    ax.tick_params(
        colors=theme.ink,
        labelsize=size * 0.9,
        length=size * 0.3,
        width=size * 0.07,
        color=theme.neutral,
    )
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(theme.neutral)
        spine.set_linewidth(size * 0.07)
    for label in (ax.xaxis.label, ax.yaxis.label, ax.title):
        label.set_color(theme.ink)
        label.set_fontsize(size)


@contextmanager
def _reproducible() -> Iterator[None]:
    """Text stays text, and nothing in the file depends on the clock or on chance."""
    matplotlib = require("matplotlib", caller="save")
    settings = {"svg.fonttype": "none", "svg.hashsalt": "calibrant", "pdf.fonttype": 42}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # Text stays in the file, for whoever has a font with these characters.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield


def save(figure: Any, path: str | Path, *, dpi: int = 200) -> Path:
    """Write a figure as SVG, PDF or PNG: the same figure gives the same bytes."""
    if not isinstance(path, str | PathLike):
        raise InputError(f"`path` must be the name of a file; got {path!r}.")
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    if kind not in _FORMATS:
        raise InputError(
            f"a picture is saved as .svg, .pdf or .png; got {target.name!r}. "
            "Give the file one of these endings."
        )
    metadata: Any = {
        "svg": {"Date": None, "Creator": "calibrant"},
        "pdf": {"CreationDate": None, "Creator": "calibrant", "Producer": "calibrant"},
        "png": {"Software": "calibrant"},
    }[kind]
    with _reproducible(), replaced_when_whole(target) as file:
        figure.savefig(file, format=kind, dpi=dpi, metadata=metadata)
    return target
