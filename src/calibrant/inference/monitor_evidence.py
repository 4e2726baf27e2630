"""What a monitor has won so far, in a state whose size does not depend on the number of batches."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.fft  # now, not at the first look: a child that is forked during an import hangs
from numpy.typing import NDArray

from calibrant._arguments import is_number
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_files import from_json, to_json
from calibrant.errors import InputError
from calibrant.inference.monitor_bets import BETS, log_gains
from calibrant.inference.monitor_look import DIRECTIONS, Alarm
from calibrant.inference.resampling import cell_predictions
from calibrant.smoothing.curves import smooth_curves

__all__ = ["Evidence"]

Floats = NDArray[np.float64]

LEARNT_BANDWIDTH = 0.1
LEARNT_POINTS = 128
LEARNT_NODES = 1 << 12
"""Cells of the grid on which past batches are added up: many for such a bandwidth, few for a file."""
PRIOR_ROWS = 200.0
"""Rows' worth of doubt with which the learnt bet is shrunk towards no bet."""
CLEAR = 3.0
"""Standard errors at which a mean error is named."""
REMEMBERED = 1000
"""Batches that are known again by their names."""


@dataclass(frozen=True, eq=False)
class Evidence:
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
    past : Sketch or None
        All rows so far.
    alarm : Alarm or None
        The first one.
    batches : tuple of (str, str)
        Names of the latest batches that had one, and digests of their rows.
    """

    looks: int
    highest: float
    log_wealth: Floats
    log_best_run: Floats
    started: NDArray[np.int64]
    errors: Floats
    past: Sketch | None = None
    alarm: Alarm | None = None
    batches: tuple[tuple[str, str], ...] = ()

    @classmethod
    def none(cls) -> Evidence:
        """Before the first batch."""
        bets = len(BETS) + 1
        nothing = np.full(bets, -np.inf)
        return cls(0, 0.0, nothing, nothing, np.zeros(bets, dtype=np.int64), np.zeros((bets, 3)))

    @property
    def log_e_value(self) -> float:
        """Log of the mean over bets of what has started plus what has not."""
        idle = -np.log(self.looks + 1)
        wealth = np.logaddexp(self.log_wealth, idle)
        return float(np.logaddexp.reduce(wealth) - np.log(wealth.size))

    def knows(self, batch: Sketch, name: str | None) -> bool:
        """Whether a batch of this name was taken before; refuses one that had other rows then."""
        counted = dict(self.batches).get(name) if name is not None else None
        if counted is not None and counted != _digest(batch):
            raise InputError(
                "must name one batch; the one of this name had other rows",
                argument="batch",
                seen=name,
                cure="Give each batch a name of its own.",
            )
        return counted is not None

    def after(self, batch: Sketch, level: float, name: str | None = None) -> Evidence:
        """The evidence when this batch has been bet on."""
        learnt = np.zeros(2) if self.past is None else _learnt_gap(self.past)
        gains = log_gains(batch, learnt)
        looks = self.looks + 1
        entering = -np.log(looks) - np.log(looks + 1)
        begins_now = entering >= self.log_best_run
        later = replace(
            self,
            looks=looks,
            log_best_run=np.maximum(self.log_best_run, entering) + gains,
            log_wealth=np.logaddexp(self.log_wealth, entering) + gains,
            started=np.where(begins_now, looks, self.started),
            errors=np.where(begins_now[:, None], 0.0, self.errors) + _errors(batch),
            past=_together(self.past, batch),
        )
        later = replace(later, highest=max(self.highest, later.log_e_value))
        if name is not None:
            batches = (*self.batches, (name, _digest(batch)))[-REMEMBERED:]
            later = replace(later, batches=batches)
        if later.alarm is None and later.highest >= -np.log(level):
            later = replace(later, alarm=later.explained())
        return later

    def explained(self) -> Alarm:
        """What went wrong, and since when, by the best run."""
        best = int(np.argmax(self.log_best_run))
        error, rows, variance = self.errors[best]
        if error**2 > CLEAR**2 * variance:
            direction = "over-forecasting" if error > 0 else "under-forecasting"
        else:
            direction = BETS[int(np.argmax(self.log_best_run[:-1]))].meaning
        return Alarm(self.looks, int(self.started[best]), direction, float(error / rows))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, from which `from_dict` makes the same, to the bit."""
        return {
            "looks": self.looks,
            "highest": self.highest,
            "log_wealth": _finite(self.log_wealth),
            "log_best_run": _finite(self.log_best_run),
            "started": self.started.tolist(),
            "errors": self.errors.tolist(),
            "past": None if self.past is None else json.loads(to_json(self.past)),
            "alarm": None if self.alarm is None else asdict(self.alarm),
            "batches": [list(batch) for batch in self.batches],
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any], level: float) -> Evidence:
        """The inverse of `to_dict`; what cannot be true of a monitor at this level is refused."""
        past = None if state["past"] is None else from_json(json.dumps(state["past"]))
        alarm = None if state["alarm"] is None else Alarm(**state["alarm"])
        evidence = cls(
            looks=state["looks"],
            highest=float(state["highest"]),
            log_wealth=_with_infinities(state["log_wealth"]),
            log_best_run=_with_infinities(state["log_best_run"]),
            started=np.array(state["started"], dtype=np.int64),
            errors=np.array(state["errors"], dtype=np.float64),
            past=past,  # type: ignore[arg-type]
            alarm=alarm,
            batches=tuple((name, digest) for name, digest in state["batches"]),
        )
        for rule, holds in evidence._rules(level):
            if not holds:
                raise ValueError(rule)
        return evidence

    def _rules(self, level: float) -> list[tuple[str, bool]]:
        """What is true of every state that batches can lead to."""
        bets = len(BETS) + 1
        shapes = (self.log_wealth.shape, self.log_best_run.shape, self.started.shape)
        shape = shapes == ((bets,),) * 3 and self.errors.shape == (bets, 3)
        looks = isinstance(self.looks, int) and not isinstance(self.looks, bool) and self.looks >= 0
        past, names = self.past, [text for batch in self.batches for text in batch]
        rules = [
            (f"it must hold {bets} bets", shape),
            ("the number of looks must be whole", looks),
            ("batches must have names", all(isinstance(text, str) for text in names)),
            ("it remembers too many batches", len(self.batches) <= REMEMBERED),
            ("looks must have rows", (past is None) == (self.looks == 0)),
            ("the past must be one sketch", past is None or isinstance(past, Sketch)),
        ]
        if not all(holds for _, holds in rules):
            return rules
        begun = self.looks > 0
        counted = float(past.n) if past is not None else 0.0
        rows = self.errors[:, 1]
        return [
            ("wealth must be a number", bool(np.isfinite(self.log_wealth).all()) == begun),
            ("a run is part of the wealth", _at_most(self.log_best_run, self.log_wealth)),
            ("runs begin at a look", _between(self.started, int(begun), self.looks)),
            ("errors must be numbers", bool(np.isfinite(self.errors).all())),
            ("runs have rows", _between(rows, float(begun), counted)),
            ("an error is at most 1", _at_most(np.abs(self.errors[:, 0]), rows)),
            ("a variance is at most 1/4", _between(self.errors[:, 2], 0.0, 0.25 * counted)),
            ("the e-value is at most the highest", self.log_e_value <= self.highest + 1e-9),
            ("the highest e-value is at least 1", 0.0 <= self.highest < np.inf),
            ("rows are weighed alike", past is None or not past.weighted),
            ("rows lie on the probability scale", past is None or past.scale == PROBABILITY),
            (
                "the alarm goes with the e-value",
                (self.alarm is not None) == (self.highest >= -np.log(level)),
            ),
            ("the alarm is at a look", self.alarm is None or _is_sound(self.alarm, self.looks)),
        ]


