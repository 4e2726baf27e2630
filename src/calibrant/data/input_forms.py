"""How predictions and outcomes may be written, and the keywords that say so."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import CalibrantWarning, InputError, Option

__all__ = [
    "Classes",
    "Form",
    "FormWarning",
    "InputOptions",
    "as_form",
    "as_probabilities",
    "refuse_label_of_soft",
    "warn_of_fractions",
    "warn_of_two_scales",
]

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
