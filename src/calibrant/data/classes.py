"""Class probabilities or logits: their checks, the classes of their columns, and their three readings.

The confidence of the most likely class as `Rows`; a sketch for each predicted class; and a sketch for each
class against the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice, require_flag
from calibrant._format import common_length, common_start, distinct_parts, group_text
from calibrant.data._fill import fill_classes
from calibrant.data.arrays import as_array, as_column, is_missing, require_numbers, same_length
from calibrant.data.cell_sums import DEFAULT_NODES, require_nodes, sums_of_dense
from calibrant.data.rows import DROP, Rows, missing_value, require_rows_left
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, invalid, show_value

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
OnInvalid = Literal["raise", "drop"]


class ClassOptions(TypedDict, total=False):
    """Keywords by which class probabilities are read.

    Attributes
    ----------
    sample_weight : array
        Importance of each row.
    from_logits : bool
        The matrix holds logits, of which the softmax is taken.
    classes : sequence
        What the columns stand for, such as an estimator's `classes_`; by default 0, 1, 2, ...
    on_invalid : {"raise", "drop"}
        What happens to a row that breaks a rule.
    """

    sample_weight: Any
    from_logits: bool
    classes: Sequence[Any] | None
    on_invalid: OnInvalid


SUM_TOLERANCE = 1e-4
"""Of the sum of a row's probabilities: a thousand float32 add up to 1 within that, six decimals too."""
HALF_SUM_TOLERANCE = 1e-2
"""Half precision has three digits."""
MOST_BYTES = 1 << 28
"""Of the tables that `classwise` fills, which choose its grid."""
SMALLEST_LOGARITHM = float(np.log(np.finfo(np.float32).tiny))
"""Of a class probability: 0 counts as the smallest float32 that has all its digits."""
TRUTH = {"true": True, "yes": True, "false": False, "no": False}
"""Words for truth values, in any case."""
LOGITS = "If these are logits, pass `from_logits=True`."
PROBABILITIES = "If they are probabilities, leave out `from_logits=True`."


# -- names of classes --------------------------------------------------------------------------


def class_names(columns: Sequence[str], labels: set[Any]) -> tuple[Any, ...] | None:
    """Classes that columns of probabilities stand for, by their names; None where labels count the columns.

    Words that all names begin or end with are taken off, as far as that makes the names labels. Labels that
    are numbers or truth values are looked up among names that are such, in whatever order these stand;
    where the names are none, or count from 0 in order, labels count the columns.

    Examples
    --------
    >>> class_names(["p_dog", "p_deer"], {"dog", "deer"}), class_names(["p0", "p1"], {0, 1})
    (('dog', 'deer'), None)
    >>> class_names(["p_2", "p_0", "p_1"], {0, 1, 2}), class_names(["p_True", "p_False"], {True})
    ((2, 0, 1), (True, False))
    """
    labels = {label for label in labels if label is not None and label == label}
    if all(isinstance(label, int | float) for label in labels):
        return _numbered(columns, labels)
    shared = [k for k in range(min(map(len, columns)) + 1) if len({c[:k] for c in columns}) == 1]
    starts = (common_start(columns), *reversed(shared))
    readings = [tuple(name[start:] for name in columns) for start in starts]
    apart = tuple(distinct_parts(columns))
    return next((names for names in (*readings, apart) if labels <= set(names)), apart)


def _numbered(columns: Sequence[str], labels: set[Any]) -> tuple[Any, ...] | None:
    """Numbers or truth values that columns are named by; None where labels count the columns."""
    # A number that all begin with is never cut in two.
    start = len(columns[0][: common_length(columns)].rstrip("0123456789"))
    parts = [name[start:] for name in columns]
    end = common_start([part[::-1] for part in parts])
    names = tuple(_number(part[: len(part) - end]) for part in parts)
    elsewhere = any(not isinstance(n, str) and n != place for place, n in enumerate(names))
    if not elsewhere:
        return None
    if labels <= set(names):
        truth = bool(labels) and all(isinstance(label, bool) for label in labels)
        return tuple(bool(n) if truth and n in (0, 1) else n for n in names)
    listed = ", ".join(map(str, names[:5])) + (", ..." if len(names) > 5 else "")
    raise InputError(
        "`y_true` must hold the numbers that the columns of `y_prob` are named by; "
        f"{show_value(min(labels - set(names)))} is not among {listed}.",
        hint="Say which label each column stands for, in their order, with `classes=`.",
    )


