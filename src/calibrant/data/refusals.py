"""What to say of a row that breaks a rule: the rule, the value, the row, and a cure that exists."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import is_missing

if TYPE_CHECKING:
    from calibrant.data.pairs import Pairs

__all__ = ["is_swapped", "refusal", "refuse_keyword", "show_value"]

_DROP = 'pass `on_invalid="drop"` to leave such rows out and count them'


def refusal(pairs: Pairs, row: int, reason: str) -> str:
    """The message for the row that breaks the rule `reason`."""
    name = {"prediction": "y_prob", "label": "y_true", "weight": "sample_weight"}
    for word, column in name.items():
        if reason == f"missing {word}":
            return (
                f"`{column}` must not hold missing values; row {row} is missing. To go on, {_DROP}."
            )
    if reason == "prediction out of range":
        return _prediction_out_of_range(pairs, row)
    if reason == "invalid label":
        return _invalid_label(pairs, row)
    assert pairs.raw_weight is not None
    return (
        f"`sample_weight` must lie between 0 and 1e+100; row {row} has "
        f"{show_value(pairs.raw_weight[row])}. To go on, {_DROP}."
    )


def _prediction_out_of_range(pairs: Pairs, row: int) -> str:
    seen = show_value(pairs.raw_prob[row])
    if pairs.form == "percent":
        return (
            f"`y_prob` must lie in [0, 100] with `percent=True`; row {row} has {seen}. "
            f"If that stands for a missing forecast, {_DROP}."
        )
    rule = f"`y_prob` must lie in [0, 1]; row {row} has {seen}."
    values = pairs.raw_prob[np.isfinite(pairs.raw_prob)]
    outside = values[(values < 0) | (values > 1)]
    if outside.size == 0:
        return f"{rule} If that stands for a missing forecast, {_DROP}."
    if _look_like_percentages(values):
        return f"{rule} If these are percentages, pass `percent=True`."
    if _look_like_sentinels(outside):
        return f"{rule} If {seen} stands for a missing forecast, {_DROP}."
    if np.ptp(outside) <= 1 and np.all((outside > -0.05) & (outside < 1.05)):
        return (
            f"{rule} If this is rounding, clip the column with `numpy.clip(y_prob, 0, 1)`; "
            f"otherwise {_DROP}."
        )
    return f"{rule} If these are logits, pass `from_logits=True`; otherwise {_DROP}."


def _look_like_percentages(values: NDArray[Any]) -> bool:
    return bool(values.min() >= 0 and 2 < values.max() <= 100 and np.mean(values > 1) > 0.2)


def _look_like_sentinels(outside: NDArray[Any]) -> bool:
    """A few repeated round numbers far outside, such as -999 or 9999."""
    distinct = np.unique(outside[:10_000])
    return distinct.size <= 3 and bool(np.all(distinct == np.round(distinct)) and outside.size)


def _invalid_label(pairs: Pairs, row: int) -> str:
    seen = show_value(pairs.raw_label[row])
    if pairs.soft:
        return (
            f'`y_true` must lie in [0, 1] with `labels="soft"`; row {row} has {seen}. '
            f"To go on, {_DROP}."
        )
    if pairs.pos_label is not None:
        first, third = pairs._other_label, pairs.raw_label[row]
        return (
            f"`y_true` must hold two classes; besides `pos_label`={show_value(pairs.pos_label)} it has "
            f"{show_value(first)} and, in row {row}, {show_value(third)}. For more than two classes use "
            f"`calibrant.confidence`, or compare with the event first: `y_true == {pairs.pos_label!r}`."
        )
    rule = f"`y_true` must hold 0 and 1; row {row} has {seen}."
    label = pairs.raw_label[~is_missing(pairs.raw_label)]
    if is_swapped(pairs):
        return (
            f"{rule} `y_prob` holds nothing but 0 and 1: the arguments look swapped. The order is "
            "(y_true, y_prob)."
        )
    if label.dtype.kind not in "biuf":
        classes = sorted({str(value) for value in label[:10_000].tolist()})
        listed = ", ".join(map(repr, classes[:5])) + (", ..." if len(classes) > 5 else "")
        return f"{rule} Its classes are {listed}: name the event with `pos_label=`."
    distinct = np.unique(label)
    if distinct.size <= 2:
        return (
            f"{rule} Its values are {', '.join(show_value(v) for v in distinct)}: name the event with "
            "`pos_label=`."
        )
    if distinct[0] >= 0 and distinct[-1] <= 1:
        return (
            f'{rule} If it is a share or a probability, pass `labels="soft"`; if it is a tie to '
            f"leave out, {_DROP}."
        )
    if distinct[0] == 0 and np.all(distinct == np.round(distinct)) and distinct.size < 10_000:
        return (
            f"{rule} For class indices use `calibrant.confidence` with the class probabilities; "
            f"for a sentinel, {_DROP}."
        )
    return f"{rule} If that stands for a missing outcome, {_DROP}."


def is_swapped(pairs: Pairs) -> bool:
    """Whether predictions stand where outcomes belong, and outcomes where predictions do."""
    prob, label = pairs.raw_prob, pairs.raw_label
    if label.dtype.kind != "f" or pairs.soft or pairs.pos_label is not None:
        return False
    return bool(np.all((prob == 0) | (prob == 1)) and np.all((label >= 0) & (label <= 1)))


def show_value(value: Any) -> str:
    """A value as a person would write it."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, float):
        return repr(value)
    short = f"{value:.10g}"
    # Not so short that what is wrong with it cannot be seen: 1.0000000000000002 is not 1.
    return repr(value) if float(short).is_integer() and not value.is_integer() else short


def refuse_keyword(name: str, known: Iterable[str]) -> NoReturn:
    """Raise the TypeError for a keyword that no reading of rows has, in the name of what was called."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_back.f_globals.get("__name__", "").startswith("calibrant."):
        frame = frame.f_back
    near = difflib.get_close_matches(name, list(known), n=1)
    cure = f"Did you mean {near[0]!r}?" if near else f"Rows are read by {', '.join(known)}."
    called = frame.f_code.co_qualname
    raise TypeError(f"{called}() got an unexpected keyword argument {name!r}. {cure}")
