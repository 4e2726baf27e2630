"""What every map of class probabilities is: how it takes columns, by name or in the order it was fitted."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._format import distinct_parts, group_text
from calibrant.data.arrays import as_array
from calibrant.data.classes import (
    as_class_probabilities,
    finite_logits,
    refuse_probabilities,
    sum_tolerance,
)
from calibrant.data.rows import as_rows
from calibrant.errors import Code, Cure, InputError, Option, TypeName, Where
from calibrant.recalibration.cures import TO_LEARN_CLASSES, only_cures
from calibrant.recalibration.enough_rows import require_parameters, require_rows_of_classes
from calibrant.recalibration.learned_map import LearnedMap, State

__all__ = [
    "ClassTraining",
    "MapOfClasses",
    "as_distributions",
    "called_classes",
    "order_of_classes",
]

Floats = NDArray[np.float64]

_OF_LOGITS = Cure(
    "If they are probabilities, make the map with {option}.",
    {"option": Option("from_logits", False)},
)


@dataclass(frozen=True, eq=False)
class ClassTraining:
    """The rows that a map of classes learns from.

    Attributes
    ----------
    rows : array[n, classes]
        Probabilities, or finite logits.
    labels : int64[n]
        Column of the true class.
    weight : float64[n] or None
        Importance of each row.
    classes : list
        What the columns stand for.
    """

    rows: NDArray[Any]
    labels: NDArray[np.int64]
    weight: Floats | None
    classes: Sequence[Any]

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many rows of each class have any weight."""
        heavy = self.labels if self.weight is None else self.labels[self.weight > 0.0]
        return np.bincount(heavy, minlength=len(self.classes))


