"""Recalibration of class probabilities: each class against the rest."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.class_map import ClassTraining, MapOfClasses
from calibrant.recalibration.deploy_classes import MAY_CHANGE, one_vs_rest_to_python
from calibrant.recalibration.learned_map import Recalibrator, State, require_map
from calibrant.recalibration.state_checks import Parts

__all__ = ["OneVsRestRecalibrator"]

Floats = NDArray[np.float64]


@dataclass
class OneVsRestRecalibrator(MapOfClasses):
    """A map of two classes for each class against the rest; then the rows are made to sum to 1.

    Parameters
    ----------
    recalibrator : Recalibrator
        The map to learn for each class.

    Notes
    -----
    Every class must have two rows or more: of others, a map would learn that they never happen.

    References
    ----------
    Zadrozny and Elkan, *Transforming classifier scores into accurate multiclass probability
    estimates*, 2002.

    Examples
    --------
    >>> probs = [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.5, 0.3, 0.2]] * 2
    >>> repaired = OneVsRestRecalibrator().fit(probs, [0, 1, 2, 1] * 2).transform(probs)
    >>> bool(np.allclose(repaired.sum(axis=1), 1.0))
    True
    """

    recalibrator: Recalibrator = field(default_factory=AdaptiveRecalibrator)
    kind: ClassVar[str] = "one-vs-rest"
    parts: ClassVar[Parts] = {"maps": list}

    def parameters(self, classes: int) -> int:
        """How many numbers the maps of so many classes learn."""
        return classes * self.recalibrator.parameters

    def _learn(self, training: ClassTraining) -> State:
        require_map(self.recalibrator, "recalibrator")
        maps: list[Recalibrator | None] = [
            deepcopy(self.recalibrator).fit(column, training.labels == k, training.weight)
            for k, column in enumerate(training.rows.T)
        ]
        return {"maps": maps}

    def _require_enough(self, training: ClassTraining) -> None:
        require_map(self.recalibrator, "recalibrator")
        super()._require_enough(training)

    def _columns(self, state: State) -> int | None:
        return len(state["maps"])

    def _apply(self, rows: NDArray[Any], state: State) -> Floats:
        maps = state["maps"]
        columns = [
            rows[:, k] if learned is None else learned.transform(rows[:, k])
            for k, learned in enumerate(maps)
        ]
        mapped = np.stack(columns, axis=1)
        total = mapped.sum(axis=1, keepdims=True)
        even = np.full_like(mapped, 1.0 / len(maps))
        return np.asarray(np.divide(mapped, total, out=even, where=total > 0))

    def explain(self) -> str:
        """What the map does, in one sentence."""
        changed = sum(learned is not None for learned in self.state["maps"])
        return (
            f"This {self.kind} map changes {changed} of {len(self.state['maps'])} classes, each by a map "
            f"({self.recalibrator.kind}) of its own, and makes the sum 1 again; {MAY_CHANGE}."
        )

    def to_python(self, name: str = "recalibrate", *, tolerance: float = 1e-5) -> str:
        """The map as the text of a Python function of one row, which needs nothing else.

        `tolerance` is that of each class's map, as in `Recalibrator.to_python`.
        """
        return one_vs_rest_to_python(self, name, tolerance)
