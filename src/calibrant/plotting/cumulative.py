"""The cumulative diagram: miscalibration as slope, without bins or bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE
from calibrant._format import decimals
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points, as_points
from calibrant.data.rows import Dropped, InputOptions
from calibrant.inference.interval import require_confidence
from calibrant.measures.cumulative import cumulative_differences
from calibrant.measures.result_record import rows_text
from calibrant.plotting.axis import Axis
from calibrant.plotting.bands import Bounds
from calibrant.plotting.diagram import Diagram, laid_out, plain, series_of, who
from calibrant.plotting.legend_words import if_calibrated
from calibrant.plotting.looks import Color, as_name
from calibrant.plotting.panel import Band, Line, Mark, Panel, Trail
from calibrant.plotting.verdict import UNSAID, Verdict, verdict_on_rows

__all__ = ["CumulativeDiagram", "cumulative_diagram"]

Floats = NDArray[np.float64]

_DRAWN_POINTS = 1500


@dataclass(frozen=True, eq=False, repr=False)
class CumulativeDiagram(Diagram):
    """Sum of outcome minus prediction over the rows up to each one, in order of prediction.

    Attributes
    ----------
    fraction : float64[m + 1]
        Share of the rows (or of their weight) so far, from 0 to 1.
    difference : float64[m + 1]
        Mean over all rows of (y - f) for the rows so far. The slope between two points is the mean
        miscalibration of the rows between them: positive where events are more frequent than
        predicted.
    prediction : float64[m + 1]
        The prediction reached.
    consistency : Bounds
        Where a calibrated model would stay, at each point.
    largest : float
        ECCE-MAD, the largest |difference|.
    range : float
        ECCE-R, the largest difference less the smallest.
    p_value : float
        How often calibrated predictions have an ECCE-R as large.
    n : int
        Rows; `dropped` counts by reason those that were left out.
    said : Verdict
        What the smooth diagram of the same rows says; empty for Points.

    Examples
    --------
    >>> diagram = cumulative_diagram([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> [round(step, 3) for step in diagram.difference.tolist()]
    [0.0, -0.025, -0.125, -0.025, 0.0]
    """

    fraction: Floats
    difference: Floats
    prediction: Floats
    consistency: Bounds
    largest: float
    range: float
    p_value: float
    confidence: float
    n: int
    dropped: Mapping[str, int] = field(default_factory=Dropped)
    said: Verdict = UNSAID

    @property
    def label(self) -> str:
        """The number as the picture writes it."""
        return f"range of the sum {decimals(self.range)} (ECCE-R)"

    def __repr__(self) -> str:
        rows = rows_text(self.n, self.dropped)
        return f"CumulativeDiagram(ECCE-R {decimals(self.range)}, ECCE-MAD {decimals(self.largest)}, {rows})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """The curve, by name."""
        return {
            "fraction": self.fraction,
            "difference": self.difference,
            "prediction": self.prediction,
            "consistency_low": self.consistency.low,
            "consistency_high": self.consistency.high,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        out: dict[str, Any] = plain(
            {
                "kind": "cumulative",
                "ecce_mad": self.largest,
                "ecce_range": self.range,
                "p_value": self.p_value,
                "confidence": self.confidence,
                "n": self.n,
                "dropped": self.dropped,
                "curve": self.columns(),
            }
        )
        return out

    def panel(self, *, name: str = "", color: Color | None = None) -> Panel:
        """The marks of the picture: the curve, level where the model is calibrated."""
        name = as_name(name)
        series = series_of(name)
        keep = self._drawn()
        x, y = self.fraction[keep], self.difference[keep]
        low, high = self.consistency.low[keep], self.consistency.high[keep]
        level = Line(
            key="diagonal",
            ink="neutral",
            x=np.array([0.0, 1.0]),
            y=np.zeros(2),
            says="perfect calibration (falling: predicted too high)",
        )
        curve = Trail(
            key="curve",
            series=series,
            x=x,
            y=y,
            weight=np.full(x.size, 0.2),
            details={"prediction": self.prediction[keep], "share of rows": x, "cumulative": y},
            says=f"{who(name)}: outcomes minus predictions, summed up",
        )
        marks: tuple[Mark, ...] = (
            Band(
                key="consistency",
                ink="neutral",
                x=x,
                low=low,
                high=high,
                says=if_calibrated(self.confidence),
            ),
            level,
            curve,
        )
        reach = 1.15 * max(float(np.max(np.abs([y, low, high]))), 1e-6)
        both = (
            Axis("share of rows, lowest prediction first", -0.02, 1.02),
            Axis("outcomes minus predictions, summed up", -reach, reach),
        )
        notes = (self.label, f"n = {self.n:,}")
        return laid_out(marks, both, notes, name=name, color=color, verdict=self.verdict)

    def _drawn(self) -> NDArray[np.int64]:
        """Points to draw: evenly many, and both extremes."""
        even = np.linspace(0, self.fraction.size - 1, min(self.fraction.size, _DRAWN_POINTS))
        extremes = [np.argmax(self.difference), np.argmin(self.difference)]
        kept: NDArray[np.int64] = np.unique(np.append(even.astype(np.int64), extremes))
        return kept


def cumulative_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    confidence: float = CONFIDENCE,
    **options: Unpack[InputOptions],
) -> CumulativeDiagram:
    """Cumulative differences between outcome and prediction.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    confidence : float
        Confidence of the band in which a calibrated model stays at each single point.
    **options
        How to read the arrays (see `InputOptions`).

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu, *Metrics of calibration for probabilistic
    predictions*, 2022.

    Examples
    --------
    >>> cumulative_diagram([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 0.9])
    CumulativeDiagram(ECCE-R 0.1083, ECCE-MAD 0.0667, n=6)
    """
    from scipy.special import ndtri

    require_confidence(confidence)
    atoms = as_points(y_true, y_prob, **options)
    found = cumulative_differences(atoms)
    weight = over_outcomes(atoms.mass)
    reached, difference = _from_zero(weight), _from_zero(-atoms.residuals)
    spread = np.sqrt(_from_zero(_variances(atoms, weight))) / atoms.total
    reach = float(ndtri((1 + confidence) / 2)) * spread
    return CumulativeDiagram(
        fraction=reached / reached[-1],
        difference=difference,
        prediction=np.append(0.0, atoms.p),
        consistency=Bounds(-reach, reach),
        largest=found.mad,
        range=found.range,
        p_value=found.range_p_value,
        confidence=confidence,
        n=atoms.n,
        dropped=atoms.dropped,
        said=verdict_on_rows(y_true, y_prob, confidence, options),
    )


def _from_zero(steps: Floats) -> Floats:
    return np.append(0.0, np.cumsum(steps))


def _variances(atoms: Points, weight: Floats) -> Floats:
    """Variance of the outcomes at each atom, were they drawn from the predictions."""
    squared = weight if atoms.squared is None else atoms.squared
    variances: Floats = squared * atoms.p * (1 - atoms.p)
    return variances
