"""The answers of a language model, as predictions and outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

__all__ = ["Answer", "Answers", "collected", "is_missing", "question_of"]


@dataclass(frozen=True)
class Answer:
    """One answer, as a log gives it.

    Attributes
    ----------
    question : str
        Answers to one question depend on each other.
    probability : float or None
        That the answer is right, by the model's own account; None where the log gives none.
    correct : float or None
        1, 0, or a share of the credit; None where nobody scored it.
    abstained : bool
        The model declined to answer.
    groups : mapping
        By which answers can be told apart, such as model and task.
    """

    question: str
    probability: float | None
    correct: float | None
    abstained: bool = False
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of a language model, ready for `calibrant.assess`.

    Attributes
    ----------
    y_true : float64[n]
        1 for a right answer, 0 for a wrong one, in between for partial credit, NaN where not scored.
    y_prob : float64[n]
        Probability that the answer is right, NaN where the log gives none.
    cluster : str[n]
        The question: its answers depend on each other.
    groups : mapping of str to str[n]
        By which answers can be told apart, such as model and task.
    probability : str
        Which probability this is, in words.
    abstained : int
        Answers that the model declined to give; they are not among the rows.

    Examples
    --------
    >>> import calibrant as cal
    >>> answers = read_answers("evals.jsonl")  # doctest: +SKIP
    >>> cal.assess(answers.y_true, answers.y_prob, cluster=answers.cluster)  # doctest: +SKIP
    """

    y_true: NDArray[np.float64]
    y_prob: NDArray[np.float64]
    cluster: NDArray[np.str_]
    groups: Mapping[str, NDArray[np.str_]]
    probability: str
    abstained: int

    def __post_init__(self) -> None:
        for column in (self.y_true, self.y_prob, self.cluster, *self.groups.values()):
            column.flags.writeable = False

    @property
    def n(self) -> int:
        """Answers that were given."""
        return int(self.y_true.size)

    @property
    def questions(self) -> int:
        """Distinct questions among them."""
        return int(np.unique(self.cluster).size)

    @property
    def has_partial_credit(self) -> bool:
        """Whether some answers are partly right, so that `labels="soft"` is needed."""
        scored = self.y_true[~np.isnan(self.y_true)]
        return bool(np.any((scored > 0) & (scored < 1)))

    def to_dict(self) -> dict[str, Any]:
        """What was read, without the rows."""
        return {
            "n": self.n,
            "questions": self.questions,
            "abstained": self.abstained,
            "probability": self.probability,
            "partial_credit": self.has_partial_credit,
        }

    def __repr__(self) -> str:
        return (
            f"<Answers: {self.n} to {self.questions} questions, {self.abstained} abstained, "
            f"probability: {self.probability}>"
        )

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
            for name, value in self.to_dict().items()
        )
        return f"<table>{rows}</table>"


def collected(answers: Sequence[Answer], *, probability: str, where: str) -> Answers:
    """The answers as columns; those that the model declined to give are only counted."""
    given = [answer for answer in answers if not answer.abstained]
    if not given:
        raise InputError(
            f"{where} must hold answers; it has {len(answers)}, "
            f"{'all of them abstentions' if answers else 'so there is nothing to measure'}."
        )
    if all(answer.probability is None for answer in given):
        raise InputError(
            f"{where} holds no probability for any of its {len(given)} answers ({probability}). Ask the "
            'model to state its confidence ("Confidence: 85%"), or log token probabilities.'
        )
    names = sorted({name for answer in given for name in answer.groups})
    return Answers(
        y_true=_floats(answer.correct for answer in given),
        y_prob=_floats(answer.probability for answer in given),
        cluster=np.array([answer.question for answer in given], dtype=np.str_),
        groups={
            name: np.array([answer.groups.get(name, "") for answer in given], dtype=np.str_)
            for name in names
        },
        probability=probability,
        abstained=len(answers) - len(given),
    )


def question_of(value: Any, where: str, field: str) -> str:
    """What names the question of an answer; answers of which nothing does would be one cluster.

    Examples
    --------
    >>> question_of(7, "line 1", "id")
    '7'
    """
    if is_missing(value) or value == "":
        raise InputError(
            f"{where}: {field!r} must name the question, as its answers depend on each other; it is "
            "missing. Give every answer one."
        )
    return str(value)


def is_missing(value: Any) -> bool:
    """Whether a field of a log holds nothing: null or NaN."""
    return value is None or value != value


def _floats(values: Any) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
