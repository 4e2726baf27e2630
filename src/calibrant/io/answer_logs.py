"""Evaluation logs of several tools: the answers that each holds, and the names of its fields."""

from __future__ import annotations

import gzip
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from calibrant._files import json_of
from calibrant._optional import require
from calibrant.errors import InputError, show_value
from calibrant.io.confidence import (
    FORMS,
    Values,
    from_log_probabilities,
    is_refusal,
    share_of_choice,
)
from calibrant.io.files import LONGEST_LINE
from calibrant.io.text import field_of

PEEK_BYTES = 1 << 20
Row = dict[str, Any]

PLAIN: dict[str, tuple[str, ...]] = {
    "probability": (
        *("confidence", "answer_probability", "probability", "prob", "p", "stated_confidence"),
        "judge_response.confidence",
    ),
    "logs": ("logprobs", "logprob", "token_logprobs", "choice_logprobs", "option_logprobs"),
    "options": ("choices", "options"),
    "samples": ("samples", "sampled_answers", "answers", "responses"),
    "correct": ("correct", "is_correct", "y", "label", "score", "judge_response.correct"),
    "question": ("question_id", "qid", "doc_id", "question", "id"),
    "answer": ("answer", "response"),
    "groups": ("model", "task", "subject", "dataset", "llm", "qset"),
}
"""Names of fields of plain JSON lines, in the order in which they are looked for."""


@dataclass(frozen=True)
class Entry:
    """Answer of a log, with all that the log says of it.

    Attributes
    ----------
    question : object
        Its id, where it has one.
    confidences, scores : mapping
        By the names among which `probability` and `correct` choose. A confidence is a function that reads it,
        or such functions by the names of the scores; in plain lines it is the field.
    abstained : bool
        The model declined to answer.
    groups : mapping of str to str
        Such as model and task.
    task : str, optional
        Of which ids of questions are part.
    filter : str, optional
        By which answers were taken from the text.
    """

    question: Any
    confidences: Mapping[str, Any]
    scores: Mapping[str, Any]
    abstained: bool = False
    groups: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    filter: str | None = None


@dataclass(frozen=True)
class Log:
    """Format of a log.

    Attributes
    ----------
    entries : callable
        From a path, and the reader of its values, to the place and the entry of each answer.
    question : str
        The field that names the question.
    confidences : mapping of str to str
        Names of the confidences in words, in the order in which they are looked for.
    scores : mapping
        From the name of a confidence to names of the scores that say whether such an answer was right;
        without any, the only one that there is.
    forms : tuple of str
        In which confidences may be written.
    options : tuple of str
        Arguments of `read_answers` that this format takes.
    """

    entries: Callable[[Path, Values], Iterator[tuple[str, Entry]]]
    question: str
    confidences: Mapping[str, str]
    scores: Mapping[str, tuple[str, ...]]
    forms: tuple[str, ...]
    options: tuple[str, ...] = ("probability", "correct")


def _object(row: Any, name: str) -> Row:
    value = field_of(row, name)
    return value if isinstance(value, dict) else {}


def _list(row: Any, name: str) -> list[Any]:
    value = field_of(row, name)
    return value if isinstance(value, list) else []


def _text(value: Any, at: int) -> str | None:
    """Text inside of lists, the first or the last of each."""
    while isinstance(value, list):
        value = value[at] if value else None
    return value if isinstance(value, str) else None


@contextmanager
def at(place: str, file: str) -> Iterator[None]:
    """Errors with the line or the sample of a log at which they arose."""
    try:
        yield
    except InputError as error:
        if error.file is not None:
            raise
        message = f"{error.message.rstrip('.')} ({place} of {file})."
        raise InputError(message, argument=error.argument, file=file, hint=error.hint) from error


# -- lm-evaluation-harness ---------------------------------------------------------------------