def _number(text: str) -> Any:
    """Number or truth value that a text stands for; the text where it stands for none."""
    if text.lower() in TRUTH:
        return int(TRUTH[text.lower()])
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        return text
    return int(float(text)) if float(text).is_integer() else float(text)


def as_class_names(classes: Sequence[Any], columns: int | None) -> list[Any]:
    """Class of each column, checked; any number of them where that of the columns is not known."""
    try:
        known = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
        distinct = len(set(known))
    except Exception as error:  # of any object
        raise invalid("classes", "be a list of names, one for each column", classes) from error
    columns = len(known) if columns is None else columns
    if not len(known) == distinct == columns:
        message = (
            f"`classes` must name each column once; {distinct} names differ, for {columns} columns."
        )
        raise InputError(message)
    return known


def class_indices(given: NDArray[Any], known: list[Any], *, by_number: bool) -> Integers:
    """Column of each label; -1 where it is missing, -2 where it is none of them."""
    labels = np.full(given.size, -2, dtype=np.int64)
    if by_number and given.dtype.kind in "biuf":
        with np.errstate(invalid="ignore"):
            valid = (given >= 0) & (given < len(known)) & (given == np.floor(given))
        labels[valid] = given[valid].astype(np.int64)
    elif not by_number:
        place = {value: index for index, value in enumerate(known)}
        values = given.tolist()
        # The number 5 is of the class '5', which the command line knows as text.
        found = {v: place.get(v, place.get(group_text(v), -2)) for v in set(values)}
        labels[:] = [found.get(value, -2) for value in values]
    labels[is_missing(given)] = -1
    return labels


def require_known_classes(y: Any, classes: list[Any]) -> None:
    """Refuse labels on which an estimator was not fitted: each would count as "no event" without a word."""
    known = set(classes)
    label = as_column(y, "y").tolist()
    wrong = next((row for row, value in enumerate(label) if value not in known), None)
    if wrong is not None:
        raise InputError(
            f"`y` must hold classes on which the estimator was fitted, {show_value(classes)}; row {wrong} is "
            f"{show_value(label[wrong])}.",
            row=wrong,
        )


# -- logits ------------------------------------------------------------------------------------


def refuse_probabilities(logits: NDArray[Any], tolerance: float, argument: str) -> None:
    """Refuse a matrix whose every row lies in [0, 1] and sums to 1: nothing else looks like that.

    Examples
    --------
    >>> refuse_probabilities(np.array([[2.0, -1.0], [0.5, 0.5]]), 1e-4, "y_prob")
    >>> refuse_probabilities(np.array([[0.7, 0.3], [0.5, 0.5]]), 1e-4, "y_prob")
    Traceback (most recent call last):
    calibrant.errors.InputError: `y_prob` must hold logits, and every row lies in [0, 1] and sums to 1. If
    they are probabilities, leave out `from_logits=True`.
    """
    for rows in (logits[:1], logits):  # one row is nearly always enough
        with np.errstate(invalid="ignore", over="ignore"):
            sums = np.abs(rows.sum(axis=1, dtype=np.float64) - 1.0)
        if not (np.all(sums <= tolerance) and rows.min() >= 0.0):
            return
    message = f"`{argument}` must hold logits, and every row lies in [0, 1] and sums to 1."
    raise InputError(message, hint=PROBABILITIES)


def finite_logits(logits: NDArray[Any], argument: str) -> NDArray[Any]:
    """Logits in which -inf, a probability of 0, is replaced by that of one that has a logarithm.

    NaN, +inf and rows of nothing but -inf are refused.
    """
    if np.isfinite(logits).all():
        return logits
    masked = np.isneginf(logits)
    bad = ~(np.isfinite(logits) | masked) | masked.all(axis=1, keepdims=True)
    wrong = np.flatnonzero(bad.any(axis=1))
    if wrong.size:
        row = int(wrong[0])
        seen = show_value(logits[row][bad[row]][0])
        message = f"`{argument}` must hold logits that are finite or -inf, and not -inf alone; "
        raise InputError(f"{message}row {row} has {seen}.", row=row)
    top = logits.max(axis=1, keepdims=True)
    total = np.exp(logits - top).sum(axis=1, keepdims=True)
    return np.where(masked, top + np.log(total) + SMALLEST_LOGARITHM, logits)


