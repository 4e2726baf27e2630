"""The decision curve as a picture: net benefit against the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE
from calibrant._format import decimals
from calibrant.data.rows import InputOptions
from calibrant.decisions.net_benefit import NetBenefit, net_benefit
from calibrant.measures.result_record import rows_text
from calibrant.plotting.axis import Axis
from calibrant.plotting.diagram import Diagram, laid_out, series_of, who
from calibrant.plotting.legend_words import UNCERTAIN
from calibrant.plotting.looks import Color, as_name
from calibrant.plotting.panel import Band, Line, Mark, Panel
from calibrant.recalibration.learned_map import Recalibrator

__all__ = ["DecisionCurve", "decision_curve"]

COLUMNS = (
    *("thresholds", "value", "low", "high", "treat_all"),
    *("recalibrated", "lost", "lost_low", "lost_high", "bound"),
)


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(Diagram):
    """Net benefit against the threshold, as data and as a picture.

    Attributes
    ----------
    benefit : NetBenefit
        Every curve and band, by name.
    """

    benefit: NetBenefit

    def __post_init__(self) -> None:
        """The curves are read-only already."""

    @property
    def thresholds(self) -> NDArray[np.float64]:
        """Where somebody would act."""
        return self.benefit.thresholds

    @property
    def net_benefit(self) -> NDArray[np.float64]:
        """Net benefit of acting where p ≥ t."""
        return self.benefit.value

    @property
    def lost(self) -> NDArray[np.float64]:
        """What miscalibration costs: the cross-fitted recalibrated curve less the raw one."""
        return self.benefit.lost

    @property
    def label(self) -> str:
        """The number as the picture writes it."""
        shown = self.benefit.lost_low > 0.0
        if not shown.any():
            return "no loss to miscalibration shown"
        return f"up to {decimals(float(self.benefit.lost[shown].max()))} lost to miscalibration"

    def __repr__(self) -> str:
        return f"DecisionCurve({self.label}, {rows_text(self.benefit.n, self.benefit.dropped)})"

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = [
            "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
            for row in rows
        ]
        return "\n".join(
            [self.label, "", *lines, *([self.benefit.note] if self.benefit.note else [])]
        )

    def rows(self) -> list[list[str]]:
        """A table of at most ten thresholds, header first."""
        return self.benefit.rows()

    def columns(self) -> dict[str, NDArray[Any]]:
        """Every curve and band, by name."""
        names = [
            "thresholds",
            "value",
            "low",
            "high",
            "treat_all",
            "recalibrated",
            "lost",
            "lost_low",
            "lost_high",
            "bound",
        ]
        return {name: getattr(self.benefit, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        return {"kind": "decision-curve", "label": self.label, **self.benefit.to_dict()}

    def panel(self, *, name: str = "", color: Color | None = None) -> Panel:
        """The marks of the picture: the model's curve and band, recalibrated, treat all and treat none."""
        name = as_name(name)
        series, benefit = series_of(name), self.benefit
        x = benefit.thresholds
        bottom = -0.25 * max(benefit.rate, 0.02)
        marks: list[Mark] = [
            Line(key="treat none", ink="faint", x=x, y=np.zeros_like(x), says="act never"),
            Line(
                key="treat all",
                ink="neutral",
                x=x,
                y=np.where(benefit.treat_all >= bottom, benefit.treat_all, np.nan),
                dash="dotted",
                says="act always",
            ),
            Band(
                key="interval",
                ink="neutral",
                x=x,
                low=np.maximum(benefit.low, bottom),
                high=np.clip(benefit.high, bottom, 1.3 * max(benefit.rate, 0.02)),
                says=UNCERTAIN,
            ),
            Line(
                key="curve",
                series=series,
                x=x,
                y=np.where(benefit.value >= bottom, benefit.value, np.nan),
                details={"threshold": x, "net benefit": benefit.value, "lost": benefit.lost},
                says=f"{who(name)}, as it is",
            ),
        ]
        if np.isfinite(benefit.recalibrated).any():
            marks.append(
                Line(
                    key="recalibrated",
                    ink="accent",
                    x=x,
                    y=np.where(benefit.recalibrated >= bottom, benefit.recalibrated, np.nan),
                    dash="dashed",
                    says="after recalibration",
                )
            )
        top = 1.4 * max(benefit.rate, 0.02)  # no net benefit is above the event rate
        axes = (
            Axis("threshold probability", -0.02, 1.02),
            Axis("net benefit", 1.1 * bottom, top),
        )
        notes = [self.label, f"n = {benefit.n:,}"]
        return laid_out(marks, axes, notes, name=name, color=color)


def decision_curve(
    y_true: Any,
    y_prob: Any = None,
    *,
    thresholds: Any = None,
    cluster: Any = None,
    recalibrator: Recalibrator | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    **options: Unpack[InputOptions],
) -> DecisionCurve:
    """Net benefit against the threshold at which you act, and how much of it miscalibration costs.

    Parameters
    ----------
    y_true : array, Sketch, Sketches or NetBenefit
        Outcomes, 0 or 1; or a Sketch, and no `y_prob`; or sketches by cluster, as `scan(..., cluster=...)`
        gives them; or what a decision curve holds already.
    y_prob : array
        Predicted probabilities. You act where p ≥ t.
    thresholds : float or several, default 0.01 to 0.99
        Each strictly between 0 and 1.
    cluster : array, optional
        What makes rows dependent: bands and folds are then those of clusters. With Sketches, the name
        of the column.
    recalibrator : Recalibrator, optional
        The map that is learned and judged on other rows; by default the one of `calibrant recalibrate`,
        which leaves predictions alone where the rows give no reason to change them.
    confidence : float
        Confidence of the bands, each of which holds a whole curve.
    seed : int
        Seed of the folds and of the bands' draws.
    **options
        How to read the arrays (see `InputOptions`).

    Returns
    -------
    DecisionCurve
        Print it for a table; `.plot()`, `.chart()`, `.save()`, `.to_frame()`.

    Notes
    -----
    Net benefit is TP/n - FP/n · t/(1 - t): true positives, less false ones at the rate at which you would
    exchange them if t is where you are undecided. A recalibrated model never has less of it than the raw
    one, for the right map; what can be learned from the rows at hand may have a little less. The bands take
    the maps as given.

    References
    ----------
    Vickers and Elkin, *Decision curve analysis*, 2006; Van Calster and Vickers, *Calibration of risk
    prediction models: impact on decision-analytic performance*, 2015.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> decision_curve(rng.random(4000) < p**3, p)
    DecisionCurve(up to 0.1... lost to miscalibration, n=4000)
    """
    if isinstance(y_true, NetBenefit):
        return DecisionCurve(y_true)
    return DecisionCurve(
        net_benefit(
            y_true,
            y_prob,
            thresholds=thresholds,
            cluster=cluster,
            recalibrator=recalibrator,
            confidence=confidence,
            seed=seed,
            **options,
        )
    )
