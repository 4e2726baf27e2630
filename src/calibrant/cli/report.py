"""`calibrant report`: one page on everything that was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calibrant.cli.assess import assessed
from calibrant.cli.inputs import load_sketches
from calibrant.cli.output import in_bytes, listed, note, printable, require_ending, shown, written
from calibrant.cli.plot import open_in_browser
from calibrant.cli.profile import with_profile
from calibrant.cli.shared_options import Grouping, Measuring, Profiling, Reading
from calibrant.cli.standard_input import opened
from calibrant.inference.groups import GroupAssessments
from calibrant.io.class_arrays import scan_classes
from calibrant.io.scan_request import CLASS_COLUMN
from calibrant.reporting.report import report

__all__ = ["run_report"]

PAGES = (".html", ".md", ".json")


def run_report(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    title: str | None = None,
    output: str = "report.html",
    command: str = "",
    open_it: bool = False,
    profiling: Profiling | None = None,
) -> None:
    """Write the page, or its Markdown or JSON form."""
    target = require_ending(output, PAGES, "a report", files)
    loaded = load_sketches(files, reading, grouping, measuring)
    if loaded.columns is not None and not grouping.per_file:
        loaded.columns.hint()
    # Of classes all are assessed, and the worst shown.
    each = bool(loaded.by) and loaded.by in CLASS_COLUMN.values()
    everything = replace(grouping, max_groups=len(loaded.groups())) if each else grouping
    finding = assessed(loaded, everything, measuring)
    if profiling is not None and profiling != Profiling():
        finding = with_profile(finding, files, loaded, reading, grouping, profiling)
    named = title or f"Calibration of {', '.join(map(printable, loaded.files[:3]))}"
    if isinstance(finding, GroupAssessments):
        if finding.too_few:
            names = listed([shown(group.name) for group in finding.too_few])
            note(f"Left out, with too few rows or clusters: {names}.")
        page = report(finding, title=named, limit=grouping.max_groups)
    else:
        sketch = loaded.groups()[()]
        page = report(sketch, assessment=finding, title=named)
    chosen = loaded.columns
    if reading.multiclass and chosen and not (chosen.by or chosen.cluster or grouping.per_file):
        classes = scan_classes(
            opened(files), y_true=chosen.label, y_prob=list(chosen.prob), **reading.options
        )
        page = page.with_classes(classes)
    size = written(target, page.made_by(command).save if command else page.save)
    hint = " Open it in a browser." if target.suffix.lower() == ".html" and not open_it else ""
    note(f"Wrote {printable(target, 200)} ({in_bytes(size)}).{hint}")
    if open_it:
        open_in_browser(str(target))
