"""CORP: the score split into miscalibration, discrimination and uncertainty by isotonic regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points, as_points
from calibrant.data.rows import Dropped, InputOptions
from calibrant.measures._chains import pooled
from calibrant.measures.binned import DEFAULT_BINS, Binning, bins_of
from calibrant.measures.result_record import Bounded, Record, rows_text

__all__ = [
    "Decomposition",
    "binned_decomposition",
    "corp_decomposition",
    "miscalibration",
    "miscalibration_of_atoms",
]

Floats = NDArray[np.float64]
Score = Literal["brier", "log"]


@dataclass(frozen=True, repr=False)
class Decomposition(Record):
    """mean score = miscalibration - discrimination + uncertainty.

    Attributes
    ----------
    mean_score : float
        Score of the predictions as they are.
    miscalibration : float
        What recalibration would gain (MCB, reliability).
    discrimination : float
        What the recalibrated predictions gain over the base rate (DSC, resolution).
    uncertainty : float
        Score of always predicting the base rate (UNC).
    within_bins : float
        What bins lose of the predictions: 0 for CORP. Infinite where the mean score is, even if that
        of the bins is, too.
    error : float
        How far a sketch may be off in `miscalibration`; 0 from arrays, infinite for the log score.
    score : str
        "brier" or "log".
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> parts = corp_decomposition([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> total = parts.miscalibration - parts.discrimination + parts.uncertainty
    >>> round(parts.mean_score, 3), round(total, 3)
    (0.085, 0.085)
    """

    mean_score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    within_bins: float
    error: float
    score: str
    n: int
    dropped: Mapping[str, int] = field(default_factory=Dropped)

    def __repr__(self) -> str:
        return (
            f"Decomposition({self.score} {self.mean_score:.6f} = MCB {self.miscalibration:.6f} "
            f"- DSC {self.discrimination:.6f} + UNC {self.uncertainty:.6f}"
            + (f" + within bins {self.within_bins:.6f}" if self.within_bins else "")
            + f", {rows_text(self.n, self.dropped)})"
        )


def corp_decomposition(
    y_true: Any,
    y_prob: Any = None,
    *,
    score: Score = "brier",
    **options: Unpack[InputOptions],
) -> Decomposition:
    """Split the mean Brier or log score by isotonic regression (CORP).

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    score : {"brier", "log"}
        (p - y)², or minus the logarithm of the probability of what happened.
    **options
        How to read the arrays (see `InputOptions`).

    Notes
    -----
    The recalibrated predictions fit their own noise: MCB of calibrated predictions is above 0 on a
    finite sample. A map that is not increasing is not found.

    References
    ----------
    Dimitriadis, Gneiting and Jordan, *Stable reliability diagrams for probabilistic classifiers*,
    2021.

    Examples
    --------
    >>> corp_decomposition([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
    Decomposition(brier 0.185000 = MCB 0.060000 - DSC 0.125000 + UNC 0.250000, n=4)
    """
    atoms = as_points(y_true, y_prob, **options)
    weight = over_outcomes(atoms.mass)
    fitted = pooled(atoms.mass[:, 1] / weight, weight)
    now, best, least = (
        _mean_score(p, atoms, score)
        for p in (atoms.p, fitted, np.full(weight.shape, atoms.base_rate))
    )
    return Decomposition(
        now,
        now - best,
        least - best,
        least,
        0.0,
        _error(atoms, score),
        score,
        atoms.n,
        atoms.dropped,
    )


def binned_decomposition(
    y_true: Any,
    y_prob: Any = None,
    *,
    score: Score = "brier",
    bins: int = DEFAULT_BINS,
    binning: Binning = "width",
    **options: Unpack[InputOptions],
) -> Decomposition:
    """Split the mean score by bins (Murphy): reliability - resolution + uncertainty + within bins.

    The last term is what the score changes when every prediction is replaced by the mean of its bin;
    without it the three do not add up.

    Parameters
    ----------
    y_true, y_prob, score, **options
        As for `corp_decomposition`.
    bins, binning
        As for `binned_ece`.

    References
    ----------
    Murphy, *A new vector partition of the probability score*, 1973; Bröcker, *Reliability,
    sufficiency, and the decomposition of proper scores*, 2009; Stephenson, Coelho and Jolliffe, 2008.

    Examples
    --------
    >>> binned_decomposition([0, 0, 1, 1], [0.2, 0.2, 0.8, 0.8])
    Decomposition(brier 0.040000 = MCB 0.040000 - DSC 0.250000 + UNC 0.250000, n=4)
    """
    atoms = as_points(y_true, y_prob, **options)
    table = bins_of(atoms, bins, binning)
    grouped = Points(
        table.prediction.copy(),
        np.stack([1.0 - table.outcome, table.outcome], axis=1) * table.weight[:, None],
        atoms.n,
    )
    now = _mean_score(atoms.p, atoms, score)
    coarse, best, least = (
        _mean_score(p, grouped, score)
        for p in (table.prediction, table.outcome, np.full(table.weight.shape, atoms.base_rate))
    )
    return Decomposition(
        now,
        coarse - best,
        least - best,
        least,
        now - coarse if np.isfinite(now) else now,
        6.0 * float(table.doubtful.sum()) if score == "brier" else _error(atoms, score),
        score,
        atoms.n,
        atoms.dropped,
    )


def miscalibration(
    y_true: Any, y_prob: Any = None, *, score: Score = "brier", **options: Unpack[InputOptions]
) -> float:
    """CORP's MCB: what the best increasing map would gain on these rows, in the score's units.

    Examples
    --------
    >>> round(miscalibration([0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9]), 6)
    0.06
    """
    return corp_decomposition(y_true, y_prob, score=score, **options).miscalibration


def miscalibration_of_atoms(atoms: Points) -> Bounded:
    """MCB of the Brier score, with its bound."""
    split = corp_decomposition(atoms)
    return Bounded(split.miscalibration, split.error)


def _mean_score(p: Floats, atoms: Points, score: Score) -> float:
    negative, positive = atoms.mass.T / atoms.total
    if score == "brier":
        return float((negative * p**2 + positive * (1.0 - p) ** 2).sum())
    require_choice("score", score, ("brier", "log"))
    from scipy.special import xlog1py, xlogy

    return -float(np.sum(xlog1py(negative, -p)) + np.sum(xlogy(positive, p)))


def _error(atoms: Points, score: Score) -> float:
    """Rows of a cell share a fitted value where they need not.

    The Brier score changes by at most twice what a prediction does. The fitted map rises by 1 in
    all, so keeping it level inside cells costs at most twice the heaviest cell.
    """
    if atoms.position_error == 0.0:
        return 0.0
    if score == "log":
        return float("inf")
    moved = atoms.position_error * atoms.scale.steepness
    return 2.0 * moved + 2.0 * float(over_outcomes(atoms.mass).max()) / atoms.total
