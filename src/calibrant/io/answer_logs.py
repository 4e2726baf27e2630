"""Evaluation logs of several tools: for each a table of field names, and a reader of its answers."""

from __future__ import annotations

import difflib
import math
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant._arguments import is_number, require_choice
from calibrant._files import json_of
from calibrant._optional import require
from calibrant.errors import CalibrantError, InputError, show_value
from calibrant.io.answers import (
    Answer,
    Answers,
    Row,
    at,
    collected,
    document_members,
    json_lines,
    question_of,
)
from calibrant.io.confidence import (
    FORMS,
    Values,
    from_log_probabilities,
    is_empty,
    is_refusal,
)

__all__ = ["READERS"]

STATED = "confidence stated in the text"
LM_EVAL: dict[str, Any] = {
    "question": "doc_id",
    "filter": "filter",
    "likelihoods": "filtered_resps",
    "requests": "arguments",
    "text": "resps",
    "correct": {
        "choices": ("acc",),
        "normalised": ("acc_norm",),
        "stated": ("exact_match", "acc", "pass@1", "correct"),
    },
}
INSPECT: dict[str, Any] = {
    "headers": ("header.json", "_journal/start.json"),
    "samples": "samples",
    "question": "id",
    "confidence": ("confidence", "probability", "prob", "p"),
    "groups": ("model", "task"),
}
OPENAI_EVALS = {"question": "sample_id", "answer": "match", "text": "sampled", "correct": "correct"}
HELM = {
    "samples": "request_states",
    "about": "adapter_spec",
    "question": "id",
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


def _require_form(values: Values, known: tuple[str, ...], tool: str) -> None:
    if values.form not in known:
        raise InputError(
            f"`form` of a log of {tool} must be one of {', '.join(known)}; got {values.form!r}.",
            argument="form",
        )


def _object(holder: Any, name: str) -> Row:
    """Object under a name; empty where there is none."""
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def _list(holder: Any, name: str) -> list[Any]:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, list) else []


def _no_samples(path: Path) -> InputError:
    return InputError(
        f"{path} must hold samples; it has none.",
        file=str(path),
        hint="Check that the evaluation has run to its end, with its samples logged.",
    )


# -- lm-evaluation-harness ---------------------------------------------------------------------

_LM_EVAL_WORDS = {
    "choices": "share of the chosen answer in the likelihoods of all choices",
    "normalised": "share of the chosen answer in the likelihoods per character of all choices",
    "stated": STATED,
}


def lm_eval_answers(
    path: Path, values: Values, *, probability: str | None, correct: str | None, filter: str | None
) -> Answers:
    """Answers of a sample log (`--log_samples`), from the likelihoods of the choices or from the text."""
    _require_form(values, ("probability", "percent"), "lm-eval")
    first: dict[str, Row] = {}
    for _, row in json_lines(path):
        first.setdefault(str(row.get(LM_EVAL["filter"], "none")), row)
    if not first:
        raise _no_samples(path)
    if filter is None and len(first) > 1:
        raise InputError(
            f"{path} scores each answer by {len(first)} filters: {', '.join(map(repr, first))}.",
            file=str(path),
            hint="Choose one with `filter=`.",
        )
    wanted = next(iter(first)) if filter is None else filter
    require_choice("filter", wanted, tuple(first))
    if probability is None:
        probability = "choices" if _likelihoods(first[wanted]) else "stated"
    require_choice("probability", probability, tuple(_LM_EVAL_WORDS))
    metric = _lm_eval_metric(path, first[wanted], probability, correct)
    match = re.fullmatch(
        r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT.*)?", stem := path.name.split(".jsonl")[0]
    )
    task, folder = match[1] if match else stem, path.resolve().parent.name
    # Slashes in the model's name are written as two underscores.
    model = {"model": folder.replace("__", "/")} if "__" in folder.strip("_") else {}

    def confidence(row: Row, text: str) -> float | None:
        if probability == "stated":
            return values.stated(text)
        return values.read(_share_of_chosen, row, probability == "normalised")

    def answer(row: Row) -> Answer | None:
        if str(row.get(LM_EVAL["filter"], "none")) != wanted:
            return None
        if metric not in row:
            raise InputError(f"A sample must have {metric!r}, as the others do.")
        text: Any = row.get(LM_EVAL["text"])
        while isinstance(text, list) and text:
            text = text[0]
        text = text if isinstance(text, str) else ""
        return Answer(
            f"{task}/{question_of(row.get(LM_EVAL['question']), LM_EVAL['question'])}",
            confidence(row, text),
            values.credit(row[metric]),
            probability == "stated" and is_refusal(text),
            {"task": task} | model,
        )

    words = f"{_LM_EVAL_WORDS[probability]}; right by {metric!r}"
    return collected(json_lines(path), answer, probability=words, file=str(path))


