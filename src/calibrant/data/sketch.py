"""The sketch: what one pass over the data leaves, and all that anything else needs."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._locks import ForkSafeLock
from calibrant.data.arrays import as_array, as_column
from calibrant.data.cell_sums import (
    DEFAULT_NODES,
    FRACTION_BITS,
    LARGEST_SUM,
    Columns,
    bits_of_offsets,
    over_outcomes,
    require_nodes,
)
from calibrant.data.fill import fill
from calibrant.data.rows import LEFT_OUT, Dropped, InputOptions, Rows, as_rows
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.errors import (
    CalibrantWarning,
    Code,
    InputError,
    MergeError,
    Option,
    TooFewRows,
    TypeName,
    Where,
)

__all__ = [
    "HardLabelWarning",
    "Sketch",
    "are_hard_labels",
    "as_sketch",
    "checked_dropped",
    "checked_long_table",
    "columns_of_counts",
    "require_alone",
    "warn_of_hard_labels",
    "wrong_type",
]

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


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def checked_long_table(
    *,
    nodes: int,
    cells: Any,
    labels: Any,
    counts: Any,
    offsets: Any,
    weights: Any = None,
    squared_weights: Any = None,
    weighted_offsets: Any = None,
) -> tuple[NDArray[Any], ...]:
    """The columns as int64 and float64, or an InputError that names the column and the row."""
    integers = {
        "cell": _integers(cells, "cell"),
        "label": _integers(labels, "label"),
        "count": _integers(counts, "count"),
        "offset": _integers(offsets, "offset"),
    }
    given = {
        "weight": weights,
        "squared_weight": squared_weights,
        "weighted_offset": weighted_offsets,
    }
    missing = [name for name, values in given.items() if values is None]
    if 0 < len(missing) < len(given):
        raise InputError(
            "a weighted table needs the columns {columns}",
            columns=", ".join(given),
            where=Where(column=missing[0]),
            saying="{where} is missing",
        )
    floats = {name: _floats(values, name) for name, values in given.items() if values is not None}
    columns: dict[str, NDArray[Any]] = {**integers, **floats}
    lengths = {name: values.size for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError("the columns must have equal lengths", seen=lengths)
    _check_integers(nodes, **integers)
    if floats:
        _check_weights(nodes, cell=integers["cell"], **floats)
    return tuple(columns.values())


def checked_dropped(dropped: Mapping[str, int] | None) -> Mapping[str, int]:
    """Rows left out by reason, or an InputError: a file has a place for these reasons alone."""
    for reason, count in (dropped or {}).items():
        if reason not in LEFT_OUT:
            raise InputError(
                "must count rows under the reasons {reasons}",
                argument="dropped",
                seen=reason,
                reasons=", ".join(map(repr, LEFT_OUT)),
            )
        if not isinstance(count, int | np.integer) or count < 0:
            raise InputError(
                "must hold whole numbers that are not negative",
                argument="dropped",
                seen=count,
                saying="{reason} has {}",
                reason=reason,
            )
    return dropped or {}


def _check_integers(
    nodes: int, cell: Integers, label: Integers, count: Integers, offset: Integers
) -> None:
    _refuse("cell", cell, (cell < 0) | (cell > nodes), f"a cell must lie between 0 and {nodes}")
    _refuse("label", label, (label != 0) & (label != 1), "a label must be 0 or 1")
    _refuse("count", count, count < 0, "a count must not be negative")
    total = count.sum(dtype=np.float64)
    if total >= 2.0**63:
        raise InputError(
            "counts must add up to fewer than 2**63 rows", seen=total, where=Where(column="count")
        )
    least = -(-offset // ((1 << bits_of_offsets(nodes)) - 1))  # rows that it takes to come so far
    # Rows with p = 1 have a cell of their own, in which the only offset is 0.
    outside = (offset < 0) | (least > count) | ((cell == nodes) & (offset > 0))
    _refuse("offset", offset, outside, "an offset must fit into its cell")


def _check_weights(
    nodes: int, cell: Integers, weight: Floats, squared_weight: Floats, weighted_offset: Floats
) -> None:
    widest = np.where(cell == nodes, 0.0, 2.0 ** bits_of_offsets(nodes))
    # Sums of floats are rounded, so a mean offset may come out a little wider than the cell.
    broken = weighted_offset > 1.000001 * weight * widest
    _refuse("weighted_offset", weighted_offset, broken, "an offset must fit into its cell")
    alone = (squared_weight > 0) & (weight == 0)
    _refuse("squared_weight", squared_weight, alone, "a squared weight must go with a weight")


def _integers(values: Any, name: str) -> Integers:
    column = as_array(values, name)
    if column.ndim == 1 and column.size == 0:
        return np.empty(0, np.int64)
    if column.ndim != 1 or column.dtype.kind not in "biuf":
        raise wrong_type(name, column, "whole numbers")
    if column.dtype.kind == "f":
        broken = ~(np.abs(column) < 2.0**53) | (column != np.round(column))
        _refuse(name, column, broken, "a column of sums of rows must hold whole numbers")
    if column.dtype == np.uint64:
        _refuse(name, column, column >= 1 << 63, "a number must fit into 64 bits with a sign")
    return column.astype(np.int64)


def _floats(values: Any, name: str) -> Floats:
    column = as_array(values, name)
    if column.ndim != 1 or column.dtype.kind not in "biuf":
        raise wrong_type(name, column, "numbers")
    column = column.astype(np.float64)
    broken = ~((column >= 0) & (column <= LARGEST_SUM))
    _refuse(name, column, broken, f"a sum must lie between 0 and {LARGEST_SUM:g}")
    return column


def wrong_type(name: str, column: NDArray[Any], needed: str) -> InputError:
    """What to raise of a column whose values are of another kind."""
    return InputError(
        "a column of sums must hold {needed}",
        seen=str(column.dtype),
        where=Where(column=name),
        saying="the type of {where} is {}",
        needed=needed,
    )


def _refuse(name: str, column: NDArray[Any], broken: NDArray[np.bool_], rule: str) -> None:
    rows = np.flatnonzero(broken)
    if rows.size:
        row = int(rows[0])
        raise InputError(rule, seen=column[row].item(), where=Where(row=row, column=name))


class Sketch:
    """Sums per cell of a grid: counts and mean positions of predictions, apart by outcome.

    A sketch of n rows takes at most 3 MB whatever n is. Sketches add, and for unweighted rows they add
    exactly: any partition of the rows, in any order, on any engine, gives the same bits.

    Build one with `Sketch.from_arrays`, `Sketch.from_counts` or `calibrant.scan`.

    Examples
    --------
    >>> monday = Sketch.from_arrays([0, 1, 1], [0.2, 0.6, 0.9])
    >>> tuesday = Sketch.from_arrays([0, 0], [0.1, 0.6])
    >>> monday + tuesday
    <Sketch of 5 rows, 2 events, in 4 of 65536 cells, scale probability>
    """

    __hash__ = None  # type: ignore[assignment]  # it grows by `update`

    def __init__(
        self,
        columns: Columns,
        *,
        nodes: int = DEFAULT_NODES,
        scale: Scale = PROBABILITY,
        dropped: Mapping[str, int] | None = None,
    ) -> None:
        self._nodes = require_nodes(nodes)
        self._scale = scale
        # The compiled loops write at these cells.
        if columns.cells.size and not 0 <= columns.cells[0] <= columns.cells[-1] <= nodes:
            raise InputError(
                "must lie between 0 and {nodes}",
                argument="cells",
                seen=(int(columns.cells[0]), int(columns.cells[-1])),
                saying="these go from {first} to {last}",
                cure="Pass the {nodes_option} that the cells were made with.",
                nodes=nodes,
                first=int(columns.cells[0]),
                last=int(columns.cells[-1]),
                nodes_option=Option("nodes"),
            )
        self._lock = ForkSafeLock()
        self._state = (columns, Dropped(dropped))

    # -- building ------------------------------------------------------------------------------

    @classmethod
    def empty(cls, *, nodes: int = DEFAULT_NODES, scale: str | Scale = PROBABILITY) -> Sketch:
        """A sketch of no rows, to be added to or updated."""
        return cls(Columns.empty(), nodes=nodes, scale=as_scale(scale))

    @classmethod
    def from_rows(
        cls, pairs: Rows, *, nodes: int = DEFAULT_NODES, scale: str | Scale = PROBABILITY
    ) -> Sketch:
        """One pass over checked or unchecked pairs, on all cores when there are many."""
        if not isinstance(pairs, Rows):
            raise InputError(
                "must be Rows",
                argument="pairs",
                seen=TypeName.of(pairs),
                cure="From outcomes and predictions use {build}.",
                build=Code("Sketch.from_arrays(y_true, y_prob)"),
            )
        scale = as_scale(scale, base_rate=pairs.base_rate if scale == "relative" else None)
        columns = fill(pairs, require_nodes(nodes), scale)
        return cls(columns, nodes=nodes, scale=scale, dropped=pairs.dropped)

    @classmethod
    def from_arrays(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        nodes: int = DEFAULT_NODES,
        scale: str | Scale = PROBABILITY,
        **options: Unpack[InputOptions],
    ) -> Sketch:
        """One pass over outcomes and predictions; see `InputOptions` for the keywords."""
        return cls.from_rows(as_rows(y_true, y_prob, **options), nodes=nodes, scale=scale)

    @classmethod
    def from_counts(
        cls,
        p: Any,
        n: Any,
        events: Any,
        *,
        nodes: int = DEFAULT_NODES,
        scale: str | Scale = PROBABILITY,
    ) -> Sketch:
        """A table of distinct predictions, how often each was made, and how often the event came.

        Parameters
        ----------
        p : array
            Predictions, in [0, 1]; repeated ones are added up.
        n, events : array of whole numbers
            Rows with each prediction, and how many of them had the event.
        nodes : int
            Cells of the grid, a power of two.
        scale : str or Scale
            On which the grid lies.

        Returns
        -------
        Sketch

        Examples
        --------
        >>> Sketch.from_counts(p=[0.1, 0.5], n=[100, 20], events=[9, 12])
        <Sketch of 120 rows, 21 events, in 2 of 65536 cells, scale probability>
        """
        scale = as_scale(scale)
        columns = columns_of_counts(p, n, events, require_nodes(nodes), scale)
        return cls(columns, nodes=nodes, scale=scale)

    @classmethod
    def from_columns(
        cls,
        cells: Any,
        labels: Any,
        counts: Any,
        offsets: Any,
        weights: Any = None,
        squared_weights: Any = None,
        weighted_offsets: Any = None,
        *,
        nodes: int = DEFAULT_NODES,
        scale: str | Scale = PROBABILITY,
        dropped: Mapping[str, int] | None = None,
    ) -> Sketch:
        """A long table with one row per (cell, label), as a group-by gives it; repeats are summed.

        Every value is checked: this is how files and query results come in.
        """
        from calibrant.data.sketch import checked_dropped, checked_long_table

        sums = checked_long_table(
            nodes=require_nodes(nodes),
            cells=cells,
            labels=labels,
            counts=counts,
            offsets=offsets,
            weights=weights,
            squared_weights=squared_weights,
            weighted_offsets=weighted_offsets,
        )
        return cls(
            Columns.from_long(*sums, offset_bits=bits_of_offsets(nodes)),
            nodes=nodes,
            scale=as_scale(scale),
            dropped=checked_dropped(dropped),
        )

    # -- reading -------------------------------------------------------------------------------

    @property
    def nodes(self) -> int:
        """Number of cells of the grid, a power of two."""
        return self._nodes

    @property
    def scale(self) -> Scale:
        """The scale on which the grid lies."""
        return self._scale

    @property
    def columns(self) -> Columns:
        """The sums, as sorted sparse columns."""
        return self._state[0]

    @property
    def dropped(self) -> Mapping[str, int]:
        """Rows that were left out, by reason."""
        return self._state[1]

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return self.columns.weighted

    @property
    def cells(self) -> NDArray[np.int64]:
        """The non-empty cells, in increasing order."""
        return self.columns.cells

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows per (cell, label)."""
        return self.columns.counts

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Sum of offsets per (cell, label), in units of 2**-36."""
        return self.columns.offsets

    @property
    def weights(self) -> NDArray[np.float64]:
        """Sum of weights per (cell, label)."""
        weights = self.columns.weights
        return self.counts.astype(np.float64) if weights is None else weights

    @property
    def squared_weights(self) -> NDArray[np.float64]:
        """Sum of squared weights per (cell, label)."""
        squared = self.columns.squared_weights
        return self.counts.astype(np.float64) if squared is None else squared

    @property
    def weighted_offsets(self) -> NDArray[np.float64]:
        """Sum of weight times offset per (cell, label), in units of 2**-36."""
        offsets = self.columns.weighted_offsets
        return self.offsets.astype(np.float64) if offsets is None else offsets

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.columns.rows

    @property
    def total_weight(self) -> float:
        """Sum of the rows' weights."""
        return float(self.weights.sum())

    @property
    def offset_bits(self) -> int:
        """Bits of a fixed-point position that lie inside a cell."""
        return bits_of_offsets(self.nodes)

    # -- combining -----------------------------------------------------------------------------

    def update(self, y_true: Any, y_prob: Any, **options: Unpack[InputOptions]) -> None:
        """Add rows in place; a batch may be empty. Several threads may update one sketch.

        With `on_invalid="drop"`, a batch of which no row is valid is counted and adds none.

        Examples
        --------
        >>> day = Sketch.empty()
        >>> for y, p in ([0, 1], [0.2, 0.7]), ([1], [None]), ([], []):
        ...     day.update(y, p, on_invalid="drop")
        >>> day
        <Sketch of 2 rows, 1 events, in 2 of 65536 cells, scale probability, 1 rows dropped>
        """
        if _is_empty(y_true) and _is_empty(y_prob):
            return
        try:
            more = Sketch.from_arrays(y_true, y_prob, nodes=self.nodes, scale=self.scale, **options)
        except TooFewRows as refusal:
            if not refusal.dropped:
                raise
            more = Sketch(
                Columns.empty(), nodes=self.nodes, scale=self.scale, dropped=refusal.dropped
            )
        with self._lock:
            merged = self + more
            self._state = merged._state

    def __add__(self, other: Sketch) -> Sketch:
        if not isinstance(other, Sketch):
            return NotImplemented
        self.require_same_grid(other)
        parts = (self.columns, other.columns)
        columns = Columns.total(parts, offset_bits=self.offset_bits)
        dropped = Counter(self.dropped) + Counter(other.dropped)
        return Sketch(columns, nodes=self.nodes, scale=self.scale, dropped=dropped)

    def __radd__(self, other: object) -> Sketch:
        if other == 0 and isinstance(other, int):  # the start value of sum()
            return self._copy()  # an update of the sum must not reach its only part
        return NotImplemented

    def _copy(self) -> Sketch:
        return Sketch(self.columns, nodes=self.nodes, scale=self.scale, dropped=self.dropped)

    def rebin(self, nodes: int) -> Sketch:
        """The sketch of the same rows on a coarser grid; for integer sums, to the bit."""
        shift = self.nodes.bit_length() - require_nodes(nodes).bit_length()
        if shift < 0:
            raise InputError(
                "must be at most {own}, the sketch's own",
                argument="nodes",
                seen=nodes,
                cure="A finer grid needs the rows: build it with {build}.",
                own=self.nodes,
                build=Code(f"Sketch.from_arrays(..., nodes={nodes})"),
            )
        columns = self.columns.coarsened(shift, self.offset_bits)
        return Sketch(columns, nodes=nodes, scale=self.scale, dropped=self.dropped)

    def reweight(self, *, negative: float = 1.0, positive: float = 1.0) -> Sketch:
        """The sketch with each outcome's weight multiplied: undoes down-sampling.

        When only one in k rows without the event was kept, `reweight(negative=k)` gives the value for
        the population from which they were drawn.

        Examples
        --------
        >>> kept = Sketch.from_arrays([0, 1], [0.01, 0.02])
        >>> kept.reweight(negative=100).total_weight
        101.0
        """
        for name, factor in (("negative", negative), ("positive", positive)):
            number = isinstance(factor, int | float | np.integer | np.floating)
            if not (number and 1e-30 <= float(factor) <= 1e30):
                raise InputError(
                    "must lie between 1e-30 and 1e+30",
                    argument=name,
                    seen=factor,
                    cure="Pass 8 where one row in 8 was kept.",
                )
        columns = self.columns.with_weights((negative, positive))
        return Sketch(columns, nodes=self.nodes, scale=self.scale, dropped=self.dropped)

    def require_same_grid(self, other: Sketch) -> None:
        """Refuse a sketch that cannot be added to this one, and say why."""
        if self.scale != other.scale:
            raise MergeError(
                "sketches add only on one scale",
                seen=self.scale.name,
                saying="these are on {} and {other}",
                cure="Build both with the same {option}.",
                other=repr(other.scale.name),
                option=Option("scale", ...),
            )
        if self.nodes != other.nodes:
            coarser = min(self.nodes, other.nodes)
            raise MergeError(
                "sketches add only on one grid",
                seen=self.nodes,
                saying="these have {} and {other} nodes",
                cure="Coarsen the finer one with {rebin}.",
                other=other.nodes,
                rebin=Code(f".rebin({coarser})"),
            )

    # -- Python's manners ----------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        return (self.nodes, self.scale, self.dropped) == (
            other.nodes,
            other.scale,
            other.dropped,
        ) and self.columns.equals(other.columns)

    def __repr__(self) -> str:
        rows = f"{self.n} rows" + (" with weights" if self.weighted else "")
        dropped = sum(self.dropped.values())
        return (
            f"<Sketch of {rows}, {int(self.counts[:, 1].sum())} events, in {self.cells.size} of "
            f"{self.nodes} cells, scale {self.scale.name}"
            + (f", {dropped} rows dropped>" if dropped else ">")
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.columns, self.nodes, self.scale, dict(self.dropped))


