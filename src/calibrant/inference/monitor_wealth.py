"""What bets on one sample have won so far, in a state whose size does not depend on the number of batches."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.fft  # now, not at the first look: a child that is forked during an import hangs
from numpy.typing import NDArray

from calibrant.data.cell_sums import over_outcomes
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_file import from_json, to_json
from calibrant.inference.monitor_bets import BETS, log_gains
from calibrant.inference.resampling import cell_predictions
from calibrant.smoothing.curves import smooth_curves

__all__ = ["Wealth", "errors_of"]

Floats = NDArray[np.float64]

LEARNT_BANDWIDTH = 0.1
LEARNT_POINTS = 128
PRIOR_ROWS = 200.0
"""Rows' worth of doubt with which the learnt bet is shrunk towards no bet."""
CLEAR = 3.0
"""Standard errors at which a mean error is named."""


@dataclass(frozen=True, eq=False)
class Wealth:
    """The wealth of every bet after some looks; a batch makes another one of it.

    Attributes
    ----------
    looks : int
        Batches so far.
    highest : float
        The largest logarithm of the e-value so far, at least 0.
    log_wealth, log_best_run : float64[bets]
        Of each bet, what has started, and the best of its runs.
    started : int64[bets]
        The look at which that run began.
    errors : float64[bets, 3]
        Since then: sum of p - y, rows, and the variance of the sum if the forecasts are calibrated.
    past : Sketch
        All rows so far.
    """

    looks: int
    highest: float
    log_wealth: Floats
    log_best_run: Floats
    started: NDArray[np.int64]
    errors: Floats
    past: Sketch

    @classmethod
    def none(cls) -> Wealth:
        """Before the first batch."""
        bets = len(BETS) + 1
        nothing = np.full(bets, -np.inf)
        started = np.zeros(bets, dtype=np.int64)
        return cls(0, 0.0, nothing, nothing, started, np.zeros((bets, 3)), Sketch.empty())

    @property
    def n(self) -> int:
        """Rows so far."""
        return self.past.n

    @property
    def log_e_value(self) -> float:
        """Log of the mean over bets of what has started plus what has not."""
        idle = -np.log(self.looks + 1)
        wealth = np.logaddexp(self.log_wealth, idle)
        return float(np.logaddexp.reduce(wealth) - np.log(wealth.size))

    def after(self, batch: Sketch, look: int, nodes: int) -> Wealth:
        """The wealth when this batch has been bet on.

        `look` is its number among all batches, of which some may have no rows for these bets; `nodes` are
        at most the cells on which the past is kept.
        """
        learnt = _learnt_gap(self.past) if self.looks else np.zeros(2)
        gains = log_gains(batch, learnt)
        looks = self.looks + 1
        entering = -np.log(looks) - np.log(looks + 1)
        begins_now = entering >= self.log_best_run
        later = replace(
            self,
            looks=looks,
            log_best_run=np.maximum(self.log_best_run, entering) + gains,
            log_wealth=np.logaddexp(self.log_wealth, entering) + gains,
            started=np.where(begins_now, look, self.started),
            errors=np.where(begins_now[:, None], 0.0, self.errors) + errors_of(batch),
            past=_together(self.past, batch, nodes),
        )
        return replace(later, highest=max(self.highest, later.log_e_value))

    def explained(self) -> tuple[int, str, float]:
        """Since when, what went wrong, and the mean error since, by the best run."""
        best = int(np.argmax(self.log_best_run))
        error, rows, variance = self.errors[best]
        if error**2 > CLEAR**2 * variance:
            direction = "over-forecasting" if error > 0 else "under-forecasting"
        else:
            direction = BETS[int(np.argmax(self.log_best_run[:-1]))].meaning
        return int(self.started[best]), direction, float(error / rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, from which `from_dict` makes the same, to the bit."""
        return {
            "looks": self.looks,
            "highest": self.highest,
            "log_wealth": self.log_wealth.tolist(),
            "log_best_run": self.log_best_run.tolist(),
            "started": self.started.tolist(),
            "errors": self.errors.tolist(),
            "past": json.loads(to_json(self.past)),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any], last: int) -> Wealth:
        """The inverse of `to_dict`; what cannot be true after so many looks is refused."""
        past = from_json(json.dumps(state["past"]))
        if not isinstance(past, Sketch):
            raise TypeError("the past must be one sketch")
        wealth = cls(
            looks=state["looks"],
            highest=float(state["highest"]),
            log_wealth=np.array(state["log_wealth"], dtype=np.float64),
            log_best_run=np.array(state["log_best_run"], dtype=np.float64),
            started=np.array(state["started"], dtype=np.int64),
            errors=np.array(state["errors"], dtype=np.float64),
            past=past,
        )
        for rule, holds in wealth._rules(last):
            if not holds:
                raise ValueError(rule)
        return wealth

    def _rules(self, last: int) -> list[tuple[str, bool]]:
        """What is true of every state that batches can lead to."""
        bets = len(BETS) + 1
        shapes = (self.log_wealth.shape, self.log_best_run.shape, self.started.shape)
        shape = shapes == ((bets,),) * 3 and self.errors.shape == (bets, 3)
        if not shape:
            return [(f"it must hold {bets} bets", False)]
        past, rows = self.past, self.errors[:, 1]
        return [
            ("bets are played at a look", type(self.looks) is int and 0 < self.looks <= last),
            ("wealth must be a number", bool(np.isfinite(self.log_wealth).all())),
            ("a run is part of the wealth", _at_most(self.log_best_run, self.log_wealth)),
            ("runs begin at a look", _between(self.started, 1, last)),
            ("errors must be numbers", bool(np.isfinite(self.errors).all())),
            ("runs have rows", _between(rows, 1.0, past.n)),
            ("an error is at most 1", _at_most(np.abs(self.errors[:, 0]), rows)),
            ("a variance is at most 1/4", _between(self.errors[:, 2], 0.0, 0.25 * past.n)),
            ("the e-value is at most the highest", self.log_e_value <= self.highest + 1e-9),
            ("the highest e-value is at least 1", 0.0 <= self.highest < np.inf),
            ("rows are weighed alike", not past.weighted),
            ("rows lie on the probability scale", past.scale == PROBABILITY),
        ]


def _at_most(values: Floats, bounds: Floats) -> bool:
    with np.errstate(invalid="ignore"):
        slack = 1e-9 * np.maximum(1.0, np.abs(np.where(np.isfinite(bounds), bounds, 0.0)))
        return bool(np.all(values <= bounds + slack))


def _between(values: NDArray[Any], least: float, most: float) -> bool:
    return bool(np.all((values >= least) & (values <= most * (1.0 + 1e-9))))


def _together(past: Sketch, batch: Sketch, most: int) -> Sketch:
    nodes = min(most, batch.nodes, past.nodes)
    return past.rebin(nodes) + batch.rebin(nodes)


def _learnt_gap(past: Sketch) -> Floats:
    """Events less predictions by prediction, smoothed, and shrunk where there was little data."""
    curves = smooth_curves(past, LEARNT_BANDWIDTH, points=LEARNT_POINTS)
    weight = past.n * curves.density
    gap: Floats = past.n * (curves.events - curves.predictions) / (weight + PRIOR_ROWS)
    return gap


def errors_of(batch: Sketch) -> Floats:
    """Sum of p - y, number of rows, and the variance of the sum if the forecasts are calibrated."""
    rows = over_outcomes(batch.counts)
    p = cell_predictions(batch)
    error = (rows * p).sum() - batch.counts[:, 1].sum()
    return np.array([error, rows.sum(), (rows * p * (1.0 - p)).sum()], dtype=np.float64)
