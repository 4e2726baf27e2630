"""Sample sizes: rows that show a margin, rows for external validation, and the error that rows can show.

Rows for external validation are by the criteria of Riley et al. (2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import (
    CONFIDENCE,
    generator,
    is_number,
    require_confidence,
    require_number,
    require_seed,
    require_share,
)
from calibrant.data.arrays import as_column, numbers
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import is_summed
from calibrant.errors import InputError, invalid
from calibrant.inference.assess import require_margin
from calibrant.inference.calibration_test import CalibrationTest
from calibrant.inference.quantiles import normal_quantile, wilson_error
from calibrant.inference.residuals import cell_positions
from calibrant.measures.result_record import Record

Floats = NDArray[np.float64]

DRAWS = 1000
"""Simulated samples: the 80% quantile of their sizes is known to some per cent."""
NODES = 1 << 12
"""Cells of the predictions to come: finer than any bandwidth that can be planned for."""
MAX_ROWS = 10**9
"""Rows that nobody will have: a margin that takes more is refused."""
Z = 1.96
"""Of the 95% intervals whose widths `validation_size` asks for."""


@dataclass(frozen=True)
class RequiredRows(Record):
    """Sample size that shows that a calibrated predictor is within a margin.

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


def required_n(
    margin: float,
    y_prob: Any = None,
    *,
    confidence: float = CONFIDENCE,
    power: float = 0.8,
    random_state: int = 0,
    from_logits: bool = False,
    percent: bool = False,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> RequiredRows:
    """Sample size that shows that a calibrated predictor is within a margin.

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
        Probability that the interval ends within the margin, if the predictor is calibrated.
    random_state : int
        Seed of the simulation.
    from_logits, percent, on_invalid
        How to read the predictions; see `calibrant.data.InputOptions`.

    Notes
    -----
    *Simulation.* The interval ends within the margin m where smECE_m of the sample plus its Wilson error is
    at most m. Of n calibrated rows, smECE_m is X / √n and its standard error √(V / n), where X and V are
    those of normal residuals with variance f (1 - f) per row. Each draw of X and V gives the n that it takes.

    *Theorem.* It is that of the paper's sample complexity, n ≥ C / (σ ε²), with its constant worked out.
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
    >>> rows = required_n(0.05)
    >>> 500 < rows.simulated < 5000 < rows.theorem
    True
    """
    require_confidence(confidence)
    if margin is None:
        raise InputError("`margin` must be between 0 and 1; got None.")
    require_margin(margin)
    if not is_number(power) or not 0.0 < power < 1.0:
        raise invalid("power", "be between 0 and 1", power)
    seed = require_seed(random_state, "random_state")
    margin, confidence, power = float(margin), float(confidence), float(power)
    if y_prob is None:
        p = (np.arange(NODES) + 0.5) / NODES
        like = Sketch.from_counts(p, np.ones(NODES, int), np.zeros(NODES, int), nodes=NODES)
    elif is_summed(y_prob):
        sketch = as_sketch(y_prob)
        like = sketch.rebin(min(NODES, sketch.nodes))
    else:
        column = as_column(y_prob, "y_prob")
        like = Sketch.from_arrays(
            np.zeros(column.size, int),
            column,
            nodes=NODES,
            from_logits=from_logits,
            percent=percent,
            on_invalid=on_invalid,
        )
    width = margin / like.scale.length
    return RequiredRows(
        _simulated_rows(like, width, margin, confidence, power, seed),
        _rows_by_theorem(width, margin, confidence, power),
        margin,
        confidence,
        power,
    )


def detectable_error(
    test: CalibrationTest, *, level: float = 0.05, power: float = 0.8
) -> float | None:
    """SmoothECE of one sign that the test at `level` finds with this power; None if there is none.

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
    skew = abs(float(cells.mass @ (1.0 - 2.0 * cells.prediction))) / cells.units
    # θ = needed + q √(variance + θ skew)
    half = needed + 0.5 * quantile**2 * skew
    spread = half**2 - needed**2 + (quantile * test.mean_error) ** 2
    size = half + math.sqrt(max(spread, 0.0))
    return size if size < 1.0 else None


def _simulated_rows(
    like: Sketch, width: float, margin: float, confidence: float, power: float, seed: int
) -> int:
    """The notes' n, with the bandwidth as a share of the grid."""
    from scipy.fft import dct, idct
    from scipy.optimize import brentq

    place = cell_positions(like)
    f = np.asarray(like.scale.prediction(place)).clip(0.0, 1.0)
    share = like.weights.sum(axis=1) / like.total_weight
    nodes = 64
    while nodes * width < 8.0 and nodes < NODES:  # cells of an eighth of a bandwidth
        nodes *= 2
    at = np.minimum((place * nodes).astype(np.int64), nodes - 1)
    variance = np.bincount(at, share * f * (1.0 - f), nodes)
    decay = np.exp(-0.5 * (np.pi * width * np.arange(nodes)) ** 2)

    def smoothed(values: Floats) -> Floats:
        return np.asarray(idct(dct(values, axis=1) * decay, axis=1))

    curves = smoothed(generator(seed, 8).standard_normal((DRAWS, nodes)) * np.sqrt(variance))
    values = np.abs(curves).sum(axis=1)
    variances = smoothed(np.sign(curves)) ** 2 @ variance

    def excess(log_n: float) -> float:
        n = math.exp(log_n)
        z = normal_quantile(0.5 + 0.5 * confidence, max(n - 1.0, 1.0))
        error = wilson_error(variances / n, z, n)
        return float(np.quantile(values / math.sqrt(n) + error, power)) - margin

    low, high = math.log(2.0), math.log(MAX_ROWS)
    if excess(high) > 0.0:
        raise InputError(f"`margin` of {margin:g} takes more than {MAX_ROWS:,} rows.")
    return math.ceil(math.exp(brentq(excess, low, high))) if excess(low) > 0.0 else 2


def _rows_by_theorem(bandwidth: float, margin: float, confidence: float, power: float) -> int:
    """The bound of the notes, with the bandwidth as a share of the grid."""
    k = np.arange(1, int(10 / bandwidth) + 2)
    kernel = 1.0 + 2.0 * float(np.exp(-((k * np.pi * bandwidth) ** 2)).sum())
    chances = np.array([1.0 - confidence, 1.0 - power])
    deviations = float(np.sqrt(-2.0 * np.log(chances)).sum())
    return int(np.ceil(((1.5 * np.sqrt(kernel) + deviations) / margin) ** 2))


# -- external validation ------------------------------------------------------------------------


@dataclass(frozen=True)
class ValidationSize(Record):
    """Rows that give each measure the standard error asked for.

    Attributes
    ----------
    observed_expected, slope, c_statistic, net_benefit : int or None
        Rows by each criterion; None where what it needs was not given.
    rows, events : int
        The largest of them, and the events among so many.
    """

    observed_expected: int
    slope: int | None
    c_statistic: int | None
    net_benefit: int | None
    rows: int
    events: int

    def __int__(self) -> int:
        return self.rows


def validation_size(
    prevalence: float,
    *,
    log_odds: Any = None,
    c_statistic: float | None = None,
    sensitivity: float | None = None,
    specificity: float | None = None,
    threshold: float | None = None,
    se_log_oe: float = 0.2 / (2 * Z),
    se_slope: float = 0.2 / (2 * Z),
    se_c: float = 0.1 / (2 * Z),
    se_net_benefit: float = 0.2 / (2 * Z),
) -> ValidationSize:
    """Rows needed to validate a risk model: for O/E, calibration slope, C statistic and net benefit.

    Parameters
    ----------
    prevalence : float
        Expected share of events.
    log_odds : array, optional
        Linear predictors as expected in the validation sample, such as draws from a normal distribution; for
        the slope, whose expected information they give.
    c_statistic : float, optional
        Expected C statistic (Newcombe's variance).
    sensitivity, specificity, threshold : float, optional
        Expected at the risk threshold, for the standardised net benefit.
    se_log_oe, se_slope, se_c, se_net_benefit : float
        Standard errors to reach; by default 95% intervals 0.2 wide, and 0.1 for the C statistic.

    References
    ----------
    Riley et al., Minimum sample size for external validation of a clinical prediction model with a binary
    outcome, Statistics in Medicine 40 (2021).

    Examples
    --------
    >>> validation_size(0.018, se_log_oe=0.051).rows
    20975
    """
    require_share("prevalence", prevalence)
    errors = {"se_log_oe": se_log_oe, "se_slope": se_slope, "se_c": se_c}
    for name, value in {**errors, "se_net_benefit": se_net_benefit}.items():
        require_number(name, value, 1e-6, 10.0)
    slope = c_rows = benefit = None
    if log_odds is not None:
        slope = _rows_for_slope(numbers(log_odds, "log_odds"), se_slope)
    if c_statistic is not None:
        if require_share("c_statistic", c_statistic) < 0.5:
            hint = f"Below 0.5 predictions rank backwards; did you mean {1.0 - c_statistic:g}?"
            raise invalid("c_statistic", "be 0.5 or more", c_statistic, hint)
        c_rows = _rows_for_c(prevalence, c_statistic, se_c)
    at_threshold = {"sensitivity": sensitivity, "specificity": specificity, "threshold": threshold}
    missing = [name for name, share in at_threshold.items() if share is None]
    if len(missing) < len(at_threshold):
        if missing:
            raise InputError(
                f"`{missing[0]}` is needed for net benefit, as are {', '.join(at_threshold)}.",
                argument=missing[0],
            )
        for name, share in at_threshold.items():
            require_share(name, share)
        variance = _net_benefit_variance(prevalence, **at_threshold)  # type: ignore[arg-type]
        benefit = math.ceil(variance / se_net_benefit**2 - 1e-9)
    oe = math.ceil((1 - prevalence) / (prevalence * se_log_oe**2) - 1e-9)
    rows = max(oe, slope or 0, c_rows or 0, benefit or 0)
    return ValidationSize(oe, slope, c_rows, benefit, rows, math.ceil(rows * prevalence))


def _net_benefit_variance(
    prevalence: float, sensitivity: float, specificity: float, threshold: float
) -> float:
    """Variance of the standardised net benefit, times the number of rows."""
    weight = (1 - prevalence) / prevalence * threshold / (1 - threshold)
    return (
        sensitivity * (1 - sensitivity) / prevalence
        + weight**2 * specificity * (1 - specificity) / (1 - prevalence)
        + weight**2 * (1 - specificity) ** 2 / (prevalence * (1 - prevalence))
    )


def _rows_for_slope(log_odds: Any, se: float) -> int:
    """Inverse of the expected information of one row, for the slope given the intercept."""
    from scipy.special import expit

    risk = expit(log_odds)
    v = risk * (1 - risk)
    a, ab, b = (float((v * log_odds**power).mean()) for power in range(3))
    determinant = a * b - ab * ab
    if not determinant > 0:
        raise InputError("`log_odds` must vary, or there is no slope.")
    return math.ceil(a / (se**2 * determinant))


def _rows_for_c(prevalence: float, c: float, se: float) -> int:
    """Least n with Newcombe's (2006, method 4) standard error of the C statistic at most `se`.

    n² φ (1 - φ) se² = c (1 - c) (1 + (n/2 - 1) k) is a quadratic equation.
    """
    k = (1 - c) / (2 - c) + c / (1 + c)
    square = prevalence * (1 - prevalence) * se**2
    linear, constant = c * (1 - c) * k / 2, c * (1 - c) * (1 - k)
    n = (linear + math.sqrt(linear**2 + 4 * square * constant)) / (2 * square)
    return max(math.ceil(n - 1e-9), 2)
