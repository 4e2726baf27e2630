"""What is said of rows that break a rule, with the cures that a map has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from calibrant.errors import InputError

__all__ = ["FROM_LOGITS", "FROM_PERCENT", "TO_APPLY", "TO_LEARN", "refuse_forms", "reworded"]

FROM_LOGITS = "turn them into probabilities first, 1 / (1 + exp(-x))"
FROM_PERCENT = "divide them by 100 first"
TO_LEARN = {
    "(y_true, y_prob)": "(y_prob, y_true)",
    "pass `from_logits=True`": FROM_LOGITS,
    "pass `percent=True`": FROM_PERCENT,
}
"""For `fit`, which takes predictions first, and as probabilities alone."""
TO_APPLY = {
    "If these are the labels, the order is (y_true, y_prob).": "A map is applied to predictions alone.",
    'pass `on_invalid="drop"` to leave such rows out and count them': "leave such rows out first",
    **TO_LEARN,
}
"""For `transform`, which gives back a prediction for each."""


@contextmanager
def reworded(words: Mapping[str, str]) -> Iterator[None]:
    """Replace words in the message of an InputError.

    Examples
    --------
    >>> with reworded(TO_LEARN):
    ...     raise InputError("If these are percentages, pass `percent=True`.")
    Traceback (most recent call last):
    calibrant.errors.InputError: If these are percentages, divide them by 100 first.
    """
    try:
        yield
    except InputError as error:
        text = str(error)
        for said, meant in words.items():
            text = text.replace(said, meant)
        if text == str(error):
            raise
        raise InputError(text) from error


def refuse_forms(options: Mapping[str, object]) -> None:
    """Refuse the keywords that read other things than probabilities: `transform` has none of them."""
    for name, cure in (("from_logits", FROM_LOGITS), ("percent", FROM_PERCENT)):
        if name in options:
            raise InputError(
                f"a map is learned from probabilities, and applied to such: leave out `{name}`, and if "
                f"the predictions are something else, {cure}."
            )
