"""Calibration errors over bins, and the ways proposed to choose the bins or remove their bias."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, require_choice, require_count
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points, as_points, atoms_around_edges, atoms_around_shares
from calibrant.data.rows import Dropped, InputOptions, as_rows
from calibrant.data.sketch import Sketch
from calibrant.errors import Function, InputError, Option
from calibrant.measures.result_record import Bounded, Record, rows_text
from calibrant.measures.weak_error import mean_drift

__all__ = [
    "Bins",
    "TCal",
    "binned_ece",
    "binned_ece_of_atoms",
    "bins_of",
    "cross_validated_ece",
    "cross_validated_ece_of_atoms",
    "debiased_ece",
    "debiased_ece_of_atoms",
    "sweep_ece",
    "sweep_ece_of_atoms",
    "t_cal",
    "t_cal_of_atoms",
]

Floats = NDArray[np.float64]
Binning = Literal["width", "mass"]
Norm = Literal["l1", "l2", "max"]

DEFAULT_BINS = 15
MOST_BINS = 1 << 12
FEW_BINS = 128
CROSS_VALIDATED = sorted({1} | {base << k for k in range(11) for base in (2, 3)})


@dataclass(frozen=True, eq=False)
class Bins:
    """Sums over the non-empty bins of a partition of [0, 1] into intervals closed on the right.

    Attributes
    ----------
    weight : float64[k]
        Share of the rows in each.
    prediction, outcome : float64[k]
        Mean prediction and mean outcome in each.
    doubtful : float64[k]
        Share of rows in each that, for all a sketch knows, may belong to a neighbour.
    squared : float64[k]
        Sum of the squared shares of the rows in each.
    """

    weight: Floats
    prediction: Floats
    outcome: Floats
    doubtful: Floats
    squared: Floats

    @property
    def gap(self) -> Floats:
        """Mean prediction less mean outcome."""
        return self.prediction - self.outcome


def bins_of(atoms: Points, bins: int, binning: Binning) -> Bins:
    """Bins of equal width, or of equal mass with rows of one prediction kept together.

    With equal mass, an atom belongs to the bin in which the middle of its mass lies.
    """
    _require(bins, binning)
    if binning == "width":
        cuts = np.searchsorted(atoms.p, _edges(bins), side="right")
    else:
        target = np.arange(1, bins) * (atoms.total / bins)
        upto = atoms.cumulative[:, 0]
        at = np.minimum(np.searchsorted(upto[1:], target), atoms.p.size - 1)
        cuts = at + (0.5 * (upto[at] + upto[at + 1]) < target)
    cuts = np.unique(np.concatenate([[0], cuts, [atoms.p.size]]))
    weight, events, predictions = np.diff(atoms.cumulative[cuts], axis=0).T
    squared = weight if atoms.squared is None else np.add.reduceat(atoms.squared, cuts[:-1])
    return Bins(
        weight / atoms.total,
        predictions / weight,
        events / weight,
        _doubtful(atoms, int(bins), binning, cuts) / atoms.total,
        squared / atoms.total**2,
    )


def _require(bins: int, binning: Binning) -> None:
    require_count("bins", bins)
    require_choice("binning", binning, ("width", "mass"))


def _edges(bins: int) -> Floats:
    return np.linspace(0.0, 1.0, int(bins) + 1)[1:-1]


def _atoms_for(
    bins: Sequence[int], binning: Binning, first: Any, y_prob: Any, options: InputOptions
) -> Points:
    """Points that give the sums over these bins; from many rows, without a sort of all of them."""
    for number in bins:
        _require(number, binning)
    if isinstance(first, Points | Sketch):
        return as_points(first, y_prob, **options)
    pairs = as_rows(first, y_prob, **options)
    if binning == "mass":
        return atoms_around_shares(pairs, bins)
    return atoms_around_edges(pairs, np.concatenate([_edges(number) for number in bins]))


def _doubtful(atoms: Points, bins: int, binning: Binning, cuts: NDArray[Any]) -> Floats:
    """Weight, in each bin, of atoms of a sketch that reach over one of its edges."""
    if atoms.position_error == 0.0:
        return np.zeros(cuts.size - 1)
    mass = over_outcomes(atoms.mass)
    if binning == "width":
        edges = _edges(bins)
        spread = atoms.position_error * atoms.scale.steepness
        last = np.searchsorted(edges, atoms.p + spread, side="right")
        doubt = last != np.searchsorted(edges, atoms.p - spread)
    else:
        place = atoms.cumulative[:, 0] * (bins / atoms.total)
        doubt = np.floor(place[:-1] + 1e-9) != np.floor(place[1:] - 1e-9)
    return np.add.reduceat(mass * doubt, cuts[:-1])


def binned_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    bins: int = DEFAULT_BINS,
    binning: Binning = "width",
    norm: Norm = "l1",
    **options: Unpack[InputOptions],
) -> float:
    """The gap between mean prediction and mean outcome over bins: "ECE" as most people mean it.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    bins : int
        How many.
    binning : {"width", "mass"}
        Equal widths, intervals (a, b] with 0 in the first; or equal numbers of rows.
    norm : {"l1", "l2", "max"}
        Weighted mean of |gap|; root of the weighted mean of gap²; or the largest |gap|.
    **options
        How to read the arrays (see `InputOptions`).

    Notes
    -----
    Neither continuous in the predictions nor consistent: an arbitrarily small change of a prediction
    at an edge moves it by up to 1, and more bins give more error, from noise alone.

    References
    ----------
    Naeini, Cooper and Hauskrecht, 2015; Guo, Pleiss, Sun and Weinberger, 2017.

    Examples
    --------
    >>> round(binned_ece([0, 1, 1, 1], [0.3, 0.3, 0.8, 0.9]), 3)
    0.175
    """
    atoms = _atoms_for([bins], binning, y_true, y_prob, options)
    return binned_ece_of_atoms(atoms, bins=bins, binning=binning, norm=norm).value


def binned_ece_of_atoms(
    atoms: Points, *, bins: int = DEFAULT_BINS, binning: Binning = "width", norm: Norm = "l1"
) -> Bounded:
    """Binned ECE, and what rows near an edge can change if a sketch does not know their side.

    A share m that changes bins changes the sum of |weight · gap| by 2m, the sum of weight · gap² by
    6m, and a bin's gap by 2m / (weight - m) at most. Mean predictions are known up to their drift.
    """
    table = bins_of(atoms, bins, binning)
    m, drift = table.doubtful, mean_drift(atoms)
    if norm == "l1":
        return Bounded(float(table.weight @ np.abs(table.gap)), 2.0 * float(m.sum()) + drift)
    if norm == "l2":
        value = float(np.sqrt(table.weight @ table.gap**2))
        return Bounded(value, _root_error(value, 6.0 * float(m.sum())) + drift)
    require_choice("norm", norm, ("l1", "l2", "max"))
    with np.errstate(divide="ignore"):
        error = np.where(m > 0, 2.0 * m / np.maximum(table.weight - m, 0.0), 0.0)
    return Bounded(float(np.abs(table.gap).max()), float(min(error.max() + drift, 1.0)))


def debiased_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    bins: int = DEFAULT_BINS,
    binning: Binning = "mass",
    **options: Unpack[InputOptions],
) -> float:
    """The ℓ2 error over bins without the bias of the bins' own noise.

    √max(0, Σ weight · (gap² - ȳ(1-ȳ)/(n_b - 1))) over bins with two rows or more, whose weights make
    up 1; NaN where no bin has two. With weights, n_b is the number (Σw)² / Σw² of rows of equal weight
    that a bin is worth, which leaves the estimate of the noise unbiased.

    Parameters
    ----------
    y_true, y_prob, bins, binning, **options
        As for `binned_ece`; not for soft labels, nor for sketches with weights, which may hold some:
        the noise of an outcome between 0 and 1 is not known.

    References
    ----------
    Kumar, Liang and Ma, *Verified uncertainty calibration*, 2019; Bröcker, 2012; Ferro and Fricker,
    2012.

    Examples
    --------
    >>> debiased_ece([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5], bins=1)
    0.0
    """
    atoms = _atoms_for([bins], binning, y_true, y_prob, options)
    return debiased_ece_of_atoms(atoms, bins=bins, binning=binning).value


def debiased_ece_of_atoms(
    atoms: Points, *, bins: int = DEFAULT_BINS, binning: Binning = "mass"
) -> Bounded:
    """Debiased ECE; the correction changes with the bins by as little as they do."""
    if atoms.soft:
        raise InputError(
            "must be 0 or 1, as the debiased ECE subtracts the noise of such outcomes: it takes neither "
            "soft labels nor a sketch with weights, which may hold some",
            argument="y_true",
            cure="Pass {y_true} and {y_prob} as arrays of rows, or use {other}.",
            y_true=Option("y_true"),
            y_prob=Option("y_prob"),
            other=Function("measures.sweep_ece"),
        )
    table = bins_of(atoms, bins, binning)
    rows = table.weight**2 / table.squared
    used = rows > 1.5
    if not used.any():
        return Bounded(float("nan"), 0.0)
    share = table.weight[used] / table.weight[used].sum()
    noise = table.outcome[used] * (1.0 - table.outcome[used]) / (rows[used] - 1.0)
    value = float(np.sqrt(max(0.0, float(share @ (table.gap[used] ** 2 - noise)))))
    # A row whose bin is not known may also decide whether a bin has two.
    known = rows * (1.0 - np.minimum(table.doubtful / table.weight, 1.0))
    lone = (table.doubtful > 0.0) & (known < 2.0)
    moved = 8.0 * float(table.doubtful.sum()) + 2.0 * float(table.weight[lone].sum())
    moved = moved / float(table.weight[used].sum()) + 3.0 * mean_drift(atoms)
    return Bounded(value, _root_error(value, moved))


def sweep_ece(
    y_true: Any, y_prob: Any = None, *, norm: Norm = "l1", **options: Unpack[InputOptions]
) -> float:
    """ECE over as many bins of equal mass as leave the mean outcomes in increasing order.

    The number of bins grows from 1 until the first one that breaks the order; the one before counts.

    Parameters
    ----------
    y_true, y_prob, norm, **options
        As for `binned_ece`.

    References
    ----------
    Roelofs, Cain, Shlens and Mozer, *Mitigating bias in calibration error estimation*, 2022.

    Examples
    --------
    >>> round(sweep_ece([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9]), 3)
    0.25
    """
    few = range(1, FEW_BINS + 1)
    atoms = _atoms_for(few, "mass", y_true, y_prob, options)
    best = _sweep(atoms, FEW_BINS)
    if best == FEW_BINS:  # still in order: all rows must be sorted after all
        atoms = as_points(y_true, y_prob, **options)
        best = _sweep(atoms, MOST_BINS)
    return binned_ece_of_atoms(atoms, bins=best, binning="mass", norm=norm).value


def sweep_ece_of_atoms(atoms: Points, *, norm: Norm = "l1") -> Bounded:
    """ECE-sweep; from a sketch without a bound, as rows may be in order for another number of bins."""
    best = _sweep(atoms, MOST_BINS)
    return _with_chosen_bins(
        binned_ece_of_atoms(atoms, bins=best, binning="mass", norm=norm), atoms
    )


def _with_chosen_bins(found: Bounded, atoms: Points) -> Bounded:
    """Without a bound from a sketch: the rows themselves might choose another number of bins."""
    return found if atoms.position_error == 0.0 else Bounded(found.value, float("nan"))


def _sweep(atoms: Points, most: int) -> int:
    """The number of bins before the first that leaves mean outcomes out of order."""
    for bins in range(2, min(int(atoms.n), atoms.p.size, most) + 1):
        if np.any(np.diff(bins_of(atoms, bins, "mass").outcome) < 0.0):
            return bins - 1
    return min(int(atoms.n), atoms.p.size, most)


def cross_validated_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    binning: Binning = "mass",
    norm: Norm = "l1",
    **options: Unpack[InputOptions],
) -> float:
    """ECE over the number of bins whose means predict left-out outcomes best.

    The numbers 1, 2, 3, 4, 6, 8, 12, ... are compared by the squared error of each outcome against
    the mean of the other outcomes in its bin, which has a closed form: no folds, no seed.

    Parameters
    ----------
    y_true, y_prob, binning, norm, **options
        As for `binned_ece`; for rows without weights.

    Examples
    --------
    >>> round(cross_validated_ece([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5]), 3)
    0.0
    """
    atoms = _atoms_for(CROSS_VALIDATED, binning, y_true, y_prob, options)
    return cross_validated_ece_of_atoms(atoms, binning=binning, norm=norm).value


def cross_validated_ece_of_atoms(
    atoms: Points, *, binning: Binning = "mass", norm: Norm = "l1"
) -> Bounded:
    """Cross-validated ECE; from a sketch without a bound, as ECE-sweep."""
    if atoms.squared is not None:
        raise InputError(
            "cannot be used where rows are left out one by one, and nor can soft labels",
            argument="sample_weight",
            cure="Use {binned} or {sweep}, which take both.",
            binned=Function("measures.binned_ece"),
            sweep=Function("measures.sweep_ece"),
        )
    allowed = [bins for bins in CROSS_VALIDATED if bins <= max(1, atoms.n // 2)]
    best = min(allowed, key=lambda bins: _left_out_error(bins_of(atoms, bins, binning), atoms.n))
    return _with_chosen_bins(
        binned_ece_of_atoms(atoms, bins=best, binning=binning, norm=norm), atoms
    )


def _left_out_error(table: Bins, n: int) -> float:
    """Sum of (y - mean of the others in the bin)²; a row alone in its bin is predicted as ½."""
    rows, events = table.weight * n, table.weight * n * table.outcome
    others = np.maximum(rows - 1.0, 1.0)
    squared = events * ((rows - events) / others) ** 2 + (rows - events) * (events / others) ** 2
    return float(np.sum(np.where(rows > 1.5, squared, 0.25)))


def _root_error(value: float, squared_error: float) -> float:
    """The error of a root, from that of its square."""
    direct = squared_error / value if value > 0.0 else np.inf
    return float(min(np.sqrt(squared_error), direct))


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
