"""Which map of many classes to use: all candidates on rows they have not seen, "none" among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.arrays import as_array
from calibrant.data.class_distributions import class_distributions
from calibrant.data.multiclass import as_class_probabilities
from calibrant.data.pairs import Pairs
from calibrant.errors import Code, InputError, TooFewRows, TypeName
from calibrant.inference.clusters import cluster_codes
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.recalibration.learned_map import LearnedMap, Recalibrator
from calibrant.recalibration.logistic import NEAREST_TO_THE_ENDS
from calibrant.recalibration.multiclass import OneVsRestRecalibrator, as_distributions
from calibrant.recalibration.parametric import BetaRecalibrator
from calibrant.recalibration.scaling import StructuredScaling, TemperatureScaling
from calibrant.recalibration.state_checks import Parts
from calibrant.repair.choice import NONE, Choice, compared

__all__ = ["IdentityOfClasses", "choose_map_of_classes"]

Floats = NDArray[np.float64]


@dataclass
class IdentityOfClasses(LearnedMap):
    """Class probabilities as they are: the map that others must beat.

    Examples
    --------
    >>> IdentityOfClasses().fit([[0.2, 0.8]], [1]).transform([[0.4, 0.6]])
    array([[0.4, 0.6]])
    """

    kind: ClassVar[str] = "none of classes"
    parts: ClassVar[Parts] = {}

    def fit(self, y_prob: Any, y_true: Any, sample_weight: Any = None, **_: Any) -> Self:
        """Learn nothing."""
        self._state = {}
        return self

    def transform(self, y_prob: Any) -> Floats:
        """The same rows, checked."""
        matrix = as_class_probabilities(np.zeros(len(y_prob)), as_array(y_prob, "y_prob"))
        return as_distributions(matrix)

    def explain(self) -> str:
        """What the map does, in one sentence."""
        return "This map leaves predictions as they are."


def choose_map_of_classes(
    y_prob: Any,
    y_true: Any,
    candidates: Mapping[str, LearnedMap] | None,
    loss: str,
    folds: int,
    seed: int,
    *,
    sample_weight: Any = None,
    cluster: Any = None,
    classes: Sequence[Any] | None = None,
    from_logits: bool = False,
    on_invalid: Literal["raise", "drop"] = "raise",
    **unknown: Any,
) -> Choice:
    """The comparison of `choose_recalibrator` for class probabilities."""
    if unknown:
        raise InputError(
            "is not known for class probabilities",
            argument=next(iter(unknown)),
            cure="Leave it out.",
        )
    rows = class_distributions(
        y_true,
        y_prob,
        sample_weight=sample_weight,
        from_logits=from_logits,
        classes=classes,
        on_invalid=on_invalid,
    )
    probs, labels, weight, n = rows.probs, rows.labels, rows.weight, rows.labels.size
    unit = np.arange(n)
    if cluster is not None:
        codes = cluster_codes(cluster, n + sum(rows.dropped.values()))[0]
        unit = cluster_codes(codes[rows.rows], n)[0]
    if not 2 <= folds <= unit.max() + 1:
        raise InputError(
            "must lie between 2 and the {n} {called}",
            argument="folds",
            seen=folds,
            cure="Pass fewer folds, or more rows.",
            n=int(unit.max()) + 1,
            called="rows" if cluster is None else "clusters",
        )
    if np.unique(labels).size < 2:
        raise TooFewRows(
            "must hold rows of two classes or more",
            argument="y_true",
            seen=rows.classes[labels[0]],
            saying="all hold {}",
            cure="Pass rows of other classes too.",
        )
    maps = {NONE: IdentityOfClasses(), **_candidates(candidates, n, probs.shape[1])}
    fold = _dealt(labels, unit, folds, seed)

    def fitted(made: LearnedMap, rows: NDArray[np.bool_]) -> Any:
        learned: Any = deepcopy(made)
        return learned.fit(probs[rows], labels[rows], None if weight is None else weight[rows])

    losses, errors = {}, {}
    ones = np.ones(n) if weight is None else weight
    for name, made in maps.items():
        predicted = np.empty_like(probs)
        for k in range(folds):
            predicted[fold == k] = fitted(made, fold != k).transform(probs[fold == k])
        losses[name] = _losses(labels, predicted, loss)
        right = predicted.argmax(axis=1) == labels
        errors[name] = smooth_ece(Pairs(np.minimum(predicted.max(axis=1), 1.0), right, ones))
    lines, best = compared(losses, errors, ones, unit)
    return Choice(best, lines, loss, fitted(maps[best], np.ones(n, dtype=np.bool_)))


def _candidates(
    candidates: Mapping[str, LearnedMap] | None, rows: int, classes: int
) -> dict[str, LearnedMap]:
    """Maps that take class probabilities; by default those that the rows are enough for."""
    if candidates is None:
        maps: dict[str, LearnedMap] = {
            "temperature": TemperatureScaling(from_logits=False),
            "one-vs-rest beta": OneVsRestRecalibrator(BetaRecalibrator()),
        }
        if rows >= 4 * classes:
            maps["structured"] = StructuredScaling(from_logits=False)
        if rows >= 2 * classes * (classes + 1):
            maps["structured matrix"] = StructuredScaling(from_logits=False, matrix=True)
        return maps
    if not isinstance(candidates, Mapping):
        raise InputError(
            "must be a mapping from names to maps",
            argument="candidates",
            seen=TypeName.of(candidates),
            cure="Pass {example}, or leave it out for all.",
            example=Code('{"temperature": TemperatureScaling(from_logits=False)}'),
        )
    for name, made in candidates.items():
        wrong = isinstance(made, Recalibrator) or not isinstance(made, LearnedMap)
        if wrong or getattr(made, "from_logits", False):
            raise InputError(
                "must hold maps of class probabilities",
                argument="candidates",
                seen=made,
                saying="{name} is {}",
                cure="Pass a map such as {example}.",
                name=repr(name),
                example=Code("TemperatureScaling(from_logits=False)"),
            )
    return dict(candidates)


def _dealt(
    labels: NDArray[np.int64], unit: NDArray[np.int64], folds: int, seed: int
) -> NDArray[np.int64]:
    """The fold of each row: units at random, those of every class (of their first row) spread evenly."""
    _, first = np.unique(unit, return_index=True)
    order = generator(seed).permutation(first.size)
    order = order[np.argsort(labels[first][order], kind="stable")]
    fold = np.empty(first.size, dtype=np.int64)
    fold[order] = np.arange(first.size) % folds
    return np.asarray(fold[unit])


def _losses(labels: NDArray[np.int64], probs: Floats, loss: str) -> Floats:
    """The log loss or Brier score of every row."""
    own = probs[np.arange(labels.size), labels]
    if loss == "log":
        return np.asarray(-np.log(np.maximum(own, NEAREST_TO_THE_ENDS)))
    return np.asarray(np.sum(probs**2, axis=1) - 2.0 * own + 1.0)
