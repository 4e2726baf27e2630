"""`calibrant decide`: net benefit against the threshold, and what of it miscalibration costs."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from typing import Any

from calibrant.cli.certify import samples_of
from calibrant.cli.inputs import load_sketches
from calibrant.cli.output import in_bytes, note, printable, require_ending, shown, written
from calibrant.cli.plot import PICTURES
from calibrant.cli.profile import as_thresholds, rows_by_group
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.plotting.decision_curve import DecisionCurve, decision_curve
from calibrant.plotting.group import Diagrams

__all__ = ["run_decide"]

SCHEMA = "calibrant.decide/1"


def run_decide(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    thresholds: Sequence[str] | None = None,
    theme: str = "light",
    output: str | None = None,
    json: bool = False,
) -> None:
    """Print a table for each group, and draw the curves where a file is named."""
    target = None if output is None else require_ending(output, PICTURES, "a diagram", files)
    settings: dict[str, Any] = {"confidence": measuring.confidence, "seed": measuring.seed}
    if thresholds is not None:
        settings["thresholds"] = as_thresholds(thresholds)
    loaded = load_sketches(files, reading, grouping, measuring)
    groups = rows_by_group(files, loaded, reading, grouping)
    curves: dict[str, DecisionCurve] = {}
    samples = {} if groups else samples_of(loaded)
    for key in loaded.groups():
        name = ", ".join(shown(value) for value in key) or "all rows"
        sample = groups[key].arguments if key in groups else samples[key]
        curves[name] = decision_curve(**sample, **settings)
    if json:
        results = [{"group": name, **curve.to_dict()} for name, curve in curves.items()]
        print(
            json_format.dumps(
                {"schema": SCHEMA, "files": loaded.files, "results": results}, indent=2
            )
        )
    else:
        for name, curve in curves.items():
            print(f"{name}: {curve}\n" if loaded.by else curve)
    if target is not None:
        first = next(iter(curves.values()))
        if target.suffix.lower() == ".html":
            chart = first.chart(theme=theme)
            for curve in list(curves.values())[1:]:
                chart = chart | curve.chart(theme=theme)
            size = written(target, lambda path: chart.save(str(path), inline=True))
        elif len(curves) == 1:
            size = written(target, lambda path: first.save(path, theme=theme))
        else:
            drawn = Diagrams(curves)
            size = written(target, lambda path: drawn.save(path, layout="grid", theme=theme))
        note(f"Wrote {printable(target, 200)} ({in_bytes(size)}).")
