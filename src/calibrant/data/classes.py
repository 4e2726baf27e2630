"""What columns of class probabilities stand for, and the column of each label."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant._format import common_length, common_start, distinct_parts, group_text
from calibrant.data._fill import fill_classes, fill_weights
from calibrant.data.arrays import as_array, as_column, is_missing
from calibrant.data.cell_sums import DEFAULT_NODES, Columns, require_nodes
from calibrant.data.rows import DROP, LOGITS, Dropped, Rows, missing_value, refuse_text
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import (
    CalibrantWarning,
    Code,
    Cure,
    Function,
    InputError,
    Option,
    TooFewRows,
    TypeName,
    Where,
    show_value,
)

__all__ = [
    "PROBABILITIES",
    "SMALLEST_LOGARITHM",
    "TRUTH",
    "ClassDistributions",
    "ClassProbabilities",
    "ColumnOrderWarning",
    "TopClass",
    "as_class_names",
    "as_class_probabilities",
    "as_weights",
    "class_distributions",
    "class_indices",
    "class_names",
    "classwise",
    "confidence",
    "finite_logits",
    "likelier_order",
    "refuse_probabilities",
    "sum_tolerance",
    "top_label",
    "warn_of_other_order",
]

TRUTH = {"true": True, "yes": True, "false": False, "no": False}
"""Words for truth values, in any case."""


def class_names(columns: Sequence[str], labels: set[Any]) -> tuple[Any, ...] | None:
    """What columns of class probabilities stand for: what tells their names apart; None where labels count.

    Words that all names begin or end with are taken off, as far as that makes the names labels. Labels that
    are numbers or truth values are looked up among names that are such, in whatever order these stand;
    where the names are none, or count from 0 in order, labels count the columns.

    Examples
    --------
    >>> class_names(["p_dog", "p_deer"], {"dog", "deer"}), class_names(["p0", "p1"], {0, 1})
    (('dog', 'deer'), None)
    >>> class_names(["p_dog_recalibrated", "p_deer_recalibrated"], {"dog", "deer"})
    ('dog', 'deer')
    >>> class_names(["p_2", "p_0", "p_1"], {0, 1, 2}), class_names(["p_True", "p_False"], {True})
    ((2, 0, 1), (True, False))
    """
    if all(isinstance(label, int | float | None) for label in labels):
        return _numbered(columns, {label for label in labels if not _is_missing(label)})
    shared = [k for k in range(min(map(len, columns)) + 1) if len({c[:k] for c in columns}) == 1]
    by_start = [
        tuple(name[start:] for name in columns)
        for start in (common_start(columns), *reversed(shared))
    ]
    apart = tuple(distinct_parts(columns))
    return next((names for names in (*by_start, apart) if labels <= {*names, None}), apart)


def _is_missing(label: Any) -> bool:
    return label is None or label != label


def _numbered(columns: Sequence[str], labels: set[Any]) -> tuple[Any, ...] | None:
    """The numbers or truth values that columns are named by; None where labels count the columns."""
    readings = [_numbers(columns, decimal) for decimal in (False, True)]
    named = [names for names in readings if any(not isinstance(name, str) for name in names)]
    fitting = next((names for names in named if labels <= set(names)), None)
    if fitting is None:
        out_of_place = [names for names in named if any(_elsewhere(names))]
        if not out_of_place:
            return None
        raise _not_among(labels, out_of_place[0])
    if not any(_elsewhere(fitting)):
        return None
    if labels and all(isinstance(label, bool) for label in labels):
        return tuple(bool(name) if name in (0, 1) else name for name in fitting)
    return fitting


def _elsewhere(names: Sequence[Any]) -> list[bool]:
    """Which names are numbers, and stand elsewhere than where counting from 0 puts them."""
    return [not isinstance(name, str) and float(name) != place for place, name in enumerate(names)]


def _numbers(columns: Sequence[str], decimal: bool) -> tuple[Any, ...]:
    """Names without what all begin or end with, as numbers where they are; a number is never cut in two."""
    cut = r"\d+\.?\d*$" if decimal else r"\d+$"
    start = len(re.sub(cut, "", columns[0][: common_length(columns)]))
    parts = [name[start:] for name in columns]
    end = common_start([part[::-1] for part in parts])
    return tuple(_number(part[: len(part) - end]) for part in parts)


def _number(text: str) -> Any:
    """The number or truth value that a text stands for; the text where it stands for none."""
    if text.lower() in TRUTH:
        return int(TRUTH[text.lower()])
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    return int(float(text)) if float(text).is_integer() else float(text)


def _not_among(labels: set[Any], names: Sequence[Any]) -> InputError:
    """The error for labels that are not among the numbers that name the columns."""
    return InputError(
        "must hold the numbers that the columns of {y_prob} are named by",
        argument="y_true",
        seen=min(labels - set(names)),
        saying="{} is not among {names}",
        names=", ".join(map(str, names[:5])) + (", ..." if len(names) > 5 else ""),
        cure="Say what label each column stands for, in the order of the columns, with {classes}.",
        y_prob=Option("y_prob"),
        classes=Option("classes", ...),
    )


def as_class_names(classes: Sequence[Any], columns: int | None) -> list[Any]:
    """What each column stands for, checked; any number of them where that of the columns is not known."""
    try:
        known = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
        distinct = len(set(known))
    except TypeError as error:
        raise InputError(
            "must be a list of names, one for each column",
            argument="classes",
            seen=classes,
            cure="Names must be hashable, such as text or numbers.",
        ) from error
    columns = len(known) if columns is None else columns
    if not len(known) == distinct == columns:
        raise InputError(
            "must name each column once",
            argument="classes",
            seen=distinct,
            saying="there are {} different names for {columns} columns",
            cure="Give one name for each column of {y_prob}, in their order.",
            columns=columns,
            y_prob=Option("y_prob"),
        )
    return known


def class_indices(given: NDArray[Any], known: list[Any], *, by_number: bool) -> NDArray[np.int64]:
    """The column of each label; -1 where it is missing, -2 where it is none of them."""
    missing = is_missing(given)
    labels = np.full(given.size, -2, dtype=np.int64)
    if by_number and given.dtype.kind in "biuf":
        with np.errstate(invalid="ignore"):
            valid = (given >= 0) & (given < len(known)) & (given == np.floor(given))
        labels[valid] = given[valid].astype(np.int64)
    elif not by_number:
        place = {value: index for index, value in enumerate(known)}
        values = (
            given.tolist()
        )  # the number 5 is of the class '5', which the command line knows as text
        found = {v: place.get(v, place.get(group_text(v), -2)) for v in set(values)}
        labels[:] = [found.get(value, -2) for value in values]
    labels[missing] = -1
    return labels


if TYPE_CHECKING:
    from calibrant.data.classes import ClassProbabilities


ROWS_LOOKED_AT, NUMBERS_LOOKED_AT = 5_000, 500_000
FEWEST_ROWS = 50
CLEARLY = 5.0
"""How many times the largest standard error that a sum of so many shares can have."""


class ColumnOrderWarning(CalibrantWarning):
    """The labels fit the columns of class probabilities far better in another order."""


def likelier_order(mass: NDArray[np.float64], rows: NDArray[np.int64]) -> dict[int, int]:
    """Which columns classes seem to have instead of their own; empty unless that is unmistakable.

    `mass` has for the rows of each class (down) the sum of each column (across), and `rows` their number.
    Of calibrated predictions no other order of the columns can be expected to have more.

    Examples
    --------
    >>> likelier_order(np.array([[5.0, 85.0], [90.0, 20.0]]), np.array([90, 110]))
    {0: 1, 1: 0}
    >>> likelier_order(np.array([[60.0, 30.0], [50.0, 60.0]]), np.array([90, 110]))
    {}
    """
    own = np.diagonal(mass)
    if np.all(own >= mass.max(axis=1)):
        return {}
    from scipy.optimize import linear_sum_assignment

    order = linear_sum_assignment(mass, maximize=True)[1]
    moved = np.flatnonzero((order != np.arange(len(order))) & (rows > 0))
    gain = float((mass[moved, order[moved]] - own[moved]).sum())
    many = int(rows[moved].sum())
    if many < FEWEST_ROWS or gain <= CLEARLY * np.sqrt(many):
        return {}
    return {int(k): int(order[k]) for k in moved if mass[k, order[k]] > own[k]}


def warn_of_other_order(matrix: ClassProbabilities, *, stacklevel: int) -> None:
    """Warn where the labels fit the columns far better in another order."""
    many = len(matrix.classes)
    labels, block = _valid_rows(matrix, max(NUMBERS_LOOKED_AT // many, FEWEST_ROWS))
    if labels.size < FEWEST_ROWS or _may_be_right(labels, block):
        return
    labels, block = _valid_rows(matrix, ROWS_LOOKED_AT)
    mass = np.zeros((many, many))
    np.add.at(mass, labels, block)
    order = likelier_order(mass, np.bincount(labels, minlength=many))
    if order:
        first = next(iter(order))
        warnings.warn(
            ColumnOrderWarning(
                "the columns of {y_prob} seem to stand in another order than their classes: rows of "
                "class {label} have more probability in the column of {other} than in their own",
                y_prob=Option("y_prob"),
                label=show_value(matrix.classes[first]),
                other=show_value(matrix.classes[order[first]]),
                cure="Check the order, or name the classes of the columns with {classes}.",
                classes=Option("classes", ...),
            ),
            stacklevel=stacklevel + 1,
        )


def _valid_rows(
    matrix: ClassProbabilities, rows: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Labels and class probabilities of the valid ones among the first so many rows."""
    known = np.flatnonzero(matrix.labels[:rows] >= 0)
    block = np.asarray(matrix.first(rows), dtype=np.float64)[known]
    with np.errstate(invalid="ignore"):
        sums = np.abs(block.sum(axis=1) - 1.0) <= matrix.tolerance
        valid = sums & (block.min(axis=1) >= 0.0)
    return matrix.labels[known][valid], block[valid]


