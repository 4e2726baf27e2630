"""Text for the screen: characters that no font has become the mark for such ones, and nothing warns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from calibrant._optional import require
from calibrant.plotting.axis import Axis
from calibrant.plotting.panel import Mark, Panel, Words

__all__ = ["on_screen", "readable"]

MISSING = "\ufffd"


def readable(panel: Panel) -> Panel:
    """The panel with every text as the fonts of matplotlib can show it.

    A saved file keeps the characters, for whoever has a font with them.
    """
    return replace(
        panel,
        marks=tuple(_mark(mark) for mark in panel.marks),
        x=_axis(panel.x),
        y=_axis(panel.y),
        notes=tuple(map(on_screen, panel.notes)),
        legend=_values(panel.legend, on_screen),
        labels=_values(panel.labels, on_screen),
        title=on_screen(panel.title),
        subtitle=on_screen(panel.subtitle),
    )


def on_screen(text: str) -> str:
    r"""The text with characters that no font has replaced.

    Examples
    --------
    >>> on_screen("error 0.1 ± 0.02"), on_screen("bell \a")
    ('error 0.1 ± 0.02', 'bell �')
    """
    if text.isascii() and text.isprintable():
        return text
    known = _known()
    return "".join(c if ord(c) in known or c == "\n" else MISSING for c in text)


def _known() -> set[int]:
    """The characters of the fonts that matplotlib is set to use."""
    manager = require("matplotlib.font_manager", caller="plot")
    known: set[int] = set()
    for family in manager.FontProperties().get_family():
        path = manager.findfont(manager.FontProperties(family=[family]))
        known |= set(manager.get_font(path).get_charmap())
    return {code for code in known if code >= ord(" ")}


def _values(texts: Mapping[str, str], change: Callable[[str], str]) -> dict[str, str]:
    return {key: change(text) for key, text in texts.items()}


def _axis(axis: Axis) -> Axis:
    return replace(axis, label=on_screen(axis.label), names=tuple(map(on_screen, axis.names)))


def _mark(mark: Mark) -> Mark:
    changes: dict[str, Any] = {"says": on_screen(mark.says)}
    if isinstance(mark, Words):
        changes["texts"] = tuple(map(on_screen, mark.texts))
    return replace(mark, **changes)
