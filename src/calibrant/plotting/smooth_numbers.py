"""From a sketch to the curves, bands and numbers of a smooth reliability diagram.

Also the predictors that emit only a few values, and the rows behind the ticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, require_count, require_seed
from calibrant.data.cell_sums import FRACTION_BITS, over_outcomes
from calibrant.data.scales import Scale, as_scale
from calibrant.data.sketch import Sketch
from calibrant.errors import Function, InputError, Option
from calibrant.inference.assessment import Assessment
from calibrant.inference.direction import regions_of
from calibrant.inference.interval import Interval, interval, require_confidence
from calibrant.inference.resampling import cell_predictions
from calibrant.inference.residuals import ResidualGrid
from calibrant.measures.smooth_ece import SmoothECE, smooth_ece_result
from calibrant.plotting.bands import (
    Bounds,
    curve_bands,
    read_only,
    resampled_calibrated,
    resampled_regression,
    spread_out,
)
from calibrant.plotting.curve import (
    Mesh,
    absolute_integral,
    fine_curves,
    mesh_of,
    part_of,
    rows_nearby,
    sampled,
)
from calibrant.smoothing.curves import SmoothCurves, smooth_curves
from calibrant.smoothing.spectrum import SMALLEST_BANDWIDTH

__all__ = [
    "DistinctValues",
    "RawSample",
    "computed",
    "distinct_values",
    "drawn_bandwidth",
    "rate_interval",
    "raw_sample",
    "require_grid",
    "settled_by",
]

Floats = NDArray[np.float64]

_TICKS = 200
# The curve has 16 points to a bandwidth; a band is smooth enough with four.
_BAND_STEP = 4
# Of a long grid, less than this is not told apart (`mesh_of` asks for more of the part that is drawn).
_NARROWEST = 2e-5
# A predictor is said to emit few values when there are at most so many, half of them with so many
# rows each: not when most predictions are 0 or 1 but for rounding.
_FEW = 32
_ROWS_EACH = 4
# Values closer than this are one value written with float residue (1 - 0.8 and 0.2).
_SAME = 1e-6
# Float residue moves a mean by no more than this, in units of the fixed point of the sketch.
_RESIDUE = 2.0
# The curve is shown for a bandwidth around each row, so it ends between values so far from each other.
_WIDTHS_APART = 4.0


def computed(
    sketch: Sketch,
    known: SmoothECE | None = None,
    within: Interval | None = None,
    *,
    bandwidth: float | None,
    confidence: float,
    resamples: int,
    curves: int,
    seed: int,
) -> dict[str, Any]:
    """The fields of a ReliabilityDiagram, by name.

    Parameters
    ----------
    sketch : Sketch
        The rows.
    known : SmoothECE, optional
        Their number, where it is known already.
    within : Interval, optional
        Of the number, where that is known, too.
    bandwidth, confidence, resamples, curves, seed
        As in `reliability_diagram`.
    """
    _require_settings(confidence, resamples, curves, seed)
    result = smooth_ece_result(sketch, bandwidth=bandwidth) if known is None else known
    part, mesh = _laid_out(sketch, result.bandwidth)
    fine = fine_curves(part, mesh)
    seen = sampled(fine, mesh)
    rows = rows_nearby(part, seen.position, mesh.bandwidth / part.scale.length)
    prediction = part.scale.prediction(fine.position)
    bands = _bands(part, seen, mesh, confidence, resamples, curves, seed)
    return {
        "grid": np.array(part.scale.prediction(seen.position)),
        "regression": seen.regression,
        "smoothed_predictions": seen.smoothed_predictions,
        "density": seen.density,
        "density_negative": seen.density - seen.events,
        "density_positive": seen.events,
        "rows": rows,
        "effective_rows": _effective_rows(part, fine, mesh),
        **bands,
        "smooth_ece": result,
        "interval": _interval(sketch, part, result, confidence)
        if bandwidth is None and within is None
        else within,
        "ece": absolute_integral(fine.events - prediction * fine.density),
        "ece_guarantee": float(np.sqrt(2 / np.pi) * mesh.bandwidth * sketch.scale.steepness),
        "bandwidth": mesh.bandwidth,
        "regions": regions_of(
            sketch, ResidualGrid.of(sketch, mesh.bandwidth), result.value, mesh.bandwidth
        ),
        "raw": raw_sample(sketch, _TICKS, seed=seed),
        "values": distinct_values(sketch, confidence, bandwidth=mesh.bandwidth),
        "confidence": confidence,
        "resamples": resamples,
        "seed": seed,
        "sketch": sketch,
    }


def _effective_rows(sketch: Sketch, fine: SmoothCurves, mesh: Mesh) -> Floats:
    """(Σ K)² / Σ K² at each point: how many equal rows would make a mean as sure.

    The square of a Gaussian kernel is a narrower one; at the ends, where a kernel meets its own image,
    this counts up to twice as many.
    """
    narrower = mesh.bandwidth / np.sqrt(2.0)
    squares = smooth_curves(sketch, narrower, points=fine.position.size - 1).density
    skip = (fine.position.size - 1) // mesh.steps
    density, squares = (array[::skip][mesh.kept] for array in (fine.density, squares))
    total, weights = sketch.total_weight, float(sketch.squared_weights.sum())
    rows = total**2 / weights
    width = 2.0 * np.sqrt(np.pi) * mesh.bandwidth / sketch.scale.length
    known = squares > 1e-9 * squares.max()
    ratio = np.divide(density**2, squares, out=np.zeros_like(density), where=known)
    return np.asarray(np.clip(rows * width * ratio, 0.0, rows))


def settled_by(assessment: Assessment) -> dict[str, Any]:
    """What `computed` takes from an assessment: nothing is solved or tested a second time."""
    number = SmoothECE(
        value=assessment.smooth_ece,
        bandwidth=assessment.bandwidth,
        certificate=assessment.certificate,
        evaluations=0,
        n=assessment.n,
        dropped=assessment.dropped,
        scale=assessment.scale,
    )
    settings = {"confidence": assessment.confidence, "seed": 0}
    return {"known": number, "within": assessment.interval, "bandwidth": None, **settings}


def drawn_bandwidth(sketch: Sketch, bandwidth: float) -> float:
    """The bandwidth at which a picture is drawn when this one is asked for: no narrower than it shows."""
    return _laid_out(sketch, bandwidth)[1].bandwidth


def _laid_out(sketch: Sketch, bandwidth: float) -> tuple[Sketch, Mesh]:
    """The part of the grid that is drawn, and the points at which it is."""
    visible = max(bandwidth, _NARROWEST * sketch.scale.length)
    part = part_of(sketch, visible)
    return part, mesh_of(part, visible)


def _interval(sketch: Sketch, part: Sketch, result: SmoothECE, confidence: float) -> Interval:
    everything = part if part.n == sketch.n else sketch
    value = max(result.value, SMALLEST_BANDWIDTH * everything.scale.length)  # 0 has no bandwidth
    return interval(everything, value, confidence=confidence)


def _bands(
    sketch: Sketch,
    seen: SmoothCurves,
    mesh: Mesh,
    confidence: float,
    resamples: int,
    curves: int,
    seed: int,
) -> dict[str, Any]:
    """Bands wherever there is a curve, and the first few resampled curves."""
    shown = np.isfinite(seen.regression)
    if resamples == 0:
        nothing = Bounds(np.full(shown.size, np.nan), np.full(shown.size, np.nan))
        kept = np.empty((0, shown.size))
        return {
            "band": nothing,
            "simultaneous": nothing,
            "consistency": nothing,
            "resampled": kept,
        }
    some = _some_of(shown)
    points, bandwidth = seen.position[some], mesh.bandwidth
    regression = seen.regression[some]
    drawn = np.empty((0, points.size))
    if curves:
        drawn = resampled_regression(sketch, regression, points, bandwidth, curves, seed=seed)
    bands = curve_bands(sketch, regression, points, bandwidth, confidence=confidence)
    calibrated = resampled_calibrated(
        sketch, seen.smoothed_predictions[some], points, bandwidth, resamples, seed=seed
    )

    def between(values: Floats) -> Floats:
        return spread_out(np.interp(seen.position[shown], points, values), shown)

    def whole(bounds: Bounds) -> Bounds:
        return Bounds(between(bounds.low), between(bounds.high))

    kept = np.clip(drawn, 0.0, 1.0)
    return {
        "band": whole(bands.pointwise),
        "simultaneous": whole(bands.simultaneous),
        "consistency": whole(calibrated.pointwise(confidence)),
        "resampled": np.array([between(line) for line in kept]).reshape(len(kept), shown.size),
    }


def _some_of(shown: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Points at which bands are drawn by resampling, four to a bandwidth; lines run between them.

    With the first and the last of every stretch.
    """
    ends = np.diff(np.concatenate([[0], shown.astype(np.int8), [0]]))
    first, last = np.flatnonzero(ends[:-1] == 1), np.flatnonzero(ends[1:] == -1)
    return np.union1d(np.flatnonzero(shown)[::_BAND_STEP], np.concatenate([first, last]))


