"""The answers of a language model, as predictions and outcomes."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._locks import cached_property
from calibrant.errors import InputError, Where

__all__ = [
    "Answer",
    "Answers",
    "Place",
    "collected",
    "does_not_apply",
    "is_missing",
    "question_number",
    "question_of",
]


@dataclass(frozen=True)
class Place:
    """Where in a log something was seen: a line, or a sample."""

    file: str
    line: int | None = None
    sample: Any = None

    def refuse(self, rule: str, *, argument: str | None = None, **fields: Any) -> InputError:
        """The error for what was seen here."""
        if self.line is not None:
            return InputError(
                rule, argument=argument, where=Where(line=self.line, file=self.file), **fields
            )
        fields.setdefault(
            "saying", "sample {sample} has {}" if "seen" in fields else "see {sample}"
        )
        return InputError(
            rule, argument=argument, where=Where(file=self.file), sample=repr(self.sample), **fields
        )


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
        """Answers that were given."""
        return int(self.y_true.size)

    @cached_property
    def questions(self) -> int:
        """Distinct questions among them."""
        return int(np.unique(self.cluster).size)

    @property
    def without_confidence(self) -> int:
        """Answers for which the log gives no confidence."""
        return int(np.isnan(self.y_prob).sum())

    @property
    def unreadable(self) -> int:
        """Answers whose confidence or score is there and cannot be read."""
        return int((np.isinf(self.y_prob) | np.isinf(self.y_true)).sum())

    @property
    def unscored(self) -> int:
        """Answers that nobody marked as right or wrong."""
        return int(np.isnan(self.y_true).sum())

    @property
    def has_partial_credit(self) -> bool:
        """Whether some answers are partly right, so that `labels="soft"` is needed."""
        return bool(np.any((self.y_true > 0) & (self.y_true < 1)))

    def to_dict(self) -> dict[str, Any]:
        """What was read, without the rows."""
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
        said = "".join(f", {k} {name}" for name, k in counts.items() if k or name == "abstained")
        return (
            f"<Answers: {self.n} to {self.questions} questions{said}, "
            f"probability: {self.probability}>"
        )

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
            for name, value in self.to_dict().items()
        )
        return f"<table>{rows}</table>"


class _Names:
    """Text as whole numbers while it is read: a log repeats few names very often."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._column = array("i")

    def add(self, name: str) -> None:
        self._column.append(self._number.setdefault(name, len(self._number)))

    def text(self) -> NDArray[np.object_]:
        """The names, each of which is held once."""
        names = np.array([*self._number, ""], dtype=object)
        return names[np.frombuffer(self._column, dtype=np.int32)]


class _Groups:
    """The groups of answers while they are read, "" where an answer has none of a name."""

    def __init__(self) -> None:
        self._columns: dict[str, _Names] = {}
        self._rows = 0

    def add(self, groups: Mapping[str, str]) -> None:
        for name in groups.keys() - self._columns.keys():
            self._columns[name] = _Names()
            for _ in range(self._rows):
                self._columns[name].add("")
        for name, column in self._columns.items():
            column.add(groups.get(name, ""))
        self._rows += 1

    def text(self) -> dict[str, NDArray[np.object_]]:
        return {name: self._columns[name].text() for name in sorted(self._columns)}


def collected(answers: Iterable[Answer], *, probability: str, where: str) -> Answers:
    """The answers as columns; those that the model declined to give are only counted.

    They are taken one by one, so that a log of any length needs room for three numbers an answer, and
    one for each of its groups.
    """
    right, sure, questions = array("d"), array("d"), array("q")
    groups, abstained_groups = _Groups(), _Groups()
    abstained = stated = 0
    named = True
    for answer in answers:
        if answer.abstained:
            abstained += 1
            abstained_groups.add(answer.groups)
            continue
        groups.add(answer.groups)
        stated += answer.probability is not None
        right.append(np.nan if answer.correct is None else answer.correct)
        sure.append(np.nan if answer.probability is None else answer.probability)
        named = named and answer.question is not None
        questions.append(
            len(right) if answer.question is None else question_number(answer.question)
        )
    if not right:
        raise InputError(
            "{file} must hold answers",
            file=where,
            seen=abstained,
            saying="all {} are abstentions" if abstained else "it has none",
            cure="Check that the log is complete.",
        )
    if not stated:
        raise InputError(
            "{file} holds no probability for any of its {count} answers ({which})",
            file=where,
            count=len(right),
            which=probability,
            cure='Ask the model to state its confidence ("Confidence: 85%"), or log token probabilities.',
        )
    return Answers(
        y_true=np.frombuffer(right),
        y_prob=np.frombuffer(sure),
        cluster=np.frombuffer(questions, dtype=np.int64),
        groups=groups.text(),
        probability=probability,
        abstained=abstained,
        abstained_groups=abstained_groups.text(),
        names_questions=named,
    )


def question_number(name: str) -> int:
    """The number that stands for a question: the first 64 bits of a digest of its id.

    Two questions of a log of a million share a number with a chance of 3e-8, and are then one cluster.

    Examples
    --------
    >>> question_number("q1") == question_number("q1") != question_number("q2")
    True
    """
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def question_of(value: Any, place: Place, field: str) -> str:
    """What names the question of an answer; answers of which nothing does would be one cluster.

    Examples
    --------
    >>> question_of(7, Place("x.jsonl", 1), "id")
    '7'
    """
    if is_missing(value) or value == "":
        raise place.refuse(
            "must name the question, as its answers depend on each other",
            argument="question",
            field=repr(field),
            saying="{field} is missing",
            cure="Give every answer one.",
        )
    return str(value)


def does_not_apply(argument: str, seen: object, tool: str, why: str) -> InputError:
    """The error for an argument that means nothing for the logs of a tool."""
    return InputError(
        "does not apply to logs of {tool}: {why}",
        argument=argument,
        seen=seen,
        tool=tool,
        why=why,
        cure="Leave it out.",
    )


def is_missing(value: Any) -> bool:
    """Whether a field of a log holds nothing: null or NaN."""
    return value is None or value != value
