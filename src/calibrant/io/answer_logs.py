"""Evaluation logs of several tools: for each a table of field names, and the answers that its rows hold."""

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
from calibrant.io.confidence import FORMS, is_refusal
from calibrant.io.files import LONGEST_LINE

PEEK_BYTES = 1 << 20
Row = dict[str, Any]

LM_EVAL: dict[str, str] = {
    "question": "doc_id",
    "filter": "filter",
    "likelihoods": "filtered_resps",
    "requests": "arguments",
    "text": "resps",
}
INSPECT: dict[str, Any] = {
    "headers": ("header.json", "_journal/start.json"),
    "samples": "samples",
    "question": "id",
    "scores": "scores",
    "confidence": ("confidence", "probability", "prob", "p"),
    "text": "output.choices.0.message.content",
    "tokens": "output.choices.0.logprobs.content",
    "groups": ("model", "task"),
}
OPENAI_EVALS = {"question": "sample_id", "answer": "match", "asked": "sampling", "text": "sampled"}
HELM = {
    "samples": "request_states",
    "about": "adapter_spec",
    "question": "instance.id",
    "options": "output_mapping",
    "references": "instance.references",
    "completions": "result.completions",
    "log": "logprob",
    "correct": "correct",
}
PLAIN: dict[str, Any] = {
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


@dataclass(frozen=True)
class Entry:
    """Answer of a log, with all that the log says of it.

    Attributes
    ----------
    question : object
        Its id, where it has one.
    confidences, scores : mapping
        By the names among which `probability` and `correct` choose. A function gives its value when called;
        the confidence in the metadata of scores stands under their names.
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
        From a path to the place and the entry of each answer.
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

    entries: Callable[[Path], Iterator[tuple[str, Entry]]]
    question: str
    confidences: Mapping[str, str]
    scores: Mapping[str, tuple[str, ...]]
    forms: tuple[str, ...]
    options: tuple[str, ...] = ("probability", "correct")


def field_of(row: Any, name: str) -> Any:
    """Field by its name, or by a path such as "judge.confidence" or "choices.0.logprobs"; None without it."""
    if isinstance(row, dict) and name in row:
        return row[name]
    for part in name.split("."):
        if isinstance(row, list) and part.isdecimal() and len(part) < 10:
            row = row[int(part)] if int(part) < len(row) else None
        else:
            row = row.get(part) if isinstance(row, dict) else None
    return row


def _object(row: Any, name: str) -> Row:
    value = field_of(row, name)
    return value if isinstance(value, dict) else {}


def _list(row: Any, name: str) -> list[Any]:
    value = field_of(row, name)
    return value if isinstance(value, list) else []


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


def lm_eval_entries(path: Path) -> Iterator[tuple[str, Entry]]:
    """Answers of a sample log (`--log_samples`): likelihoods of the choices, or text."""
    stem = path.name.split(".jsonl")[0]
    match = re.fullmatch(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT.*)?", stem)
    groups, folder = {"task": match[1] if match else stem}, path.resolve().parent.name
    if "__" in folder.strip("_"):  # slashes in the model's name are written so
        groups["model"] = folder.replace("__", "/")
    for place, row in json_lines(path):
        scores, texts = _likelihoods(row)
        text: Any = row.get(LM_EVAL["text"])
        while isinstance(text, list) and text:
            text = text[0]
        text = text if isinstance(text, str) else ""
        confidences = {
            "choices": scores or None,
            "normalised": partial(_per_character, scores, texts),
            "stated": text,
        }
        numbers = {k: v for k, v in row.items() if isinstance(v, bool | int | float)}
        declined = not scores and is_refusal(text)
        asked, by = row.get(LM_EVAL["question"]), str(row.get(LM_EVAL["filter"], "none"))
        yield place, Entry(asked, confidences, numbers, declined, groups, groups["task"], by)


def _likelihoods(row: Row) -> tuple[list[float], list[list[str]]]:
    """Log-likelihoods of the choices, and what was asked for each; none where the task generates text.

    The harness writes a pair (log-likelihood, is greedy) for each choice, as numbers or as text. Choices that
    are asked again without the question, for `acc_mutual_info`, do not count.
    """
    scores = []
    for pair in _list(row, LM_EVAL["likelihoods"]):
        is_pair = isinstance(pair, list) and len(pair) == 2
        if not is_pair or str(pair[1]) not in ("True", "False", "0", "1", "0.0", "1.0"):
            return [], []
        try:
            scores.append(float(pair[0]))
        except (TypeError, ValueError):
            return [], []
    requests = row.get(LM_EVAL["requests"])
    texts = []  # the prompt and the continuation of each request, as lists or, in files, as dicts
    for request in requests.values() if isinstance(requests, dict) else requests or ():
        parts = list(request.values()) if isinstance(request, dict) else request
        parts = parts if isinstance(parts, list) else []
        texts.append([part if isinstance(part, str) else "" for part in [*parts, "", ""][:2]])
    half = len(scores) // 2
    asks = [bool(prompt) for prompt, _ in texts]
    if any(asks[:half]) and not any(asks[half:]) and len(scores) == len(texts) == 2 * half >= 4:
        return scores[:half], texts[:half]
    return scores, texts


def _per_character(scores: list[float], texts: list[list[str]]) -> list[float]:
    choices = [choice.strip() for _, choice in texts]
    if len(choices) != len(scores) or len(set(choices)) < 2 or not all(choices):
        raise InputError(f"A sample must give the text of each choice in {LM_EVAL['requests']!r}.")
    return [score / len(choice) for score, choice in zip(scores, choices, strict=True)]


# -- OpenAI's evals ----------------------------------------------------------------------------


def openai_evals_entries(path: Path) -> Iterator[tuple[str, Entry]]:
    """Answers of a log of OpenAI's evals: each match, with what was sampled last for the question."""
    groups: dict[str, str] = {}
    sampled: dict[str, Any] = {}
    for place, row in json_lines(path):
        if isinstance(row.get("spec"), dict):
            names = {"task": "eval_name", "model": "completion_fns.0"}
            about = {name: field_of(row["spec"], source) for name, source in names.items()}
            groups = {name: value for name, value in about.items() if isinstance(value, str)}
        data, event, question = row.get("data"), row.get("type"), row.get(OPENAI_EVALS["question"])
        if isinstance(data, dict) and event in (OPENAI_EVALS["answer"], OPENAI_EVALS["asked"]):
            text = data.get(OPENAI_EVALS["text"])
            while isinstance(text, list):
                text = text[-1] if text else None
            if event == OPENAI_EVALS["asked"]:
                sampled[str(question)] = text
                continue
            before = sampled.pop(str(question), None)
            text = before if text is None else text
            stated = {"stated": text if isinstance(text, str) else None}
            declined = isinstance(text, str) and is_refusal(text)
            yield place, Entry(question, stated, data, declined, groups)


# -- HELM --------------------------------------------------------------------------------------


def helm_entries(path: Path) -> Iterator[tuple[str, Entry]]:
    """Answers of a run of HELM: the log-probability of the completion, and the reference it chooses.

    A request that failed has neither. HELM writes 0 where a model gives no log-probability.
    """
    run = document(path, "a run of HELM")
    about, states = _object(run, HELM["about"]), _list(run, HELM["samples"])
    if not about or not states or not all(isinstance(state, dict) for state in states):
        raise InputError(
            f"{path} is not a run of HELM: it must hold {HELM['about']!r} and a list of "
            f"{HELM['samples']!r}.",
            file=str(path),
            hint="Give the `scenario_state.json` of a run folder.",
        )
    logs = [_completion(state).get(HELM["log"]) for state in states]
    has_logs = any(isinstance(log, int | float) and log < 0 for log in logs)
    groups = {"model": about["model"]} if isinstance(about.get("model"), str) else {}
    # Folders are named such as mmlu:subject=anatomy,model=acme_small.
    scenario, _, options = path.absolute().parent.name.partition(":")
    if any(part.startswith("model=") for part in options.split(",")):
        own = [o for o in options.split(",") if not o.startswith(("model=", "model_deployment="))]
        groups["task"] = f"{scenario}:{','.join(own)}" if own else scenario
    for number, state in enumerate(states):
        question = field_of(state, HELM["question"])
        place = f"request {number} (instance {show_value(question)})"
        with at(place, str(path)):
            chosen, right = _chosen(state, about.get("output_mapping_pattern"))
        worked = field_of(state, "result.success") is True
        log = logs[number] if has_logs and worked else None
        score = None if chosen is None or not right else float(chosen in right)
        scores = {HELM["correct"]: score if worked else None}
        declined, task = worked and chosen is None, groups.get("task")
        yield place, Entry(question, {"tokens": log}, scores, declined, groups, task)


def _completion(state: Any) -> Row:
    """Completion that HELM scores: the most probable one, the first of equals."""
    found = [c for c in _list(state, HELM["completions"]) if isinstance(c, dict)]
    logs = [c.get(HELM["log"]) for c in found]
    scores = [
        float(log) if isinstance(log, int | float) and abs(log) < 1e300 else 0.0 for log in logs
    ]
    return found[scores.index(max(scores))] if scores else {}


def _chosen(state: Row, pattern: Any) -> tuple[str | None, list[Any]]:
    """Text of the option that a completion names, None where it names none, and the right options."""
    options = _object(state, HELM["options"])
    if not options or state.get("reference_index") is not None:
        raise InputError(
            "A run of HELM must ask multiple-choice questions with all options in one request.",
            hint="Run the scenario with `method=multiple_choice_joint`.",
        )
    text = _completion(state).get("text")
    label = text.strip() if isinstance(text, str) else ""
    if pattern:
        try:
            match = re.search(pattern, label)
        except (re.error, TypeError, RecursionError) as error:
            raise InputError(
                f"'output_mapping_pattern' must be a regular expression: {error}."
            ) from error
        label = "" if match is None else match[1 if match.re.groups else 0] or ""
    references = _list(state, HELM["references"])
    texts = [field_of(reference, "output.text") for reference in references]
    right = [
        t for t, r in zip(texts, references, strict=True) if HELM["correct"] in _list(r, "tags")
    ]
    option = options.get(label)
    return (option if isinstance(option, str) and option in texts else None), right


# -- Inspect -----------------------------------------------------------------------------------


def inspect_entries(path: Path) -> Iterator[tuple[str, Entry]]:
    """Answers of a log of Inspect; epochs of one sample are one question."""
    parts = _inspect_parts(path)
    about = _object(next(parts), "eval")
    groups = {name: str(about[name]) for name in INSPECT["groups"] if name in about}
    for sample in parts:
        sample = sample if isinstance(sample, dict) else {}
        scores = _object(sample, INSPECT["scores"])
        content = field_of(sample, INSPECT["text"])
        if isinstance(content, list):
            content = "\n".join(str(field_of(part, "text") or "") for part in content)
        text = content if isinstance(content, str) else None
        metadata = {
            name: next((v for n in INSPECT["confidence"] if (v := own.get(n)) is not None), None)
            for name, own in ((name, _object(score, "metadata")) for name, score in scores.items())
        }
        confidences = {
            "metadata": metadata if any(v is not None for v in metadata.values()) else None,
            "stated": text,
            "tokens": field_of(sample, INSPECT["tokens"]) or None,
        }
        values = {name: field_of(score, "value") for name, score in scores.items()}
        question = sample.get(INSPECT["question"])
        declined = not sample.get("error") and is_refusal(text)
        place = f"sample {show_value(question)}"
        task = groups.get("task", path.stem)
        yield place, Entry(question, confidences, values, declined, groups, task)


def _inspect_parts(path: Path) -> Iterator[Any]:
    """Header of a log, which says whose it is, and then its samples, one at a time."""
    if not zipfile.is_zipfile(path):
        log = document(path, "an Inspect log")
        yield log
        yield from _list(log, INSPECT["samples"])
        return
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            header = next((name for name in INSPECT["headers"] if name in names), None)
            yield {} if header is None else _member(archive, header)
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


def plain_entries(path: Path) -> Iterator[tuple[str, Entry]]:
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

STATED = "confidence stated in the text"
_TEXT_FORMS = ("probability", "percent")
LOGS: dict[str, Log] = {
    "lm-eval": Log(
        lm_eval_entries,
        LM_EVAL["question"],
        {
            "choices": "share of the chosen answer in the likelihoods of all choices",
            "stated": STATED,
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
        INSPECT["question"],
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
        OPENAI_EVALS["question"],
        {"stated": STATED},
        {"stated": ("correct",)},
        _TEXT_FORMS,
    ),
    "helm": Log(
        helm_entries,
        HELM["question"],
        {"tokens": FORMS["sum"]},
        {"tokens": (HELM["correct"],)},
        ("probability", "sum"),
        ("probability",),
    ),
    "jsonl": Log(plain_entries, "", {}, {}, tuple(FORMS), ("probability", "correct", "question")),
}
"""Formats of logs; that of the plain one looks for the names of fields in `PLAIN`."""


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
        row = _object_in(head, "")
    except InputError:
        return None
    # A run of OpenAI's evals starts with its specification; an answer names a question, which rows of a
    # table do not, and says whether it was right.
    if field_of(row, "spec.completion_fns") is not None:
        return "openai-evals"
    asks = not row.keys().isdisjoint(("question_id", "qid", "doc_id", "question"))
    judged = not row.keys().isdisjoint(("correct", "is_correct", "judge_response"))
    return "jsonl" if judged and (asks or row.keys() >= {"id", "confidence"}) else None
