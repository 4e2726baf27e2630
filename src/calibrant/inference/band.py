"""Where, and whether, the outcomes of two groups differ at equal predictions."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, Option, TooFewRows
from calibrant.inference.interval import require_confidence
from calibrant.inference.null_noise import cross_weights, design_effects, expected_weights
from calibrant.inference.resampling import cell_positions, coarse_sketch
from calibrant.measures.result_record import Record
from calibrant.measures.smooth_ece import smooth_ece

__all__ = ["DifferenceBand", "chance_beyond", "difference_band", "reach_of_all"]

Floats = NDArray[np.float64]

POINTS = 128
FEWEST, FEWEST_ROWS, FEWEST_SHARED = 0.05, 4.0, 1e-3
NARROWEST = 0.01
MOST_CELLS = 1024
ROWS_OF_ATOM, DENSITY_OF_ATOM = 10, 4.0
"""So many rows with one prediction, and so many times as many as the cells around it have, make an atom."""
NUISANCE_WIDTH = 1.06
"""Of the kernel that estimates rates and shares, in standard deviations of predictions over n^(1/3)."""


@dataclass(frozen=True, eq=False)
class DifferenceBand(Record):
    """How much more often the event came in one group than in another, at equal predictions.

    Attributes
    ----------
    prediction : float64[m]
        Where both groups have rows enough.
    difference, low, high : float64[m]
        E[y | f, first group] - E[y | f, second group] around each prediction, with a band that holds all
        of it with the given confidence.
    p_value : float
        Of "at equal predictions the event is as frequent in both groups". It is at most 1 - `confidence`
        exactly where the band leaves 0 somewhere.
    bandwidth, confidence : float
        Around each prediction rows are weighted by a kernel of this width; and of the band.
    """

    prediction: Floats
    difference: Floats
    low: Floats
    high: Floats
    p_value: float
    bandwidth: float
    confidence: float

    def __repr__(self) -> str:
        apart = np.mean((self.low > 0) | (self.high < 0))
        return (
            f"DifferenceBand({self.prediction.size} points from {self.prediction[0]:.2f} to "
            f"{self.prediction[-1]:.2f}, apart at {100 * apart:.0f}% of them, p = {self.p_value:.3g})"
        )


def difference_band(
    first: Sketch, second: Sketch, *, confidence: float = CONFIDENCE
) -> DifferenceBand:
    """Compare the outcomes of two groups at equal predictions, everywhere at once.

    With g the group, π(f) its share and μ(f) the rate of events among all rows near f (or at f, where many
    rows share one prediction), the difference at t
    is Σ k (g - π)(y - μ) / Σ k (g - π)², a kernel k around t. If outcomes do not depend on the group, its
    mean is 0 up to the product of the errors of π and μ, so groups whose predictions lie elsewhere are not
    apart for that alone. The standard error is that of the rows, and no smaller than calibrated outcomes
    would have. Where outcomes are mostly alike their sums are skewed, and a difference that few rows could
    make counts for less, as in Bernstein's inequality: d / √(s² + d m / 3), with m what one outcome adds.
    The band is as many of these wide as the largest of all is with probability 1 - `confidence`, by the
    length of the path of the weights.

    References
    ----------
    Robinson, *Root-n-consistent semiparametric regression* (1988). Shah and Peters, *The hardness of
    conditional independence testing and the generalised covariance measure* (2020). Sun and Loader,
    *Simultaneous confidence bands for linear regression and smoothing* (1994).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> a = Sketch.from_arrays(rng.random(2000) < p, p)
    >>> b = Sketch.from_arrays(rng.random(2000) < p**2, p)
    >>> difference_band(a, b).p_value < 0.01
    True
    """
    require_confidence(confidence)
    if first.scale != second.scale:
        raise InputError(
            "both groups must be on one scale", seen=(first.scale.name, second.scale.name),
            saying="these are on {}", cure="Build their sketches with the same {option}.",
            option=Option("scale"),
        )  # fmt: skip
    length = first.scale.length
    bandwidth = max(smooth_ece(first), smooth_ece(second), NARROWEST * length)
    rows = _Residuals.of(first, second, bandwidth / length)
    points = np.linspace(rows.place.min(), rows.place.max(), POINTS + 1)
    difference, error, most, enough = rows.differences(points, bandwidth / length)
    if not enough.any():
        raise TooFewRows(
            "the two groups have too few rows at equal predictions to compare their outcomes",
            seen=(first.n, second.n),
            saying="they have {} rows",
            cure="Pass more rows, or compare larger groups.",
        )
    difference, error, most = (each[enough] for each in (difference, error, most))
    turn = rows.length_of_path(points[enough], bandwidth / length)
    c = reach_of_all(1.0 - confidence, turn)
    skew = c * c * most / 6.0
    reach = skew + np.sqrt(skew**2 + (c * error) ** 2)
    largest = np.abs(difference) / np.sqrt(error**2 + np.abs(difference) * most / 3.0)
    return DifferenceBand(
        prediction=np.asarray(first.scale.prediction(points))[enough],
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        p_value=chance_beyond(float(largest.max()), turn),
        bandwidth=bandwidth,
        confidence=confidence,
    )


@dataclass(frozen=True, eq=False)
class _Residuals:
    """Rows that are alike, by cell, group and outcome, and what neither explains of them.

    Attributes
    ----------
    place : float64[m]
        On the grid, from 0 to 1.
    weight, squared : float64[m]
        Sums over the rows of their weights and of these squared.
    group, outcome : float64[m]
        g - π and y - μ, each without the row itself.
    calibrated, skew : float64[m]
        Variance f (1 - f) and skewness 1 - 2f of the outcome, were predictions calibrated; with weights
        that depend on the outcome, those of w (y - f), the variance in units of `squared`.
    step : float64[m]
        How far w (y - f) moves where the outcome is the other one, and no less than a row weighs.
    """

    place: Floats
    weight: Floats
    squared: Floats
    group: Floats
    outcome: Floats
    calibrated: Floats
    skew: Floats
    step: Floats

    @classmethod
    def of(cls, first: Sketch, second: Sketch, bandwidth: float) -> _Residuals:
        """Of two groups on one scale; `bandwidth` is a share of the grid."""
        both = first + second
        place = both.cells / both.nodes
        mass = over_outcomes(both.weights) / both.total_weight
        centre = float(mass @ place)
        spread = float(np.sqrt(mass @ (place - centre) ** 2))
        rows = float(both.total_weight**2 / both.squared_weights.sum())
        width = max(NUISANCE_WIDTH * spread / rows ** (1 / 3), 2.0 / both.nodes)
        nodes = coarse_sketch(both, min(width, bandwidth) * both.scale.length).nodes
        while both.rebin(nodes).cells.size > MOST_CELLS:
            nodes //= 2
        width = max(width, 1.0 / nodes)
        unit, atoms = _units(both, nodes, width)
        units = int(unit.max()) + 1
        weight, squared, counts = np.zeros((3, units, 2, 2))
        for number, part in enumerate((second, first)):
            place_of = unit[np.searchsorted(both.cells, part.cells)]
            np.add.at(weight[:, number], place_of, part.weights)
            np.add.at(squared[:, number], place_of, part.squared_weights)
            np.add.at(counts[:, number], place_of, part.counts)
        place = np.bincount(unit, mass * cell_positions(both)) / np.bincount(unit, mass)
        f = np.clip(both.scale.prediction(place), 0.0, 1.0)
        near = _kernel(place, place, width)
        near[:atoms] = near[:, :atoms] = 0.0
        near[np.arange(atoms), np.arange(atoms)] = 1.0
        own = np.divide(squared, weight, out=np.zeros_like(weight), where=weight > 0)
        rows_alike = not both.weighted or bool(cross_weights(both).any())
        like = _Calibrated.of(f, weight, None if rows_alike else squared, counts)
        g, y = np.arange(2.0)[None, :, None], np.arange(2.0)[None, None, :]
        off = y - f[:, None, None]

        def without_itself(values: Floats, of_all: Floats, own: Floats, each: Floats) -> Floats:
            others = (near @ of_all)[:, None, None] - own
            known = others > 1e-9 * own
            left = (near @ values)[:, None, None] - own * each
            return np.divide(left, others, out=np.full_like(own, np.nan), where=known)

        pi = without_itself(like.weight[:, 1], like.weight.sum(axis=1), own * like.row, g)
        mu = without_itself((weight * off).sum(axis=(1, 2)), weight.sum(axis=(1, 2)), own, off)
        used = (weight > 0) & np.isfinite(pi + mu)
        step = np.maximum(own, like.step[..., None])
        everywhere, chance, skew = (
            np.broadcast_to(each, weight.shape)
            for each in (place[:, None, None], like.variance[..., None], like.skew[..., None])
        )
        columns = (everywhere, weight, squared, g - pi, off - mu, chance, skew, step)
        return cls(*(each[used] for each in columns))

    def differences(
        self, points: Floats, bandwidth: float
    ) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """At each point: the difference, its standard error, what one row adds, and if rows are enough."""
        k = _kernel(points, self.place, bandwidth)
        squares = self.group**2
        overlap = k @ (self.weight * squares)
        enough = overlap > 0.0
        scale = np.where(enough, overlap, 1.0)
        difference = k @ (self.weight * self.group * self.outcome) / scale
        left = self.outcome - difference[:, None] * self.group
        seen = (k**2 * left**2) @ (self.squared * squares)
        calibrated = k**2 @ (self.squared * squares * self.calibrated)
        error = np.sqrt(np.maximum(seen, calibrated)) / scale
        rows = overlap**2 / np.maximum(k**2 @ (self.squared * squares**2), 1e-300)
        # With few rows the error that was seen is too small, as that of a mean is.
        error *= np.sqrt(rows / np.maximum(rows - 2.0, 1.0))
        enough &= (overlap >= FEWEST * overlap.max()) & (rows >= FEWEST_ROWS) & (error > 0.0)
        enough &= overlap >= FEWEST_SHARED * (k @ self.weight)
        skewed = k**2 @ (self.squared * squares * self.calibrated * np.abs(self.skew))
        skew = np.divide(skewed, calibrated, out=np.ones_like(skewed), where=calibrated > 0)
        one_row = (k * np.abs(self.group) * self.step).max(axis=1)
        most = skew * one_row / scale
        return difference, np.where(enough, error, 1.0), most, enough

    def length_of_path(self, points: Floats, bandwidth: float) -> float:
        """How far the unit vector of the rows' weights travels from the first point to the last."""
        k = _kernel(points, self.place, bandwidth)
        vector = k * np.sqrt(self.squared * self.group**2 * self.outcome**2)
        norm = np.linalg.norm(vector, axis=1)
        both = norm[1:] * norm[:-1]
        inner = (vector[1:] * vector[:-1]).sum(axis=1)
        cosine = np.divide(inner, both, out=np.ones_like(both), where=both > 0)
        return float(np.arccos(np.clip(cosine, 0.0, 1.0)).sum())