def _rebuild(columns: Columns, nodes: int, scale: Scale, dropped: dict[str, int]) -> Sketch:
    return Sketch(columns, nodes=nodes, scale=scale, dropped=dropped)


def _is_empty(values: Any) -> bool:
    return hasattr(values, "__len__") and len(values) == 0


def as_sketch(
    first: Any,
    y_prob: Any = None,
    *,
    nodes: int = DEFAULT_NODES,
    scale: str | Scale | None = None,
    **options: Unpack[InputOptions],
) -> Sketch:
    """A Sketch as it is, or the sketch of `(y_true, y_prob)`.

    For functions that take either. With a Sketch, everything that describes rows is refused: it has
    been settled when the sketch was made.
    """
    if not isinstance(first, Sketch):
        chosen = PROBABILITY if scale is None else scale
        return Sketch.from_arrays(first, y_prob, nodes=nodes, scale=chosen, **options)
    require_alone(first, y_prob, options)
    if scale is not None and as_scale(scale) != first.scale:
        raise InputError(
            "must be that of the sketch",
            argument="scale",
            seen=as_scale(scale).name,
            saying="it was made on {own}, and cannot be read on {}",
            cure="Build it again with {option}.",
            own=repr(first.scale.name),
            option=Option("scale", ...),
        )
    if first.n == 0 or (first.weighted and not first.total_weight > 0.0):
        raise InputError(
            "the sketch must not be empty",
            seen=first.n,
            saying="its {} rows have no weight" if first.n else "it has {} rows",
            cure="Add rows with {update} first.",
            update=Code("Sketch.update"),
        )
    return first


