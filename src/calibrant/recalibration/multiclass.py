"""Recalibration of class probabilities: joint scaling of logits, or each class against the rest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array
from calibrant.data.multiclass import ClassProbabilities, as_class_probabilities, as_weights
from calibrant.data.pairs import as_pairs
from calibrant.errors import CalibrationError, InputError
from calibrant.recalibration.interface import (
    POSITIVE,
    LearnedMap,
    Part,
    Parts,
    Recalibrator,
    State,
    require_map,
)
from calibrant.recalibration.smooth import SmoothRecalibrator

__all__ = ["OneVsRestRecalibrator", "TemperatureScaling", "VectorScaling"]

Floats = NDArray[np.float64]

FARTHEST = 30.0
"""The logarithm of a slope, of logits of size 1, stays within this of 0 where no slope is the best."""
STEEPEST = 1e-4
"""The largest gradient of a likelihood that counts as maximised."""


class _LogitScaling(LearnedMap):
    """Maximum likelihood of softmax(slope · logits + intercept)."""

    def fit(
        self,
        logits: Any,
        y_true: Any,
        sample_weight: Any = None,
        *,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from logits, a row per case and a column per class, and the true classes."""
        matrix = as_class_probabilities(y_true, logits, from_logits=True, classes=classes)
        scores = _as_logits(matrix.raw)
        wrong = np.flatnonzero(matrix.labels < 0)
        if wrong.size:
            raise InputError(
                f"`y_true` must hold classes of the columns; row {wrong[0]} has "
                f"{matrix.given_labels[wrong[0]]!r}."
            )
        rows = np.zeros(matrix.n)
        weight = as_pairs(rows, rows, sample_weight=sample_weight).weight
        weight = np.ones(matrix.n) if weight is None else weight
        self._state = self._learn(scores, matrix.labels, weight / weight.sum())
        return self

    def transform(self, logits: Any) -> Floats:
        """Class probabilities of recalibrated logits."""
        from scipy.special import softmax

        state = self.state
        given = as_array(logits, "logits")
        slope, intercept = np.asarray(state["slope"]), np.asarray(state["intercept"])
        if given.ndim != 2 or intercept.size not in (1, given.shape[1]):
            columns = "a column per class" if intercept.size == 1 else f"{intercept.size} columns"
            raise InputError(
                f"`logits` must have a row per case and {columns}; its shape is {given.shape}."
            )
        scores = _as_logits(given)
        return np.asarray(softmax(scores * slope + intercept, axis=1), dtype=np.float64)

    @abstractmethod
    def _learn(self, scores: Floats, labels: NDArray[np.int64], weight: Floats) -> State:
        """Slope and intercept."""


@dataclass
class TemperatureScaling(_LogitScaling):
    """softmax(logits / temperature): one number for all classes; the predicted class stays.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, *On calibration of modern neural networks*, 2017.

    Examples
    --------
    >>> logits = [[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]]
    >>> cooler = TemperatureScaling().fit(logits, [0, 1, 0])
    >>> round(cooler.temperature, 2)
    2.89
    >>> cooler.transform(logits)[0].round(3)
    array([0.667, 0.167, 0.167])
    """

    kind: ClassVar[str] = "temperature scaling"
    parts: ClassVar[Parts] = {"slope": POSITIVE, "intercept": Part(float, 0.0, 0.0)}

    @property
    def temperature(self) -> float:
        """What the logits are divided by: above 1 where the model was too sure."""
        return 1.0 / float(self.state["slope"])

    def _learn(self, scores: Floats, labels: NDArray[np.int64], weight: Floats) -> State:
        from scipy.optimize import brentq
        from scipy.special import softmax

        unit = _size(scores)
        gaps = scores / unit
        gaps -= gaps[np.arange(labels.size), labels, None]
        size = _size(gaps)
        gaps /= size

        def gradient(log_slope: float) -> float:
            chance = softmax(np.exp(log_slope) * gaps, axis=1)
            return float(weight @ np.sum(chance * gaps, axis=1))

        if gradient(-FARTHEST) >= 0.0:  # the outcomes do not follow the logits at all
            found = -FARTHEST if gaps.any() else 0.0
        elif gradient(FARTHEST) <= 0.0:  # the largest logit is never wrong
            found = FARTHEST
        else:
            found = brentq(gradient, -FARTHEST, FARTHEST, xtol=1e-13)
        return {"slope": float(np.exp(found)) / size / unit, "intercept": 0.0}


