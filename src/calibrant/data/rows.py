"""Predictions and outcomes as rows: how they may be written, and every rule on a value.

The compiled loops check while they read; when one of them stops at a row, `Rows.refuse` explains it. SQL,
frames and torch have twins of these rules, which the conformance test of the engines holds together.
"""

from __future__ import annotations

import difflib
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Never, NoReturn, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import nearest, require_choice, require_flag
from calibrant.data.arrays import (
    SEVERAL_MODELS,
    as_column,
    is_missing,
    require_entries,
    require_numbers,
    same_length,
)
from calibrant.errors import CalibrantWarning, InputError, TooFewRows, invalid, show_value

Floats = NDArray[np.float64]
Form = Literal["probability", "logit", "logprob", "percent"]
Classes = Literal["confidence", "top_label", "classwise"]
"""Readings of class probabilities."""

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
CENSORED = "censored before the horizon"
LEFT_OUT = (*REASONS, ABSTAINED, CENSORED)
"""Why a row can be missing from a sketch: it broke a rule, the model declined to answer, or follow-up ended
before the outcome was known. Files of sketches hold places in this tuple, so a new reason comes last."""

LARGEST_WEIGHT, LEAST_TOTAL_WEIGHT = 1e100, 1e-100
"""Between these, no sum of weights, of their squares or of weighted offsets leaves the floats."""
LOGITS_0_TO_1 = 0.4999, 0.7311
"""Probabilities of logits between 0 and 1, and a little beyond, for cells of a sketch."""
DROP = 'To leave such rows out and count them, pass `on_invalid="drop"`.'
_FLOATS = frozenset(map(np.dtype, ("float32", "float64")))
_BYTES = frozenset(map(np.dtype, ("bool", "int8")))
_NATIVE_LABELS = _BYTES | frozenset(map(np.dtype, ("uint8", "int64", "float64")))
FORMS: Mapping[str, Form] = {
    "from_logits": "logit",
    "from_logprobs": "logprob",
    "percent": "percent",
}
"""Keywords that say in which form predictions are written."""


class InputOptions(TypedDict, total=False):
    """Keywords by which every function that takes `y_true` and `y_prob` reads them.

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
        Two columns are class probabilities only with `multiclass`.

    Examples
    --------
    >>> options: InputOptions = {"pos_label": "yes", "percent": True}
    >>> as_rows(["no", "yes"], [20, 70], **options).p.tolist()
    [0.2, 0.7]
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


def as_form(flags: Mapping[str, Any]) -> Form:
    """Form in which predictions are written, from the keywords of `FORMS` that say so."""
    for name, flag in flags.items():
        if flag is not False:
            require_flag(name, flag)
    chosen = [*filter(flags.get, flags)]
    if len(chosen) > 1:
        message = f"`{chosen[0]}` and `{chosen[1]}` exclude each other."
        raise InputError(message, argument=chosen[0])
    return FORMS[chosen[0]] if chosen else "probability"


def as_probabilities(values: NDArray[Any], form: Form) -> NDArray[Any]:
    """Probabilities of numbers in this form, converted but not checked.

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


