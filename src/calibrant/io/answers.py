"""Answers of a language model, as predictions and outcomes: which were right, and how sure it was."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant._files import decoding, json_of, object_of
from calibrant._locks import cached_property
from calibrant.errors import InputError, show_value
from calibrant.io.confidence import FORMS, Form, Values, as_probability
from calibrant.io.files import LONGEST_LINE, unchanged_file

__all__ = ["FORMATS", "FORMS", "Answer", "Answers", "as_probability", "log_format", "read_answers"]

FORMATS = ("lm-eval", "inspect", "openai-evals", "helm", "jsonl")
"""Logs that `read_answers` reads: samples of lm-evaluation-harness, logs of Inspect and of OpenAI's evals,
runs of HELM, plain JSON lines."""
PEEK_BYTES = 1 << 20
Row = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One answer, as a log gives it.

    Attributes
    ----------
    question : str or None
        Answers to one question depend on each other; None where the log does not name it.
    probability : float or None
        That the answer is right, by the model's own account; None where the log gives none, infinite
        where it cannot be read.
    correct : float or None
        1, 0, or a share of the credit; None where nobody scored it.
    abstained : bool
        The model declined to answer.
    groups : mapping
        By which answers can be told apart, such as model and task.
    """

    question: str | None
    probability: float | None
    correct: float | None
    abstained: bool = False
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of a language model, ready for `calibrant.assess` and `calibrant.certify`.

    Attributes
    ----------
    y_true : float64[n]
        1 for a right answer, 0 for a wrong one, in between for partial credit, NaN where not scored.
    y_prob : float64[n]
        Probability that the answer is right, NaN where the log gives none, infinite where what it gives
        cannot be read.
    cluster : int64[n]
        The question: its answers depend on each other. Equal ids have equal numbers, in every log; see
        `question_number`. Where the log names no question, every answer is one of its own.
    groups : mapping of str to array of str
        By which answers can be told apart, such as model and task.
    probability : str
        Which probability this is, in words.
    abstained : int
        Answers that the model declined to give; they are not among the rows.
    abstained_groups : mapping of str to array of str
        The groups of these.
    names_questions : bool
        Whether the log says which answers belong to one question.

    Examples
    --------
    >>> import calibrant as cal
    >>> answers = read_answers("evals.jsonl")  # doctest: +SKIP
    >>> cal.assess(answers.y_true, answers.y_prob, cluster=answers.cluster)  # doctest: +SKIP
    """

    y_true: NDArray[np.float64]
    y_prob: NDArray[np.float64]
    cluster: NDArray[np.int64]
    groups: Mapping[str, NDArray[np.object_]]
    probability: str
    abstained: int
    abstained_groups: Mapping[str, NDArray[np.object_]] = field(default_factory=dict)
    names_questions: bool = True

    def __post_init__(self) -> None:
        groups = (*self.groups.values(), *self.abstained_groups.values())
        for column in (self.y_true, self.y_prob, self.cluster, *groups):
            column.flags.writeable = False

    @property
    def n(self) -> int:
        """Number of answers that were given."""
        return int(self.y_true.size)

    @cached_property
    def questions(self) -> int:
        """Number of distinct questions among them."""
        return int(np.unique(self.cluster).size)

    @property
    def without_confidence(self) -> int:
        """Number of answers for which the log gives no confidence."""
        return int(np.isnan(self.y_prob).sum())

    @property
    def unreadable(self) -> int:
        """Number of answers whose confidence or score is there and cannot be read."""
        return int((np.isinf(self.y_prob) | np.isinf(self.y_true)).sum())

    @property
    def unscored(self) -> int:
        """Number of answers that nobody marked as right or wrong."""
        return int(np.isnan(self.y_true).sum())

    @property
    def has_partial_credit(self) -> bool:
        """Partly right answers are among them, so that `labels="soft"` is needed."""
        return bool(np.any((self.y_true > 0) & (self.y_true < 1)))

    def to_dict(self) -> dict[str, Any]:
        """Summary without the rows."""
        return {
            "n": self.n,
            "questions": self.questions,
            "abstained": self.abstained,
            "without_confidence": self.without_confidence,
            "unreadable": self.unreadable,
            "unscored": self.unscored,
            "probability": self.probability,
            "partial_credit": self.has_partial_credit,
        }

    def __repr__(self) -> str:
        counts = {
            "abstained": self.abstained,
            "without confidence": self.without_confidence,
            "unreadable": self.unreadable,
            "unscored": self.unscored,
        }
        more = "".join(f", {k} {name}" for name, k in counts.items() if k or name == "abstained")
        return (
            f"<Answers: {self.n} to {self.questions} questions{more}, "
            f"probability: {self.probability}>"
        )

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
            for name, value in self.to_dict().items()
        )
        return f"<table>{rows}</table>"


class _Groups:
    """Columns of names while they are read: each name is held once, "" where an answer has none."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {"": ""}
        self._columns: dict[str, list[str]] = {}
        self._rows = 0

    def add(self, groups: Mapping[str, str]) -> None:
        for name in groups.keys() - self._columns.keys():
            self._columns[name] = [""] * self._rows
        for name, column in self._columns.items():
            value = groups.get(name, "")
            column.append(self._names.setdefault(value, value))
        self._rows += 1

    def arrays(self) -> dict[str, NDArray[np.object_]]:
        return {name: np.array(self._columns[name], dtype=object) for name in sorted(self._columns)}


