"""Recalibration of all classes together: scaling of their logits."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_positive
from calibrant.data.classes import SMALLEST_LOGARITHM
from calibrant.errors import CalibrantError
from calibrant.recalibration.class_map import ClassTraining, MapOfClasses
from calibrant.recalibration.deploy_classes import explain_scaling, scaling_to_python
from calibrant.recalibration.learned_map import State
from calibrant.recalibration.state_checks import POSITIVE, Part, Parts
from calibrant.recalibration.temperature import ClassRows, best_slope

__all__ = ["StructuredScaling", "TemperatureScaling", "VectorScaling"]

Floats = NDArray[np.float64]

STEEPEST = 1e-4
"""The largest gradient of a likelihood that counts as maximised."""


@dataclass
class LogitScaling(MapOfClasses):
    """A linear map of logits, by maximum likelihood of its softmax."""

    from_logits: bool = True

    def explain(self) -> str:
        """What the map does to logits, in one sentence."""
        return explain_scaling(self)

    def to_python(self, name: str = "recalibrate") -> str:
        """The map as the text of a Python function of one row, which needs nothing else."""
        return scaling_to_python(self, name)

    def _learn(self, training: ClassTraining) -> State:
        n = training.labels.size
        weight = np.ones(n) if training.weight is None else training.weight
        total = float(weight.sum())
        worth = max(total, total**2 / float(weight @ weight))
        rows = ClassRows(self._scores(training.rows), training.labels, weight / total, worth)
        return self._learned(rows)

    def _apply(self, rows: NDArray[Any], state: State) -> Floats:
        from scipy.special import softmax

        return np.asarray(softmax(self._scaled(self._scores(rows), state), axis=1), np.float64)

    def _scores(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Logits; of probabilities, their logarithms."""
        if self.from_logits:
            return rows
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.log(rows), SMALLEST_LOGARITHM))

    @abstractmethod
    def _learned(self, rows: ClassRows) -> State:
        """The parameters."""

    @abstractmethod
    def _scaled(self, scores: NDArray[Any], state: State) -> Floats:
        """The scaled logits."""


@dataclass
class TemperatureScaling(LogitScaling):
    """softmax(logits / temperature): one number for all classes; the predicted class stays.

    Parameters
    ----------
    from_logits : bool
        With False, `fit` and `transform` take class probabilities in place of logits.

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
    shared: ClassVar[bool] = True
    parts: ClassVar[Parts] = {"slope": POSITIVE, "intercept": Part(float, 0.0, 0.0)}

    @property
    def temperature(self) -> float:
        """What the logits are divided by: above 1 where the model was too sure."""
        return 1.0 / float(self.state["slope"])

    def parameters(self, classes: int) -> int:
        """The temperature."""
        return 1

    def _learned(self, rows: ClassRows) -> State:
        return {"slope": best_slope(rows), "intercept": 0.0}

    def _scaled(self, scores: NDArray[Any], state: State) -> Floats:
        return np.asarray(scores * np.float64(state["slope"]))


@dataclass
class VectorScaling(LogitScaling):
    """softmax(a · logits + b) with a slope and an intercept for each class.

    Parameters
    ----------
    from_logits : bool
        With False, `fit` and `transform` take class probabilities in place of logits.

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

    def parameters(self, classes: int) -> int:
        """A slope and an intercept for each class."""
        return 2 * classes

    def _learned(self, rows: ClassRows) -> State:
        labels, weight = rows.labels, rows.weight
        classes = rows.logits.shape[1]
        unit = _size(rows.logits)
        scores = rows.logits / np.float64(unit)
        center = weight @ scores
        scores -= center
        size = np.array([_size(column) for column in scores.T])
        scores /= size
        target = np.zeros_like(scores)
        target[np.arange(labels.size), labels] = weight

        def loss(parameters: Floats) -> tuple[float, Floats]:
            slope, intercept = parameters[:classes], parameters[classes:]
            value, excess = _likelihood(scores * slope + intercept, weight, target)
            return value, np.concatenate([(excess * scores).sum(axis=0), excess.sum(axis=0)])

        start = np.concatenate([np.ones(classes), np.zeros(classes)])
        solution = _minimised(loss, start)
        slope = solution[:classes] / size
        return {"slope": slope / unit, "intercept": solution[classes:] - slope * center}

    def _columns(self, state: State) -> int | None:
        return int(state["intercept"].size)

    def _scaled(self, scores: NDArray[Any], state: State) -> Floats:
        return np.asarray(scores * state["slope"] + state["intercept"])


