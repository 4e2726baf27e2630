"""Evaluation logs of several tools, as answers with probabilities."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, get_args

from calibrant._arguments import require_choice
from calibrant._files import decoding
from calibrant.errors import InputError, TypeName
from calibrant.io.answers.answers import Answers
from calibrant.io.answers.confidence import Form, Values
from calibrant.io.answers.lines import opened
from calibrant.io.find_files import unchanged_file

__all__ = ["FORMATS", "log_format", "read_answers"]

FORMATS = ("lm-eval", "inspect", "openai-evals", "helm", "jsonl")
"""What `read_answers` reads: samples of lm-evaluation-harness, logs of Inspect and of OpenAI's evals, runs of
HELM, plain JSON lines."""

OPTION_OF = {"lm-eval": "filter", "jsonl": "question"}
"""The option that only this format has."""
PEEK_BYTES = 1 << 20
ASKED = ("question_id", "qid", "doc_id", "question")
JUDGED = ("correct", "is_correct", "judge_response")
"""Fields that tell a log of answers from a table of rows."""


def read_answers(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    probability: str | None = None,
    correct: str | None = None,
    question: str | None = None,
    filter: str | None = None,
    form: Form = "probability",
    words: Mapping[str, float] | None = None,
    score_range: tuple[float, float] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Answers:
    """Read an evaluation log: which answers were right, and how sure the model was of each.

    Parameters
    ----------
    path : path
        A `samples_*.jsonl` of lm-evaluation-harness, an Inspect log (`.eval` or `.json`), a log of OpenAI's
        evals, the `scenario_state.json` of a HELM run, or JSON lines with a confidence and whether the
        answer was right; `.gz` as well.
    format : {"lm-eval", "inspect", "openai-evals", "helm", "jsonl"}, optional
        Found from the file unless given.
    probability : str, optional
        Which one, where a log has several. lm-eval: ``"choices"`` (the share of the chosen answer in the
        likelihoods of all choices), ``"normalised"`` (the same, likelihoods per character, as
        `acc_norm` has them) or ``"stated"`` (in the text, as in "Confidence: 85%"). Inspect:
        ``"metadata"``, ``"stated"`` or ``"tokens"`` (the token probabilities, by `form`). OpenAI's evals:
        ``"stated"``. HELM: ``"tokens"``. JSON lines: the name of the field; ``"judge.confidence"``
        is a field inside another.
    correct : str, optional
        The metric of lm-eval, the scorer of Inspect, the field of JSON lines that says whether an answer
        was right.
    question : str, optional
        The field of JSON lines that names the question.
    filter : str, optional
        The answer filter of lm-eval, where a log has several.
    form : {"probability", "percent", "sum", "mean", "token", "choices", "agreement"}
        How the confidence is written: a probability (or text such as "85%", "8 out of 10"); a number from
        0 to 100; log-probabilities of the answer's tokens, as their product, geometric mean, or that of the
        first token; log-probabilities of the options, as the share of the chosen one; or sampled answers,
        as the share that agree.
    words : mapping, optional
        What words stand for: ``{"very likely": 0.9}``. No word is a number unless you say so.
    score_range : (float, float), optional
        The lowest and the highest score that a judge can give; they become 0 and 1.
    on_invalid : {"raise", "drop"}
        A confidence or a score that cannot be read, such as "high", is an error, or infinite: then
        `assess(..., on_invalid="drop")` leaves it out and counts it.

    Notes
    -----
    Answers to one question are a cluster: pass ``cluster=answers.cluster``. Partial credit needs
    ``labels="soft"``. Abstentions are counted in ``answers.abstained`` and left out: a model that
    declines every hard question looks well calibrated, so read both numbers. Answers without a
    confidence, or with one that cannot be read, are counted in ``without_confidence`` and ``unreadable``.
    The log is read line by line, twice; only its columns are held.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "answers.jsonl"
    >>> _ = path.write_text('{"question_id": 1, "confidence": "85%", "correct": true}')
    >>> answers = read_answers(path)
    >>> answers.y_prob, answers.probability
    (array([0.85]), "the field 'confidence'")
    """
    _require_file(path)
    chosen = format or log_format(path) or "jsonl"
    if chosen not in FORMATS:
        raise InputError(
            "must be one of {known}",
            argument="format",
            seen=chosen,
            known=", ".join(FORMATS),
            cure="Leave it out to let the file decide.",
        )
    if form not in get_args(Form):
        raise InputError(
            "must be one of {known}",
            argument="form",
            seen=form,
            known=", ".join(get_args(Form)),
            cure="Leave it out to let the file decide.",
        )
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    values = Values(form, words=words, score_range=score_range, lenient=on_invalid == "drop")
    options = {"probability": probability, "correct": correct}
    for name, value in {"question": question, "filter": filter}.items():
        if OPTION_OF.get(chosen) == name:
            options[name] = value
        elif value is not None:
            raise InputError(
                "does not apply to logs of the format {format}",
                argument=name,
                seen=value,
                format=repr(chosen),
                cure="Leave it out.",
            )
    with decoding("a log of answers", path), unchanged_file(path):
        return _reader(chosen)(Path(path), values, **options)


def _require_file(path: str | os.PathLike[str]) -> None:
    if not isinstance(path, str | os.PathLike):
        raise InputError(
            "must be the path of a log",
            argument="path",
            seen=TypeName.of(path),
            cure="Pass the name of a file.",
        )
    if not os.path.isfile(path):
        what = "it is a folder" if os.path.isdir(path) else "there is none"
        raise InputError(
            "must name a file",
            argument="path",
            seen=os.fspath(path),
            saying="{}: {what}",
            what=what,
            cure="Check the path; a log is one file.",
        )


def _reader(format: str) -> Callable[..., Answers]:
    if format == "inspect":
        from calibrant.io.answers.inspect_log import inspect_answers

        return inspect_answers
    if format == "lm-eval":
        from calibrant.io.answers.lm_eval import lm_eval_answers

        return lm_eval_answers
    if format == "openai-evals":
        from calibrant.io.answers.openai_evals import openai_evals_answers

        return openai_evals_answers
    if format == "helm":
        from calibrant.io.answers.helm import helm_answers

        return helm_answers
    from calibrant.io.answers.plain import plain_answers

    return plain_answers


def log_format(path: str | os.PathLike[str]) -> str | None:
    """The kind of log that a file is, from its ending and its first object; None for any other."""
    name = os.fspath(path).lower()
    if name.endswith(".eval"):
        return "inspect"
    stem = name.removesuffix(".gz")
    if not stem.endswith((".json", ".jsonl", ".ndjson")):
        return None
    with decoding("a log of answers", path), opened(path) as file:
        head = file.read(PEEK_BYTES)
    if stem.endswith(".json"):
        if b'"adapter_spec"' in head and b'"request_states"' in head:
            return "helm"
        return "inspect" if b'"samples"' in head and b'"eval"' in head else None
    first = head.lstrip().split(b"\n", 1)[0]
    if b'"filtered_resps"' in first:
        return "lm-eval"
    return _format_of(first)


def _format_of(line: bytes) -> str | None:
    """The kind of log by its first line.

    A run of OpenAI's evals starts with its specification; an answer names a question, which rows of a
    table do not, and says whether it was right.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    if isinstance(row.get("spec"), dict) and "completion_fns" in row["spec"]:
        return "openai-evals"
    asked = not row.keys().isdisjoint(ASKED) or row.keys() >= {"id", "confidence"}
    return "jsonl" if asked and not row.keys().isdisjoint(JUDGED) else None