def lm_eval_entries(path: Path, values: Values) -> Iterator[tuple[str, Entry]]:
    """Answers of a sample log (`--log_samples`): likelihoods of the choices, or text."""
    stem = path.name.split(".jsonl")[0]
    match = re.fullmatch(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT.*)?", stem)
    groups, folder = {"task": match[1] if match else stem}, path.resolve().parent.name
    if "__" in folder.strip("_"):  # slashes in the model's name are written so
        groups["model"] = folder.replace("__", "/")
    for place, row in json_lines(path):
        text = _text(row.get("resps"), 0) or ""
        confidences = {"stated": partial(values.stated, text)}
        if choices := _likelihoods(row):
            logs = [log for log, _ in choices]
            confidences["choices"] = partial(share_of_choice, logs)
            confidences["normalised"] = partial(_per_character, choices)
        numbers = {k: v for k, v in row.items() if isinstance(v, bool | int | float)}
        declined = not choices and is_refusal(text)
        asked, by = row.get("doc_id"), str(row.get("filter", "none"))
        yield place, Entry(asked, confidences, numbers, declined, groups, groups["task"], by)


def _likelihoods(row: Row) -> list[tuple[float, str]]:
    """Log-likelihood and text of each choice; none where the task generates text.

    The harness writes a pair (log-likelihood, is greedy) for each choice, as numbers or as text, and what it
    asked, the prompt and the continuation, as lists or, in files, as dicts. Choices that are asked again
    without the question, for `acc_mutual_info`, do not count.
    """
    logs = []
    for pair in _list(row, "filtered_resps"):
        is_pair = isinstance(pair, list) and len(pair) == 2
        if not is_pair or str(pair[1]) not in ("True", "False", "0", "1", "0.0", "1.0"):
            return []
        try:
            logs.append(float(pair[0]))
        except (TypeError, ValueError):
            return []
    asked = row.get("arguments")
    asked = list(asked.values()) if isinstance(asked, dict) else asked or []
    parts = [list(one.values()) if isinstance(one, dict) else one for one in asked]
    texts = [[_text(part, 0) or "" for part in one] for one in parts if isinstance(one, list)]
    prompts, continuations = ([one[k] if len(one) > k else "" for one in texts] for k in (0, 1))
    half = len(logs) // 2
    again = any(prompts[:half]) and not any(prompts[half:])
    if again and len(logs) == len(prompts) == 2 * half >= 4:
        logs = logs[:half]
    return list(zip(logs, [*continuations, *[""] * len(logs)], strict=False))


def _per_character(choices: list[tuple[float, str]]) -> float | None:
    lengths = [len(text.strip()) for _, text in choices]
    if not all(lengths) or len({text.strip() for _, text in choices}) < 2:
        raise InputError("A sample must give the text of each choice in 'arguments'.")
    return share_of_choice([log / n for (log, _), n in zip(choices, lengths, strict=True)])


# -- OpenAI's evals ----------------------------------------------------------------------------


def openai_evals_entries(path: Path, values: Values) -> Iterator[tuple[str, Entry]]:
    """Answers of a log of OpenAI's evals: each match, with what was sampled last for the question."""
    groups: dict[str, str] = {}
    sampled: dict[str, str | None] = {}
    for place, row in json_lines(path):
        if isinstance(row.get("spec"), dict):
            about = {"task": "spec.eval_name", "model": "spec.completion_fns.0"}
            groups = {
                k: v for k, name in about.items() if isinstance(v := field_of(row, name), str)
            }
        event, question, data = row.get("type"), row.get("sample_id"), row.get("data")
        text = _text(field_of(data, "sampled"), -1)
        if event == "sampling" and isinstance(data, dict):
            sampled[str(question)] = text
        elif event == "match" and isinstance(data, dict):
            before = sampled.pop(str(question), None)
            text = before if text is None else text
            stated = {} if text is None else {"stated": partial(values.stated, text)}
            declined = text is not None and is_refusal(text)
            yield place, Entry(question, stated, data, declined, groups)


# -- HELM --------------------------------------------------------------------------------------


