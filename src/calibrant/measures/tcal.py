"""T-Cal: an unbiased estimate of the squared calibration error over bins, as a test statistic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, require_count
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.dropped import Dropped
from calibrant.data.input_forms import InputOptions
from calibrant.data.points import Points, as_points
from calibrant.errors import Function, InputError
from calibrant.measures.result_record import Bounded, Record, rows_text

__all__ = ["TCal", "t_cal", "t_cal_of_atoms"]

Floats = NDArray[np.float64]

DRAWS = 499
FINEST = 1 << 12


@dataclass(frozen=True, repr=False)
class TCal(Record):
    """T-Cal's statistic where it is most significant, and a p-value that allows for the choice.

    Attributes
    ----------
    statistic : float
        Unbiased estimate of the sum of weight · gap² over the bins; may be negative.
    p_value : float
        Share of calibrated outcomes whose best p-value over the numbers of bins is as small.
    bins : int
        Number of bins of equal width at which the statistic stands out most.
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(500)
    >>> t_cal(rng.random(500) < p**2, p).p_value < 0.05
    True
    """

    statistic: float
    p_value: float
    bins: int
    n: int
    dropped: Mapping[str, int] = field(default_factory=Dropped)

    def __repr__(self) -> str:
        return (
            f"TCal(statistic={self.statistic:.6g}, p={self.p_value:.3g}, bins={self.bins}, "
            f"{rows_text(self.n, self.dropped)})"
        )


def t_cal(
    y_true: Any,
    y_prob: Any = None,
    *,
    bins: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    **options: Unpack[InputOptions],
) -> TCal:
    """Test of calibration by the debiased ℓ2 error, adaptive over the number of bins.

    T_m = (1/n) Σ_bins ((Σr)² - Σr²) / n_bin with r = y - f. Under calibration its mean is 0.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`. The statistic takes
        weights; the test does not.
    y_prob : array
        Predicted probabilities of outcome 1.
    bins : int, optional
        One number of bins. By default 2, 4, 8, ... up to n^(2/5) · 2, and the one that stands out
        most, with a p-value that accounts for having looked at all.
    draws : int
        How often outcomes are drawn from the predictions.
    seed : int
        Seed of the draws.
    **options
        How to read the arrays (see `InputOptions`).

    References
    ----------
    Lee, Huang, Hassani and Dobriban, *T-Cal: an optimal test for the calibration of predictive
    models*, 2023.

    Examples
    --------
    >>> p = np.linspace(0.0005, 0.9995, 1000)
    >>> t_cal(p > 0.5, p).p_value
    0.002
    """
    atoms = as_points(y_true, y_prob, **options)
    _require_rows(atoms)
    for name, number in (("bins", 2 if bins is None else bins), ("draws", draws)):
        require_count(name, number)
    most = max(2, int(2 * atoms.n**0.4))
    tried = [int(bins)] if bins is not None else [1 << k for k in range(1, most.bit_length())]
    grouped = _grouped(atoms, tried[-1])
    rows = over_outcomes(grouped.mass).astype(np.int64)
    drawn = generator(seed).binomial(rows, grouped.p, size=(draws, rows.size))
    values = np.stack(
        [
            np.append(_statistic(atoms, atoms.mass[None, :, 1], m), _statistic(grouped, drawn, m))
            for m in tried
        ],
        axis=1,
    )
    ranks = np.stack([_upper_rank(column) for column in values.T], axis=1)
    smallest = ranks.min(axis=1)
    at = int(np.argmin(ranks[0]))
    p_value = float(np.mean(smallest <= smallest[0] + 1e-12))
    return TCal(float(values[0, at]), p_value, tried[at], atoms.n, atoms.dropped)


def t_cal_of_atoms(atoms: Points, *, bins: int = 16) -> Bounded:
    """The statistic alone; a sketch knows the bins exactly, and r² up to the width of a cell.

    With weights it is Σ_bins ((Σwr)² - Σ(wr)²) / Σ_bin w, divided by Σw.
    """
    if atoms.squared is not None and atoms.squared_residuals is None:
        _require_rows(atoms)
    value = float(_statistic(atoms, atoms.mass[None, :, 1], bins)[0])
    return Bounded(value, 4.0 * atoms.position_error * atoms.scale.steepness)


def _grouped(atoms: Points, bins: int) -> Points:
    """Points merged into a grid of which this many bins are unions, at their mean prediction.

    For the draws alone: a Bernoulli sum in so narrow a cell is binomial for all that matters.
    """
    cells = bins * -(-FINEST // bins)
    if atoms.p.size <= cells:
        return atoms
    cell = np.minimum((atoms.p * cells).astype(np.int64), cells - 1)
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    mass = np.add.reduceat(atoms.mass, first, axis=0)
    mean = np.add.reduceat(atoms.p * over_outcomes(atoms.mass), first) / over_outcomes(mass)
    return Points(mean, mass, atoms.n)


def _statistic(atoms: Points, events: NDArray[Any], bins: int) -> Floats:
    """T_m for each row of events."""
    rows = over_outcomes(atoms.mass)
    index = np.minimum((atoms.p * bins).astype(np.int64), bins - 1)
    first = np.flatnonzero(np.diff(index, prepend=-1))
    sums = np.add.reduceat(events - rows * atoms.p, first, axis=1)
    if atoms.squared_residuals is None:
        each = events * (1.0 - atoms.p) ** 2 + (rows - events) * atoms.p**2
    else:
        each = atoms.squared_residuals[None]
    squares = np.add.reduceat(each, first, axis=1)
    counts = np.add.reduceat(rows, first)
    return np.asarray(((sums**2 - squares) / counts).sum(axis=1) / atoms.total)


def _upper_rank(values: Floats) -> Floats:
    """Share of the values that are at least as large, for each."""
    order = np.sort(values)
    return 1.0 - np.searchsorted(order, values - 1e-15, side="left") / values.size


def _require_rows(atoms: Points) -> None:
    if atoms.squared is not None:
        raise InputError(
            "cannot be used in a test that draws the outcomes of whole rows, and nor can soft labels",
            argument="sample_weight",
            cure="Use {assess}, whose test takes both.",
            assess=Function("assess"),
        )
