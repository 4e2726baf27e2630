"""Panels of several diagrams: all on one axis, or side by side on axes that can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import Function, InputError, Option
from calibrant.plotting.axes import HAPPENED
from calibrant.plotting.axis import Axis
from calibrant.plotting.closer_view import CLOSER, closer_marks
from calibrant.plotting.diagram import FRAME, Diagram, framed, require_looks
from calibrant.plotting.direct_labels import direct_labels
from calibrant.plotting.looks import shortened
from calibrant.plotting.panel import FAINTEST_OF_SEVERAL, Band, Hill, Line, Mark, Panel, Trail
from calibrant.plotting.smooth import ReliabilityDiagram
from calibrant.plotting.smooth_panel import rows_at, traced

__all__ = ["comparable", "overlaid", "side_by_side", "with_bandwidth", "worst_first"]

Floats = NDArray[np.float64]

LONGEST_LABEL = 20
MOST_IN_FULL = 4
"""Of more curves, the legend gives a line to each: what is wrong, and the error without its interval."""
MOST_COLORS = 6
"""Where there are more panels side by side than colours, all have the first one."""
ERROR, FADES = "average error: SmoothECE", "thick: many rows, pale: hardly any"
GHOST = 0.3
"""Width of the line of all rows in small multiples, as that of a curve."""
# From the bottom up.
_ORDER = ("band", "resampled", "steps", "reference", "curve", "values")


def overlaid(diagrams: Mapping[str, Diagram], look: Mapping[str, Any]) -> Panel:
    """One panel: each diagram's bands and curve, and one diagonal beneath them."""
    _require_looks(diagrams.values(), look)
    if look.get("color") is not None and not isinstance(look["color"], Mapping):
        raise InputError(
            "must map names to colours: one would not tell several diagrams apart",
            argument="color",
            seen=look["color"],
            cure="Pass {option}.",
            option=Option("color", {next(iter(diagrams)): look["color"]}),
        )
    plainer = {"ticks": False, "density": None, "reference": "diagonal", **look}
    panels = {
        name: diagram.panel(**{**_looks_of(diagram, name, plainer), "name": name})
        for name, diagram in diagrams.items()
    }
    if not comparable(list(panels.values())):
        raise InputError(
            "diagrams on one axis must show the same quantities; these do not",
            cure=("Draw them side by side with {grid}.", "Save them side by side with {layout}."),
            grid=Function("diagrams.group.Diagrams.plot_grid"),
            layout=Option("layout", "grid"),
        )
    if look.get("attributes"):
        _require_one_rate(panels.values())
    first = _on_common_axes(list(panels.values()))[0]
    names = {
        name: _in_legend(name, diagrams[name], panel, len(panels)) for name, panel in panels.items()
    }
    colors = {k: v for panel in panels.values() for k, v in panel.colors.items()}
    panel = Panel(
        _marks_together(panels),
        first.x,
        first.y,
        legend=names,
        labels=names,
        colors=colors,
        notes=_notes(diagrams.values()),
        finding=" ".join(panel.finding for panel in panels.values() if panel.finding),
    )
    if first.y.label == HAPPENED and not any(isinstance(mark, Hill) for mark in panel.marks):
        panel = replace(panel, y=replace(first.y, low=first.x.low))  # no strip without bars
    if look.get("axes", "auto") == "auto" and first.x.shown is None:
        panel = replace(panel, marks=(*panel.marks, *_closer(panel, diagrams, look)))
    panel = framed(panel, look)
    labels = direct_labels(panel, {name: shortened(name, LONGEST_LABEL) for name in panels})
    return replace(panel, marks=(*panel.marks, *labels))


