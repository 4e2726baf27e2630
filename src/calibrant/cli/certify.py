"""`calibrant certify`: the threshold beyond which at most so many are wrong, for each group."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from typing import Any, Literal

import typer

from calibrant.cli.errors import LIMIT_NOT_SHOWN
from calibrant.cli.inputs import Loaded, load_sketches
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.output import note, shown, wrapped
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.decisions.certify import certify
from calibrant.decisions.ranking import require_risk
from calibrant.inference.interval import require_confidence
from calibrant.measures.record import plain

__all__ = ["Sample", "groups_of", "run_certify"]

SCHEMA = "calibrant.certify/1"
Sample = Sketch | Sketches


def run_certify(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    risk: float = 0.1,
    side: Literal["above", "below", "both"] = "above",
    json: bool = False,
) -> None:
    """Print the sentence of every group; the exit code says whether all are certified."""
    require_risk(risk)
    require_confidence(measuring.confidence)
    loaded = load_sketches(files, reading, grouping, measuring)
    if loaded.columns is not None and not grouping.per_file:
        loaded.columns.hint()
    results = {
        name: certify(
            sample,
            risk=risk,
            side=side,
            confidence=measuring.confidence,
            cluster=loaded.cluster if isinstance(sample, Sketches) else None,
            abstained=loaded.abstained.get(name, 0),
        )
        for name, sample in groups_of(loaded).items()
    }
    if json:
        document = {
            "schema": SCHEMA,
            "files": loaded.files,
            "log": loaded.log,
            "results": [
                {"group": _group(loaded, name), **plain(result.to_dict())}
                for name, result in results.items()
            ],
        }
        print(json_format.dumps(document, indent=2))
    else:
        for name, result in results.items():
            start = f"{', '.join(map(shown, name))}: " if name else ""
            print(wrapped(f"{start}{result.sentence}"))
    failed = sum(not result.certified for result in results.values())
    if failed:
        if len(results) > 1:
            note(f"{failed} of {len(results)} groups could not be certified.")
        raise typer.Exit(LIMIT_NOT_SHOWN)


def groups_of(loaded: Loaded) -> dict[tuple[Any, ...], Sample]:
    """What was read, apart by group: a sketch, or where there are clusters one for each of them."""
    sketches = loaded.sketches
    if loaded.cluster is None or not isinstance(sketches, Sketches):
        return dict(loaded.groups())
    if not loaded.by:
        return {(): sketches}
    at = sketches.by.index(loaded.cluster)
    parts: dict[tuple[Any, ...], dict[Any, Sketch]] = {}
    for key, sketch in sketches.items():
        group = (*key[:at], *key[at + 1 :])
        parts.setdefault(group, {})[key[at]] = sketch
    return {group: Sketches(own, by=loaded.cluster) for group, own in parts.items()}


def _group(loaded: Loaded, name: tuple[Any, ...]) -> dict[str, Any]:
    return {column: plain(value) for column, value in zip(loaded.by, name, strict=False)}