@dataclass(frozen=True, eq=False)
class Rows:
    """Predictions, outcomes and weights of equal length, as the user gave them.

    Build one with `as_rows`. `p`, `y` and `weight` are checked; `columns` leaves that to the loop that reads
    them. Where rows were dropped, `kept` says which of the rows given are left.

    Examples
    --------
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
    dropped: Mapping[str, int] = field(default_factory=dict)
    kept: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.raw_prob.size)

    @property
    def fractional(self) -> bool:
        """True where rows can count for other than one whole outcome (weights or soft labels)."""
        return self.soft or self.raw_weight is not None

    @cached_property
    def columns(self) -> tuple[NDArray[Any], NDArray[Any], Floats | None]:
        """Probabilities, outcomes and weights of types that the compiled loops read, not yet checked.

        What has such a type is not copied. A weight of None means 1 for every row.
        """
        prob, label, weight = self.raw_prob, self.raw_label, self.raw_weight
        if self.form != "probability" or prob.dtype not in _FLOATS:
            prob = as_probabilities(_as_floats(prob), self.form)
        if self.pos_label is not None:
            codes = np.full(label.shape, 255, dtype=np.uint8)
            codes[label == self.pos_label] = 1
            if self._other_label is not None:
                codes[label == self._other_label] = 0
            label = codes
        elif label.dtype not in _NATIVE_LABELS:
            label = _as_floats(label)
        label = np.ascontiguousarray(label)
        label = label.view(np.uint8) if label.dtype in _BYTES else label
        return np.ascontiguousarray(prob), label, None if weight is None else _as_floats(weight)

    @property
    def p(self) -> Floats:
        """Predicted probabilities, checked."""
        return self._checked[0]

    @property
    def y(self) -> Floats:
        """Outcomes in [0, 1], checked."""
        return self._checked[1]

    @property
    def weight(self) -> Floats | None:
        """Weights, checked, or None where every row counts the same."""
        return self._checked[2]

    @cached_property
    def _checked(self) -> tuple[Floats, Floats, Floats | None]:
        self.require_valid()
        p, y, weight = self.columns
        return p.astype(np.float64, copy=False), y.astype(np.float64, copy=False), weight

    @property
    def base_rate(self) -> float:
        """Share of the weight that has the event."""
        return float(np.average(self.y, weights=self.weight))

    def __iter__(self) -> Iterator[Floats]:
        """Unpacks into y_true, y_prob."""
        if self.raw_weight is not None:
            message = "`sample_weight` would be lost if Rows were unpacked into y_true and y_prob."
            raise InputError(message, hint="Pass the Rows on as they are.")
        return iter((self.y, self.p))

    def __repr__(self) -> str:
        weights = " with weights" if self.raw_weight is not None else ""
        dropped = sum(self.dropped.values())
        return f"<Rows of {self.n} rows{weights}{f', {dropped} rows dropped' if dropped else ''}>"

    def select(self, kept: NDArray[Any]) -> Rows:
        """Rows at these indices, or where this mask is true."""
        return replace(
            self,
            raw_prob=self.raw_prob[kept],
            raw_label=self.raw_label[kept],
            raw_weight=None if self.raw_weight is None else self.raw_weight[kept],
            kept=None if self.kept is None else self.kept[kept],
        )

    @property
    def passed(self) -> int:
        """Number of rows before some of them were dropped."""
        return self.n + sum(self.dropped.values())

    def entries(self, column: NDArray[Any], name: str) -> NDArray[Any]:
        """Entries for these rows of a column that has one for every row that was passed."""
        require_entries(name, column, self.passed)
        return column if self.kept is None else column[self.kept]

    @cached_property
    def _other_label(self) -> Any:
        """First label that is not `pos_label`."""
        other = np.flatnonzero((self.raw_label != self.pos_label) & ~is_missing(self.raw_label))
        return self.raw_label[other[0]] if other.size else None

    # -- rules ---------------------------------------------------------------------------------

    def reason_codes(self, rows: slice = slice(None)) -> NDArray[np.int8]:
        """Index into REASONS of the first rule that each row breaks, or -1."""
        p, y, weight = self.columns
        p, y = p[rows], y[rows]
        with np.errstate(invalid="ignore"):
            broken = [
                is_missing(self.raw_prob[rows]),
                ~((p >= 0) & (p <= 1)),
                is_missing(self.raw_label[rows]),
                ~((y >= 0) & (y <= 1)) if self.soft else ~((y == 0) | (y == 1)),
            ]
            if weight is not None:
                weight = weight[rows]
                broken += [np.isnan(weight), ~((weight >= 0) & (weight <= LARGEST_WEIGHT))]
        codes = np.full(p.shape, -1, dtype=np.int8)
        for code in reversed(range(len(broken))):
            codes[broken[code]] = code
        return codes

    def require_valid(self) -> None:
        """Raise the InputError of the first row that breaks a rule, if there is one."""
        if self.__dict__.get("is_valid"):
            return
        broken = self.reason_codes() >= 0
        if broken.any():
            self.refuse(int(np.argmax(broken)))
        if self.raw_weight is not None and self.raw_weight.sum(dtype=float) < LEAST_TOTAL_WEIGHT:
            self.refuse_zero_weights()
        self.mark_valid()

    def mark_valid(self) -> None:
        """Remember that a loop has checked every row, so that none is checked twice."""
        self.__dict__["is_valid"] = True

    def without_invalid(self) -> Rows:
        """Rows that break no rule; the others are counted in `dropped`."""
        codes = self.reason_codes()
        invalid_label = codes == REASONS.index("invalid label")
        if self.pos_label is not None:
            # Which of three classes is the other one would depend on the order of the rows.
            third = (self.columns[1] > 1) & ~is_missing(self.raw_label)
            if third.any():
                raise refusal(self, int(np.argmax(third)), "invalid label")
        if invalid_label.any() and _is_swapped(self):
            self.refuse(int(np.argmax(invalid_label)))
        dropped = {reason: int(np.sum(codes == code)) for code, reason in enumerate(REASONS)}
        dropped = {reason: number for reason, number in dropped.items() if number}
        if not dropped:
            return self
        valid = codes < 0
        require_rows_left(valid.any(), self.n, dropped)
        kept = np.arange(self.n) if self.kept is None else self.kept
        together = dict(Counter(self.dropped) + Counter(dropped))
        return replace(self, dropped=together, kept=kept).select(valid)

    def refuse(self, row: int) -> NoReturn:
        """Raise the InputError that says which rule this row breaks."""
        raise refusal(self, row, REASONS[int(self.reason_codes(slice(row, row + 1))[0])])

    def refuse_zero_weights(self) -> NoReturn:
        """Raise the InputError for weights that leave nothing to measure."""
        weight = self.columns[2]
        assert weight is not None
        total = show_value(float(weight.sum()))
        rule = f"not be zero everywhere; the {self.n} weights add up to {total}"
        raise InputError(f"`sample_weight` must {rule}.")


def require_rows_left(some: Any, rows: int, dropped: Mapping[str, int]) -> None:
    """Refuse rows of which every one broke a rule."""
    if not some:
        message = f"No valid rows are left: all {rows} were dropped ({dropped})."
        hint = "Leave out `on_invalid` to see what is wrong with the first."
        raise TooFewRows(message, dropped, hint=hint)


def _as_floats(values: NDArray[Any]) -> Floats:
    """Numbers as contiguous float64; what is not a number becomes NaN."""
    if values.dtype.kind in "biuf":
        return np.ascontiguousarray(values, dtype=np.float64)
    numbers = (v if isinstance(v, int | float) and abs(v) < 1e300 else np.nan for v in values)
    return np.fromiter(numbers, dtype=np.float64, count=values.size)


def refusal(rows: Rows, row: int, reason: str) -> InputError:
    """InputError for the row that breaks the rule `reason`."""
    what = reason.split()[-1] if reason.startswith(("missing", "invalid")) else "prediction"
    name, column = {
        "prediction": ("y_prob", rows.raw_prob),
        "label": ("y_true", rows.raw_label),
        "weight": ("sample_weight", rows.raw_weight),
    }[what]
    if reason.startswith("missing"):
        return missing_value(name, row)
    rule, guess = _rule(rows, what)
    assert column is not None
    message = f"`{name}` must {rule}; row {row} has {show_value(column[row])}."
    return InputError(message, row=row, hint=f"{guess} {DROP}".strip())


def missing_value(argument: str, row: int) -> InputError:
    """InputError for a row in which an argument has no value."""
    message = f"`{argument}` must not hold missing values; row {row} is missing (NaN)."
    return InputError(message, row=row, hint=DROP)


def _rule(rows: Rows, what: str) -> tuple[str, str]:
    """Rule of a column, and a guess of what its values are: all guesses are here."""
    if what == "weight":
        return "lie between 0 and 1e+100", ""
    if what == "prediction":
        rules = {"percent": "lie in [0, 100]", "logprob": "not be above 0"}
        return rules.get(rows.form, "lie in [0, 1]"), _guess(rows)
    if rows.soft:
        return "lie in [0, 1]", ""
    classes = (
        "For more than two classes, use `calibrant.confidence` with the class probabilities, or pass these "
        'with `multiclass="confidence"`.'
    )
    if rows.pos_label is not None:
        first, second = show_value(rows.pos_label), show_value(rows._other_label)
        return f"hold two classes, as {first} and {second}", classes
    if _is_swapped(rows):
        guess = "`y_prob` holds nothing but 0 and 1: are `y_true` and `y_prob` exchanged?"
        return "hold 0 and 1", guess
    label = rows.raw_label[~is_missing(rows.raw_label)][:10_000]
    distinct = sorted(set(label.tolist()), key=show_value)
    if label.dtype.kind not in "biuf" or len(distinct) <= 2:
        listed = ", ".join(map(show_value, distinct[:5]))
        guess = f"Its values are {listed}; name the event with `pos_label=`."
        return "hold 0 and 1", f"{guess} {classes}" if len(distinct) > 2 else guess
    if min(distinct) >= 0 and max(distinct) <= 1:
        return "hold 0 and 1", 'If these are shares or probabilities, pass `labels="soft"`.'
    return "hold 0 and 1", classes


def _guess(rows: Rows) -> str:
    """Guess of what predictions outside [0, 1] are: percentages, logits, log-probabilities."""
    if rows.form == "logprob":
        return "If these are logits, pass `from_logits=True`."
    numeric = rows.form == "probability" and rows.raw_prob.dtype.kind in "biuf"
    values = rows.raw_prob[np.isfinite(rows.raw_prob)] if numeric else np.zeros(0)
    low, high = values.min(initial=0.0), values.max(initial=0.0)
    if low >= 0 and 2 < high <= 100 and np.mean(values > 1) > 0.2:
        return "If these are percentages, pass `percent=True`."
    if high <= 0 and low < -1:
        return "If these are log-probabilities, pass `from_logprobs=True`; if logits, `from_logits=True`."
    return "If these are logits, pass `from_logits=True`." if low < 0 and high > 1 else ""


def _is_swapped(rows: Rows) -> bool:
    """True where predictions stand in the place of outcomes, and outcomes in that of predictions."""
    prob, label = rows.raw_prob, rows.raw_label
    if label.dtype.kind != "f" or rows.soft or rows.pos_label is not None:
        return False
    return bool(np.all((prob == 0) | (prob == 1)) and np.all((label >= 0) & (label <= 1)))


# -- reading arrays ----------------------------------------------------------------------------


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

    See `calibrant.data.InputOptions` for the keywords. Nothing is guessed: logits, percentages, labels in
    {-1, 1}, soft labels and sentinels are errors that name the keyword that reads them.

    Examples
    --------
    >>> pairs = as_rows(["no", "yes", "no"], [0.1, 0.8, None], pos_label="yes", on_invalid="drop")
    >>> pairs.p, pairs.y, dict(pairs.dropped)
    (array([0.1, 0.8]), array([0., 1.]), {'missing prediction': 1})
    """
    if unknown:
        refuse_keyword(next(iter(unknown)), InputOptions.__annotations__)
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    if not isinstance(labels, str):
        raise invalid("labels", 'be "binary" or "soft"', labels, "Outcomes are `y_true=`.")
    require_choice("labels", labels, ("binary", "soft"))
    form: Form = "probability"
    if not (from_logits is from_logprobs is percent is False):
        flags = {"from_logits": from_logits, "from_logprobs": from_logprobs, "percent": percent}
        form = as_form(flags)
    if isinstance(y_true, Rows):
        beside: Any = {"sample_weight": sample_weight, "pos_label": pos_label}
        beside |= {name: True for name, known in FORMS.items() if known == form}
        beside |= {"labels": None if labels == "binary" else labels, "multiclass": multiclass}
        beside |= {"classes": classes}
        require_alone(y_true, y_prob, beside)
        return y_true.without_invalid() if on_invalid == "drop" else y_true
    if y_prob is None:
        message = f"`y_prob` is missing; there is one argument, of type {type(y_true).__name__}."
        hint = "Pass (y_true, y_prob), or data= with the names of columns."
        if y_true is None:
            message = "`y_true` and `y_prob` are missing."
        elif isinstance(y_true, Mapping):
            hint = f'{SEVERAL_MODELS} Pass them as (y_true, {{"a": p, "b": q}}).'
        raise InputError(message, hint=hint)
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
    if pos_label is not None:
        require_label(labels, pos_label)
    require_same_index(y_true=y_true, y_prob=y_prob, sample_weight=sample_weight)
    label, prob = as_column(y_true, "y_true"), as_column(y_prob, "y_prob")
    weight = None if sample_weight is None else as_column(sample_weight, "sample_weight")
    same_length(y_prob=prob, y_true=label)
    require_numbers("y_prob", prob, drop=on_invalid == "drop")
    if weight is not None:
        require_numbers("sample_weight", weight, drop=on_invalid == "drop")
        same_length(y_prob=prob, sample_weight=weight)
    rows = Rows(prob, label, weight, form, pos_label, labels == "soft")
    if pos_label is not None:
        _require_known_class(rows)
    rows = rows.without_invalid() if on_invalid == "drop" else rows
    warn_of_form(form, lambda: rows.columns[0], stacklevel=3)
    return rows


