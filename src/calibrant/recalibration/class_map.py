"""Maps of class probabilities, with columns by name or in the order of the fit; one-vs-rest maps."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import Any, ClassVar, Literal, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._format import distinct_parts, group_text
from calibrant.data.arrays import as_array
from calibrant.data.classes import ClassProbabilities, as_class_probabilities, finite_logits
from calibrant.errors import InputError, TooFewRows, show_value
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.learned_map import (
    Floats,
    LearnedMap,
    Parts,
    Recalibrator,
    State,
    hints_of_maps,
    register,
    require_map,
    require_outcomes,
    require_rows,
)

LEAST_OF_A_CLASS = 2
"""Rows of a class for parameters of its own: from none or one, they would only tell that it is rare."""


class ClassRecalibrator(LearnedMap):
    """Map from class probabilities, or logits, to better calibrated class probabilities.

    It remembers the names of its columns in `classes_`: `fit` takes them from `classes`, or from the columns
    of a frame. `transform` then takes the columns of a frame by name, and those of an array in the order of
    the fit. The result has the columns in the order in which they were passed.
    """

    shared: ClassVar[bool] = False
    """True if all classes have the same parameters."""
    from_logits: bool = False

    @hints_of_maps()
    def fit(
        self,
        y_prob: Any,
        y_true: Any = None,
        sample_weight: Any = None,
        *,
        classes: Sequence[Any] | None = None,
        on_invalid: Literal["raise", "drop"] = "raise",
    ) -> Self:
        """Learn from class probabilities (a row per case, a column per class) and the true classes.

        `classes` names the columns in their order; a frame's columns name themselves. `on_invalid` says what
        becomes of rows that break a rule.
        """
        require_outcomes(y_true)
        options = {"sample_weight": sample_weight, "on_invalid": on_invalid}
        rows, found = self._rows(y_true, y_prob, classes=classes, **options)
        self._require_enough(found)
        self._set_state(self._learn(rows, found), rows.shape[1])
        self.classes_ = called_classes(y_prob, classes)
        return self

    def transform(self, y_prob: Any, *, classes: Sequence[Any] | None = None) -> Any:
        """Recalibrated class probabilities, with rows and columns in the order given.

        Columns that have names (those of a frame, or `classes`) are taken by name, where the map knows its
        classes. Others are taken in the order of the fit. Of a frame of pandas (with its index) or
        polars, the result is a frame; `set_output` chooses frames for all.
        """
        return self._contained(self.mapped(y_prob, classes=classes), y_prob)

    @hints_of_maps(drop=False)
    def mapped(self, y_prob: Any, *, classes: Sequence[Any] | None = None) -> Floats:
        """Recalibrated class probabilities as an array; see `transform`."""
        state = self.state
        values = as_array(y_prob, "y_prob")
        if values.ndim != 2 or values.shape[1] != self.n_features_in_:
            raise InputError(
                f"`y_prob` must have a row per case and {self.n_features_in_} columns; its shape is "
                f"{values.shape} (the map is expecting {self.n_features_in_} features as input).",
                argument="y_prob",
                hint="Reshape your data: a row per case, a column for each class of the fit.",
            )
        unknown = np.zeros(len(values), np.int64)
        rows, _ = self._rows(unknown, y_prob, classes=range(values.shape[1]))
        order = order_of_classes(called_classes(y_prob, classes), self.classes_)
        mapped = self._apply(rows if order is None else rows[:, order], state)
        if order is not None:
            mapped = mapped[:, np.argsort(order)]
        return mapped

    def _rows(
        self, y_true: Any, y_prob: Any, **options: Any
    ) -> tuple[NDArray[Any], ClassProbabilities]:
        """Finite logits or distributions, checked, with what else was read."""
        found = as_class_probabilities(
            y_true, y_prob, from_logits=self.from_logits, **options
        ).valid()
        return finite_logits(
            found.raw, "y_prob"
        ) if self.from_logits else found.distributions, found

    def to_sql(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: an SQL expression here is of one column, and this map needs those of all classes."""
        raise InputError(
            "A map of classes cannot be written as an expression of one column.",
            hint="Write it as Python with `to_python()`, or apply the map to the rows themselves.",
        )

    def to_python(self, name: str = "recalibrate", *, tolerance: float = 1e-5) -> str:
        """Text of a Python module with the map as a function of one row; it needs nothing else.

        `tolerance` matters to maps that are learned class by class, as in `Recalibrator.to_python`.
        """
        from calibrant.recalibration.export import class_map_to_python

        return class_map_to_python(self, name, tolerance)

    def _require_enough(self, found: ClassProbabilities) -> None:
        used = found.labels if found.weight is None else found.labels[found.weight > 0.0]
        counts = np.bincount(used, minlength=len(found.classes))
        require_rows(int(counts.sum()), self.n_parameters_of(counts.size))
        require_rows_of_classes(counts, found.classes, shared=self.shared)

    def _try_out(self) -> None:
        k, names = self.n_features_in_, self.classes_
        mapped = self._apply(np.vstack([np.full((1, k), 1.0 / k), np.eye(1, k)]), self.state)
        if names is not None and len({*map(str, names)}) != k:
            raise InputError("it must name each of its classes once")
        if mapped.shape != (2, k) or not np.all((mapped >= 0.0) & (mapped <= 1.0)):
            raise InputError("it does not give probabilities")

    def n_parameters_of(self, classes: int) -> int:
        """Number of parameters for so many classes."""
        return 0

    @abstractmethod
    def explain(self) -> str:
        """Sentence on what the map does."""

    @abstractmethod
    def _learn(self, rows: NDArray[Any], found: ClassProbabilities) -> State:
        """Fitted attributes from probabilities or finite logits, and what else was read."""

    @abstractmethod
    def _apply(self, rows: NDArray[Any], state: State) -> Floats:
        """Mapped rows, of checked ones with the columns in the order of the map."""

    def _python(self, state: State, classes: int, tolerance: float) -> tuple[list[str], str]:
        """Constants, and lines of Python from `p` or `s` (logits) to the list `q` of probabilities."""
        return [], "    q = p\n"


