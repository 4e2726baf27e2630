"""The map that rises as the outcomes do, in steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from calibrant.data.cell_sums import over_outcomes
from calibrant.measures._chains import pooled
from calibrant.recalibration.learned_map import Floats, Recalibrator, State
from calibrant.recalibration.state_checks import PROBABILITIES, Parts
from calibrant.recalibration.training import Training

__all__ = ["IsotonicRecalibrator"]


@dataclass
class IsotonicRecalibrator(Recalibrator):
    """The increasing map that fits the outcomes best; straight between the steps it finds.

    Notes
    -----
    It predicts exactly 0 or 1 where the lowest or highest rows had one outcome: the log loss of a
    surprise there is infinite.

    Examples
    --------
    >>> steps = IsotonicRecalibrator().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> steps.transform([0.1, 0.25, 0.4])
    array([0. , 0.5, 1. ])
    """

    kind: ClassVar[str] = "isotonic"
    parts: ClassVar[Parts] = dict.fromkeys(("p", "values"), replace(PROBABILITIES, rising=True))

    def _learn(self, training: Training) -> State:
        atoms = training.atoms
        weight = over_outcomes(atoms.mass)
        fitted = pooled(atoms.mass[:, 1] / weight, weight)
        rises = np.flatnonzero(np.diff(fitted))
        ends = np.unique([0, *rises, *(rises + 1), fitted.size - 1])
        return {"p": np.array(atoms.p[ends]), "values": fitted[ends]}

    def _apply(self, p: Floats, state: State) -> Floats:
        return np.interp(p, state["p"], state["values"])