@dataclass
class VectorScaling(_LogitScaling):
    """softmax(a · logits + b) with a slope and an intercept for each class.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, 2017.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> logits = rng.normal(size=(300, 3)) + 2 * np.eye(3)[y]
    >>> VectorScaling().fit(logits, y).transform(logits).shape
    (300, 3)
    """

    kind: ClassVar[str] = "vector scaling"
    parts: ClassVar[Parts] = {"slope": np.ndarray, "intercept": np.ndarray}

    def _learn(self, scores: Floats, labels: NDArray[np.int64], weight: Floats) -> State:
        from scipy.optimize import minimize
        from scipy.special import logsumexp

        classes = scores.shape[1]
        unit = _size(scores)
        scores = scores / unit
        center = weight @ scores
        scores -= center
        size = np.array([_size(column) for column in scores.T])
        scores /= size
        target = np.zeros_like(scores)
        target[np.arange(labels.size), labels] = weight

        def loss(parameters: Floats) -> tuple[float, Floats]:
            slope, intercept = parameters[:classes], parameters[classes:]
            moved = scores * slope + intercept
            level = logsumexp(moved, axis=1, keepdims=True)
            excess = weight[:, None] * np.exp(moved - level) - target
            value = float(weight @ level[:, 0] - np.sum(target * moved))
            return value, np.concatenate([(excess * scores).sum(axis=0), excess.sum(axis=0)])

        start = np.concatenate([np.ones(classes), np.zeros(classes)])
        options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-8}
        found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        if not np.all(np.isfinite(found.x)) or np.abs(found.jac).max() > STEEPEST:
            raise CalibrationError(
                f"the likelihood could not be maximised ({found.message}); use a map with fewer parameters, "
                "such as a temperature, or more rows."
            )
        slope = found.x[:classes] / size
        return {"slope": slope / unit, "intercept": found.x[classes:] - slope * center}


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

    recalibrator: Recalibrator = field(default_factory=SmoothRecalibrator)
    kind: ClassVar[str] = "one-vs-rest"
    parts: ClassVar[Parts] = {"maps": list}

    def fit(
        self,
        y_prob: Any,
        y_true: Any,
        sample_weight: Any = None,
        *,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from class probabilities, a row per case and a column per class."""
        require_map(self.recalibrator, "`recalibrator`")
        matrix = as_class_probabilities(y_true, y_prob, classes=classes)
        probs = _distributions(matrix)
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
        self._state = {"maps": maps}
        return self

    def transform(self, y_prob: Any) -> Floats:
        """Class probabilities, each class mapped and each row divided by its sum."""
        maps = self.state["maps"]
        given = as_array(y_prob, "y_prob")
        if given.ndim != 2 or given.shape[1] != len(maps):
            raise InputError(
                f"`y_prob` must have a row per case and {len(maps)} columns; its shape is "
                f"{given.shape}."
            )
        probs = _distributions(as_class_probabilities(np.zeros(len(given)), y_prob))
        columns = [
            probs[:, k] if learned is None else learned.transform(probs[:, k])
            for k, learned in enumerate(maps)
        ]
        mapped = np.stack(columns, axis=1)
        total = mapped.sum(axis=1, keepdims=True)
        even = np.full_like(mapped, 1.0 / len(maps))
        return np.asarray(np.divide(mapped, total, out=even, where=total > 0))


def _distributions(matrix: ClassProbabilities) -> Floats:
    """The rows, each of which must be a distribution; an entry above 1 by rounding becomes 1."""
    probs = np.asarray(matrix.raw, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        total, least = probs.sum(axis=1), probs.min(axis=1)
        wrong = np.flatnonzero(~((np.abs(total - 1.0) <= matrix.tolerance) & (least >= 0.0)))
    if wrong.size:
        row = int(wrong[0])
        inside = least[row] >= 0.0
        seen = f"sums to {total[row]:.10g}" if inside else f"has {least[row]:.10g}"
        raise InputError(
            f"the class probabilities of a row must lie in [0, 1] and sum to 1; row {row} {seen}. Of "
            "logits take the softmax first, divide percentages by 100, and leave out rows without "
            "predictions."
        )
    return np.minimum(probs, 1.0)


def _size(values: Floats) -> float:
    """The root of the mean square, or 1 where nothing differs from 0: what to divide by."""
    most = float(np.abs(values).max())
    if most < np.finfo(np.float64).tiny:
        return 1.0
    return most * float(np.sqrt(np.mean((values / most) ** 2)))


def _as_logits(values: NDArray[Any]) -> Floats:
    if values.dtype.kind not in "biuf":
        raise InputError(f"`logits` must hold numbers; its type is {values.dtype}.")
    scores = np.array(values, dtype=np.float64)
    if not np.all(np.isfinite(scores)):
        row = int(np.argmax(~np.isfinite(scores).reshape(scores.shape[0], -1).all(axis=1)))
        raise InputError(f"`logits` must be finite; row {row} is not.")
    return scores
