"""Scaling of the logits of all classes together: temperature, vector and matrix scaling."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_flag, require_number
from calibrant.data.classes import SMALLEST_LOGARITHM, ClassProbabilities
from calibrant.errors import CalibrantError
from calibrant.recalibration.class_map import ClassRecalibrator
from calibrant.recalibration.export import nested
from calibrant.recalibration.learned_map import Floats, Parts, State, register

FARTHEST = 30.0
"""The logarithm of a slope, of logits up to 1, stays within this of 0 where no slope is the best."""
ENTRIES_PER_BLOCK = 1 << 20
"""Logits that are in memory at a time: 8 MB."""
STEEPEST = 1e-4
"""The largest gradient of a likelihood that counts as maximised."""


class LogitScaling(ClassRecalibrator):
    """Linear map of logits, by maximum likelihood of its softmax."""

    def __init__(self, from_logits: bool = True) -> None:
        self.from_logits = from_logits

    def _learn(self, rows: NDArray[Any], found: ClassProbabilities) -> State:
        weight = np.ones(len(rows)) if found.weight is None else found.weight
        total = float(weight.sum())
        effective = total**2 / float(weight @ weight)  # Kish's sample size
        return self._learned(ClassRows(self._scores(rows), found.labels, weight / total, effective))

    def _apply(self, rows: NDArray[Any], state: State) -> Floats:
        from scipy.special import softmax

        return np.asarray(softmax(self._scaled(self._scores(rows), state), axis=1), np.float64)

    def _scores(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Logits; of probabilities, their logarithms."""
        if self.from_logits:
            return rows
        with np.errstate(divide="ignore"):
            return np.asarray(np.maximum(np.log(rows), SMALLEST_LOGARITHM))

    def _python(self, state: State, classes: int, tolerance: float) -> tuple[list[str], str]:
        constants, lines = self._scaling_text(state, classes)
        softmax = (
            "    top = max(z)\n    e = [exp(v - top) for v in z]\n    total = sum(e)\n"
            "    q = [v / total for v in e]\n"
        )
        return constants, lines + softmax

    @abstractmethod
    def _learned(self, rows: ClassRows) -> State:
        """Fitted parameters."""

    @abstractmethod
    def _scaled(self, scores: NDArray[Any], state: State) -> Floats:
        """Scaled logits."""

    @abstractmethod
    def _scaling_text(self, state: State, classes: int) -> tuple[list[str], str]:
        """Constants, and lines of Python from logits `s` to scaled ones `z`."""


@register("temperature scaling", temperature={"from_logits": False})
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

    shared = True
    parts: ClassVar[Parts] = {"slope": float, "intercept": float}

    @property
    def temperature(self) -> float:
        """Divisor of the logits: above 1 where the model was over-confident."""
        return 1.0 / float(self.state["slope"])

    def n_parameters_of(self, classes: int) -> int:
        """One: the temperature."""
        return 1

    def explain(self) -> str:
        """Sentence on what the map does to logits."""
        sure = "less" if self.temperature > 1.0 else "more"
        return (
            f"This {self.kind} divides the logits by {self.temperature:.3g}: predictions become {sure} "
            "confident, and the most likely class stays."
        )

    def _scaling_text(self, state: State, classes: int) -> tuple[list[str], str]:
        return [], f"    z = [{float(state['slope'])!r} * v for v in s]\n"

    def _learned(self, rows: ClassRows) -> State:
        return {"slope": best_slope(rows), "intercept": 0.0}

    def _scaled(self, scores: NDArray[Any], state: State) -> Floats:
        return np.asarray(scores * np.float64(state["slope"]))


