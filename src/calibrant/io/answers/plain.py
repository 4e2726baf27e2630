"""JSON lines with a confidence and whether the answer was right."""

from __future__ import annotations

import difflib
from array import array
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._arguments import is_number
from calibrant.errors import InputError, Option
from calibrant.io.answers.answers import (
    Answer,
    Answers,
    Place,
    collected,
    is_missing,
    question_number,
    question_of,
)
from calibrant.io.answers.confidence import FORMS, Values
from calibrant.io.answers.lines import json_lines
from calibrant.io.answers.refusals import is_empty, is_refusal

__all__ = ["plain_answers"]

PROBABILITY = ("confidence", "answer_probability", "probability", "prob", "p", "stated_confidence")
JUDGED = "judge_response.confidence"
LOGS = ("logprobs", "logprob", "token_logprobs", "choice_logprobs", "option_logprobs")
OPTIONS = ("choices", "options")
SAMPLES = ("samples", "sampled_answers", "answers", "responses")
CORRECT = ("correct", "is_correct", "y", "label", "score", "judge_response.correct")
QUESTION = ("question_id", "qid", "doc_id", "question", "id")
ANSWER = ("answer", "response")
GROUPS = ("model", "task", "subject", "dataset", "llm", "qset")
_FROM_LOGS = "To make one of the log-probabilities in {logs}, pass {form}."
_FROM_SAMPLES = "To take the share of the samples in {samples} that agree, pass {form}."
Row = dict[str, Any]


def plain_answers(
    path: Path,
    values: Values,
    *,
    probability: str | None,
    correct: str | None,
    question: str | None,
) -> Answers:
    """The answers of such a file; fields are found by their names unless given."""
    present = _fields(path)
    known = {
        **dict.fromkeys(("sum", "mean", "token"), LOGS),
        "choices": (*LOGS, *_scored(present)),
        "agreement": (*SAMPLES, *ANSWER),
    }.get(values.form, (*PROBABILITY, JUDGED))
    prob_field = _field(path, present, probability, known, "probability", "a confidence")
    right_field = _field(path, present, correct, CORRECT, "correct", "whether the answer was right")
    asked = question or next((name for name in QUESTION if name in present), None)
    if asked is not None and not _has(present, asked):
        raise _missing(path, asked, present, "question")
    groups = [name for name in GROUPS if name in present]
    agreement = _Agreement(path, prob_field, asked) if values.form == "agreement" else None

    def answer(number: int, row: Row) -> Answer:
        place = Place(str(path), number)
        value, right = _value(row, prob_field), _value(row, right_field)
        name = question_of(_value(row, asked), place, asked) if asked else None
        abstained = _abstained(row, None if agreement else value, right)
        chosen = next((row[field] for field in ANSWER if field in row), None)
        sure = None
        if not abstained:
            sure = (
                agreement.share(name, value)
                if agreement
                else values.confidence(value, place, chosen)
            )
        return Answer(
            question=name,
            probability=sure,
            correct=None if abstained else values.credit(right, place),
            abstained=abstained,
            groups={name: str(row[name]) for name in groups if not is_missing(row.get(name))},
        )

    form = "" if values.form == "probability" else f" ({FORMS[values.form]})"
    answers = collected(
        (answer(number, row) for number, row in json_lines(path)),
        probability=f"the field {prob_field!r}{form}",
        where=str(path),
    )
    values.require_one_scale()
    return answers


class _Agreement:
    """How many samples of a question give the same answer: in one list, or in lines of their own.

    Of lines, two numbers each are held, for the question and for what was answered to it.
    """

    def __init__(self, path: Path, field: str, question: str | None) -> None:
        asked, said = array("q"), array("q")
        for number, row in json_lines(path):
            value = _value(row, field)
            if question is None and not isinstance(value, list):
                raise InputError(
                    "must name the question, or the samples of one cannot be told from those of another",
                    argument="question",
                    cure="Name its field with {question}.",
                    question=Option("question", ...),
                )
            if question is not None and not isinstance(value, list) and not is_missing(value):
                name = question_of(_value(row, question), Place(str(path), number), question)
                asked.append(question_number(name))
                said.append(_answer_number(name, value))
        self._asked, self._said = _Tally(asked), _Tally(said)

    def share(self, question: str | None, value: Any) -> float | None:
        """The share of the samples that say this, or of those in a list that say the commonest."""
        if isinstance(value, list):
            counts = Counter(map(_normal, value))
            return max(counts.values()) / len(value) if value else None
        if question is None or is_missing(value):
            return None
        return self._said[_answer_number(question, value)] / self._asked[question_number(question)]


