"""Class probabilities or logits, checked, and the confidence of the most likely class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant.data.arrays import as_array, as_column, is_missing
from calibrant.data.class_names import as_class_names, class_indices, class_names
from calibrant.data.class_order import warn_of_other_order
from calibrant.data.dropped import Dropped
from calibrant.data.logits import refuse_probabilities
from calibrant.data.row_refusals import DROP, LOGITS, missing_value, refuse_text
from calibrant.data.rows import Rows
from calibrant.errors import Code, Cure, Function, InputError, Option, TooFewRows, TypeName, Where

__all__ = [
    "ClassProbabilities",
    "TopClass",
    "as_class_probabilities",
    "as_weights",
    "confidence",
    "sum_tolerance",
]

Floats = NDArray[np.float64]

ENTRIES_PER_BLOCK = 1 << 18
ENTRIES_PER_LARGE_BLOCK = 1 << 21
SUM_TOLERANCE = 1e-4
HALF_SUM_TOLERANCE = 1e-2
NEARLY_ONE = 0.1
REFUSED = ("missing prediction", "prediction out of range", "missing label", "invalid label")


@dataclass(frozen=True)
class TopClass:
    """The most likely class of each row, its probability, and whether it was right."""

    predicted: NDArray[np.int64]
    probability: Floats
    correct: NDArray[np.bool_]
    rows: NDArray[np.int64] | slice
    dropped: Dropped


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """A matrix with a row of probabilities (or logits) for each case, and each case's class.

    Attributes
    ----------
    raw : array[n, classes]
        As given; blocks are converted when they are read.
    labels : int64[n]
        Index of the true class; -1 where it is missing, -2 where it is no class.
    classes : list
        What the columns stand for.
    """

    raw: NDArray[Any]
    labels: NDArray[np.int64]
    classes: list[Any]
    from_logits: bool
    given_labels: NDArray[Any]
    on_invalid: Literal["raise", "drop"]
    tolerance: float = SUM_TOLERANCE

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.raw.shape[0])

    def blocks(self, entries: int = ENTRIES_PER_BLOCK) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Contiguous float32 or float64 probabilities, some rows at a time."""
        size = max(1, entries // self.raw.shape[1])
        for start in range(0, self.n, size):
            rows = slice(start, min(start + size, self.n))
            yield rows, self._probabilities(rows)

    def first(self, rows: int) -> NDArray[Any]:
        """The probabilities of so many rows, as they come."""
        return self._probabilities(slice(0, rows))

    def _probabilities(self, rows: slice | NDArray[np.int64]) -> NDArray[Any]:
        block = self.raw[rows]
        if block.dtype not in (np.float32, np.float64):
            block = block.astype(np.float64)
        block = np.ascontiguousarray(block)
        return _softmax(block) if self.from_logits else block

    def checked_blocks(
        self, entries: int = ENTRIES_PER_BLOCK
    ) -> Iterator[tuple[slice, NDArray[Any], NDArray[np.int64], Floats]]:
        """(rows, probabilities, most likely class, its probability); refuses the first bad row.

        With `on_invalid="drop"` bad rows come out with class -1.
        """
        for rows, block in self.blocks(entries):
            predicted, top = _largest(block)
            total = np.einsum("ij->i", block)
            valid = self._sound(top, total) & (self.labels[rows] >= 0)
            if not valid.all():
                if self.on_invalid == "raise":
                    row = int(np.flatnonzero(~valid)[0])
                    raise self.refusal(rows.start + row, block[row], float(total[row]))
                predicted[~valid] = -1
            yield rows, block, predicted, np.minimum(top, 1.0)

    def _sound(self, top: Floats, total: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether rows of this largest entry and this sum are probabilities."""
        with np.errstate(invalid="ignore"):
            sound: NDArray[np.bool_] = (top >= 0) & (np.abs(total - 1.0) <= self.tolerance)
        return sound

    def top(self) -> TopClass:
        """The most likely class of every row, in one pass."""
        predicted, probability = np.empty(self.n, np.int64), np.empty(self.n)
        for rows, _, block_predicted, top in self.checked_blocks():
            predicted[rows], probability[rows] = block_predicted, top
        correct = predicted == self.labels
        kept = predicted >= 0
        if kept.all():
            return TopClass(predicted, probability, correct, slice(None), Dropped())
        if not kept.any():
            raise TooFewRows(
                "no valid rows are left: all were dropped",
                self._reasons(np.arange(self.n)),
                seen=self.n,
                saying="there were {}",
                cure="Leave out {drop} to see what is wrong with the first.",
                drop=Option("on_invalid", "drop"),
            )
        dropped = self._reasons(np.flatnonzero(~kept))
        rows_kept = np.flatnonzero(kept)
        return TopClass(predicted[kept], probability[kept], correct[kept], rows_kept, dropped)

    def _reasons(self, rows: NDArray[np.int64]) -> Dropped:
        labels, block = self.labels[rows], self._probabilities(rows)
        missing = np.isnan(self.raw[rows].astype(np.float64)).any(axis=1)
        sound = self._sound(_largest(block)[1], np.einsum("ij->i", block))
        rules = (missing, ~sound, labels == -1, labels == -2)
        dropped: dict[str, int] = {}
        left = np.ones(rows.size, dtype=np.bool_)
        for reason, broken in zip(REFUSED, rules, strict=True):
            if np.any(left & broken):
                dropped[reason] = int(np.sum(left & broken))
            left &= ~broken
        return Dropped(dropped)

    def _from_one(self) -> list[str]:
        """The cure for classes that are counted from 1, where they seem to be."""
        given, many = self.given_labels, len(self.classes)
        if given.dtype.kind not in "iuf" or self.classes != list(range(many)):
            return []
        present = given[~is_missing(given)]
        return ["If classes count from 1, subtract 1."] if {1, many} == {
            float(present.min()), float(present.max())
        } else []  # fmt: skip

    def refusal(self, row: int, probs: NDArray[Any], total: float) -> InputError:
        """The error for a row that breaks a rule; of its probabilities and their sum."""
        where = Where(row=row)
        for argument, missing in (
            ("y_prob", np.isnan(self.raw[row].astype(np.float64)).any()),
            ("y_true", self.labels[row] == -1),
        ):
            if missing:
                return missing_value(argument, row)
        if self.labels[row] == -2:
            return InputError(
                "must hold one of {n} classes, {first} to {last}",
                argument="y_true",
                seen=self.given_labels[row],
                where=where,
                cure=[*self._from_one(), "Name the classes of the columns with {names}.", DROP],
                n=len(self.classes),
                first=repr(self.classes[0]),
                last=repr(self.classes[-1]),
                names=Option("classes", ...),
            )
        if self.from_logits:
            return InputError(
                "must hold logits that are finite or -inf",
                argument="y_prob",
                where=where,
                saying="{where} has +inf, or nothing but -inf",
                cure=DROP,
            )
        worst = float(probs[np.argmax(np.abs(probs - np.clip(probs, 0, 1)))])
        percent = self.raw.dtype.kind in "uif" and abs(total - 100.0) <= 1.0
        if not percent and not 0 <= worst <= 1:
            return InputError(
                "must lie in [0, 1]",
                argument="y_prob",
                seen=worst,
                where=where,
                cure=[LOGITS, DROP],
            )
        cures = [Cure("If they are one-vs-rest scores, assess each column on its own.")]
        rounding = Cure("If this is rounding, divide each row by its sum first.")
        cures.insert(0, rounding if abs(total - 1.0) < NEARLY_ONE else LOGITS)
        return InputError(
            "must hold probabilities that sum to 1 in each row",
            argument="y_prob",
            seen=total,
            where=where,
            saying="{where} sums to {}",
            cure=Cure("If these are percentages, divide by 100.") if percent else cures,
        )


def as_class_probabilities(
    y_true: Any,
    y_prob: Any,
    *,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> ClassProbabilities:
    """A matrix of class probabilities and the true classes, of any array library."""
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    matrix = _matrix(y_prob)
    given = _one_for_each_row(y_true, matrix)
    if classes is None and hasattr(y_prob, "columns"):
        classes = class_names(list(map(str, y_prob.columns)), set(given.tolist()))
    known = as_class_names(range(matrix.shape[1]) if classes is None else classes, matrix.shape[1])
    labels = class_indices(given, known, by_number=classes is None)
    tolerance = sum_tolerance(y_prob)
    if from_logits:
        refuse_probabilities(matrix, tolerance, "y_prob")
    return ClassProbabilities(matrix, labels, known, from_logits, given, on_invalid, tolerance)


def sum_tolerance(y_prob: Any) -> float:
    """How far from 1 the sum of a row may be: half precision is widened, but its rows sum no better."""
    types = [getattr(y_prob, "dtype", None), *getattr(y_prob, "dtypes", ())]
    half = any(str(one).endswith("float16") for one in types)
    return HALF_SUM_TOLERANCE if half else SUM_TOLERANCE


def _matrix(y_prob: Any) -> NDArray[Any]:
    """A row for each case, and a column for each class."""
    matrix = as_array(y_prob, "y_prob")
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        raise InputError(
            "must have a row for each case and a column for each class",
            argument="y_prob",
            seen=matrix.shape,
            saying="its shape is {}",
            cure="For the probability of one event, in one column, use {binary}.",
            binary=Function("smooth_ece"),
        )
    if matrix.shape[0] == 0:
        raise InputError(
            "must not be empty; it has no rows", argument="y_prob", cure="Pass at least one row."
        )
    if matrix.dtype.kind not in "biuf":
        raise InputError(
            "must hold numbers",
            argument="y_prob",
            seen=TypeName(matrix.dtype),
            saying="its type is {}",
            cure="Convert it first.",
        )
    return matrix


def _one_for_each_row(y_true: Any, matrix: NDArray[Any]) -> NDArray[Any]:
    """The class of each row, as it was given."""
    given = as_array(y_true, "y_true")
    if given.shape == matrix.shape:
        raise InputError(
            "must hold a class for each row",
            argument="y_true",
            seen=given.shape,
            saying="its shape is {}",
            cure="From columns of 0 and 1 make classes with {classes}.",
            classes=Code("numpy.argmax(y_true, axis=1)"),
        )
    given = as_column(given, "y_true")
    if given.size != matrix.shape[0]:
        raise InputError(
            "must have one entry for each row of {y_prob}",
            argument="y_true",
            seen=given.size,
            saying="it has {} for {rows} rows",
            cure="Pass both for the same rows.",
            y_prob=Option("y_prob"),
            rows=matrix.shape[0],
        )
    return given


def confidence(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Rows:
    """The paper's confidence calibration: the largest probability against "was it right?".

    Parameters
    ----------
    y_true : array[n]
        Class indices, or names where `classes` is given.
    y_prob : array[n, classes]
        Class probabilities; each row sums to 1 within 1e-4 (1e-2 in half precision). With
        `from_logits=True`, logits.
    sample_weight : array[n], optional
        Importance of each row.
    from_logits : bool
        Whether `y_prob` holds logits.
    classes : sequence, optional
        What the columns stand for, such as an estimator's `classes_`.
    on_invalid : {"raise", "drop"}
        What happens to a row that breaks a rule.

    Returns
    -------
    Rows
        To be passed on in place of (y_true, y_prob), or unpacked into them.

    Examples
    --------
    >>> import calibrant as cal
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> round(cal.smooth_ece(cal.confidence([0, 2], probs)), 6)
    0.18223
    """
    matrix = as_class_probabilities(
        y_true, y_prob, from_logits=from_logits, classes=classes, on_invalid=on_invalid
    )
    top = matrix.top()
    warn_of_other_order(matrix, stacklevel=3)
    weight = as_weights(sample_weight, matrix.n)
    weight = None if weight is None else weight[top.rows]
    kept = None if isinstance(top.rows, slice) else top.rows
    pairs = Rows(top.probability, top.correct, weight, dropped=top.dropped, kept=kept)
    return pairs.without_invalid() if on_invalid == "drop" else pairs


def as_weights(sample_weight: Any, n: int) -> NDArray[Any] | None:
    """Weights of the rows of a matrix: numbers, one for each, not yet checked."""
    if sample_weight is None:
        return None
    weight = as_column(sample_weight, "sample_weight")
    if weight.dtype.kind not in "biuf":
        refuse_text("sample_weight", weight)
    if weight.size != n:
        raise InputError(
            "must have one entry for each row",
            argument="sample_weight",
            seen=weight.size,
            saying="it has {} for {rows} rows",
            cure="Leave it out to give every row weight 1.",
            rows=n,
        )
    return weight


def _softmax(logits: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(invalid="ignore"):
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    softmax: NDArray[Any] = shifted / shifted.sum(axis=1, keepdims=True)
    return softmax


def _largest(block: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The first largest entry of each row; a negative entry or NaN instead, where there is one.

    Read as unsigned integers, floats of one sign keep their order, negative ones come out above all
    others and NaN above infinity: one search finds the largest and checks all the rest.
    """
    bits = block.view(np.uint32 if block.dtype == np.float32 else np.uint64)
    place = bits.argmax(axis=1)
    top = block[np.arange(len(block)), place]
    negative_zero = np.flatnonzero((top == 0) & np.signbit(top))
    if negative_zero.size:
        place[negative_zero], top[negative_zero] = _largest(block[negative_zero] + 0.0)
    return place, top
