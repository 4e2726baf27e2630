"""The decision curve: net benefit against the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE
from calibrant._format import aligned, decimals
from calibrant.data.rows import InputOptions
from calibrant.decisions.net_benefit import NetBenefit, net_benefit
from calibrant.io.from_data import sample_from
from calibrant.io.scan import ReadingOptions
from calibrant.plotting.artists import band, line, straight
from calibrant.plotting.diagram import Diagram, Style
from calibrant.plotting.frame import Frame
from calibrant.recalibration.learned_map import Recalibrator

Floats = NDArray[np.float64]

SMALLEST_RATE = 0.02
COLUMNS = (
    *("thresholds", "value", "low", "high", "treat_all"),
    *("recalibrated", "lost", "lost_low", "lost_high"),
)


@dataclass(frozen=True, eq=False, repr=False)
class DecisionCurve(Diagram):
    """Net benefit against the threshold, as data and as a picture.

    Attributes
    ----------
    benefit : NetBenefit
        Every curve and band, by name.
    """

    kind, source, scalars = "decision-curve", "benefit", ("label",)

    benefit: NetBenefit

    @property
    def lost(self) -> Floats:
        """Cost of miscalibration: the cross-fitted recalibrated curve less the raw one."""
        return self.benefit.lost

    @property
    def label(self) -> str:
        """The largest loss that is clearly above 0."""
        shown = self.benefit.lost_low > 0.0
        if not shown.any():
            return "no loss to miscalibration shown"
        return f"up to {decimals(float(self.benefit.lost[shown].max()))} lost to miscalibration"

    def __str__(self) -> str:
        note = [self.benefit.note] if self.benefit.note else []
        return "\n".join([self.label, "", aligned(self.benefit.rows(), left=()), *note])

    def columns(self) -> dict[str, NDArray[Any]]:
        """Every curve and band, by name."""
        return {name: getattr(self.benefit, name) for name in COLUMNS}

    def frame(self) -> Frame:
        """Thresholds, and net benefit up to the event rate."""
        rate = max(self.benefit.rate, SMALLEST_RATE)
        legend = {"curve": "This model", "treat_all": "Treat all"}
        if np.isfinite(self.benefit.recalibrated).any():
            legend["recalibrated"] = "This model, recalibrated"
        else:
            legend["treat_none"] = "Treat none"
        label = self.label
        return Frame(
            title=label[0].upper() + label[1:],
            subtitle=f"n = {self.benefit.n:,}",
            xlabel="Threshold probability",
            ylabel="Net benefit",
            ylim=(-0.275 * rate, 1.4 * rate),
            legend=legend,
            muted="no loss" in label,
        )

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """The model's curve and band, recalibrated, treat all and treat none."""
        of, theme = self.benefit, style.theme
        bottom = -0.25 * max(of.rate, SMALLEST_RATE)
        x = of.thresholds

        def above(values: Floats) -> Floats:
            return np.where(values >= bottom, values, np.nan)

        drawn: dict[str, list[Any]] = {}
        if not style.beside_others:
            dotted: dict[str, Any] = {"linewidth": 1.4, "linestyle": ":"}
            drawn["treat_none"] = [straight(ax, theme, (0, 0), x[[0, -1]], zorder=1.5)]
            drawn["treat_all"] = [straight(ax, theme, above(of.treat_all), x, **dotted)]
        low = np.maximum(of.low, bottom)
        drawn["confidence_band"] = [band(ax, x, low, np.maximum(of.high, low), **style.of_band)]
        drawn["curve"] = [line(ax, x, above(of.value), **style.of_line(1.8))]
        if np.isfinite(of.recalibrated).any() and not style.beside_others:
            dashed = {"color": theme.accent, "linewidth": 1.4, "linestyle": "--", "zorder": 2.8}
            drawn["recalibrated"] = [line(ax, x, above(of.recalibrated), **dashed)]
        return drawn


def decision_curve(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    thresholds: Any = None,
    cluster: Any = None,
    recalibrator: Recalibrator | None = None,
    confidence: float = CONFIDENCE,
    random_state: int = 0,
    **options: Unpack[ReadingOptions],
) -> DecisionCurve:
    """Net benefit against the threshold at which you act, and how much of it miscalibration costs.

    Parameters
    ----------
    y_true : array, Sketch, Sketches or NetBenefit
        Outcomes, 0 or 1; or a Sketch, and no `y_prob`; or sketches by cluster, as `scan(..., cluster=...)`
        gives them; or what a decision curve holds already.
    y_prob : array
        Predicted probabilities. You act where p ≥ t.
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true`, `y_prob` and `cluster` then name columns.
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
    random_state : int
        Seed of the folds and of the bands' draws.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Returns
    -------
    DecisionCurve
        Print it for a table; `.plot()`, `.save()`, `.to_frame()`.

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
    DecisionCurve(up to 0.1441 lost to miscalibration, n=4000)
    """
    if isinstance(y_true, NetBenefit):
        return DecisionCurve(y_true)
    reading: InputOptions = options
    if data is not None:
        y_true, y_prob, cluster, reading = sample_from(
            data, y_true, y_prob, options, cluster=cluster
        )
    return DecisionCurve(
        net_benefit(
            y_true,
            y_prob,
            thresholds=thresholds,
            cluster=cluster,
            recalibrator=recalibrator,
            confidence=confidence,
            random_state=random_state,
            **reading,
        )
    )