def _lm_eval_metric(path: Path, row: Row, probability: str, metric: str | None) -> str:
    known = LM_EVAL["correct"][probability] if metric is None else (metric,)
    for name in known:
        if name in row:
            return str(name)
    numbers = [name for name, value in row.items() if isinstance(value, bool | int | float)]
    raise InputError(
        f"{path} must score its samples by {' or '.join(map(repr, known))}; it has "
        f"{show_value(_list(row, 'metrics') or numbers)}.",
        file=str(path),
        hint="Name one with `correct=`.",
    )


def _likelihoods(row: Row) -> list[float]:
    """Log-likelihoods of the choices; empty where the task generates text.

    The harness writes a pair (log-likelihood, is greedy) for each choice, as numbers or as text.
    """
    found = []
    for pair in _list(row, LM_EVAL["likelihoods"]):
        is_pair = isinstance(pair, list) and len(pair) == 2
        if not is_pair or str(pair[1]) not in ("True", "False", "0", "1", "0.0", "1.0"):
            return []
        try:
            found.append(float(pair[0]))
        except (TypeError, ValueError):
            return []
    return found


def _share_of_chosen(row: Row, per_character: bool) -> float:
    scores, requests = _likelihoods(row), row.get(LM_EVAL["requests"])
    requests = list(requests.values()) if isinstance(requests, dict) else requests
    texts = []  # the prompt and the continuation of each request, as lists or, in files, as dicts
    for request in requests if isinstance(requests, list) else []:
        parts = list(request.values()) if isinstance(request, dict) else request
        parts = parts if isinstance(parts, list) else []
        texts.append([p if isinstance(p, str) else "" for p in [*parts, "", ""][:2]])
    half = len(scores) // 2
    asks = [bool(prompt) for prompt, _ in texts]
    is_repeated = any(asks[:half]) and not any(asks[half:])  # without the question
    if is_repeated and len(scores) == len(texts) == 2 * half >= 4:
        scores, texts = scores[:half], texts[:half]
    if len(scores) < 2 or not all(map(math.isfinite, scores)):
        raise InputError(
            f"A sample must have finite log-likelihoods of 2 or more choices in {LM_EVAL['likelihoods']!r}; "
            f"there are {len(scores)}."
        )
    if per_character:
        choices = [choice.strip() for _, choice in texts]
        if len(choices) != len(scores) or len(set(choices)) < 2 or not all(choices):
            raise InputError(
                f"A sample must give the text of each choice in {LM_EVAL['requests']!r}."
            )
        scores = [score / len(choice) for score, choice in zip(scores, choices, strict=True)]
    best = max(scores)
    return 1.0 / sum(math.exp(score - best) for score in scores)


# -- OpenAI's evals ----------------------------------------------------------------------------


