"""The smooth reliability diagram: numbers of a curve with its bands, and their artists."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import (
    CONFIDENCE,
    require_choice,
    require_confidence,
    require_flag,
    require_number,
)
from calibrant.data.cell_sums import DEFAULT_NODES
from calibrant.data.points import Points
from calibrant.data.rows import InputOptions
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import CalibrantWarning, InputError, TooFewRows
from calibrant.inference.assess import assess
from calibrant.inference.assessment import Assessment
from calibrant.io.from_data import sample_from
from calibrant.io.scan import ReadingOptions
from calibrant.measures.smooth_ece import SmoothECE, smooth_ece_result
from calibrant.plotting.artists import (
    at_points,
    band,
    bars,
    drawn_points,
    points,
    weighted_line,
)
from calibrant.plotting.diagram import Diagram, Style, reference
from calibrant.plotting.frame import (
    DISTRIBUTION,
    Frame,
    legend_of,
    probability_frame,
    probability_limits,
)
from calibrant.plotting.neighborhoods import (
    Clumps,
    Curve,
    neighborhoods,
)
from calibrant.plotting.verdict import Verdict, number_text, verdict_of

Floats = NDArray[np.float64]

NODES_OF_LONG_SCALES = 1 << 20
"""Scales other than the probabilities are long, and rows use a small part."""
NARROWEST = 1e-5
"""Bandwidth below which nothing is told apart, in units of the scale's length; SmoothECE may be 0."""


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityDiagram(Diagram):
    """Data of a smooth reliability diagram; `plot` and `save` draw it.

    The curve joins the means of prediction and outcome in kernel neighbourhoods. A neighbourhood is as wide
    as SmoothECE's bandwidth, or wider where that holds fewer than about 40 effective rows or so few that
    noise turns the curve (the standard error of its slope is above 0.15); where even the widest one (0.12)
    holds too few, there is no curve. Groups of rows outside it are points with intervals.

    Attributes
    ----------
    curve : Curve
        The curve with its bands; `columns` has it as a table.
    points : Clumps
        Groups of rows that are shown as points.
    smooth_ece : SmoothECE
        The number, with a bound on its numerical error.
    widened : float
        Share of the rows that are drawn wider than SmoothECE's bandwidth. Where it is 0, the area between
        curve and diagonal, weighted by the share of rows, is SmoothECE; `area` has it in any case.
    confidence : float
        Of the confidence band at each point, and of the consistency band on the whole.
    bandwidth : float or None
        The one that was asked for; None where it varies.
    sketch : Sketch
        The rows.
    assessment : Assessment or None
        Interval and test of the number; None at a bandwidth that was asked for.

    Notes
    -----
    The confidence band is pointwise: at each prediction it holds the population's curve, smoothed as this one
    is; what smoothing bends, it bends in both. The consistency band is simultaneous: all of the curve and of
    the points of a calibrated sample stay inside. Its level is that of the largest normal deviation along the
    curve (Sun and Loader, *Simultaneous confidence bands for linear regression and smoothing*, 1994). At the
    ends of the rows the curve is a local line, so that it reaches them.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> diagram = reliability_diagram(rng.random(1000) < p**1.5, p)
    >>> print(diagram.label)
    SmoothECE 0.082 (95% CI 0.046 to 0.105)
    >>> list(diagram.plot().artists)
    ['consistency_band', 'diagonal', 'histogram', 'confidence_band', 'curve']
    """

    kind = "reliability"
    table = (
        *("prediction", "observed", "low", "high", "consistency_low", "consistency_high"),
        *("effective_rows", "weight", "bandwidth", "position", "drawn"),
    )

    curve: Curve
    points: Clumps
    smooth_ece: SmoothECE
    confidence: float
    bandwidth: float | None
    sketch: Sketch
    bands: bool = True
    attributes: bool = False
    given: Assessment | None = None
    design_effect: float = 1.0

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.smooth_ece.n

    @property
    def dropped(self) -> Mapping[str, int]:
        """Rows that were left out, by reason."""
        return self.smooth_ece.dropped

    @property
    def widened(self) -> float:
        """Share of the rows drawn wider than SmoothECE's bandwidth."""
        return self.curve.widened

    @property
    def area(self) -> float:
        """Area between curve and diagonal, weighted by the share of rows."""
        return self.curve.area

    @cached_property
    def rows(self) -> Points:
        """The rows, as distinct predictions."""
        return Points.of(self.sketch)

    @property
    def weight(self) -> Floats:
        """Weight of the rows at each distinct prediction."""
        return np.asarray(self.rows.mass.sum(axis=1))

    @cached_property
    def assessment(self) -> Assessment | None:
        """Interval and test of the number, computed when first asked for.

        None at a bandwidth of your own, and of a single row.
        """
        if self.given is not None or self.bandwidth is not None:
            return self.given
        try:
            with warnings.catch_warnings():  # a picture is no place to warn of the rows
                warnings.simplefilter("ignore", CalibrantWarning)
                return assess(self.sketch, confidence=self.confidence)
        except TooFewRows:
            return None

    @cached_property
    def verdict(self) -> Verdict:
        """The finding, in one line and in a few words; empty at a bandwidth of your own."""
        if self.assessment is None:
            few = "" if self.bandwidth is not None else "Too few rows to tell"
            return Verdict(few, few.lower(), not few)
        low, high = self.limits
        found = verdict_of(self.assessment, self.curve, high - low)
        if found.clear and self.assessment.direction.backwards:
            return Verdict("Inverted: events fall as predictions rise", "inverted", True)
        return found

    @property
    def label(self) -> str:
        """The number with its interval."""
        return f"SmoothECE {self._number(f'{100 * self.confidence:g}% CI ')}"

    @property
    def short_label(self) -> str:
        """The number with its interval, without their names."""
        return self._number("")

    def _number(self, name: str) -> str:
        value = number_text(self.smooth_ece.value)
        if self.assessment is None:
            return value if self.bandwidth is None else f"{value} at bandwidth {self.bandwidth:.3g}"
        interval = self.assessment.interval
        return f"{value} ({name}{number_text(interval.low)} to {number_text(interval.high)})"

    def __repr__(self) -> str:
        wider = f", {self.widened:.0%} drawn wider" if self.widened else ""
        return f"ReliabilityDiagram({self.label}, n={self.n}{wider})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """The points of the curve, by name; `drawn` tells where there is a line."""
        return {name: getattr(self.curve, name) for name in self.table}

    def numbers(self) -> dict[str, Any]:
        """SmoothECE, its interval, and what the curve is made of."""
        names = ("smooth_ece", "area", "bandwidth", "confidence", "n", "dropped")
        return {
            **{name: getattr(self, name) for name in names},
            "interval": None if self.assessment is None else self.assessment.interval,
            "verdict": self.verdict.sentence,
            "drawn_wider": self.widened,
            "left_out": self.curve.left_out,
            "points": vars(self.points),
        }

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Ends of both axes."""
        curve, of = self.curve, self.points
        shown = np.where(curve.drawn, curve.observed, np.nan)
        error = np.nan_to_num(np.abs(curve.observed - curve.prediction)) * curve.weight
        return probability_limits(
            self.rows.p,
            self.weight,
            np.concatenate([curve.prediction, of.prediction, of.prediction]),
            np.concatenate([shown, of.low, of.high]),
            np.concatenate([error, np.zeros(2 * of.rows.size)]),
        )

    def frame(self) -> Frame:
        """Title, labels, limits and legend of a picture of its own."""
        legend = {"curve": "This model", "diagonal": "Perfect calibration"}
        if self.bands:
            legend = legend_of_several([self])
        if left_out := round(self.curve.left_out * self.n):
            kind = "curve" if self.curve.drawn.any() else "point"
            legend["histogram"] = f"{DISTRIBUTION}; {left_out:,} too sparse for a {kind}"
        return probability_frame(
            self.limits,
            legend,
            title=self.verdict.sentence,
            subtitle=f"{self.label}, n = {self.n:,}",
            muted=not self.verdict.clear,
        )

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """Bands, diagonal, histogram, curve and points."""
        drawn: dict[str, list[Any]] = {}
        of, some = self.points, drawn_points(self.curve.drawn)
        continuous = some.size > 0
        values = {name: at_points(column, some) for name, column in self.columns().items()}
        x, (bottom, top) = values["prediction"], self.limits
        if not style.beside_others:
            grey, span = style.of_reference, top - bottom
            shades = []
            if self.bands and continuous:
                both = (values["consistency_low"], values["consistency_high"])
                shades.append(band(ax, x, *np.clip(both, bottom, top), **grey))
            if self.bands and of.prediction.size:
                low, high = np.clip((of.consistency_low, of.consistency_high), bottom, top)
                shades.append(bars(ax, of.prediction, low, high, 0.04 * span, **grey))
            if shades:
                drawn["consistency_band"] = shades
            rate = self.rows.base_rate if self.attributes else None
            rows = (self.rows.p, self.weight)
            drawn |= reference(ax, style, rows, self.limits, rate)
        look = style.of_point
        if continuous:
            if self.bands:
                both = (values["low"], values["high"])
                shade = band(ax, x, *np.clip(both, bottom, top), **style.of_band)
                drawn["confidence_band"] = [shade]
            density = at_points(self.curve.density, some)
            share = density / np.nanmax(density)
            curve = weighted_line(ax, x, values["observed"], share, **style.of_line())
            drawn["curve"] = [curve]
            look.pop("label", None)
        if of.prediction.size and not (continuous and style.beside_others):
            low, high = (of.low, of.high) if self.bands else (of.observed, of.observed)
            size = 14.0 + 26.0 * np.sqrt(of.rows / of.rows.max())
            drawn["points"] = points(ax, of.prediction, of.observed, low, high, size=size, **look)
        return drawn


