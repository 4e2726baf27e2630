"""Recalibration maps with few parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number
from calibrant.data.arrays import as_column
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points
from calibrant.data.rows import as_rows
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError, InputError
from calibrant.recalibration.cures import TO_LEARN, only_cures, refuse_forms
from calibrant.recalibration.learned_map import Recalibrator, State
from calibrant.recalibration.logistic import (
    Design,
    expit,
    log_odds,
    logarithms,
    rows_per_weight,
)
from calibrant.recalibration.state_checks import POSITIVE, Part, Parts
from calibrant.recalibration.training import FitOptions, Training

__all__ = [
    "BetaRecalibrator",
    "IdentityRecalibrator",
    "OffsetRecalibrator",
    "PlattRecalibrator",
    "TemperatureRecalibrator",
]

Floats = NDArray[np.float64]

COLDEST = 1e-6
"""Slope of a temperature where the outcomes run against the predictions: all become ½."""


@dataclass
class IdentityRecalibrator(Recalibrator):
    """Predictions as they are: the map that others must beat.

    Examples
    --------
    >>> IdentityRecalibrator().fit([0.2, 0.8], [0, 1]).transform([0.3])
    array([0.3])
    """

    kind: ClassVar[str] = "none"
    parts: ClassVar[Parts] = {}

    def _learn(self, training: Training) -> State:
        return {}

    def _apply(self, p: Floats, state: State) -> Floats:
        return np.array(p)


@dataclass
class PlattRecalibrator(Recalibrator):
    """logit p' = slope · logit p + intercept, by maximum likelihood with Platt's targets.

    Parameters
    ----------
    platt_targets : bool
        Learn with Platt's targets in place of 0 and 1. With False, plain maximum likelihood.

    Notes
    -----
    The targets (n₁ + 1)/(n₁ + 2) and 1/(n₀ + 2) in place of 1 and 0 keep the slope finite where the
    outcomes are separated.

    References
    ----------
    Platt, *Probabilistic outputs for support vector machines*, 1999.

    Examples
    --------
    >>> platt = PlattRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> platt.transform([0.1, 0.9]).round(3)
    array([0.303, 0.697])
    """

    platt_targets: bool = True
    kind: ClassVar[str] = "platt"
    parts: ClassVar[Parts] = {"slope": float, "intercept": float}

    @property
    def parameters(self) -> int:
        """Slope and intercept."""
        return 2

    def _learn(self, training: Training) -> State:
        atoms = training.atoms
        x = log_odds(atoms.p)
        features = np.stack([x, np.ones_like(x)], axis=1)
        slope, intercept = _fit_logistic(features, atoms, targets=self.platt_targets)
        return {"slope": slope, "intercept": intercept}

    def _apply(self, p: Floats, state: State) -> Floats:
        return expit(state["slope"] * log_odds(p) + state["intercept"])


@dataclass
class TemperatureRecalibrator(Recalibrator):
    """logit p' = logit p / temperature: confidence changes, ½ stays. Learned with Platt's targets.

    Parameters
    ----------
    platt_targets : bool
        Learn with Platt's targets in place of 0 and 1. With False, plain maximum likelihood.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, *On calibration of modern neural networks*, 2017.

    Examples
    --------
    >>> cooler = TemperatureRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> cooler.temperature > 1
    True
    >>> float(cooler.transform([0.5])[0])
    0.5
    """

    platt_targets: bool = True
    kind: ClassVar[str] = "temperature"
    parts: ClassVar[Parts] = {"temperature": POSITIVE}

    @property
    def parameters(self) -> int:
        """The temperature."""
        return 1

    @property
    def temperature(self) -> float:
        """What the log-odds are divided by: above 1 where the model was too sure."""
        return float(self.state["temperature"])

    def _learn(self, training: Training) -> State:
        x = log_odds(training.atoms.p)[:, None]
        (slope,) = _fit_logistic(x, training.atoms, nonnegative=1, targets=self.platt_targets)
        return {"temperature": 1.0 / max(slope, COLDEST)}

    def _apply(self, p: Floats, state: State) -> Floats:
        return expit(log_odds(p) / state["temperature"])


@dataclass
class BetaRecalibrator(Recalibrator):
    """logit p' = a · log p - b · log(1 - p) + c with a, b ≥ 0: Platt's map with a slope for each end.

    Learned with Platt's targets.

    Parameters
    ----------
    platt_targets : bool
        Learn with Platt's targets in place of 0 and 1. With False, plain maximum likelihood.

    References
    ----------
    Kull, Silva Filho and Flach, *Beta calibration*, 2017.

    Examples
    --------
    >>> beta = BetaRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> sorted(beta.state)
    ['a', 'b', 'c']
    """

    platt_targets: bool = True
    kind: ClassVar[str] = "beta"
    parts: ClassVar[Parts] = {"a": Part(least=0.0), "b": Part(least=0.0), "c": Part()}

    @property
    def parameters(self) -> int:
        """Two slopes and an intercept."""
        return 3

    def _learn(self, training: Training) -> State:
        low, high = logarithms(training.atoms.p)
        features = np.stack([low, -high, np.ones_like(low)], axis=1)
        a, b, c = _fit_logistic(features, training.atoms, nonnegative=2, targets=self.platt_targets)
        return {"a": a, "b": b, "c": c}

    def _apply(self, p: Floats, state: State) -> Floats:
        low, high = logarithms(p)
        return expit(state["a"] * low - state["b"] * high + state["c"])


@dataclass
class OffsetRecalibrator(Recalibrator):
    """logit p' = logit p + offset, so that the mean prediction is right and the order stays.

    Parameters
    ----------
    target_mean : float, optional
        The event rate to reach, known from elsewhere; `fit` then needs no outcomes. By default the
        rate of events in the rows.

    Examples
    --------
    >>> moved = OffsetRecalibrator(target_mean=0.1).fit([0.2, 0.4, 0.6]).transform([0.2, 0.4, 0.6])
    >>> round(float(moved.mean()), 9)
    0.1
    """

    target_mean: float | None = None
    kind: ClassVar[str] = "offset"
    parts: ClassVar[Parts] = {"offset": float}

    @property
    def parameters(self) -> int:
        """The offset."""
        return 1

    def fit(
        self,
        y_prob: Any,
        y_true: Any = None,
        sample_weight: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn the offset; without `y_true` where `target_mean` was given."""
        if self.target_mean is None:
            return super().fit(y_prob, y_true, sample_weight, **options)
        if not (is_number(self.target_mean) and 0.0 < self.target_mean < 1.0):
            raise InputError(
                "must lie between 0 and 1",
                argument="target_mean",
                seen=self.target_mean,
                cure="Pass the share of events to reach, such as 0.02.",
            )
        if isinstance(y_prob, Sketch):
            self._state = self._learn(Training.of(y_prob, y_true, sample_weight, options))
            return self
        refuse_forms(options)
        given = as_column(y_prob, "y_prob")
        labels = np.zeros(given.size) if y_true is None else y_true
        with only_cures(TO_LEARN):
            pairs = as_rows(labels, given, sample_weight=sample_weight, **options)
            self._state = self._learn(Training(pairs))
        return self

    def _learn(self, training: Training) -> State:
        from scipy.optimize import brentq

        atoms = training.atoms
        target = atoms.base_rate if self.target_mean is None else self.target_mean
        weight, x = over_outcomes(atoms.mass) / atoms.total, log_odds(atoms.p)

        def excess(offset: float) -> float:
            return float((weight * expit(x + offset)).sum()) - target

        return {"offset": float(brentq(excess, -800.0, 800.0, xtol=1e-13))}

    def _apply(self, p: Floats, state: State) -> Floats:
        return expit(log_odds(p) + state["offset"])


