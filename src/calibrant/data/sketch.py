"""The sketch: what one pass over the data leaves, and all that anything else needs."""

from __future__ import annotations

import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_number
from calibrant.data.arrays import numbers, require_each, same_length
from calibrant.data.cell_sums import (
    DEFAULT_NODES,
    FRACTION_BITS,
    Sums,
    added,
    bits_of_offsets,
    coarsened,
    no_sums,
    over_outcomes,
    require_nodes,
    sums_of_long,
    with_weights,
)
from calibrant.data.fill import fill
from calibrant.data.rows import (
    LEAST_TOTAL_WEIGHT,
    InputOptions,
    Rows,
    as_rows,
    require_alone,
)
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.errors import CalibrantWarning, InputError, MergeError, TooFewRows, show_value

LARGEST_COUNT = 1 << 53
"""Larger whole numbers are no floats."""
FEWEST_HARD_LABELS = 50
"""Fewer rows may be 0 and 1 because nothing else was asked, as in an example."""


UPDATES = threading.RLock()
"""Lock of whatever grows in place; what it guards is replaced in one assignment."""
if hasattr(os, "register_at_fork"):  # a child would wait for ever on what another thread holds
    os.register_at_fork(
        before=UPDATES.acquire, after_in_parent=UPDATES.release, after_in_child=UPDATES.release
    )


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
    by: tuple[str, ...] = ()
    """Names of the columns that group sketches: none."""

    def __init__(
        self,
        sums: Sums,
        *,
        nodes: int = DEFAULT_NODES,
        scale: Scale = PROBABILITY,
        dropped: Mapping[str, int] | None = None,
    ) -> None:
        for column in sums:
            column.flags.writeable = False
        self.sums, self.nodes, self.scale = sums, require_nodes(nodes), scale
        self.cells, self.counts, self.offsets = sums[:3]
        self.weighted = len(sums) > 3
        self.dropped: Mapping[str, int] = dict(dropped or {})
        ends = self.cells[:1].tolist() + self.cells[-1:].tolist()  # the compiled loops write there
        if any(not 0 <= cell <= nodes for cell in ends):
            message = (
                f"`cells` must lie between 0 and {nodes}; these go from {ends[0]} to {ends[1]}."
            )
            hint = "Pass the `nodes` that the cells were made with."
            raise InputError(message, hint=hint)

    def __reduce__(self) -> tuple[Any, ...]:
        """Through the constructor, which makes the arrays read-only again."""
        grid: dict[str, Any] = {"nodes": self.nodes, "scale": self.scale}
        return partial(Sketch, **grid, dropped=self.dropped), (self.sums,)

    # -- building ------------------------------------------------------------------------------

    @classmethod
    def empty(cls, *, nodes: int = DEFAULT_NODES, scale: str | Scale = PROBABILITY) -> Sketch:
        """Sketch of no rows, to be added to or updated."""
        return cls(no_sums(), nodes=nodes, scale=as_scale(scale))

    @classmethod
    def from_rows(
        cls, rows: Rows, *, nodes: int = DEFAULT_NODES, scale: str | Scale = PROBABILITY
    ) -> Sketch:
        """Sketch of checked or unchecked rows: one pass, on all cores when there are many."""
        if not isinstance(rows, Rows):
            message = f"`rows` must be Rows; got {type(rows).__name__}."
            hint = "Of outcomes and predictions use `Sketch.from_arrays(y_true, y_prob)`."
            raise InputError(message, hint=hint)
        scale = as_scale(
            scale,
            base_rate=rows.base_rate if isinstance(scale, str) and scale == "relative" else None,
        )
        sums = fill(rows, require_nodes(nodes), scale)
        return cls(sums, nodes=nodes, scale=scale, dropped=rows.dropped)

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
        """Sketch of outcomes and predictions; see `calibrant.data.InputOptions` for the keywords."""
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
        """Sketch of a table of predictions: how often each was made, and how often the event came.

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
        scale, bits = as_scale(scale), bits_of_offsets(require_nodes(nodes))
        trials, successes, at = numbers(n, "n"), numbers(events, "events"), numbers(p, "p")
        same_length(n=trials, events=successes, p=at)
        for name, column in (("n", trials), ("events", successes)):
            whole = (column == np.round(column)) & (column >= 0) & (column <= LARGEST_COUNT)
            require_each(name, column, whole, f"hold whole numbers between 0 and {LARGEST_COUNT}")
        require_each("p", at, (at >= 0) & (at <= 1), "lie in [0, 1]")
        require_each("events", successes, successes <= trials, "not exceed `n`")
        if not trials.any():
            message = "`n` must not be zero everywhere; the table has 0 rows."
            raise InputError(message)
        fixed = np.floor(scale.locate(at) * 2.0**FRACTION_BITS).astype(np.int64)
        counts = np.concatenate([trials - successes, successes]).astype(np.int64)
        offsets = counts * np.tile(fixed & ((1 << bits) - 1), 2)
        labels = np.repeat(np.array([0, 1]), trials.size)
        used = counts > 0
        columns = (values[used] for values in (np.tile(fixed >> bits, 2), labels, counts, offsets))
        return cls(sums_of_long(*columns, offset_bits=bits), nodes=nodes, scale=scale)

    # -- reading -------------------------------------------------------------------------------

    @property
    def weights(self) -> NDArray[np.float64]:
        """Sum of weights per (cell, label)."""
        return self.sums[3] if self.weighted else self.counts.astype(np.float64)

    @property
    def squared_weights(self) -> NDArray[np.float64]:
        """Sum of squared weights per (cell, label)."""
        return self.sums[4] if self.weighted else self.counts.astype(np.float64)

    @property
    def weighted_offsets(self) -> NDArray[np.float64]:
        """Sum of weight times offset per (cell, label), in units of 2**-36."""
        return self.sums[5] if self.weighted else self.offsets.astype(np.float64)

    @property
    def groups(self) -> dict[tuple[Any, ...], Sketch]:
        """Sketch of each group by its values, as of `Sketches`: this one alone."""
        return {(): self}

    def total(self) -> Sketch:
        """Sketch of all groups together: this one."""
        return self

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

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
        except TooFewRows as error:
            if not error.dropped:
                raise
            more = self._with(no_sums(), error.dropped)
        with UPDATES:
            vars(self).update(vars(self + more))

    def __add__(self, other: Sketch) -> Sketch:
        if not isinstance(other, Sketch):
            return NotImplemented
        self._require_same_grid(other)
        sums = added((self.sums, other.sums), offset_bits=self.offset_bits)
        return self._with(sums, Counter(self.dropped) + Counter(other.dropped))

    def __radd__(self, other: object) -> Sketch:
        if other == 0 and isinstance(other, int):  # the start value of sum()
            return self._with(self.sums, self.dropped)  # an update must not reach its only part
        return NotImplemented

    def _with(self, sums: Sums, dropped: Mapping[str, int]) -> Sketch:
        return Sketch(sums, nodes=self.nodes, scale=self.scale, dropped=dropped)

    def rebin(self, nodes: int) -> Sketch:
        """Sketch of the same rows on a coarser grid; for integer sums, to the bit."""
        shift = self.nodes.bit_length() - require_nodes(nodes).bit_length()
        if shift < 0:
            message = f"`nodes` must be at most {self.nodes}, the sketch's own; got {nodes}."
            hint = f"A finer grid needs the rows: build it with `Sketch.from_arrays(..., nodes={nodes})`."
            raise InputError(message, hint=hint)
        sums = coarsened(self.sums, shift, self.offset_bits)
        return Sketch(sums, nodes=nodes, scale=self.scale, dropped=self.dropped)

    def reweight(self, *, negative: float = 1.0, positive: float = 1.0) -> Sketch:
        """Sketch with each outcome's weight multiplied: undoes down-sampling.

        When only one in k rows without the event was kept, `reweight(negative=k)` gives the value for
        the population from which they were drawn.

        Examples
        --------
        >>> kept = Sketch.from_arrays([0, 1], [0.01, 0.02])
        >>> kept.reweight(negative=100).total_weight
        101.0
        """
        require_number("negative", negative, 0.0, 1e30)
        require_number("positive", positive, 0.0, 1e30)
        return self._with(with_weights(self.sums, (negative, positive)), self.dropped)

    def _require_same_grid(self, other: Sketch) -> None:
        """Refuse a sketch that cannot be added to this one."""
        if self.scale != other.scale:
            message = f"Sketches add only on one scale; these are on {self.scale.name!r} and "
            hint = "Build both with the same `scale=`."
            raise MergeError(f"{message}{other.scale.name!r}.", hint=hint)
        if self.nodes != other.nodes:
            message = (
                f"Sketches add only on one grid; these have {self.nodes} and {other.nodes} nodes."
            )
            hint = f"Coarsen the finer one with `.rebin({min(self.nodes, other.nodes)})`."
            raise MergeError(message, hint=hint)

    # -- Python's manners ----------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sketch):
            return NotImplemented
        same = (self.nodes, self.scale, self.dropped, self.weighted) == (
            other.nodes,
            other.scale,
            other.dropped,
            other.weighted,
        )
        return same and all(map(np.array_equal, self.sums, other.sums))

    def __repr__(self) -> str:
        rows = f"{self.n} rows" + (" with weights" if self.weighted else "")
        dropped = sum(self.dropped.values())
        return (
            f"<Sketch of {rows}, {int(self.counts[:, 1].sum())} events, in {self.cells.size} of "
            f"{self.nodes} cells, scale {self.scale.name}"
            + (f", {dropped} rows dropped>" if dropped else ">")
        )


def _is_empty(values: Any) -> bool:
    try:
        return len(values) == 0
    except Exception:  # of any object
        return False


def as_sketch(
    first: Any,
    y_prob: Any = None,
    *,
    nodes: int = DEFAULT_NODES,
    scale: str | Scale | None = None,
    **options: Unpack[InputOptions],
) -> Sketch:
    """Sketch as it is, or the sketch of `(y_true, y_prob)`: for functions that take either.

    With a Sketch, everything that describes rows is refused: it was settled when the sketch was made.
    """
    if not isinstance(first, Sketch):
        chosen = PROBABILITY if scale is None else scale
        return Sketch.from_arrays(first, y_prob, nodes=nodes, scale=chosen, **options)
    require_alone(first, y_prob, options)
    if scale is not None and as_scale(scale) != first.scale:
        own, wanted = first.scale.name, as_scale(scale).name
        message = f"`scale` must be that of the sketch, which is on {own!r} and not on {wanted!r}."
        raise InputError(message, hint="Build it again with `scale=`.")
    if first.n == 0 or (first.weighted and not first.total_weight >= LEAST_TOTAL_WEIGHT):
        weights = f", whose weights add up to {show_value(first.total_weight)}" if first.n else ""
        message = f"The sketch must not be empty; it has {first.n} rows{weights}."
        raise InputError(message, hint="Add rows with `Sketch.update` first.")
    return first


def as_sample(first: Any, y_prob: Any = None, **options: Unpack[InputOptions]) -> Rows | Sketch:
    """Rows of `(y_true, y_prob)`, or a Sketch as it is: for functions that take either."""
    read: Any = as_sketch if isinstance(first, Sketch) else as_rows
    sample: Rows | Sketch = read(first, y_prob, **options)
    return sample


# -- hard labels -------------------------------------------------------------------------------


def are_hard_labels(sketch: Sketch) -> bool:
    """True where all predictions are exactly 0 or 1, some of each, and there are enough of them to tell.

    Examples
    --------
    >>> are_hard_labels(Sketch.from_arrays([0, 1] * 30, [0, 1] * 30))
    True
    >>> are_hard_labels(Sketch.from_arrays([0, 1] * 30, [0, 0.9] * 30))
    False
    """
    used = sketch.cells[over_outcomes(sketch.counts) > 0]
    if sketch.n < FEWEST_HARD_LABELS or len(used) != 2:
        return False
    ends = Sketch.from_arrays([0, 1], [0.0, 1.0], scale=sketch.scale, nodes=sketch.nodes)
    plain = sketch.scale == PROBABILITY
    return np.array_equal(used, ends.cells) and not (plain and sketch.offsets.any())


def warn_of_hard_labels(sketches: Iterable[Sketch], *, stacklevel: int) -> None:
    """Warn where every prediction of every sketch is 0 or 1."""
    if all(map(are_hard_labels, sketches)):
        message = (
            "All predictions are 0 or 1: these are hard labels. Pass the probabilities behind them."
        )
        warnings.warn(CalibrantWarning(message), stacklevel=stacklevel + 1)
