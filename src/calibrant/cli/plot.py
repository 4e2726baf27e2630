"""`calibrant plot`: reliability diagram in a file."""

from __future__ import annotations

from typing import Any, Literal

from calibrant.cli.options import Grouping, Measuring, Picture, Reading, verb
from calibrant.cli.output import note, open_in_browser, shown, target, write
from calibrant.errors import InputError

__all__ = ["PICTURES", "plot", "save_picture"]

PICTURES = (".svg", ".pdf", ".png")
MOST_ON_ONE_AXIS = 4


@verb(
    "calibrant plot preds.csv -o diagram.svg",
    "calibrant plot preds.parquet --by model --layout grid -o models.png",
    "calibrant plot preds.csv --title 'Test set' --width 3.3 -o paper.pdf",
)
def plot(
    files: list[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    picture: Picture,
    kind: Literal["smooth", "binned", "isotonic", "cumulative", "forest"] = "smooth",
    axes: Literal["auto", "probability", "fit", "logit"] = "auto",
    attributes: bool = False,
    layout: Literal["overlay", "grid"] | None = None,
    output: str = "diagram.svg",
    open: bool = False,
) -> None:
    """Draw the reliability diagram.

    Picture
    -------
    kind : -
        Construction of the curve; forest: each group's error and interval. [smooth]
    axes : -
        0 to 1, as far as the predictions go (fit), or log-odds; auto fits rare events. [auto]
    attributes : -
        Add the lines of weather forecasters: climatology, no skill, and the Brier skill score.
    layout : -
        Several groups on one axis or side by side. [overlay up to 4]

    Output
    ------
    output : FILE
        .svg, .pdf or .png. [diagram.svg]
    """
    from calibrant import plotting
    from calibrant.cli._inputs import Source, read_samples
    from calibrant.cli.assess import assessed

    if measuring.cluster is not None:
        raise InputError(
            "the bands of a diagram take rows to be independent.",
            argument="cluster",
            hint="Leave out `cluster`; `calibrant.assess` takes it into account.",
        )
    source = Source.of(files, reading)
    path = target(output, PICTURES, "a diagram", source.all_paths)
    samples = read_samples(source, grouping, measuring)
    if kind == "forest":
        from calibrant.plotting.forest import forest_plot

        finding: Any = assessed(samples, grouping, measuring)
        diagrams = {"forest": forest_plot(finding if samples.by else {"all rows": finding})}
    else:
        draw = {
            "smooth": plotting.reliability_diagram,
            "binned": plotting.binned_diagram,
            "isotonic": plotting.isotonic_diagram,
            "cumulative": plotting.cumulative_diagram,
        }[kind]
        groups = _largest(samples.sketches, grouping.max_groups)
        diagrams = {
            name: draw(sketch, confidence=measuring.confidence) for name, sketch in groups.items()
        }
    style: dict[str, Any] = {"axes": axes} if kind != "forest" and axes != "auto" else {}
    if attributes:
        style["attributes"] = _skill(groups, kind, measuring)
    save_picture(diagrams, path, picture, layout, **style)
    for name, diagram in diagrams.items():
        note(f"{name}: {diagram.label}")
    if open:
        open_in_browser(path)


def save_picture(
    diagrams: dict[str, Any], path: Any, picture: Picture, layout: str | None = None, **style: Any
) -> None:
    """Write one diagram, or several on one axis or side by side."""
    from calibrant.plotting import Diagrams

    options = {**picture.options, **style}
    if len(diagrams) == 1:
        (only,) = diagrams.values()
        write(path, lambda file: only.save(file, **options))
        return
    few = len(diagrams) <= MOST_ON_ONE_AXIS and "attributes" not in style
    options["layout"] = layout or ("overlay" if few else "grid")
    write(path, lambda file: Diagrams(diagrams).save(file, **options))


def _largest(groups: dict[tuple[Any, ...], Any], limit: int) -> dict[str, Any]:
    """Sketches of the largest groups by name, and of all others together."""
    if list(groups) == [()]:
        return {"all rows": groups[()]}
    sizes = sorted(groups, key=lambda key: -groups[key].n)
    chosen = set(sizes if len(sizes) <= limit + 1 else sizes[:limit])
    named = {shown(key): sketch for key, sketch in groups.items() if key in chosen}
    others = [sketch for key, sketch in groups.items() if key not in chosen]
    if others:
        note(
            f"The {limit} largest groups are shown, {len(others):,} others combined (`--max-groups`)."
        )
        total = others[0]
        for sketch in others[1:]:
            total = total + sketch
        named[f"({len(others):,} others)"] = total
    return named


def _skill(groups: dict[str, Any], kind: str, measuring: Measuring) -> Any:
    """Weather profile of the only group, or of each by name."""
    import calibrant as cal

    if kind not in ("smooth", "binned", "isotonic"):
        raise InputError("`attributes` needs axes of probabilities.", argument="attributes")
    found = {
        name: cal.assess(sketch, profile="weather", confidence=measuring.confidence).profile
        for name, sketch in groups.items()
    }
    return found if len(found) > 1 else next(iter(found.values()))
