"""`calibrant plot`: the reliability diagram of what was read, in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from calibrant.cli.assess import assessed
from calibrant.cli.inputs import Loaded, load_sketches
from calibrant.cli.output import in_bytes, note, printable, require_ending, shown, written
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import Function, InputError, Option
from calibrant.inference.assess import assess
from calibrant.inference.assessment import Assessment
from calibrant.plotting.binned import binned_diagram
from calibrant.plotting.cumulative import cumulative_diagram
from calibrant.plotting.diagram import Diagram
from calibrant.plotting.forest import forest_plot
from calibrant.plotting.group import Diagrams
from calibrant.plotting.isotonic import isotonic_diagram
from calibrant.plotting.smooth import ReliabilityDiagram, reliability_diagram

__all__ = ["open_in_browser", "run_plot"]

PICTURES = (".svg", ".pdf", ".png", ".html")
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
    kind: str = "smooth",
    layout: str | None = None,
    theme: str = "light",
    output: str = "diagram.svg",
    open_it: bool = False,
    axes: str = "auto",
    attributes: bool = False,
) -> None:
    """Draw one diagram, or one per group, into a file."""
    target = require_ending(output, PICTURES, "a diagram", files)
    if layout is not None and target.suffix.lower() == ".html":
        raise InputError(
            "an .html picture has all groups on one axis",
            cure="Leave out {layout}.",
            layout=Option("layout"),
        )
    if measuring.cluster is not None:
        raise InputError(
            "the bands of a diagram take rows to be independent",
            cure="Leave out {cluster}; {assess} with it says how sure the number is.",
            cluster=Option("cluster"),
            assess=Function("assess"),
        )
    loaded = load_sketches(files, reading, grouping, measuring)
    groups: dict[str, Sketch] = {}
    if kind == "forest":
        diagrams: dict[str, Diagram] = {"forest": _forest(loaded, grouping, measuring)}
    else:
        groups = _largest(loaded, grouping.max_groups)
        diagrams = {name: _diagram(sketch, kind, measuring) for name, sketch in groups.items()}
    only = next(iter(diagrams.values()))
    look: dict[str, Any] = {"axes": axes} if "axes" in only.looks() else {}
    if attributes:
        look["attributes"] = _skill(groups, only, kind, measuring)
    if target.suffix.lower() == ".html":
        chart = _chart(diagrams, theme, look)
        size = written(target, lambda path: chart.save(str(path), inline=True))
    elif len(diagrams) == 1:
        size = written(target, lambda path: only.save(path, theme=theme, **look))
    else:
        few = len(diagrams) <= MOST_ON_ONE_AXIS and not attributes
        chosen = layout or ("overlay" if few else "grid")
        drawn = Diagrams(diagrams, whole=_whole(groups) if chosen == "grid" else None)
        size = written(target, lambda path: drawn.save(path, layout=chosen, theme=theme, **look))
    for name, diagram in diagrams.items():
        note(f"{name}: {diagram.label}")
    note(f"Wrote {printable(target, 200)} ({in_bytes(size)}).")
    if open_it:
        open_in_browser(str(target))


def open_in_browser(path: str) -> None:
    """Show a file that was written, as a click on it would."""
    import webbrowser
    from pathlib import Path

    if not webbrowser.open(Path(path).resolve().as_uri()):
        note("There is no browser to open it with.")


def _largest(loaded: Loaded, limit: int) -> dict[str, Sketch]:
    """The sketches of the largest groups by name, and of all others together."""
    groups = loaded.groups()
    if not loaded.by:
        return {"all rows": groups[()]}
    others: list[Sketch] = []
    if len(groups) > limit + 1:
        largest = set(sorted(groups, key=lambda key: -groups[key].n)[:limit])
        others = [sketch for key, sketch in groups.items() if key not in largest]
        note(
            f"There are {len(groups):,} groups. The {limit} largest are shown; the rest are combined. "
            "`--max-groups` shows more."
        )
        groups = {key: sketch for key, sketch in groups.items() if key in largest}
    full = [", ".join(shown(value) for value in key) for key in groups]
    names = [printable(name, LONGEST_IN_A_LEGEND) for name in full]
    named = dict(
        zip(names if len(set(names)) == len(names) else full, groups.values(), strict=True)
    )
    if others:
        total = Sketches(dict(enumerate(others)), by="place").total()
        named[f"({len(others):,} others)"] = total
    return named


def _forest(loaded: Loaded, grouping: Grouping, measuring: Measuring) -> Diagram:
    """The error of every group, with its interval."""
    finding = assessed(loaded, grouping, measuring)
    if isinstance(finding, Assessment):
        return forest_plot({"all rows": finding})
    return forest_plot(finding)


def _whole(groups: Mapping[str, Sketch]) -> ReliabilityDiagram:
    """All rows together, for the grey line behind each group."""
    total = Sketches(dict(enumerate(groups.values())), by="place").total()
    return reliability_diagram(total, resamples=0)


def _skill(
    groups: Mapping[str, Sketch], diagram: Diagram, kind: str, measuring: Measuring
) -> dict[str, Any] | Any:
    """What the weather profile finds: of the only group, or of each by name."""
    if "attributes" not in diagram.looks():
        raise InputError(
            "needs axes of probabilities and frequencies",
            argument="attributes",
            seen=kind,
            cure="Leave it out, or draw another {kind}.",
            kind=Option("kind"),
        )
    settings: dict[str, Any] = {"confidence": measuring.confidence, "seed": measuring.seed}
    found = {
        name: assess(sketch, profile="weather", **settings).profile
        for name, sketch in groups.items()
    }
    return next(iter(found.values())) if len(found) == 1 else found


def _chart(diagrams: Mapping[str, Diagram], theme: str, look: Mapping[str, Any]) -> Any:
    """The picture that answers to the mouse; a slider and bands only while they can be read."""
    if len(diagrams) == 1:
        return next(iter(diagrams.values())).chart(theme=theme, **look)
    few = len(diagrams) <= MOST_WITH_SLIDER
    smooth = all(isinstance(diagram, ReliabilityDiagram) for diagram in diagrams.values())
    if not few:
        note(
            f"The slider through bandwidths is for up to {MOST_WITH_SLIDER} groups; it is left out."
        )
    plain: dict[str, Any] = {} if few or not smooth else {"band": None}
    return Diagrams(diagrams).chart(theme=theme, slider=few, **plain, **look)


def _diagram(sketch: Sketch, kind: str, measuring: Measuring) -> Diagram:
    draw = KINDS[kind]
    options: dict[str, Any] = {"confidence": measuring.confidence}
    if draw in RESAMPLED:
        options["seed"] = measuring.seed
    return draw(sketch, **options)