class _Calibrated(NamedTuple):
    """What each unit and group would have, were predictions calibrated.

    Attributes
    ----------
    weight : float64[units, 2]
        Of the rows, whichever outcomes came: a group's share must not depend on them.
    row : float64[units, 2, 2]
        What a row of each outcome adds to it, in units of its own weight.
    variance, skew, step : float64[units, 2]
        Of w (y - f): the variance in units of Σw², the skewness, and how far the other outcome moves it.
    """

    weight: Floats
    row: Floats
    variance: Floats
    skew: Floats
    step: Floats

    @classmethod
    def of(cls, f: Floats, weight: Floats, squared: Floats | None, counts: Floats) -> _Calibrated:
        """Of weights [units, 2 groups, 2 outcomes]; without their squares rows count alike."""
        chance = f * (1.0 - f)
        if squared is None:
            columns = (
                np.repeat(each[:, None], 2, axis=1)
                for each in (chance, 1.0 - 2.0 * f, np.zeros_like(f))
            )
            return cls(weight.sum(axis=2), np.ones_like(weight), *columns)
        worth = np.stack([design_effects(weight[:, k], squared[:, k], f) for k in (0, 1)], axis=1)
        expected = np.stack(
            [expected_weights(weight[:, k], worth[:, k], f) for k in (0, 1)], axis=1
        )
        other, event = (1.0 - f)[:, None] / worth[..., 0], f[:, None] / worth[..., 1]
        step = (other + event) * worth.prod(axis=2)  # f w₀ + (1 - f) w₁
        squares = np.maximum(squared.sum(axis=2), 1e-300)
        return cls(
            expected,
            1.0 / (worth * (other + event)[..., None]),
            expected * chance[:, None] * step / squares,
            1.0 - 2.0 * event / (other + event),
            step,
        )