# -- the matrix --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassProbabilities:
    """Matrix with a row of probabilities (or logits) for each case, and each case's class.

    Attributes
    ----------
    raw : array[n, classes]
        As given.
    labels : int64[n]
        Index of the true class; -1 where it is missing, -2 where it is no class.
    classes : list
        What the columns stand for.
    weight : array[n], optional
        Importance of each row, not yet checked.
    kept : int64[n], optional
        Where the rows stand among those that were given, if some are left out, and
    dropped : mapping
        how many these are, by reason.
    """

    raw: NDArray[Any]
    labels: Integers
    classes: list[Any]
    from_logits: bool
    given_labels: NDArray[Any]
    on_invalid: OnInvalid
    tolerance: float = SUM_TOLERANCE
    weight: NDArray[Any] | None = None
    kept: Integers | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.raw.shape[0])

    @cached_property
    def probs(self) -> NDArray[Any]:
        """Contiguous float32 or float64 probabilities; of logits, their softmax."""
        probs = self.raw
        if probs.dtype not in (np.float32, np.float64):
            probs = probs.astype(np.float64)
        if not self.from_logits:
            return np.ascontiguousarray(probs)
        with np.errstate(invalid="ignore"):
            softmax = np.ascontiguousarray(probs - probs.max(axis=1, keepdims=True))
            np.exp(softmax, out=softmax)
            softmax /= softmax.sum(axis=1, keepdims=True)
        return softmax

    @property
    def distributions(self) -> Floats:
        """Probabilities as float64, none of them above 1."""
        return np.asarray(np.minimum(self.probs, 1.0, dtype=np.float64))

    @cached_property
    def _likeliest(self) -> tuple[Integers, NDArray[Any], NDArray[np.bool_]]:
        """Most likely class of each row, its probability, and whether the row holds probabilities."""
        predicted, top = _largest(self.probs)
        with np.errstate(invalid="ignore"):
            total = np.einsum("ij->i", self.probs)
            sound: NDArray[np.bool_] = (top >= 0) & (np.abs(total - 1.0) <= self.tolerance)
        return predicted, top, sound

    def largest(self) -> tuple[Integers, Floats]:
        """Most likely class of each row and its probability.

        The first row that breaks a rule is refused; with `on_invalid="drop"` such rows have class -1.
        """
        predicted, top, sound = self._likeliest
        valid = sound & (self.labels >= 0)
        if self.on_invalid == "raise" and not valid.all():
            raise self.refusal(int(np.argmin(valid)))
        return np.where(valid, predicted, -1), np.minimum(top, 1.0, dtype=np.float64)

    def top(self) -> tuple[Rows, Integers]:
        """Confidence of each valid row as `Rows`, and the class that it is in."""
        predicted, probability = self.largest()
        found = Rows(probability, predicted == self.labels, self.weight)
        wrong = np.flatnonzero(predicted < 0)
        if wrong.size:
            dropped = self._reasons(wrong)
            require_rows_left(wrong.size < self.n, self.n, dropped)
            found = replace(found, dropped=dropped, kept=np.arange(self.n))
            found = found.select(predicted >= 0)
        found = found.without_invalid() if self.on_invalid == "drop" else found
        found.require_valid()
        return found, predicted if found.kept is None else predicted[found.kept]

    def valid(self) -> ClassProbabilities:
        """Rows that break no rule, with their weights checked: what maps of classes learn from.

        Examples
        --------
        >>> probs = [[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]]
        >>> found = as_class_probabilities([0, 1, None], probs, on_invalid="drop").valid()
        >>> found.labels, found.dropped
        (array([0, 1]), {'missing label': 1})
        """
        top, _ = self.top()
        kept = slice(None) if top.kept is None else top.kept
        return replace(
            self,
            raw=self.raw[kept],
            labels=self.labels[kept],
            given_labels=self.given_labels[kept],
            weight=top.weight,
            kept=top.kept,
            dropped=top.dropped,
        )

    def _reasons(self, rows: Integers) -> dict[str, int]:
        """Counts of rows by the first rule that each breaks."""
        labels = self.labels[rows]
        rules = {
            "missing prediction": np.isnan(self.raw[rows].astype(np.float64)).any(axis=1),
            "prediction out of range": ~self._likeliest[2][rows],
            "missing label": labels == -1,
            "invalid label": labels == -2,
        }
        reason = np.select(list(rules.values()), list(range(len(rules))))
        counts = zip(rules, np.bincount(reason, minlength=len(rules)).tolist(), strict=True)
        return {name: count for name, count in counts if count}

    def refusal(self, row: int) -> InputError:
        """InputError for a row that breaks a rule."""
        if np.isnan(self.raw[row].astype(np.float64)).any():
            return missing_value("y_prob", row)
        if self.labels[row] == -1:
            return missing_value("y_true", row)
        if self.labels[row] == -2:
            first, last = show_value(self.classes[0]), show_value(self.classes[-1])
            message = f"`y_true` must hold one of {len(self.classes)} classes, {first} to {last}; "
            message += f"row {row} has {show_value(self.given_labels[row])}."
            hint = f"Name the classes of the columns with `classes=`. {DROP}"
            return InputError(message, row=row, hint=hint)
        probs = self.probs[row]
        total = float(np.einsum("i->", probs))
        worst = float(probs[np.argmax(np.abs(probs - np.clip(probs, 0, 1)))])
        rule, hint = f"sum to 1 in each row; row {row} sums to {show_value(total)}", LOGITS
        if self.from_logits:
            rule, hint = f"hold logits, finite or -inf; row {row} has +inf, or only -inf", ""
        elif abs(total - 100.0) <= 1.0:
            hint = "Divide percentages by 100."
        elif not 0 <= worst <= 1:
            rule = f"lie in [0, 1]; row {row} has {show_value(worst)}"
        hint = f"{hint} {DROP}".strip()
        return InputError(f"`y_prob` must {rule}.", row=row, hint=hint)