def helm_entries(path: Path, values: Values) -> Iterator[tuple[str, Entry]]:
    """Answers of a run of HELM: the log-probability of the completion, and the reference it chooses.

    A request that failed has neither. HELM writes 0 where a model gives no log-probability.
    """
    run = document(path, "a run of HELM")
    about, states = _object(run, "adapter_spec"), _list(run, "request_states")
    if not about or not states or not all(isinstance(state, dict) for state in states):
        raise InputError(
            f"{path} is not a run of HELM: it must hold 'adapter_spec' and a list of 'request_states'.",
            file=str(path),
            hint="Give the `scenario_state.json` of a run folder.",
        )
    completions = [_completion(state) for state in states]
    logs = [completion.get("logprob") for completion in completions]
    has_logs = any(isinstance(log, int | float) and log < 0 for log in logs)
    groups = {"model": about["model"]} if isinstance(about.get("model"), str) else {}
    # Folders are named such as mmlu:subject=anatomy,model=acme_small.
    scenario, _, options = path.absolute().parent.name.partition(":")
    if any(part.startswith("model=") for part in options.split(",")):
        own = [o for o in options.split(",") if not o.startswith(("model=", "model_deployment="))]
        groups["task"] = f"{scenario}:{','.join(own)}" if own else scenario
    for number, (state, completion, log) in enumerate(zip(states, completions, logs, strict=True)):
        question = field_of(state, "instance.id")
        place = f"request {number} (instance {show_value(question)})"
        with at(place, str(path)):
            chosen, right = _chosen(state, completion, about.get("output_mapping_pattern"))
        worked = field_of(state, "result.success") is True
        known = has_logs and worked and log is not None
        tokens = {"tokens": partial(from_log_probabilities, log, "sum")} if known else {}
        is_scored = worked and chosen is not None and right
        scores = {"correct": float(chosen in right) if is_scored else None}
        declined, task = worked and chosen is None, groups.get("task")
        yield place, Entry(question, tokens, scores, declined, groups, task)


def _completion(state: Any) -> Row:
    """Completion that HELM scores: the most probable one, the first of equals."""

    def log_of(completion: Row) -> float:
        log = completion.get("logprob")
        return float(log) if isinstance(log, int | float) and abs(log) < 1e300 else 0.0

    found = [c for c in _list(state, "result.completions") if isinstance(c, dict)]
    return max(found, key=log_of, default={})


def _chosen(state: Row, completion: Row, pattern: Any) -> tuple[str | None, list[Any]]:
    """Text of the option that a completion names, None where it names none, and the right options."""
    options = _object(state, "output_mapping")
    if not options or state.get("reference_index") is not None:
        raise InputError(
            "A run of HELM must ask multiple-choice questions with all options in one request.",
            hint="Run the scenario with `method=multiple_choice_joint`.",
        )
    label = (_text(completion.get("text"), 0) or "").strip()
    if pattern:
        try:
            match = re.search(pattern, label)
        except (re.error, TypeError, RecursionError) as error:
            raise InputError(
                f"'output_mapping_pattern' must be a regular expression: {error}."
            ) from error
        label = "" if match is None else match[1 if match.re.groups else 0] or ""
    references = _list(state, "instance.references")
    texts = [field_of(reference, "output.text") for reference in references]
    tagged = zip(texts, references, strict=True)
    right = [text for text, reference in tagged if "correct" in _list(reference, "tags")]
    option = options.get(label)
    return (option if isinstance(option, str) and option in texts else None), right


# -- Inspect -----------------------------------------------------------------------------------