def legend_of_several(diagrams: Sequence[ReliabilityDiagram]) -> dict[str, str]:
    """Texts of the model's artists and of the diagonal's, for all diagrams of a picture."""
    line = any(one.curve.drawn.any() for one in diagrams)
    dots = any(one.points.rows.size for one in diagrams)
    evidence = " and ".join(["band"] * line + ["intervals"] * dots)
    keys = "curve+confidence_band+points"
    return legend_of(keys, diagrams[0].confidence, evidence, where="whole curve")


class DiagramOptions(ReadingOptions, total=False):
    """Keywords of `reliability_diagram` that functions of several diagrams hand on."""

    bandwidth: float | Literal["smooth_ece"] | None
    scale: str | Scale | None
    confidence: float
    bands: bool
    design_effect: float
    attributes: bool


def reliability_diagram(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    assessment: Assessment | None = None,
    bandwidth: float | Literal["smooth_ece"] | None = None,
    scale: str | Scale | None = None,
    confidence: float = CONFIDENCE,
    bands: bool = True,
    design_effect: float = 1.0,
    attributes: bool = False,
    **options: Unpack[ReadingOptions],
) -> ReliabilityDiagram:
    """Smooth reliability diagram, as data that draws itself.

    Parameters
    ----------
    y_true : array or Sketch
        Outcomes, 0 or 1; or a Sketch, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true`, `y_prob` and `sample_weight` then name columns.
    assessment : Assessment, optional
        The assessment of a Sketch: its number, interval and confidence are used as they are.
    bandwidth : float or "smooth_ece", optional
        One bandwidth for all rows: SmoothECE's, which gives the figure of the paper, or your own. By default
        the largest, at each place, of SmoothECE's, the one that holds about 40 effective rows, and the one
        from which on the slope's standard error is at most 0.15.
    scale : str or Scale, default "probability"
        Where the smoothing happens.
    confidence : float
        Of both bands.
    bands : bool
        False for dependent rows whose design effect is not known.
    design_effect : float
        Variance of a mean of your rows over that of independent ones, as 1 + (m - 1) ICC for clusters of m
        rows; effective numbers of rows are divided by it.
    attributes : bool
        Add climatology, the line of no skill and the area with skill (the attributes diagram).
    **options
        How to read the arrays: `sample_weight`, `pos_label`, `from_logits`, `from_logprobs`, `percent`,
        `labels`, `on_invalid`, `multiclass`, `classes` (see `calibrant.data.InputOptions`).

    Returns
    -------
    ReliabilityDiagram
        With `plot`, `save`, `to_frame` and `to_dict`.

    References
    ----------
    Błasiok and Nakkiran, *Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing*, ICLR 2024.

    Examples
    --------
    >>> diagram = reliability_diagram([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 0.9])
    >>> round(diagram.smooth_ece.value, 3), diagram.widened
    (0.118, 1.0)
    """
    of_sketch = isinstance(y_true, Sketch)
    if assessment is not None:
        apart = bandwidth is not None or scale is not None or not of_sketch
        if apart or not isinstance(assessment, Assessment):
            raise InputError(
                "`assessment` goes with a Sketch of its rows, at its own bandwidth and scale.",
                argument="assessment",
                hint="Leave out `bandwidth`, `scale` and arrays.",
            )
        confidence = assessment.confidence
    require_confidence(confidence)
    require_flag("bands", bands)
    if data is not None:
        y_true, y_prob, _, reading = sample_from(data, y_true, y_prob, options, scale=scale)
    else:
        reading = cast(InputOptions, options)
    require_number("design_effect", design_effect, 0.0)
    own = None
    if isinstance(bandwidth, str):
        require_choice("bandwidth", bandwidth, ("smooth_ece",))
    elif bandwidth is not None:
        own = require_number("bandwidth", bandwidth, 0.0)
    short = scale is None or of_sketch or as_scale(scale, base_rate=0.5) == PROBABILITY
    nodes = DEFAULT_NODES if short else NODES_OF_LONG_SCALES
    sketch = as_sketch(y_true, y_prob, scale=scale, nodes=nodes, **reading)
    number = smooth_ece_result(sketch, bandwidth=own)
    rows = Points.of(sketch)
    narrowest = max(number.bandwidth, NARROWEST * float(sketch.scale.length))
    curve, clumps = neighborhoods(
        rows,
        narrowest,
        widen=bandwidth is None,
        confidence=confidence,
        design_effect=design_effect,
    )
    return ReliabilityDiagram(
        curve=curve,
        points=clumps,
        smooth_ece=number,
        confidence=float(confidence),
        bandwidth=own,
        sketch=sketch,
        bands=bands and (assessment is None or assessment.clusters is None),
        attributes=attributes,
        given=assessment,
        design_effect=design_effect,
    )
