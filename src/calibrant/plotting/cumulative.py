"""The cumulative diagram: miscalibration as slope, without bins or bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_confidence
from calibrant._format import decimals, p_equation
from calibrant.data.points import as_points
from calibrant.data.rows import InputOptions
from calibrant.measures.cumulative import cumulative_differences
from calibrant.measures.result_record import rows_text
from calibrant.plotting.artists import band, line, straight
from calibrant.plotting.diagram import Diagram, Style
from calibrant.plotting.frame import Frame, legend_of

Floats = NDArray[np.float64]

DRAWN_POINTS = 1500


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
    consistency : float64[m + 1]
        Half width of the consistency band at each point.
    largest : float
        ECCE-MAD, the largest |difference|.
    range : float
        ECCE-R, the largest difference less the smallest.
    p_value : float
        How often calibrated predictions have an ECCE-R as large.
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> diagram = cumulative_diagram([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> [round(step, 3) for step in diagram.difference.tolist()]
    [0.0, -0.025, -0.125, -0.025, 0.0]
    """

    kind = "cumulative"
    table = ("fraction", "difference", "prediction", "consistency")
    scalars = ("p_value", "confidence", "n", "dropped")

    fraction: Floats
    difference: Floats
    prediction: Floats
    consistency: Floats
    largest: float
    range: float
    p_value: float
    confidence: float
    n: int
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The number as text."""
        return f"ECCE-R {decimals(self.range)}, {p_equation(self.p_value)}"

    def __repr__(self) -> str:
        rows = rows_text(self.n, self.dropped)
        return f"CumulativeDiagram(ECCE-R {decimals(self.range)}, ECCE-MAD {decimals(self.largest)}, {rows})"

    def numbers(self) -> dict[str, Any]:
        """ECCE and its significance."""
        return {"ecce_mad": self.largest, "ecce_range": self.range, **super().numbers()}

    def frame(self) -> Frame:
        """Shares of rows, and sums as large as the curve or its band."""
        both = np.concatenate([self.difference, self.consistency])
        reach = 1.1 * max(float(np.abs(both).max()), 1e-6)
        return Frame(
            title=self.label,
            subtitle=f"n = {self.n:,}",
            xlabel="Share of rows, lowest prediction first",
            ylabel="Cumulative observed − predicted",
            ylim=(-reach, reach),
            legend=legend_of(
                "curve", self.confidence, text="This model: falling where predictions are too high"
            ),
        )

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """The curve, level where the model is calibrated."""
        size = self.fraction.size
        kept = np.linspace(0, size - 1, min(size, DRAWN_POINTS)).astype(np.int64)
        kept = np.union1d(kept, [np.argmax(self.difference), np.argmin(self.difference)])
        x, reach = self.fraction[kept], self.consistency[kept]
        drawn: dict[str, list[Any]] = {}
        if not style.beside_others:
            drawn["consistency_band"] = [band(ax, x, -reach, reach, **style.of_reference)]
            drawn["diagonal"] = [straight(ax, style.theme, (0, 0))]
        curve = line(ax, x, self.difference[kept], **style.of_line(1.5))
        return {**drawn, "curve": [curve]}


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
        How to read the arrays (see `calibrant.data.InputOptions`).

    References
    ----------
    Arrieta-Ibarra, Gujral, Tannen, Tygert and Xu, *Metrics of calibration for probabilistic
    predictions*, 2022.

    Examples
    --------
    >>> cumulative_diagram([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 0.9])
    CumulativeDiagram(ECCE-R 0.1083, ECCE-MAD 0.0667, n=6)
    """
    require_confidence(confidence)
    rows = as_points(y_true, y_prob, **options)
    found = cumulative_differences(rows)
    weight = rows.mass.sum(axis=1)
    squared = weight if rows.squared is None else rows.squared

    def sums(steps: Floats) -> Floats:
        return np.append(0.0, np.cumsum(steps))

    reached = sums(weight)
    spread = np.sqrt(sums(squared * rows.p * (1 - rows.p))) / rows.total
    return CumulativeDiagram(
        fraction=reached / reached[-1],
        difference=sums(-rows.residuals),
        prediction=np.append(0.0, rows.p),
        consistency=NormalDist().inv_cdf((1 + confidence) / 2) * spread,
        largest=found.mad,
        range=found.range,
        p_value=found.range_p_value,
        confidence=float(confidence),
        n=rows.n,
        dropped=rows.dropped,
    )