class _Tally:
    """How often each number occurs."""

    def __init__(self, numbers: array[int]) -> None:
        column = np.array(numbers, dtype=np.int64)
        self._values, self._times = np.unique(column, return_counts=True)

    def __getitem__(self, number: int) -> int:
        return int(self._times[np.searchsorted(self._values, number)])


def _answer_number(question: str, answer: Any) -> int:
    return question_number(f"{question}\0{_normal(answer)}")


def _normal(answer: Any) -> str:
    """An answer without case, outer spaces and a full stop."""
    return " ".join(str(answer).lower().split()).rstrip(". ")[:200]


def _value(row: Row, name: str | None) -> Any:
    """A field by its name, or by a path such as "judge.confidence" or "choices.0.logprobs"."""
    if name is None:
        return None
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        if isinstance(value, list) and part.isdigit():
            value = value[int(part)] if int(part) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def _fields(path: Path) -> dict[str, Row]:
    """The fields of all lines, each with the first line that has it."""
    present: dict[str, Row] = {}
    for _, row in json_lines(path):
        if not row.keys() <= present.keys():
            for name in row:
                present.setdefault(name, row)
    return present


def _has(present: dict[str, Row], name: str) -> bool:
    top = name if name in present else name.split(".")[0]
    if top not in present:
        return False
    return top == name or any(_value(row, name) is not None for row in present.values())


def _abstained(row: Row, prob: Any, right: Any) -> bool:
    if isinstance(row.get("abstained"), bool):
        return bool(row["abstained"])
    for value in (prob, right):
        if isinstance(value, str) and value.strip() and is_empty(value):
            return True
    answers = [row[name] for name in ANSWER if name in row]
    return (prob is None and right is None) or (bool(answers) and all(map(is_refusal, answers)))


def _field(
    path: Path,
    present: dict[str, Row],
    given: str | None,
    known: tuple[str, ...],
    option: str,
    what: str,
) -> str:
    if given is not None:
        if not _has(present, given):
            raise _missing(path, given, present, option)
        return given
    names = [name for name in known if _has(present, name)]
    if not names:
        logs = [name for name in LOGS if name in present] + _scored(present)
        logs = logs if option == "probability" else []
        values: dict[str, Any] = {"option": Option(option, ...)}
        cure = "Name it with {option}."
        if logs:
            form = "choices" if logs[0].startswith(("choice", "option")) else "sum"
            cure, values = _FROM_LOGS, {"logs": repr(logs[0]), "form": Option("form", form)}
        sampled = _sampled(present) if option == "probability" and not logs else None
        if sampled is not None:
            cure = _FROM_SAMPLES
            values = {"samples": repr(sampled), "form": Option("form", "agreement")}
        raise InputError(
            "{file} must have a field with {what}, such as {example}",
            seen=list(present)[:12],
            saying="it has {}",
            cure=cure,
            file=str(path),
            what=what,
            example=repr(known[0]),
            **values,
        )
    return names[0]


def _scored(present: dict[str, Row]) -> list[str]:
    """Fields of options that have log-probabilities, and not only names."""
    found = []
    for name in OPTIONS:
        options = present.get(name, {}).get(name)
        scores = options.values() if isinstance(options, dict) else options
        if isinstance(scores, Iterable) and not isinstance(scores, str):
            found += [name] if all(is_number(score) and score <= 0.0 for score in scores) else []
    return found


def _sampled(present: dict[str, Row]) -> str | None:
    """The field of sampled answers: lists of them, or answers to questions that are named."""
    lists = (name for name in SAMPLES if isinstance(present.get(name, {}).get(name), list))
    asked = any(name in present for name in QUESTION)
    answers = (name for name in ANSWER if asked and name in present)
    return next(lists, next(answers, None))


def _missing(path: Path, name: str, present: dict[str, Row], option: str) -> InputError:
    near = difflib.get_close_matches(name, list(present), n=1)
    return InputError(
        "must be a field of {file}",
        argument=option,
        seen=name,
        cure=[*(["Did you mean {near}?"] if near else []), "It has {fields}."],
        near=repr(near[0]) if near else "",
        fields=", ".join(map(repr, list(present)[:12])),
        file=str(path),
    )
