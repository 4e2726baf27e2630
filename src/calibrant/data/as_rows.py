"""Arrays of any library as checked pairs of predictions and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Never, get_args

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant.data.arrays import as_column, is_missing
from calibrant.data.input_forms import (
    Classes,
    Form,
    InputOptions,
    as_form,
    refuse_label_of_soft,
    warn_of_fractions,
    warn_of_two_scales,
)
from calibrant.data.multiclass import confidence
from calibrant.data.row_refusals import refuse_keyword, refuse_text, two_scales
from calibrant.data.rows import Rows
from calibrant.errors import Code, Function, InputError, Option, TypeName, show_value

__all__ = ["as_rows", "has_classes", "require_forms_of_classes", "require_one_sample"]


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
