"""Predictions and outcomes, checked. Every rule on a value lives here.

Values are converted and checked block by block, so that a large input is never copied whole. The
compiled loops check while they read; when one of them stops at a row, `Rows.refuse` explains it.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Never, NoReturn, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant._locks import cached_property
from calibrant.data.arrays import as_column, is_missing
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
    "ABSTAINED",
    "DROP",
    "LEFT_OUT",
    "LOGITS",
    "REASONS",
    "Classes",
    "Dropped",
    "Form",
    "FormWarning",
    "InputOptions",
    "Rows",
    "as_form",
    "as_probabilities",
    "as_rows",
    "has_classes",
    "is_swapped",
    "missing_value",
    "refusal",
    "refuse_keyword",
    "refuse_label_of_soft",
    "refuse_text",
    "require_forms_of_classes",
    "require_one_sample",
    "two_scales",
    "warn_of_fractions",
    "warn_of_two_scales",
]


class Dropped(Mapping[str, int]):
    """Rows that were left out, by reason: a read-only mapping that can be hashed and pickled.

    Examples
    --------
    >>> Dropped({"missing label": 2})
    {'missing label': 2}
    """

    __slots__ = ("_counts",)

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._counts = dict(counts or {})

    def __getitem__(self, reason: str) -> int:
        return self._counts[reason]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __hash__(self) -> int:
        return hash(frozenset(self._counts.items()))

    def __repr__(self) -> str:
        return repr(self._counts)


Form = Literal["probability", "logit", "logprob", "percent"]
Classes = Literal["confidence", "top_label", "classwise"]
"""How class probabilities are read."""
_KEYWORD = {"logit": "from_logits", "logprob": "from_logprobs", "percent": "percent"}


class FormWarning(CalibrantWarning):
    """The predictions look as if they were written in another form than was said."""


class InputOptions(TypedDict, total=False):
    """The keywords by which every function that takes `y_true` and `y_prob` reads them.

    Attributes
    ----------
    sample_weight : array
        Importance of each row: weight 2 equals duplication for the value, not for n.
    pos_label : scalar
        The label of the event. Needed when labels are not 0/1 or booleans.
    from_logits : bool
        The predictions are log-odds.
    from_logprobs : bool
        The predictions are natural logarithms of probabilities.
    percent : bool
        The predictions run from 0 to 100.
    labels : {"binary", "soft"}
        Soft outcomes are probabilities or shares in [0, 1].
    on_invalid : {"raise", "drop"}
        What happens to a row that breaks a rule. Dropped rows are counted by reason in the result.
    multiclass : {"confidence", "top_label", "classwise"}
        The predictions are class probabilities (or logits), a column for each class, and outcomes are
        classes. "confidence", which three columns or more mean without this word, is the largest
        probability against "was it right?"; the others make a group of each predicted class, or of each
        class against the rest, for functions that take groups.
    classes : sequence
        What the columns of class probabilities stand for; by default 0, 1, 2, ..., or the columns' names.
    """

    sample_weight: Any
    pos_label: Any
    from_logits: bool
    from_logprobs: bool
    percent: bool
    labels: Literal["binary", "soft"]
    on_invalid: Literal["raise", "drop"]
    multiclass: Classes | None
    classes: Sequence[Any] | None


def as_form(*, from_logits: bool, percent: bool, from_logprobs: bool = False) -> Form:
    """How predictions are written, from the keywords that say so."""
    if from_logits is from_logprobs is percent is False:
        return "probability"
    flags: dict[Form, bool] = {"logit": from_logits, "logprob": from_logprobs, "percent": percent}
    for form, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise InputError(
                "must be True or False",
                argument=_KEYWORD[form],
                seen=flag,
                cure="Pass True where the predictions are written so.",
            )
    chosen = [form for form, flag in flags.items() if flag]
    if len(chosen) > 1:
        raise InputError(
            "{first} and {second} exclude each other",
            argument=None,
            cure="Leave out one of them.",
            first=Option(_KEYWORD[chosen[0]]),
            second=Option(_KEYWORD[chosen[1]]),
        )
    return chosen[0] if chosen else "probability"


def as_probabilities(values: NDArray[Any], form: Form) -> NDArray[Any]:
    """Numbers of this form as probabilities, converted but not checked.

    Single floats are converted as doubles: where one is missing, or in text, they come as these.
    """
    if form == "probability":
        return values
    doubles = np.asarray(values, dtype=np.float64)
    if form == "percent":
        return doubles / 100.0
    if form == "logprob":
        with np.errstate(over="ignore"):
            return np.exp(doubles)
    from scipy.special import expit

    return np.asarray(expit(doubles))


def refuse_label_of_soft(labels: str, pos_label: Any) -> None:
    """Refuse the label of an event beside soft labels, which are shares and not classes."""
    if labels == "soft" and pos_label is not None:
        raise InputError(
            "names one of two classes, and {soft} says that there are none",
            argument="pos_label",
            soft=Option("labels", "soft"),
            cure="Pass one or the other.",
        )


def warn_of_fractions(*, stacklevel: int) -> None:
    """Warn of predictions that are said to be percentages, none of them above one."""
    warnings.warn(
        FormWarning(
            "no prediction is above 1, so as percentages all of them are below 1%",
            cure="If they are probabilities already, leave out {option}.",
            option=Option("percent", True),
        ),
        stacklevel=stacklevel + 1,
    )


def warn_of_two_scales(*, stacklevel: int) -> None:
    """Warn of predictions that are said to be percentages, some of which look like probabilities."""
    warnings.warn(
        FormWarning(
            "some predictions lie between 0 and 1 and the others above 5, as if probabilities stood "
            "among percentages",
            cure="If so, bring all of them to one scale first: 0.85 is read as 0.85%.",
        ),
        stacklevel=stacklevel + 1,
    )


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
    >>> from calibrant.data.rows import as_rows
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


if TYPE_CHECKING:
    from calibrant.data.rows import Rows


_ARGUMENT = {"prediction": "y_prob", "label": "y_true", "weight": "sample_weight"}
_DROPPING = {"drop": Option("on_invalid", "drop")}
DROP = Cure("To leave such rows out and count them, pass {drop}.", _DROPPING)
_PASS = "If these are {what}, pass {option}."
LOGITS = Cure(_PASS, {"what": "logits", "option": Option("from_logits", True)})


def refusal(pairs: Rows, row: int, reason: str) -> InputError:
    """The error for the row that breaks the rule `reason`."""
    for word, argument in _ARGUMENT.items():
        if reason == f"missing {word}":
            return missing_value(argument, row)
    if reason == "prediction out of range":
        return _prediction_out_of_range(pairs, row)
    if reason == "invalid label":
        return _invalid_label(pairs, row)
    assert pairs.raw_weight is not None
    return InputError(
        "must lie between 0 and 1e+100",
        argument="sample_weight",
        seen=pairs.raw_weight[row],
        where=Where(row=row),
        cure=DROP,
    )


def missing_value(argument: str, row: int) -> InputError:
    """The error for a row in which an argument has no value."""
    return InputError(
        "must not hold missing values",
        argument=argument,
        where=Where(row=row),
        saying="{where} is missing",
        cure=DROP,
    )


def _prediction_out_of_range(pairs: Rows, row: int) -> InputError:
    rule = {
        "percent": "must lie in [0, 100], as percentages do",
        "logprob": "must not be above 0, as no log-probability is",
    }.get(pairs.form, "must lie in [0, 1]")
    return InputError(
        rule,
        argument="y_prob",
        seen=pairs.raw_prob[row],
        where=Where(row=row),
        cure=_cures_for_predictions(pairs, row),
    )


def _cures_for_predictions(pairs: Rows, row: int) -> list[Cure]:
    """What the values look like, and the option that reads such values."""
    sentinel = Cure("If that stands for a missing forecast, pass {drop}.", _DROPPING)
    if pairs.form == "percent":
        return [sentinel]
    if pairs.form == "logprob":
        return [LOGITS, DROP]
    if pairs.raw_prob.dtype.kind not in "biuf":
        return [DROP]
    values = pairs.raw_prob[np.isfinite(pairs.raw_prob)]
    outside = values[(values < 0) | (values > 1)]
    if outside.size == 0:
        return [sentinel]
    if values.min() >= 0 and values.max() <= 100 and two_scales(values):
        return [
            Cure(
                "They look like probabilities among percentages: bring all of them to one scale first."
            )
        ]
    if _look_like_percentages(values):
        return [Cure(_PASS, {"what": "percentages", "option": Option("percent", True)})]
    if _look_like_sentinels(outside):
        seen = show_value(pairs.raw_prob[row])
        return [
            Cure(
                "If {seen} stands for a missing forecast, pass {drop}.",
                {"seen": seen, **_DROPPING},
            )
        ]
    if np.ptp(outside) <= 1 and np.all((outside > -0.05) & (outside < 1.05)):
        return [Cure("If this is rounding, clip the predictions to [0, 1] first."), DROP]
    if values.max() <= 0:
        logprobs = {"option": Option("from_logprobs", True), "logits": Option("from_logits", True)}
        return [
            Cure(
                "No prediction is above 0: if these are log-probabilities, pass {option}; if they "
                "are log-odds, pass {logits}.",
                logprobs,
            )
        ]
    return [LOGITS, DROP]


def _look_like_percentages(values: NDArray[Any]) -> bool:
    return bool(values.min() >= 0 and 2 < values.max() <= 100 and np.mean(values > 1) > 0.2)


def two_scales(values: NDArray[Any], *, one: float = 1.0, rows: NDArray[Any] | None = None) -> bool:
    """Whether numbers look like probabilities among percentages.

    `one` is what one per cent is written as, and `rows` how often each number occurs. Percentages that go
    below 1 go there through those from 1 to 5; of two scales, these are missing.

    Examples
    --------
    >>> two_scales(np.array([0.9, 85.0, 0.7, 60.0])), two_scales(np.array([0.4, 1.2, 3.0, 60.0]))
    (True, False)
    """
    times = np.ones(values.size) if rows is None else rows

    def share(low: float, high: float) -> float:
        inside = (values > low * one) & (values < high * one)
        return float(times[inside].sum() / max(times.sum(), 1.0))

    below, between, above = share(0.05, 1.0), share(1.0, 5.0), share(5.0, np.inf)
    return below > 0.02 and above > 0.02 and between < 0.1 * below


def _look_like_sentinels(outside: NDArray[Any]) -> bool:
    """A few repeated round numbers far outside, such as -999 or 9999."""
    distinct = np.unique(outside[:10_000])
    return distinct.size <= 3 and bool(np.all(distinct == np.round(distinct)) and outside.size)


def _invalid_label(pairs: Rows, row: int) -> InputError:
    rule = "must lie in [0, 1], as shares do" if pairs.soft else "must hold 0 and 1"
    if pairs.pos_label is not None:
        rule = "must hold two classes"
    return InputError(
        rule,
        argument="y_true",
        seen=pairs.raw_label[row],
        where=Where(row=row),
        cure=_cures_for_labels(pairs),
    )


def _cures_for_labels(pairs: Rows) -> list[Cure]:
    classes = Cure(
        "For more than two classes, use {confidence} with the class probabilities.",
        {"confidence": Function("confidence")},
    )
    if pairs.soft:
        return [DROP]
    if pairs.pos_label is not None:
        others = {"event": show_value(pairs.pos_label), "other": show_value(pairs._other_label)}
        return [Cure("The first two are {event} and {other}.", others), classes]
    if is_swapped(pairs):
        return [
            Cure(
                "{y_prob} holds nothing but 0 and 1: are {y_true} and {y_prob} exchanged?",
                {"y_prob": Option("y_prob"), "y_true": Option("y_true")},
            )
        ]
    return [*_cures_by_kind(pairs.raw_label[~is_missing(pairs.raw_label)], classes)]


def _cures_by_kind(label: NDArray[Any], classes: Cure) -> list[Cure]:
    """By what all the labels look like: names, two numbers, shares, indices."""
    event = Cure("Name the event with {option}.", {"option": Option("pos_label", ...)})
    if label.dtype.kind not in "biuf":
        names = sorted({str(value) for value in label[:10_000].tolist()})
        listed = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
        return [Cure("Its classes are {classes}.", {"classes": listed}), event]
    distinct = np.unique(label)
    if distinct.size <= 2:
        listed = ", ".join(show_value(value) for value in distinct)
        return [Cure("Its values are {classes}.", {"classes": listed}), event]
    if distinct[0] >= 0 and distinct[-1] <= 1:
        soft = {"what": "shares or probabilities", "option": Option("labels", "soft")}
        return [Cure(_PASS, soft), Cure("If these are ties to leave out, pass {drop}.", _DROPPING)]
    if distinct[0] == 0 and np.all(distinct == np.round(distinct)) and distinct.size < 10_000:
        return [classes, Cure("If that is a sentinel, pass {drop}.", _DROPPING)]
    return [Cure("If that stands for a missing outcome, pass {drop}.", _DROPPING)]


def is_swapped(pairs: Rows) -> bool:
    """Whether predictions stand where outcomes belong, and outcomes where predictions do."""
    prob, label = pairs.raw_prob, pairs.raw_label
    if label.dtype.kind != "f" or pairs.soft or pairs.pos_label is not None:
        return False
    return bool(np.all((prob == 0) | (prob == 1)) and np.all((label >= 0) & (label <= 1)))


def refuse_keyword(name: str, known: Iterable[str]) -> NoReturn:
    """Raise the TypeError for a keyword that no reading of rows has, in the name of what was called."""
    frame = called_frame = sys._getframe(1)
    while frame.f_back and frame.f_back.f_globals.get("__name__", "").startswith("calibrant."):
        frame = frame.f_back
        if frame.f_globals["__name__"] != "calibrant.io.from_data":  # which wraps what is called
            called_frame = frame
    near = difflib.get_close_matches(name, list(known), n=1)
    cure = f"Did you mean {near[0]!r}?" if near else f"Rows are read by {', '.join(known)}."
    called = called_frame.f_code.co_qualname
    raise TypeError(f"{called}() got an unexpected keyword argument {name!r}. {cure}")


def refuse_text(name: str, column: NDArray[Any]) -> NoReturn:
    """Raise the InputError for a column that must hold numbers and does not."""
    row = 0
    if column.dtype.kind == "O":
        row = next((i for i, v in enumerate(column) if not isinstance(v, int | float)), 0)
    cure = Cure("Convert it to numbers first.")
    if name == "y_prob" and str(column[row]).rstrip().endswith("%"):
        cure = Cure(
            "Take off the per cent signs, and pass {option}.", {"option": Option("percent", True)}
        )
    elif name == "y_prob" and not _reads_as_number(column[row]):
        cure = Cure(
            "Are {y_true} and {y_prob} exchanged?",
            {"y_true": Option("y_true"), "y_prob": Option("y_prob")},
        )
    raise InputError(
        "must hold numbers", argument=name, seen=column[row], where=Where(row=row), cure=cure
    )


def _reads_as_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    except OverflowError:
        pass
    return True


def as_rows(
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    from_logits: bool = False,
    from_logprobs: bool = False,
    percent: bool = False,
    labels: Literal["binary", "soft"] = "binary",
    on_invalid: Literal["raise", "drop"] = "raise",
    multiclass: Classes | None = None,
    classes: Sequence[Any] | None = None,
    **unknown: Never,
) -> Rows:
    """Predictions and outcomes from arrays of any library, in scikit-learn's order.

    See `InputOptions` for the keywords. Nothing is guessed: logits, percentages, labels in {-1, 1},
    soft labels and sentinels are errors that name the keyword that reads them.

    Examples
    --------
    >>> pairs = as_rows(["no", "yes", "no"], [0.1, 0.8, None], pos_label="yes", on_invalid="drop")
    >>> pairs.p, pairs.y, dict(pairs.dropped)
    (array([0.1, 0.8]), array([0., 1.]), {'missing prediction': 1})
    """
    if unknown:
        refuse_keyword(next(iter(unknown)), InputOptions.__annotations__)
    if isinstance(y_true, Rows):
        given = {
            "y_prob": y_prob is not None,
            "sample_weight": sample_weight is not None,
            "pos_label": pos_label is not None,
            "from_logits": from_logits,
            "from_logprobs": from_logprobs,
            "percent": percent,
            "labels": labels != "binary",
            "multiclass": multiclass is not None,
            "classes": classes is not None,
        }
        return _already_paired(y_true, [name for name in given if given[name]], on_invalid)
    if y_prob is None:
        raise InputError(
            "is missing",
            argument="y_prob",
            seen=TypeName.of(y_true),
            saying="there is one argument, of type {}",
            cure="Pass (y_true, y_prob), or data= with the names of columns.",
        )
    require_choice("labels", labels, ("binary", "soft"))
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    form = as_form(from_logits=from_logits, from_logprobs=from_logprobs, percent=percent)
    if has_classes(y_prob, multiclass, classes):
        from calibrant.data.classes import confidence

        require_forms_of_classes(form, labels, pos_label)
        require_one_sample(multiclass)
        return confidence(
            y_true,
            y_prob,
            sample_weight=sample_weight,
            from_logits=from_logits,
            classes=classes,
            on_invalid=on_invalid,
        )
    if not (pos_label is None or np.ndim(pos_label) == 0):
        raise InputError(
            "must be one label",
            argument="pos_label",
            seen=pos_label,
            cure="Pass the label of the event, such as 1.",
        )
    refuse_label_of_soft(labels, pos_label)
    label, prob = as_column(y_true, "y_true"), as_column(y_prob, "y_prob")
    weight = None if sample_weight is None else as_column(sample_weight, "sample_weight")
    _require_same_length(label, prob, weight)
    for name, column in (("y_prob", prob), ("sample_weight", weight)):
        if column is not None and column.dtype.kind not in "biuf":
            drops = on_invalid == "drop" and any(isinstance(v, int | float) for v in column)
            if not drops:  # text among numbers is a row out of range
                refuse_text(name, column)
    pairs = Rows(prob, label, weight, form, pos_label, labels == "soft")
    if pos_label is not None and not np.any(label == pos_label):
        _require_known_class(pairs)
    pairs = pairs.without_invalid() if on_invalid == "drop" else pairs
    if percent:
        _warn_of_scale(pairs.probabilities(slice(None)))
    return pairs


def has_classes(y_prob: Any, multiclass: Classes | None, classes: Any = None) -> bool:
    """Whether predictions are class probabilities: three columns or more are, and two that are said to be.

    Examples
    --------
    >>> has_classes([[0.2, 0.3, 0.5]], None), has_classes([[0.2, 0.8]], None), has_classes([0.2], None)
    (True, False, False)
    """
    if multiclass is not None:
        require_choice("multiclass", multiclass, get_args(Classes))
    if multiclass is not None or classes is not None:
        return True
    shape = getattr(y_prob, "shape", None)
    if not isinstance(shape, tuple):
        first = y_prob[0] if isinstance(y_prob, list | tuple) and y_prob else None
        shape = (len(y_prob), len(first)) if isinstance(first, list | tuple) else ()
    return len(shape) == 2 and shape[1] > 2


def require_forms_of_classes(form: Form, labels: str, pos_label: Any) -> None:
    """Refuse readings of predictions and outcomes that class probabilities do not have."""
    for name, is_given in (
        ("percent", form == "percent"),
        ("from_logprobs", form == "logprob"),
        ("pos_label", pos_label is not None),
        ("labels", labels == "soft"),
    ):
        if is_given:
            raise InputError(
                "reads probabilities or logits of classes",
                argument="multiclass",
                cure="Leave out {option}.",
                option=Option(name),
            )


def require_one_sample(multiclass: Classes | None, verb: str = "") -> None:
    """Refuse the readings of class probabilities that make a group of each class; say what takes them."""
    if multiclass in (None, "confidence"):
        return
    cures = [
        "To assess, report or draw each class, pass it to {verbs}.",
        "Anything else takes the sketch of a class, from {sketches}.",
    ]
    if verb == "compare":
        cures = ["Pass it to {compare_by}, which compares models class by class."]
    if verb == "certify":
        cures = ["Certify the sketch of each class that {sketches} makes: {each}."]
    raise InputError(
        "makes a group of each class, where one sample is asked for",
        argument="multiclass",
        seen=multiclass,
        cure=cures,
        verbs=tuple(map(Function, ("assess_by", "report", "reliability_diagrams"))),
        compare_by=Function("inference.compare_by"),
        each=Code(f"{{k: cal.certify(one) for k, one in cal.{multiclass}(y, probs).items()}}"),
        sketches=Function(multiclass),
    )


def _warn_of_scale(p: NDArray[Any]) -> None:
    """Warn of percentages that look like probabilities, all of them or some."""
    if not np.any(p > 0.01):
        warn_of_fractions(stacklevel=4)
    elif two_scales(p, one=0.01):
        warn_of_two_scales(stacklevel=4)


def _already_paired(pairs: Rows, given: list[str], on_invalid: object) -> Rows:
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    if given:
        raise InputError(
            "Rows already hold predictions, outcomes and weights",
            argument=None,
            cure="Leave out {option}.",
            option=Option(given[0]),
        )
    return pairs.without_invalid() if on_invalid == "drop" else pairs


def _require_same_length(
    label: NDArray[Any], prob: NDArray[Any], weight: NDArray[Any] | None
) -> None:
    if label.size != prob.size:
        raise InputError(
            "must have one entry per row, as {other} has",
            argument="y_true",
            seen=(label.size, prob.size),
            saying="they have {entries}",
            entries=f"{label.size} and {prob.size}",
            other=Option("y_prob"),
            cure="Pass both for the same rows.",
        )
    if weight is not None and weight.size != prob.size:
        raise InputError(
            "must have one entry per row",
            argument="sample_weight",
            seen=weight.size,
            saying="it has {seen} for {rows} rows",
            rows=prob.size,
            cure="Leave it out to give every row weight 1.",
        )


def _require_known_class(pairs: Rows) -> None:
    """A class that never occurs is allowed only where all rows are of one other class."""
    label = pairs.raw_label[~is_missing(pairs.raw_label)]
    distinct = set(label.tolist()) if label.dtype.kind == "O" else np.unique(label)
    classes = sorted(map(show_value, distinct))
    if len(classes) > 1:
        raise InputError(
            "must be one of the labels",
            argument="pos_label",
            seen=pairs.pos_label,
            saying="{} is not among {classes}",
            classes=", ".join(classes[:5]),
            cure="Pass one of them, in the type that they have.",
        )