def _may_be_right(labels: NDArray[np.int64], block: NDArray[np.float64]) -> bool:
    """Whether labels have as much probability as those of calibrated predictions, Σp², up to chance."""
    own = float(block[np.arange(labels.size), labels].sum())
    expected = float(np.einsum("ij,ij->", block, block))
    return bool(own >= expected - 0.5 * CLEARLY * np.sqrt(labels.size))


SMALLEST_LOGARITHM = float(np.log(np.finfo(np.float32).tiny))
"""Of a class probability: 0 counts as the smallest float32 that has all its digits."""
PROBABILITIES = Cure(
    "If they are probabilities, leave out {option}.", {"option": Option("from_logits", True)}
)


def refuse_probabilities(
    logits: NDArray[Any], tolerance: float, argument: str, cure: Cure = PROBABILITIES
) -> None:
    """Refuse a matrix whose every row lies in [0, 1] and sums to 1: nothing else looks like that.

    Examples
    --------
    >>> refuse_probabilities(np.array([[2.0, -1.0], [0.5, 0.5]]), 1e-4, "y_prob")
    >>> refuse_probabilities(np.array([[0.7, 0.3], [0.5, 0.5]]), 1e-4, "y_prob")
    Traceback (most recent call last):
    calibrant.errors.InputError: `y_prob` must hold logits, and every row lies in [0, 1] and sums to 1. If
    they are probabilities, leave out `from_logits=True`.
    """
    if len(logits) and _are_probabilities(logits[:1], tolerance):
        if not _are_probabilities(logits, tolerance):
            return
        raise InputError(
            "must hold logits, and every row lies in [0, 1] and sums to 1",
            argument=argument,
            cure=cure,
        )


