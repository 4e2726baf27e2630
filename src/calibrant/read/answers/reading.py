"""Evaluation logs of several tools, as answers with probabilities."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from calibrant.errors import InputError
from calibrant.read.answers.answers import Answers

__all__ = ["FORMATS", "log_format", "read_answers"]

FORMATS = ("lm-eval", "inspect", "jsonl")
"""What `read_answers` reads: samples of lm-evaluation-harness, logs of Inspect, plain JSON lines."""

OPTION_OF = {"lm-eval": "filter", "jsonl": "question"}
"""The option that only this format has."""
PEEK_BYTES = 1 << 20
Lines = Iterator[tuple[int, dict[str, Any]]]


def read_answers(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    probability: str | None = None,
    correct: str | None = None,
    question: str | None = None,
    filter: str | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Answers:
    """Read an evaluation log: which answers were right, and how probable the model held that.

    Parameters
    ----------
    path : path
        A `samples_*.jsonl` of lm-evaluation-harness, an Inspect log (`.eval` or `.json`), or JSON lines
        with a confidence and whether the answer was right; `.gz` as well.
    format : {"lm-eval", "inspect", "jsonl"}, optional
        Found from the file unless given.
    probability : str, optional
        Which one, where a log has several. lm-eval: ``"choices"`` (the share of the chosen answer in the
        likelihoods of all choices), ``"normalised"`` (the same, likelihoods per character, as
        `acc_norm` has them) or ``"stated"`` (in the text, as in "Confidence: 85%"). Inspect:
        ``"metadata"``, ``"stated"`` or ``"tokens"`` (the product of the token probabilities). JSON
        lines: the name of the field.
    correct : str, optional
        The metric of lm-eval, the scorer of Inspect, the field of JSON lines that says who was right.
    question : str, optional
        The field of JSON lines that names the question.
    filter : str, optional
        The answer filter of lm-eval, where a log has several.
    on_invalid : {"raise", "drop"}
        A confidence or a score that cannot be read, such as "high", is an error, or infinite: then
        `assess(..., on_invalid="drop")` leaves it out and counts it.

    Notes
    -----
    Answers to one question are a cluster: pass ``cluster=answers.cluster``. Partial credit needs
    ``labels="soft"``. Abstentions are counted in ``answers.abstained`` and left out: a model that
    declines every hard question looks well calibrated, so read both numbers.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "answers.jsonl"
    >>> _ = path.write_text('{"question_id": 1, "confidence": "85%", "correct": true}')
    >>> answers = read_answers(path)
    >>> answers.y_prob, answers.probability
    (array([0.85]), "the field 'confidence'")
    """
    chosen = format or log_format(path) or "jsonl"
    if chosen not in FORMATS:
        raise InputError(f"`format` must be one of {', '.join(FORMATS)}; got {chosen!r}.")
    options = {"probability": probability, "correct": correct}
    for name, value in {"question": question, "filter": filter}.items():
        if OPTION_OF.get(chosen) == name:
            options[name] = value
        elif value is not None:
            raise InputError(
                f"`{name}` does not apply to logs of the format {chosen!r}; leave it out."
            )
    return _reader(chosen)(Path(path), on_invalid=on_invalid, **options)


def _reader(format: str) -> Callable[..., Answers]:
    if format == "inspect":
        from calibrant.read.answers.inspect_log import inspect_answers

        return inspect_answers
    if format == "lm-eval":
        from calibrant.read.answers.lm_eval import lm_eval_answers

        return lm_eval_answers
    from calibrant.read.answers.plain import plain_answers

    return plain_answers


def log_format(path: str | os.PathLike[str]) -> str | None:
    """The kind of log that a file is, from its ending and its first object; None for any other."""
    name = os.fspath(path).lower()
    if name.endswith(".eval"):
        return "inspect"
    stem = name.removesuffix(".gz")
    if not stem.endswith((".json", ".jsonl", ".ndjson")):
        return None
    with _opened(path) as file:
        head = file.read(PEEK_BYTES)
    if stem.endswith(".json"):
        return "inspect" if b'"samples"' in head and b'"eval"' in head else None
    return "lm-eval" if b'"filtered_resps"' in head.split(b"\n", 1)[0] else None


def json_lines(path: str | os.PathLike[str]) -> Lines:
    """The objects of a file of JSON lines, each with the number of its line."""
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{os.fspath(path)} must be a log in JSON; it is not text. A table of rows, such as "
                    "Parquet, is read without `format`."
                ) from error
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"{os.fspath(path)}, line {number} is not JSON: {error}"
                ) from error
            if not isinstance(row, dict):
                raise InputError(
                    f"{os.fspath(path)}, line {number} must be an object; it is {str(row)[:60]!r}."
                )
            yield number, row


def _opened(path: str | os.PathLike[str]) -> Any:
    return gzip.open(path) if os.fspath(path).endswith(".gz") else open(path, "rb")