def _require_settings(confidence: float, resamples: int, curves: int, seed: int) -> None:
    require_confidence(confidence)
    require_seed(seed)
    require_count("resamples", resamples, least=0)
    require_count("curves", curves, least=0)
    if curves > resamples:
        raise InputError(
            "must not be more than {option}, of which they are kept",
            argument="curves",
            seen=curves,
            option=Option("resamples", resamples),
            cure="Ask for fewer curves, or for more resamples.",
        )


@dataclass(frozen=True, eq=False)
class DistinctValues:
    """Observed rates at the few values that a predictor emits.

    Attributes
    ----------
    prediction : float64[k]
        The values.
    rate : float64[k]
        Share of events among the rows with that prediction.
    low, high : float64[k]
        Interval for the true rate (Jeffreys).
    rows : int64[k]
        Rows with that prediction.
    """

    prediction: Floats
    rate: Floats
    low: Floats
    high: Floats
    rows: NDArray[np.int64]

    def __post_init__(self) -> None:
        read_only(self)

    @property
    def count(self) -> str:
        """How many there are, in words."""
        return f"{self.rows.size} distinct prediction{'s' if self.rows.size > 1 else ''}"


def distinct_values(
    sketch: Sketch, confidence: float, *, bandwidth: float = np.inf
) -> DistinctValues | None:
    """The values with their rates, or None when the predictor emits many.

    Few values count also where each has few rows, if the bandwidth (in units of the scale) is too narrow
    for the curve to join any two of them.
    """
    used = over_outcomes(sketch.weights) > 0.0
    p, weights = cell_predictions(sketch)[used], sketch.weights[used]
    first = np.flatnonzero(np.diff(p, prepend=-1.0) > _SAME)
    rows = np.add.reduceat(over_outcomes(sketch.counts[used]), first)
    if first.size > _FEW or not _one_value_a_cell(sketch):
        return None
    apart = np.diff(sketch.cells[used][first]) / sketch.nodes * sketch.scale.length
    joined = np.min(apart, initial=np.inf) < _WIDTHS_APART * bandwidth
    if first.size > 1 and joined and np.median(rows) < _ROWS_EACH:
        return None
    events = np.add.reduceat(weights[:, 1], first)
    squared = over_outcomes(np.add.reduceat(sketch.squared_weights[used], first))
    total = np.add.reduceat(over_outcomes(weights), first)
    rate = events / total
    low, high = rate_interval(rate, total**2 / squared, confidence)
    mean = np.add.reduceat(p * over_outcomes(weights), first) / total
    return DistinctValues(mean, rate, low, high, rows)


