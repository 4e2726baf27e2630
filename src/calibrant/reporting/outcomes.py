"""Sections of a report on found groups, times, quantiles, distributions: verdict, table, picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from calibrant.errors import InputError, show_value
from calibrant.inference.find_groups import FoundGroups
from calibrant.outcomes.distributions import DistributionAssessment
from calibrant.outcomes.quantiles import QuantileAssessment
from calibrant.outcomes.survival import HorizonRisk
from calibrant.plotting.diagram import Diagram
from calibrant.plotting.forest import gap_plot
from calibrant.plotting.outcomes import pit_diagram, quantile_diagram

__all__ = ["TITLES", "Outcome", "as_outcomes", "outcome_diagram"]

Outcome: TypeAlias = FoundGroups | HorizonRisk | QuantileAssessment | DistributionAssessment

TITLES = {
    FoundGroups: "Groups that nobody named",
    HorizonRisk: "Risk by a horizon",
    QuantileAssessment: "Quantile forecasts",
    DistributionAssessment: "Predictive distributions",
}


def as_outcomes(found: Sequence[Any]) -> tuple[Outcome, ...]:
    """Findings, checked."""
    for one in found:
        if not isinstance(one, Outcome):
            raise InputError(
                "`found` must be what `find_groups`, `survival.observed_expected`, `quantiles.assess` "
                f"or `distributions.assess` gave; it is {show_value(one)}."
            )
    return tuple(found)


def outcome_diagram(found: Outcome) -> Diagram | None:
    """Gaps, coverage of quantiles, or the histogram of the transform; a risk has the reliability diagram."""
    if isinstance(found, FoundGroups):
        return gap_plot(found)
    if isinstance(found, QuantileAssessment):
        return quantile_diagram(found)
    return pit_diagram(found) if isinstance(found, DistributionAssessment) else None