def _are_probabilities(rows: NDArray[Any], tolerance: float) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.abs(rows.sum(axis=1, dtype=np.float64) - 1.0) <= tolerance
    return bool(sums.all() and rows.min() >= 0.0)


def finite_logits(logits: NDArray[Any], argument: str) -> NDArray[Any]:
    """The logits with a probability of 0, which -inf stands for, as one that has a logarithm.

    NaN, +inf and rows of nothing but -inf are refused.
    """
    if np.isfinite(logits).all():
        return logits
    masked = np.isneginf(logits)
    bad = ~(np.isfinite(logits) | masked) | masked.all(axis=1, keepdims=True)
    wrong = np.flatnonzero(bad.any(axis=1))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            "must hold logits that are finite or -inf, and not -inf alone",
            argument=argument,
            seen=logits[row][bad[row]][0],
            where=Where(row=row),
            cure="Leave such rows out first.",
        )
    top = logits.max(axis=1, keepdims=True)
    total = np.exp(logits - top).sum(axis=1, keepdims=True)
    return np.where(masked, top + np.log(total) + SMALLEST_LOGARITHM, logits)


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


@dataclass(frozen=True, eq=False)
class ClassDistributions:
    """Class probabilities, classes and weights of the rows that break no rule.

    Attributes
    ----------
    given : array[n, classes]
        The rows as they were: probabilities, or logits.
    probs : float64[n, classes]
        Each row sums to 1; of logits, their softmax.
    labels : int64[n]
        The column of the true class.
    weight : float64[n] or None
        Importance of each row.
    rows : int64[n]
        Where the rows stand among those that were given.
    classes : list
        What the columns stand for.
    dropped : Dropped
        How many rows were left out, by reason.
    """

    given: NDArray[Any]
    probs: Floats
    labels: NDArray[np.int64]
    weight: Floats | None
    rows: NDArray[np.int64]
    classes: list[Any]
    dropped: Dropped


