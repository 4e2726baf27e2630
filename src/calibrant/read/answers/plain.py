"""JSON lines with a confidence and whether the answer was right."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Literal

from calibrant.errors import InputError
from calibrant.read.answers.answers import Answer, Answers, collected, is_missing, question_of
from calibrant.read.answers.confidence import as_credit, as_probability, is_refusal, reader
from calibrant.read.answers.reading import json_lines

__all__ = ["plain_answers"]

PROBABILITY = ("confidence", "answer_probability", "probability", "prob", "p", "stated_confidence")
CORRECT = ("correct", "is_correct", "y", "label", "score")
QUESTION = ("question_id", "qid", "doc_id", "question", "id")
ANSWER = ("answer", "response")
GROUPS = ("model", "task", "dataset", "llm", "qset")


def plain_answers(
    path: Path,
    *,
    probability: str | None,
    correct: str | None,
    question: str | None,
    on_invalid: Literal["raise", "drop"],
) -> Answers:
    """The answers of such a file; fields are found by their names unless given."""
    rows = list(json_lines(path))
    present = list(dict.fromkeys(name for _, row in rows for name in row))
    prob_field = _field(path, present, probability, PROBABILITY, "probability", "a confidence")
    right_field = _field(path, present, correct, CORRECT, "correct", "whether the answer was right")
    asked = question or next((name for name in QUESTION if name in present), None)
    if asked is not None and asked not in present:
        raise _missing(path, asked, present)
    groups = [name for name in GROUPS if name in present]
    read_probability, read_credit = (
        reader(read, on_invalid) for read in (as_probability, as_credit)
    )

    def answer(number: int, row: dict[str, Any]) -> Answer:
        where = f"{path}, line {number}"
        prob, right = row.get(prob_field), row.get(right_field)
        abstained = _abstained(row, prob, right)
        return Answer(
            question=question_of(row.get(asked), where, asked) if asked else str(number),
            probability=None if abstained else read_probability(prob, where),
            correct=None if abstained else read_credit(right, where),
            abstained=abstained,
            groups={name: str(row[name]) for name in groups if not is_missing(row.get(name))},
        )

    return collected(
        [answer(number, row) for number, row in rows],
        probability=f"the field {prob_field!r}",
        where=str(path),
    )


def _abstained(row: dict[str, Any], prob: Any, right: Any) -> bool:
    if isinstance(row.get("abstained"), bool):
        return bool(row["abstained"])
    if any(
        isinstance(value, str) and value.strip() and is_refusal(value) for value in (prob, right)
    ):
        return True
    answers = [row[name] for name in ANSWER if name in row]
    return (prob is None and right is None) or (bool(answers) and all(map(is_refusal, answers)))


def _field(
    path: Path,
    present: list[str],
    given: str | None,
    known: tuple[str, ...],
    option: str,
    what: str,
) -> str:
    if given is not None:
        if given not in present:
            raise _missing(path, given, present)
        return given
    found = [name for name in known if name in present]
    if not found:
        raise InputError(
            f"{path} must have a field with {what}, such as {known[0]!r}; it has "
            f"{', '.join(map(repr, present[:12])) or 'none'}. Name it with `{option}=`."
        )
    return found[0]


def _missing(path: Path, name: str, present: list[str]) -> InputError:
    near = difflib.get_close_matches(name, present, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(
        f"{path} must have a field {name!r}; it has {', '.join(map(repr, present[:12]))}.{hint}"
    )
