"""Sample logs of lm-evaluation-harness (`--log_samples`)."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from calibrant.errors import InputError, Option
from calibrant.io.answers.answers import Answer, Answers, Place, collected, question_of
from calibrant.io.answers.confidence import Values
from calibrant.io.answers.lines import json_lines
from calibrant.io.answers.refusals import is_refusal

__all__ = ["lm_eval_answers"]

WORDS = {
    "choices": "share of the chosen answer in the likelihoods of all choices",
    "normalised": "share of the chosen answer in the likelihoods per character of all choices",
    "stated": "confidence stated in the text",
}
METRICS = {
    "choices": ("acc",),
    "normalised": ("acc_norm",),
    "stated": ("exact_match", "acc", "pass@1", "correct"),
}
Row = dict[str, Any]


def lm_eval_answers(
    path: Path,
    values: Values,
    *,
    probability: str | None,
    correct: str | None,
    filter: str | None,
) -> Answers:
    """The answers of such a log, from the likelihoods of the choices or from the text."""
    if values.form not in ("probability", "percent"):
        raise InputError(
            "does not apply to logs of lm-eval", argument="form", seen=values.form,
            cure="Leave it out: the likelihoods of choices are read as they are.",
        )  # fmt: skip
    first, wanted = _one_filter(path, filter)
    if probability is None:
        probability = "choices" if _likelihoods(first) else "stated"
    if probability not in WORDS:
        raise InputError(
            "of an lm-eval log must be one of {known}",
            argument="probability",
            seen=probability,
            known=", ".join(WORDS),
            cure="Pass one of these.",
        )
    scored = _metric(path, first, probability, correct)
    task, model = _task(path), _model(path)
    groups = {"task": task} | ({"model": model} if model else {})

    def sure(row: Row, text: str, place: Place) -> float | None:
        if probability == "stated":
            return values.stated(text)
        try:
            return _share(row, place, per_character=probability == "normalised")
        except InputError:
            if values.lenient:
                return math.inf
            raise

    def answer(number: int, row: Row) -> Answer:
        place = Place(str(path), number)
        if scored not in row:
            raise place.refuse("a sample must have {metric}, as the others do", metric=repr(scored))
        text = _text(row)
        return Answer(
            question=f"{task}/{question_of(row.get('doc_id'), place, 'doc_id')}",
            probability=sure(row, text, place),
            correct=values.credit(row[scored], place),
            abstained=probability == "stated" and is_refusal(text),
            groups=groups,
        )

    return collected(
        (
            answer(number, row)
            for number, row in json_lines(path)
            if str(row.get("filter", "none")) == wanted
        ),
        probability=f"{WORDS[probability]}; right by {scored!r}",
        where=str(path),
    )


def _one_filter(path: Path, filter: str | None) -> tuple[Row, str]:
    """The filter that is asked for, or the only one, and the first line that it scored."""
    first: dict[str, Row] = {}
    for _, row in json_lines(path):
        first.setdefault(str(row.get("filter", "none")), row)
    if not first:
        raise InputError(
            "{file} must hold samples; it has none",
            file=str(path),
            cure="Run lm-eval with its samples logged.",
        )
    shown = ", ".join(map(repr, first))
    if filter is None and len(first) > 1:
        raise InputError(
            "{file} scores each answer by {count} filters: {filters}",
            file=str(path),
            count=len(first),
            filters=shown,
            cure="Choose one with {filter}.",
            filter=Option("filter", ...),
        )
    if filter is not None and filter not in first:
        raise InputError(
            "must be one of the log's filters, {filters}",
            argument="filter",
            seen=filter,
            filters=shown,
            cure="Pass one of these.",
        )
    wanted = filter or next(iter(first))
    return first[wanted], wanted


def _metric(path: Path, row: Row, probability: str, metric: str | None) -> str:
    known = (metric,) if metric is not None else METRICS[probability]
    for name in known:
        if name in row:
            return name
    metrics = row.get("metrics")
    present = metrics if isinstance(metrics, list) else _numeric_fields(row)
    raise InputError(
        "{file} must score its samples by {metrics}",
        file=str(path),
        metrics=" or ".join(map(repr, known)),
        seen=list(present),
        saying="it has {}",
        cure="Name one with {correct}.",
        correct=Option("correct", ...),
    )


def _numeric_fields(row: Row) -> list[str]:
    return [name for name, value in row.items() if isinstance(value, bool | int | float)]


def _likelihoods(row: Row) -> list[float]:
    """Log-likelihoods of the choices; empty where the task generates text.

    The harness writes a pair (log-likelihood, is greedy) for each choice, as numbers or as text.
    """
    found = []
    responses = row.get("filtered_resps")
    for pair in responses if isinstance(responses, list) else []:
        if not isinstance(pair, list) or len(pair) != 2 or str(pair[1]) not in _GREEDY:
            return []
        try:
            found.append(float(pair[0]))
        except (TypeError, ValueError):
            return []
    return found


_GREEDY = {"True", "False", "0", "1", "0.0", "1.0"}


def _share(row: Row, place: Place, *, per_character: bool) -> float:
    scores, choices = _likelihoods(row), _choices(row)
    if _is_repeated_without_context(row, scores):  # for acc_mutual_info
        scores, choices = scores[: len(scores) // 2], choices[: len(choices) // 2]
    if len(scores) < 2 or not all(math.isfinite(score) for score in scores):
        raise place.refuse(
            "a sample must have the finite log-likelihoods of at least two choices in 'filtered_resps'",
            seen=len(scores),
            cure="The probability of one given text says nothing of the answer that the model would "
            "have chosen.",
        )
    if per_character:
        if len(choices) != len(scores) or len(set(choices)) < 2 or not all(choices):
            raise place.refuse(
                "a sample must give the text of each choice in 'arguments', after the prompt",
                cure="{choices} goes without it.",
                choices=Option("probability", "choices"),
            )
        scores = [score / len(choice) for score, choice in zip(scores, choices, strict=True)]
    best = max(scores)
    return 1.0 / sum(math.exp(score - best) for score in scores)


def _arguments(row: Row, place: int) -> list[str]:
    """The prompt (0) or the continuation (1) of each request, as lists or, in files, as dicts."""
    arguments = row.get("arguments")
    requests = list(arguments.values()) if isinstance(arguments, dict) else arguments
    found = []
    for request in requests if isinstance(requests, list) else []:
        parts = list(request.values()) if isinstance(request, dict) else request
        text = parts[place] if isinstance(parts, list) and len(parts) > place else None
        found.append(text if isinstance(text, str) else "")
    return found


def _choices(row: Row) -> list[str]:
    return [text.strip() for text in _arguments(row, 1)]


def _is_repeated_without_context(row: Row, scores: list[float]) -> bool:
    """Whether the second half asks for the same choices with no question before them."""
    prompts, half = _arguments(row, 0), len(scores) // 2
    return (
        len(scores) == len(prompts) == 2 * half >= 4
        and any(prompts[:half])
        and not any(prompts[half:])
    )


def _text(row: Row) -> str:
    responses = row.get("resps")
    while isinstance(responses, list) and responses:
        responses = responses[0]
    return responses if isinstance(responses, str) else ""


def _model(path: Path) -> str | None:
    """The model in the name of the folder, where slashes are written as two underscores."""
    folder = path.resolve().parent.name
    return folder.replace("__", "/") if "__" in folder.strip("_") else None


def _task(path: Path) -> str:
    """The task in `samples_<task>_<time>.jsonl`."""
    stem = path.name.split(".jsonl")[0]
    match = re.fullmatch(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT.*)?", stem)
    return match[1] if match else stem