def openai_evals_answers(
    path: Path, values: Values, *, probability: str | None, correct: str | None
) -> Answers:
    """Answers of a log of OpenAI's evals: the confidence that the sampled text states, right by its match."""
    _require_form(values, ("probability", "percent"), "OpenAI's evals")
    require_choice("probability", probability, (None, "stated"))
    metric = correct or OPENAI_EVALS["correct"]
    asked = OPENAI_EVALS["question"]

    groups: dict[str, str] = {}
    sampled: dict[str, str | None] = {}

    def answer(row: Row) -> Answer | None:
        """A match is an answer; its text, where it has none, is what was sampled last for the question."""
        if isinstance(row.get("spec"), dict):
            models = row["spec"].get("completion_fns")
            names = {"task": row["spec"].get("eval_name"), "model": models[0] if models else None}
            groups.clear()
            groups.update((k, value) for k, value in names.items() if isinstance(value, str))
        event, data = row.get("type"), row.get("data")
        if not isinstance(data, dict) or event not in (OPENAI_EVALS["answer"], "sampling"):
            return None
        text = data.get(OPENAI_EVALS["text"])
        while isinstance(text, list):
            text = text[-1] if text else None
        text = text if isinstance(text, str) else None
        question = question_of(row.get(asked), asked)
        if event == "sampling":
            sampled[question] = text
            return None
        if metric not in data:
            raise InputError(f"A match must have the field {metric!r}.", argument="correct")
        before = sampled.pop(question, None)
        text = before if text is None else text
        stated = None if text is None else values.stated(text)
        credit = values.credit(data[metric])
        return Answer(question, stated, credit, text is not None and is_refusal(text), groups)

    words = f"{STATED}; right by {metric!r}"
    return collected(json_lines(path), answer, probability=words, file=str(path))


# -- HELM --------------------------------------------------------------------------------------


def helm_answers(path: Path, values: Values, *, probability: str | None) -> Answers:
    """Answers of a run of HELM: the probability of the completion, right by the reference it chooses."""
    _require_form(values, ("probability", "sum"), "HELM")
    require_choice("probability", probability, (None, "tokens"))
    about, has_logs, valid, states = None, False, True, 0
    for name, value in _helm_members(path):
        if name == HELM["about"]:
            about = value
        elif name == HELM["samples"]:
            states, valid = states + 1, valid and isinstance(value, dict)
            log = _helm_log(value) if valid else None
            has_logs = has_logs or (isinstance(log, int | float) and log < 0)  # 0 stands for none
    if not isinstance(about, dict) or not valid or not states:
        raise InputError(
            f"{path} is not a run of HELM: it must hold {HELM['about']!r} and a list of "
            f"{HELM['samples']!r}.",
            file=str(path),
            hint="Give the `scenario_state.json` of a run folder.",
        )
    groups = _helm_groups(path, about)
    reader = Values("sum", lenient=values.lenient)

    def answer(state: Row) -> Answer:
        """Answer of a request; one that failed has neither a probability nor a score."""
        instance = _object(state, "instance")
        name = question_of(instance.get(HELM["question"]), "instance.id")
        if not _object(state, "output_mapping") or state.get("reference_index") is not None:
            raise InputError(
                "A run of HELM must ask multiple-choice questions with all options in one request.",
                hint="Run the scenario with `method=multiple_choice_joint`.",
            )
        question = f"{groups['task']}/{name}" if "task" in groups else name
        if _object(state, "result").get("success") is not True:
            return Answer(question, None, None, groups=groups)
        chosen = _helm_choice(state, about.get("output_mapping_pattern"))
        right = {
            _object(reference, "output").get("text")
            for reference in _list(instance, "references")
            if HELM["correct"] in _list(reference, "tags")
        }
        credit = None if chosen is None or not right else float(chosen in right)
        sure = reader.confidence(_helm_log(state)) if has_logs else None
        return Answer(question, sure, credit, chosen is None, groups)

    requests = enumerate(value for name, value in _helm_members(path) if name == HELM["samples"])
    placed = (
        (f"request {number} (instance {_object(state, 'instance').get(HELM['question'])!r})", state)
        for number, state in requests
    )
    words = f"{FORMS['sum']}; right by the tag {HELM['correct']!r}"
    return collected(placed, answer, probability=words, file=str(path))


