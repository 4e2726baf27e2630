"""How many rows it takes, and how small an error so many rows can show."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, generator, is_number, require_seed
from calibrant.data.arrays import as_column
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.rows import InputOptions
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import InputError
from calibrant.inference.assess import require_margin
from calibrant.inference.calibration_test import CalibrationTest
from calibrant.inference.interval import normal_quantile, require_confidence
from calibrant.inference.noise_floor import noise_floor
from calibrant.inference.resampling import cell_predictions
from calibrant.inference.residuals import ResidualGrid
from calibrant.measures.smooth_ece import smooth_ece

__all__ = ["RequiredRows", "detectable_error", "required_n"]

Floats = NDArray[np.float64]

RUNS, LAST_RUNS = 40, 400
NODES = 1 << 12
MOST_ROWS = 10**9
PRECISION, LAST_PRECISION = 1.2, 1.02
ROWS_PER_END = 2.5
"""The interval's upper end falls like n^(-1/3) to n^(-1/2), so n like its power -2 to -3."""


@dataclass(frozen=True)
class RequiredRows:
    """How many rows show that a calibrated predictor is within a margin.

    Attributes
    ----------
    simulated : int
        With this many rows the interval of `assess` ends within the margin with probability `power`, if
        the predictor is calibrated. This is the number to plan with; other seeds give numbers that
        differ by some per cent.
    theorem : int
        With this many rows a proved bound does the same for any distribution of predictions and
        outcomes: ten times more and beyond.
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
    confidence: float = CONFIDENCE,
    power: float = 0.8,
    seed: int = 0,
    from_logits: bool = False,
    percent: bool = False,
    on_invalid: Literal["raise", "drop"] = "raise",
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
        Confidence of the interval.
    power : float
        How often the interval should end within the margin, if the predictor is calibrated.
    seed : int
        Seed of the simulation.
    from_logits, percent, on_invalid
        How to read the predictions; see `InputOptions`.

    Notes
    -----
    The theorem is that of the paper's sample complexity, n ≥ C / (σ ε²), with its constant worked out.
    Let ε be the margin, F and F̂ the population's and the sample's smECE at σ = ε, H = 1 + 2 Σ
    exp(-k²π²ε²), which bounds ∫ K² for the reflected kernel, and α and β one minus the confidence and
    the power.

    1. *Confidence.* The mean of ∫|r̂ - r| is at most √(H/n), and one row changes it by at most 2/n. So
       by McDiarmid's inequality F > F̂ + u with probability at most α, for u = (√H + √(2 log 1/α))/√n.
       smECE falls with σ, so F ≤ ε says that the population's SmoothECE is at most ε: F̂ + u ≤ ε shows
       it.
    2. *Power.* For a calibrated predictor, F = 0 and the variance of an outcome is at most ¼, so F̂ is
       at most (½√H + √(2 log 1/β))/√n, except with probability β.

    Together, n ≥ (1½√H + √(2 log 1/α) + √(2 log 1/β))² / ε² rows suffice: of the order ε⁻³.

    Examples
    --------
    >>> found = required_n(0.05)
    >>> 500 < found.simulated < 5000 < found.theorem
    True
    """
    require_confidence(confidence)
    if margin is None:
        raise InputError(
            "must lie between 0 and 1",
            argument="margin",
            seen=margin,
            cure="Pass the largest error that you would accept, such as 0.05.",
        )
    require_margin(margin)
    if not is_number(power) or not 0.0 < power < 1.0:
        raise InputError(
            "must lie between 0 and 1",
            argument="power",
            seen=power,
            cure="Leave it out for the default.",
        )
    require_seed(seed)
    margin, confidence, power = float(margin), float(confidence), float(power)
    if y_prob is None:
        p = (np.arange(NODES) + 0.5) / NODES
        like = Sketch.from_counts(p, np.ones(NODES, int), np.zeros(NODES, int), nodes=NODES)
    elif isinstance(y_prob, Sketch):
        like = as_sketch(y_prob).rebin(min(NODES, y_prob.nodes))
    else:
        column = as_column(y_prob, "y_prob")
        reading: InputOptions = {
            "from_logits": from_logits,
            "percent": percent,
            "on_invalid": on_invalid,
        }
        like = Sketch.from_arrays(np.zeros(column.size, int), column, nodes=NODES, **reading)
    return RequiredRows(
        _simulated_rows(like, margin, confidence, power, seed),
        _rows_by_theorem(margin / like.scale.length, margin, confidence, power),
        margin,
        confidence,
        power,
    )


