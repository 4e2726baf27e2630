"""The frame of a picture: titles, labels, limits and legend around its axes, laid out in inches."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number, require_number
from calibrant._files import write_whole
from calibrant._optional import require
from calibrant.errors import InputError, show_value
from calibrant.plotting.artists import STRIP, display_name
from calibrant.plotting.neighborhoods import SHORT_SPAN
from calibrant.plotting.themes import Theme

Floats = NDArray[np.float64]

PANEL, SMALL_PANEL = 3.5, 2.5
"""Inches of a side of square axes, alone and among several."""
LEFT, RIGHT, ABOVE, BELOW, MARGIN = 0.72, 0.25, 0.14, 0.56, 0.14
"""Inches around axes, for ticks and labels, and at the edge of the figure."""
LINE = 0.2
"""Inches of a line of text, and of a name along an axis."""
NAME = 0.34
TICK = 0.4
"""Inches of the label of a tick with its distance."""
FONT, SMALL, NOTE_FONT = 10.0, 9.0, 8.0
KEY = 0.4
"""Inches of a key of the legend."""
CHARACTER = 0.0082
"""Inches of an average character, for each point of its size."""
LONGEST_WORD = 14
"""Letters of the longest word of a note: "underconfident"."""
LARGEST_FIGURE = 100.0
ROWS_SHOWN, ERROR_SHOWN = 0.995, 0.99
"""Shares of the rows and of the error that shortened axes must hold: the rest would be invisible."""
HEIGHT_SHOWN = 0.975
"""Share of the rows whose observed frequency shortened axes must hold: the last ones vary too much."""
FRAMES = ("title", "subtitle", "xlabel", "ylabel", "xlim", "ylim", "legend")
"""Texts, limits and legend of a new figure that may be asked for."""
UNIT = (-0.02, 1.02)
"""Limits of probabilities."""
PREDICTED, OBSERVED = "Predicted probability", "Observed frequency"
DISTRIBUTION = "Distribution of predictions"


@dataclass(frozen=True)
class Frame:
    """Axes, legend and titles around the artists of a diagram.

    Attributes
    ----------
    title, subtitle : str
        The finding in one line, and the number with its interval.
    xlabel, ylabel : str
    xlim, ylim : pair of float
    legend : mapping of str to str
        Texts, by the keys of the artists that they explain, joined by "+"; at most three.
    muted : bool
        Whether the finding is that nothing was found.
    square : bool
        Both axes have the same unit.
    names : tuple of str
        Labels along the vertical axis, at 0, 1, 2, ...
    notes : tuple of str
        Texts inside the axes above the lines of the names, which need room.
    """

    title: str
    xlabel: str
    ylabel: str
    subtitle: str = ""
    xlim: tuple[float, float] = UNIT
    ylim: tuple[float, float] = UNIT
    legend: Mapping[str, str] = field(default_factory=dict)
    muted: bool = False
    square: bool = False
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[float, float]:
        """Ends of the horizontal axis, without the margin of axes of probabilities."""
        margin = 0.02 / 1.04 * (self.xlim[1] - self.xlim[0])
        return self.xlim[0] + margin, self.xlim[1] - margin

    @property
    def aspect(self) -> float:
        """Height of the axes over their width."""
        if not self.square:
            return 0.9
        return (self.ylim[1] - self.ylim[0]) / (self.xlim[1] - self.xlim[0])


def framed(frame: Frame, asked: Mapping[str, Any]) -> Frame:
    """The frame with the texts and limits that were asked for."""
    changes: dict[str, Any] = {
        key: display_name(value, 120) if isinstance(value, str) else value
        for key, value in asked.items()
    }
    if changes.pop("legend", None) is False:
        changes["legend"] = {}
    if "title" in changes:
        changes["muted"] = False
    if "xlim" in changes or "ylim" in changes:
        changes["square"] = False
    return replace(frame, **changes)


def probability_limits(
    p: Floats, weight: Floats, x: Floats, y: Floats, error: Floats
) -> tuple[float, float]:
    """Ends of axes of probabilities: 0 and 1, or nearer where the rest holds hardly rows and no error.

    Parameters
    ----------
    p, weight : float64[k]
        Predictions and their weight.
    x, y, error : float64[m]
        Points of what is drawn, and the share of the error at each.
    """
    known = np.isfinite(x) & np.isfinite(y)
    x, y, error = x[known], y[known], error[known]
    for flipped in (False, True):
        if flipped:
            p, x, y = 1.0 - p, 1.0 - x, 1.0 - y
        order = np.argsort(p)
        passed = np.cumsum(weight[order])
        shares = np.array([ROWS_SHOWN, HEIGHT_SHOWN]) * passed[-1]
        rows, most = p[order][np.searchsorted(passed, shares).clip(0, p.size - 1)].tolist()
        turn = np.argsort(x)
        sums = np.cumsum(error[turn])
        reach = rows
        if sums.size and sums[-1] > 0.0:
            reach = max(reach, float(x[turn][np.searchsorted(sums, ERROR_SHOWN * sums[-1])]))
        inside = x <= most
        reach = max(reach, float(np.max(y[inside], initial=1e-6)))
        if reach < SHORT_SPAN:
            # The next number of one digit, or of two that end in 5 where it starts with 1.
            power = 10.0 ** np.floor(np.log10(reach))
            power *= 0.5 if reach < 2.0 * power else 1.0
            end = float(f"{power * np.ceil(reach / power - 1e-9):.3g}")
            return (1.0 - end, 1.0) if flipped else (0.0, end)
    return _ends_of_short_range(1.0 - p, 1.0 - y)


def _ends_of_short_range(p: Floats, y: Floats) -> tuple[float, float]:
    """Multiples of a twentieth around predictions in one short range, and around what is drawn of them."""
    low, high = float(p.min()), float(p.max())
    if high - low >= SHORT_SPAN:
        return 0.0, 1.0
    low, high = float(np.min(y, initial=low)), float(np.max(y, initial=high))
    low, high = np.floor(20.0 * low - 0.4) / 20.0, np.ceil(20.0 * high + 0.4) / 20.0
    return (float(low), float(high)) if high - low <= 2.0 * SHORT_SPAN else (0.0, 1.0)


def probability_frame(
    limits: tuple[float, float], legend: Mapping[str, str], **fields: Any
) -> Frame:
    """Square axes of observed frequency against predicted probability, with a strip for the histogram."""
    low, high = limits
    span = high - low
    if low <= 0.0:
        end = f"ends at {high:g}"
    else:
        end = f"starts at {low:g}" if high >= 1.0 else f"from {low:g} to {high:g}"
    settings: dict[str, Any] = {
        "xlabel": PREDICTED if span >= 1.0 else f"{PREDICTED} (axis {end})",
        "ylabel": OBSERVED,
        "xlim": (low - 0.02 * span, high + 0.02 * span),
        "ylim": (low + (STRIP[0] - 0.01) * span, high + 0.02 * span),
        "legend": {**legend, "histogram": legend.get("histogram", DISTRIBUTION)},
        "square": True,
    }
    return Frame(**{**settings, **fields})


def legend_of(
    keys: str,
    confidence: float,
    evidence: str = "",
    text: str = "This model",
    where: str = "pointwise",
) -> dict[str, str]:
    """Texts of the model's artists and of the diagonal's."""
    share = f"{100 * confidence:g}%"
    return {
        keys: f"{text}, {share} confidence {evidence} (pointwise)" if evidence else text,
        "diagonal+consistency_band": f"Perfect calibration, {share} consistency band ({where})",
    }


@dataclass(frozen=True, eq=False)
class Layout:
    """A new figure with axes, and room for titles and a legend.

    Attributes
    ----------
    figure
        matplotlib's.
    panels : list of (axes, Frame)
    legend : mapping of str to str
        Texts by the keys of artists, in lines that fit.
    legend_title : str
        Above them.
    legend_at : pair of float
        Upper left corner of the legend, in fractions of the figure.
    """

    figure: Any
    panels: list[tuple[Any, Frame]]
    legend: Mapping[str, str]
    legend_title: str
    legend_at: tuple[float, float]


def lay_out(
    frames: Sequence[Frame],
    theme: Theme,
    *,
    names: Sequence[str] = (),
    columns: int = 1,
    legend: Mapping[str, str] = MappingProxyType({}),
    legend_title: str = "",
    title: str = "",
    figsize: tuple[float, float | None] | None = None,
    pyplot: bool = False,
) -> Layout:
    """Axes for frames, side by side in rows: as large as usual, or as large as fit a figure of this size.

    Parameters
    ----------
    frames : sequence of Frame
        One for each of the axes.
    theme : Theme
        Colours.
    names : sequence of str
        Above the title of each, in place of it.
    columns : int
        Axes in a row.
    legend, legend_title
        Texts of the legend, below everything.
    title : str
        Above everything.
    figsize : pair, optional
        Inches; the height may be None.
    pyplot : bool
        Whether pyplot shows the figure.
    """
    rows = -(-len(frames) // columns)
    several = len(frames) > 1
    first = frames[0]
    left = LEFT - 0.12 * several + 0.2 * (not first.square) + _names_width(frames)
    if first.square:
        longest = max(len(f"{tick:g}") for one in frames for tick in _ticks(one))
        left += CHARACTER * SMALL * max(longest - 3, 0)
    side = SMALL_PANEL if several and not first.names else PANEL
    width, height = (None, None) if figsize is None else _inches(figsize)
    if width is not None:
        side = max(width / columns - left - RIGHT, 0.4)
    texts = [
        _lines(frame, name, left + side)
        for frame, name in zip(frames, names or [""] * len(frames), strict=True)
    ]
    above = ABOVE + LINE * max(len(lines) for lines in texts)
    width = columns * (left + side + RIGHT) if width is None else width
    room = max(int((width - 2.0 * MARGIN - KEY) / (0.93 * CHARACTER * SMALL)), 12)
    wrapped = {key: "\n".join(_wrapped(text, room)) for key, text in legend.items()}
    lines_below = [*wrapped.values(), legend_title] if legend and legend_title else wrapped.values()
    below = LINE * sum(text.count("\n") + 1 for text in lines_below) + 0.1 * bool(legend)
    head = 0.32 if title else 0.0
    tall = max(_names_height(one, side) if one.names else side * one.aspect for one in frames)
    # Labels that are the same everywhere stand at the edge of the grid.
    same = several and all(
        (one.xlabel, one.ylabel) == (first.xlabel, first.ylabel) for one in frames
    )
    between = BELOW - LINE * same
    around = head + (rows - 1) * between + BELOW + below
    if height is not None:
        tall = max((height - around) / rows - above, 0.4)
        if first.square:
            side = min(side, tall / first.aspect)
            tall = side * first.aspect
    else:
        height = around + rows * (above + tall)
    home = require("matplotlib.pyplot" if pyplot else "matplotlib.figure", caller="plot")
    new = home.figure if pyplot else home.Figure
    figure = new(figsize=(width, height), facecolor=theme.paper)
    layout = Layout(figure, [], wrapped, legend_title, (MARGIN / width, below / height))

    def write_line(x: float, y: float, text: str, size: float, color: str, weight: str) -> None:
        line = figure.text(
            x / width, y / height, text, fontsize=size, color=color, fontweight=weight
        )
        line.set_parse_math(False)

    if title:
        write_line(MARGIN, height - 0.27, title, FONT + 1.0, theme.ink, "bold")
    for k, (frame, lines) in enumerate(zip(frames, texts, strict=True)):
        row, column = divmod(k, columns)
        x = column * (left + side + RIGHT)
        top = height - head - row * (above + tall + between) - above
        if same and column:
            frame = replace(frame, ylabel="")
        if same and k + columns < len(frames):
            frame = replace(frame, xlabel="")
        own = min(tall, side * frame.aspect) if frame.square else tall
        box = ((x + left) / width, (top - own) / height, side / width, own / height)
        layout.panels.append((figure.add_axes(box), frame))
        _dress(layout.panels[-1][0], frame, theme, side)
        for depth, (text, weight, muted) in enumerate(lines):
            y = top + above - 0.1 - LINE * (depth + 0.8)
            size = FONT if weight == "bold" else SMALL
            write_line(x + MARGIN, y, text, size, theme.muted if muted else theme.ink, weight)
    return layout


def _names_width(frames: Sequence[Frame]) -> float:
    """Inches of the longest name along an axis."""
    lengths = [len(line) for frame in frames for name in frame.names for line in name.splitlines()]
    return 0.85 * CHARACTER * SMALL * max(lengths, default=0)


def _names_height(frame: Frame, side: float) -> float:
    """Inches of the names along an axis, and of the notes above their lines."""
    lines = max((note_in(note, side).count("\n") for note in frame.notes), default=0)
    return (NAME + NOTE_FONT * 1.3 / 72.0 * lines) * len(frame.names) + 0.1


def note_in(text: str, inches: float) -> str:
    """A note in lines that fit axes of this width."""
    return "\n".join(_wrapped(text, max(int(inches / (0.9 * CHARACTER * NOTE_FONT)), LONGEST_WORD)))


def _lines(frame: Frame, name: str, inches: float) -> list[tuple[str, str, bool]]:
    """Lines above axes: text, its weight, and whether it is muted."""
    room = max(int((inches + RIGHT - MARGIN) / (1.04 * CHARACTER * FONT)), 12)
    small = int(1.04 * room * FONT / SMALL)
    if name:
        lines = [(line, "bold", False) for line in _wrapped(name, room)]
        lines += [(line, "normal", True) for line in _wrapped(frame.title, small)]
    else:
        lines = [(line, "bold", frame.muted) for line in _wrapped(frame.title, room)]
    subtitle = _wrapped(frame.subtitle, int(1.1 * small))
    return lines + [(line, "normal", True) for line in subtitle]


def _wrapped(text: str, room: int) -> list[str]:
    """Lines of at most so many characters, not broken at an equals sign."""
    lines = [
        line for part in text.splitlines() for line in wrap(part.replace(" = ", "\0=\0"), room)
    ]
    return [line.replace("\0", " ") for line in lines]


def _inches(figsize: Any) -> tuple[float | None, float | None]:
    """Width and height of a figure, of which either may be None."""
    sides = list(figsize) if isinstance(figsize, Iterable) else []
    if len(sides) != 2 or not all(
        side is None or (is_number(side) and 1.0 <= side <= LARGEST_FIGURE) for side in sides
    ):
        raise InputError(
            f"`figsize` must be two numbers of inches, 1 to 100; it is {show_value(figsize)}.",
            argument="figsize",
        )
    return sides[0], sides[1]


def _dress(ax: Any, frame: Frame, theme: Theme, side: float) -> None:
    """Labels, ticks, limits and spines of axes of our own, so many inches wide."""
    ax.set_facecolor(theme.paper)
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(theme.reference)
        spine.set_linewidth(0.8)
    ax.tick_params(colors=theme.ink, color=theme.reference, labelsize=SMALL, length=3, width=0.8)
    ax.set_xlabel(frame.xlabel, fontsize=FONT, color=theme.ink)
    ax.set_ylabel(frame.ylabel, fontsize=FONT, color=theme.ink)
    for text in (ax.xaxis.label, ax.yaxis.label):
        text.set_parse_math(False)
    if frame.names:
        set_names(ax, frame.names)
    ax.set_xticks(_ticks(frame, side))
    if frame.square:
        ax.set_yticks(_ticks(frame, side))


def _ticks(frame: Frame, side: float = PANEL) -> Floats:
    """Ticks with room for their labels on an axis of so many inches."""
    most = min(max(int(side / TICK), 2), 6)
    locator = require("matplotlib.ticker", caller="plot").MaxNLocator(most, steps=[1, 2, 5, 10])
    low, high = frame.xlim
    return np.array([tick for tick in locator.tick_values(low, high) if low <= tick <= high])


def set_names(ax: Any, names: Sequence[str]) -> None:
    """Names along the vertical axis, as they are: no mathematics in them."""
    ax.set_yticks(range(len(names)), labels=names)
    for text in ax.get_yticklabels():
        text.set_parse_math(False)


def write_legend(layout: Layout, artists_of: Mapping[str, list[Any]], theme: Theme) -> None:
    """Legend below the axes: keys of the artists, each with its text."""
    handles, texts = [], []
    for key, text in layout.legend.items():
        keys = tuple(_key(artists_of[one][0]) for one in key.split("+") if artists_of.get(one))
        if keys:
            handles.append(keys)
            texts.append(text)
    if not handles:
        return
    from matplotlib.legend_handler import HandlerTuple

    drawn = layout.figure.legend(
        handles,
        texts,
        loc="upper left",
        bbox_to_anchor=layout.legend_at,
        frameon=False,
        fontsize=SMALL,
        labelcolor=theme.ink,
        borderaxespad=0.0,
        borderpad=0.0,
        labelspacing=0.45,
        title=layout.legend_title or None,
        title_fontsize=SMALL,
        alignment="left",
        handler_map={tuple: HandlerTuple(ndivide=1)},
    )
    drawn.get_title().set_color(theme.ink)
    for text in drawn.get_texts():
        text.set_parse_math(False)


def _key(artist: Any) -> Any:
    """The artist, or of a line of many widths one of a single width."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    if isinstance(artist, LineCollection) and np.size(artist.get_linewidth()) > 1:
        return Line2D([], [], color=artist.get_color()[0], linewidth=1.8)
    return artist


