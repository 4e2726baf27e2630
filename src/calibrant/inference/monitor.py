"""Sequential monitoring: look after every batch without inflating false alarms."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, Unpack

from calibrant._arguments import is_number
from calibrant._files import (
    dump_versioned,
    file_lock,
    load_versioned,
    place_of_file,
    read_bytes,
    write_whole,
)
from calibrant._locks import ForkSafeLock
from calibrant.data.rows import InputOptions
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import Sketch, as_sketch, require_alone
from calibrant.data.sketches import Sketches
from calibrant.errors import CalibrantError, Function, InputError, Option
from calibrant.inference.monitor_evidence import Evidence, is_class_name
from calibrant.inference.monitor_look import Look, e_and_p
from calibrant.io.class_arrays import sketches_of_classes
from calibrant.io.scan_request import CLASS_COLUMN

__all__ = ["Monitor"]

FORMAT = "calibrant.monitor"
VERSION = 3
WHAT = "the state of a monitor"
LONGEST_NAME = 200
"""Characters of the name of a batch: the state must not grow with them."""
COLUMN_OF = {view: column[0] for view, column in CLASS_COLUMN.items() if column}
"""What the classes are called that each reading of class probabilities makes."""


class Monitor:
    """An anytime-valid test of calibration, batch by batch.

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
       not matter. What is used instead is at most that (see `bets.log_gains`: p is known to the width
       of a cell), which makes a supermartingale of it.
    3. *Starting later.* A bet that keeps its stake until batch s and plays from then on is a
       supermartingale too. The monitor divides the stake of each bet over all s with weights
       1/(s(s+1)), which add up to 1: A_t = (A_{t-1} + 1/(t(t+1))) G_t is what has started, with G_t the
       batch's factor, and 1/(t+1) is what has not.
    4. *Many bets.* The stake is divided over a fixed family (a shift, a tilt, waves; several sizes,
       both signs) and one bet whose λ is learnt from earlier batches, so chosen before the batch is
       seen. A weighted mean of non-negative supermartingales that start at 1 is another.
    5. *Many classes.* So is the mean over classes, however they depend on each other: a row may count for
       every class. A class that comes later is given an equal share of what there is then.

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
    >>> import numpy as np
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
            raise InputError(
                "must lie between 0 and 1",
                argument="level",
                seen=level,
                cure="Leave it out for 0.05.",
            )
        self.level = float(level)
        self._lock = ForkSafeLock()
        self._evidence = Evidence()

    def reset(self) -> None:
        """Forget everything: the next batch is the first. Do so after acting on an alarm."""
        with self._lock:
            self._evidence = Evidence()

    @property
    def n(self) -> int:
        """Rows seen so far."""
        return self._evidence.n

    @property
    def last(self) -> Look:
        """The latest look."""
        return self._look(self._evidence)

    def _look(self, evidence: Evidence) -> Look:
        if not evidence.looks:
            raise InputError(
                "the monitor has seen no batch yet",
                seen=0,
                saying="",
                cure="Call {update} first.",
                update=Function("Monitor.update"),
            )
        pair = e_and_p(evidence.log_e_value, evidence.highest)
        return Look(evidence.looks, evidence.n, *pair, evidence.alarm, evidence.classes())

    def update(
        self,
        y_true: Any = None,
        y_prob: Any = None,
        *,
        data: Any = None,
        batch: str | None = None,
        **options: Unpack[InputOptions],
    ) -> Look:
        """Take the next batch, as arrays or as a Sketch, and look.

        Parameters
        ----------
        y_true : array, Sketch or Sketches
            Outcomes, 0 or 1; or a Sketch on the probability scale, and no `y_prob`; or what `top_label` or
            `classwise` gives. Batches may come on grids of different fineness: each is bet on with its
            own, and what is learnt from all of them is learnt on the coarsest.
        y_prob : array
            Predicted probabilities of outcome 1; or class probabilities, a column for each class, whose
            confidence is watched. With `multiclass="top_label"` or "classwise", each class is watched by
            itself, and one alarm is raised for all of them.
        data : frame, file, glob, relation or Sketch, optional
            The batch as `scan` reads it; `y_true` and `y_prob` then name its columns.
        batch : str, optional
            A name by which the batch is known again: a job that is tried twice counts once, and the
            second time gives the look as it stands. The latest 1000 names are kept.
        **options
            How to read the rows, as for `scan`. Weights and soft outcomes are refused: such a row is not
            a bet at the odds of its forecast.

        Returns
        -------
        Look
            The e-value and the p-value so far, and the alarm, if there has been one.
        """
        if batch is not None and not (isinstance(batch, str) and 0 < len(batch) <= LONGEST_NAME):
            raise InputError(
                "must be a name of at most {most} characters",
                argument="batch",
                seen=batch if not isinstance(batch, str) else batch[:60],
                most=LONGEST_NAME,
                cure="Pass text such as a date.",
            )
        by, rows = _by_class(_read(y_true, y_prob, data, options))
        for sketch in rows.values():
            _require_plain(sketch)
        with self._lock:
            _require_same(self._evidence, by)
            if not self._evidence.knows(rows, batch):
                self._evidence = self._evidence.after(rows, self.level, batch, by)
            return self._look(self._evidence)

    def __repr__(self) -> str:
        if not self._evidence.looks:
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
        return dump_versioned(FORMAT, VERSION, {"level": self.level, **self._evidence.to_dict()})

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """A monitor in the state that `to_json` wrote; anything else is refused."""
        state = load_versioned(text, FORMAT, VERSION, WHAT)
        try:
            monitor = cls(level=state["level"])
            monitor._evidence = Evidence.from_dict(state, monitor.level)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(
                "this state of a monitor is damaged: {reason}",
                cure="Use a copy of it, or start a new state.",
                reason=error if isinstance(error, CalibrantError) else repr(error),
            ) from error
        return monitor

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, all or nothing."""
        write_whole(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read the state that `save` wrote."""
        content = read_bytes(path, WHAT)
        try:
            return cls.from_json(content)
        except InputError as error:
            raise error.at(file=os.fspath(path)) from error.__cause__

    @classmethod
    @contextmanager
    def shared(cls, path: str | os.PathLike[str], *, level: float = 0.05) -> Iterator[Self]:
        """The monitor of a file, kept from all other processes until the block ends, and then saved.

        A block that ends with an error leaves the file as it was.

        Parameters
        ----------
        path : str or path
            Path of its state; a new one begins where there is no file.
        level : float
            As of the class; that of a state must not change on the way.

        Examples
        --------
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "watch.json")
        >>> for _ in range(2):  # the job is tried again
        ...     with Monitor.shared(path) as watch:
        ...         look = watch.update([0, 1], [0.2, 0.7], batch="monday")
        >>> look.look, look.n
        (1, 2)
        """
        monitor = cls(level=level)
        with file_lock(place_of_file(path)):
            if Path(path).exists():
                monitor = cls.load(path)
                if monitor.level != level:
                    raise InputError(
                        "must not change on the way; the state watches at level {before}",
                        argument="level",
                        seen=level,
                        before=monitor.level,
                        cure="Start a new state.",
                    )
            yield monitor
            monitor.save(path)


