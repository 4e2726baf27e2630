"""How many rows it takes, and how small an error so many rows can show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inference.assess import require_margin
from calibrant.inference.interval import bounds, normal_quantile, require_confidence, row_spread
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.resampling import cell_predictions
from calibrant.inference.residuals import ResidualGrid
from calibrant.inputs.seeds import generator
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.sketch.table import Sketch

__all__ = ["RequiredRows", "detectable_error", "required_n"]

RUNS = 40
DRAWS = 100
NODES = 1 << 12
MOST_ROWS = 10**9
PRECISION = 1.05


@dataclass(frozen=True)
class RequiredRows:
    """How many rows show that a calibrated predictor is within a margin.

    Attributes
    ----------
    simulated : int
        With so many rows the interval's upper end is at most the margin with probability `power`, if
        the predictor is calibrated. This is the number to plan with.
    theorem : int
        So many rows are enough for any distribution of predictions and outcomes, by a proved bound:
        many times more.
    margin, confidence, power : float
        As they were asked for.
    """

    simulated: int
    theorem: int
    margin: float
    confidence: float
    power: float

    def __int__(self) -> int:
        return self.simulated

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return asdict(self)


def required_n(
    margin: float,
    y_prob: Any = None,
    *,
    confidence: float = 0.95,
    power: float = 0.8,
    seed: int = 0,
) -> RequiredRows:
    """How many rows it takes to show that a calibrated predictor is within a margin.

    Parameters
    ----------
    margin : float
        The largest SmoothECE that is acceptable.
    y_prob : array or Sketch, optional
        Predictions like those to come; uniform ones if there are none yet. Predictions close to 0 and
        1 need fewer rows.
    confidence : float
        Of the interval.
    power : float
        How often the interval should end within the margin.
    seed : int
        Of the simulation.

    Notes
    -----
    The theorem is that of the paper's sample complexity, n ≥ C / (σ ε²), with its constant worked out.
    At a bandwidth σ the mean of ∫|r̂_σ - r_σ| is at most √(H/n), where H = 1 + 2 Σ exp(-k²π²σ²) bounds
    ∫ K² for the reflected kernel; one row changes it by at most 2/n, so by McDiarmid's inequality it
    exceeds its mean by √(2 log(1/δ)/n) with probability at most δ. The fixed point moves by no more
    than smECE at its own bandwidth does, so n ≥ (√H + √(2 log(1/δ)))² / ε² rows suffice at σ = ε: of
    the order ε⁻³.

    Examples
    --------
    >>> found = required_n(0.05)
    >>> 500 < found.simulated < 5000 < found.theorem
    True
    """
    require_confidence(confidence)
    require_margin(margin)
    if not isinstance(power, int | float) or isinstance(power, bool) or not 0.0 < power < 1.0:
        raise InputError(f"`power` must lie between 0 and 1; got {power!r}.")
    if y_prob is None:
        p = (np.arange(NODES) + 0.5) / NODES
        like = Sketch.from_counts(p, np.ones(NODES, int), np.zeros(NODES, int), nodes=NODES)
    elif isinstance(y_prob, Sketch):
        like = y_prob.rebin(min(NODES, y_prob.nodes))
    else:
        like = Sketch.from_arrays(np.zeros(len(y_prob), int), y_prob, nodes=NODES)

    def share_within(n: int) -> float:
        return _share_within(like, n, margin, confidence, seed)

    start = _rows_at_floor(like, 0.6 * margin, seed)
    high = max(start, 2)
    while share_within(high) < power:
        high *= 2
        if high > MOST_ROWS:
            raise InputError(f"a margin of {margin:g} takes more than {MOST_ROWS:,} rows.")
    low = high // 2
    while low > 2 and share_within(low) >= power:
        low, high = low // 2, low
    while high > PRECISION * low + 1:
        middle = int(np.sqrt(float(low) * high))
        low, high = (low, middle) if share_within(middle) >= power else (middle, high)
    return RequiredRows(high, _rows_by_theorem(margin, confidence), margin, confidence, power)


def detectable_error(
    sketch: Sketch, *, level: float = 0.05, power: float = 0.8, seed: int = 0
) -> float:
    """The smallest SmoothECE that the test at `level` would find with this power, on these rows.

    A sample's value is about √(θ² + b0²), with the spread of the null, so the truth must lie so far
    out that all but 1 - `power` of the values exceed the null's 1 - `level` quantile.
    """
    floor = noise_floor(sketch, seed=seed).value
    if floor == 0.0:
        return 0.0
    grid = ResidualGrid.of(sketch, 0.5 * floor)
    drawn = np.concatenate(
        [grid.fixed_points(block, start=floor) for block in grid.consistency(DRAWS, seed=seed)]
    )
    needed = np.quantile(drawn, 1.0 - level) + normal_quantile(power) * drawn.std()
    return float(np.sqrt(max(needed**2 - drawn.mean() ** 2, 0.0)))


def _share_within(like: Sketch, n: int, margin: float, confidence: float, seed: int) -> float:
    """How often the interval of a calibrated sample of n rows ends within the margin."""
    rng = generator(seed, 8, n)
    p = np.clip(cell_predictions(like), 0.0, 1.0)
    share = like.weights.sum(axis=1) / like.total_weight
    within = 0
    for _ in range(RUNS):
        rows = rng.multinomial(n, share)
        sample = Sketch.from_counts(p, rows, rng.binomial(rows, p), nodes=like.nodes)
        value = max(smooth_ece(sample, tolerance=1e-4), 1e-5)
        spread = row_spread(ResidualGrid.of(sample, value), value)
        within += bounds(value, spread, 0.0, 1.0, confidence=confidence).high <= margin
    return within / RUNS


def _rows_at_floor(like: Sketch, floor: float, seed: int) -> int:
    """Rows at which the noise floor, which falls like n^(-1/3), would be this."""
    now = noise_floor(like, seed=seed).value
    return int(np.clip(like.n * (now / floor) ** 3, 2, MOST_ROWS))


def _rows_by_theorem(margin: float, confidence: float) -> int:
    k = np.arange(1, int(10 / margin) + 2)
    kernel = 1.0 + 2.0 * float(np.exp(-((k * np.pi * margin) ** 2)).sum())
    deviation = np.sqrt(2.0 * np.log(1.0 / (1.0 - confidence)))
    return int(np.ceil(((np.sqrt(kernel) + deviation) / margin) ** 2))
