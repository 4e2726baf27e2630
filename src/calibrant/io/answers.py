"""Answers of a language model, as predictions and outcomes: which were right, and how sure it was."""

from __future__ import annotations

import difflib
import hashlib
import os
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant._files import decoding
from calibrant.errors import InputError, show_value
from calibrant.io.answer_logs import LOGS, PLAIN, Entry, Log, at, log_format
from calibrant.io.confidence import FORMS, LOG_FORMS, Form, Values, as_probability, is_empty
from calibrant.io.files import unchanged_file
from calibrant.io.text import field_of

__all__ = ["FORMATS", "FORMS", "Answers", "as_probability", "log_format", "read_answers"]

FORMATS = tuple(LOGS)
"""Logs that `read_answers` reads: samples of lm-evaluation-harness, logs of Inspect and of OpenAI's evals,
runs of HELM, plain JSON lines."""


_LACKING = ("without_confidence", "unreadable", "unscored")
"""Counts of answers that say too little."""


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
        names = ("n", "questions", "abstained", *_LACKING, "probability")
        summary = {name: getattr(self, name) for name in names}
        return {**summary, "partial_credit": self.has_partial_credit}

    def __repr__(self) -> str:
        lacking = {name: getattr(self, name) for name in _LACKING}
        more = "".join(f", {k} {name.replace('_', ' ')}" for name, k in lacking.items() if k)
        return (
            f"<Answers: {self.n} to {self.questions} questions, {self.abstained} abstained{more}, "
            f"probability: {self.probability}>"
        )

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
            for name, value in self.to_dict().items()
        )
        return f"<table>{rows}</table>"


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