def warn_of_form(form: Form, read: Callable[[], Floats], *, stacklevel: int) -> None:
    """Warn of percentages none of which is above 1, and of logits that all lie between 0 and 1."""
    if form not in ("percent", "logit"):
        return
    p = read()
    low, high = p.min(initial=1.0), p.max(initial=0.0)
    if form == "percent" and high <= 0.01:
        message = (
            "No prediction is above 1, so as percentages all of them are below 1%. If they are "
            "probabilities, leave out `percent=True`."
        )
    elif form == "logit" and LOGITS_0_TO_1[0] <= low < high <= LOGITS_0_TO_1[1]:
        message = (
            "All predictions lie between 0 and 1, so as logits they are probabilities from 0.5 to 0.73. If "
            "they are probabilities already, leave out `from_logits=True`."
        )
    else:
        return
    warnings.warn(CalibrantWarning(message), stacklevel=stacklevel + 1)


def require_alone(first: Any, y_prob: Any, options: InputOptions) -> None:
    """Refuse what describes rows beside something that holds them already."""
    beside = [name for name, value in {"y_prob": y_prob, **options}.items() if value is not None]
    if beside:
        kind, name = type(first).__name__, beside[0]
        message = f"`{name}` cannot be passed beside {kind}, which holds predictions and outcomes already."
        raise InputError(message, hint="Leave it out.")


