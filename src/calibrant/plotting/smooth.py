"""The smooth reliability diagram: a curve whose area is the SmoothECE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE
from calibrant._format import decimals
from calibrant.data.cell_sums import DEFAULT_NODES
from calibrant.data.rows import InputOptions
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import InputError, Option
from calibrant.inference.assessment import Assessment
from calibrant.inference.direction import Region
from calibrant.inference.interval import Interval
from calibrant.inference.profile import Profiled
from calibrant.measures.smooth_ece import LARGEST_BANDWIDTH, SmoothECE, smooth_ece_result
from calibrant.plotting.bands import Bounds
from calibrant.plotting.diagram import Diagram, plain, series_of
from calibrant.plotting.looks import Color, as_name
from calibrant.plotting.panel import Panel
from calibrant.plotting.smooth_numbers import (
    DistinctValues,
    RawSample,
    computed,
    drawn_bandwidth,
    require_grid,
    settled_by,
)
from calibrant.plotting.smooth_panel import Truth, smooth_panel
from calibrant.plotting.verdict import UNSAID, Verdict, verdict_on

__all__ = ["ReliabilityDiagram", "reliability_diagram"]

Floats = NDArray[np.float64]

_NODES_ON_A_LONG_SCALE = 1 << 20  # of which the rows use a small part
_SMALLEST_WRITTEN = 2e-5
# The slider of a chart: bandwidths at these powers of √2 around the diagram's own.
_SLIDER = range(-4, 5)


@dataclass(frozen=True, eq=False, repr=False)
class ReliabilityDiagram(Diagram):
    """Data of a smooth reliability diagram; `plot`, `chart` and `save` draw it.

    Attributes
    ----------
    grid : float64[m]
        Positions t, on the scale of predictions, at which the curves are given.
    regression : float64[m]
        μ̂(t) = E[K(f, t) y] / E[K(f, t)], the Nadaraya-Watson regression of the outcome with the
        reflected kernel. NaN where there is no data to speak of.
    smoothed_predictions : float64[m]
        f̂(t) = E[K(f, t) f] / E[K(f, t)], the mean prediction near t: what μ̂ would be if the
        predictions were calibrated. The picture draws μ̂ against it.
    density, density_negative, density_positive : float64[m]
        δ̂(t) = E[K(f, t)], and its parts with outcome 0 and 1.
    rows : int64[m]
        Rows within one bandwidth of t.
    effective_rows : float64[m]
        (Σ K)² / Σ K²: how many equal rows would make a mean as sure. The curve fades where they are few.
    band, simultaneous : Bounds
        For the population's curve at the same bandwidth: at each point, and for the whole curve.
    consistency : Bounds
        What a calibrated model with these predictions would show, around f̂.
    resampled : float64[k, m]
        Individual resampled curves, as many as were asked for.
    smooth_ece : SmoothECE
        The number: ∫|μ̂ - f̂| δ̂, with a bound on its numerical error.
    interval : Interval or None
        For the population's SmoothECE; None at a bandwidth that was asked for.
    ece : float
        The diagram's own calibration error against the diagonal, ∫|μ̂ - t| δ̂ (the paper's smECE~).
    ece_guarantee : float
        The two differ by at most this: √(2/π) times the bandwidth.
    bandwidth : float
        The one that the picture is drawn with: that of `smooth_ece`, or two cells of the sketch where
        that is wider (`drawn_wider`, which the picture says).
    regions : tuple of Region
        The stretches of predictions that contribute most to SmoothECE.
    raw : RawSample
        Some of the rows, for the ticks.
    values : DistinctValues or None
        Observed rates at each prediction, when the predictor only emits a few values: then the curve
        between them is interpolation, and the points are the data.

    Notes
    -----
    The bands hold the population's curve, smoothed as this one is. They are not intervals for
    E[y | f] itself: what smoothing bends, it bends in both.

    On scales that put predictions of 0 and 1 at infinity, such rows are counted but not drawn.

    Examples
    --------
    >>> diagram = reliability_diagram([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 0.9])
    >>> diagram.regression.shape == diagram.smoothed_predictions.shape == diagram.grid.shape
    True
    >>> diagram.save("diagram.svg").name
    'diagram.svg'
    """

    grid: Floats
    regression: Floats
    smoothed_predictions: Floats
    density: Floats
    density_negative: Floats
    density_positive: Floats
    rows: NDArray[np.int64]
    effective_rows: Floats
    band: Bounds
    simultaneous: Bounds
    consistency: Bounds
    resampled: Floats
    smooth_ece: SmoothECE
    interval: Interval | None
    ece: float
    ece_guarantee: float
    bandwidth: float
    regions: tuple[Region, ...]
    raw: RawSample
    values: DistinctValues | None
    confidence: float
    resamples: int
    seed: int
    sketch: Sketch = field(repr=False)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.smooth_ece.n

    @property
    def dropped(self) -> Mapping[str, int]:
        """Rows that were left out, by reason."""
        return self.smooth_ece.dropped

    @property
    def label(self) -> str:
        """The number as the picture writes it."""
        value = self.smooth_ece.value
        places = 3 if value >= 0.01 else 4 if value >= 0.001 else 5
        tiny = value < _SMALLEST_WRITTEN  # of the order of its own numerical error
        text = f"average error {f'< {_SMALLEST_WRITTEN:.5f}' if tiny else f'{value:.{places}f}'}"
        if self.interval is None:
            return f"{text} at bandwidth {self.smooth_ece.bandwidth:.3g}"
        low, high = (decimals(end, places) for end in (self.interval.low, self.interval.high))
        return f"{text} ({low} to {high})"

    @property
    def said(self) -> Verdict:
        """What the picture shows, in words; nothing at a bandwidth that was asked for."""
        return UNSAID if self.interval is None else verdict_on(self, self.interval)

    @property
    def event_rate(self) -> float:
        """Share of the rows (or of their weight) with the event."""
        without, with_event = (column.sum() for column in self.sketch.weights.T)
        return float(with_event / (without + with_event))

    @property
    def drawn_wider(self) -> bool:
        """Whether the bandwidth of the number is narrower than the picture can be drawn with."""
        return self.bandwidth > self.smooth_ece.bandwidth

    @property
    def at_fixed_point(self) -> bool:
        """Whether the bandwidth is σ*, the one that equals its own error."""
        return self.interval is not None

    def __repr__(self) -> str:
        few = "" if self.values is None else f", {self.values.count}"
        value = decimals(self.smooth_ece.value, places=3)
        rows = f"bandwidth={self.bandwidth:.4g}, n={self.n}{few}"
        return f"ReliabilityDiagram(SmoothECE {value}, {rows})"

    def at(self, bandwidth: float, *, resamples: int | None = None) -> ReliabilityDiagram:
        """The diagram of the same rows at another bandwidth."""
        resamples = self.resamples if resamples is None else resamples
        fields = computed(
            self.sketch,
            bandwidth=bandwidth,
            confidence=self.confidence,
            resamples=resamples,
            curves=min(len(self.resampled), resamples),
            seed=self.seed,
        )
        return ReliabilityDiagram(**fields)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The curves, by name."""
        return {
            "prediction": self.grid,
            "regression": self.regression,
            "smoothed_prediction": self.smoothed_predictions,
            "density": self.density,
            "density_negative": self.density_negative,
            "density_positive": self.density_positive,
            "rows": self.rows,
            "effective_rows": self.effective_rows,
            "low": self.band.low,
            "high": self.band.high,
            "simultaneous_low": self.simultaneous.low,
            "simultaneous_high": self.simultaneous.high,
            "consistency_low": self.consistency.low,
            "consistency_high": self.consistency.high,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON; NaN becomes None."""
        out = {
            "kind": "smooth",
            "smooth_ece": self.smooth_ece.to_dict(),
            "interval": None if self.interval is None else asdict(self.interval),
            "ece": self.ece,
            "ece_guarantee": self.ece_guarantee,
            "bandwidth": self.bandwidth,
            "confidence": self.confidence,
            "resamples": self.resamples,
            "seed": self.seed,
            "n": self.n,
            "dropped": self.dropped,
            "regions": [asdict(region) for region in self.regions],
            "values": None if self.values is None else asdict(self.values),
            "raw": asdict(self.raw),
            "curves": self.columns(),
            "resampled": self.resampled,
        }
        return dict(plain(out))

    def panel(
        self,
        *,
        against: str = "prediction",
        name: str = "",
        color: Color | None = None,
        reference: str | None = "band",
        curve: str = "trail",
        band: str | None = "pointwise",
        density: str | None = "one",
        ticks: bool = False,
        axes: str = "auto",
        rare: float = 0.2,
        attributes: bool | Profiled = False,
        truth: Truth | None = None,
    ) -> Panel:
        """The marks of the picture.

        Parameters
        ----------
        against : {"prediction", "position"}
            Mean outcome against mean prediction, (f̂(t), μ̂(t)): a calibrated model lies on the diagonal.
            Or against the position t, as in the paper, where its reference bends at the ends.
        name : str
            Name of the model, written above its number.
        color : str or three numbers, optional
            Colour of the curve.
        reference : {"band", "diagonal", None}
            With the band that a calibrated model would stay in, the diagonal alone, or neither.
        curve : {"trail", "line"}
            A line whose width is the density of predictions, and which fades where rows are few; or a
            plain one.
        band : {"pointwise", "simultaneous", None}
            The band around the curve: for each point, or for the whole curve.
        density : {"one", "split", None}
            Where the predictions are: of all rows, or apart by outcome.
        ticks : bool
            A sample of the rows: with the event along the top, without along the bottom.
        axes : {"auto", "probability", "fit", "logit"}
            From 0 to 1; only as far as the rows go; or in log-odds. "auto" fits the axes where nearly
            all rows lie within `rare` of 0 or of 1, and shows a crowded end again, closer, in a box.
        rare : float
            How close to an end predictions must be to get an axis of their own.
        attributes : bool or Profiled
            Add the weather forecasters' overlay: climatology, the line of no skill, the area with skill.
            What `assess(..., profile="weather").profile` found adds its skill to the notes.
        truth : callable or pair of arrays, optional
            A true curve E[y | f] to draw beside the estimate.
        """
        look = {name: value for name, value in locals().items() if name != "self"}
        return smooth_panel(self, **look)

    def around(self) -> list[ReliabilityDiagram]:
        """The diagram among those at smaller and larger bandwidths, for the slider of a chart."""
        fewer = min(self.resamples, 200)
        wanted = (self.bandwidth * 2.0 ** (power / 2) for power in _SLIDER)
        drawn = [min(drawn_bandwidth(self.sketch, each), LARGEST_BANDWIDTH) for each in wanted]
        return [
            self if bandwidth == self.bandwidth else self.at(bandwidth, resamples=fewer)
            for bandwidth in drawn
        ]

    def chart(self, *, slider: bool = True, **options: Any) -> Any:
        """Draw with Altair: hover to read the curve, slide to see other bandwidths.

        Parameters
        ----------
        slider : bool
            Add a slider: bandwidths from a quarter to four times the diagram's own (marked 0).
        **options
            `theme`, `width` and `height`, and looks as in `panel`.
        """
        if not slider:
            return super().chart(**options)
        from calibrant.plotting.group import Diagrams

        name = as_name(options.pop("name", ""))
        return Diagrams({series_of(name): self}).chart(name=name, **options)


def reliability_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    assessment: Assessment | None = None,
    bandwidth: float | None = None,
    scale: str | Scale | None = None,
    confidence: float = CONFIDENCE,
    resamples: int = 1000,
    curves: int = 0,
    seed: int = 0,
    **options: Unpack[InputOptions],
) -> ReliabilityDiagram:
    """Smooth reliability diagram, as data that draws itself.

    Parameters
    ----------
    y_true : array or Sketch
        Outcomes, 0 or 1; or a Sketch, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    assessment : Assessment, optional
        The assessment of a Sketch: its number, interval, confidence and seed are used as they are.
    bandwidth : float, optional
        By default the one that equals its own error, σ* = smECE_σ*.
    scale : str or Scale, default "probability"
        Where the smoothing happens. On "logit" σ* is in log-odds, which is too narrow for a picture
        where the error is small: give a `bandwidth` of some tenths, or take "relative" for rare events.
    confidence : float
        Confidence of the bands.
    resamples : int
        How many draws of calibrated outcomes, for the consistency band; 0 leaves all bands out. They are
        drawn on the sketch, so their cost does not depend on the number of rows.
    curves : int
        How many of the resampled curves to keep and draw.
    seed : int
        The same input and seed give the same bytes.
    **options
        How to read the arrays: `sample_weight`, `pos_label`, `from_logits`, `percent`, `labels`,
        `on_invalid` (see `InputOptions`).

    References
    ----------
    Błasiok and Nakkiran, *Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing*, ICLR 2024.

    Examples
    --------
    >>> diagram = reliability_diagram([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 0.9])
    >>> diagram
    ReliabilityDiagram(SmoothECE 0.118, bandwidth=0.1178, n=6)
    >>> list(diagram.plot().artists)
    ['predictions', 'consistency', 'diagonal', 'band', 'curve', 'note', 'legend']
    """
    if assessment is not None:
        if bandwidth is not None or scale is not None or not isinstance(y_true, Sketch):
            raise InputError(
                "goes with a Sketch of its rows, at its own bandwidth and scale",
                argument="assessment",
                cure="Leave out {bandwidth}, scale and arrays.",
                bandwidth=Option("bandwidth"),
            )
        sketch = as_sketch(y_true, y_prob, **options)
        return ReliabilityDiagram(
            **computed(sketch, **settled_by(assessment), resamples=resamples, curves=curves)
        )
    known: SmoothECE | None = None
    if scale is not None and not isinstance(y_true, Sketch):
        require_grid(scale)
        # From arrays a scale may take the base rate, and the number does not depend on a grid.
        known = smooth_ece_result(y_true, y_prob, bandwidth=bandwidth, scale=scale, **options)
        scale = known.scale if isinstance(scale, str) else scale
    nodes = DEFAULT_NODES if known is None else _NODES_ON_A_LONG_SCALE
    fields = computed(
        as_sketch(y_true, y_prob, scale=scale, nodes=nodes, **options),
        known,
        bandwidth=bandwidth,
        confidence=confidence,
        resamples=resamples,
        curves=curves,
        seed=seed,
    )
    return ReliabilityDiagram(**fields)
