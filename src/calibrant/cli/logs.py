"""Logs of evaluations: the answers of a language model, clustered by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cli.columns import require_column
from calibrant.cli.group_rows import GroupRows
from calibrant.cli.output import count, note, printable, short_path, without_spool
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, Option, TooFewRows

if TYPE_CHECKING:
    from calibrant.io.answers import Answers

__all__ = ["QUESTION", "answers_of_logs", "sketches_of_answers"]

QUESTION = "question"


def answers_of_logs(
    paths: Sequence[str], reading: Reading, grouping: Grouping, measuring: Measuring
) -> tuple[GroupRows, dict[str, Any], Counter[tuple[str, ...]]]:
    """The answers of such logs, where those to one question are a cluster; what the logs say; and how
    many abstentions each group has.
    """
    logs = _read_logs(paths, reading, measuring)
    by = (["file"] if grouping.per_file else []) + grouping.columns
    present = [name for name in logs[0].groups if all(name in log.groups for log in logs)]
    for name in by:
        require_column(name, [*present, "file"], paths[0])
    columns = {name: _joined([log.groups[name] for log in logs]) for name in by if name != "file"}
    if "file" in by:
        names = np.array([short_path(path) for path in paths], dtype=object)
        columns["file"] = np.repeat(names, [log.n for log in logs])
    named = all(log.names_questions for log in logs) and sum(log.n for log in logs) > 1
    rows = GroupRows(
        _joined([log.y_true for log in logs]),
        _joined([log.y_prob for log in logs]),
        _joined([log.cluster for log in logs]) if named else None,
        {name: v for name, v in reading.options.items() if name in ("labels", "on_invalid")},
        {name: columns[name] for name in by},
    )
    if rows.cluster is not None and bool((rows.cluster == rows.cluster[0]).all()):
        raise TooFewRows(
            "a log must have answers to two questions or more, as those to one depend on each other",
            seen=rows.y_true.size,
            saying="all {} of them are to one",
            cure="Add answers to other questions, or name what tells them apart with {cluster}.",
            cluster=Option("cluster", ...),
        )
    about = {
        "probability": [log.probability for log in logs],
        "abstained": sum(log.abstained for log in logs),
        "without_confidence": sum(log.without_confidence for log in logs),
        "unreadable": sum(log.unreadable for log in logs),
        "unscored": sum(log.unscored for log in logs),
        "questions": sum(log.questions for log in logs),
    }
    return rows, about, _abstentions(paths, logs, by)


def sketches_of_answers(rows: GroupRows, *, scale: str, by_question: bool) -> Sketch | Sketches:
    """The sketch of these answers by group, and by question where that is asked for."""
    from calibrant.io.scan import scan

    columns = {"y_true": rows.y_true, "y_prob": rows.y_prob}
    columns |= {f"by {name}": column for name, column in rows.columns.items()}
    cluster = None
    if by_question and rows.cluster is not None:
        columns[f"{QUESTION} "], cluster = rows.cluster, {QUESTION: f"{QUESTION} "}
    return scan(
        columns,
        y_true="y_true",
        y_prob="y_prob",
        by={name: f"by {name}" for name in rows.columns} or None,
        cluster=cluster,
        scale=scale,
        **rows.options,
    )


def _joined(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One column of several; that of a single log is not copied."""
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


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


def _as_words(text: str | None) -> dict[str, float] | None:
    """What words stand for, as it is typed.

    Examples
    --------
    >>> _as_words("very likely=0.9, likely=0.7")
    {'very likely': 0.9, 'likely': 0.7}
    """
    if text is None:
        return None
    words = {}
    for part in text.split(","):
        word, _, number = part.rpartition("=")
        try:
            words[word.strip()] = float(number)
        except ValueError:
            word = ""
        if not word.strip():
            raise InputError(
                "must give each word a number",
                argument="words",
                seen=part.strip(),
                cure="Write it as 'very likely=0.9,likely=0.7'.",
            )
    return words


def _as_range(text: str | None) -> tuple[float, float] | None:
    """The lowest and the highest score, as they are typed."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError(
            "must be the lowest and the highest score",
            argument="score_range",
            seen=text,
            cure="Write both, separated by a comma, as in 1,5.",
        ) from None
    return low, high


def _read_logs(paths: Sequence[str], reading: Reading, measuring: Measuring) -> list[Answers]:
    """The logs, and a line on each."""
    from calibrant.io.answers import read_answers

    _require_options_of_logs(reading)
    logs = [
        read_answers(
            path,
            format=reading.log,
            probability=reading.prob[0] if reading.prob else None,
            correct=reading.label,
            question=measuring.cluster,
            filter=reading.filter,
            form=reading.form or ("percent" if reading.percent else "probability"),
            words=_as_words(reading.words),
            score_range=_as_range(reading.score_range),
            on_invalid=reading.on_invalid,
        )
        for path in paths
    ]
    for path, log in zip(paths, logs, strict=True):
        name = printable(without_spool(path), 200)
        _note_contents(name, log)
        if log.has_partial_credit and reading.outcomes != "soft":
            raise InputError(
                "{file} gives partial credit, and an outcome is 0 or 1",
                file=name,
                cure="To read it as a share, pass {soft}.",
                soft=Option("labels", "soft"),
            )
    return logs


def _require_options_of_logs(reading: Reading) -> None:
    """Refuse options that a log has no use for."""
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


def _note_contents(name: str, log: Answers) -> None:
    """How many answers a log has, and how many of them say too little."""
    note(
        f"{name}: {count(log.n, 'answer')} to {count(log.questions, 'question')}, "
        f"{count(log.abstained, 'abstention')}. Probability: {log.probability}."
    )
    for number, what in (
        (log.without_confidence, "without a confidence"),
        (log.unreadable, "with one that cannot be read"),
        (log.unscored, "that nobody scored"),
    ):
        if number:
            note(f"{name}: {count(number, 'answer')} {what}.")
    if not log.names_questions:
        note(
            f"{name}: no field names the question, so answers are taken to be "
            "independent. `--cluster NAME` names one."
        )
