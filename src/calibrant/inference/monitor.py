"""Sequential test of calibration by betting: an e-process that is valid at every look."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from html import escape
from operator import index
from pathlib import Path
from typing import Any, NamedTuple, Self, Unpack

import numpy as np
import numpy.fft  # now, not at the first look: a child that is forked during an import hangs
from numpy.typing import NDArray

from calibrant._arguments import is_number
from calibrant._files import (
    dump_versioned,
    file_lock,
    load_versioned,
    place_of_file,
    read_bytes,
    write_whole,
)
from calibrant._format import SMALLEST_P_VALUE, group_text
from calibrant.data.arrays import as_array, as_column, categories, same_length
from calibrant.data.rows import InputOptions, require_alone, require_same_index
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import UPDATES, Sketch, as_sketch
from calibrant.data.sketch_file import from_json, to_json
from calibrant.data.sketches import Sketches, is_summed
from calibrant.errors import CalibrantError, InputError, invalid, show_value
from calibrant.inference.projection import Projection, project
from calibrant.io.from_data import from_data
from calibrant.io.request import CLASS_COLUMN
from calibrant.io.scan import sketches_of_classes
from calibrant.measures.result_record import Record, frame_of, plain
from calibrant.smoothing.curves import smooth_curves

Floats = NDArray[np.float64]

INSIDE = 0.95
"""Share of its bounds that a stake may use, so that a lost bet never ruins."""
SIZES = (0.1, 0.25, 0.6, 1.5)
"""Log-odds by which the alternatives differ from the forecasts: from hardly visible to gross."""
LEARNT_BANDWIDTH, PRIOR_ROWS = 0.1, 200.0
"""Kernel of the learnt alternative, and the rows at no error with which it is shrunk: prior guesses."""
NODES, CLASS_NODES = 1 << 12, 1 << 8
"""Cells on which past rows are kept, of one sample and of each class, and most that predictions of a batch
that waits may fill: they bound the size of the file."""
MOST_NAMES, MAX_NAME = 1000, 200
"""Names of batches and of classes in a state, and their length: its size must not grow without bound."""
CLEAR_Z = 3.0
"""Standard errors of the mean error beyond which an alarm is about its sign."""
FORMAT, VERSION, KIND = "calibrant.monitor", 3, "the state of a monitor"
CLASS_VIEWS = {columns[0]: view for view, columns in CLASS_COLUMN.items() if columns}
"""The `multiclass` that groups rows by this column."""


class Alternative(NamedTuple):
    """A direction of miscalibration, logit q(p) = logit p + size · shape(p)."""

    shape: str
    size: float
    direction: str


_WRONG = ("wrong in places", "wrong in places")
SHAPES = {
    "shift": ("under-forecasting", "over-forecasting"),
    "tilt": ("under-confident", "over-confident"),
    **{f"wave {k}": _WRONG for k in (1, 2, 3, 4)},
}
"""Direction of the error where events are more frequent than the forecasts along a shape, and less."""
ALTERNATIVES = tuple(
    Alternative(shape, sign * size, direction)
    for shape, directions in SHAPES.items()
    for size in SIZES
    for sign, direction in zip((1, -1), directions, strict=True)
)
BETS = len(ALTERNATIVES) + 1
"""A bet on each alternative, and one on what earlier batches showed."""


def log_gains(batch: Sketch, learnt: Floats | None = None) -> Floats:
    """Lower bounds of Σ log(1 + λ (y - p)) over the rows of a batch, for every bet, the learnt one last.

    The stake λ = (q - p) / (p (1 - p)) is constant in a cell [a, b], with -1/(1-a) ≤ λ ≤ 1/b, so no factor
    is negative. A sketch knows number and mean of the p of a (cell, label). The logarithm is concave in
    p, so the sum is smallest when these rows sit at the two ends of the cell: cells never make a bet win.

    Parameters
    ----------
    batch : Sketch
        Unweighted, on the probability scale.
    learnt : float64[points], optional
        Expected y - p at equally spaced p.

    Examples
    --------
    >>> batch = Sketch.from_arrays([1, 1, 0, 1], [0.4, 0.5, 0.3, 0.6])
    >>> gains = log_gains(batch)
    >>> ALTERNATIVES[4], round(float(gains[4]), 2)
    (Alternative(shape='shift', size=0.6, direction='under-forecasting'), 0.55)
    """
    low = batch.cells / batch.nodes
    high = np.minimum(low + 1.0 / batch.nodes, 1.0)
    middle = np.clip(0.5 * (low + high), 1e-9, 1.0 - 1e-9)
    logit = np.log(middle) - np.log1p(-middle)
    shapes = {"shift": np.ones_like(middle), "tilt": np.tanh(0.5 * logit)}
    shapes |= {f"wave {k}": np.cos(np.pi * k * middle) for k in (1, 2, 3, 4)}
    chances = [1.0 / (1.0 + np.exp(-logit - size * shapes[name])) for name, size, _ in ALTERNATIVES]
    if learnt is not None:
        gap = np.interp(middle, np.linspace(0.0, 1.0, learnt.size), learnt)
        chances.append(np.clip(middle + gap, 0.0, 1.0))
    stakes = (np.stack(chances) - middle) / (middle * (1.0 - middle))
    with np.errstate(divide="ignore"):
        # At p exactly 0 or 1 one side has no bound at all.
        largest = np.minimum(INSIDE / high, 1e9)
        smallest = -np.minimum(INSIDE / (1.0 - low), 1e9)
    stakes = np.clip(stakes, smallest, largest)
    width = np.where(high > low, high - low, 1.0)
    rows = batch.counts
    offset = batch.offsets * 2.0**-36
    share = np.divide(offset, rows * width[:, None], out=np.zeros(rows.shape), where=rows > 0)
    gains = np.zeros(len(stakes))
    for label in range(2):
        at_low = np.log1p(stakes * (label - low))
        at_high = np.log1p(stakes * (label - high))
        mean = at_low + share[:, label] * (at_high - at_low)
        gains += np.where(rows[:, label] > 0, rows[:, label] * mean, 0.0).sum(axis=1)
    return gains


def _errors(batch: Sketch) -> Floats:
    """Σ (p - y), number of rows, and the variance of the sum under calibration."""
    rows = batch.counts.sum(axis=1)
    p = (batch.cells + batch.offsets.sum(axis=1) * 2.0**-batch.offset_bits / rows) / batch.nodes
    error = (rows * p).sum() - batch.counts[:, 1].sum()
    return np.array([error, rows.sum(), (rows * p * (1.0 - p)).sum()], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class EProcess:
    """Wealth of every bet on one stream of forecasts; their mean is the e-value.

    Attributes
    ----------
    looks : int
        Batches so far.
    highest : float
        Logarithm of the largest e-value so far, at least 0.
    log_wealth, log_best_run : float64[bets]
        Of each bet: what has started to play, and the best of the runs by the batch where they started.
    started : int64[bets]
        The look at which the best run started.
    errors : float64[bets, 3]
        Since then: Σ (p - y), rows, and the variance of the sum under calibration.
    past : Sketch
        All rows so far.
    """

    looks: int = 0
    highest: float = 0.0
    log_wealth: Floats = field(default_factory=lambda: np.full(BETS, -np.inf))
    log_best_run: Floats = field(default_factory=lambda: np.full(BETS, -np.inf))
    started: NDArray[np.int64] = field(default_factory=lambda: np.zeros(BETS, np.int64))
    errors: Floats = field(default_factory=lambda: np.zeros((BETS, 3)))
    past: Sketch = field(default_factory=Sketch.empty)

    @property
    def log_e_value(self) -> float:
        """Logarithm of the mean over bets of the wealth that plays and that does not play yet."""
        wealth = np.logaddexp(self.log_wealth, -np.log(self.looks + 1))
        return float(np.logaddexp.reduce(wealth) - np.log(BETS))

    @property
    def mean_error(self) -> float:
        """Mean prediction minus event rate over all rows."""
        error, rows, _ = _errors(self.past)
        return float(error / rows)

    def after(self, batch: Sketch, look: int, nodes: int) -> EProcess:
        """The process after a batch, the `look`-th of all; `nodes` are the cells to keep rows on."""
        gains = log_gains(batch, self._learnt() if self.looks else np.zeros(2))
        looks = self.looks + 1
        entering = -np.log(looks) - np.log(looks + 1)
        starts = entering >= self.log_best_run
        nodes = min(nodes, batch.nodes, self.past.nodes)
        later = replace(
            self,
            looks=looks,
            log_best_run=np.maximum(self.log_best_run, entering) + gains,
            log_wealth=np.logaddexp(self.log_wealth, entering) + gains,
            started=np.where(starts, look, self.started),
            errors=np.where(starts[:, None], 0.0, self.errors) + _errors(batch),
            past=self.past.rebin(nodes) + batch.rebin(nodes),
        )
        return replace(later, highest=max(self.highest, later.log_e_value))

    def _learnt(self) -> Floats:
        """Mean of y - p near each of some p in the past, shrunk where there were few rows."""
        curves = smooth_curves(self.past, LEARNT_BANDWIDTH, points=128)
        gap = self.past.n * (curves.events - curves.predictions)
        return np.asarray(gap / (self.past.n * curves.density + PRIOR_ROWS))

    def alarm(self, look: int, group: Any) -> Alarm:
        """Start, direction and size of the error, from the best run of all bets."""
        best = int(np.argmax(self.log_best_run))
        error, rows, variance = self.errors[best]
        if error**2 > CLEAR_Z**2 * variance:
            direction = "over-forecasting" if error > 0 else "under-forecasting"
        else:
            direction = ALTERNATIVES[int(np.argmax(self.log_best_run[:-1]))].direction
        return Alarm(look, int(self.started[best]), direction, float(error / rows), group)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the file."""
        state = {name: plain(value) for name, value in vars(self).items() if name != "past"}
        return state | {"past": json.loads(to_json(self.past))}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> EProcess:
        """Inverse of `to_dict`; a ValueError for other types and shapes."""
        return cls(
            looks=index(state["looks"]),
            highest=float(_numbers(state["highest"])),
            log_wealth=_numbers(state["log_wealth"], BETS),
            log_best_run=_numbers(state["log_best_run"], BETS),
            started=_numbers(state["started"], BETS).astype(np.int64),
            errors=_numbers(state["errors"], BETS, 3),
            past=_past(state["past"]),
        )


