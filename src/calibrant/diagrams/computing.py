"""From a sketch to the curves, bands and numbers of a smooth reliability diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_seed
from calibrant.data.sketch import Sketch
from calibrant.diagrams.bands import (
    Bounds,
    resampled_calibrated,
    resampled_regression,
    spread_out,
)
from calibrant.diagrams.curve import (
    Mesh,
    absolute_integral,
    fine_curves,
    mesh_of,
    regions_of,
    rows_nearby,
    sampled,
)
from calibrant.diagrams.drawable import require_count
from calibrant.diagrams.part import part_of
from calibrant.diagrams.values import distinct_values, raw_sample
from calibrant.errors import InputError
from calibrant.inference.interval import Interval, interval, require_confidence
from calibrant.measures.smooth_ece import SmoothECE, smooth_ece_result
from calibrant.smoothing.curves import SmoothCurves
from calibrant.smoothing.fixed_point import SMALLEST_BANDWIDTH

__all__ = ["computed", "drawn_bandwidth"]

# The curve is shown where so many rows lie within a bandwidth (a tenth of all, when there are few): with
# fewer, the band at even odds is wider than half of the axis. A stretch that nowhere has several times as
# many is a needle, and left out.
_LEAST_ROWS, _LEAST_OF_A_STRETCH = 10, 40
_TICKS = 200
# Of a long grid, less than this is not told apart (`mesh_of` asks for more of the part that is drawn).
_NARROWEST = 2e-5


def computed(
    sketch: Sketch,
    found: SmoothECE | None = None,
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
    found : SmoothECE, optional
        Their number, where it is known from the arrays themselves.
    bandwidth, confidence, resamples, curves, seed
        As in `reliability_diagram`.
    """
    _require_settings(confidence, resamples, curves, seed)
    result = smooth_ece_result(sketch, bandwidth=bandwidth) if found is None else found
    part, mesh = _laid_out(sketch, result.bandwidth)
    fine = fine_curves(part, mesh)
    seen = sampled(fine, mesh)
    rows = rows_nearby(part, seen.position, mesh.bandwidth / part.scale.length)
    shown = _shown(rows, sketch.n)
    prediction = part.scale.prediction(fine.position)
    bands = _bands(part, seen, shown, mesh, confidence, resamples, curves, seed)
    return {
        "grid": np.array(part.scale.prediction(seen.position)),
        "regression": seen.regression,
        "smoothed_predictions": seen.smoothed_predictions,
        "density": seen.density,
        "density_negative": seen.density - seen.events,
        "density_positive": seen.events,
        "rows": rows,
        "shown": shown,
        **bands,
        "smooth_ece": result,
        "interval": _interval(sketch, part, result, confidence, seed)
        if bandwidth is None
        else None,
        "ece": absolute_integral(fine.events - prediction * fine.density),
        "ece_guarantee": float(np.sqrt(2 / np.pi) * mesh.bandwidth * sketch.scale.steepness),
        "bandwidth": mesh.bandwidth,
        "regions": regions_of(fine, prediction, result.value),
        "raw": raw_sample(sketch, _TICKS, seed=seed),
        "values": distinct_values(sketch, confidence, bandwidth=mesh.bandwidth),
        "confidence": confidence,
        "resamples": resamples,
        "seed": seed,
        "sketch": sketch,
    }


def _shown(rows: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    """Where the rows nearby are enough for a curve."""
    least = int(np.clip(n // 10, 1, _LEAST_ROWS))
    shown = rows >= least
    if n < 10 * _LEAST_OF_A_STRETCH:
        return shown
    number = np.cumsum(np.diff(shown, prepend=False))  # odd inside a stretch, another one in each
    kept: NDArray[np.bool_] = shown & np.isin(number, number[rows >= _LEAST_OF_A_STRETCH])
    return kept if kept.any() else shown


def drawn_bandwidth(sketch: Sketch, bandwidth: float) -> float:
    """The bandwidth at which a picture is drawn when this one is asked for: no narrower than it shows."""
    return _laid_out(sketch, bandwidth)[1].bandwidth


def _laid_out(sketch: Sketch, bandwidth: float) -> tuple[Sketch, Mesh]:
    """The part of the grid that is drawn, and the points at which it is."""
    visible = max(bandwidth, _NARROWEST * sketch.scale.length)
    part = part_of(sketch, visible)
    return part, mesh_of(part, visible)


def _interval(
    sketch: Sketch, part: Sketch, result: SmoothECE, confidence: float, seed: int
) -> Interval:
    everything = part if part.n == sketch.n else sketch
    value = max(result.value, SMALLEST_BANDWIDTH * everything.scale.length)  # 0 has no bandwidth
    return interval(everything, value, confidence=confidence, seed=seed)


def _bands(
    sketch: Sketch,
    seen: SmoothCurves,
    shown: NDArray[np.bool_],
    mesh: Mesh,
    confidence: float,
    resamples: int,
    curves: int,
    seed: int,
) -> dict[str, Any]:
    """Bands of the shown part of the curve, and the first few resampled curves."""
    if resamples == 0:
        nothing = Bounds(np.full(shown.size, np.nan), np.full(shown.size, np.nan))
        kept = np.empty((0, shown.size))
        return {
            "band": nothing,
            "simultaneous": nothing,
            "consistency": nothing,
            "resampled": kept,
        }
    points, bandwidth = seen.position[shown], mesh.bandwidth
    drawn = resampled_regression(
        sketch, seen.regression[shown], points, bandwidth, resamples, seed=seed
    )
    calibrated = resampled_calibrated(
        sketch, seen.smoothed_predictions[shown], points, bandwidth, resamples, seed=seed
    )
    return {
        "band": drawn.pointwise(confidence).at(shown),
        "simultaneous": drawn.simultaneous(confidence).at(shown),
        "consistency": calibrated.pointwise(confidence).at(shown),
        "resampled": spread_out(np.clip(drawn.curves[:curves], 0.0, 1.0), shown),
    }


def _require_settings(confidence: float, resamples: int, curves: int, seed: int) -> None:
    require_confidence(confidence)
    require_seed(seed)
    require_count("resamples", resamples)
    require_count("curves", curves)
    if curves > resamples:
        raise InputError(
            f"`curves` are kept from the resamples, so there are at most {resamples}; got {curves}."
        )
