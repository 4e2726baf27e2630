"""Difference of two groups' outcomes at equal predictions, with a simultaneous band and its test."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_confidence
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.null_noise import design_effects, expected_weights
from calibrant.inference.quantiles import normal_quantile
from calibrant.measures.result_record import Record, frame_of
from calibrant.measures.smooth_ece import smooth_ece

Floats = NDArray[np.float64]

POINTS = 129
"""Predictions at which the band is worked out: a hundredth apart, or less."""
DRAWS = 1999
"""Null samples: p-values are resolved to 1/2000."""
ROWS_EACH, MAX_STRATA = 4, 1024
"""Expected rows of the smaller group in a stratum: fewer have no partner, more blur the predictions."""
NARROWEST = 0.01
"""Least bandwidth, a share of the scale: SmoothECE of calibrated groups is smaller still."""
FEWEST_PAIRS, FEWEST_SHARE = 4.0, 0.05
"""Effective pairs of rows near a point, and their share of the most that a point has, to show it."""


@dataclass(frozen=True, eq=False)
class GroupDifference(Record):
    """Difference of the event rates of two groups at equal predictions.

    Attributes
    ----------
    prediction : float64[m]
        Predictions near which both groups have enough rows.
    difference, low, high : float64[m]
        Mantel–Haenszel difference near each prediction, with a simultaneous band.
    p_value : float
        Of "at equal predictions the event is as frequent in both groups". It is at most 1 - `confidence`
        exactly where the band leaves 0 somewhere.
    bandwidth, confidence : float
        Of the kernel around each prediction; of the band.
    """

    prediction: Floats
    difference: Floats
    low: Floats
    high: Floats
    p_value: float
    bandwidth: float
    confidence: float

    def to_frame(self, backend: Any = None) -> Any:
        """A data frame with a row for each prediction."""
        columns = (self.prediction, self.difference, self.low, self.high)
        names = ("prediction", "difference", "low", "high")
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return frame_of([dict(zip(names, row, strict=True)) for row in rows], backend)

    def __repr__(self) -> str:
        apart = 100 * np.mean((self.low > 0) | (self.high < 0))
        return (
            f"GroupDifference({self.prediction[0]:.2f} to {self.prediction[-1]:.2f}, different at "
            f"{apart:.0f}% of the predictions, p = {self.p_value:.3g})"
        )


def group_difference(
    first: Sketch, second: Sketch, *, confidence: float = CONFIDENCE
) -> GroupDifference:
    """Mantel–Haenszel difference of two groups' outcomes near each prediction, with a simultaneous band.

    Rows are stratified by prediction, so finely that a stratum has a few rows of the smaller group. In
    stratum j, with n_a and n_b rows and E_a and E_b events, let N_j = (n_b E_a - n_a E_b) / n_j and
    H_j = n_a n_b / n_j. The difference near t is Σ k_t N / Σ k_t H with a kernel k_t. Both groups have the
    same weights in every stratum, so smoothing makes no difference between them where there is none,
    however quickly outcomes or the groups' shares change with the prediction.

    *The test* is conditional on the strata: outcomes that do not depend on the group make E_a
    hypergeometric. The statistic is the largest |D| / √(s² + |D| / m) over t, with the null standard error s
    and the effective number of pairs m, which inverts to Wilson's interval; the band is as wide as the
    critical value of the same draws. With weights, N_j is Σ w_a w_b (y_a - y_b) over pairs, and its draws
    are normal.

    References
    ----------
    Mantel and Haenszel, *Statistical aspects of the analysis of data from retrospective studies* (1959).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> a = Sketch.from_arrays(rng.random(2000) < p, p)
    >>> b = Sketch.from_arrays(rng.random(2000) < p**2, p)
    >>> group_difference(a, b).p_value < 0.01
    True
    """
    require_confidence(confidence)
    if first.scale != second.scale:
        raise InputError(
            f"both groups must be on one scale; these are on {first.scale.name} and {second.scale.name}."
        )
    both = first + second
    length = both.scale.length
    bandwidth = max(smooth_ece(first), smooth_ece(second), NARROWEST * length)
    stratum = _strata(both, min(first.n, second.n), bandwidth / length)
    size = int(stratum[-1]) + 1
    sums = np.zeros(
        (3, 2, size, 2)
    )  # of rows, weights and squared weights by group, stratum and label
    for group, part in enumerate((first, second)):
        at = stratum[np.searchsorted(both.cells, part.cells)]
        for k, column in enumerate((part.counts, part.weights, part.squared_weights)):
            np.add.at(sums[k, group], at, column)
    rows = sums[0].sum(axis=(0, 2))
    (a, b), (events_a, events_b) = sums[1].sum(axis=2), sums[1, :, :, 1]
    numerator, pairs = (b * events_a - a * events_b) / rows, a * b / rows
    mass = both.weights.sum(axis=1)
    share = np.bincount(stratum, mass, size)
    place = np.bincount(stratum, mass * (both.cells + 0.5) / both.nodes, size) / share
    points = np.linspace(place.min(), place.max(), POINTS)
    kernel = np.exp(-0.5 * np.square((points[:, None] - place) * (length / bandwidth)))
    rng = np.random.default_rng(0)
    if both.weighted:
        near = np.exp(-0.5 * np.square((place[:, None] - place) * (length / bandwidth)))
        rate = (near @ (events_a + events_b)) / (near @ (a + b))
        spread_a, spread_b = (_variance(own, rate) for own in sums.transpose(1, 0, 2, 3))
        variance = (b**2 * spread_a + a**2 * spread_b) / rows**2
        draws = rng.standard_normal((DRAWS, size)) * np.sqrt(variance)
    else:
        events = events_a + events_b
        variance = pairs * events * (rows - events) / (rows * np.maximum(rows - 1.0, 1.0))
        good, bad, drawn = (column.astype(np.int64) for column in (events, rows - events, a))
        draws = rng.hypergeometric(good, bad, drawn, size=(DRAWS, size)) - a * events / rows
    overlap = kernel @ pairs
    each = sums[0, 0].sum(axis=1) * sums[0, 1].sum(axis=1) / rows
    kish = both.total_weight**2 / float(both.squared_weights.sum()) / both.n
    units = kish * (kernel @ each) ** 2 / np.maximum(kernel**2 @ each, 1e-300)
    shown = (units >= FEWEST_PAIRS) & (overlap >= FEWEST_SHARE * overlap.max())
    if not shown.any():
        raise TooFewRows(
            f"the groups have too few rows at equal predictions; they have {first.n} and {second.n} rows."
        )
    kernel, overlap, units = kernel[shown], overlap[shown], units[shown]
    difference = kernel @ numerator / overlap
    error = np.sqrt(kernel**2 @ variance) / overlap

    def largest(differences: Floats) -> Floats:
        size = np.abs(differences)
        z = size / np.sqrt(error**2 + size / units + 1e-300)
        largest: Floats = np.round(z.max(axis=-1), 9)  # ties are ties whatever rounding does
        return largest

    null, observed = largest(draws @ kernel.T / overlap), largest(difference)
    number = int((1.0 - confidence) * (DRAWS + 1) + 1e-9)
    # No less than at one point: where outcomes are all alike, nothing varies.
    critical = max(
        float(np.sort(null)[-number]) if number else np.inf, normal_quantile(0.5 + 0.5 * confidence)
    )
    alone = 2.0 * (1.0 - NormalDist().cdf(float(observed)))
    skew = 0.5 * critical**2 / units
    reach = skew + np.sqrt(skew**2 + (critical * error) ** 2)
    return GroupDifference(
        prediction=np.asarray(both.scale.prediction(points))[shown],
        difference=difference,
        low=np.maximum(difference - reach, -1.0),
        high=np.minimum(difference + reach, 1.0),
        p_value=max(float((1 + (null >= observed).sum()) / (DRAWS + 1)), alone),
        bandwidth=bandwidth,
        confidence=confidence,
    )


def _strata(both: Sketch, smaller: int, width: float) -> NDArray[np.intp]:
    """Stratum of each non-empty cell: neighbours with a few rows of the smaller group together.

    A prediction that as many rows share, such as a default, is a stratum of its own; none is wider than
    `width`, a share of the grid.
    """
    count = both.counts.sum(axis=1)
    rows = max(ROWS_EACH * both.n / smaller, both.n / MAX_STRATA)
    alone = count >= rows
    block = np.cumsum(np.where(alone, 0, count)) // rows
    interval = both.cells // max(width * both.nodes, 1.0)
    starts = alone[1:] | alone[:-1] | (np.diff(block) > 0) | (np.diff(interval) > 0)
    return np.concatenate([[0], np.cumsum(starts)])


def _variance(sums: Floats, rate: Floats) -> Floats:
    """Variance of Σ w (y - rate) in each stratum, with weights that may depend on the outcome."""
    omega = design_effects((sums[0], sums[1], sums[2]), rate)
    spread = (1.0 - rate) * omega[:, 1] + rate * omega[:, 0]
    return np.asarray(expected_weights(sums[1], omega, rate) * rate * (1.0 - rate) * spread)