@dataclass(frozen=True)
class Alarm:
    """Rejection of calibration by a monitor.

    Attributes
    ----------
    look : int
        Number of the batch, from 1.
    since : int
        The look at which the best run of the winning bet started: an estimate of the change point.
    direction : str
        "over-forecasting" or "under-forecasting" where the mean error since then is clear; otherwise
        the best bet's: "over-confident", "under-confident" or "wrong in places".
    mean_error : float
        Mean prediction minus event rate since then.
    group : optional
        Of many groups or classes, the one with the most evidence: the rest is about it.
    """

    look: int
    since: int
    direction: str
    mean_error: float
    group: Any = None

    def __str__(self) -> str:
        of = "" if self.group is None else f", most of all group {group_text(self.group)}"
        return f"miscalibrated since about look {self.since}: {self.direction}{of}"


@dataclass(frozen=True)
class GroupEvidence(Record):
    """Evidence against the calibration of one group or class alone.

    Attributes
    ----------
    name
        The group, or the class.
    n : int
        Its rows; of a class against the rest, all rows.
    e_value, p_value : float
        Of it alone.
    mean_error : float
        Mean prediction minus event rate over all its rows.
    """

    name: Any
    n: int
    e_value: float
    p_value: float
    mean_error: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = super().to_dict()
        del values["name"]
        return {"group": group_text(self.name), **values}


