"""Sample logs of lm-evaluation-harness (`--log_samples`)."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any, Literal

from calibrant.errors import InputError
from calibrant.read.answers.answers import Answer, Answers, collected, question_of
from calibrant.read.answers.confidence import as_credit, is_refusal, reader, stated_confidence
from calibrant.read.answers.reading import json_lines

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
    *,
    probability: str | None,
    correct: str | None,
    filter: str | None,
    on_invalid: Literal["raise", "drop"],
) -> Answers:
    """The answers of such a log, from the likelihoods of the choices or from the text."""
    rows = _of_one_filter(path, list(json_lines(path)), filter)
    if not rows:
        raise InputError(f"{path} must hold samples; it has none.")
    if probability is None:
        probability = "choices" if _likelihoods(rows[0][1]) else "stated"
    if probability not in WORDS:
        raise InputError(
            f"`probability` of an lm-eval log must be one of {', '.join(WORDS)}; got {probability!r}."
        )
    scored = _metric(path, rows[0][1], probability, correct)
    task, model = _task(path), _model(path)
    read_share = reader(
        lambda row, where: _share(row, where, per_character=probability == "normalised"), on_invalid
    )
    read_credit = reader(as_credit, on_invalid)

    def answer(number: int, row: Row) -> Answer:
        where = f"{path}, line {number}"
        if scored not in row:
            raise InputError(f"{where} must have {scored!r}, as the other samples do.")
        text = _text(row)
        return Answer(
            question=f"{task}/{question_of(row.get('doc_id'), where, 'doc_id')}",
            probability=(
                stated_confidence(text) if probability == "stated" else read_share(row, where)
            ),
            correct=read_credit(row[scored], where),
            abstained=probability == "stated" and is_refusal(text),
            groups={"task": task} | ({"model": model} if model else {}),
        )

    return collected(
        [answer(number, row) for number, row in rows],
        probability=f"{WORDS[probability]}; right by {scored!r}",
        where=str(path),
    )


def _of_one_filter(
    path: Path, rows: list[tuple[int, Row]], filter: str | None
) -> list[tuple[int, Row]]:
    filters = list(dict.fromkeys(str(row.get("filter", "none")) for _, row in rows))
    if filter is None and len(filters) > 1:
        raise InputError(
            f"{path} scores each answer by {len(filters)} filters: {', '.join(map(repr, filters))}. "
            "Choose one with `filter=`."
        )
    if filter is not None and filter not in filters:
        raise InputError(f"{path} has the filters {', '.join(map(repr, filters))}; got {filter!r}.")
    wanted = filter or (filters[0] if filters else None)
    return [(number, row) for number, row in rows if str(row.get("filter", "none")) == wanted]


def _metric(path: Path, row: Row, probability: str, metric: str | None) -> str:
    known = (metric,) if metric is not None else METRICS[probability]
    for name in known:
        if name in row:
            return name
    metrics = row.get("metrics")
    present = metrics if isinstance(metrics, list) else _numeric_fields(row)
    raise InputError(
        f"{path} must score its samples by {' or '.join(map(repr, known))}; it has "
        f"{', '.join(map(repr, present)) or 'no metric'}. Name one with `correct=`."
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


def _share(row: Row, where: str, *, per_character: bool) -> float:
    scores, choices = _likelihoods(row), _choices(row)
    if _is_repeated_without_context(row, scores):  # for acc_mutual_info
        scores, choices = scores[: len(scores) // 2], choices[: len(choices) // 2]
    if len(scores) < 2 or not all(math.isfinite(score) for score in scores):
        raise InputError(
            f"{where} must have the finite log-likelihoods of at least two choices in "
            f"'filtered_resps'; it has {len(scores)}. A probability of one given text says nothing "
            "of the answer that the model would have chosen."
        )
    if per_character:
        if len(choices) != len(scores) or len(set(choices)) < 2 or not all(choices):
            raise InputError(
                f"{where} must give the text of each choice in 'arguments', after the prompt; it does "
                'not. `probability="choices"` goes without it.'
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
