"""The error for a row that breaks a rule: the rule, the value, the row, and cures that exist."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import is_missing
from calibrant.errors import Cure, Function, InputError, Option, Where, show_value

if TYPE_CHECKING:
    from calibrant.data.rows import Rows

__all__ = [
    "DROP",
    "LOGITS",
    "is_swapped",
    "missing_value",
    "refusal",
    "refuse_keyword",
    "refuse_text",
    "two_scales",
]

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
