"""Which map of many classes to use: all candidates on rows they have not seen, "none" among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.classes import confidence
from calibrant.errors import Code, InputError, TypeName
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.recalibration.choice import NONE, Choice, compared
from calibrant.recalibration.class_map import ClassTraining, MapOfClasses
from calibrant.recalibration.class_rows import (
    ClassSample,
    brier_of,
    cross_fitted_classes,
    dealt_classes,
    fewest_rows,
    fitted_to_classes,
    log_losses_of,
)
from calibrant.recalibration.enough_rows import (
    LEAST_OF_A_CLASS,
    require_rows_of_classes,
)
from calibrant.recalibration.learned_map import State
from calibrant.recalibration.multiclass import OneVsRestRecalibrator
from calibrant.recalibration.parametric import BetaRecalibrator
from calibrant.recalibration.scaling import StructuredScaling, TemperatureScaling
from calibrant.recalibration.state_checks import Parts

__all__ = ["IdentityOfClasses", "choose_map_of_classes"]

Floats = NDArray[np.float64]

ROWS_PER_PARAMETER = 2
"""A map is compared by default where so many rows learn each of its parameters."""


@dataclass
class IdentityOfClasses(MapOfClasses):
    """Class probabilities as they are: the map that others must beat.

    Examples
    --------
    >>> IdentityOfClasses().fit([[0.2, 0.8]], [1]).transform([[0.4, 0.6]])
    array([[0.4, 0.6]])
    """

    kind: ClassVar[str] = "none of classes"
    parts: ClassVar[Parts] = {}
    shared: ClassVar[bool] = True

    def parameters(self, classes: int) -> int:
        """None."""
        return 0

    def explain(self) -> str:
        """What the map does, in one sentence."""
        return "This map leaves predictions as they are."

    def _require_enough(self, training: ClassTraining) -> None:
        """Any rows will do: nothing is learned."""

    def _learn(self, training: ClassTraining) -> State:
        return {}

    def _apply(self, rows: NDArray[Any], state: State) -> Floats:
        return np.asarray(rows)


def choose_map_of_classes(
    y_prob: Any,
    y_true: Any,
    candidates: Mapping[str, MapOfClasses] | None,
    loss: str,
    folds: int,
    seed: int,
    *,
    sample_weight: Any = None,
    cluster: Any = None,
    classes: Sequence[Any] | None = None,
    from_logits: bool = False,
    on_invalid: Literal["raise", "drop"] = "raise",
    **unknown: Any,
) -> Choice:
    """The comparison of `choose_recalibrator` for class probabilities."""
    if unknown:
        raise InputError(
            "is not known for class probabilities",
            argument=next(iter(unknown)),
            cure="Leave it out.",
        )
    chosen = _checked(candidates)
    sample = ClassSample.of(
        y_true,
        y_prob,
        sample_weight=sample_weight,
        cluster=cluster,
        classes=classes,
        from_logits=from_logits,
        on_invalid=on_invalid,
    ).as_probabilities()
    fold = dealt_classes(sample, folds, seed)
    fewest = fewest_rows(sample, fold)
    require_rows_of_classes(sample.counts, sample.known, shared=True)
    maps: dict[str, MapOfClasses] = {NONE: IdentityOfClasses()}
    maps |= _enough_for(fewest) if chosen is None else chosen
    losses, errors = {}, {}
    for name, made in maps.items():
        predicted = cross_fitted_classes(made, sample, fold)
        losses[name] = (log_losses_of if loss == "log" else brier_of)(sample.labels, predicted)
        errors[name] = smooth_ece(confidence(sample.labels, predicted, sample_weight=sample.ones))
    lines, best = compared(losses, errors, sample.ones, sample.unit)
    everything = np.ones(sample.n, dtype=np.bool_)
    return Choice(best, lines, loss, fitted_to_classes(maps[best], sample, everything))


def _enough_for(fewest: NDArray[np.int64]) -> dict[str, MapOfClasses]:
    """The maps to compare; of one class with too few rows, only those whose parameters all classes share."""
    maps: dict[str, MapOfClasses] = {
        "temperature": TemperatureScaling(from_logits=False),
        "one-vs-rest beta": OneVsRestRecalibrator(BetaRecalibrator()),
        "structured": StructuredScaling(from_logits=False),
        "structured matrix": StructuredScaling(from_logits=False, matrix=True),
    }
    every = fewest.min() >= LEAST_OF_A_CLASS
    rows = int(fewest.sum())
    return {
        name: made
        for name, made in maps.items()
        if made.shared or (every and rows >= ROWS_PER_PARAMETER * made.parameters(fewest.size))
    }


def _checked(candidates: Any) -> Mapping[str, MapOfClasses] | None:
    if candidates is None:
        return None
    if not isinstance(candidates, Mapping):
        raise InputError(
            "must be a mapping from names to maps",
            argument="candidates",
            seen=TypeName.of(candidates),
            cure="Pass {example}, or leave it out for all.",
            example=Code('{"temperature": TemperatureScaling(from_logits=False)}'),
        )
    for name, made in candidates.items():
        if not isinstance(made, MapOfClasses) or made.from_logits:
            raise InputError(
                "must hold maps of class probabilities",
                argument="candidates",
                seen=made,
                saying="{name} is {}",
                cure="Pass a map such as {example}.",
                name=repr(name),
                example=Code("TemperatureScaling(from_logits=False)"),
            )
    return candidates