def _is_sound(alarm: Alarm, looks: int) -> bool:
    whole = all(type(look) is int for look in (alarm.look, alarm.since))
    return (
        whole
        and 1 <= alarm.since <= alarm.look <= looks
        and alarm.direction in DIRECTIONS
        and is_number(alarm.mean_error)
        and abs(alarm.mean_error) <= 1.0
    )


def _at_most(values: Floats, bounds: Floats) -> bool:
    with np.errstate(invalid="ignore"):
        slack = 1e-9 * np.maximum(1.0, np.abs(np.where(np.isfinite(bounds), bounds, 0.0)))
        return bool(np.all(values <= bounds + slack))


def _between(values: NDArray[Any], least: float, most: float) -> bool:
    return bool(np.all((values >= least) & (values <= most * (1.0 + 1e-9))))


def _digest(batch: Sketch) -> str:
    """Of the rows of a batch, as far as its sketch tells them apart."""
    parts = (np.array([batch.nodes]), batch.cells, batch.counts, batch.offsets)
    content = b"".join(part.astype("<i8").tobytes() for part in parts)
    return hashlib.sha256(content).hexdigest()[:32]


def _together(past: Sketch | None, batch: Sketch) -> Sketch:
    nodes = min(LEARNT_NODES, batch.nodes, batch.nodes if past is None else past.nodes)
    coarse = batch.rebin(nodes)
    return coarse if past is None else past.rebin(nodes) + coarse


def _learnt_gap(past: Sketch) -> Floats:
    """Events less predictions by prediction, smoothed, and shrunk where there was little data."""
    curves = smooth_curves(past, LEARNT_BANDWIDTH, points=LEARNT_POINTS)
    weight = past.n * curves.density
    gap: Floats = past.n * (curves.events - curves.predictions) / (weight + PRIOR_ROWS)
    return gap


def _errors(batch: Sketch) -> Floats:
    """Sum of p - y, number of rows, and the variance of the sum if the forecasts are calibrated."""
    rows = over_outcomes(batch.counts)
    p = cell_predictions(batch)
    error = (rows * p).sum() - batch.counts[:, 1].sum()
    return np.array([error, rows.sum(), (rows * p * (1.0 - p)).sum()], dtype=np.float64)


def _finite(values: Floats) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def _with_infinities(values: list[float | None]) -> Floats:
    return np.array([-np.inf if value is None else value for value in values], dtype=np.float64)