def inspect_entries(path: Path, values: Values) -> Iterator[tuple[str, Entry]]:
    """Answers of a log of Inspect; epochs of one sample are one question."""
    parts = _inspect_parts(path)
    about = _object(next(parts), "eval")
    groups: dict[str, str] = {k: str(about[k]) for k in ("model", "task") if k in about}
    for sample in parts:
        sample = sample if isinstance(sample, dict) else {}
        scores = _object(sample, "scores")
        text = field_of(sample, "output.choices.0.message.content")
        if isinstance(text, list):
            text = "\n".join(str(field_of(part, "text") or "") for part in text)
        metadata = {
            name: partial(values.confidence, own[stated])
            for name in scores
            for own in [_object(scores[name], "metadata")]
            for stated in ("p", "prob", "probability", "confidence")
            if own.get(stated) is not None
        }
        tokens = field_of(sample, "output.choices.0.logprobs.content")
        form = values.form if values.form in ("mean", "token") else "sum"
        confidences = {
            "metadata": metadata or None,
            "stated": partial(values.stated, text) if isinstance(text, str) else None,
            "tokens": partial(from_log_probabilities, tokens, form) if tokens else None,
        }
        credits = {name: field_of(score, "value") for name, score in scores.items()}
        question = sample.get("id")
        declined = not sample.get("error") and is_refusal(text)
        place, task = f"sample {show_value(question)}", groups.get("task", path.stem)
        yield place, Entry(question, confidences, credits, declined, groups, task)


def _inspect_parts(path: Path) -> Iterator[Any]:
    """Header of a log, which says whose it is, and then its samples, one at a time."""
    if not zipfile.is_zipfile(path):
        log = document(path, "an Inspect log")
        yield log
        yield from _list(log, "samples")
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            headers = [n for n in ("header.json", "_journal/start.json") if n in names]
            yield _member(archive, headers[0]) if headers else {}
            for name in sorted(names):
                if name.startswith("samples/") and name.endswith(".json"):
                    yield _member(archive, name)
    except InputError:
        raise
    except Exception as error:  # damaged bytes may raise anything
        raise InputError(
            f"{path} is not an Inspect log that can be read ({error}).",
            file=str(path),
            hint="Convert it with `inspect log convert --to json` and read that.",
        ) from error


def _member(archive: zipfile.ZipFile, name: str) -> Row:
    """Object in a member; Inspect packs with Zstandard, which Python's reader may not know."""
    member = archive.getinfo(name)
    if member.file_size > LONGEST_LINE:
        raise InputError(f"A sample must unpack to at most {LONGEST_LINE >> 20} MB.")
    if member.compress_type != 93:
        content = archive.read(member)
    else:
        pyarrow = require("pyarrow", caller="reading an Inspect log")
        with open(str(archive.filename), "rb") as file:
            file.seek(member.header_offset)
            file.seek(sum(struct.unpack("<26x2H", file.read(30))), os.SEEK_CUR)
            packed = file.read(member.compress_size)
        content = pyarrow.decompress(packed, member.file_size, codec="zstd", asbytes=True)
        if zlib.crc32(content) != member.CRC:
            raise ValueError(f"the checksum of {name} does not match")
    value = json_of(content)
    if not isinstance(value, dict):
        raise ValueError(f"{name} is no object")
    return value


# -- plain JSON lines --------------------------------------------------------------------------


def plain_entries(path: Path, values: Values) -> Iterator[tuple[str, Entry]]:
    """Answers of JSON lines: every field is a confidence or a score, if it is named as such."""
    for place, row in json_lines(path):
        named = ((name, row.get(name)) for name in PLAIN["groups"])
        groups = {name: str(v) for name, v in named if v is not None and v == v}
        answers = [row[name] for name in PLAIN["answer"] if name in row]
        yield place, Entry(None, row, row, bool(answers) and all(map(is_refusal, answers)), groups)


# -- JSON --------------------------------------------------------------------------------------


def opened(path: str | os.PathLike[str]) -> Any:
    """Open file, unpacked where its name ends in .gz."""
    return gzip.open(path) if os.fspath(path).endswith(".gz") else open(path, "rb")


def json_lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, Row]]:
    """Objects of a file of JSON lines, each with the number of its line, as in "line 3"."""
    number = 0
    with opened(path) as file:
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if line.strip():
                with at(f"line {number}", str(path)):
                    if len(line) > LONGEST_LINE:
                        raise InputError(
                            f"A line of a log must have at most {LONGEST_LINE >> 20} MB."
                        )
                    row = _object_in(line, "A line of a log must be a JSON object")
                yield f"line {number}", row


