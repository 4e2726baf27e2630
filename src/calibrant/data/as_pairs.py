"""Arrays of any library as checked pairs of predictions and outcomes."""

from __future__ import annotations

from typing import Any, Literal, Never, NoReturn

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant.data.arrays import as_column, is_missing
from calibrant.data.forms import InputOptions, as_form, refuse_label_of_soft, warn_of_fractions
from calibrant.data.pairs import Pairs
from calibrant.data.row_refusals import refuse_keyword
from calibrant.errors import Cure, InputError, Option, TypeName, Where, show_value

__all__ = ["as_pairs", "refuse_text"]


def as_pairs(
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
    **unknown: Never,
) -> Pairs:
    """Predictions and outcomes from arrays of any library, in scikit-learn's order.

    See `InputOptions` for the keywords. Nothing is guessed: logits, percentages, labels in {-1, 1},
    soft labels and sentinels are errors that name the keyword that reads them.

    Examples
    --------
    >>> pairs = as_pairs(["no", "yes", "no"], [0.1, 0.8, None], pos_label="yes", on_invalid="drop")
    >>> pairs.p, pairs.y, dict(pairs.dropped)
    (array([0.1, 0.8]), array([0., 1.]), {'missing prediction': 1})
    """
    if unknown:
        refuse_keyword(next(iter(unknown)), InputOptions.__annotations__)
    if isinstance(y_true, Pairs):
        given = {
            "y_prob": y_prob is not None,
            "sample_weight": sample_weight is not None,
            "pos_label": pos_label is not None,
            "from_logits": from_logits,
            "from_logprobs": from_logprobs,
            "percent": percent,
            "labels": labels != "binary",
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
    pairs = Pairs(prob, label, weight, form, pos_label, labels == "soft")
    if pos_label is not None and not np.any(label == pos_label):
        _require_known_class(pairs)
    pairs = pairs.without_invalid() if on_invalid == "drop" else pairs
    if percent and not np.any(pairs.probabilities(slice(None)) > 0.01):
        warn_of_fractions(stacklevel=3)
    return pairs


def _already_paired(pairs: Pairs, given: list[str], on_invalid: object) -> Pairs:
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    if given:
        raise InputError(
            "Pairs already hold predictions, outcomes and weights",
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


def _require_known_class(pairs: Pairs) -> None:
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