def detectable_error(
    test: CalibrationTest, *, level: float = 0.05, power: float = 0.8
) -> float | None:
    """The SmoothECE of one sign that the test at `level` finds with this power; None if there is none.

    Of an error of one sign, too high everywhere or too low, SmoothECE is the size of the mean residual. Such
    an error θ is found where the mean residual is as large as the test asks of it if nothing else is amiss.
    So θ is that, and as many standard errors more as the power takes, of outcomes that are θ more frequent,
    or less: their variance is larger than that of calibrated ones by at most θ |1 - 2f|.
    Predictions of 0 and 1 alone are refuted by the first failure.
    """
    cells = test.cells
    if not cells.null.any():
        return float(-np.expm1(np.log1p(-power) / cells.units))
    needed = test.critical_mean(level)
    if needed is None:
        return None
    quantile = normal_quantile(power)
    variance = test.mean_error**2
    skew = abs(float(cells.mass @ (1.0 - 2.0 * cells.prediction))) / cells.units
    # θ = needed + q √(variance + θ skew)
    half = needed + 0.5 * quantile**2 * skew
    size = half + math.sqrt(max(half**2 - needed**2 + quantile**2 * variance, 0.0))
    return size if size < 1.0 else None


def _simulated_rows(like: Sketch, margin: float, confidence: float, power: float, seed: int) -> int:
    """Bisect with few samples at each n; then set right, with many, what is left of the error."""

    def upper_end(n: int, runs: int = RUNS) -> float:
        return float(np.quantile(_upper_ends(like, n, runs, confidence, seed), power))

    def bisected(low: int, high: int, precision: float, runs: int) -> tuple[int, int]:
        while high > max(precision * low, low + 1):
            middle = min(max(int(np.sqrt(float(low) * high)), low + 1), high - 1)
            low, high = (low, middle) if upper_end(middle, runs) <= margin else (middle, high)
        return low, high

    high = max(_rows_at_floor(like, 0.6 * margin), 2)
    while upper_end(high) > margin:
        high *= 2
        if high > MOST_ROWS:
            raise InputError(
                "takes more than {most} rows",
                argument="margin",
                seen=margin,
                cure="Choose a larger margin.",
                most=f"{MOST_ROWS:,}",
            )
    low = max(high // 2, 1)
    while low > 1 and upper_end(low) <= margin:
        low, high = low // 2, low
    low, high = bisected(low, high, PRECISION, RUNS)
    end = upper_end(high, LAST_RUNS)
    low = max(int(high * min(end / margin, 1.0) ** ROWS_PER_END), 2)
    while end > margin:
        low, high = high, int(np.ceil(1.1 * high))
        end = upper_end(high, LAST_RUNS)
    return bisected(low, high, LAST_PRECISION, LAST_RUNS)[1]


def _upper_ends(like: Sketch, n: int, runs: int, confidence: float, seed: int) -> Floats:
    """Where the intervals of calibrated samples of n rows end."""
    rng = generator(seed, 8, n)
    p = np.clip(cell_predictions(like), 0.0, 1.0)
    share = over_outcomes(like.weights) / like.total_weight
    ends = np.empty(runs)
    for run in range(runs):
        rows = rng.multinomial(n, share)
        sample = Sketch.from_counts(
            p, rows, rng.binomial(rows, p), nodes=like.nodes, scale=like.scale
        )
        value = max(smooth_ece(sample, tolerance=1e-4), 1e-5)
        test, grid = CalibrationTest.of(sample), ResidualGrid.of(sample, value)
        ends[run] = test.upper_end(confidence, grid.error, value)
    return ends


def _rows_at_floor(like: Sketch, floor: float) -> int:
    """Rows at which the noise floor, which falls like n^(-1/3), would be this."""
    now = noise_floor(like).value
    return int(np.clip(like.n * (now / floor) ** 3, 2, MOST_ROWS))


def _rows_by_theorem(bandwidth: float, margin: float, confidence: float, power: float) -> int:
    """The bound of the notes, with the bandwidth as a share of the scale's length."""
    k = np.arange(1, int(10 / bandwidth) + 2)
    kernel = 1.0 + 2.0 * float(np.exp(-((k * np.pi * bandwidth) ** 2)).sum())
    chances = np.array([1.0 - confidence, 1.0 - power])
    deviations = float(np.sqrt(-2.0 * np.log(chances)).sum())
    return int(np.ceil(((1.5 * np.sqrt(kernel) + deviations) / margin) ** 2))