def _marks_together(panels: Mapping[str, Panel]) -> tuple[Mark, ...]:
    """What all share, once and beneath; above it the marks of each, a kind at a time."""
    beneath: dict[str, Mark] = {}
    above: list[Mark] = []
    for name, panel in panels.items():
        for mark in panel.marks:
            if mark.key in ("diagonal", "skill", "no skill", "climatology"):
                beneath.setdefault(f"{mark.key} {mark.says}", mark)
            elif mark.key == "reference":
                above.append(replace(mark, series=name, ink="series", says=""))
            elif isinstance(mark, Band) and mark.key == "band":
                says = "shaded: uncertainty of each curve"
                above.append(replace(mark, says=says, evidence=_evidence(panel)))
            elif isinstance(mark, Trail) and mark.key == "curve":
                above.append(replace(mark, says="", faintest=FAINTEST_OF_SEVERAL))
            elif mark.key not in ("consistency", CLOSER):
                above.append(replace(mark, says=""))
    above.sort(key=lambda mark: _ORDER.index(mark.key) if mark.key in _ORDER else len(_ORDER))
    return (*beneath.values(), *above)


def _notes(diagrams: Iterable[Diagram]) -> tuple[str, ...]:
    return (ERROR, FADES) if any(isinstance(d, ReliabilityDiagram) for d in diagrams) else ()


def _in_legend(name: str, diagram: Diagram, panel: Panel, number: int) -> str:
    """Who a curve is and what is wrong with it, then its number."""
    full = number <= MOST_IN_FULL
    who, error = shortened(name, 32 if full else 24), diagram.label
    said = f"{who}: {diagram.short_verdict}" if diagram.short_verdict else who
    if not full:
        return f"{said} · {error.removeprefix('average ').split(' (')[0]}"
    return "\n".join([said, ", ".join([error, *panel.notes[3:]])])


def _evidence(panel: Panel) -> Floats | None:
    """How much evidence there is along the curve of a smooth diagram, and so along its band."""
    curves = (mark for mark in panel.marks if isinstance(mark, Trail) and mark.key == "curve")
    return next((curve.evidence for curve in curves), None)


def _closer(panel: Panel, diagrams: Mapping[str, Diagram], look: Mapping[str, Any]) -> list[Mark]:
    """Crowded ends once more, closer, where all are smooth diagrams against predictions."""
    smooth = [each for each in diagrams.values() if isinstance(each, ReliabilityDiagram)]
    if len(smooth) < len(diagrams) or look.get("attributes"):
        return []
    if look.get("against", "prediction") != "prediction":
        return []
    return closer_marks(panel.marks, [rows_at(each) for each in smooth])


def _require_one_rate(panels: Iterable[Panel]) -> None:
    """Lines of skill belong to one event rate: that of models on the same rows."""
    rates = {
        f"{float(mark.y[0]):.9g}"
        for panel in panels
        for mark in panel.marks
        if mark.key == "climatology" and isinstance(mark, Line) and mark.says
    }
    if len(rates) > 1:
        raise InputError(
            "belongs to one event rate; these diagrams have several",
            argument="attributes",
            seen=len(rates),
            cure=("Draw them side by side with {grid}.", "Save them side by side with {layout}."),
            grid=Function("diagrams.group.Diagrams.plot_grid"),
            layout=Option("layout", "grid"),
        )


def side_by_side(
    diagrams: Mapping[str, Diagram],
    look: Mapping[str, Any],
    whole: ReliabilityDiagram | None,
    turns: Mapping[str, int],
) -> list[Panel]:
    """One panel for each diagram, on the same axes where these mean the same; all rows as a grey ghost.

    Each has the colour of its turn, which it has in an overlay of all of them.
    """
    _require_looks(diagrams.values(), look)
    panels = []
    for name, diagram in diagrams.items():
        panel = diagram.panel(**_looks_of(diagram, name, look))
        marks = tuple(mark for mark in panel.marks if mark.key != CLOSER)
        said = diagram.short_verdict
        said = f"{said[:1].upper()}{said[1:]}"
        turn = turns[name] if len(turns) <= MOST_COLORS else 0
        panel = replace(panel, marks=marks, subtitle=said, judged=bool(said), turn=turn)
        if whole is not None:
            panel = _haunted(panel, whole, str(look.get("against", "prediction")))
        panels.append(replace(framed(panel, {**look, "title": None}), title=shortened(name)))
    return _on_common_axes(panels) if comparable(panels) else panels