@register("none of classes", none={})
class IdentityOfClasses(ClassRecalibrator):
    """Class probabilities as they are: the map that others must beat.

    Examples
    --------
    >>> IdentityOfClasses().fit([[0.2, 0.8]], [1]).transform([[0.4, 0.6]])
    array([[0.4, 0.6]])
    """

    shared = True

    def explain(self) -> str:
        """Sentence on what the map does."""
        return "This map leaves predictions as they are."

    def _require_enough(self, found: ClassProbabilities) -> None:
        """Any rows will do: nothing is learned."""

    def _learn(self, rows: NDArray[Any], found: ClassProbabilities) -> State:
        return {}

    def _apply(self, rows: NDArray[Any], state: State) -> Floats:
        return np.asarray(rows)


@register("one-vs-rest")
class OneVsRestRecalibrator(ClassRecalibrator):
    """Map of two classes for each class against the rest; then the rows are divided by their sums.

    Parameters
    ----------
    recalibrator : Recalibrator, optional
        The map to learn for each class; by default `AdaptiveRecalibrator`.

    Notes
    -----
    Every class must have two rows or more: of others, a map would learn that they never happen.

    References
    ----------
    Zadrozny and Elkan, *Transforming classifier scores into accurate multiclass probability
    estimates*, 2002.

    Examples
    --------
    >>> probs = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2]] * 2
    >>> recalibrated = OneVsRestRecalibrator().fit(probs, [0, 1, 2, 1] * 2).transform(probs)
    >>> bool(np.allclose(recalibrated.sum(axis=1), 1.0))
    True
    """

    parts: ClassVar[Parts] = {"maps": list}

    def __init__(self, recalibrator: Recalibrator | None = None) -> None:
        self.recalibrator = recalibrator

    @property
    def _each(self) -> Recalibrator:
        return AdaptiveRecalibrator() if self.recalibrator is None else self.recalibrator

    def n_parameters_of(self, classes: int) -> int:
        """Number of parameters of the maps of so many classes."""
        return classes * self._each.n_parameters

    def _learn(self, rows: NDArray[Any], found: ClassProbabilities) -> State:
        maps: list[Recalibrator | None] = [
            deepcopy(self._each).fit(column, found.labels == k, found.weight)
            for k, column in enumerate(rows.T)
        ]
        return {"maps": maps}

    def _require_enough(self, found: ClassProbabilities) -> None:
        require_map(self._each, "recalibrator")
        super()._require_enough(found)

    def _apply(self, rows: NDArray[Any], state: State) -> Floats:
        maps = state["maps"]
        if len(maps) != rows.shape[1]:
            raise InputError(f"it must have a map for each of {rows.shape[1]} classes")
        columns = [
            rows[:, k] if learned is None else learned.mapped(rows[:, k])
            for k, learned in enumerate(maps)
        ]
        mapped = np.stack(columns, axis=1)
        total = mapped.sum(axis=1, keepdims=True)
        even = np.full_like(mapped, 1.0 / len(maps))
        return np.asarray(np.divide(mapped, total, out=even, where=total > 0))

    def explain(self) -> str:
        """Sentence on what the map does."""
        maps = self.state["maps"]
        changed = sum(learned is not None for learned in maps)
        return (
            f"This {self.kind} map changes {changed} of {len(maps)} classes, each by a map "
            f"({self._each.kind}) of its own, and makes the sum 1 again; the most likely class may change."
        )

    def _python(self, state: State, classes: int, tolerance: float) -> tuple[list[str], str]:
        from calibrant.recalibration.export import interpolation, nested

        knots = [None if one is None else interpolation(one, tolerance) for one in state["maps"]]
        listed = ", ".join("None" if pair is None else nested(np.stack(pair)) for pair in knots)
        interpolate = (
            "from bisect import bisect_right\n\n\n"
            "def _mapped(p, knots):\n    if knots is None:\n        return p\n    x, y = knots\n"
            "    k = min(max(bisect_right(x, p), 1), len(x) - 1)\n"
            "    return y[k - 1] + (p - x[k - 1]) / (x[k] - x[k - 1]) * (y[k] - y[k - 1])\n\n"
        )
        body = (
            "    q = [_mapped(v, knots) for v, knots in zip(p, MAPS)]\n    total = sum(q)\n"
            "    q = [v / total for v in q] if total > 0.0 else [1.0 / len(q)] * len(q)\n"
        )
        return [interpolate, f"MAPS = ({listed},)"], body