@register("vector scaling", vector={"from_logits": False})
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

    parts: ClassVar[Parts] = {"slope": np.ndarray, "intercept": np.ndarray}

    def n_parameters_of(self, classes: int) -> int:
        """Slope and intercept of each class."""
        return 2 * classes

    def explain(self) -> str:
        """Sentence on what the map does to logits."""
        return (
            f"This {self.kind} multiplies the logits of the classes by {_range(self.state['slope'])} and "
            f"adds {_range(self.state['intercept'])}; the most likely class may change."
        )

    def _scaling_text(self, state: State, classes: int) -> tuple[list[str], str]:
        weights = nested(np.stack([state["slope"], state["intercept"]], axis=1))
        return [f"WEIGHTS = {weights}"], "    z = [a * v + b for (a, b), v in zip(WEIGHTS, s)]\n"

    def _learned(self, rows: ClassRows) -> State:
        unit = _largest(rows.logits)
        scores = rows.logits / np.float64(unit)
        center = rows.weight @ scores
        penalty = np.zeros((center.size, center.size + 1))
        weights = _linear_map(scores - center, rows, penalty, full=False)
        slope, intercept = np.diagonal(weights), weights[:, -1]
        return {"slope": slope / unit, "intercept": intercept - slope * center}

    def _scaled(self, scores: NDArray[Any], state: State) -> Floats:
        return np.asarray(scores * state["slope"] + state["intercept"])


@register(
    "structured scaling",
    structured={"from_logits": False},
    structured_matrix={"from_logits": False, "matrix": True},
)
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

    parts: ClassVar[Parts] = {"slope": float, "uniform": float, "weights": np.ndarray}

    def __init__(
        self, from_logits: bool = True, matrix: bool = False, strength: float = 1.0
    ) -> None:
        super().__init__(from_logits)
        self.matrix = matrix
        self.strength = strength

    def n_parameters_of(self, classes: int) -> int:
        """Slope and intercept of each class, and with `matrix` the effects of all on each other."""
        return classes * (classes + 1) if require_flag("matrix", self.matrix) else 2 * classes

    def explain(self) -> str:
        """Sentence on what the map does to logits."""
        weights = self._matrix(self.state, self.n_features_in_)
        others = ", lets them act on each other" if self.matrix else ""
        return (
            f"This {self.kind} divides the logits by {1.0 / self.state['slope']:.3g}, multiplies those of "
            f"the classes by {_range(np.diagonal(weights))}{others} and adds {_range(weights[:, -1])}; the "
            "most likely class may change."
        )

    def _scaling_text(self, state: State, classes: int) -> tuple[list[str], str]:
        uniform = float(state["uniform"])
        lines = (
            f"    z = [{float(state['slope'])!r} * v for v in s]\n"
            "    top = max(z)\n"
            "    e = [exp(v - top) for v in z]\n"
            "    total = sum(e)\n"
            f"    x = [log({1.0 - uniform!r} * v / total + {uniform / classes!r}) for v in e]\n"
            "    z = [sum(w * v for w, v in zip(row, x)) + row[-1] for row in WEIGHTS]\n"
        )
        return [f"WEIGHTS = {nested(self._matrix(state, classes))}"], lines

    @staticmethod
    def _matrix(state: State, classes: int) -> Floats:
        return np.asarray(state["weights"].reshape(classes, classes + 1))

    def _learned(self, rows: ClassRows) -> State:
        require_number("strength", self.strength, 0.0)
        k = rows.logits.shape[1]
        slope, uniform = best_slope(rows), 1.0 / (rows.n + 1.0)
        x = _tempered(rows.logits, slope, uniform)
        penalty = np.full((k, k + 1), self.strength * k * (k - 1) / rows.n)
        penalty[np.arange(k), np.arange(k)] = penalty[:, k] = self.strength * k / rows.n
        weights = _linear_map(x, rows, penalty, full=self.matrix)
        return {"slope": slope, "uniform": uniform, "weights": weights.ravel()}

    def _scaled(self, scores: NDArray[Any], state: State) -> Floats:
        k = scores.shape[1]
        weights = self._matrix(state, k)
        x = _tempered(scores, state["slope"], state["uniform"])
        return np.asarray(x @ weights[:, :k].T + weights[:, k])


def _tempered(logits: NDArray[Any], slope: float, uniform: float) -> Floats:
    """log of softmax(slope · logits) with a little of the uniform distribution mixed in."""
    from scipy.special import log_softmax

    inside = np.log1p(-uniform) + log_softmax(logits * np.float64(slope), axis=1)
    return np.asarray(np.logaddexp(inside, np.log(uniform / logits.shape[1])))


