"""The sketch: what one pass over the data leaves, and all that anything else needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._locks import ForkSafeLock
from calibrant.data.as_rows import as_rows
from calibrant.data.cell_sums import DEFAULT_NODES, Columns, bits_of_offsets, require_nodes
from calibrant.data.counts import columns_of_counts
from calibrant.data.dropped import Dropped
from calibrant.data.fill import fill
from calibrant.data.input_forms import InputOptions
from calibrant.data.named_scales import as_scale
from calibrant.data.rows import Rows
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.errors import Code, InputError, MergeError, Option, TooFewRows, TypeName

__all__ = ["Sketch"]


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
    def from_pairs(
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
        return cls.from_pairs(as_rows(y_true, y_prob, **options), nodes=nodes, scale=scale)

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
        from calibrant.data.cell_checks import checked_dropped, checked_long_table

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