def document(path: Path, what: str) -> Row:
    """Object that a file holds; anything else is refused as not `what`."""
    with opened(path) as file:
        content = file.read()
    try:
        return _object_in(content, f"{path} is not {what}")
    except InputError as error:
        raise error.at(file=str(path)) from error


def _object_in(text: bytes, rule: str) -> Row:
    try:
        value = json_of(text)
    except (ValueError, RecursionError) as error:
        what = "it is no text" if isinstance(error, UnicodeDecodeError) else error
        raise InputError(f"{rule}: {what}.") from error
    if not isinstance(value, dict):
        raise InputError(f"{rule}; got {show_value(value)}.")
    return value


# -- formats -----------------------------------------------------------------------------------

_STATED = "confidence stated in the text"
_TEXT_FORMS = ("probability", "percent")
LOGS = {
    "lm-eval": Log(
        lm_eval_entries,
        "doc_id",
        {
            "choices": "share of the chosen answer in the likelihoods of all choices",
            "stated": _STATED,
            "normalised": "share of the chosen answer in the likelihoods per character of all choices",
        },
        {
            "choices": ("acc",),
            "normalised": ("acc_norm",),
            "stated": ("exact_match", "acc", "pass@1", "correct"),
        },
        _TEXT_FORMS,
        ("probability", "correct", "filter"),
    ),
    "inspect": Log(
        inspect_entries,
        "id",
        {
            "metadata": "confidence in the score's metadata",
            "stated": "confidence stated in the answer",
            "tokens": FORMS["sum"],
        },
        {},
        (*_TEXT_FORMS, "sum", "mean", "token"),
    ),
    "openai-evals": Log(
        openai_evals_entries,
        "sample_id",
        {"stated": _STATED},
        {"stated": ("correct",)},
        _TEXT_FORMS,
    ),
    "helm": Log(
        helm_entries,
        "instance.id",
        {"tokens": FORMS["sum"]},
        {"tokens": ("correct",)},
        ("probability", "sum"),
        ("probability",),
    ),
    "jsonl": Log(plain_entries, "", {}, {}, tuple(FORMS), ("probability", "correct", "question")),
}
"""Formats of logs by name; the plain one looks for the names of fields in `PLAIN`."""


def log_format(path: str | os.PathLike[str]) -> str | None:
    """Kind of log that a file is, from its ending and its first object; None for any other."""
    name = os.fspath(path).lower()
    if name.endswith(".eval"):
        return "inspect"
    stem = name.removesuffix(".gz")
    if not stem.endswith((".json", ".jsonl", ".ndjson")):
        return None
    is_document = stem.endswith(".json")
    try:
        with opened(path) as file:
            head = file.read(PEEK_BYTES) if is_document else file.readline(PEEK_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read: {error}.", file=os.fspath(path)) from error
    if is_document:
        if b'"adapter_spec"' in head and b'"request_states"' in head:
            return "helm"
        return "inspect" if b'"samples"' in head and b'"eval"' in head else None
    if b'"filtered_resps"' in head:
        return "lm-eval"
    try:
        return format_of_row(_object_in(head, ""))
    except InputError:
        return None


def format_of_row(row: Row) -> str | None:
    """Kind of log whose first line is this; None for a row of a table."""
    if "filtered_resps" in row:
        return "lm-eval"
    # A run of OpenAI's evals starts with its specification; an answer names a question, which rows of a
    # table do not, and says whether it was right.
    if field_of(row, "spec.completion_fns") is not None:
        return "openai-evals"
    asks = not row.keys().isdisjoint(("question_id", "qid", "doc_id", "question"))
    judged = not row.keys().isdisjoint(("correct", "is_correct", "judge_response"))
    return "jsonl" if judged and (asks or row.keys() >= {"id", "confidence"}) else None
