"""Diagrams of quantile forecasts and of predictive distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._format import p_equation
from calibrant.errors import InputError, show_value
from calibrant.inference.assessment import MISCALIBRATED, UNDETECTED
from calibrant.outcomes.distributions import DistributionAssessment
from calibrant.outcomes.quantiles import QuantileAssessment
from calibrant.plotting.artists import band, line, points, straight
from calibrant.plotting.diagram import Diagram, Style
from calibrant.plotting.frame import Frame

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class QuantileDiagram(Diagram):
    """Reliability diagram of quantile forecasts: of all levels, or of one given the forecast.

    Attributes
    ----------
    found : QuantileAssessment
        Coverage at each level, and the isotonic quantile regression of each.
    level : float or None
        None: observed coverage against the level, with intervals. A level: the quantile of the outcome given
        the forecast (isotonic regression) against the forecast of this level.
    """

    kind, source = "quantiles", "found"

    found: QuantileAssessment
    level: float | None = None

    @property
    def label(self) -> str:
        """Test of all levels as text."""
        return p_equation(self.found.p_value)

    def __repr__(self) -> str:
        shown = "" if self.level is None else f"level {self.level:g}, "
        return f"QuantileDiagram({shown}{self.label}, n={self.found.n})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """Level, coverage and interval; or forecast and the quantile given it."""
        if self.level is None:
            names = ("level", "coverage", "low", "high")
            return {k: np.array([getattr(one, k) for one in self.found.levels]) for k in names}
        one = next(one for one in self.found.levels if one.level == self.level)
        return {"forecast": one.forecast, "recalibrated": one.recalibrated}

    def numbers(self) -> dict[str, Any]:
        """The level that is shown."""
        return {"shown_level": self.level}

    def frame(self) -> Frame:
        """Shares of outcomes, or values of forecasts and outcomes, on both axes."""
        finding = MISCALIBRATED if self.found.miscalibrated else UNDETECTED
        texts: dict[str, Any] = {
            "title": finding.capitalize(),
            "subtitle": f"{self.label}, n = {self.found.n:,}",
            "muted": not self.found.miscalibrated,
            "square": True,
        }
        if self.level is None:
            return Frame(
                **texts,
                xlabel="Level",
                ylabel="Observed coverage",
                legend={"points": "This model", "diagonal": "Calibrated"},
            )
        low, high = self._limits()
        return Frame(
            **texts,
            xlabel=f"Forecast of the {self.level:g} quantile",
            ylabel=f"{self.level:g} quantile given the forecast",
            xlim=(low, high),
            ylim=(low, high),
            legend={"curve": "This model", "diagonal": "Calibrated"},
        )

    def _limits(self) -> tuple[float, float]:
        values = np.concatenate(list(self.columns().values()))
        low, high = float(values.min()), float(values.max())
        room = 0.04 * (high - low) or 1.0
        return low - room, high + room

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """The diagonal, and coverage with intervals or the curve of one level."""
        drawn: dict[str, list[Any]] = {}
        ends = (0.0, 1.0) if self.level is None else self._limits()
        if not style.beside_others:
            drawn["diagonal"] = [straight(ax, style.theme, ends, ends)]
        x, y, *interval = self.columns().values()
        if self.level is None:
            drawn["points"] = points(ax, x, y, *interval, **style.of_point)
        else:
            drawn["curve"] = [line(ax, x, y, **style.of_line(1.8))]
        return drawn


@dataclass(frozen=True, eq=False, repr=False)
class PITDiagram(Diagram):
    """Histogram of the probability integral transform with its consistency band.

    Attributes
    ----------
    found : DistributionAssessment
        Bins and band.
    """

    kind, source = "pit", "found"

    found: DistributionAssessment

    @property
    def label(self) -> str:
        """Test of uniformity as text."""
        return p_equation(self.found.p_value)

    def __repr__(self) -> str:
        return f"PITDiagram({self.label}, n={self.found.n})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """Left edge of each bin, its relative frequency, and the band."""
        found = self.found
        left = np.arange(found.histogram.size) / found.histogram.size
        return {"pit": left, "frequency": found.histogram, "low": found.low, "high": found.high}

    def frame(self) -> Frame:
        """Relative frequency of the transform from 0 to 1."""
        title = self.found.verdict.partition("; ")[2] or UNDETECTED
        top = max(float(self.found.histogram.max()), float(self.found.high.max()))
        return Frame(
            title=title[0].upper() + title[1:],
            subtitle=f"{self.label}, n = {self.found.n:,}",
            xlabel="Probability integral transform",
            ylabel="Relative frequency",
            ylim=(0.0, 1.08 * top),
            legend={"histogram": "This model", "consistency_band": "Calibrated, by chance"},
            muted=not self.found.miscalibrated,
        )

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """Bars, the band of calibrated forecasts, and the line at 1."""
        found = self.found
        edges = np.linspace(0.0, 1.0, found.histogram.size + 1)
        bars = ax.stairs(
            found.histogram,
            edges,
            fill=True,
            color=style.color,
            alpha=0.5 if style.alpha is None else style.alpha,
            label=style.label,
            zorder=2,
        )
        drawn = {"histogram": [bars]}
        if not style.beside_others:
            x = np.repeat(edges, 2)[1:-1]
            ends = (np.repeat(found.low, 2), np.repeat(found.high, 2))
            drawn["consistency_band"] = [band(ax, x, *ends, **style.of_reference | {"zorder": 2.5})]
            drawn["diagonal"] = [straight(ax, style.theme, (1, 1), zorder=2.6)]
        return drawn


def quantile_diagram(found: QuantileAssessment, *, level: float | None = None) -> QuantileDiagram:
    """Reliability diagram of quantile forecasts.

    Parameters
    ----------
    found : QuantileAssessment
        What `quantiles.assess` gave.
    level : float, optional
        One of its levels: the quantile given the forecast, against the forecast. By default coverage at all
        levels.

    References
    ----------
    Gneiting, Wolffram, Resin, Kraus, Bracher, Dimitriadis, Hagenmeyer, Jordan, Lerch, Phipps & Schienle,
    *Model diagnostics and forecast evaluation for quantiles*, 2023.

    Examples
    --------
    >>> from calibrant import quantiles
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> found = quantiles.assess(y, {0.1: np.full(500, -1.2816), 0.9: np.full(500, 1.2816)})
    >>> quantile_diagram(found)
    QuantileDiagram(p = 0.91, n=500)
    """
    if not isinstance(found, QuantileAssessment):
        raise InputError(
            f"`found` must be a QuantileAssessment; it is {show_value(found)}.",
            argument="found",
            hint="Make one with `quantiles.assess`.",
        )
    known = [one.level for one in found.levels]
    if level is not None and level not in known:
        raise InputError(
            f"`level` must be one of {', '.join(f'{one:g}' for one in known)}; it is {show_value(level)}.",
            argument="level",
        )
    return QuantileDiagram(found, level)


def pit_diagram(found: DistributionAssessment) -> PITDiagram:
    """Histogram of the probability integral transform with the band of calibrated forecasts.

    Parameters
    ----------
    found : DistributionAssessment
        What `distributions.assess` gave; its bins are shown.

    Examples
    --------
    >>> from calibrant import distributions
    >>> rng = np.random.default_rng(0)
    >>> pit_diagram(distributions.assess(rng.normal(size=1000), mean=0.0, sd=0.5))
    PITDiagram(p < 0.001, n=1000)
    """
    if not isinstance(found, DistributionAssessment):
        raise InputError(
            f"`found` must be a DistributionAssessment; it is {show_value(found)}.",
            argument="found",
            hint="Make one with `distributions.assess`.",
        )
    return PITDiagram(found)
