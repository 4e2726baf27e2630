"""Which cures of an error can be followed where a map is learned or applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from calibrant.errors import Cure, InputError, Option

__all__ = ["TO_APPLY", "TO_LEARN", "TO_LEARN_CLASSES", "only_cures", "refuse_forms"]

TO_LEARN = ("y_true", "y_prob", "sample_weight", "pos_label", "labels", "on_invalid")
"""What `fit` takes."""
TO_LEARN_CLASSES = ("y_true", "y_prob", "sample_weight", "classes", "from_logits", "matrix")
"""What `fit` of a map of classes takes, or the map itself."""
TO_APPLY = ()
"""What `transform` takes beside predictions: it gives back one for each."""
_INSTEAD = {
    "from_logits": "If these are logits, take 1 / (1 + exp(-x)) of them first.",
    "percent": "If these are percentages, divide them by 100 first.",
    "on_invalid": "Leave such rows out first.",
}


@contextmanager
def only_cures(options: tuple[str, ...]) -> Iterator[None]:
    """Let errors name these options alone, and say what to do without the others.

    Examples
    --------
    >>> with only_cures(TO_APPLY):
    ...     raise InputError("must lie in [0, 1]", argument="y_prob", seen=2.5,
    ...                      cure="If these are logits, pass {option}.", option=Option("from_logits"))
    Traceback (most recent call last):
    calibrant.errors.InputError: `y_prob` must lie in [0, 1]; got 2.5. If these are logits, take 1 / (1 +
    exp(-x)) of them first.
    """
    try:
        yield
    except InputError as error:
        raise error from None


def _followed(cure: Cure, options: tuple[str, ...]) -> list[Cure]:
    named = [value.name for value in cure.values.values() if isinstance(value, Option)]
    if all(name in options for name in named):
        return [cure]
    return [Cure(_INSTEAD[name]) for name in named if name in _INSTEAD]


def refuse_forms(options: Mapping[str, object]) -> None:
    """Refuse the keywords that read other things than probabilities: `transform` has none of them."""
    for name in ("from_logits", "percent"):
        if name in options:
            raise InputError(
                "is not known here: a map is learned from probabilities, and applied to such",
                argument=name,
                cure=_INSTEAD[name],
            )