def _helm_members(path: Path) -> Iterator[tuple[str, Any]]:
    return document_members(path, HELM["samples"], "a run of HELM")


def _helm_groups(path: Path, about: Row) -> dict[str, str]:
    """Model, and the task where the folder has the name that HELM gives it.

    Examples
    --------
    >>> folder = Path("mmlu:subject=anatomy,model=acme_small")
    >>> _helm_groups(folder / "scenario_state.json", {"model": "acme/small"})
    {'model': 'acme/small', 'task': 'mmlu:subject=anatomy'}
    """
    model = about.get("model")
    groups = {"model": model} if isinstance(model, str) and model else {}
    scenario, _, options = path.absolute().parent.name.partition(":")
    parts = options.split(",")
    if any(part.startswith("model=") for part in parts):
        others = [part for part in parts if not part.startswith(("model=", "model_deployment="))]
        groups["task"] = f"{scenario}:{','.join(others)}" if others else scenario
    return groups


def _helm_completion(state: Row) -> Row:
    """Completion that HELM scores: the most probable one, the first of equals."""
    completions = [c for c in _list(_object(state, "result"), "completions") if isinstance(c, dict)]
    logs = [c.get("logprob") for c in completions]
    scores = [float(log) if isinstance(log, int | float) else 0.0 for log in logs]
    return completions[scores.index(max(scores))] if scores else {}


def _helm_log(state: Row) -> Any:
    """Log-probability of a completion, as the run has it; None where the request failed."""
    succeeded = _object(state, "result").get("success") is True
    return _helm_completion(state).get("logprob") if succeeded else None


def _helm_choice(state: Row, pattern: Any) -> str | None:
    """Text of the option that a completion names; None where it names none."""
    text = _helm_completion(state).get("text")
    if not isinstance(text, str):
        return None
    label = text.strip()
    if pattern:
        try:
            match = re.search(pattern, label)
        except (re.error, TypeError, RecursionError) as error:
            raise InputError(
                f"'output_mapping_pattern' must be a regular expression: {error}."
            ) from error
        label = "" if match is None else match[1 if match.re.groups else 0] or ""
    option = _object(state, "output_mapping").get(label)
    references = _list(_object(state, "instance"), "references")
    texts = [_object(reference, "output").get("text") for reference in references]
    return option if isinstance(option, str) and option in texts else None


# -- Inspect -----------------------------------------------------------------------------------

_INSPECT_WORDS = {
    "metadata": "confidence in the score's metadata",
    "stated": "confidence stated in the answer",
    "tokens": FORMS["sum"],
}
_TOKEN_FORMS = ("sum", "mean", "token")
LARGEST_MEMBER = 1 << 30
LOCAL_HEADER, ZSTANDARD = 30, 93
"""Of a ZIP archive: bytes before the name of a member, and the number of a way to pack."""


def inspect_answers(
    path: Path, values: Values, *, probability: str | None, correct: str | None
) -> Answers:
    """Answers of a log of Inspect; epochs of one sample are one question."""
    _require_form(values, ("probability", "percent", *_TOKEN_FORMS), "Inspect")
    tokens = values.form if values.form in _TOKEN_FORMS else "sum"
    if probability is None and values.form in _TOKEN_FORMS:
        probability = "tokens"
    require_choice("probability", probability, (None, *_INSPECT_WORDS))
    scorer, kinds = _inspect_contents(path, correct)
    if probability is None:
        probability = next((kind for kind in _INSPECT_WORDS if kind in kinds), "metadata")
    about = _object(_inspect_header(path), "eval")
    groups = {name: str(about[name]) for name in INSPECT["groups"] if name in about}

    def confidence(sample: Row) -> float | None:
        if probability == "stated":
            return values.stated(_inspect_text(sample) or "")
        if probability == "tokens":
            logs = _inspect_tokens(sample)
            return from_log_probabilities(logs, tokens) if logs else None
        return values.confidence(_inspect_confidence(_object(_object(sample, "scores"), scorer)))

    def answer(sample: Row) -> Answer:
        value = _object(_object(sample, "scores"), scorer).get("value")
        name = question_of(sample.get(INSPECT["question"]), INSPECT["question"])
        return Answer(
            f"{groups.get('task', path.stem)}/{name}",
            confidence(sample),
            None if value == "N" else values.credit(value),
            value == "N" or (not sample.get("error") and is_refusal(_inspect_text(sample))),
            groups,
        )

    placed = (
        (f"sample {show_value(sample.get(INSPECT['question']))}", sample)
        for sample in _inspect_samples(path)
    )
    words = FORMS[tokens] if probability == "tokens" else _INSPECT_WORDS[probability]
    made = collected(placed, answer, probability=f"{words}; right by {scorer!r}", file=str(path))
    values.require_one_scale(str(path))
    return made


