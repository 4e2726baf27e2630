"""The gap between the smooth calibration curve and the diagonal: its mean, quantiles and maximum."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.sketch import Sketch
from calibrant.inference.assess import assessment_of, counted
from calibrant.inference.clusters import ClusterResiduals, random_blocks
from calibrant.inference.profile import Quantity, Sample, Unavailable
from calibrant.profiles.cells import Cells

__all__ = ["gap_quantile", "mean_gap"]

Floats = NDArray[np.float64]

AUSTIN = "Austin and Steyerberg 2019"
HARRELL = "Harrell 2015"
SMOOTH = "Błasiok and Nakkiran 2023"
DRAWS = 2000
CELLS_TO_A_BANDWIDTH = 16
POINTS_TO_A_BANDWIDTH = 4
MOST_POINTS = 256
FEWEST = 0.01
"""Of the greatest density: where there are fewer rows, the curve is not looked at."""


@dataclass(frozen=True, eq=False)
class _Gaps:
    """|gap| along the curve, the share of the rows at each point, and a simultaneous band's reach."""

    gap: Floats
    share: Floats
    reach: Floats


def mean_gap(sample: Sample) -> Quantity:
    """The integrated calibration index of the smooth curve, which is SmoothECE."""
    found = sample.once(_on_probabilities).assessment
    return Quantity(
        "mean gap (ICI)",
        found.smooth_ece,
        found.interval.low,
        found.interval.high,
        found.p_value,
        bound=found.certificate.total,
        source=f"{AUSTIN}; smooth curve: {SMOOTH}",
    )


def _on_probabilities(sample: Sample) -> Sample:
    """The sample with its curve smoothed on the probability scale, where its gaps are defined.

    On another scale a single row far out has a neighbourhood of its own, and is its own curve.
    """
    if sample.sketch.scale.reflected:
        return sample
    if sample.pairs is None:
        raise Unavailable(
            "the gaps are those of the curve on the probability scale; this sketch is on another, so they "
            "need rows, or a sketch on the probability scale"
        )
    sketch, clusters, found = Sketch.from_rows(sample.pairs), None, sample.assessment
    if sketch.weighted and not sample.sketch.weighted:
        sketch = counted(sample.pairs, sketch)
    if sample.clusters is not None:
        clusters = ClusterResiduals.of(sketch.scale, sample.pairs, sample.clusters)
    assessment = assessment_of(
        sketch, clusters, margin=found.margin, confidence=found.confidence, seed=found.seed
    )
    return replace(sample, sketch=sketch, assessment=assessment, _memory={})


def gap_quantile(sample: Sample, name: str) -> Quantity:
    """E50, E90 or Emax: median, ninth decile or maximum of the gap, over the rows."""
    return sample.once(_gap_quantiles)[name]


def _gap_quantiles(sample: Sample) -> dict[str, Quantity]:
    """All of them, from one curve.

    The intervals follow from one band that holds the whole curve: every gap is at most the one seen and
    the band's reach, and at least the one seen less that, so the same is true of their quantiles.
    """
    found = _gaps(sample.once(_on_probabilities))
    names = {"E50": 0.5, "E90": 0.9, "Emax": 1.0}
    low, high = np.maximum(found.gap - found.reach, 0.0), found.gap + found.reach
    wide = {
        name: (_quantile(low, found.share, q), min(_quantile(high, found.share, q), 1.0))
        for name, q in names.items()
    }
    return {
        name: Quantity(
            name,
            _quantile(found.gap, found.share, q),
            *wide[name],
            source=f"{AUSTIN if q < 1.0 else HARRELL}; smooth curve: {SMOOTH}",
        )
        for name, q in names.items()
    }


def _quantile(values: Floats, share: Floats, q: float) -> float:
    if q >= 1.0:
        return float(values.max())
    order = np.argsort(values)
    upto = np.cumsum(share[order])
    return float(values[order][min(np.searchsorted(upto, q * upto[-1]), values.size - 1)])