class MapOfClasses(LearnedMap):
    """A map from class probabilities, or logits, to better calibrated class probabilities.

    It remembers what its columns are called: `fit` takes the names from `classes`, or from the columns of a
    frame. `transform` then takes the columns of a frame by their names, and those of an array in the order
    in which it was fitted. The result has the columns in the order in which they were passed.
    """

    shared: ClassVar[bool] = False
    """Whether all classes have the same parameters."""
    from_logits: bool = False

    def fit(
        self,
        y_prob: Any,
        y_true: Any,
        sample_weight: Any = None,
        *,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from class probabilities (a row per case, a column per class) and the true classes.

        `classes` names the columns in their order; a frame's columns name themselves.
        """
        training = self._training(y_prob, y_true, sample_weight, classes)
        self._require_enough(training)
        self._state = self._learn(training)
        self.columns = training.rows.shape[1]
        self.classes = called_classes(y_prob, classes)
        return self

    def transform(self, y_prob: Any, *, classes: Sequence[Any] | None = None) -> Floats:
        """Recalibrated class probabilities, with rows and columns in the order given.

        Columns that have names (those of a frame, or `classes`) are taken by them, where the map knows its
        classes. Others are taken in the order in which the map was fitted.
        """
        state = self.state
        values = as_array(y_prob, self._argument)
        wanted = self._columns(state) or self.columns
        if values.ndim != 2 or (wanted is not None and values.shape[1] != wanted):
            self._refuse_shape(values, wanted)
        names = called_classes(y_prob, classes)
        order = order_of_classes(names, self.classes, self._argument)
        if order is None:
            return self._apply(self._checked(values, sum_tolerance(y_prob)), state)
        mapped = np.empty(values.shape)
        mapped[:, order] = self._apply(
            self._checked(values[:, order], sum_tolerance(y_prob)), state
        )
        return mapped

    def to_sql(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: an SQL expression here is of one column, and this map needs those of all classes."""
        raise InputError(
            "a map of classes cannot be written as an expression of one column",
            seen=self.kind,
            saying="",
            cure=[
                Cure("Write it as Python with {python}.", {"python": Code("to_python()")}),
                "Apply the map to the rows themselves.",
            ],
        )

    @property
    def _argument(self) -> str:
        return "logits" if self.from_logits else "y_prob"

    def _training(
        self, y_prob: Any, y_true: Any, sample_weight: Any, classes: Sequence[Any] | None
    ) -> ClassTraining:
        for name, value in self.settings.items():
            if isinstance(getattr(type(self), name, None), bool) and not isinstance(
                value, bool | np.bool_
            ):
                raise InputError(
                    "must be True or False", argument=name, seen=value, cure="Pass one of them."
                )
        with only_cures(TO_LEARN_CLASSES):
            matrix = as_class_probabilities(y_true, y_prob, classes=classes)
        rows = self._checked(matrix.raw, matrix.tolerance)
        with only_cures(TO_LEARN_CLASSES):
            unknown = np.flatnonzero(matrix.labels < 0)
            if unknown.size:
                row = int(unknown[0])
                raise matrix.refusal(row, matrix.raw[row], float(matrix.raw[row].sum()))
            weight = None
            if sample_weight is not None:
                zeros = np.zeros(matrix.n)
                weight = as_rows(zeros, zeros, sample_weight=sample_weight).weight
        return ClassTraining(rows, matrix.labels, weight, matrix.classes)

    def _checked(self, values: NDArray[Any], tolerance: float) -> NDArray[Any]:
        """Finite logits, or distributions."""
        argument = self._argument
        if values.dtype.kind not in "biuf":
            raise InputError(
                "must hold numbers",
                argument=argument,
                seen=TypeName(values.dtype),
                saying="its type is {}",
                cure="Convert it first.",
            )
        if not self.from_logits:
            return as_distributions(values, tolerance)
        refuse_probabilities(values, tolerance, argument, _OF_LOGITS)
        logits = finite_logits(values, argument)
        return logits if logits.dtype in (np.float32, np.float64) else logits.astype(np.float64)

    def _refuse_shape(self, values: NDArray[Any], wanted: int | None) -> NoReturn:
        raise InputError(
            "must have a row per case and {columns}",
            argument=self._argument,
            seen=values.shape,
            saying="its shape is {}",
            columns="a column per class" if wanted is None else f"{wanted} columns",
            cure="Pass a column for each class that the map was fitted on.",
        )

    def _require_enough(self, training: ClassTraining) -> None:
        counts = training.counts
        require_parameters(int(counts.sum()), self.parameters(counts.size))
        require_rows_of_classes(counts, training.classes, shared=self.shared)

    @abstractmethod
    def parameters(self, classes: int) -> int:
        """How many numbers are learned for so many classes."""

    @abstractmethod
    def _learn(self, training: ClassTraining) -> State:
        """Plain numbers and arrays from rows."""

    @abstractmethod
    def _apply(self, rows: NDArray[Any], state: State) -> Floats:
        """The map itself, on checked rows with the columns in the order of the map."""


def as_distributions(values: NDArray[Any], tolerance: float) -> Floats:
    """The rows, each of which must be a distribution; an entry above 1 by rounding becomes 1."""
    probs = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        total, least = probs.sum(axis=1), probs.min(axis=1)
        wrong = np.flatnonzero(~((np.abs(total - 1.0) <= tolerance) & (least >= 0.0)))
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


def called_classes(y_prob: Any, classes: Sequence[Any] | None = None) -> list[str] | None:
    """What columns of class probabilities stand for: `classes`, or what tells a frame's columns apart.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> called_classes(SimpleNamespace(columns=["p_cat", "p_dog"])), called_classes([[0.5, 0.5]])
    (['cat', 'dog'], None)
    >>> called_classes([[0.5, 0.5]], [10, 20])
    ['10', '20']
    """
    if classes is not None:
        return [group_text(name) for name in classes]
    columns = getattr(y_prob, "column_names", getattr(y_prob, "columns", None))
    return None if columns is None else distinct_parts([str(name) for name in columns])


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
            cure="Rename them, name them with {classes}, or pass an array with the classes in that order.",
            classes=Option("classes", ...),
            wanted=", ".join(wanted),
        )
    return [list(names).index(name) for name in wanted]