def _inspect_contents(path: Path, scorer: str | None) -> tuple[str, set[str]]:
    """Scorer, and the kinds of confidence that some sample has."""
    names: set[str] = set()
    kinds: set[str] = set()
    samples = 0
    for sample in _inspect_samples(path):
        samples += 1
        scores = _object(sample, "scores")
        names.update(scores)
        if any(_inspect_confidence(_object(scores, name)) is not None for name in scores):
            kinds.add("metadata")
        if "stated" not in kinds and Values().stated(_inspect_text(sample) or "") is not None:
            kinds.add("stated")
        if "tokens" not in kinds and _inspect_tokens(sample):
            kinds.add("tokens")
    if not samples:
        raise _no_samples(path)
    if not names:
        raise InputError(
            f"{path} must hold scores; its samples have none.",
            file=str(path),
            hint="Run `inspect score` first.",
        )
    if scorer is None and len(names) > 1:
        raise InputError(
            f"{path} has {len(names)} scorers: {', '.join(map(repr, sorted(names)))}.",
            file=str(path),
            hint="Choose one with `correct=`.",
        )
    chosen = next(iter(names)) if scorer is None else scorer
    require_choice("correct", chosen, sorted(names))
    return chosen, kinds


def _inspect_header(path: Path) -> Row:
    """Part of a log that says whose it is."""
    if not zipfile.is_zipfile(path):
        content = document_members(path, INSPECT["samples"], "an Inspect log")
        return {name: value for name, value in content if name != INSPECT["samples"]}
    with _archive(path) as (archive, members):
        first = next((members[name] for name in INSPECT["headers"] if name in members), None)
        return _member(archive, first) if first else {}


def _inspect_samples(path: Path) -> Iterator[Row]:
    """Samples, one at a time."""
    if zipfile.is_zipfile(path):
        with _archive(path) as (archive, members):
            for name in sorted(members):
                if name.startswith("samples/") and name.endswith(".json"):
                    yield _member(archive, members[name])
        return
    listed = False
    for name, value in document_members(path, INSPECT["samples"], "an Inspect log"):
        if name == INSPECT["samples"]:
            listed = isinstance(value, dict)
            if not listed:
                break
            yield value
    if not listed:
        raise InputError(f"{path} is not an Inspect log: it holds no 'samples'.", file=str(path))