def _gaps(sample: Sample) -> _Gaps:
    """Along the curve: a mesh of the scale where there are rows."""
    found, scale = sample.assessment, sample.sketch.scale
    bandwidth = max(found.bandwidth, found.noise_floor.value, scale.length / MOST_POINTS)
    nodes = 64
    while nodes < sample.sketch.nodes and nodes * bandwidth < CELLS_TO_A_BANDWIDTH * scale.length:
        nodes *= 2
    cells = Cells.of(sample.sketch.rebin(min(nodes, sample.sketch.nodes)))
    width = bandwidth / scale.length
    low, high = float(cells.position.min()), float(cells.position.max())
    count = int(np.clip((high - low) / width * POINTS_TO_A_BANDWIDTH, 2, MOST_POINTS)) + 1
    points = np.linspace(low, high, count)
    kernel = _kernel(points, cells.position, width, reflected=scale.reflected)
    share = cells.weight / cells.weight.sum()
    residual = cells.label - cells.p
    density = kernel @ share
    where = density > FEWEST * density.max()
    kernel, density = kernel[where] / density[where, None], density[where]
    gap = kernel @ (share * residual)
    influence = kernel * (residual[None, :] - gap[:, None])
    covariance = _covariance(sample, cells, influence)
    # Where only one outcome was seen, what was seen does not vary: calibrated outcomes would.
    rows = float(np.sum(cells.weight) ** 2 / _squared(cells).sum())
    least = (kernel**2 @ (share * cells.p * (1.0 - cells.p))) / rows
    error = np.sqrt(np.maximum(np.diag(covariance), least))
    reach = _largest(covariance, sample) * error
    return _Gaps(np.abs(gap), density / density.sum(), reach)


def _kernel(points: Floats, at: Floats, width: float, *, reflected: bool) -> Floats:
    """The Gaussian between all points and positions; on [0, 1] with its reflections."""

    def gaussian(distance: Floats) -> Floats:
        return np.asarray(np.exp(-0.5 * (distance / width) ** 2))

    direct = gaussian(points[:, None] - at[None, :])
    if not reflected:
        return direct
    for image in (-at, 2.0 - at):
        if np.abs(points[:, None] - image).min() < 9.0 * width:
            direct += gaussian(points[:, None] - image[None, :])
    return direct


def _squared(cells: Cells) -> Floats:
    return np.asarray(cells.sketch.squared_weights[cells.sketch.weights > 0.0])


def _covariance(sample: Sample, cells: Cells, influence: Floats) -> Floats:
    """Of the curve at the points, over independent rows or over clusters."""
    total = float(cells.weight.sum())
    if not sample.dependent:
        return np.asarray((influence * _squared(cells)) @ influence.T / total**2)
    sketch = cells.sketch
    entry = np.cumsum(sketch.weights > 0.0).reshape(sketch.weights.shape) - 1
    if sample.clusters is not None:
        pairs = sample.rows("clusters")
        block, blocks = random_blocks(*sample.clusters, seed=sample.assessment.seed)
        place = (sketch.scale.locate(pairs.p) * sketch.nodes).astype(np.int64)
        cell = np.searchsorted(sketch.cells, np.minimum(place, sketch.nodes))
        weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
        sums = np.zeros((blocks, cells.weight.size))
        for label, part in enumerate((weight * (1.0 - pairs.y), weight * pairs.y)):
            used = part > 0.0
            np.add.at(sums, (block[used], entry[cell[used], label]), part[used])
    else:
        codes = np.arange(len(sample.parts))
        block, blocks = random_blocks(codes, codes.size, seed=sample.assessment.seed)
        sums = np.zeros((blocks, cells.weight.size))
        for number, sketched in zip(block, sample.parts, strict=True):
            coarse = sketched.rebin(sketch.nodes)
            used = coarse.weights > 0.0
            at = entry[np.searchsorted(sketch.cells, coarse.cells)][used]
            sums[number, at] += coarse.weights[used]
    curves = sums @ influence.T / total
    return np.asarray(curves.T @ curves * (blocks / (blocks - 1.0)))


def _largest(covariance: Floats, sample: Sample) -> float:
    """The quantile of the largest of normal deviations, each over its standard error."""
    error = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    values, vectors = np.linalg.eigh(covariance / np.outer(error, error))
    used = values > 1e-8 * max(values[-1], 1e-300)
    root = vectors[:, used] * np.sqrt(values[used])
    drawn = generator(sample.assessment.seed, 18).standard_normal((DRAWS, int(used.sum())))
    return float(np.quantile(np.abs(drawn @ root.T).max(axis=1), sample.confidence))