def collected(
    rows: Iterable[tuple[str, Row]],
    answer: Callable[[Row], Answer | None],
    *,
    probability: str,
    file: str,
) -> Answers:
    """Answers in the rows of a log as columns; those that the model declined to give are only counted.

    They are taken one by one, so that a log of any length needs room for three numbers an answer, and
    one for each of its groups. Rows come with their place in the log; some hold no answer.
    """
    correct, confidence, questions = array("d"), array("d"), array("q")
    groups, abstained_groups = _Groups(), _Groups()
    abstained = stated = 0
    named = True
    for place, row in rows:
        with at(place, file):
            found = answer(row)
        if found is None:
            continue
        if found.abstained:
            abstained += 1
            abstained_groups.add(found.groups)
            continue
        groups.add(found.groups)
        stated += found.probability is not None
        correct.append(np.nan if found.correct is None else found.correct)
        confidence.append(np.nan if found.probability is None else found.probability)
        named = named and found.question is not None
        questions.append(
            len(correct) if found.question is None else question_number(found.question)
        )
    if not correct:
        seen = f"all {abstained} are abstentions" if abstained else "it has none"
        raise InputError(f"{file} must hold answers; {seen}.", file=file)
    if not stated:
        raise InputError(
            f"{file} holds no probability for any of its {len(correct)} answers ({probability}).",
            file=file,
            hint='Ask the model to state its confidence ("Confidence: 85%"), or log token probabilities.',
        )
    return Answers(
        y_true=np.frombuffer(correct),
        y_prob=np.frombuffer(confidence),
        cluster=np.frombuffer(questions, dtype=np.int64),
        groups=groups.arrays(),
        probability=probability,
        abstained=abstained,
        abstained_groups=abstained_groups.arrays(),
        names_questions=named,
    )


def question_number(name: str) -> int:
    """First 64 bits of a digest of a question's id.

    Two questions of a log of a million share a number with a chance of 3e-8, and are then one cluster.

    Examples
    --------
    >>> question_number("q1") == question_number("q1") != question_number("q2")
    True
    """
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def question_of(value: Any, field: str) -> str:
    """Id of the question of an answer; without one, answers would be one cluster.

    Examples
    --------
    >>> question_of(7, "id")
    '7'
    """
    if value is None or value != value or value == "":
        raise InputError(f"Each answer must name its question in {field!r}.", argument="question")
    return str(value)


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


# -- files -------------------------------------------------------------------------------------


def opened(path: str | os.PathLike[str]) -> Any:
    """Open file, unpacked where its name ends in .gz."""
    return gzip.open(path) if os.fspath(path).endswith(".gz") else open(path, "rb")


def json_lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, Row]]:
    """Objects of a file of JSON lines, each with the number of its line, as in "line 3"."""
    number = 0
    with opened(path) as file:
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            with at(f"line {number}", str(path)):
                if len(line) > LONGEST_LINE:
                    raise InputError(f"A line of a log must have at most {LONGEST_LINE >> 20} MB.")
                try:
                    row = json_of(line) if line.strip() else None
                except UnicodeDecodeError as error:
                    raise InputError("A log must be text in JSON.") from error
                except (ValueError, RecursionError) as error:
                    raise InputError(f"A line of a log must be JSON: {error}.") from error
                if row is not None and not isinstance(row, dict):
                    raise InputError(f"A line of a log must be an object; got {show_value(row)}.")
            if row is not None:
                yield f"line {number}", row


def document_members(
    path: str | os.PathLike[str], items: str, what: str
) -> Iterator[tuple[str, Any]]:
    """Members of the object that a file holds, and for the list `items` each of its items, one at a time.

    Anything but such an object is refused as not `what`.
    """
    try:
        with opened(path) as file:
            text = _Document(file)
            names: set[str] = set()
            for _ in text.separated("{", "}"):
                name = text.value() if text.peek() == '"' else None
                if name is None or name in names:
                    raise ValueError(f"a member has no name, or that of another: {name!r}")
                names.add(name)
                text.take(":")
                if name == items and text.peek() == "[":
                    for _ in text.separated("[", "]"):
                        yield name, text.value()
                else:
                    yield name, text.value()
            if text.peek():
                raise ValueError("there is more after its end")
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not {what}: {error}.", file=os.fspath(path)) from error