@contextmanager
def _archive(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Archive and its members by name; whatever is wrong with it becomes an InputError."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename: member for member in archive.infolist()}
            if min((member.header_offset for member in members.values()), default=0):
                raise ValueError("something stands before it, such as another archive")
            yield archive, members
    except CalibrantError:
        raise
    except Exception as error:  # damaged bytes may raise anything
        raise InputError(
            f"{path} is not an Inspect log that can be read ({error}).",
            file=str(path),
            hint="Convert it with `inspect log convert --to json` and read that.",
        ) from error


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Row:
    if member.file_size > LARGEST_MEMBER:
        raise InputError(f"A sample must unpack to at most {LARGEST_MEMBER >> 20} MB.")
    content = json_of(_unpacked(archive, member))
    if not isinstance(content, dict):
        raise InputError(f"{show_value(member.filename)} must be an object.")
    return content


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Bytes of a member; Inspect packs with Zstandard, which Python's reader may not know."""
    if member.compress_type != ZSTANDARD:
        return archive.read(member)
    pyarrow = require("pyarrow", caller="reading an Inspect log")
    assert archive.filename is not None
    with open(archive.filename, "rb") as file:
        file.seek(member.header_offset)
        name, extra = struct.unpack("<26x2H", file.read(LOCAL_HEADER))
        file.seek(name + extra, os.SEEK_CUR)
        packed = file.read(member.compress_size)
    unpacked: bytes = pyarrow.decompress(packed, member.file_size, codec="zstd", asbytes=True)
    if zlib.crc32(unpacked) != member.CRC:
        raise ValueError(f"the checksum of {member.filename} does not match")
    return unpacked


def _inspect_confidence(score: Row) -> Any:
    metadata = _object(score, "metadata")
    values = (metadata.get(name) for name in INSPECT["confidence"])
    return next((value for value in values if value is not None), None)


def _inspect_choice(sample: Row) -> Row:
    choices = _list(_object(sample, "output"), "choices")
    return choices[0] if choices and isinstance(choices[0], dict) else {}


def _inspect_text(sample: Row) -> str | None:
    content = _object(_inspect_choice(sample), "message").get("content")
    if isinstance(content, list):
        parts = [part.get("text", "") for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None


def _inspect_tokens(sample: Row) -> Any:
    return _object(_inspect_choice(sample), "logprobs").get("content")


# -- plain JSON lines --------------------------------------------------------------------------


def plain_answers(
    path: Path,
    values: Values,
    *,
    probability: str | None,
    correct: str | None,
    question: str | None,
) -> Answers:
    """Answers of JSON lines with a confidence and whether the answer was right, by names of fields."""
    present: dict[str, Row] = {}  # each field with the first line that has it
    for _, row in json_lines(path):
        if not row.keys() <= present.keys():
            for name in row:
                present.setdefault(name, row)
    known = {
        **dict.fromkeys(("sum", "mean", "token"), PLAIN["logs"]),
        "choices": (*PLAIN["logs"], *_scored(present)),
        "agreement": (*PLAIN["samples"], *PLAIN["answer"]),
    }.get(values.form, PLAIN["probability"])
    prob_field = _field(path, present, probability, known, "probability", "a confidence")
    right_field = _field(
        path, present, correct, PLAIN["correct"], "correct", "whether the answer was right"
    )
    asked = question or next((name for name in PLAIN["question"] if name in present), None)
    if asked is not None and not _has(present, asked):
        raise _not_a_field(path, asked, present, "question")
    groups = [name for name in PLAIN["groups"] if name in present]
    agreement = _Agreement(path, prob_field, asked) if values.form == "agreement" else None

    def answer(row: Row) -> Answer:
        value, right = _value(row, prob_field), _value(row, right_field)
        name = question_of(_value(row, asked), asked) if asked else None
        given = {group: str(row[group]) for group in groups if not _is_missing(row.get(group))}
        if _abstained(row, None if agreement else value, right):
            return Answer(name, None, None, True, given)
        chosen = next((row[field] for field in PLAIN["answer"] if field in row), None)
        sure = agreement.share(name, value) if agreement else values.confidence(value, chosen)
        return Answer(name, sure, values.credit(right), False, given)

    form = "" if values.form == "probability" else f" ({FORMS[values.form]})"
    words = f"the field {prob_field!r}{form}"
    made = collected(json_lines(path), answer, probability=words, file=str(path))
    values.require_one_scale(str(path))
    return made


class _Agreement:
    """Number of samples of a question that give the same answer, in one list or in lines of their own."""

    def __init__(self, path: Path, field: str, question: str | None) -> None:
        self._asked: Counter[str] = Counter()
        self._said: Counter[tuple[str, str]] = Counter()
        for line, row in json_lines(path):
            value = _value(row, field)
            if isinstance(value, list) or _is_missing(value):
                continue
            if question is None:
                raise InputError(
                    "`question` must name the field of the question.", argument="question"
                )
            with at(line, str(path)):
                name = question_of(_value(row, question), question)
            self._asked[name] += 1
            self._said[name, _normal(value)] += 1

    def share(self, question: str | None, value: Any) -> float | None:
        """Share of the samples that say this, or of those in a list that say the commonest."""
        if isinstance(value, list):
            counts = Counter(map(_normal, value))
            return max(counts.values()) / len(value) if value else None
        if question is None or _is_missing(value):
            return None
        return self._said[question, _normal(value)] / self._asked[question]


def _normal(answer: Any) -> str:
    """Answer without case, outer spaces and a full stop."""
    return " ".join(str(answer).lower().split()).rstrip(". ")[:200]


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _value(row: Row, name: str | None) -> Any:
    """Field by its name, or by a path such as "judge.confidence" or "choices.0.logprobs"."""
    if name is None:
        return None
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        if isinstance(value, list) and part.isdecimal() and len(part) < 10:
            value = value[int(part)] if int(part) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value


def _has(present: dict[str, Row], name: str) -> bool:
    top = name if name in present else name.split(".")[0]
    if top not in present:
        return False
    return top == name or any(_value(row, name) is not None for row in present.values())


def _abstained(row: Row, prob: Any, right: Any) -> bool:
    if isinstance(row.get("abstained"), bool):
        return bool(row["abstained"])
    if any(isinstance(v, str) and v.strip() and is_empty(v) for v in (prob, right)):
        return True
    answers = [row[name] for name in PLAIN["answer"] if name in row]
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
            raise _not_a_field(path, given, present, option)
        return given
    name = next((name for name in known if _has(present, name)), None)
    if name is not None:
        return name
    hint = f"Name it with `{option}=`."
    if option == "probability":
        logs = [*(name for name in PLAIN["logs"] if name in present), *_scored(present)]
        if logs:
            form = "choices" if logs[0].startswith(("choice", "option")) else "sum"
            hint = f'To make one of the log-probabilities in {logs[0]!r}, pass `form="{form}"`.'
    raise InputError(
        f"{path} must have a field with {what}, such as {known[0]!r}; it has {show_value(list(present))}.",
        file=str(path),
        hint=hint,
    )


def _scored(present: dict[str, Row]) -> list[str]:
    """Fields of options that have log-probabilities, and not only names."""
    found = []
    for name in PLAIN["options"]:
        options = present.get(name, {}).get(name)
        scores = options.values() if isinstance(options, dict) else options
        if isinstance(scores, Iterable) and not isinstance(scores, str):
            found += [name] if all(is_number(score) and score <= 0.0 for score in scores) else []
    return found


def _not_a_field(path: Path, name: str, present: dict[str, Row], option: str) -> InputError:
    near = difflib.get_close_matches(name, list(present), n=1)
    return InputError(
        f"`{option}` must be a field of {path}; {show_value(name)} is none. It has "
        f"{show_value(list(present))}.",
        argument=option,
        file=str(path),
        hint=f"Did you mean {near[0]!r}?" if near else None,
    )


Reader = Callable[..., Answers]
READERS: dict[str, tuple[Reader, tuple[str, ...]]] = {
    "lm-eval": (lm_eval_answers, ("probability", "correct", "filter")),
    "inspect": (inspect_answers, ("probability", "correct")),
    "openai-evals": (openai_evals_answers, ("probability", "correct")),
    "helm": (helm_answers, ("probability",)),
    "jsonl": (plain_answers, ("probability", "correct", "question")),
}
"""Readers by format, each with the options that it takes."""