def _fit_logistic(
    features: Floats, atoms: Points, nonnegative: int = 0, *, targets: bool = True
) -> list[float]:
    """Maximum likelihood of logit P(y) = features · coefficients, with Platt's targets.

    The targets count rows (see `rows_per_weight`).

    Of the first `nonnegative` coefficients, one that comes out negative is left out, and the rest
    fitted again.
    """
    from scipy.optimize import minimize

    negative, positive = atoms.mass.sum(axis=0) * rows_per_weight(atoms)
    low, high = 0.0, 1.0
    if targets:
        low, high = 1.0 / (negative + 2.0), (positive + 1.0) / (positive + 2.0)
    weight = over_outcomes(atoms.mass) / atoms.total
    events = (atoms.mass @ np.array([low, high])) / atoms.total
    design = Design(features)

    def loss(coefficients: Floats) -> tuple[float, Floats]:
        s = design.at(coefficients)
        value = float((weight * np.logaddexp(0.0, s) - events * s).sum())
        return value, design.sums(weight * expit(s) - events)

    def curvature(coefficients: Floats) -> Floats:
        q = expit(design.at(coefficients))
        return design.squares(weight * q * (1.0 - q))

    start = np.zeros(features.shape[1])
    minimum = minimize(
        loss, start, jac=True, hess=curvature, method="trust-exact", options={"gtol": 1e-9}
    )
    if not np.all(np.isfinite(minimum.x)) or np.abs(minimum.jac).max() > 1e-4:
        raise CalibrantError(
            "the likelihood could not be maximised: {reason}",
            cure="Use a map with fewer parameters, such as a temperature, or more rows.",
            reason=str(minimum.message).rstrip("."),
        )
    worst = int(np.argmin(minimum.x[:nonnegative])) if nonnegative else 0
    if nonnegative and minimum.x[worst] < 0.0:
        kept = np.delete(features, worst, axis=1)
        rest = _fit_logistic(kept, atoms, nonnegative - 1, targets=targets) if kept.shape[1] else []
        return [*rest[:worst], 0.0, *rest[worst:]]
    return [float(value) for value in minimum.x]