def _linear_map(x: Floats, rows: ClassRows, penalty: Floats, *, full: bool) -> Floats:
    """Slopes and intercepts [k, k + 1] of greatest likelihood, less the penalty on their change from none.

    Without `full`, each class has a slope of its own logit alone.
    """
    from scipy.optimize import minimize
    from scipy.special import softmax

    k = x.shape[1]
    target = np.zeros_like(x)
    target[np.arange(x.shape[0]), rows.labels] = rows.weight
    free = np.ones((k, k + 1), dtype=np.bool_)
    if not full:
        free[:, :k] = np.eye(k, dtype=np.bool_)
    inputs = np.hstack([x, np.ones((x.shape[0], 1))])
    # Divided by the root of their curvature, all parameters have one scale.
    chance = softmax(x, axis=1)
    curvature = (rows.weight[:, None] * chance * (1.0 - chance)).T @ inputs**2 + 2.0 * penalty
    unit = 1.0 / np.sqrt(np.where(curvature > 0.0, curvature, 1.0)[free])

    def loss(parameters: Floats) -> tuple[float, Floats]:
        change = np.zeros((k, k + 1))
        change[free] = parameters * unit
        moved = x + (inputs @ change.T if full else x * np.diagonal(change) + change[:, k])
        level = moved.max(axis=1, keepdims=True)
        chance = np.exp(moved - level)
        total = chance.sum(axis=1, keepdims=True)
        value = float(rows.weight @ (level + np.log(total))[:, 0] - np.sum(target * moved))
        excess = chance * (rows.weight[:, None] / total) - target
        slopes = 2.0 * penalty * change
        if full:
            slopes += excess.T @ inputs
        else:
            slopes[:, :k] += np.diag((excess * x).sum(axis=0))
            slopes[:, k] += excess.sum(axis=0)
        return value + float(np.sum(penalty * change**2)), slopes[free] * unit

    options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-9}
    start = np.zeros(int(free.sum()))
    minimum = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    if not np.all(np.isfinite(minimum.x)) or np.abs(minimum.jac).max() > STEEPEST:
        raise CalibrantError(
            f"The likelihood could not be maximised: {str(minimum.message).rstrip('.')}.",
            hint="Use a map with fewer parameters, such as a temperature, or more rows.",
        )
    weights = np.eye(k, k + 1)
    weights[free] += minimum.x * unit
    return weights


def _largest(logits: NDArray[Any]) -> float:
    """Largest of the numbers without their signs, or 1 where all are 0: a unit in which none overflows."""
    return float(np.abs(logits).max()) or 1.0


def _range(values: Any) -> str:
    return f"{np.min(values):.3g} to {np.max(values):.3g}"


class ClassRows(NamedTuple):
    """Logits, the column of the true class, and weights that add up to 1; how many rows they count for."""

    logits: NDArray[Any]
    labels: NDArray[np.int64]
    weight: Floats
    n: float


def best_slope(rows: ClassRows) -> float:
    """Inverse temperature of greatest likelihood: root of its derivative."""
    from scipy.optimize import brentq

    unit, ahead, mean = _largest(rows.logits), False, 0.0
    for gaps, weight in _blocks(rows, unit):
        ahead |= bool(gaps.max() > 0.0)
        mean += float(weight @ gaps.mean(axis=1))
    if mean >= 0.0:  # the outcomes do not follow the logits at all
        return float(np.exp(-FARTHEST)) / unit if ahead else 1.0 / unit
    if not ahead:  # the largest logit is never wrong
        return float(np.exp(FARTHEST)) / unit

    def derivative(log_slope: float) -> float:
        slope, total = np.exp(log_slope), 0.0
        for gaps, weight in _blocks(rows, unit):
            chance = slope * gaps
            chance = np.exp(chance - chance.max(axis=1, keepdims=True))
            total += float(weight @ (np.einsum("ij,ij->i", chance, gaps) / chance.sum(axis=1)))
        return total

    return float(np.exp(brentq(derivative, -FARTHEST, FARTHEST, xtol=1e-13))) / unit


def _blocks(rows: ClassRows, unit: float) -> Iterator[tuple[Floats, Floats]]:
    """Gaps of every logit over that of the true class, in units, with weights; a block at a time."""
    n, k = rows.logits.shape
    step = max(1, ENTRIES_PER_BLOCK // k)
    for start in range(0, n, step):
        labels = rows.labels[start : start + step]
        scores = rows.logits[start : start + step] / np.float64(unit)
        yield (
            scores - scores[np.arange(labels.size), labels, None],
            rows.weight[start : start + step],
        )