_BY_PLACE = {
    "Outcomes are `y_true=`.": "y label target targets truth",
    "Predictions are `y_prob=`.": (
        "y_score y_pred y_proba y_hat y_scores probs prob proba p scores predictions"
    ),
    "Pass it to `.plot()` or `.save()` of the diagram.": "color theme",
    "`report` takes it, and diagrams do in `.plot()` and `.save()`.": "title",
    "Pass it to `.plot()` of the diagram.": "ax figsize",
    "Pass it to `.save()` of the diagram.": "width dpi",
    "Weights of rows are `sample_weight=`.": "weight weights",
    "`assess_by` takes groups, by `by=`.": "by groups group",
    "Nothing is drawn at random here.": "random_state",
    "Where numbers are drawn at random, there is `random_state=`; elsewhere nothing is.": "seed rng",
    "`plotting.binned_diagram` and `expected_calibration_error` take `n_bins=` and `strategy=`.": (
        "bins n_bins strategy"
    ),
    "`expected_calibration_error` takes `norm=`.": "norm",
    "Intervals are those of `assess`, with `confidence=`.": "confidence ci level",
    "Tests and intervals take `confidence=`, which is 1 minus it.": "alpha",
    "`assess` takes `weight_type=`.": "weight_type",
    "`assess_by`, `compare`, `report` and `reliability_diagrams` take names of models.": "names",
    "Pass `calibrant.scan(data, y_true=..., y_prob=...)` in place of arrays.": "data",
    "`assess_by` and `compare` correct for several tests.": "correction",
    "`assess` takes clusters into account.": "cluster",
    "`assess` and `assess_by` take a margin.": "margin",
    "`smooth_ece` and `reliability_diagram` take a bandwidth.": "bandwidth",
    "`smooth_ece` and `assess` take a scale.": "scale",
    "`decision_curve` takes `thresholds=`.": "threshold thresholds",
}
PLACES = {name: place for place, names in _BY_PLACE.items() for name in names.split()}
"""Where to pass a keyword that another function has, or that other packages call so."""
NEAR = 0.7
"""Similarity of names that may be meant for each other; at difflib's .6, n_jobs would be n_bins."""