def _haunted(panel: Panel, whole: ReliabilityDiagram, against: str) -> Panel:
    """The panel with the curve of all rows behind its own."""
    trace = traced(whole, against)
    ghost = Trail(
        key="ghost",
        ink="faint",
        x=trace.x,
        y=trace(whole.regression),
        weight=np.full(trace.x.size, GHOST),
        says="all rows together",
    )
    above = ("curve", "values", "steps")
    at = next((k for k, mark in enumerate(panel.marks) if mark.key in above), len(panel.marks))
    return replace(panel, marks=(*panel.marks[:at], ghost, *panel.marks[at:]))


def worst_first(diagrams: Mapping[str, Diagram]) -> dict[str, Diagram]:
    """Smooth diagrams by their error, the largest first; others as they are."""
    errors = {
        n: d.smooth_ece.value for n, d in diagrams.items() if isinstance(d, ReliabilityDiagram)
    }
    if len(errors) < len(diagrams):
        return dict(diagrams)
    return {name: diagrams[name] for name in sorted(errors, key=lambda name: -errors[name])}


def _looks_of(diagram: Diagram, name: str, look: Mapping[str, Any]) -> dict[str, Any]:
    """The looks that this kind of diagram has; of colours and skill by name, its own."""
    own = {key: value for key, value in look.items() if key in diagram.looks()}
    for key, usual in (("color", None), ("attributes", False)):
        if isinstance(own.get(key), Mapping):
            own[key] = own[key].get(name, usual)
    return own


def _require_looks(diagrams: Iterable[Diagram], look: Mapping[str, Any]) -> None:
    known = set(FRAME).union(*(diagram.looks() for diagram in diagrams))
    require_looks(look, known)


def comparable(panels: Sequence[Panel]) -> bool:
    """Whether the axes of all panels mean the same."""
    return len({(p.x.label, p.x.scale, p.y.label, p.y.scale) for p in panels}) == 1


def _on_common_axes(panels: Sequence[Panel]) -> list[Panel]:
    """The panels with limits that hold all of them."""
    wide, tall = (_common([getattr(panel, side) for panel in panels]) for side in "xy")
    return [replace(panel, x=wide, y=tall) for panel in panels]


def _common(axes: Sequence[Axis]) -> Axis:
    low, high = min(axis.low for axis in axes), max(axis.high for axis in axes)
    parts = [axis.shown for axis in axes if axis.shown is not None]
    shown = None
    if len(parts) == len(axes):
        shown = min(part[0] for part in parts), max(part[1] for part in parts)
    whole = shown == (0.0, 1.0)
    return replace(axes[0], low=low, high=high, shown=None if whole else shown)


def with_bandwidth(
    panel: Panel, here: Sequence[ReliabilityDiagram], own: Sequence[ReliabilityDiagram]
) -> Panel:
    """Say at which bandwidth this position of the slider is, in terms of the numbers' own."""
    solved = all(diagram.at_fixed_point and diagram.smooth_ece.bandwidth > 0.0 for diagram in own)
    factors = [
        f"{new.bandwidth / (old.smooth_ece.bandwidth or old.bandwidth):.2g}"
        for new, old in zip(here, own, strict=True)
    ]
    sigma = "σ*" if solved else "own"
    if len(set(factors)) > 1:  # some are too narrow to be drawn
        note = f"bandwidth: {sigma} × {', '.join(factors)}"
    else:
        each = "" if len(own) == 1 else "each "
        note = f"bandwidth: {each}{sigma}" + ("" if factors[0] == "1" else f" × {factors[0]}")
    if len(own) == 1:
        note += f" = {here[0].bandwidth:.3g}"
    return replace(panel, notes=(*panel.notes, note))