@contextmanager
def _reproducible() -> Iterator[None]:
    """Text stays text, and nothing in a file depends on the clock or on chance."""
    import matplotlib

    settings = {"svg.fonttype": "none", "svg.hashsalt": "calibrant", "pdf.fonttype": 42}
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # Text stays in the file, for whoever has a font with these characters.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        yield


METADATA: Mapping[str, Any] = {
    "svg": {"Date": None, "Creator": "calibrant"},
    "pdf": {"CreationDate": None, "Creator": "calibrant", "Producer": "calibrant"},
    "png": {"Software": "calibrant"},
}


def write(path: str | PathLike[str], make: Callable[[], Any], dpi: int) -> Path:
    """A figure as a file: whole or not at all, the same bytes for the same figure."""
    kind = Path(path).suffix.lstrip(".").lower() if isinstance(path, str | PathLike) else ""
    if kind not in METADATA:
        raise InputError(
            f"`path` must be a file name that ends in .svg, .pdf or .png; it is {show_value(path)}.",
            argument="path",
        )
    require_number("dpi", dpi, 0.0, 2400.0)
    buffer = io.BytesIO()
    with _reproducible():
        make().savefig(buffer, format=kind, dpi=dpi, metadata=METADATA[kind])
    return write_whole(Path(path), buffer.getvalue())


def svg_of(figure: Any) -> str:
    """A figure as SVG text, to stand in a page."""
    buffer = io.StringIO()
    with _reproducible():
        figure.savefig(
            buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    text = buffer.getvalue()
    # A page holds several pictures: no names of groups that would clash.
    return re.sub(r'<g id="[^"]*">', "<g>", text[text.index("<svg") :])