def as_class_probabilities(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
    on_invalid: OnInvalid = "raise",
) -> ClassProbabilities:
    """Matrix of class probabilities and the true classes, of any array library."""
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    require_flag("from_logits", from_logits)
    matrix = as_array(y_prob, "y_prob")
    if matrix.ndim != 2 or matrix.shape[1] < 2:
        message = (
            "`y_prob` must have a row for each case and a column for each class; its shape is "
        )
        hint = (
            "For the probability of one event, in one column, use `calibrant.smooth_ece` without "
        )
        hint += "`multiclass=` and `classes=`."
        raise InputError(f"{message}{matrix.shape}.", hint=hint)
    if matrix.shape[0] == 0:
        raise InputError("`y_prob` must not be empty; it has no rows.")
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"`y_prob` must hold numbers, not {matrix.dtype}.")
    given = as_array(y_true, "y_true")
    if given.shape == matrix.shape:
        message = f"`y_true` must hold a class for each row; its shape is {given.shape}."
        hint = "From columns of 0 and 1 make classes with `numpy.argmax(y_true, axis=1)`."
        raise InputError(message, hint=hint)
    given = as_column(given, "y_true")
    same_length(y_prob=matrix, y_true=given)
    if classes is None and hasattr(y_prob, "columns"):
        classes = class_names(list(map(str, y_prob.columns)), set(given.tolist()))
    known = as_class_names(range(matrix.shape[1]) if classes is None else classes, matrix.shape[1])
    labels = class_indices(given, known, by_number=classes is None)
    tolerance = sum_tolerance(y_prob)
    if from_logits:
        refuse_probabilities(matrix, tolerance, "y_prob")
    weight = None if sample_weight is None else as_column(sample_weight, "sample_weight")
    if weight is not None:
        require_numbers("sample_weight", weight)
        same_length(y_prob=matrix, sample_weight=weight)
    return ClassProbabilities(
        matrix, labels, known, from_logits, given, on_invalid, tolerance, weight
    )