def _one_value_a_cell(sketch: Sketch) -> bool:
    """Whether nothing tells that rows of one cell differ.

    Rows at one offset have the same mean offset under both outcomes and, where there is one outcome, a
    sum that is a multiple of their number.
    """
    counts, offsets = sketch.counts, sketch.offsets
    mean = np.divide(offsets, counts, out=np.zeros(offsets.shape), where=counts > 0)
    both = (counts > 0).all(axis=1)
    same = np.abs(mean[:, 1] - mean[:, 0]) <= _RESIDUE
    whole = (offsets % np.maximum(counts, 1) == 0).all(axis=1)
    return bool(np.where(both, same, whole).all())


def rate_interval(rate: Floats, trials: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Jeffreys interval for a rate seen in so many trials; ends at 0 and 1 stay there."""
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    events = rate * trials
    low = betaincinv(events + 0.5, trials - events + 0.5, tail)
    high = betaincinv(events + 0.5, trials - events + 0.5, 1 - tail)
    return np.where(rate <= 0, 0.0, low), np.where(rate >= 1, 1.0, high)


@dataclass(frozen=True, eq=False)
class RawSample:
    """Some of the rows, drawn without replacement, to the resolution of the sketch.

    Attributes
    ----------
    prediction : float64[k]
        In increasing order.
    outcome : int8[k]
        0 or 1.
    """

    prediction: Floats
    outcome: NDArray[np.int8]

    def __post_init__(self) -> None:
        read_only(self)


def raw_sample(sketch: Sketch, size: int, *, seed: int) -> RawSample:
    """At most `size` rows of the sketch; all of them when there are no more."""
    rng = generator(seed, 3)
    few = sketch.n <= size
    rows = np.arange(sketch.n) if few else rng.choice(sketch.n, size, replace=False, shuffle=False)
    ends = np.cumsum(sketch.counts.ravel())
    slot = np.searchsorted(ends, np.sort(rows), side="right")
    cell, label = slot // 2, slot % 2
    offset = sketch.offsets[cell, label] / sketch.counts[cell, label] * 2.0**-FRACTION_BITS
    position = sketch.cells[cell] / sketch.nodes + offset
    prediction = np.array(sketch.scale.prediction(position))
    return RawSample(prediction, label.astype(np.int8))


def require_grid(scale: str | Scale) -> None:
    """Refuse a scale on which no curve can be drawn."""
    if scale != "relative" and not as_scale(scale).has_grid:
        raise InputError(
            "is too steep to be drawn: it puts predictions near 0 and 1 too far away",
            argument="scale",
            seen=as_scale(scale).name,
            cure="{number} has the number; draw it on the probability or logit scale.",
            number=Function("smooth_ece"),
        )
