"""`calibrant certify`: the threshold beyond which at most so many are wrong, for each group."""

from __future__ import annotations

import json as json_format
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

import typer

from calibrant.cli.errors import LIMIT_NOT_SHOWN, rendered
from calibrant.cli.inputs import Loaded, load_sketches
from calibrant.cli.output import note, shown, wrapped
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.decisions.certify import certify
from calibrant.decisions.ranking import require_risk
from calibrant.errors import TooFewRows
from calibrant.inference.interval import require_confidence
from calibrant.measures.result_record import plain

__all__ = ["results_of", "run_certify", "samples_of"]

SCHEMA = "calibrant.certify/1"
Result = TypeVar("Result")


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
    results = results_of(
        loaded, partial(certify, risk=risk, side=side, confidence=measuring.confidence)
    )
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
    failed = len(loaded.groups()) - sum(result.certified for result in results.values())
    if failed:
        if len(loaded.groups()) > 1:
            note(f"{failed} of {len(loaded.groups())} groups could not be certified.")
        raise typer.Exit(LIMIT_NOT_SHOWN)


def results_of(loaded: Loaded, call: Callable[..., Result]) -> dict[tuple[Any, ...], Result]:
    """What `call` makes of each group; of several, those with too few rows are left out and named."""
    samples = samples_of(loaded)
    results = {}
    for name, sample in samples.items():
        try:
            results[name] = call(**sample, abstained=loaded.abstained.get(name, 0))
        except TooFewRows as error:
            if len(samples) == 1:
                raise
            note(f"Left out {', '.join(map(shown, name))}: {rendered(error)}")
    if not results:
        raise TooFewRows("no group has enough rows", cure="Group by fewer columns.")
    return results


def samples_of(loaded: Loaded) -> dict[tuple[Any, ...], dict[str, Any]]:
    """What was read, apart by group: rows, a sketch, or where there are clusters one for each of them."""
    groups, sketches = loaded.groups(), loaded.sketches
    if loaded.answers is not None:
        rows = loaded.answers.by(loaded.by)
        return {name: rows[name].arguments for name in groups}
    if loaded.cluster is None or not isinstance(sketches, Sketches):
        return {name: {"y_true": sketch} for name, sketch in groups.items()}
    cluster = loaded.cluster
    if not loaded.by:
        return {(): {"y_true": sketches, "cluster": cluster}}
    at = sketches.by.index(cluster)
    parts: dict[tuple[Any, ...], dict[Any, Sketch]] = {}
    for key, sketch in sketches.items():
        group = (*key[:at], *key[at + 1 :])
        parts.setdefault(group, {})[key[at]] = sketch
    return {
        name: {"y_true": Sketches(own, by=cluster), "cluster": cluster}
        for name, own in parts.items()
    }


def _group(loaded: Loaded, name: tuple[Any, ...]) -> dict[str, Any]:
    return {column: plain(value) for column, value in zip(loaded.by, name, strict=False)}