class _Reading:
    """One log, with the names of the confidence and the score that are read of each answer."""

    def __init__(self, path: Path, log: Log, values: Values, given: Mapping[str, Any]) -> None:
        self.path, self.log, self.values, self.given = path, log, values, given
        self.is_plain = not log.confidences
        filters: dict[str | None, None] = {}
        confidences: dict[str, Mapping[str, Any]] = {}  # the first entry that has each
        scores: dict[str, Mapping[str, Any]] = {}
        for _, entry in log.entries(path, values):
            filters.setdefault(entry.filter)
            for name in entry.scores:
                scores.setdefault(name, entry.scores)
            for name, value in entry.confidences.items():
                if name not in confidences and (self.is_plain or _is_there(name, value)):
                    confidences[name] = entry.confidences
        if not filters and not self.is_plain:
            raise self._refusal(
                "must hold samples; it has none",
                "Check that the evaluation has run to its end, with its samples logged.",
            )
        self._filter = given["filter"]
        if self._filter is None:
            self._filter = next(iter(filters), None)
            if len(filters) > 1:
                several = f"{len(filters)} filters: {', '.join(map(repr, filters))}"
                raise self._refusal(
                    f"scores each answer by {several}", "Choose one with `filter=`."
                )
        require_choice("filter", self._filter, tuple(filters) or (None,))
        if self.is_plain:
            known = {
                **dict.fromkeys(("sum", "mean", "token"), PLAIN["logs"]),
                "choices": (*PLAIN["logs"], *PLAIN["options"]),
                "agreement": (*PLAIN["samples"], *PLAIN["answer"]),
            }.get(values.form, PLAIN["probability"])
            self.probability = self._field(confidences, "probability", known, "a confidence")
        else:
            self.probability = self._kind(set(confidences))
        known = PLAIN["correct"] if self.is_plain else log.scores.get(self.probability, ())
        self.correct = self._field(scores, "correct", known, "whether the answer was right")
        self._asked = log.question or given["question"]
        if self._asked is None:
            self._asked = next((name for name in PLAIN["question"] if name in scores), None)
        elif self.is_plain:
            self._field(scores, "question", (), "the question")
        self._agreement = self._counted() if values.form == "agreement" else None

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        entries = self.log.entries(self.path, self.values)
        return ((place, entry) for place, entry in entries if entry.filter == self._filter)

    def _refusal(self, problem: str, hint: str | None, argument: str | None = None) -> InputError:
        file = str(self.path)
        return InputError(f"{file} {problem}.", argument=argument, file=file, hint=hint)

    def _kind(self, present: set[str]) -> str:
        """Confidence of a tool's log: the one that is given, or the first that it has."""
        given, names = self.given["probability"], self.log.confidences
        require_choice("probability", given, (None, *names))
        if self.values.form in LOG_FORMS and "tokens" in names:
            return given or "tokens"
        rest = "stated" if "stated" in names else next(iter(names))
        return given or next((name for name in names if name in present), rest)

    def _field(
        self, present: Mapping[str, Mapping[str, Any]], option: str, known: Sequence[str], what: str
    ) -> str:
        """Name of a field: the one that is given, the first known one, or the only one."""
        given, names = self.given[option], list(present)
        for name in known if given is None else (given,):
            if name in present or any(field_of(row, name) is not None for row in present.values()):
                return name
        if given is not None:
            near = difflib.get_close_matches(given, names, n=1)
            problem = f"has no field {show_value(given)} for `{option}`; it has {names}"
            raise self._refusal(problem, f"Did you mean {near[0]!r}?" if near else None, option)
        if not known and len(present) == 1:
            return names[0]
        if not known and names:
            problem = f"has {len(names)} scorers: {', '.join(map(repr, sorted(names)))}"
            raise self._refusal(problem, f"Choose one with `{option}=`.", option)
        such = f", such as {known[0]!r}" if known else ""
        hint = f"Name it with `{option}=`."
        logs = [name for name in (*PLAIN["logs"], *PLAIN["options"]) if name in present]
        if self.is_plain and option == "probability" and logs:
            form = "choices" if logs[0].startswith(("choice", "option")) else "sum"
            hint = f'To make one of the log-probabilities in {logs[0]!r}, pass `form="{form}"`.'
        problem = f"must have a field with {what}{such}; it has {show_value(names)}"
        raise self._refusal(problem, hint, option)

    def question_of(self, entry: Entry) -> str | None:
        """Id of the question; without one, answers would be one cluster."""
        if self._asked is None:
            return None
        value = field_of(entry.scores, self._asked) if self.is_plain else entry.question
        if value is None or value != value or value == "":
            raise InputError(
                f"Each answer must name its question in {self._asked!r}.", argument="question"
            )
        return str(value) if entry.task is None else f"{entry.task}/{value}"

    def answer(self, entry: Entry) -> tuple[float | None, float | None] | None:
        """Confidence and credit of an answer; None where the model declined to give one."""
        if self.is_plain:
            said, score = (
                field_of(entry.scores, name) for name in (self.probability, self.correct)
            )
            if _declined(entry, said if self._agreement is None else None, score):
                return None
            if self._agreement is not None:
                sure = self._share(self._agreement, self.question_of(entry), said)
            else:
                chosen = next((entry.scores[n] for n in PLAIN["answer"] if n in entry.scores), None)
                sure = self.values.confidence(said, chosen)
            return sure, self.values.credit(score)
        said, score = entry.confidences.get(self.probability), entry.scores.get(self.correct)
        if entry.abstained or score == "N":
            return None
        reader = said.get(self.correct) if isinstance(said, dict) else said
        sure = None if reader is None else self.values.read(reader)
        return sure, self.values.credit(score)

    @property
    def words(self) -> str:
        """Probability that is read, in words."""
        form = self.values.form
        if self.is_plain:
            more = "" if form == "probability" else f" ({FORMS[form]})"
            return f"the field {self.probability!r}{more}"
        words = self.log.confidences[self.probability]
        if self.probability == "tokens" and form in LOG_FORMS:
            words = FORMS[form]
        return f"{words}; right by {self.correct!r}"

    def _counted(self) -> Counter[tuple[str | None, str | None]]:
        """Number of samples of each question that give an answer, and under None, of all."""
        counts: Counter[tuple[str | None, str | None]] = Counter()
        for place, entry in self:
            value = field_of(entry.confidences, self.probability)
            if not isinstance(value, list) and value is not None:
                if self._asked is None:
                    raise InputError("`question` must name the field of the question.")
                with at(place, str(self.path)):
                    question = self.question_of(entry)
                counts.update([(question, None), (question, _normal(value))])
        return counts

    def _share(self, counts: Mapping[Any, int], question: str | None, value: Any) -> float | None:
        """Share of the samples that say this, or of those in a list that say the commonest."""
        if isinstance(value, list):
            own = Counter(map(_normal, value))
            return max(own.values()) / len(value) if value else None
        return None if value is None else counts[question, _normal(value)] / counts[question, None]

    def collected(self) -> Answers:
        """Answers as columns; those that the model declined to give are only counted.

        They are taken one by one, so that a log of any length needs room for three numbers an answer, and
        one for each of its groups.
        """
        true, prob, questions = array("d"), array("d"), array("q")
        groups: list[Mapping[str, str]] = []
        declined: list[Mapping[str, str]] = []
        known: dict[frozenset[tuple[str, str]], Mapping[str, str]] = {}
        stated, named = 0, True
        for place, entry in self:
            with at(place, str(self.path)):
                question, answer = self.question_of(entry), self.answer(entry)
            own = known.setdefault(frozenset(entry.groups.items()), entry.groups)
            if answer is None:
                declined.append(own)
                continue
            groups.append(own)
            sure, credit = (np.nan if value is None else value for value in answer)
            stated += answer[0] is not None
            prob.append(sure)
            true.append(credit)
            named = named and question is not None
            questions.append(len(true) if question is None else question_number(question))
        if not true:
            seen = f"all {len(declined)} are abstentions" if declined else "it has none"
            raise self._refusal(f"must hold answers; {seen}", None)
        if not stated:
            raise self._refusal(
                f"holds no probability for any of its {len(true)} answers ({self.words})",
                'Ask the model to state its confidence ("Confidence: 85%"), or log token probabilities.',
            )
        return Answers(
            y_true=np.frombuffer(true),
            y_prob=np.frombuffer(prob),
            cluster=np.frombuffer(questions, dtype=np.int64),
            groups=_as_columns(groups),
            probability=self.words,
            abstained=len(declined),
            abstained_groups=_as_columns(declined),
            names_questions=named,
        )