def require_alone(first: Any, y_prob: Any, options: InputOptions) -> None:
    """Refuse what describes rows beside something that holds them already."""
    rows = {"y_prob": y_prob, **options}
    beside = [name for name, value in rows.items() if value is not None]
    if beside:
        kind = type(first).__name__
        raise InputError(
            "cannot be passed beside {article} {kind}, which holds predictions, outcomes and weights "
            "already",
            argument=beside[0],
            cure="Leave out {options}.",
            article="an" if kind[0] in "AEIOU" else "a",
            kind=kind,
            options=tuple(map(Option, beside)),
        )


FEWEST_ROWS = 50


class HardLabelWarning(CalibrantWarning):
    """All predictions are 0 or 1, which no model is as sure of as that says."""


def are_hard_labels(sketch: Sketch) -> bool:
    """Whether all predictions are exactly 0 or 1, some of each, and there are enough of them to wonder.

    Examples
    --------
    >>> are_hard_labels(Sketch.from_arrays([0, 1] * 30, [0, 1] * 30))
    True
    >>> are_hard_labels(Sketch.from_arrays([0, 1] * 30, [0, 0.9] * 30))
    False
    """
    used = sketch.cells[over_outcomes(sketch.counts) > 0]
    if sketch.n < FEWEST_ROWS or len(used) != 2:
        return False
    ends = Sketch.from_arrays([0, 1], [0.0, 1.0], scale=sketch.scale, nodes=sketch.nodes)
    plain = sketch.scale == PROBABILITY
    return np.array_equal(used, ends.cells) and not (plain and sketch.offsets.any())


def warn_of_hard_labels(sketches: Iterable[Sketch], *, stacklevel: int) -> None:
    """Warn where every prediction of every sketch is 0 or 1."""
    if all(map(are_hard_labels, sketches)):
        warnings.warn(
            HardLabelWarning(
                "all predictions are 0 or 1: these are hard labels, not probabilities",
                cure="Pass the probabilities that the labels were made from.",
            ),
            stacklevel=stacklevel + 1,
        )