@dataclass
class StructuredScaling(LogitScaling):
    """A temperature, then a slope and an intercept for each class that are held close to 1 and 0.

    The state of the art for many classes: as flexible as the rows allow. The ridge penalty on what it adds
    to the temperature is (classes / rows) for slopes and intercepts, and (classes · (classes - 1) / rows)
    for the effect of one class's logit on another.

    Parameters
    ----------
    from_logits : bool
        With False, `fit` and `transform` take class probabilities in place of logits.
    matrix : bool
        Let the logit of every class act on every other one (structured matrix scaling, SMS), instead of
        on its own alone (structured vector scaling, SVS).
    strength : float
        A factor of the penalty.

    References
    ----------
    Berta, Holzmüller, Jordan and Bach, *Structured matrix scaling for multi-class calibration*, 2026.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> logits = 3 * (rng.normal(size=(300, 3)) + 2 * np.eye(3)[y])
    >>> StructuredScaling(matrix=True).fit(logits, y).transform(logits).shape
    (300, 3)
    """

    matrix: bool = False
    strength: float = 1.0
    kind: ClassVar[str] = "structured scaling"
    parts: ClassVar[Parts] = {
        "slope": POSITIVE,
        "uniform": Part(float, 0.0, 1.0),
        "weights": np.ndarray,
    }

    def parameters(self, classes: int) -> int:
        """A slope and an intercept for each class, and with `matrix` the effects of all on each other."""
        return classes * (classes + 1) if self.matrix else 2 * classes

    def _learned(self, rows: ClassRows) -> State:
        require_positive("strength", self.strength)
        k = rows.logits.shape[1]
        slope, uniform = best_slope(rows), 1.0 / (rows.n + 1.0)
        x = _tempered(rows.logits, slope, uniform)
        target = np.zeros_like(x)
        target[np.arange(x.shape[0]), rows.labels] = rows.weight
        penalty = np.full((k, k + 1), self.strength * k * (k - 1) / rows.n)
        penalty[np.arange(k), np.arange(k)] = penalty[:, k] = self.strength * k / rows.n
        free = np.ones((k, k + 1), dtype=np.bool_)
        if not self.matrix:
            free[:, :k] = np.eye(k, dtype=np.bool_)
        inputs = np.hstack([x, np.ones((x.shape[0], 1))])
        # Divided by the root of their curvature, all parameters have one scale.
        chance = np.exp(x)
        curvature = (rows.weight[:, None] * chance * (1.0 - chance)).T @ inputs**2 + 2.0 * penalty
        unit = 1.0 / np.sqrt(curvature[free])

        def loss(parameters: Floats) -> tuple[float, Floats]:
            change = np.zeros((k, k + 1))
            change[free] = parameters * unit
            moved = x + (inputs @ change.T if self.matrix else _diagonal(inputs, change))
            value, excess = _likelihood(moved, rows.weight, target)
            slopes = excess.T @ inputs if self.matrix else _outer(excess, inputs)
            slopes += 2.0 * penalty * change
            return value + float(np.sum(penalty * change**2)), slopes[free] * unit

        solution = _minimised(loss, np.zeros(int(free.sum())))
        weights = np.eye(k, k + 1)
        weights[free] += solution * unit
        return {"slope": slope, "uniform": uniform, "weights": weights.ravel()}

    def _columns(self, state: State) -> int | None:
        return int(np.sqrt(state["weights"].size))

    def _scaled(self, scores: NDArray[Any], state: State) -> Floats:
        k = scores.shape[1]
        weights = state["weights"].reshape(k, k + 1)
        x = _tempered(scores, state["slope"], state["uniform"])
        return np.asarray(x @ weights[:, :k].T + weights[:, k])


def _diagonal(inputs: Floats, change: Floats) -> Floats:
    return np.asarray(inputs[:, :-1] * np.diagonal(change) + change[:, -1])


def _outer(excess: Floats, inputs: Floats) -> Floats:
    slopes = np.diag((excess * inputs[:, :-1]).sum(axis=0))
    return np.hstack([slopes, excess.sum(axis=0)[:, None]])


def _tempered(logits: NDArray[Any], slope: float, uniform: float) -> Floats:
    """log of softmax(slope · logits) with a little of the uniform distribution mixed in."""
    from scipy.special import log_softmax

    inside = np.log1p(-uniform) + log_softmax(logits * np.float64(slope), axis=1)
    return np.asarray(np.logaddexp(inside, np.log(uniform / logits.shape[1])))


def _likelihood(moved: Floats, weight: Floats, target: Floats) -> tuple[float, Floats]:
    """The mean log loss of softmax(moved), and its gradient."""
    level = moved.max(axis=1, keepdims=True)
    chance = np.exp(moved - level)
    total = chance.sum(axis=1, keepdims=True)
    value = float(weight @ (level + np.log(total))[:, 0] - np.sum(target * moved))
    chance *= weight[:, None] / total
    return value, chance - target


def _minimised(loss: Any, start: Floats) -> Floats:
    from scipy.optimize import minimize

    options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9}
    minimum = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    if not np.all(np.isfinite(minimum.x)) or np.abs(minimum.jac).max() > STEEPEST:
        raise CalibrantError(
            "the likelihood could not be maximised: {reason}",
            cure="Use a map with fewer parameters, such as a temperature, or more rows.",
            reason=str(minimum.message).rstrip("."),
        )
    return np.asarray(minimum.x)


def _size(values: NDArray[Any]) -> float:
    """The root of the mean square, or 1 where nothing differs from 0: what to divide by."""
    most = float(np.abs(values).max())
    if most < np.finfo(np.float64).tiny:
        return 1.0
    return most * float(np.sqrt(np.mean((values / np.float64(most)) ** 2)))
