"""The maps that `RecalibratedClassifier` knows by name; the command line has the same names."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, Option
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.class_map import MapOfClasses
from calibrant.recalibration.enough_rows import LEAST_OF_A_CLASS
from calibrant.recalibration.isotonic import IsotonicRecalibrator
from calibrant.recalibration.learned_map import Recalibrator
from calibrant.recalibration.multiclass import OneVsRestRecalibrator
from calibrant.recalibration.parametric import (
    BetaRecalibrator,
    IdentityRecalibrator,
    OffsetRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)
from calibrant.recalibration.randomized import RandomizedRecalibrator
from calibrant.recalibration.scaling import StructuredScaling, TemperatureScaling, VectorScaling
from calibrant.recalibration.smooth import SmoothRecalibrator
from calibrant.recalibration.spline import SplineRecalibrator
from calibrant.recalibration.venn_abers import VennAbersRecalibrator

__all__ = ["CHOOSE", "map_of_classes", "map_of_one_event"]

CHOOSE = "choose"
_OF_ONE_EVENT: dict[str, type[Recalibrator]] = {
    made.kind: made
    for made in (
        AdaptiveRecalibrator,
        BetaRecalibrator,
        IdentityRecalibrator,
        IsotonicRecalibrator,
        OffsetRecalibrator,
        PlattRecalibrator,
        RandomizedRecalibrator,
        SmoothRecalibrator,
        SplineRecalibrator,
        TemperatureRecalibrator,
        VennAbersRecalibrator,
    )
}
_OF_CLASSES: dict[str, Callable[[], MapOfClasses]] = {
    "temperature": lambda: TemperatureScaling(from_logits=False),
    "structured": lambda: StructuredScaling(from_logits=False),
    "structured-matrix": lambda: StructuredScaling(from_logits=False, matrix=True),
    "vector": lambda: VectorScaling(from_logits=False),
    "one-vs-rest": OneVsRestRecalibrator,
}


def map_of_one_event(recalibrator: Any) -> Recalibrator:
    """The map of this name, or a copy of a map.

    Examples
    --------
    >>> map_of_one_event("platt")
    PlattRecalibrator(platt_targets=True)
    """
    if isinstance(recalibrator, Recalibrator):
        return deepcopy(recalibrator)
    if not isinstance(recalibrator, str) or recalibrator not in _OF_ONE_EVENT:
        only_classes = isinstance(recalibrator, str) and recalibrator in _OF_CLASSES
        raise InputError(
            "must be one of {known}, or a map",
            argument="recalibrator",
            seen=recalibrator,
            known=", ".join([*sorted(_OF_ONE_EVENT), CHOOSE]),
            cure="Pass one of these names, or a map: there are two classes."
            if only_classes
            else "Pass one of these names, or a map.",
        )
    if recalibrator == SmoothRecalibrator.kind:
        # A weight counts as so many rows here, as scikit-learn asks; pseudo-rows count otherwise.
        return SmoothRecalibrator(scale="probability", pseudo_rows=0)
    return _OF_ONE_EVENT[recalibrator]()


def map_of_classes(recalibrator: Any, counts: NDArray[np.int64]) -> MapOfClasses | None:
    """The map of this name for classes with so many rows, or a copy of a map; None for a choice of maps.

    Examples
    --------
    >>> map_of_classes("adaptive", np.array([40, 50, 1]))
    TemperatureScaling(from_logits=False)
    """
    if isinstance(recalibrator, MapOfClasses):
        if recalibrator.from_logits:
            raise InputError(
                "must take class probabilities here",
                argument="recalibrator",
                seen=recalibrator,
                cure="Make it with {option}.",
                option=Option("from_logits", False),
            )
        return deepcopy(recalibrator)
    named = recalibrator if isinstance(recalibrator, str) else ""
    if named == CHOOSE:
        return None
    if named == AdaptiveRecalibrator.kind:
        made = StructuredScaling(from_logits=False)
        enough = counts.sum() >= made.parameters(counts.size) and counts.min() >= LEAST_OF_A_CLASS
        return made if enough else TemperatureScaling(from_logits=False)
    if named in _OF_CLASSES:
        return _OF_CLASSES[named]()
    return OneVsRestRecalibrator(map_of_one_event(recalibrator))
