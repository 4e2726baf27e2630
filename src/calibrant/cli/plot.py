"""`calibrant plot`: reliability diagram in a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from calibrant.cli.options import Grouping, Measuring, Picture, Reading, Testing, verb
from calibrant.cli.output import note, open_in_browser, shown, target, write
from calibrant.errors import InputError

__all__ = ["PICTURES", "plot", "save_picture"]

PICTURES = (".svg", ".pdf", ".png")
Layout = Literal["overlay", "grid", "forest"]


@verb(
    "calibrant plot preds.csv -o diagram.svg",
    "calibrant plot preds.parquet --by model --layout grid -o models.png",
    "calibrant plot preds.csv --title 'Test set' --width 3.3 -o paper.pdf",
)
def plot(
    files: list[str],
    reading: Reading,
    grouping: Grouping,
    testing: Testing,
    measuring: Measuring,
    picture: Picture,
    kind: Literal["smooth", "binned", "isotonic", "cumulative", "forest"] = "smooth",
    attributes: bool = False,
    layout: Layout | None = None,
    output: str = "diagram.svg",
    open: bool = False,
) -> None:
    """Draw the reliability diagram.

    Picture
    -------
    kind : -
        Construction of the curve; forest: each group's error and interval. [smooth]
    attributes : -
        Add the lines of weather forecasters: climatology and no skill.
    layout : -
        Several groups: on one axis, side by side, or the worst beside a forest plot of all.
        [overlay up to 4, grid up to 9]

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
    finding: Any = assessed(samples, testing) if samples.by or kind == "forest" else None
    if kind == "forest":
        from calibrant.plotting.forest import forest_plot

        diagrams = {"forest": forest_plot(finding if samples.by else {"all rows": finding})}
    else:
        kinds: dict[str, Callable[..., Any]] = {
            "smooth": plotting.reliability_diagram,
            "binned": plotting.binned_diagram,
            "isotonic": plotting.isotonic_diagram,
            "cumulative": plotting.cumulative_diagram,
        }
        groups = {"all rows": samples.sketches[()]} if finding is None else finding.sketches
        options: dict[str, Any] = {"confidence": measuring.confidence}
        if attributes:
            if kind == "cumulative":
                raise InputError("`attributes` needs axes of probabilities.")
            options["attributes"] = True
            layout = layout or "grid"
        diagrams = {shown(key): kinds[kind](one, **options) for key, one in groups.items()}
    save_picture(diagrams, path, picture, layout)
    for name, diagram in diagrams.items():
        note(f"{name}: {diagram.label}")
    if open:
        open_in_browser(path)


def save_picture(
    diagrams: dict[str, Any], path: Any, picture: Picture, layout: Layout | None = None
) -> None:
    """Write one diagram, or several in one picture."""
    from calibrant.plotting import Diagrams

    options: dict[str, Any] = dict(picture.options)
    if len(diagrams) == 1:
        (only,) = diagrams.values()
        write(path, lambda file: only.save(file, **options))
        return
    write(path, lambda file: Diagrams(diagrams).save(file, layout=layout, **options))
