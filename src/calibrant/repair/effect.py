"""What a map does to rows that it was not learned from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, is_number
from calibrant._format import decimals, percent
from calibrant.data.atoms import Atoms
from calibrant.data.forms import InputOptions
from calibrant.data.pairs import Pairs
from calibrant.errors import InputError
from calibrant.inference.assess import read_clustered
from calibrant.measures.record import Record
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.recalibration.interface import Recalibrator, require_map
from calibrant.recalibration.logistic import logarithms

__all__ = ["Effect", "Scores", "effect_of", "log_losses"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scores(Record):
    """Log loss, Brier score, SmoothECE and area under the ROC curve of the same rows."""

    log_loss: float
    brier: float
    smooth_ece: float
    auc: float


@dataclass(frozen=True, repr=False)
class Effect(Record):
    """Scores before and after a map, and what it gains.

    Attributes
    ----------
    before, after : Scores
        Of the predictions as they are, and mapped.
    gain : float
        By how much the mean log loss falls.
    low, high : float
        The interval of the gain.
    confidence : float
        Of the interval.
    n : int
        Rows that were judged.
    """

    before: Scores
    after: Scores
    gain: float
    low: float
    high: float
    confidence: float
    n: int

    @property
    def verdict(self) -> str:
        """Is it "better", "worse" or "no clear difference", by the interval of the gain."""
        if self.low > 0.0:
            return "better"
        return "worse" if self.high < 0.0 else "no clear difference"

    def __repr__(self) -> str:
        return (
            f"Effect({self.verdict}: log loss {decimals(self.before.log_loss)} → "
            f"{decimals(self.after.log_loss)}, gain {self.gain:+.4f} "
            f"({percent(self.confidence)} interval {self.low:+.4f} to {self.high:+.4f}), SmoothECE "
            f"{decimals(self.before.smooth_ece)} → {decimals(self.after.smooth_ece)}, AUC "
            f"{decimals(self.before.auc)} → {decimals(self.after.auc)}, n={self.n})"
        )


def effect_of(
    recalibrator: Recalibrator,
    y_true: Any,
    y_prob: Any,
    *,
    cluster: Any = None,
    confidence: float = CONFIDENCE,
    **options: Unpack[InputOptions],
) -> Effect:
    """Scores before and after a map, on rows that it was not learned from, with an interval for the gain.

    Parameters
    ----------
    recalibrator : Recalibrator
        One that is fitted, to other rows than these.
    y_true, y_prob, **options
        As for `assess`.
    cluster : array, optional
        Which rows belong together; the interval then counts clusters.
    confidence : float
        Of the interval of the gain.

    Notes
    -----
    The interval is Student's for the mean of the change of every row's loss, or of every cluster's.
    Predictions of 0 and 1 count as 6e-8 away from them.

    Examples
    --------
    >>> from calibrant.recalibration import PlattRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p**2
    >>> platt = PlattRecalibrator().fit(p[:2000], y[:2000])
    >>> effect_of(platt, y[2000:], p[2000:]).verdict
    'better'
    """
    from scipy.special import stdtrit

    require_map(recalibrator, "recalibrator")
    if not (is_number(confidence) and 0.0 < confidence < 1.0):
        raise InputError(
            "must lie between 0 and 1",
            argument="confidence",
            seen=confidence,
            cure="Leave it out for 0.95.",
        )
    pairs, codes = read_clustered(y_true, y_prob, cluster, **options)
    weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
    share = weight / weight.sum()
    unit = np.arange(pairs.n) if codes is None else codes[0]
    mapped = recalibrator.transform(pairs.p)
    saved = log_losses(pairs.y, pairs.p) - log_losses(pairs.y, mapped)
    gain = float(share @ saved)
    sums = np.bincount(unit, share * (saved - gain))
    size = np.bincount(unit, share)
    units = 1.0 / float(size @ size)  # as many of equal weight
    error = float(np.linalg.norm(sums)) * np.sqrt(units / max(units - 1.0, 1e-9))
    reach = float(stdtrit(max(units - 1.0, 1e-9), 0.5 + 0.5 * confidence)) * error
    return Effect(
        _scores(pairs, pairs.p),
        _scores(pairs, mapped),
        gain,
        gain - reach,
        gain + reach,
        float(confidence),
        pairs.n,
    )


def log_losses(y: Floats, p: Floats) -> Floats:
    """-log of the probability of what happened, with 0 and 1 as far away as float32 can tell."""
    low, high = logarithms(p)
    return np.asarray(-(y * low + (1.0 - y) * high))


def _scores(pairs: Pairs, p: Floats) -> Scores:
    weight = np.ones(p.size) if pairs.weight is None else pairs.weight
    rows = Pairs(p, pairs.y, pairs.weight, soft=True)
    mean = float(np.average(log_losses(pairs.y, p), weights=weight))
    brier = float(np.average((p - pairs.y) ** 2, weights=weight))
    return Scores(mean, brier, smooth_ece(rows), _auc(Atoms.from_pairs(rows)))


def _auc(atoms: Atoms) -> float:
    """The chance that an event has the higher prediction than another row; a tie counts half."""
    others, events = atoms.mass.T
    below = np.cumsum(others) - 0.5 * others
    total = float(others.sum() * events.sum())
    return float(events @ below) / total if total else float("nan")
