"""Calibration error of order p without bins: cross-fitted, so that noise adds nothing on average.

For any map g that was learned on other rows, E[sign(g(f) - f) (y - f)] is at most the L1 calibration error
E|E[y|f] - f|, and equals it where g is right about the side on which the truth lies (arXiv 2602.24230).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import (
    CONFIDENCE,
    generator,
    require_choice,
    require_confidence,
    require_count,
)
from calibrant.data.rows import has_classes
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.quantiles import normal_quantile
from calibrant.io.from_data import sample_from
from calibrant.io.scan import ReadingOptions
from calibrant.measures.result_record import Record
from calibrant.recalibration.class_map import IdentityOfClasses
from calibrant.recalibration.effect import Sample, cross_fit, mean_and_error
from calibrant.recalibration.parametric import PlattRecalibrator

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CrossFittedError(Record):
    """Cross-fitted calibration error.

    Attributes
    ----------
    value, standard_error : float
        A plain mean and its standard error; `value` may be below 0 where there is nothing to find.
    low, high : float
        Normal interval, which takes the maps for given. Like the standard error, NaN where the map leaves
        every prediction as it is: it has taken no side, so there is nothing to estimate.
    overconfident, underconfident : float
        Parts of `value` from rows whose prediction the map moves towards, or away from, one half.
    """

    value: float
    standard_error: float
    low: float
    high: float
    overconfident: float
    underconfident: float
    norm: str
    n: int

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if np.isnan(self.standard_error):
            return f"no interval ({self.norm}): the map leaves every prediction as it is"
        return (
            f"{self.value:.4f} ± {self.standard_error:.4f} ({self.norm}): overconfident "
            f"{self.overconfident:.4f}, underconfident {self.underconfident:.4f}"
        )


def cross_fitted_error(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    norm: Literal["l1", "l2"] = "l1",
    recalibrator: Callable[[], Any] = PlattRecalibrator,
    n_folds: int = 5,
    cluster: Any = None,
    confidence: float = CONFIDENCE,
    random_state: int = 0,
    **options: Unpack[ReadingOptions],
) -> CrossFittedError:
    """L1 or L2 calibration error by cross-fitting: no bins, no bandwidth, any number of classes.

    Parameters
    ----------
    y_true, y_prob : array
        Outcomes and predicted probabilities. For several classes a matrix with a column for each: the
        error is then summed over columns.
    data : frame, files or other source, optional
        What `scan` reads; `y_true`, `y_prob`, `cluster` and `sample_weight` then name columns.
    norm : {"l1", "l2"}
        E|E[y|f] - f|, or the root of its mean square.
    recalibrator : callable
        Makes the map that tells on which side of the prediction the truth lies: Platt scaling by default, for
        classes one of each column, because it always takes a side. A map that leaves predictions alone unless
        the error is clear, as the adaptive one does, has nothing to say about small errors.
    n_folds : int
        Random folds; stratified ones would leak the outcomes of a fold into the others.
    cluster : array, optional
        Rows of one cluster stay together, in folds and in the standard error.
    confidence : float
        Of the interval.
    random_state : int
        Of the folds.
    **options
        How the arrays are read (see `calibrant.data.InputOptions`).

    Notes
    -----
    Value and interval are of a lower bound of the error: of the part that the map sees. Where maps are unsure
    of the side, the bound is below the error, and the folds, each of which teaches the maps of the others,
    vary together: the interval of a small error is then too narrow. `assess` tests whether there is any.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < 0.5 + 0.6 * (p - 0.5)
    >>> found = cross_fitted_error(y, p)
    >>> found.low < 0.1 < found.high, found.overconfident > found.underconfident
    (True, True)
    """
    require_choice("norm", norm, ("l1", "l2"))
    require_confidence(confidence)
    require_count("n_folds", n_folds, least=2)
    if not callable(recalibrator) or not hasattr(recalibrator(), "fit"):
        raise InputError(
            "`recalibrator` must make a map that can be fitted.", argument="recalibrator"
        )
    sample = _sample(y_true, y_prob, data, cluster, options)
    n = sample.n
    if n < 2 * n_folds:
        raise TooFewRows(
            f"`y_true` needs at least {2 * n_folds} rows; there are {n}.", argument="y_true"
        )
    units = int(sample.unit.max()) + 1
    fold = (generator(random_state).permutation(units) % n_folds)[sample.unit]
    p, y = sample.probs[:, None], sample.y[:, None]
    if not sample.binary:
        p, y = sample.probs, (y == np.arange(sample.probs.shape[1])).astype(np.float64)
    weight = sample.ones
    scores, over, moved = np.zeros(n), np.zeros(n), False
    for forecast, outcome in zip(p.T, y.T, strict=True):
        column = replace(sample, given=forecast, probs=forecast, y=outcome)
        fitted = cross_fit(recalibrator(), column, fold)
        step = fitted - forecast
        moved |= bool(step.any())
        if norm == "l1":
            score = np.sign(step) * (outcome - forecast)
        else:
            size = np.sqrt(np.average(step**2, weights=weight))
            score = step * (outcome - forecast) / size if size > 0 else np.zeros(n)
        scores += score
        over += np.where(np.abs(fitted - 0.5) < np.abs(forecast - 0.5), score, 0.0)
    value, error, _ = mean_and_error(scores, weight, sample.unit)
    error *= float(np.sqrt(units / max(units - 1, 1))) if moved else np.nan
    half = normal_quantile(0.5 + 0.5 * confidence) * error
    part = float(np.average(over, weights=weight))
    return CrossFittedError(value, error, value - half, value + half, part, value - part, norm, n)


def _sample(y_true: Any, y_prob: Any, data: Any, cluster: Any, options: Any) -> Sample:
    """Rows of one event, or of classes where there are three columns or more."""
    reading: Any = options
    if data is not None:
        y_true, y_prob, cluster, reading = sample_from(
            data, y_true, y_prob, options, cluster=cluster, rows=True
        )
    classes = has_classes(y_prob, reading.get("multiclass"), reading.get("classes"))
    reading = {name: value for name, value in reading.items() if name != "multiclass"}
    none = IdentityOfClasses() if classes else None
    return Sample.read(y_true, y_prob, made=none, cluster=cluster, **reading)
