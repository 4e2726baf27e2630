"""Sequential monitoring: look after every batch without inflating false alarms."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number
from calibrant._files import replaced_when_whole
from calibrant._format import SMALLEST_P_VALUE
from calibrant.data.pairs import InputOptions
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.wire import from_json, to_json
from calibrant.errors import InputError
from calibrant.inference.bets import BETS, log_gains
from calibrant.inference.looks import Alarm, Look
from calibrant.inference.resampling import cell_predictions
from calibrant.smoothing.curves import smooth_curves

__all__ = ["Monitor"]

Floats = NDArray[np.float64]

FORMAT = "calibrant monitor"
VERSION = 1
LEARNT_BANDWIDTH = 0.1
LEARNT_POINTS = 128
CLEAR = 3.0
"""Standard errors at which a mean error is named."""
PRIOR_ROWS = 200.0
"""Rows' worth of doubt with which the learnt bet is shrunk towards no bet."""


class Monitor:
    """An anytime-valid test of calibration, batch by batch.

    Parameters
    ----------
    level : float
        Probability that calibrated forecasts ever raise an alarm, over all looks together.

    Notes
    -----
    **Why it is an e-process.** Let the forecasts be calibrated given the past: E[y_t | p_t, past] =
    p_t. A bet is a function λ of p, chosen before the batch is seen, with -1/(1-p) ≤ λ(p) ≤ 1/p.

    1. *One row.* 1 + λ(p)(y - p) is not negative, by the bounds on λ, and its conditional mean is
       1 + λ(p) (E[y | p, past] - p) = 1.
    2. *One bet.* So the product of these factors over the rows is a non-negative martingale that
       starts at 1. A batch contributes exp(Σ log(1 + λ(p)(y - p))), in which the order of the rows does
       not matter. What is used instead is at most that (see `bets.log_gains`: p is known to the width
       of a cell), which makes a supermartingale of it.
    3. *Starting later.* A bet that keeps its stake until batch s and plays from then on is a
       supermartingale too. The monitor divides the stake of each bet over all s with weights
       1/(s(s+1)), which add up to 1: A_t = (A_{t-1} + 1/(t(t+1))) G_t is what has started, with G_t the
       batch's factor, and 1/(t+1) is what has not.
    4. *Many bets.* The stake is divided over a fixed family (a shift, a tilt, waves; several sizes,
       both signs) and one bet whose λ is learnt from earlier batches, so chosen before the batch is
       seen. A weighted mean of non-negative supermartingales that start at 1 is another.

    By Ville's inequality P(sup_t E_t ≥ 1/α) ≤ α: the alarm at E_t ≥ 1/level is false with probability
    at most `level`, and 1/max E_s is a p-value, at every look at once. Nothing is corrected for the
    number of looks, since there is nothing to correct.

    "Given the past" includes the outcomes of earlier rows: forecasts of one event repeated in several
    batches before it is known do not satisfy it. Give each event once.

    References
    ----------
    Arnold, Henzi and Ziegel, *Sequentially valid tests for forecast calibration*, 2023.
    Waudby-Smith and Ramdas, *Estimating means of bounded random variables by betting*, 2024.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> watch = Monitor()
    >>> for day in range(30):
    ...     p = rng.random(100)
    ...     truth = p if day < 10 else p**2
    ...     look = watch.update(rng.random(100) < truth, p)
    >>> look.alarm.since, look.alarm.direction
    (11, 'over-forecasting')
    """

    def __init__(self, *, level: float = 0.05) -> None:
        if not is_number(level) or not 0.0 < level < 1.0:
            raise InputError(f"`level` must lie between 0 and 1; got {level!r}.")
        self.level = float(level)
        self.reset()

    def reset(self) -> None:
        """Forget everything: the next batch is the first. Do so after acting on an alarm."""
        bets = len(BETS) + 1
        self._looks, self._highest = 0, 0.0
        self._log_wealth = np.full(bets, -np.inf)
        self._log_best_run = np.full(bets, -np.inf)
        self._started = np.zeros(bets, dtype=np.int64)
        self._sums: list[tuple[float, float, float]] = []
        self._past: Sketch | None = None
        self._alarm: Alarm | None = None

    @property
    def n(self) -> int:
        """Rows seen so far."""
        return 0 if self._past is None else self._past.n

    @property
    def last(self) -> Look:
        """The latest look."""
        if not self._looks:
            raise InputError("the monitor has seen no batch yet; call `update` first.")
        return Look(
            self._looks,
            self.n,
            _capped_exp(self._log_e_value()),
            max(float(np.exp(-self._highest)), SMALLEST_P_VALUE),
            self._alarm,
        )

    def update(self, y_true: Any, y_prob: Any = None, **options: Unpack[InputOptions]) -> Look:
        """Take the next batch, as arrays or as a Sketch, and look.

        Parameters
        ----------
        y_true : array or Sketch
            Outcomes, 0 or 1; or a Sketch on the probability scale, and no `y_prob`. Batches may come on
            grids of different fineness: each is bet on with its own, and what is learnt from all of
            them is learnt on the coarsest.
        y_prob : array
            Predicted probabilities of outcome 1.
        **options
            How to read the arrays (see `InputOptions`). Weights and soft outcomes are refused: such a
            row is not a bet at the odds of its forecast.

        Returns
        -------
        Look
            The e-value and the p-value so far, and the alarm, if there has been one.
        """
        batch = as_sketch(y_true, y_prob, **options)
        if batch.weighted:
            raise InputError(
                "a monitor takes unweighted rows with outcomes 0 or 1; this batch has weights or soft "
                "outcomes. Leave out `sample_weight`, or the rows whose outcome is not known yet."
            )
        if batch.scale != PROBABILITY:
            raise InputError(
                f"a monitor takes sketches on the probability scale; this one is on "
                f"{batch.scale.name!r}."
            )
        learnt = None if self._past is None else _learnt_gap(self._past)
        past = batch if self._past is None else _together(self._past, batch)
        gains = log_gains(batch, np.zeros(2) if learnt is None else learnt)
        self._looks += 1
        entering = -np.log(self._looks) - np.log(self._looks + 1)
        begins_now = entering >= self._log_best_run
        self._started[begins_now] = self._looks
        self._log_best_run = np.maximum(self._log_best_run, entering) + gains
        self._log_wealth = np.logaddexp(self._log_wealth, entering) + gains
        self._sums.append(_sums(batch))
        self._past = past
        self._highest = max(self._highest, self._log_e_value())
        if self._alarm is None and self._highest >= -np.log(self.level):
            self._alarm = self._explained()
        return self.last

    def _log_e_value(self) -> float:
        """Log of the mean over bets of what has started plus what has not."""
        idle = -np.log(self._looks + 1)
        wealth = np.logaddexp(self._log_wealth, idle)
        return float(np.logaddexp.reduce(wealth) - np.log(wealth.size))

    def _explained(self) -> Alarm:
        best = int(np.argmax(self._log_best_run))
        since = int(self._started[best])
        error, rows, variance = np.array(self._sums[since - 1 :]).sum(axis=0)
        if error**2 > CLEAR**2 * variance:
            direction = "over-forecasting" if error > 0 else "under-forecasting"
        else:
            direction = BETS[int(np.argmax(self._log_best_run[:-1]))].meaning
        return Alarm(self._looks, since, direction, float(error / rows))

    def __repr__(self) -> str:
        if not self._looks:
            return f"<Monitor at level {self.level:g}, no batch yet>"
        last = self.last
        state = "calibrated so far" if last.alarm is None else str(last.alarm)
        return (
            f"<Monitor at level {self.level:g}, look {last.look}, {last.n} rows, "
            f"e-value {last.e_value:.3g}: {state}>"
        )

    def _repr_html_(self) -> str:
        from html import escape

        return f"<code>{escape(repr(self))}</code>"

    def to_json(self) -> str:
        """The whole state as text; `Monitor.from_json` goes on from there, to the bit."""
        state = {
            "format": FORMAT,
            "version": VERSION,
            "level": self.level,
            "looks": self._looks,
            "highest": self._highest,
            "log_wealth": _finite(self._log_wealth),
            "log_best_run": _finite(self._log_best_run),
            "started": self._started.tolist(),
            "sums": self._sums,
            "past": None if self._past is None else json.loads(to_json(self._past)),
            "alarm": None if self._alarm is None else asdict(self._alarm),
        }
        return json.dumps(state)

    @classmethod
    def from_json(cls, text: str | bytes) -> Monitor:
        """A monitor in the state that `to_json` wrote."""
        try:
            state = json.loads(text)
        except (ValueError, TypeError) as error:
            raise InputError(f"this is not the state of a monitor: {error}.") from error
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise InputError('this is not the state of a monitor: "format" is missing.')
        if state.get("version") != VERSION:
            raise InputError(
                f"this state was written in version {state.get('version')!r} of the monitor's format; "
                f"this calibrant reads version {VERSION}. Go on with the calibrant that wrote it, or "
                "start a new state."
            )
        try:
            return cls._from_state(state)
        except KeyError as error:
            raise InputError(
                f"this state of a monitor lacks {error}: it was cut short or changed. Go on from a copy "
                "of it, or start a new state."
            ) from error
        except (TypeError, ValueError) as error:
            raise InputError(
                f"this state of a monitor is damaged: {error}. Go on from a copy of it, or start a new "
                "state."
            ) from error

    @classmethod
    def _from_state(cls, state: dict[str, Any]) -> Monitor:
        monitor = cls(level=state["level"])
        wealth, best_run = (_with_infinities(state[k]) for k in ("log_wealth", "log_best_run"))
        started = np.array(state["started"], dtype=np.int64)
        bets = len(BETS) + 1
        if not wealth.size == best_run.size == started.size == bets:
            raise ValueError(
                f"it holds {wealth.size}, {best_run.size} and {started.size} bets in place of {bets}"
            )
        monitor._looks, monitor._highest = int(state["looks"]), float(state["highest"])
        monitor._log_wealth, monitor._log_best_run, monitor._started = wealth, best_run, started
        monitor._sums = [(a, b, c) for a, b, c in state["sums"]]
        if state["past"] is not None:
            sketch = from_json(json.dumps(state["past"]))
            if not isinstance(sketch, Sketch):
                raise ValueError("it holds sketches by group")
            monitor._past = sketch
        if state["alarm"] is not None:
            monitor._alarm = Alarm(**state["alarm"])
        return monitor

    def save(self, path: Any) -> None:
        """Write the state to a file, all or nothing."""
        with replaced_when_whole(path) as file:
            file.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls, path: Any) -> Monitor:
        """Read the state that `save` wrote."""
        with open(path, "rb") as file:
            return cls.from_json(file.read())


def _together(past: Sketch, batch: Sketch) -> Sketch:
    nodes = min(past.nodes, batch.nodes)
    return past.rebin(nodes) + batch.rebin(nodes)


def _learnt_gap(past: Sketch) -> Floats:
    """Events less predictions by prediction, smoothed, and shrunk where there was little data."""
    curves = smooth_curves(past, LEARNT_BANDWIDTH, points=LEARNT_POINTS)
    weight = past.n * curves.density
    gap: Floats = past.n * (curves.events - curves.predictions) / (weight + PRIOR_ROWS)
    return gap


def _sums(batch: Sketch) -> tuple[float, float, float]:
    """Sum of p - y, number of rows, and the variance of the sum if the forecasts are calibrated."""
    rows = batch.counts.sum(axis=1)
    p = cell_predictions(batch)
    error = float((rows * p).sum() - batch.counts[:, 1].sum())
    return error, float(rows.sum()), float((rows * p * (1.0 - p)).sum())


def _capped_exp(log_value: float) -> float:
    return float(np.exp(min(log_value, 700.0)))


def _finite(values: Floats) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def _with_infinities(values: list[float | None]) -> Floats:
    return np.array([-np.inf if value is None else value for value in values])