def require_rows_of_classes(
    counts: NDArray[np.int64], classes: Sequence[Any], *, shared: bool
) -> None:
    """Refuse rows of one class; and, unless all classes share the parameters, a class with fewer than two."""
    if np.count_nonzero(counts) < 2:
        raise TooFewRows(
            f"`y_true` must hold rows of two classes or more; all hold one class, "
            f"{show_value(classes[int(np.argmax(counts))])}.",
            argument="y_true",
        )
    rarest = int(np.argmin(counts))
    if not shared and counts[rarest] < LEAST_OF_A_CLASS:
        raise TooFewRows(
            f"`y_true` must hold {LEAST_OF_A_CLASS} rows or more of every class for a map with parameters of "
            f"each class; of class {show_value(classes[rarest])} it has {int(counts[rarest])}.",
            argument="y_true",
            hint="Pass more rows of it, leave its column out, or use a temperature, which all classes share.",
        )


def called_classes(y_prob: Any, classes: Sequence[Any] | None = None) -> list[str] | None:
    """Names of the columns of class probabilities: `classes`, or the distinct parts of a frame's columns.

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


def order_of_classes(names: Sequence[str] | None, wanted: Sequence[str] | None) -> list[int] | None:
    """Column of each class of a map in a table; None if they are in one order, or have no names."""
    if names is None or wanted is None or list(names) == list(wanted):
        return None
    if sorted(names) != sorted(wanted):
        raise InputError(
            f"`y_prob` must have the columns of the classes that the map was fitted on: {', '.join(wanted)}; "
            f"they are called {', '.join(names)}.",
            argument="y_prob",
            hint="Rename them, name them with `classes=`, or pass an array with the classes in that order.",
        )
    return [list(names).index(name) for name in wanted]