def _read(y_true: Any, y_prob: Any, data: Any, options: InputOptions) -> Sketch | Sketches:
    """The sketch of a batch, or the sketches of its classes, whichever way it is given."""
    if data is not None:
        from calibrant.io.from_data import from_data

        return from_data(y_true, y_prob, data, options)
    if isinstance(y_true, Sketches):
        require_alone(y_true, y_prob, options)
        return y_true
    if options.get("multiclass") in COLUMN_OF:
        return sketches_of_classes(y_true, y_prob, **options)
    return as_sketch(y_true, y_prob, **options)


def _by_class(read: Sketch | Sketches) -> tuple[str | None, Mapping[Any, Sketch]]:
    """What the classes are, and the rows of each that has some; one sample is a class without a name."""
    if isinstance(read, Sketch):
        return None, {None: read}
    if read.by not in CLASS_COLUMN.values():
        raise InputError(
            "must be one batch, without groups other than classes",
            argument="data",
            seen=", ".join(read.by),
            saying="it is grouped by {}",
            cure="Update with one group after the other.",
        )
    rows = {getattr(name, "item", lambda name=name: name)(): part for name, part in read.items()}
    rows = {name: part for name, part in rows.items() if part.n}
    if not rows:
        raise InputError("a batch must have rows", seen=0, saying="this one has {}")
    unnamed = [name for name in rows if not is_class_name(name)]
    if unnamed:
        raise InputError(
            "must be text or numbers, which the state of a monitor can hold",
            argument="classes",
            seen=unnamed[0],
            cure="Pass names that are text.",
        )
    return read.by[0], rows


def _require_plain(rows: Sketch) -> None:
    """Refuse weights, soft outcomes and other scales."""
    if rows.weighted:
        raise InputError(
            "a monitor takes rows without weights, with outcomes 0 or 1; this batch has others",
            seen=rows.n,
            saying="it has {} rows",
            cure="Leave out {weight}, or the rows whose outcome is not known yet.",
            weight=Option("sample_weight"),
        )
    if rows.scale != PROBABILITY:
        raise InputError(
            "a monitor takes sketches on the probability scale",
            seen=rows.scale.name,
            cure="Scan the rows again on the probability scale.",
        )


def _require_same(evidence: Evidence, by: str | None) -> None:
    """Refuse classes after one sample, one sample after classes, and classes of another kind."""
    if evidence.looks and evidence.by != by:
        before, now = (
            next((w for w in COLUMN_OF if COLUMN_OF[w] == b), None) for b in (evidence.by, by)
        )
        raise InputError(
            "must not change on the way",
            argument="multiclass",
            seen=now,
            cure=[
                "Leave it out, as before." if before is None else "Pass {option}, as before.",
                "Or start a new monitor.",
            ],
            option=Option("multiclass", before),
        )
