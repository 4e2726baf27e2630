"""Sections of a report on survival, quantiles and distributions: verdict, table and picture of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from calibrant.errors import InputError, show_value
from calibrant.outcomes.distributions import DistributionAssessment
from calibrant.outcomes.quantiles import QuantileAssessment
from calibrant.outcomes.survival import HorizonRisk
from calibrant.plotting.diagram import Diagram
from calibrant.plotting.outcomes import pit_diagram, quantile_diagram

__all__ = ["TITLES", "Outcome", "as_outcomes", "outcome_diagram"]

Outcome: TypeAlias = HorizonRisk | QuantileAssessment | DistributionAssessment

TITLES = {
    HorizonRisk: "Risk by a horizon",
    QuantileAssessment: "Quantile forecasts",
    DistributionAssessment: "Predictive distributions",
}


def as_outcomes(found: Sequence[Any]) -> tuple[Outcome, ...]:
    """Findings, checked."""
    for one in found:
        if not isinstance(one, Outcome):
            raise InputError(
                "`found` must be what `survival.observed_expected`, `quantiles.assess` or "
                f"`distributions.assess` gave; it is {show_value(one)}.",
                argument="found",
            )
    return tuple(found)


def outcome_diagram(found: Outcome) -> Diagram | None:
    """Coverage of quantiles, or the histogram of the transform; a risk has the reliability diagram."""
    if isinstance(found, QuantileAssessment):
        return quantile_diagram(found)
    return pit_diagram(found) if isinstance(found, DistributionAssessment) else None