def refuse_keyword(name: str, known: Iterable[str]) -> NoReturn:
    """Raise the TypeError for a keyword that a function does not have: the nearest, and its place."""
    words = [name] if name in PLACES else [*known, *PLACES]
    near = next(iter(difflib.get_close_matches(name, words, n=1, cutoff=NEAR)), "")
    meant = f" Did you mean {near!r}?" if near not in (name, "") else ""
    place = f" {PLACES[near]}" if near in PLACES else ""
    place = place or ("" if near else f" Rows are read by {', '.join(known)}.")
    raise TypeError(f"got an unexpected keyword argument {name!r}.{meant}{place}")


def require_same_index(**columns: Any) -> None:
    """Refuse columns of pandas that are as long as each other and name their rows differently."""
    first, index = "", None
    for name, column in columns.items():
        own: Any = getattr(column, "index", None)
        if not hasattr(own, "equals"):
            continue
        if index is not None and len(index) == len(own) and not index.equals(own):
            raise InputError(
                f"`{first}` and `{name}` have different indexes.",
                argument=name.partition("[")[0],
                hint=_cure_of_index(name, own, first, index),
            )
        first, index = (name, own) if index is None else (first, index)


def require_same_index_in(data: Any, *names: Any) -> None:
    """Refuse a mapping of which these columns of pandas name their rows differently."""
    if isinstance(data, Mapping):
        named = [name for name in names if isinstance(name, str) and name in data]
        require_same_index(**{f"data[{name!r}]": data[name] for name in named})


