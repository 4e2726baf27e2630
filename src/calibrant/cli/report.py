"""`calibrant report`: one page on everything that was read."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import calibrant as cal
from calibrant.cli.options import Grouping, Measuring, Profiling, Reading, Testing, verb
from calibrant.cli.output import listed, note, open_in_browser, shown, target, write

if TYPE_CHECKING:
    from calibrant.cli._inputs import Samples

__all__ = ["report"]


@verb(
    "calibrant report preds.parquet --by model -o report.html --open",
    "calibrant report preds.csv -o report.md",
)
def report(
    files: list[str],
    reading: Reading,
    grouping: Grouping,
    testing: Testing,
    measuring: Measuring,
    profiling: Profiling,
    title: str | None = None,
    output: str = "report.html",
    open: bool = False,
) -> None:
    """Write one page with everything.

    The page is a single file. It opens offline, and you can mail it.

    Output
    ------
    title : TEXT
        Title of the page.
    output : FILE
        .html, .md or .json. [report.html]
    """
    from calibrant.cli._inputs import CLASSES, Source
    from calibrant.cli.assess import assessed, read_profiled

    source = Source.of(files, reading)
    path = target(output, (".html", ".md", ".json"), "a report", source.all_paths)
    samples = read_profiled(source, grouping, measuring, profiling)
    title = title or f"Calibration of {', '.join(source.names[:3])}"
    columns = samples.columns
    made: Any
    if columns and not (columns.by or grouping.per_file) and _reads_again(samples, profiling):
        weight: dict[str, Any] = {"sample_weight": columns.weight} if columns.weight else {}
        made = cal.report(
            columns.label,
            list(columns.prob),
            data=source.files,
            cluster=columns.cluster,
            confidence=measuring.confidence,
            scale=None if measuring.scale == "probability" else measuring.scale,
            limit=testing.max_groups,
            title=title,
            **reading.options,
            **weight,
        )
    else:
        # Of classes all are assessed, and the worst shown.
        every = len(samples.sketches) if set(samples.by[:1]) & set(CLASSES) else None
        finding: Any = assessed(samples, testing, profiling, every)
        if samples.by:
            if finding.too_few:
                names = listed([shown(group.name) for group in finding.too_few])
                note(f"Left out, with too few rows or clusters: {names}.")
            made = cal.report(finding, title=title, limit=testing.max_groups)
        else:
            made = cal.report(samples.sketches[()], assessment=finding, title=title)
    made = made.made_by(shlex.join(["calibrant", *sys.argv[1:]]))
    write(path, made.save)
    if open:
        open_in_browser(path)


def _reads_again(samples: Samples, profiling: Profiling) -> bool:
    """True where the page has a section on classes, or on pairs of models, that needs the rows."""
    assert samples.columns is not None
    by_class = samples.source.reading.multiclass is not None
    return profiling.profile is None and (
        samples.columns.cluster is None if by_class else len(samples.columns.prob) > 1
    )