def sum_tolerance(y_prob: Any) -> float:
    """Distance from 1 that the sum of a row may have: half precision is widened, but sums no better."""
    types = [getattr(y_prob, "dtype", None), *getattr(y_prob, "dtypes", ())]
    half = any(str(one).endswith("float16") for one in types)
    return HALF_SUM_TOLERANCE if half else SUM_TOLERANCE


def _largest(block: NDArray[Any]) -> tuple[Integers, NDArray[Any]]:
    """First largest entry of each row; a negative entry or NaN instead, where there is one.

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


# -- readings ----------------------------------------------------------------------------------


def confidence(y_true: Any, y_prob: Any, **options: Unpack[ClassOptions]) -> Rows:
    """Confidence calibration, as in the paper: the largest probability against "was it right?".

    Parameters
    ----------
    y_true : array[n]
        Class indices, or names where `classes` is given.
    y_prob : array[n, classes]
        Class probabilities; each row sums to 1 within 1e-4 (1e-2 in half precision). With
        `from_logits=True`, logits.
    **options
        `sample_weight`, `from_logits`, `classes` and `on_invalid` (see `ClassOptions`).

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
    return as_class_probabilities(y_true, y_prob, **options).top()[0]


def top_label(
    y_true: Any, y_prob: Any, *, nodes: int = DEFAULT_NODES, **options: Unpack[ClassOptions]
) -> Sketches:
    """Sketch for each predicted class: the largest probability against "was it right?".

    Top-label calibration asks for the confidence to be right among the cases of each predicted class,
    not only on the whole (Gupta and Ramdas, 2022). Classes that are never predicted, or only with
    weight 0, have no sketch. Rows that were left out are counted once, in the first sketch.

    Parameters
    ----------
    y_true : array
        The class of each row.
    y_prob : array [rows, classes]
        Probabilities that sum to 1 in each row.
    nodes : int, optional
        Cells of the grid, a power of two.
    **options
        `sample_weight`, `from_logits`, `classes` and `on_invalid` (see `ClassOptions`).

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
    matrix = as_class_probabilities(y_true, y_prob, **options)
    rows, predicted = matrix.top()
    sketches: dict[Any, Sketch] = {}
    order = np.argsort(predicted, kind="stable")
    bounds = np.searchsorted(predicted[order], np.arange(len(matrix.classes) + 1))
    for k, name in enumerate(matrix.classes):
        own = rows.select(order[bounds[k] : bounds[k + 1]])
        if own.n and (own.raw_weight is None or own.raw_weight.any()):
            own = replace(own, dropped={} if sketches else rows.dropped)
            sketches[name] = Sketch.from_rows(own, nodes=nodes)
    return Sketches(sketches, by="predicted")


def classwise(
    y_true: Any, y_prob: Any, *, nodes: int | None = None, **options: Unpack[ClassOptions]
) -> Sketches:
    """Sketch for each class, one-vs-rest: its probability against "was it this class?".

    One pass over the matrix. Where many classes would make the tables larger than 256 MB while they
    are filled, the grid is coarser; `nodes=` chooses it. Rows that were left out are counted once, in
    the first sketch.

    Parameters
    ----------
    y_true, y_prob, nodes, **options
        As for `top_label`.

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
    matrix = as_class_probabilities(y_true, y_prob, **options).valid()
    probs, labels, many = matrix.probs, matrix.labels, len(matrix.classes)
    if nodes is None:
        nodes = DEFAULT_NODES
        while 32 * many * nodes > MOST_BYTES and nodes > 256:
            nodes //= 2
    log2_nodes = require_nodes(nodes).bit_length() - 1
    if matrix.weight is None:
        counts, offsets = np.zeros((2, many, nodes + 1, 2), dtype=np.int64)
        fill_classes(probs, labels, log2_nodes, counts, offsets)
        parts = [sums_of_dense(*tables) for tables in zip(counts, offsets, strict=True)]
    else:
        parts = [
            Sketch.from_rows(
                Rows(np.minimum(probs[:, k], 1.0), labels == k, matrix.weight), nodes=nodes
            ).sums
            for k in range(many)
        ]
    sketches = {
        name: Sketch(part, nodes=nodes, dropped={} if k else matrix.dropped)
        for k, (name, part) in enumerate(zip(matrix.classes, parts, strict=True))
    }
    return Sketches(sketches, by="class")
