"""Logs of OpenAI's evals: a line for the run, then one for each event."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from calibrant.io.answers.answers import (
    Answer,
    Answers,
    Place,
    collected,
    does_not_apply,
    question_of,
)
from calibrant.io.answers.confidence import Values
from calibrant.io.answers.lines import json_lines
from calibrant.io.answers.refusals import is_refusal

__all__ = ["openai_evals_answers"]

MATCH = "match"
TOOL = "OpenAI's evals"
Row = dict[str, Any]


def openai_evals_answers(
    path: Path, values: Values, *, probability: str | None, correct: str | None
) -> Answers:
    """The answers of such a log: the confidence that the sampled text states, right by its match."""
    if values.form not in ("probability", "percent"):
        raise does_not_apply(
            "form", values.form, TOOL, "the confidence that the text states is read"
        )
    if probability not in (None, "stated"):
        raise does_not_apply("probability", probability, TOOL, "it holds stated confidences alone")
    return collected(
        _answers(path, values, correct or "correct"),
        probability=f"confidence stated in the text; right by {correct or 'correct'!r}",
        where=str(path),
    )


def _answers(path: Path, values: Values, scored: str) -> Iterator[Answer]:
    """A match is an answer; its text, where it has none, is what was sampled last for the question."""
    groups: dict[str, str] = {}
    sampled: dict[str, str | None] = {}
    for number, row in json_lines(path):
        if isinstance(row.get("spec"), dict):
            groups = _groups(row["spec"])
        event, data = row.get("type"), row.get("data")
        if not isinstance(data, dict) or event not in (MATCH, "sampling"):
            continue
        place = Place(str(path), number)
        question = question_of(row.get("sample_id"), place, "sample_id")
        if event == "sampling":
            sampled[question] = _text(data)
            continue
        if scored not in data:
            raise place.refuse(
                "a match must say whether the answer was right, in {field}",
                argument="correct",
                field=repr(scored),
                cure="Name the field.",
            )
        before = sampled.pop(question, None)
        text = _text(data)
        text = before if text is None else text
        yield Answer(
            question=question,
            probability=None if text is None else values.stated(text),
            correct=values.credit(data[scored], place),
            abstained=text is not None and is_refusal(text),
            groups=groups,
        )


def _text(data: Row) -> str | None:
    """What was sampled, of several texts the last; None where the event does not say."""
    text = data.get("sampled")
    while isinstance(text, list):
        text = text[-1] if text else None
    return text if isinstance(text, str) else None


def _groups(spec: Row) -> dict[str, str]:
    models = spec.get("completion_fns")
    names = {"task": spec.get("eval_name"), "model": models[0] if models else None}
    return {name: value for name, value in names.items() if isinstance(value, str)}
