"""Logs of language model evaluations on the command line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calibrant.cli.columns import require_column
from calibrant.cli.converting import split
from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.parts import FILE, Given, Part, spoken
from calibrant.cli.text import count, note, printable
from calibrant.errors import InputError
from calibrant.read.answers import Answers, read_answers

__all__ = ["given_answers"]


def given_answers(
    paths: Sequence[str], reading: Reading, grouping: Grouping, measuring: Measuring
) -> Given:
    """The parts of such logs; answers to one question are a cluster."""
    logs = _read(paths, reading, measuring)
    columns = {
        name: np.concatenate([log.groups[name] for log in logs])
        for name in logs[0].groups
        if all(name in log.groups for log in logs)
    }
    columns[FILE] = np.repeat(paths, [log.n for log in logs])
    by = ([FILE] if grouping.per_file else []) + grouping.columns
    for name in by:
        require_column(name, list(columns), paths[0])
    y_true, y_prob, cluster = (
        np.concatenate([getattr(log, name) for log in logs])
        for name in ("y_true", "y_prob", "cluster")
    )
    options = {"labels": reading.labels, "on_invalid": reading.on_invalid}
    parts: list[Part] = []
    for group, rows in split([columns[name] for name in by]):
        chosen = slice(None) if rows is None else rows
        parts.append(
            Part(
                dict(zip(by, group, strict=True)),
                (y_true[chosen], y_prob[chosen]),
                {**options, "cluster": cluster[chosen]},
                int(y_true[chosen].size),
            )
        )
    about = {
        "probability": [log.probability for log in logs],
        "abstained": sum(log.abstained for log in logs),
        "questions": sum(log.questions for log in logs),
    }
    return Given(parts, list(paths), log=about)


def _read(paths: Sequence[str], reading: Reading, measuring: Measuring) -> list[Answers]:
    """The logs, and a line on each; refuses options that a log has no use for."""
    if reading.prob is not None and len(reading.prob) > 1:
        raise InputError("a log has one probability for each answer; give `--prob` once.")
    if reading.has_form or (reading.converts and reading.labels != "soft"):
        raise InputError(
            "a log says itself how its values are written; leave out `--percent`, `--from-logits`, "
            "`--pos-label` and `--multiclass`."
        )
    with spoken({}):
        logs = [
            read_answers(
                path,
                format=reading.log,
                probability=reading.prob[0] if reading.prob else None,
                correct=reading.label,
                question=measuring.cluster,
                filter=reading.filter,
                on_invalid=reading.on_invalid,
            )
            for path in paths
        ]
    for path, log in zip(paths, logs, strict=True):
        note(
            f"{printable(path, 200)}: {count(log.n, 'answer')} to {count(log.questions, 'question')}, "
            f"{count(log.abstained, 'abstention')}. Probability: {log.probability}."
        )
        if log.has_partial_credit and reading.labels != "soft":
            raise InputError(
                f"{printable(path, 200)} gives partial credit, and an outcome is 0 or 1 unless "
                "`--labels soft` says that it is a share."
            )
    return logs