def class_distributions(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> ClassDistributions:
    """The valid rows of class probabilities or logits; refuses the first that is not, or leaves all out.

    Examples
    --------
    >>> found = class_distributions([0, 1, None], [[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]], on_invalid="drop")
    >>> found.labels, dict(found.dropped)
    (array([0, 1]), {'missing label': 1})
    """
    matrix = as_class_probabilities(
        y_true, y_prob, from_logits=from_logits, classes=classes, on_invalid=on_invalid
    )
    top = matrix.top()
    weight = as_weights(sample_weight, matrix.n)
    rows = np.arange(matrix.n)[top.rows]
    pairs = Rows(
        top.probability,
        top.correct,
        None if weight is None else weight[rows],
        dropped=top.dropped,
        kept=rows,
    )
    if on_invalid == "drop":
        pairs = pairs.without_invalid()
    pairs.require_valid()
    warn_of_other_order(matrix, stacklevel=3)
    kept = rows if pairs.kept is None else pairs.kept
    probs = np.concatenate([block for _, block in matrix.blocks()]).astype(np.float64)
    return ClassDistributions(
        matrix.raw[kept],
        np.minimum(probs[kept], 1.0),
        matrix.labels[kept],
        pairs.weight,
        kept,
        matrix.classes,
        Dropped(pairs.dropped),
    )


MOST_BYTES = 1 << 28
Filled = Iterable[tuple[NDArray[Any], ...]]
"""The tables of sums, class by class."""


def classwise(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    nodes: int | None = None,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Sketches:
    """A sketch for each class, one-vs-rest: its probability against "was it this class?".

    One pass over the matrix. Where many classes would make the tables larger than 256 MB while they
    are filled, the grid is coarser; `nodes=` chooses it. Rows that were left out are counted once, in
    the first sketch.

    Parameters
    ----------
    y_true : array
        The class of each row.
    y_prob : array [rows, classes]
        Probabilities that sum to 1 in each row.
    sample_weight : array, optional
        Importance of each row.
    nodes : int, optional
        Cells of the grid, a power of two.
    from_logits : bool
        The matrix holds logits, of which the softmax is taken.
    classes : sequence, optional
        The classes that the columns stand for, in their order; by default 0, 1, 2, ...
    on_invalid : {"raise", "drop"}
        What happens to a row that breaks a rule.

    Returns
    -------
    Sketches
        By class.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> classwise([0, 2], probs, classes=[0, 1, 2])
    <Sketches of 3 groups by class: 0, 1, 2>
    """
    matrix = as_class_probabilities(
        y_true, y_prob, from_logits=from_logits, classes=classes, on_invalid=on_invalid
    )
    warn_of_other_order(matrix, stacklevel=3)
    weight = as_weights(sample_weight, matrix.n)
    many = len(matrix.classes)
    if nodes is None:
        nodes = DEFAULT_NODES
        while (32 if weight is None else 80) * many * nodes > MOST_BYTES and nodes > 256:
            nodes //= 2
    nodes = require_nodes(nodes)
    filled, dropped = _counted(matrix, nodes) if weight is None else _weighed(matrix, weight, nodes)
    return Sketches(
        {
            name: Sketch(Columns.from_dense(*sums), nodes=nodes, dropped={} if k else dropped)
            for k, (name, sums) in enumerate(zip(matrix.classes, filled, strict=True))
        },
        by="class",
    )


def _counted(matrix: ClassProbabilities, nodes: int) -> tuple[Filled, Mapping[str, int]]:
    """Counts and offsets of each class."""
    counts, offsets = np.zeros((2, len(matrix.classes), nodes + 1, 2), dtype=np.int64)
    for rows, block, predicted, _ in matrix.checked_blocks(ENTRIES_PER_LARGE_BLOCK):
        labels = matrix.labels[rows]
        if predicted.min() < 0:
            block, labels = block[predicted >= 0], labels[predicted >= 0]
        fill_classes(block, labels, nodes.bit_length() - 1, counts, offsets)
    dropped = matrix.top().dropped if counts[0].sum() < matrix.n else {}
    return zip(counts, offsets, strict=True), dropped


def _weighed(
    matrix: ClassProbabilities, weight: NDArray[Any], nodes: int
) -> tuple[Filled, Mapping[str, int]]:
    """Counts, offsets and the sums of weights of each class."""
    top, _ = _weighted_top(matrix, weight)
    kept = np.zeros(matrix.n, dtype=np.bool_)
    kept[top.rows] = True
    many = len(matrix.classes)
    counts, offsets = np.zeros((2, many, nodes + 1, 2), dtype=np.int64)
    sums = np.zeros((3, many, nodes + 1, 2))
    for rows, block in matrix.blocks(ENTRIES_PER_LARGE_BLOCK):
        probs = np.minimum(block[kept[rows]], 1.0)
        labels, weights = matrix.labels[rows][kept[rows]], weight[rows][kept[rows]]
        for k in range(many):
            fill_weights(
                np.ascontiguousarray(probs[:, k], dtype=np.float64),
                (labels == k).astype(np.float64),
                np.ascontiguousarray(weights, dtype=np.float64),
                nodes.bit_length() - 1,
                *(table[k] for table in (counts, offsets, *sums)),
            )
    return zip(counts, offsets, *sums, strict=True), top.dropped


def top_label(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    nodes: int = DEFAULT_NODES,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> Sketches:
    """A sketch for each predicted class: the largest probability against "was it right?".

    Top-label calibration asks for the confidence to be right among the cases of each predicted class,
    not only on the whole (Gupta and Ramdas, 2022). Classes that are never predicted, or only with
    weight 0, have no sketch. Rows that were left out are counted once, in the first sketch.

    Parameters
    ----------
    y_true : array
        The class of each row.
    y_prob : array [rows, classes]
        Probabilities that sum to 1 in each row.
    sample_weight : array, optional
        Importance of each row.
    nodes : int, optional
        Cells of the grid, a power of two.
    from_logits : bool
        The matrix holds logits, of which the softmax is taken.
    classes : sequence, optional
        The classes that the columns stand for, in their order; by default 0, 1, 2, ...
    on_invalid : {"raise", "drop"}
        What happens to a row that breaks a rule.

    Returns
    -------
    Sketches
        By predicted class.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> top_label([0, 2], probs)
    <Sketches of 2 groups by predicted: 0, 1>
    """
    matrix = as_class_probabilities(
        y_true, y_prob, from_logits=from_logits, classes=classes, on_invalid=on_invalid
    )
    warn_of_other_order(matrix, stacklevel=3)
    given = as_weights(sample_weight, matrix.n)
    top, weight = (matrix.top(), None) if given is None else _weighted_top(matrix, given)
    order = np.argsort(top.predicted, kind="stable")
    bounds = np.searchsorted(top.predicted[order], np.arange(len(matrix.classes) + 1))
    sketches: dict[Any, Sketch] = {}
    for k, name in enumerate(matrix.classes):
        rows = order[bounds[k] : bounds[k + 1]]
        own = None if weight is None else weight[rows]
        if rows.size and (own is None or own.any()):
            dropped = Dropped() if sketches else top.dropped
            pairs = Rows(top.probability[rows], top.correct[rows], own, dropped=dropped)
            sketches[name] = Sketch.from_rows(pairs, nodes=nodes)
    return Sketches(sketches, by="predicted")


def _weighted_top(
    matrix: ClassProbabilities, weight: NDArray[Any]
) -> tuple[TopClass, NDArray[Any]]:
    """The most likely class of the rows whose weight is valid too, and those weights."""
    top = matrix.top()
    rows = np.arange(matrix.n)[top.rows]
    pairs = Rows(top.probability, top.correct, weight[rows], dropped=top.dropped)
    if matrix.on_invalid == "raise":
        pairs.require_valid()
        return top, weight
    valid = pairs.reason_codes(slice(None)) < 0
    pairs = pairs.without_invalid()
    pairs.require_valid()
    columns = (top.predicted[valid], top.probability[valid], top.correct[valid], rows[valid])
    return TopClass(*columns, dropped=Dropped(pairs.dropped)), weight[rows[valid]]
