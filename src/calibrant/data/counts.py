"""A table of distinct predictions and how often each was right, as the sums of a sketch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_column
from calibrant.data.cell_sums import FRACTION_BITS, Columns, bits_of_offsets
from calibrant.data.scales import Scale
from calibrant.errors import InputError, Option, Where

__all__ = ["columns_of_counts"]

LARGEST_COUNT = 1 << 53


def columns_of_counts(p: Any, n: Any, events: Any, nodes: int, scale: Scale) -> Columns:
    """The sums per cell of a table; see `Sketch.from_counts`."""
    trials, successes = _as_integers(n, "n"), _as_integers(events, "events")
    predictions = _as_probabilities(p, "p")
    if not trials.size == successes.size == predictions.size:
        raise InputError(
            "must be as long as {n_option} and {events_option}",
            argument="p",
            seen=(predictions.size, trials.size, successes.size),
            saying="they have {p}, {n} and {events} rows",
            cure="Give one row to each prediction.",
            p=predictions.size,
            n=trials.size,
            events=successes.size,
            n_option=Option("n"),
            events_option=Option("events"),
        )
    wrong = np.flatnonzero((successes < 0) | (successes > trials))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            "must lie between 0 and {n_option}",
            argument="events",
            seen=int(successes[row]),
            where=Where(row=row),
            saying="{where} has {} events of {trials}",
            cure="Count the events among the rows of each prediction.",
            trials=int(trials[row]),
            n_option=Option("n"),
        )
    bits = bits_of_offsets(nodes)
    fixed = np.floor(scale.locate(predictions) * 2.0**FRACTION_BITS).astype(np.int64)
    counts = np.concatenate([trials - successes, successes])
    offsets = counts * np.tile(fixed & ((1 << bits) - 1), 2)
    labels = np.repeat(np.array([0, 1]), trials.size)
    used = counts > 0
    if not used.any():
        raise InputError(
            "must not be zero everywhere",
            argument="n",
            seen=0,
            saying="the table has {} rows",
            cure="Pass the number of rows behind each prediction.",
        )
    long = (np.tile(fixed >> bits, 2), labels, counts, offsets)
    return Columns.from_long(*(values[used] for values in long), offset_bits=bits)


def _as_integers(values: Any, name: str) -> NDArray[np.int64]:
    column = as_column(values, name)
    if column.dtype.kind in "biuf":
        whole = (column == np.round(column)) & (column >= 0) & (column <= LARGEST_COUNT)
        wrong = np.flatnonzero(~whole)
    else:
        wrong = np.array([0])
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            "must hold whole numbers between 0 and {largest}",
            argument=name,
            seen=column[row],
            where=Where(row=row),
            cure="Pass counts of rows.",
            largest=LARGEST_COUNT,
        )
    return column.astype(np.int64)


def _as_probabilities(values: Any, name: str) -> NDArray[np.float64]:
    column = as_column(values, name)
    if column.dtype.kind not in "biuf":
        raise InputError(
            "must hold numbers",
            argument=name,
            seen=column[0],
            where=Where(row=0),
            cure="Convert it first.",
        )
    column = column.astype(np.float64)
    wrong = np.flatnonzero(~((column >= 0) & (column <= 1)))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            "must lie in [0, 1]",
            argument=name,
            seen=float(column[row]),
            where=Where(row=row),
            cure="Divide percentages by 100, and leave out what is missing.",
        )
    return column