def _units(both: Sketch, nodes: int, width: float) -> tuple[NDArray[np.intp], int]:
    """Which cells estimate rates and shares together, by the number of their unit; and how many are atoms.

    An atom is a prediction that many rows share, such as a default or a value of a lattice: those near it
    say nothing of it, nor it of them. The atoms come first, then cells of a coarse grid.
    """
    count = over_outcomes(both.counts)
    reach = max(int(np.ceil(width * both.nodes)), 2)
    below = np.concatenate([[0], np.cumsum(count)])
    last = np.searchsorted(both.cells, both.cells + reach, side="right")
    around = below[last] - below[np.searchsorted(both.cells, both.cells - reach)]
    dense = (count >= ROWS_OF_ATOM) & (count * (2 * reach + 1) >= DENSITY_OF_ATOM * around)
    atom = np.flatnonzero(dense)
    atom = np.sort(atom[np.argsort(-count[atom], kind="stable")[:MOST_CELLS]])
    unit = np.empty(both.cells.size, dtype=np.intp)
    unit[atom] = np.arange(atom.size)
    others = np.ones(unit.size, dtype=np.bool_)
    others[atom] = False
    coarse = both.cells[others] * nodes // both.nodes
    unit[others] = atom.size + np.unique(coarse, return_inverse=True)[1].ravel()
    return unit, atom.size


def chance_beyond(c: float, length: float) -> float:
    """P(max |Z| > c), at most, of normal deviations whose weights travel this far on the sphere.

    Examples
    --------
    >>> round(chance_beyond(1.96, 0.0), 3), round(chance_beyond(3.0, 20.0), 3)
    (0.05, 0.073)
    """
    return float(min(2.0 * NormalDist().cdf(-c) + length / np.pi * np.exp(-0.5 * c * c), 1.0))


def reach_of_all(level: float, length: float) -> float:
    """The c that `chance_beyond` gives this level."""
    low, high = 0.0, 40.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if chance_beyond(middle, length) > level else (low, middle)
    return high


def _kernel(points: Floats, place: Floats, width: float) -> Floats:
    return np.asarray(np.exp(-0.5 * np.square((points[:, None] - place) / width)))
