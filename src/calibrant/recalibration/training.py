"""The rows that a map is learned from: arrays or a sketch, in the form that each family needs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypedDict

import numpy as np

from calibrant.data.points import Points
from calibrant.data.rows import Rows, as_rows
from calibrant.data.scales import Scale, as_scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import Code, InputError
from calibrant.recalibration.cures import refuse_forms

__all__ = ["FitOptions", "Training", "require_one_event"]


class FitOptions(TypedDict, total=False):
    """How `fit` reads outcomes and rows that break a rule; see `InputOptions`."""

    pos_label: Any
    labels: Literal["binary", "soft"]
    on_invalid: Literal["raise", "drop"]


@dataclass(frozen=True, eq=False)
class Training:
    """The rows that a recalibrator learns from: arrays, or a sketch of them."""

    rows: Rows | Sketch

    @classmethod
    def of(cls, y_prob: Any, y_true: Any, sample_weight: Any, options: FitOptions) -> Training:
        """Check `(y_prob, y_true)`, or take a Sketch alone."""
        refuse_forms(options)
        if isinstance(y_prob, Sketch):
            if y_true is not None:
                raise InputError(
                    "must be left out with a Sketch, which holds outcomes",
                    argument="y_true",
                    cure="Pass the Sketch alone.",
                )
            return cls(as_sketch(y_prob, sample_weight=sample_weight, **options))
        require_one_event(y_prob)
        if y_true is None:
            raise InputError(
                "must be given, unless a Sketch stands for both",
                argument="y_true",
                cure="Pass the outcomes, or a Sketch in place of the predictions.",
            )
        return cls(as_rows(y_true, y_prob, sample_weight=sample_weight, **options))

    @cached_property
    def atoms(self) -> Points:
        """Distinct predictions with the weight of each outcome."""
        if isinstance(self.rows, Sketch):
            return Points.of(self.rows)
        return Points.of(self.rows)

    def sketch(self, scale: str | Scale) -> Sketch:
        """The rows on the grid of a scale; a sketch must have been made on it."""
        if isinstance(self.rows, Sketch):
            return as_sketch(self.rows, scale=as_scale(scale))
        return Sketch.from_rows(self.rows, scale=as_scale(scale, base_rate=self.atoms.base_rate))

    def require_both_outcomes(self, name: str) -> None:
        """Refuse rows with one outcome only: nothing can be learned from them."""
        seen = self.atoms.mass.sum(axis=0) > 0
        if not seen.all():
            raise InputError(
                "must hold rows with the event and rows without it for a {name}",
                argument="y_true",
                seen=int(seen[1]),
                saying="all {n} rows have outcome {}",
                name=name,
                n=self.atoms.n,
                cure="Pass rows of both outcomes.",
            )


def require_one_event(y_prob: Any) -> None:
    """Refuse class probabilities, of which a map of one event would see the largest alone."""
    if np.ndim(y_prob) == 2 and np.shape(y_prob)[1] > 2:
        raise InputError(
            "must be the probability of one event for this map",
            argument="y_prob",
            seen=np.shape(y_prob),
            saying="its shape is {}",
            cure="Pass one column, or use a map of classes such as {example}.",
            example=Code("TemperatureScaling(from_logits=False)"),
        )
