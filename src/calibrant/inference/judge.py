"""Rates judged by a model and corrected by a few human labels, with intervals that hold both samples.

If the human labels are of other items, perhaps with another rate, the judged rate is corrected by the judge's
sensitivity and specificity (Rogan & Gladen 1978; Lee et al. 2025, arXiv 2511.21140). If they are of a random
part of the same items, also with graded scores, the mean is that of the judge plus its mean error
(prediction-powered inference, Angelopoulos et al. 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student

from calibrant._arguments import CONFIDENCE, require_confidence
from calibrant.data.arrays import numbers, require_each, same_length
from calibrant.data.rows import require_same_index
from calibrant.errors import InputError, TooFewRows
from calibrant.measures.result_record import Record

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class JudgedMean(Record):
    """Mean of human labels, estimated with a judge.

    Attributes
    ----------
    value, low, high : float
        Estimate and interval.
    judged : float
        Mean of the judge's labels, uncorrected.
    sensitivity, specificity : float or None
        Of the judge, where the correction is by them.
    """

    value: float
    low: float
    high: float
    judged: float
    confidence: float
    sensitivity: float | None = None
    specificity: float | None = None

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f}); judged {self.judged:.4f}"


def judged_rate(
    judged: Any, *, human: Any, judged_of_human: Any, confidence: float = CONFIDENCE
) -> JudgedMean:
    """Rate of positives corrected for the judge's errors: (p + q0 - 1) / (q0 + q1 - 1).

    p is the share that the judge calls positive, q1 its sensitivity and q0 its specificity.

    Parameters
    ----------
    judged : array
        The judge's labels, 0 or 1, of the items in question.
    human, judged_of_human : array
        Human labels and the judge's, of other items, with both outcomes among them.
    confidence : float
        Of the interval.

    Notes
    -----
    The variance is the delta method's, at rates shrunk by two pseudo-counts each way (Agresti & Coull 1998);
    the estimate and its interval are cut at 0 and 1.

    Examples
    --------
    >>> found = judged_rate([1] * 60 + [0] * 40, human=[1] * 50 + [0] * 50,
    ...                     judged_of_human=[1] * 45 + [0] * 5 + [1] * 10 + [0] * 40)
    >>> print(found)
    0.5714 (0.3962 to 0.7572); judged 0.6000
    """
    require_confidence(confidence)
    require_same_index(human=human, judged_of_human=judged_of_human)
    columns = {"judged": judged, "human": human, "judged_of_human": judged_of_human}
    labels = {name: _binary(value, name) for name, value in columns.items()}
    same_length(human=labels["human"], judged_of_human=labels["judged_of_human"])
    positive = labels["human"] == 1
    if not 0 < positive.sum() < positive.size:
        raise TooFewRows("`human` must hold both outcomes, for sensitivity and specificity.")
    z = float(norm.ppf(0.5 + 0.5 * confidence))
    right = {
        1: labels["judged_of_human"][positive] == 1,
        0: labels["judged_of_human"][~positive] == 0,
    }
    q1, q0 = float(right[1].mean()), float(right[0].mean())
    if q0 + q1 <= 1.0:
        raise InputError(
            f"`judged_of_human` must agree with `human` more often than by chance; sensitivity {q1:.2f} and "
            f"specificity {q0:.2f} add up to 1 or less."
        )
    share = float(labels["judged"].mean())

    def corrected(p: float, specificity: float, sensitivity: float) -> float:
        value = (p + specificity - 1.0) / (specificity + sensitivity - 1.0)
        return min(max(value, 0.0), 1.0)

    p, n = _shrunk(labels["judged"], z)
    sensitivity, m1 = _shrunk(right[1], z)
    specificity, m0 = _shrunk(right[0], z)
    gain = max(specificity + sensitivity - 1.0, 1e-3)
    center = corrected(p, specificity, sensitivity)
    variance = (
        p * (1 - p) / n
        + (1 - center) ** 2 * specificity * (1 - specificity) / m0
        + center**2 * sensitivity * (1 - sensitivity) / m1
    ) / gain**2
    half = z * float(np.sqrt(variance))
    value = corrected(share, q0, q1)
    low, high = min(value, max(center - half, 0.0)), max(value, min(center + half, 1.0))
    return JudgedMean(value, low, high, share, confidence, q1, q0)


def judged_mean(
    judged: Any, *, human: Any, judged_of_human: Any, confidence: float = CONFIDENCE
) -> JudgedMean:
    """Prediction-powered mean: that of the judge plus its mean error on a random part with human labels.

    Parameters
    ----------
    judged : array
        The judge's scores of items without human labels.
    human, judged_of_human : array
        Human scores and the judge's, of a random part of the same kind of items.
    confidence : float
        Of the interval.

    Notes
    -----
    The judge's scores enter with the factor that makes the variance least (PPI++, Angelopoulos, Duchi & Zrnic
    2023): a useless judge costs nothing. The interval is Student's, with as many degrees of freedom as human
    labels less 2.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(3.0, 1.0, 2000)
    >>> judge = truth + rng.normal(0.4, 0.5, 2000)
    >>> print(judged_mean(judge[100:], human=truth[:100], judged_of_human=judge[:100]))
    2.9896 (2.8947 to 3.0845); judged 3.3647
    """
    require_confidence(confidence)
    require_same_index(human=human, judged_of_human=judged_of_human)
    scores, truth, seen = (
        numbers(value, name)
        for value, name in (
            (judged, "judged"),
            (human, "human"),
            (judged_of_human, "judged_of_human"),
        )
    )
    same_length(human=truth, judged_of_human=seen)
    n, m = truth.size, scores.size
    for name, size, least in (("human", n, 4), ("judged", m, 2)):
        if size < least:
            raise TooFewRows(f"`{name}` needs {least} labels or more; it has {size}.")
    if np.ptp(truth) == 0.0:
        raise TooFewRows(
            f"`human` must vary: all {n} labels are {truth[0]:g}, which says nothing of their spread.",
            hint="Label more items; for labels 0 and 1, `judged_rate` takes both kinds.",
        )
    spread = float(np.var(np.concatenate([scores, seen]), ddof=1))
    factor = 0.0
    if spread > 0:
        factor = float(np.cov(truth, seen)[0, 1]) / (spread * (1.0 + n / m))
    error = truth - factor * seen
    value = factor * float(scores.mean()) + float(error.mean())
    variance = factor**2 * float(scores.var(ddof=1)) / m + float(error.var(ddof=1)) / n
    half = float(student.ppf(0.5 + 0.5 * confidence, n - 2)) * float(np.sqrt(variance))
    return JudgedMean(value, value - half, value + half, float(scores.mean()), confidence)


def _binary(value: Any, name: str) -> Floats:
    labels = numbers(value, name)
    binary = (labels == 0) | (labels == 1)
    require_each(name, labels, binary, "hold 0 and 1", "For graded scores, use `judged_mean`.")
    return labels


def _shrunk(labels: NDArray[Any], z: float) -> tuple[float, float]:
    """Share and number of labels with z²/2 pseudo-labels of each kind (Agresti & Coull 1998)."""
    size = labels.size + z * z
    return (float(labels.sum()) + 0.5 * z * z) / size, size