def _cure_of_index(name: str, own: Any, first: str, index: Any) -> str:
    """Cure of rows that two columns name differently."""
    if own.is_unique and index.is_unique and index.isin(own).all():
        match = f"Pass `{name}.loc[{first}.index]` to match rows by index, or"
    else:
        match = "Pass `.reset_index(drop=True)` of both, or"
    return f"{match} `{name}.to_numpy()` where they are in the same order."


def require_label(labels: str, pos_label: Any) -> None:
    """Refuse an event that is no single label, and any beside soft labels, which are shares."""
    try:
        single = np.ndim(pos_label) == 0 and {pos_label: True}[pos_label]
    except Exception:  # of any object's shape, hash or comparison
        single = False
    if not single:
        raise invalid("pos_label", "be one label", pos_label)
    if labels == "soft":
        message = (
            '`pos_label` names one of two classes, and `labels="soft"` says that there are none.'
        )
        raise InputError(message)


def _require_known_class(rows: Rows) -> None:
    """Refuse an event that never occurs, but where all rows are of one other class."""
    if not np.any(rows.raw_label == rows.pos_label):
        label = rows.raw_label[~is_missing(rows.raw_label)]
        distinct = set(label.tolist()) if label.dtype.kind == "O" else np.unique(label).tolist()
        refuse_event(rows.pos_label, distinct)


def refuse_event(event: Any, labels: Collection[Any]) -> None:
    """Refuse an event that is none of several labels, or that is written as one but for its case."""
    texts = [label for label in labels if isinstance(label, str)]
    written = str(event).strip().casefold()
    same = [text for text in texts if text.strip().casefold() == written]
    if same or len(labels) > 1:
        listed = ", ".join(sorted(map(show_value, labels))[:5])
        message = (
            f"`pos_label` must be one of the labels; {show_value(event)} is not among {listed}."
        )
        hint = f'Did you mean "{same[0]}"?' if same else nearest(event, texts)
        raise InputError(message, hint=hint)


def has_classes(y_prob: Any, multiclass: Classes | None, classes: Any = None) -> bool:
    """True for class probabilities: three columns or more are, and two only with `multiclass`.

    Names of two classes do not say which is meant, the event or the likelier class.

    Examples
    --------
    >>> has_classes([[0.2, 0.3, 0.5]], None), has_classes([[0.2, 0.8]], None), has_classes([0.2], None)
    (True, False, False)
    >>> has_classes([[0.2, 0.8]], None, ["no", "yes"]), has_classes([[0.2, 0.8]], "confidence")
    (False, True)
    """
    if multiclass is not None:
        require_choice("multiclass", multiclass, get_args(Classes))
        return True
    shape = getattr(y_prob, "shape", None)
    if not isinstance(shape, tuple):
        first = y_prob[0] if isinstance(y_prob, list | tuple) and y_prob else None
        shape = (len(y_prob), len(first)) if isinstance(first, list | tuple) else ()
    columns = shape[1] if len(shape) == 2 else 1
    return columns > 2 or (classes is not None and columns != 2)


def is_frame(value: Any) -> bool:
    """True of a table whose columns have names."""
    return hasattr(value, "columns") and not isinstance(value, Mapping)


def require_forms_of_classes(form: Form, labels: str, pos_label: Any) -> None:
    """Refuse readings of predictions and outcomes that class probabilities do not have."""
    given = {name: form == known != "logit" for name, known in FORMS.items()}
    given |= {"pos_label": pos_label is not None, "labels": labels == "soft"}
    for name in filter(given.get, given):
        message = f"`multiclass` reads probabilities or logits of classes, and takes no `{name}`."
        raise InputError(message)


def require_one_sample(multiclass: Classes | None) -> None:
    """Refuse the readings of class probabilities that make a group of each class."""
    require_choice("multiclass", multiclass, (None, *get_args(Classes)))
    if multiclass in ("top_label", "classwise"):
        message = f"`multiclass={multiclass!r}` makes a group of each class, where one sample is asked for."
        hint = "`calibrant.assess_by`, `calibrant.inference.compare_by` and `calibrant.report` take it; "
        hint += f"`calibrant.{multiclass}` makes a sketch of each class."
        raise InputError(message, argument="multiclass", hint=hint)
