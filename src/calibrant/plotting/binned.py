"""The binned reliability diagram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_choice, require_confidence, require_count
from calibrant.data.points import Points, as_points
from calibrant.data.rows import InputOptions
from calibrant.measures.result_record import plain
from calibrant.plotting.artists import band, line, points
from calibrant.plotting.diagram import Diagram, Style, reference
from calibrant.plotting.frame import Frame, legend_of, probability_frame, probability_limits
from calibrant.plotting.neighborhoods import Clumps, rates
from calibrant.plotting.verdict import number_text

Floats = NDArray[np.float64]

DEFAULT_BINS = 5
"""As in scikit-learn's `calibration_curve`."""
MOST_BINS = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class BinnedDiagram(Diagram):
    """Observed frequency in bins of predictions; empty bins are NaN.

    Attributes
    ----------
    edges : float64[b + 1]
        Bin k holds edges[k] < p ≤ edges[k + 1]; the first one holds p = 0 too.
    bins : Clumps
        Mean prediction, observed frequency, effective rows and both intervals of each bin.
    ece : float
        Σ (weight of the bin) · |observed - prediction|.
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> diagram = binned_diagram([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], n_bins=2)
    >>> diagram.edges.tolist(), diagram.bins.observed.tolist()
    ([0.0, 0.5, 1.0], [0.0, 1.0])
    """

    scalars = ("ece", "strategy", "confidence", "n", "dropped")

    edges: Floats
    bins: Clumps
    ece: float
    strategy: str
    confidence: float
    n: int
    points: Points
    attributes: bool = False
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The number as text."""
        return f"ECE {number_text(self.ece)} in {self.edges.size - 1} bins"

    def columns(self) -> dict[str, NDArray[Any]]:
        """The bins, by name."""
        return {"left": self.edges[:-1], "right": self.edges[1:], **vars(self.bins)}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON; NaN becomes None."""
        return dict(plain({"kind": "binned", **self.numbers(), "bins": self.columns()}))

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of both axes."""
        of = self.bins
        error = np.nan_to_num(np.abs(of.observed - of.prediction)) * of.rows
        weight = self.points.mass.sum(axis=1)
        return probability_limits(self.points.p, weight, of.prediction, of.observed, error)

    def frame(self) -> Frame:
        """Axes of probabilities."""
        legend = legend_of("points+curve", self.confidence, "intervals")
        return probability_frame(self.limits, legend, title=self.label, subtitle=f"n = {self.n:,}")

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """A point for each bin with its interval, joined by a line."""
        of = self.bins
        used = of.rows > 0
        x, y = of.prediction[used], of.observed[used]
        drawn: dict[str, list[Any]] = {}
        if not style.beside_others:
            steps = np.repeat(self.edges, 2)[1:-1]
            low, high = np.repeat(of.consistency_low, 2), np.repeat(of.consistency_high, 2)
            drawn["consistency_band"] = [band(ax, steps, low, high, **style.of_reference)]
            rate = self.points.base_rate if self.attributes else None
            rows = (self.points.p, self.points.mass.sum(axis=1))
            drawn |= reference(ax, style, rows, self.limits, rate)
        drawn["points"] = points(ax, x, y, of.low[used], of.high[used], **style.of_point)
        drawn["curve"] = [line(ax, x, y, **{**style.of_line(1.2), "label": None})]
        return drawn


def binned_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    n_bins: int = DEFAULT_BINS,
    strategy: str = "uniform",
    confidence: float = CONFIDENCE,
    attributes: bool = False,
    **options: Unpack[InputOptions],
) -> BinnedDiagram:
    """Binned reliability diagram, as data that draws itself.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    n_bins : int, default 5
        How many, as in scikit-learn's `calibration_curve`.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or with an equal number of rows as far as ties allow.
    confidence : float
        Of the intervals and of the consistency band.
    attributes : bool
        Add climatology, the line of no skill and the area with skill (the attributes diagram).
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Examples
    --------
    >>> binned_diagram([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 1.0], n_bins=2)
    BinnedDiagram(ECE 0.108 in 2 bins, n=6)
    """
    require_choice("strategy", strategy, ("uniform", "quantile"))
    require_confidence(confidence)
    require_count("n_bins", n_bins, most=MOST_BINS)
    rows = as_points(y_true, y_prob, **options)
    edges = _edges(rows, int(n_bins), strategy)
    bins = rates(rows, np.searchsorted(edges[1:-1], rows.p), edges.size - 1, confidence)
    each = rows.mass.sum(axis=1)
    share = np.bincount(np.searchsorted(edges[1:-1], rows.p), each, minlength=edges.size - 1)
    gaps = np.nan_to_num(np.abs(bins.observed - bins.prediction))
    return BinnedDiagram(
        edges=edges,
        bins=bins,
        ece=float(np.sum(gaps * share) / rows.total),
        strategy=strategy,
        confidence=float(confidence),
        n=rows.n,
        points=rows,
        attributes=attributes,
        dropped=rows.dropped,
    )


def _edges(rows: Points, bins: int, strategy: str) -> Floats:
    """Edges of the bins of `calibrant.measures.binned_ece`, so that both give the same ECE."""
    if strategy == "uniform":
        return np.linspace(0.0, 1.0, bins + 1)
    mass = rows.mass.sum(axis=1)
    middle = (np.cumsum(mass) - 0.5 * mass) / rows.total
    last = np.flatnonzero(np.diff(np.minimum(middle * bins, bins - 1).astype(np.int64)))
    return np.concatenate([[0.0], (rows.p[last] + rows.p[last + 1]) / 2, [1.0]])