class _Document:
    """JSON text that is read as far as it is needed, so that a long list in it is never held whole."""

    def __init__(self, file: Any) -> None:
        import codecs

        self._file = codecs.getreader("utf-8")(file)
        self._text, self._at = "", 0
        self._decode = json.JSONDecoder(object_pairs_hook=object_of).raw_decode

    def _more(self) -> bool:
        """Read as much again as is held and not yet used; False at the end."""
        rest = self._text[self._at :]
        if len(rest) > LONGEST_LINE:
            raise ValueError(f"a value has more than {LONGEST_LINE >> 20} MB")
        chunk = self._file.read(max(PEEK_BYTES, min(len(rest), LONGEST_LINE + 1 - len(rest))))
        self._text, self._at = rest + chunk, 0
        return bool(chunk)

    def peek(self) -> str:
        """Next character that is no blank; "" at the end."""
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in " \t\n\r":
                    return self._text[self._at]
                self._at += 1
            if not self._more():
                return ""

    def take(self, character: str) -> None:
        """Go past this character, which must come next."""
        if self.peek() != character:
            raise ValueError(f"{character!r} is missing")
        self._at += 1

    def value(self) -> Any:
        """Next value."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except json.JSONDecodeError:
                if not self._more():
                    raise
                continue
            if end == len(self._text) and self._more():
                continue  # a number may go on
            self._at = end
            return value

    def separated(self, start: str, end: str) -> Iterator[None]:
        """Loop over the values between these, each of which the caller takes."""
        self.take(start)
        if self.peek() != end:
            yield
            while self.peek() == ",":
                self.take(",")
                yield
        self.take(end)


def log_format(path: str | os.PathLike[str]) -> str | None:
    """Kind of log that a file is, from its ending and its first object; None for any other."""
    name = os.fspath(path).lower()
    if name.endswith(".eval"):
        return "inspect"
    stem = name.removesuffix(".gz")
    if not stem.endswith((".json", ".jsonl", ".ndjson")):
        return None
    with decoding("a log of answers", path), opened(path) as file:
        is_document = stem.endswith(".json")
        head = file.read(PEEK_BYTES) if is_document else file.readline(PEEK_BYTES)
    if is_document:
        if b'"adapter_spec"' in head and b'"request_states"' in head:
            return "helm"
        return "inspect" if b'"samples"' in head and b'"eval"' in head else None
    if b'"filtered_resps"' in head:
        return "lm-eval"
    try:
        row = json.loads(head)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    # A run of OpenAI's evals starts with its specification; an answer names a question, which rows of a
    # table do not, and says whether it was right.
    if isinstance(row.get("spec"), dict) and "completion_fns" in row["spec"]:
        return "openai-evals"
    asks = not row.keys().isdisjoint(("question_id", "qid", "doc_id", "question"))
    judged = not row.keys().isdisjoint(("correct", "is_correct", "judge_response"))
    return "jsonl" if judged and (asks or row.keys() >= {"id", "confidence"}) else None


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
    """Answers in an evaluation log: which were right, and how sure the model was of each.

    Parameters
    ----------
    path : path
        A `samples_*.jsonl` of lm-evaluation-harness, an Inspect log (`.eval` or `.json`), a log of OpenAI's
        evals, the `scenario_state.json` of a HELM run, or JSON lines with a confidence and whether the
        answer was right; `.gz` as well. A line, or a sample, has at most 64 MB.
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
    from calibrant.io import answer_logs

    is_path = isinstance(path, str | os.PathLike)
    if not is_path or not os.path.isfile(path):
        what = "a folder" if is_path and os.path.isdir(path) else "none"
        raise InputError(
            f"`path` must be the path of a log, which is one file; {show_value(path)} is {what}.",
            argument="path",
            file=os.fspath(path) if is_path else None,
        )
    chosen = format or log_format(path) or "jsonl"
    require_choice("format", chosen, FORMATS)
    require_choice("form", form, tuple(FORMS))
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    values = Values(form, words=words, score_range=score_range, lenient=on_invalid == "drop")
    given = {"probability": probability, "correct": correct, "question": question, "filter": filter}
    read, known = answer_logs.READERS[chosen]
    for name, value in given.items():
        if value is not None and name not in known:
            raise InputError(f"`{name}` is not for logs of the format {chosen!r}.", argument=name)
    with decoding("a log of answers", path), unchanged_file(path):
        return read(Path(path), values, **{name: given[name] for name in known})
