"""Recalibration of class probabilities: each class against the rest."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._format import distinct_parts
from calibrant.data.arrays import as_array
from calibrant.data.multiclass import ClassProbabilities, as_class_probabilities, as_weights
from calibrant.errors import InputError, Where
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.cures import TO_LEARN_CLASSES, only_cures
from calibrant.recalibration.deploy_classes import MAY_CHANGE, one_vs_rest_to_python
from calibrant.recalibration.learned_map import LearnedMap, Recalibrator, State, require_map
from calibrant.recalibration.state_checks import Parts

__all__ = ["OneVsRestRecalibrator", "as_distributions", "called_classes", "columns_in_order"]

Floats = NDArray[np.float64]


@dataclass
class OneVsRestRecalibrator(LearnedMap):
    """A map of two classes for each class against the rest; then the rows are made to sum to 1.

    Parameters
    ----------
    recalibrator : Recalibrator
        The map to learn for each class.

    Notes
    -----
    A class that never, or always, occurs in the rows keeps its probabilities as they are.

    References
    ----------
    Zadrozny and Elkan, *Transforming classifier scores into accurate multiclass probability
    estimates*, 2002.

    Examples
    --------
    >>> probs = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2]]
    >>> repaired = OneVsRestRecalibrator().fit(probs, [0, 1, 2, 1]).transform(probs)
    >>> bool(np.allclose(repaired.sum(axis=1), 1.0))
    True
    """

    recalibrator: Recalibrator = field(default_factory=AdaptiveRecalibrator)
    kind: ClassVar[str] = "one-vs-rest"
    parts: ClassVar[Parts] = {"maps": list}

    @only_cures(TO_LEARN_CLASSES)
    def fit(
        self,
        y_prob: Any,
        y_true: Any,
        sample_weight: Any = None,
        *,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from class probabilities, a row per case and a column per class."""
        require_map(self.recalibrator, "recalibrator")
        matrix = as_class_probabilities(y_true, y_prob, classes=classes)
        probs = as_distributions(matrix)
        matrix.top()  # refuses the first row that has no known class
        weight = as_weights(sample_weight, matrix.n)
        maps: list[Recalibrator | None] = []
        for k in range(len(matrix.classes)):
            hits = matrix.labels == k
            learned = None
            heavy = hits if weight is None else hits[weight > 0]
            if 0 < heavy.sum() < heavy.size:
                learned = deepcopy(self.recalibrator).fit(probs[:, k], hits, weight)
            maps.append(learned)
        self._state, self.classes = {"maps": maps}, called_classes(y_prob)
        return self

    def _columns(self, state: State) -> int | None:
        return len(state["maps"])

    def transform(self, y_prob: Any) -> Floats:
        """Class probabilities, each class mapped and each row divided by its sum."""
        maps = self.state["maps"]
        y_prob = columns_in_order(self, y_prob, "y_prob")
        given = as_array(y_prob, "y_prob")
        if given.ndim != 2 or given.shape[1] != len(maps):
            raise InputError(
                "must have a row per case and {columns} columns",
                argument="y_prob",
                seen=given.shape,
                saying="its shape is {}",
                columns=len(maps),
                cure="Pass a column for each class that the map was fitted on.",
            )
        zeros, places = np.zeros(len(given)), range(len(maps))
        probs = as_distributions(as_class_probabilities(zeros, y_prob, classes=places))
        columns = [
            probs[:, k] if learned is None else learned.transform(probs[:, k])
            for k, learned in enumerate(maps)
        ]
        mapped = np.stack(columns, axis=1)
        total = mapped.sum(axis=1, keepdims=True)
        even = np.full_like(mapped, 1.0 / len(maps))
        return np.asarray(np.divide(mapped, total, out=even, where=total > 0))

    def explain(self) -> str:
        """What the map does, in one sentence."""
        changed = sum(learned is not None for learned in self.state["maps"])
        return (
            f"This {self.kind} map changes {changed} of {len(self.state['maps'])} classes, each by a map "
            f"({self.recalibrator.kind}) of its own, and makes the sum 1 again; {MAY_CHANGE}."
        )

    def to_python(self, name: str = "recalibrate", *, tolerance: float = 1e-5) -> str:
        """The map as the text of a Python function of one row, which needs nothing else.

        `tolerance` is that of each class's map, as in `Recalibrator.to_python`.
        """
        return one_vs_rest_to_python(self, name, tolerance)


def as_distributions(matrix: ClassProbabilities) -> Floats:
    """The rows, each of which must be a distribution; an entry above 1 by rounding becomes 1."""
    probs = np.asarray(matrix.raw, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        total, least = probs.sum(axis=1), probs.min(axis=1)
        wrong = np.flatnonzero(~((np.abs(total - 1.0) <= matrix.tolerance) & (least >= 0.0)))
    if wrong.size:
        row = int(wrong[0])
        inside = least[row] >= 0.0
        raise InputError(
            "must hold class probabilities that lie in [0, 1] and sum to 1 in each row",
            argument="y_prob",
            seen=float(total[row] if inside else least[row]),
            where=Where(row=row),
            saying="the sum is {}" if inside else "a value is {}",
            cure="Of logits take the softmax first, divide percentages by 100, and leave out rows "
            "without predictions.",
        )
    return np.minimum(probs, 1.0)


def called_classes(y_prob: Any) -> list[str] | None:
    """What the columns of a table of class probabilities stand for: what tells their names apart.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> called_classes(SimpleNamespace(columns=["p_cat", "p_dog"])), called_classes([[0.5, 0.5]])
    (['cat', 'dog'], None)
    """
    columns = getattr(y_prob, "columns", None)
    return None if columns is None else distinct_parts([str(name) for name in columns])


def columns_in_order(learned: LearnedMap, y_prob: Any, argument: str) -> Any:
    """Class probabilities with the columns of a table in the order in which the map was fitted."""
    order = order_of_classes(called_classes(y_prob), learned.classes, argument)
    return y_prob if order is None else y_prob[[y_prob.columns[place] for place in order]]


def order_of_classes(
    names: Sequence[str] | None, wanted: Sequence[str] | None, argument: str
) -> list[int] | None:
    """Where each class of a map stands in a table; None where they stand in one order, or have no names."""
    if names is None or wanted is None or list(names) == list(wanted):
        return None
    if sorted(names) != sorted(wanted):
        raise InputError(
            "must have the columns of the classes that the map was fitted on: {wanted}",
            argument=argument,
            seen=", ".join(names),
            saying="they are called {}",
            cure="Rename them, or pass an array with the classes in that order.",
            wanted=", ".join(wanted),
        )
    return [list(names).index(name) for name in wanted]
