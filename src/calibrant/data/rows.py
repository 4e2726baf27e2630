"""Predictions and outcomes, checked. Every rule on a value lives here.

Values are converted and checked block by block, so that a large input is never copied whole. The
compiled loops check while they read; when one of them stops at a row, `Rows.refuse` explains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from calibrant._locks import cached_property
from calibrant.data.arrays import is_missing
from calibrant.data.dropped import Dropped
from calibrant.data.input_forms import (
    Form,
    as_probabilities,
)
from calibrant.data.row_refusals import is_swapped, refusal
from calibrant.errors import InputError, Option, TooFewRows

__all__ = ["ABSTAINED", "LEFT_OUT", "REASONS", "Rows"]

Floats = NDArray[np.float64]

REASONS = (
    "missing prediction",
    "prediction out of range",
    "missing label",
    "invalid label",
    "missing weight",
    "invalid weight",
)
"""Why a row can be refused; a row that breaks several rules counts under the first."""
ABSTAINED = "abstained"
LEFT_OUT = (*REASONS, ABSTAINED)
"""Why a row can be missing from a sketch: it broke a rule, or the model declined to answer."""

BLOCK_ROWS = 1 << 17
LARGEST_WEIGHT = 1e100
LEAST_TOTAL_WEIGHT = 1e-100
"""Between these, no sum of weights, of their squares or of weighted offsets leaves the floats."""
_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
_BYTES = frozenset(map(np.dtype, ("bool", "int8")))
_NATIVE_LABELS = _BYTES | frozenset(map(np.dtype, ("uint8", "int64", "float64")))


@dataclass(frozen=True, eq=False)
class Rows:
    """Predictions, outcomes and weights of equal length, as the user gave them.

    Build one with `as_rows`. `p`, `y` and `weight` convert and check everything at once; `blocks`
    converts a piece at a time and leaves checking to the loop that reads it. Where rows were dropped,
    `kept` says which of the rows given are left.

    Examples
    --------
    >>> from calibrant.data.as_rows import as_rows
    >>> pairs = as_rows([0, 1], [0.2, 0.7])
    >>> pairs.p.tolist(), pairs.y.tolist()
    ([0.2, 0.7], [0.0, 1.0])
    """

    raw_prob: NDArray[Any]
    raw_label: NDArray[Any]
    raw_weight: NDArray[Any] | None = None
    form: Form = "probability"
    pos_label: Any = None
    soft: bool = False
    dropped: Mapping[str, int] = Dropped()
    kept: NDArray[np.int64] | None = None

    @cached_property
    def n(self) -> int:
        """Number of rows."""
        return int(self.raw_prob.size)

    @property
    def fractional(self) -> bool:
        """Whether rows can count for other than one whole outcome (weights or soft labels)."""
        return self.soft or self.raw_weight is not None

    @cached_property
    def needs_no_conversion(self) -> bool:
        """Whether the compiled loops can read the columns as they are."""
        p, y, weight = self.raw_prob, self.raw_label, self.raw_weight
        return (
            self.form == "probability"
            and self.pos_label is None
            and p.dtype in _FLOATS
            and y.dtype in _NATIVE_LABELS
            and p.flags.c_contiguous
            and y.flags.c_contiguous
            and (weight is None or (weight.dtype == np.float64 and weight.flags.c_contiguous))
        )

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights; the number of rows where there are none."""
        return float(self.n) if self.weight is None else float(self.weight.sum())

    @cached_property
    def p(self) -> Floats:
        """Predicted probabilities, checked."""
        self.require_valid()
        return self.probabilities(slice(None)).astype(np.float64, copy=False)

    @cached_property
    def y(self) -> Floats:
        """Outcomes in [0, 1], checked."""
        self.require_valid()
        return self._outcomes(slice(None)).astype(np.float64, copy=False)

    @cached_property
    def weight(self) -> Floats | None:
        """Weights, checked, or None where every row counts the same."""
        self.require_valid()
        return None if self.raw_weight is None else self._weights(slice(None))

    def __iter__(self) -> Iterator[Floats]:
        """Unpacks into y_true, y_prob."""
        if self.raw_weight is not None:
            raise InputError(
                "would be lost, as Rows are unpacked into outcomes and predictions alone",
                argument="sample_weight",
                cure="Pass the Rows on as they are.",
            )
        return iter((self.y, self.p))

    def __repr__(self) -> str:
        dropped = sum(self.dropped.values())
        return (
            f"<Rows of {self.n} rows"
            + (" with weights" if self.raw_weight is not None else "")
            + (f", {dropped} rows dropped>" if dropped else ">")
        )

    @property
    def base_rate(self) -> float:
        """Share of the weight that has the event."""
        return float(np.average(self.y, weights=self.weight))

    def blocks(
        self, rows: range | None = None
    ) -> Iterator[tuple[int, NDArray[Any], NDArray[Any], Floats | None]]:
        """Contiguous (first row, p, y, weight) of these rows, converted but not yet checked.

        Columns that need no conversion come whole, as views; a weight of None means 1 for every row.
        """
        rows = range(self.n) if rows is None else rows
        if self.needs_no_conversion and rows:
            p, y, weight = self.raw_prob, self.raw_label, self.raw_weight
            y = y.view(np.uint8) if y.dtype in _BYTES else y
            if len(rows) < self.n:
                piece = slice(rows.start, rows.stop)
                p, y, weight = p[piece], y[piece], None if weight is None else weight[piece]
            yield rows.start, p, y, weight
            return
        for start in rows[::BLOCK_ROWS]:
            piece = slice(start, min(start + BLOCK_ROWS, rows.stop))
            weight = None if self.raw_weight is None else self._weights(piece)
            yield start, self.probabilities(piece), self._outcomes(piece), weight

    def select(self, kept: NDArray[Any]) -> Rows:
        """The rows at these indices, or where this mask is true."""
        return replace(
            self,
            raw_prob=self.raw_prob[kept],
            raw_label=self.raw_label[kept],
            raw_weight=None if self.raw_weight is None else self.raw_weight[kept],
            kept=None if self.kept is None else self.kept[kept],
        )

    def refuse(self, row: int) -> NoReturn:
        """Raise the InputError that says which rule this row breaks, and the cure."""
        reason = REASONS[int(self.reason_codes(slice(row, row + 1))[0])]
        raise refusal(self, row, reason)

    def reason_codes(self, rows: slice) -> NDArray[np.int8]:
        """Index into REASONS of the first rule that each row breaks, or -1."""
        prob, label = self.raw_prob[rows], self.raw_label[rows]
        with np.errstate(invalid="ignore"):
            p, y = self.probabilities(rows), self._outcomes(rows)
            broken = [
                is_missing(prob),
                ~((p >= 0) & (p <= 1)),
                is_missing(label),
                ~((y >= 0) & (y <= 1)) if self.soft else ~((y == 0) | (y == 1)),
            ]
            if self.raw_weight is not None:
                weight = self._weights(rows)
                broken += [np.isnan(weight), ~((weight >= 0) & (weight <= LARGEST_WEIGHT))]
        codes = np.full(prob.shape, -1, dtype=np.int8)
        for code in reversed(range(len(broken))):
            codes[broken[code]] = code
        return codes

    def without_invalid(self) -> Rows:
        """The rows that break no rule; the others are counted in `dropped`."""
        pieces = [
            self.reason_codes(slice(start, start + BLOCK_ROWS))
            for start in range(0, self.n, BLOCK_ROWS)
        ]
        codes = np.concatenate(pieces)
        self._require_two_classes()
        tally = np.bincount(codes[codes >= 0], minlength=len(REASONS))
        here = {reason: int(k) for reason, k in zip(REASONS, tally, strict=True) if k}
        if "invalid label" in here and is_swapped(self):
            self.refuse(int(np.argmax(codes == REASONS.index("invalid label"))))
        if sum(here.values()) == self.n:
            raise TooFewRows(
                "no valid rows are left: all {rows} were dropped ({reasons})",
                dropped=here,
                seen=self.n,
                saying="",
                cure="Leave out {drop} to see what is wrong with the first.",
                rows=self.n,
                reasons=here,
                drop=Option("on_invalid", "drop"),
            )
        if not here:
            return self
        counted = replace(
            self,
            dropped=Dropped(Counter(self.dropped) + Counter(here)),
            kept=np.arange(self.n) if self.kept is None else self.kept,
        )
        return counted.select(codes < 0)

    def _require_two_classes(self) -> None:
        """Which of three classes is the other one would depend on the order of the rows."""
        if self.pos_label is None:
            return
        third = (self._outcomes(slice(None)) > 1) & ~is_missing(self.raw_label)
        if third.any():
            raise refusal(self, int(np.argmax(third)), "invalid label")

    def require_valid(self) -> None:
        """Raise the InputError of the first row that breaks a rule, if there is one."""
        if self.__dict__.get("_checked"):
            return
        for start in range(0, self.n, BLOCK_ROWS):
            invalid = np.flatnonzero(self.reason_codes(slice(start, start + BLOCK_ROWS)) >= 0)
            if invalid.size:
                self.refuse(start + int(invalid[0]))
        if self.raw_weight is not None and self.raw_weight.sum(dtype=float) < LEAST_TOTAL_WEIGHT:
            self.refuse_zero_weights()
        self.mark_valid()

    def mark_valid(self) -> None:
        """Remember that a loop has checked every row, so that none is checked twice."""
        self.__dict__["_checked"] = True

    def refuse_zero_weights(self) -> NoReturn:
        """Raise the InputError for weights that leave nothing to measure."""
        raise InputError(
            "must not be zero everywhere",
            argument="sample_weight",
            seen=float(self._weights(slice(None)).sum()),
            saying="the {n} weights add up to {seen}",
            n=self.n,
            cure="Leave it out to give every row weight 1.",
        )

    def probabilities(self, rows: slice) -> NDArray[Any]:
        """Predictions as probabilities, converted but not checked."""
        prob = self.raw_prob[rows]
        if self.form == "probability" and prob.dtype in _FLOATS:
            return np.ascontiguousarray(prob)
        return as_probabilities(_as_floats(prob), self.form)

    def _outcomes(self, rows: slice) -> NDArray[Any]:
        label = self.raw_label[rows]
        if self.pos_label is not None:
            codes = np.full(label.shape, 255, dtype=np.uint8)
            codes[label == self.pos_label] = 1
            if self._other_label is not None:
                codes[label == self._other_label] = 0
            return codes
        if label.dtype in _NATIVE_LABELS:
            label = np.ascontiguousarray(label)
            return label.view(np.uint8) if label.dtype in _BYTES else label
        return _as_floats(label)

    def _weights(self, rows: slice) -> Floats:
        assert self.raw_weight is not None
        return _as_floats(self.raw_weight[rows])

    @cached_property
    def _other_label(self) -> Any:
        """The one label that is not `pos_label`: the first one seen."""
        other = np.flatnonzero((self.raw_label != self.pos_label) & ~is_missing(self.raw_label))
        return self.raw_label[other[0]] if other.size else None


def _as_floats(values: NDArray[Any]) -> Floats:
    """Numbers as contiguous float64; what is not a number becomes NaN."""
    if values.dtype.kind in "biuf":
        return np.ascontiguousarray(values, dtype=np.float64)
    numbers = (v if isinstance(v, int | float) and abs(v) < 1e300 else np.nan for v in values)
    return np.fromiter(numbers, dtype=np.float64, count=values.size)