@dataclass(frozen=True)
class MonitorResult(Record):
    """Evidence against calibration after some batches, valid at every look and stopping time.

    Attributes
    ----------
    look, n : int
        Batches and rows so far.
    e_value : float
        Wealth of the bets against calibration, of a stake of 1.
    p_value : float
        1 / the largest e-value so far, at most 1 and never 0.
    alarm : Alarm or None
        The first alarm, if there has been one.
    groups : tuple of GroupEvidence
        Where groups or classes are monitored, each of them, the one with the most evidence first.
    miscalibrated : tuple
        Names of those shown to be miscalibrated by e-BH, at the monitor's level: the expected share of
        false ones among them is at most that, however groups depend on each other.
    """

    look: int
    n: int
    e_value: float
    p_value: float
    alarm: Alarm | None
    groups: tuple[GroupEvidence, ...] = ()
    miscalibrated: tuple[Any, ...] = ()

    def to_frame(self, backend: Any = None) -> Any:
        """A data frame with a row for each group, or with one row."""
        if self.groups:
            return frame_of([vars(one) for one in self.groups], backend)
        row = {name: getattr(self, name) for name in ("look", "n", "e_value", "p_value")}
        return frame_of([row | {"alarm": self.alarm is not None}], backend)


@dataclass(frozen=True, eq=False)
class MonitorState:
    """E-processes of all classes, their stakes, the alarm, and the batches that have been counted.

    One sample is one class without a name. The e-value is Σ stake · e-value over the classes. A class that
    comes later is given an equal share of the wealth of that moment, and the others give it up in
    proportion, so that its coming changes nothing.
    """

    by: str | None = None
    looks: int = 0
    highest: float = 0.0
    processes: Mapping[Any, EProcess] = field(default_factory=dict)
    log_stakes: Mapping[Any, float] = field(default_factory=dict)
    alarm: Alarm | None = None
    batches: tuple[tuple[str, str], ...] = ()
    waiting: Mapping[str, Sketch] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Rows so far."""
        rows = [process.past.n for process in self.processes.values()]
        return max(rows, default=0) if self.by == "class" else sum(rows)

    @property
    def log_shares(self) -> dict[Any, float]:
        """Logarithm of what each class adds to the e-value."""
        return {key: self.log_stakes[key] + one.log_e_value for key, one in self.processes.items()}

    @property
    def log_e_value(self) -> float:
        """Logarithm of the e-value."""
        return float(np.logaddexp.reduce([*self.log_shares.values()])) if self.processes else 0.0

    def result(self, level: float) -> MonitorResult:
        """Evidence after the latest batch."""
        groups: list[GroupEvidence] = []
        if self.by is not None:
            for name, one in self.processes.items():
                pair = _e_and_p(one.log_e_value, one.highest)
                groups.append(GroupEvidence(name, one.past.n, *pair, one.mean_error))
            groups.sort(key=lambda one: -one.e_value)
        # e-BH: the k largest, if the k-th is at least K / (k level).
        enough = [k for k, one in enumerate(groups, 1) if k * level * one.e_value >= len(groups)]
        shown = tuple(one.name for one in groups[: max(enough, default=0)])
        pair = _e_and_p(self.log_e_value, self.highest)
        return MonitorResult(self.looks, self.n, *pair, self.alarm, tuple(groups), shown)

    def after(
        self, rows: Mapping[Any, Sketch], by: str | None, name: str | None, level: float
    ) -> MonitorState:
        """The state after a batch; this one if a batch of that name and content was counted before."""
        if self.looks and self.by != by:
            argument = "multiclass" if {by, self.by} & CLASS_VIEWS.keys() else "by"
            raise InputError(
                f"`{argument}` must not change: earlier batches were monitored by "
                f"{self.by or 'nothing'}, this one is by {by or 'nothing'}.",
                argument=argument,
            )
        digest = _digest(rows)
        counted = dict(self.batches).get(name) if name is not None else None
        if counted == digest:
            return self
        if counted is not None:
            raise InputError(
                f"`batch` must name one batch; {show_value(name)} had other rows before.",
                argument="batch",
            )
        waiting = {key: made for key, made in self.waiting.items() if key != name}
        made = None if name is None else self.waiting.get(name)
        if made is not None and not _same_predictions(made, rows):
            raise InputError(
                f"`y_prob` must be what was registered for {show_value(name)}.", argument="y_prob"
            )
        look, nodes = self.looks + 1, NODES if by is None else CLASS_NODES
        played = {
            key: self.processes.get(key, EProcess()).after(batch, look, nodes)
            for key, batch in rows.items()
        }
        later = replace(
            self,
            by=by,
            looks=look,
            processes={**self.processes, **played},
            log_stakes=self._stakes(by, [key for key in rows if key not in self.processes]),
            waiting=waiting,
        )
        later = replace(later, highest=max(self.highest, later.log_e_value))
        if name is not None:
            later = replace(later, batches=(*self.batches, (name, digest))[-MOST_NAMES:])
        if later.alarm is None and later.highest >= -np.log(level):
            shares = later.log_shares
            most = max(shares, key=lambda key: shares[key])
            later = replace(later, alarm=later.processes[most].alarm(look, most))
        return later

    def _stakes(self, by: str | None, new: list[Any]) -> dict[Any, float]:
        """Stakes after the coming of new classes: the wealth is divided anew."""
        before, now = len(self.processes), len(self.processes) + len(new)
        if now > MOST_NAMES:
            raise InputError(
                f"at most {MOST_NAMES} groups or classes can be monitored; there are {now}.",
                argument="multiclass" if by in CLASS_VIEWS else "by",
                hint='Of classes, monitor the confidence with `multiclass="confidence"`.',
            )
        if not new:
            return dict(self.log_stakes)
        kept = np.log(before / now) if before else 0.0
        share = self.log_e_value - np.log(now)
        stakes = {name: float(stake + kept) for name, stake in self.log_stakes.items()}
        return stakes | {name: float(share) for name in new}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the file."""
        return {
            "by": self.by,
            "looks": self.looks,
            "highest": self.highest,
            "classes": list(self.processes),
            "stakes": list(self.log_stakes.values()),
            "wealth": [one.to_dict() for one in self.processes.values()],
            "alarm": None if self.alarm is None else asdict(self.alarm),
            "batches": [list(batch) for batch in self.batches],
            "waiting": {name: json.loads(to_json(made)) for name, made in self.waiting.items()},
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> MonitorState:
        """Inverse of `to_dict`; a ValueError for other types and shapes."""
        by, names, looks = state["by"], state["classes"], index(state["looks"])
        batches = tuple((name, digest) for name, digest in state["batches"])
        if (
            not isinstance(by, str | None)
            or any((name is None) != (by is None) for name in names)
            or len(set(names)) < len(names)
            or bool(names) != (looks > 0)
            or not all(isinstance(text, str) for batch in batches for text in batch)
        ):
            raise ValueError("classes, looks and batches contradict each other")
        processes = [EProcess.from_dict(one) for one in state["wealth"]]
        stakes = _numbers(state["stakes"], len(names)).tolist()
        return cls(
            by=by,
            looks=looks,
            highest=float(_numbers(state["highest"])),
            processes=dict(zip(names, processes, strict=True)),
            log_stakes=dict(zip(names, stakes, strict=True)),
            alarm=None if state["alarm"] is None else Alarm(**state["alarm"]),
            batches=batches,
            waiting={name: _past(made) for name, made in state.get("waiting", {}).items()},
        )


class Monitor:
    """Anytime-valid test of calibration, batch by batch.

    Several threads may update one monitor; several processes share one by its file, with
    `Monitor.shared`.

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
       not matter. What is used instead is at most that (see `log_gains`: p is known to the width
       of a cell), which makes a supermartingale of it.
    3. *Starting later.* A bet that keeps its stake until batch s and plays from then on is a
       supermartingale too. The monitor divides the stake of each bet over all s with weights
       1/(s(s+1)), which add up to 1: A_t = (A_{t-1} + 1/(t(t+1))) G_t is what has started, with G_t the
       batch's factor, and 1/(t+1) is what has not.
    4. *Many bets.* The stake is divided over a fixed family (a shift, a tilt, waves; several sizes,
       both signs) and one bet whose λ is learnt from earlier batches, so chosen before the batch is
       seen. A weighted mean of non-negative supermartingales that start at 1 is another.
    5. *Many groups or classes.* So is the mean over them, however they depend on each other: a row may
       count for every class. One that comes later is given an equal share of what there is then.

    By Ville's inequality P(sup_t E_t ≥ 1/α) ≤ α: the alarm at E_t ≥ 1/level is false with probability
    at most `level`, and 1/max E_s is a p-value, at every look at once. Nothing is corrected for the
    number of looks, since there is nothing to correct.

    "Given the past" includes the outcomes of earlier rows: forecasts of one event repeated in several
    batches before it is known do not satisfy it. Give each event once.

    References
    ----------
    Arnold, Henzi and Ziegel, *Sequentially valid tests for forecast calibration*, 2023.
    Waudby-Smith and Ramdas, *Estimating means of bounded random variables by betting*, 2024.
    Wang and Ramdas, *False discovery rate control with e-values*, 2022.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor()
    >>> for day in range(30):
    ...     p = rng.random(100)
    ...     truth = p if day < 10 else p**2
    ...     result = monitor.update(rng.random(100) < truth, p)
    >>> result.alarm.since, result.alarm.direction
    (11, 'over-forecasting')
    """

    def __init__(self, *, level: float = 0.05) -> None:
        if not is_number(level) or not 0.0 < level < 1.0:
            raise invalid("level", "be between 0 and 1", level)
        self.level = float(level)
        self._state = MonitorState()

    def reset(self) -> None:
        """Forget everything: the next batch is the first. Do so after acting on an alarm."""
        with UPDATES:
            self._state = MonitorState()

    @property
    def n(self) -> int:
        """Rows so far."""
        return self._state.n

    @property
    def last(self) -> MonitorResult:
        """Result of the latest update."""
        state = self._state
        if not state.looks:
            raise InputError(
                "the monitor has seen no batch yet.", hint="Call `Monitor.update` first."
            )
        return state.result(self.level)

    def update(
        self,
        y_true: Any = None,
        y_prob: Any = None,
        *,
        data: Any = None,
        by: Any = None,
        batch: str | None = None,
        **options: Unpack[InputOptions],
    ) -> MonitorResult:
        """Evidence against calibration after the next batch, given as arrays, data or a Sketch.

        Parameters
        ----------
        y_true : array, Sketch or Sketches
            Outcomes, 0 or 1; or a Sketch on the probability scale, and no `y_prob`; or what `top_label` or
            `classwise` gives. Batches may come on grids of different fineness.
        y_prob : array
            Predicted probabilities of outcome 1; or class probabilities, a column for each class, whose
            confidence is monitored. With `multiclass="top_label"` or "classwise", each class is monitored
            by itself, and one alarm is raised for all of them.
        data : frame, file, glob, relation or Sketch, optional
            The batch as `scan` reads it; `y_true` and `y_prob` then name its columns.
        by : array or str, optional
            The group of every row, or the name of its column: each group is monitored by itself, too.
        batch : str, optional
            A name by which the batch is known again: a job that is tried twice counts once, and the
            second time gives the result as it stands. The latest 1000 names are kept.
        **options
            How to read the rows, as for `scan`. Weights and soft outcomes are refused: such a row is not
            a bet at the odds of its forecast.

        Returns
        -------
        MonitorResult
            The e-value and the p-value so far, and the alarm, if there has been one.
        """
        _require_name(batch)
        column, rows = _by_group(_read(y_true, y_prob, data, by, options))
        with UPDATES:
            self._state = self._state.after(rows, column, batch, self.level)
            return self._state.result(self.level)

    def register(
        self, y_prob: Any, *, batch: str, data: Any = None, **options: Unpack[InputOptions]
    ) -> None:
        """Note the predictions of a batch when they are made, before their outcomes are known.

        `expected` then has what to expect of all that wait. When the outcomes come, pass both to `update`
        under the same name, which refuses predictions that are not those that were registered.

        Parameters
        ----------
        y_prob : array, or str with `data`
            Predicted probabilities.
        batch : str
            The name of the batch.
        data, **options
            As for `update`.
        """
        _require_name(batch, anonymous=False)
        p = as_column(y_prob if data is None else categories(y_prob, "y_prob", data), "y_prob")
        made = Sketch.from_arrays(np.zeros(p.size), p, **options)
        while made.cells.size > NODES:
            made = made.rebin(made.nodes // 2)
        with UPDATES:
            state = self._state
            known = {*state.waiting, *dict(state.batches)}
            if batch in known or len(state.waiting) >= MOST_NAMES:
                raise InputError(
                    f"`batch` must be new, of at most {MOST_NAMES} that wait; got {show_value(batch)}.",
                    argument="batch",
                )
            self._state = replace(state, waiting={**state.waiting, batch: made})

    @property
    def expected(self) -> Projection | None:
        """Expected scores of the registered predictions whose outcomes are not known yet; None without any.

        Expected, not measured: they hold if the calibration curve of all rows so far still does. `drift`
        in it is a change of the predictions, which is no evidence of miscalibration.
        """
        state = self._state
        if not state.waiting:
            return None
        past = [one.past for one in state.processes.values()]
        known = _added(past) if past and state.by != "class" else None
        return project(known, _added(state.waiting.values()))

    def __repr__(self) -> str:
        if not self._state.looks:
            return f"<Monitor at level {self.level:g}, no batch yet>"
        last = self.last
        state = "no alarm" if last.alarm is None else str(last.alarm)
        return (
            f"<Monitor at level {self.level:g}, look {last.look}, {last.n} rows, "
            f"e-value {last.e_value:.3g}: {state}>"
        )

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"

    def to_json(self) -> str:
        """The whole state as text; `Monitor.from_json` continues from it, to the bit."""
        return dump_versioned(FORMAT, VERSION, {"level": self.level, **self._state.to_dict()})

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """A monitor in the state that `to_json` wrote; anything else is refused."""
        state = load_versioned(text, FORMAT, VERSION, KIND)
        try:
            monitor = cls(level=state["level"])
            monitor._state = MonitorState.from_dict(state)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            reason = str(error) if isinstance(error, CalibrantError) else repr(error)
            raise InputError(
                f"this state of a monitor is damaged: {reason.rstrip('.')}."
            ) from error
        return monitor

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, all or nothing."""
        write_whole(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read the state that `save` wrote."""
        content = read_bytes(path, KIND)
        try:
            return cls.from_json(content)
        except InputError as error:
            raise error.at(file=os.fspath(path)) from error.__cause__

    @classmethod
    @contextmanager
    def shared(cls, path: str | os.PathLike[str], *, level: float = 0.05) -> Iterator[Self]:
        """The monitor of a file, locked against other processes until the block ends, and then saved.

        A block that ends with an error leaves the file as it was.

        Parameters
        ----------
        path : str or path
            Path of its state; a new one begins where there is no file.
        level : float
            As of the class; it must be that of the state.

        Examples
        --------
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "monitor.json")
        >>> for _ in range(2):  # the job is tried again
        ...     with Monitor.shared(path) as monitor:
        ...         result = monitor.update([0, 1], [0.2, 0.7], batch="monday")
        >>> result.look, result.n
        (1, 2)
        """
        monitor = cls(level=level)
        with file_lock(place_of_file(path)):
            if Path(path).exists():
                monitor = cls.load(path)
                if monitor.level != level:
                    raise InputError(
                        f"`level` must be {monitor.level:g}, as in the state; got {level:g}.",
                        argument="level",
                        hint="Start a new state.",
                    )
            yield monitor
            monitor.save(path)


def _read(y_true: Any, y_prob: Any, data: Any, by: Any, options: InputOptions) -> Sketch | Sketches:
    """Sketch of a batch, or sketches of its groups or classes."""
    if data is not None:
        return from_data(y_true, y_prob, data, options, by=by)
    if by is not None:
        require_same_index(y_true=y_true, y_prob=y_prob, by=by)
        columns = {"y_true": y_true, "y_prob": y_prob, "group": as_column(by, "by", dates=True)}
        same_length(y_prob=as_array(y_prob, "y_prob"), by=columns["group"])
        if options.get("sample_weight") is not None:
            columns["sample_weight"] = options["sample_weight"]
            options = {**options, "sample_weight": "sample_weight"}
        return from_data("y_true", "y_prob", columns, options, by="group")
    if is_summed(y_true):
        require_alone(y_true, y_prob, options)
        return y_true
    view = options.get("multiclass")
    if isinstance(view, str) and view in CLASS_VIEWS.values():
        return sketches_of_classes(y_true, y_prob, **options)
    return as_sketch(y_true, y_prob, **options)


def _by_group(read: Sketch | Sketches) -> tuple[str | None, Mapping[Any, Sketch]]:
    """Column that tells groups apart, and rows by group; one sample is the group None."""
    by: str | None = None
    rows: dict[Any, Sketch]
    if isinstance(read, Sketch):
        rows = {None: read}
    else:
        if len(read.by) != 1:
            raise InputError(
                f"`by` must be one column; the batch is grouped by {', '.join(map(str, read.by))}.",
                argument="by",
            )
        by = str(read.by[0])
        rows = {getattr(key, "item", lambda key=key: key)(): part for key, part in read.items()}
        rows = {key: part for key, part in rows.items() if part.n}
        for key in rows:
            if not _is_name(key):
                raise InputError(
                    f"names of groups and classes must be text or numbers; one is {show_value(key)}.",
                    argument="classes" if by in CLASS_VIEWS else "by",
                )
    if not rows:
        raise InputError("a batch must have rows; this one has none.")
    for part in rows.values():
        if part.weighted:
            raise InputError(
                "a monitor takes rows without weights and with outcomes 0 or 1.",
                hint="Leave out `sample_weight`, and rows whose outcome is not known yet.",
            )
        if part.scale != PROBABILITY:
            raise InputError(
                f"a monitor takes sketches on the probability scale; got {part.scale.name}."
            )
    return by, rows


def _numbers(values: Any, *shape: int) -> Floats:
    """Finite numbers of this shape, as a state must hold them."""
    numbers = np.array(values, dtype=np.float64)
    if numbers.shape != shape or not np.isfinite(numbers).all():
        raise ValueError(f"finite numbers of shape {shape} are needed")
    return numbers


def _past(state: Any) -> Sketch:
    """Rows of a state, without weights and on the probability scale."""
    read = from_json(json.dumps(state))
    past = read.total()
    if read.by or past.weighted or past.scale != PROBABILITY:
        raise ValueError("rows must be a sketch without weights on the probability scale")
    return past


def _same_predictions(made: Sketch, rows: Mapping[Any, Sketch]) -> bool:
    """True if as many rows of a batch are in each cell as when it was registered, with the same sum.

    The cells are coarse, so that single precision is no other prediction.
    """
    now = _added(rows.values())
    nodes = min(now.nodes, made.nodes, CLASS_NODES)
    one, other = (each.rebin(nodes) for each in (made, now))
    return (
        np.array_equal(one.cells, other.cells)
        and np.array_equal(one.counts.sum(axis=1), other.counts.sum(axis=1))
        and bool(
            np.isclose(_sum_of_predictions(one), _sum_of_predictions(other), rtol=1e-6, atol=0.0)
        )
    )


def _sum_of_predictions(rows: Sketch) -> float:
    error, _, _ = _errors(rows)
    return float(error) + float(rows.counts[:, 1].sum())


def _added(parts: Iterable[Sketch]) -> Sketch:
    """Sum of sketches on the coarsest of their grids."""
    each = list(parts)
    nodes = min(part.nodes for part in each)
    first, *others = (part.rebin(nodes) for part in each)
    return sum(others, first)


def _require_name(batch: Any, *, anonymous: bool = True) -> None:
    if batch is None and anonymous:
        return
    if not (isinstance(batch, str) and 0 < len(batch) <= MAX_NAME):
        raise invalid("batch", f"be a text of 1 to {MAX_NAME} characters", batch)


def _is_name(name: Any) -> bool:
    """True for names that JSON can hold."""
    return isinstance(name, str | bool) or (is_number(name) and bool(np.isfinite(name)))


def _e_and_p(log_e_value: float, highest: float) -> tuple[float, float]:
    """E-value, never infinite, and p-value, never 0, from logarithms of e-values."""
    return float(np.exp(min(log_e_value, 700.0))), max(float(np.exp(-highest)), SMALLEST_P_VALUE)


def _digest(rows: Mapping[Any, Sketch]) -> str:
    """Checksum of the rows of a batch."""
    digest = hashlib.sha256()
    for name, part in sorted(rows.items(), key=lambda item: repr(item[0])):
        digest.update(b"" if name is None else repr(name).encode())
        for column in (np.array([part.nodes]), part.cells, part.counts, part.offsets):
            digest.update(column.astype("<i8").tobytes())
    return digest.hexdigest()[:32]
