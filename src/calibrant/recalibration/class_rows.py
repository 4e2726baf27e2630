"""Class probabilities that maps are judged on: rows, folds, and each row by a map that has not seen it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.classes import class_distributions
from calibrant.errors import InputError
from calibrant.inference.clusters import cluster_codes
from calibrant.recalibration.class_map import MapOfClasses, called_classes
from calibrant.recalibration.cures import TO_LEARN_CLASSES, only_cures
from calibrant.recalibration.logistic import NEAREST_TO_THE_ENDS

__all__ = [
    "ClassSample",
    "brier_of",
    "cross_fitted_classes",
    "dealt_classes",
    "fewest_rows",
    "fitted_to_classes",
    "log_losses_of",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClassSample:
    """Rows with a column for each class.

    Attributes
    ----------
    given : array[n, classes]
        What a map takes: probabilities, or logits.
    probs : float64[n, classes]
        The probabilities before any map.
    labels : int64[n]
        Column of the true class.
    weight : float64[n] or None
        Importance of each row.
    unit : int64[n]
        Number of the row, or of the cluster that it belongs to.
    clustered : bool
        Whether rows come in clusters.
    names : list of str or None
        What the columns are called, where that is known.
    known : list
        The classes as they were given.
    """

    given: NDArray[Any]
    probs: Floats
    labels: Integers
    weight: Floats | None
    unit: Integers
    clustered: bool
    names: list[str] | None
    known: Sequence[Any]

    @classmethod
    def of(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        cluster: Any = None,
        classes: Sequence[Any] | None = None,
        from_logits: bool = False,
        on_invalid: Literal["raise", "drop"] | None = None,
    ) -> ClassSample:
        """The rows, checked; errors name `on_invalid` only where it was passed."""
        known = TO_LEARN_CLASSES if on_invalid is None else (*TO_LEARN_CLASSES, "on_invalid")
        with only_cures(known):
            rows = class_distributions(
                y_true,
                y_prob,
                sample_weight=sample_weight,
                classes=classes,
                from_logits=from_logits,
                on_invalid=on_invalid or "raise",
            )
        n = rows.labels.size
        unit = np.arange(n)
        if cluster is not None:
            codes = cluster_codes(cluster, n + sum(rows.dropped.values()))[0]
            unit = cluster_codes(codes[rows.rows], n)[0]
        return cls(
            rows.given,
            rows.probs,
            rows.labels,
            rows.weight,
            unit,
            cluster is not None,
            called_classes(y_prob, classes),
            rows.classes,
        )

    def as_probabilities(self) -> ClassSample:
        """The same rows for maps that take probabilities."""
        return replace(self, given=self.probs)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.labels.size)

    @property
    def counts(self) -> Integers:
        """How many rows of each class have any weight."""
        return np.bincount(self.labels[self.ones > 0.0], minlength=self.probs.shape[1])

    @property
    def ones(self) -> Floats:
        """The weights; 1 for every row where there are none."""
        return np.ones(self.n) if self.weight is None else self.weight


def dealt_classes(sample: ClassSample, folds: int, seed: int) -> Integers:
    """The fold of each row: units at random, those of every class (of their first row) spread evenly."""
    units = int(sample.unit.max()) + 1
    if not 2 <= folds <= units:
        raise InputError(
            "must lie between 2 and the {n} {called}",
            argument="folds",
            seen=folds,
            cure="Pass fewer folds, or more rows.",
            n=units,
            called="clusters" if sample.clustered else "rows",
        )
    _, first = np.unique(sample.unit, return_index=True)
    order = generator(seed).permutation(units)
    order = order[np.argsort(sample.labels[first][order], kind="stable")]
    fold = np.empty(units, dtype=np.int64)
    fold[order] = np.arange(units) % folds
    return np.asarray(fold[sample.unit])


def fewest_rows(sample: ClassSample, fold: Integers) -> Integers:
    """The fewest rows of each class that any fold leaves to learn from."""
    heavy, k = sample.ones > 0.0, sample.probs.shape[1]
    left = [
        np.bincount(sample.labels[heavy & (fold != one)], minlength=k) for one in np.unique(fold)
    ]
    return np.asarray(np.min(left, axis=0))


def fitted_to_classes(
    made: MapOfClasses, sample: ClassSample, rows: NDArray[np.bool_]
) -> MapOfClasses:
    """A copy of the map, learned from these rows."""
    weight = None if sample.weight is None else sample.weight[rows]
    learned = deepcopy(made).fit(sample.given[rows], sample.labels[rows], weight)
    learned.classes = sample.names
    return learned


def cross_fitted_classes(made: MapOfClasses, sample: ClassSample, fold: Integers) -> Floats:
    """Every row by the map of the rows outside its fold."""
    mapped = np.empty_like(sample.probs)
    for one in np.unique(fold):
        held_out = fold == one
        learned = fitted_to_classes(made, sample, ~held_out)
        mapped[held_out] = learned.transform(sample.given[held_out])
    return mapped


def log_losses_of(labels: Integers, probs: Floats) -> Floats:
    """-log of the probability of what happened, with 0 as far away as float32 can tell."""
    own = probs[np.arange(labels.size), labels]
    return np.asarray(-np.log(np.maximum(own, NEAREST_TO_THE_ENDS)))


def brier_of(labels: Integers, probs: Floats) -> Floats:
    """The Brier score of every row: the squared distance from what happened, over all classes."""
    own = probs[np.arange(labels.size), labels]
    return np.asarray(np.sum(probs**2, axis=1) - 2.0 * own + 1.0)