def _as_columns(groups: Sequence[Mapping[str, str]]) -> dict[str, NDArray[np.object_]]:
    """Column of each name, "" where an answer has none."""
    names = sorted(set().union(*{id(own): own for own in groups}.values()))
    return {name: np.array([own.get(name, "") for own in groups], object) for name in names}


def _is_there(name: str, value: Any) -> bool:
    """True of a confidence that an answer has; text need not state one."""
    return value is not None and (name != "stated" or value() is not None)


def _normal(answer: Any) -> str:
    """Answer without case, outer spaces and a full stop."""
    return " ".join(str(answer).lower().split()).rstrip(". ")[:200]


def _declined(entry: Entry, said: Any, score: Any) -> bool:
    """True of an answer of plain lines that says nothing, unless it says itself whether it does."""
    if isinstance(stated := entry.confidences.get("abstained"), bool):
        return stated
    words = (value for value in (said, score) if isinstance(value, str) and value.strip())
    return entry.abstained or (said is None and score is None) or any(map(is_empty, words))


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
    is_path = isinstance(path, str | os.PathLike)
    if not is_path or not os.path.isfile(path):
        what = "a folder" if is_path and os.path.isdir(path) else "none"
        raise InputError(
            f"`path` must be the path of a log, which is one file; {show_value(path)} is {what}.",
            file=os.fspath(path) if is_path else None,
        )
    chosen = format or log_format(path) or "jsonl"
    require_choice("format", chosen, FORMATS)
    require_choice("form", form, tuple(FORMS))
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    log = LOGS[chosen]
    values = Values(form, words=words, score_range=score_range, lenient=on_invalid == "drop")
    given = {"probability": probability, "correct": correct, "question": question, "filter": filter}
    for name, value in given.items():
        if value is not None and name not in log.options:
            raise InputError(f"`{name}` is not for logs of the format {chosen!r}.", argument=name)
    if form not in log.forms:
        known = ", ".join(log.forms)
        raise InputError(
            f"`form` of a log of the format {chosen!r} must be one of {known}; got {form!r}.",
        )
    with decoding("a log of answers", path), unchanged_file(path):
        return _Reading(Path(path), log, values, given).collected()
