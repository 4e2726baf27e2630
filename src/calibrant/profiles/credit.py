"""Credit profile: a table of rating grades, and the Gini coefficient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE
from calibrant.data.arrays import as_column, is_missing
from calibrant.decisions.net_benefit import require_thresholds
from calibrant.errors import InputError, show_value
from calibrant.inference.correction import adjusted_p_values
from calibrant.inference.profile import UNIT, Profile, Sample, Table, Unavailable, profile
from calibrant.profiles.clinical import observed_expected
from calibrant.profiles.scores import brier_score, gini

Floats = NDArray[np.float64]

DEFAULT_CUTS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
SOURCE = (
    "Jeffreys: European Central Bank 2019; binomial: Basel Committee 2005; upper bounds: Pluto and "
    "Tasche 2005; correction: Holm 1979"
)
INDEPENDENT = (
    "defaults are taken to be independent given the grade, as in Pluto and Tasche's first model; "
    "if they are not, p-values are too small and bounds too low: name what defaults share as the cluster"
)
CLUSTERED = (
    "numbers of rows and defaults are divided by the design effect of clusters on the default rate (at "
    "least 1; rows per cluster where there is no default)"
)


@profile
def credit(
    *, grades: Any = None, cuts: Iterable[float] | None = None, order: Sequence[Any] | None = None
) -> Profile:
    """Credit profile: observed and expected defaults by grade, with tests and upper bounds; Gini.

    Parameters
    ----------
    grades : array, optional
        The grade of each row. Without it, grades are ranges of the predictions.
    cuts : several numbers, optional
        Where the ranges of predictions begin; by default those of a usual master scale, from 0.001 to
        0.2.
    order : sequence, optional
        The grades from best to worst. Without it they go by their mean prediction.

    Notes
    -----
    The p-values are one-sided: small where defaults are more than the mean prediction allows. An upper
    bound takes the rows and defaults of its grade and of all worse ones together, which is what makes it
    useful for grades with few defaults or none, and rests on the grades being in order.

    References
    ----------
    Pluto and Tasche, *Thinking positively*, Risk 2005; European Central Bank, *Instructions for reporting
    the validation results of internal models*, 2019.

    Examples
    --------
    >>> import calibrant as cal
    >>> y, p = [0] * 99 + [1] + [0] * 45 + [1] * 5, [0.004] * 100 + [0.08] * 50
    >>> print(cal.assess(y, p, profile=credit(cuts=[0.01])).profile.tables[0].columns["defaults"])
    (1, 5)
    """
    if grades is not None and cuts is not None:
        raise InputError("`grades` must not be passed together with `cuts`.", argument="grades")
    if order is not None and grades is None:
        raise InputError("`order` needs `grades`.", argument="order")
    column = None if grades is None else as_column(grades, "grades", dates=True)
    edges = require_thresholds(DEFAULT_CUTS if cuts is None else cuts, "cuts")
    table = partial(_grade_table, grades=column, cuts=edges, order=order)
    return Profile(
        "credit",
        {
            "observed / expected": observed_expected,
            "Gini": gini,
            "Brier score": brier_score,
            "grades": table,
        },
    )


# -- the tests of one grade ------------------------------------------------------------------------


def jeffreys_p_value(n: Any, defaults: Any, pd: Any) -> Floats:
    """Posterior probability, under Jeffreys' prior, that the default rate is at most `pd`.

    Examples
    --------
    >>> round(float(jeffreys_p_value(1000, 12, 0.008)), 7)
    0.0843342
    """
    from scipy.special import betainc

    n, defaults = np.asarray(n, dtype=np.float64), np.asarray(defaults, dtype=np.float64)
    return np.asarray(betainc(defaults + 0.5, n - defaults + 0.5, pd))


def binomial_p_value(n: Any, defaults: Any, pd: Any) -> Floats:
    """P-value of the exact binomial test: probability of so many defaults or more at the rate `pd`.

    Examples
    --------
    >>> round(float(binomial_p_value(1000, 12, 0.008)), 7)
    0.1110537
    """
    from scipy.special import betainc

    n, defaults = np.asarray(n, dtype=np.float64), np.asarray(defaults, dtype=np.float64)
    some = defaults > 0.0
    tail = betainc(np.where(some, defaults, 1.0), n - defaults + 1.0, pd)
    return np.asarray(np.where(some, tail, 1.0))


def pluto_tasche(n: Any, defaults: Any, confidence: float = CONFIDENCE) -> Floats:
    """Upper bounds of the default rates of grades, which are in order from best to worst.

    Each pools its grade with all worse ones, so that the bounds never fall from a grade to the next
    worse one where there are no defaults; defaults are independent.

    Examples
    --------
    >>> pluto_tasche([100, 400, 300], [0, 0, 0], confidence=0.5).round(8)
    array([0.00086606, 0.00098972, 0.00230782])
    """
    from scipy.special import betaincinv

    n, defaults = np.asarray(n, dtype=np.float64), np.asarray(defaults, dtype=np.float64)
    rows, seen = np.cumsum(n[::-1])[::-1], np.cumsum(defaults[::-1])[::-1]
    left = rows - seen
    bound = betaincinv(seen + 1.0, np.maximum(left, 1e-300), confidence)
    return np.asarray(np.where(left > 0.0, bound, 1.0))


# -- the table -------------------------------------------------------------------------------------


def _grade_table(
    sample: Sample, grades: NDArray[Any] | None, cuts: Floats, order: Sequence[Any] | None
) -> Table:
    if sample.fractional:
        raise Unavailable("the grade table counts defaults; it takes no weights and no soft labels")
    weight = np.rint(sample.share * sample.sketch.n)
    p, y = sample.p, sample.y
    note = INDEPENDENT if sample.cluster is None else CLUSTERED
    if grades is not None:
        names, codes = _grades(sample, grades, order)
    else:
        names = [f"{low:g} to {high:g}" for low, high in pairwise([0.0, *cuts.tolist(), 1.0])]
        codes = np.searchsorted(cuts, p + (UNIT if sample.rows is None else 0.0), side="right")
    n, defaults, expected = (
        np.asarray(np.bincount(codes, each, len(names)), dtype=np.float64)
        for each in (weight, weight * y, weight * p)
    )
    factor = np.ones(len(names))
    if sample.cluster is not None:
        factor = _design_effects(codes, n, defaults, y, weight, sample.cluster)
    rows, events, tested = n / factor, defaults / factor, n > 0.0
    with np.errstate(invalid="ignore"):
        rate, mean = defaults / n, expected / n
    jeffreys, binomial, holm = np.full((3, len(names)), np.nan)
    jeffreys[tested] = jeffreys_p_value(rows[tested], events[tested], mean[tested])
    binomial[tested] = binomial_p_value(rows[tested], events[tested], mean[tested])
    holm[tested] = adjusted_p_values(list(jeffreys[tested]), "holm")
    columns = {
        "grade": tuple(names),
        "n": tuple(map(int, n)),
        "defaults": tuple(map(int, defaults)),
        "observed": tuple(rate.tolist()),
        "expected": tuple(mean.tolist()),
        "Jeffreys p": tuple(jeffreys.tolist()),
        "corrected": tuple(holm.tolist()),
        "binomial p": tuple(binomial.tolist()),
        f"upper {100 * sample.confidence:g}%": tuple(
            pluto_tasche(rows, events, sample.confidence).tolist()
        ),
    }
    if not tested.all():
        empty = [str(name) for name, has in zip(names, tested, strict=True) if not has]
        note += f". No rows in {', '.join(empty)}: these have no tests"
    return Table("grades", columns, SOURCE, note)


def _grades(
    sample: Sample, grades: NDArray[Any], order: Sequence[Any] | None
) -> tuple[list[Any], NDArray[np.int64]]:
    """Names of the grades from best to worst, and the place of each row's."""
    column, numbers = sample.column("grades", grades)
    missing = np.flatnonzero(is_missing(column))
    if missing.size:
        row = int(numbers[missing[0]])
        raise InputError(
            f"`grades` must not hold missing values; row {row} has none.",
            argument="grades",
            row=row,
        )
    text = column.astype(str) if column.dtype.kind == "O" else column
    found, codes = np.unique(text, return_inverse=True)
    codes = codes.ravel()
    if order is None:
        mean = np.bincount(codes, sample.p) / np.bincount(codes)
        names = found[np.argsort(mean, kind="stable")].tolist()
    else:
        names = list(order)
    places = {name: k for k, name in enumerate(names)}
    for name in found.tolist():
        if name not in places:
            raise InputError(
                f"`order` must hold every grade; {show_value(name)} is missing.", argument="order"
            )
    return names, np.array([places[name] for name in found.tolist()])[codes]


def _design_effects(
    codes: NDArray[np.int64],
    n: Floats,
    defaults: Floats,
    y: Floats,
    weight: Floats,
    cluster: NDArray[np.int64],
) -> Floats:
    """Design effect of clusters on each grade's default rate, at least 1; sizes where none or all default."""
    factors = np.ones(n.size)
    for k in np.flatnonzero(n > 0.0):
        own, rate = codes == k, defaults[k] / n[k]
        sizes = np.bincount(cluster[own], weight[own])
        residuals = np.bincount(cluster[own], (weight * (y - rate))[own])
        groups = np.count_nonzero(sizes)
        factors[k] = float(sizes @ sizes) / n[k]
        if 0.0 < rate < 1.0 and groups > 1:
            squares = float(residuals @ residuals) * groups / (groups - 1.0)
            factors[k] = max(squares / (n[k] * rate * (1.0 - rate)), 1.0)
    return factors
