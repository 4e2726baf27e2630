"""Logs of evaluations: the answers of a language model as sketches, clustered by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.cli.columns import require_column
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.output import count, note, printable, short_path
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, Option

if TYPE_CHECKING:
    from calibrant.read.answers import Answers

__all__ = ["QUESTION", "sketches_of_logs"]

QUESTION = "question"


def sketches_of_logs(
    paths: Sequence[str], reading: Reading, grouping: Grouping, measuring: Measuring
) -> tuple[Sketch | Sketches, dict[str, Any], Counter[tuple[str, ...]]]:
    """The answers of such logs, where those to one question are a cluster; what the logs say; and how
    many abstentions each group has.
    """
    from calibrant.read.scan import scan

    logs = _read_logs(paths, reading, measuring)
    columns: dict[str, Any] = {
        name: np.concatenate([log.groups[name] for log in logs])
        for name in logs[0].groups
        if all(name in log.groups for log in logs)
    }
    columns["file"] = np.repeat([short_path(path) for path in paths], [log.n for log in logs])
    by = (["file"] if grouping.per_file else []) + grouping.columns
    for name in by:
        require_column(name, list(columns), paths[0])
    rows = {f"{QUESTION} ": np.concatenate([log.cluster for log in logs])}
    rows |= {"y_true": np.concatenate([log.y_true for log in logs])}
    rows |= {"y_prob": np.concatenate([log.y_prob for log in logs])}
    options = {name: v for name, v in reading.options.items() if name in ("labels", "on_invalid")}
    sketches = scan(
        rows | {f"by {name}": columns[name] for name in by},
        y_true="y_true",
        y_prob="y_prob",
        by={name: f"by {name}" for name in by} or None,
        cluster={QUESTION: f"{QUESTION} "},
        scale=measuring.scale,
        **options,
    )
    about = {
        "probability": [log.probability for log in logs],
        "abstained": sum(log.abstained for log in logs),
        "without_confidence": sum(log.without_confidence for log in logs),
        "unreadable": sum(log.unreadable for log in logs),
        "questions": sum(log.questions for log in logs),
    }
    return sketches, about, _abstentions(paths, logs, by)


def _abstentions(
    paths: Sequence[str], logs: Sequence[Answers], by: Sequence[str]
) -> Counter[tuple[str, ...]]:
    """Abstentions by the values of these groups."""
    counts: Counter[tuple[str, ...]] = Counter()
    for path, log in zip(paths, logs, strict=True):
        if log.abstained:
            nameless, file = np.full(log.abstained, ""), np.full(log.abstained, short_path(path))
            columns = {"file": file} | dict(log.abstained_groups)
            values = [columns.get(name, nameless).tolist() for name in by]
            counts.update(zip(*values, strict=True) if by else {(): log.abstained})
    return counts


def _read_logs(paths: Sequence[str], reading: Reading, measuring: Measuring) -> list[Answers]:
    """The logs, and a line on each; refuses options that a log has no use for."""
    from calibrant.read.answers import read_answers

    if reading.prob is not None and len(reading.prob) > 1:
        raise InputError(
            "a log has one probability for each answer",
            cure="Give {prob} once.",
            prob=Option("y_prob"),
        )
    if reading.percent and reading.form is not None:
        raise InputError(
            "says it already",
            argument="form",
            cure="Leave out {percent}.",
            percent=Option("percent"),
        )
    for name in ("from_logits", "from_logprobs", "pos_label", "multiclass", "sep", "weight"):
        if getattr(reading, name):
            raise InputError(
                "a log says itself how its values are written",
                cure="Leave out {option}.",
                option=Option("sample_weight" if name == "weight" else name),
            )
    logs = [
        read_answers(
            path,
            format=reading.log,
            probability=reading.prob[0] if reading.prob else None,
            correct=reading.label,
            question=measuring.cluster,
            filter=reading.filter,
            form=reading.form or ("percent" if reading.percent else "probability"),
            on_invalid=reading.on_invalid,
        )
        for path in paths
    ]
    for path, log in zip(paths, logs, strict=True):
        note(
            f"{printable(path, 200)}: {count(log.n, 'answer')} to {count(log.questions, 'question')}, "
            f"{count(log.abstained, 'abstention')}. Probability: {log.probability}."
        )
        for number, what in (
            (log.without_confidence, "without a confidence"),
            (log.unreadable, "with one that cannot be read"),
            (log.unscored, "that nobody scored"),
        ):
            if number:
                note(f"{printable(path, 200)}: {count(number, 'answer')} {what}.")
        if log.has_partial_credit and reading.outcomes != "soft":
            raise InputError(
                "{file} gives partial credit, and an outcome is 0 or 1",
                file=printable(path, 200),
                cure="To read it as a share, pass {soft}.",
                soft=Option("labels", "soft"),
            )
    return logs
