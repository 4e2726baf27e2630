"""`calibrant plot` and `calibrant report`: pictures and pages of what was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.cli.assessing import assessed
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.parts import Given, Part, given, limited, spoken
from calibrant.cli.text import in_bytes, listed, note, printable
from calibrant.cli.writing import require_ending, written
from calibrant.diagrams.binned import binned_diagram
from calibrant.diagrams.cumulative import cumulative_diagram
from calibrant.diagrams.drawable import Diagram
from calibrant.diagrams.group import Diagrams
from calibrant.diagrams.isotonic import isotonic_diagram
from calibrant.diagrams.smooth import ReliabilityDiagram, reliability_diagram
from calibrant.errors import InputError
from calibrant.inference.assessment import Assessment

__all__ = ["run_plot", "run_report"]

PICTURES = (".svg", ".pdf", ".png", ".html")
PAGES = (".html", ".md", ".json")
MOST_ON_ONE_AXIS = 4
MOST_WITH_SLIDER = 3
LONGEST_IN_A_LEGEND = 28
KINDS: Mapping[str, Callable[..., Diagram]] = {
    "smooth": reliability_diagram,
    "binned": binned_diagram,
    "isotonic": isotonic_diagram,
    "cumulative": cumulative_diagram,
}
RESAMPLED = (reliability_diagram, isotonic_diagram)


def run_plot(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    kind: str,
    layout: str | None,
    theme: str,
    output: str,
) -> None:
    """Draw one diagram, or one per group, into a file."""
    target = require_ending(output, PICTURES, "a diagram", files)
    if layout is not None and target.suffix.lower() == ".html":
        raise InputError("an .html picture has all groups on one axis; leave out `--layout`.")
    if measuring.cluster is not None:
        raise InputError(
            "the bands of a diagram take rows to be independent; leave out `--cluster`, and let "
            "`calibrant assess --cluster` say how sure the number is."
        )
    found = given(files, reading, grouping, measuring)
    found = limited(found, grouping.max_groups, measuring.scale)
    with spoken(found.columns.spoken if found.columns else {}):
        named = zip(_short_names(found), found.parts, strict=True)
        diagrams = {name: _diagram(part, kind, measuring) for name, part in named}
    only = next(iter(diagrams.values()))
    if target.suffix.lower() == ".html":
        chart = _chart(diagrams, theme)
        size = written(target, lambda path: chart.save(str(path), inline=True))
    elif len(diagrams) == 1:
        size = written(target, lambda path: only.save(path, theme=theme))
    else:
        chosen = layout or ("overlay" if len(diagrams) <= MOST_ON_ONE_AXIS else "grid")
        size = written(
            target, lambda path: Diagrams(diagrams).save(path, layout=chosen, theme=theme)
        )
    for name, diagram in diagrams.items():
        note(f"{name}: {diagram.label}")
    note(f"Wrote {printable(target, 200)} ({in_bytes(size)}).")


def _chart(diagrams: Mapping[str, Diagram], theme: str) -> Any:
    """The picture that answers to the mouse; a slider and bands only while they can be read."""
    if len(diagrams) == 1:
        return next(iter(diagrams.values())).chart(theme=theme)
    few = len(diagrams) <= MOST_WITH_SLIDER
    smooth = all(isinstance(diagram, ReliabilityDiagram) for diagram in diagrams.values())
    if not few:
        note(
            f"The slider through bandwidths is for up to {MOST_WITH_SLIDER} groups; it is left out."
        )
    plain: dict[str, Any] = {} if few or not smooth else {"band": None}
    return Diagrams(diagrams).chart(theme=theme, slider=few, **plain)


def _short_names(found: Given) -> list[str]:
    """Names that fit into a legend, each of them once."""
    names = [printable(name, LONGEST_IN_A_LEGEND) for name in found.names]
    return names if len(set(names)) == len(names) else found.names


def _diagram(part: Part, kind: str, measuring: Measuring) -> Diagram:
    sketch = part.sketch(measuring.scale)
    drawn = KINDS[kind]
    options: dict[str, Any] = {"confidence": measuring.confidence}
    if drawn in RESAMPLED:
        options["seed"] = measuring.seed
    return drawn(sketch, **options)


def run_report(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    title: str | None,
    output: str,
    command: str,
) -> None:
    """Write the page, or its Markdown or JSON form."""
    target = require_ending(output, PAGES, "a report", files)
    found = given(files, reading, grouping, measuring)
    if found.columns is not None and not grouping.per_file:
        found.columns.hint()
    size = written(target, _page(found, grouping, measuring, title, command))
    opened = " Open it in a browser." if target.suffix.lower() == ".html" else ""
    note(f"Wrote {printable(target, 200)} ({in_bytes(size)}).{opened}")


def _page(
    found: Given, grouping: Grouping, measuring: Measuring, title: str | None, command: str
) -> Callable[[Path], object]:
    from calibrant.data.sketches import Sketches
    from calibrant.reporting.html import report

    clustered = any("cluster" in part.options for part in found.parts)
    limit = grouping.max_groups
    if clustered:  # the page would sum up the other groups as if their rows were independent
        found = limited(found, limit, measuring.scale)
        limit = len(found.parts)
    known = None
    if clustered:
        found, known = _able(found, assessed(found, measuring))
    with spoken(found.columns.spoken if found.columns else {}):
        sketches = [part.sketch(measuring.scale) for part in found.parts]
        keys: list[Any] = [_key(part) or (printable(found.files[0]),) for part in found.parts]
        by = found.by or ["file"]
        keys = [key[0] if len(by) == 1 else key for key in keys]
        made = report(
            Sketches(dict(zip(keys, sketches, strict=True)), by=by),
            title=title
            or f"Calibration of {', '.join(printable(name) for name in found.files[:3])}",
            confidence=measuring.confidence,
            seed=measuring.seed,
            limit=limit,
            assessments=dict(zip(keys, known, strict=True)) if known else None,
            command=command,
        )
    if made.summary.omitted:
        note(
            f"There are {len(sketches):,} groups; the {limit} largest are shown one by one, the others "
            "together. `--max-groups` shows more."
        )
    return made.save


def _able(found: Given, results: Sequence[Assessment | None]) -> tuple[Given, list[Assessment]]:
    """The parts that could be assessed; of the others it is said that they are left out."""
    able = [(part, result) for part, result in zip(found.parts, results, strict=True) if result]
    if not able:
        raise InputError("no group has two clusters or more, which an assessment needs.")
    lost = [n for n, result in zip(found.names, results, strict=True) if result is None]
    if lost:
        note(f"Left out, with too few rows or clusters: {listed(lost)}.")
    return replace(found, parts=[part for part, _ in able]), [result for _, result in able]


def _key(part: Part) -> tuple[Any, ...]:
    return tuple(part.group.values())
