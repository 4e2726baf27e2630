"""The credit profile: a table of rating grades, and Gini's coefficient."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, is_number
from calibrant.data.arrays import as_column, is_missing
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, Option, Where
from calibrant.inference.correction import adjusted_p_values
from calibrant.inference.profile import Profile, Sample, Table, Unavailable
from calibrant.profiles.cells import cells_of
from calibrant.profiles.clinical import observed_expected
from calibrant.profiles.discrimination import gini
from calibrant.profiles.scores import shared_brier

__all__ = ["binomial_p_value", "credit", "jeffreys_p_value", "pluto_tasche"]

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
    "numbers of rows and defaults are divided by the factor by which clusters inflate the variance of the "
    "default rate (at least 1; rows per cluster where no default was seen); grades are pooled for the "
    "upper bounds as in Pluto and Tasche"
)


def credit(
    *, grades: Any = None, cuts: Iterable[float] | None = None, order: Sequence[Any] | None = None
) -> Profile:
    """The credit profile: defaults seen and expected by grade, with tests and upper bounds; Gini.

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
        raise InputError(
            "must not be passed together with {cuts}",
            argument="grades",
            cuts=Option("cuts"),
            cure="Leave out one of the two.",
        )
    if order is not None and grades is None:
        raise InputError(
            "needs {grades}",
            argument="order",
            grades=Option("grades", ...),
            cure="Pass {grades}, or leave it out.",
        )
    column = None if grades is None else as_column(grades, "grades", dates=True)
    edges = _require_cuts(DEFAULT_CUTS if cuts is None else cuts)
    table = partial(_grade_table, grades=column, cuts=edges, order=order)
    return Profile(
        "credit",
        {
            "observed / expected": observed_expected,
            "Gini": gini,
            "Brier score": shared_brier,
            "grades": table,
        },
    )


def _require_cuts(cuts: Iterable[float]) -> Floats:
    if isinstance(cuts, str) or not isinstance(cuts, Iterable):
        raise InputError(
            "must be several numbers",
            argument="cuts",
            seen=cuts,
            cure="Pass limits between grades, such as [0.01, 0.05].",
        )
    listed = list(cuts)
    for value in listed:
        if not is_number(value) or not 0.0 < value < 1.0:
            raise InputError(
                "must lie strictly between 0 and 1",
                argument="cuts",
                seen=value,
                cure="Pass limits between grades, such as [0.01, 0.05].",
            )
    edges = np.asarray(listed, dtype=np.float64)
    if edges.size and not np.all(np.diff(edges) > 0.0):
        raise InputError(
            "must increase", argument="cuts", seen=listed, cure="Sort them, and give each once."
        )
    return edges


# -- the tests of one grade ------------------------------------------------------------------------


def jeffreys_p_value(n: Any, defaults: Any, pd: Any) -> Floats:
    """The posterior chance, under Jeffreys' prior, that the default rate is at most `pd`.

    Examples
    --------
    >>> round(float(jeffreys_p_value(1000, 12, 0.008)), 7)
    0.0843342
    """
    from scipy.special import betainc

    n, defaults = np.asarray(n, dtype=np.float64), np.asarray(defaults, dtype=np.float64)
    return np.asarray(betainc(defaults + 0.5, n - defaults + 0.5, pd))


def binomial_p_value(n: Any, defaults: Any, pd: Any) -> Floats:
    """The chance of so many defaults or more at the rate `pd`: the exact binomial test.

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
    names, codes, p, y, weight, cluster = _graded(sample, grades, cuts, order)
    many = len(names)
    n, defaults, expected = (
        np.asarray(np.bincount(codes, each, many), dtype=np.float64)
        for each in (weight, weight * y, weight * p)
    )
    with np.errstate(invalid="ignore"):
        mean = expected / n
    rows, events = n, defaults
    if cluster is not None:
        factor = _design_effects(codes, many, y, weight, cluster)
        rows, events = n / factor, defaults / factor
    tested = n > 0.0
    jeffreys, binomial = (
        np.where(
            tested, test(np.maximum(rows, 1e-300), events, np.where(tested, mean, 0.5)), np.nan
        )
        for test in (jeffreys_p_value, binomial_p_value)
    )
    holm = np.full(many, np.nan)
    holm[tested] = adjusted_p_values(list(jeffreys[tested]), "holm")
    with np.errstate(invalid="ignore"):
        rate = defaults / n
    columns = {
        "grade": tuple(names),
        "n": _whole(n),
        "defaults": _whole(defaults),
        "observed": tuple(rate.tolist()),
        "expected": tuple(mean.tolist()),
        "Jeffreys p": tuple(jeffreys.tolist()),
        "corrected": tuple(holm.tolist()),
        "binomial p": tuple(binomial.tolist()),
        f"upper {100 * sample.confidence:g}%": tuple(
            pluto_tasche(rows, events, sample.confidence).tolist()
        ),
    }
    empty = [name for name, has in zip(names, tested, strict=True) if not has]
    note = INDEPENDENT if cluster is None else CLUSTERED
    if empty:
        note += f". No rows in {', '.join(map(str, empty))}: these have no tests"
    doubtful = _doubtful(sample.sketch, cuts) if sample.pairs is None else 0
    if doubtful:
        note += f". From a sketch: {doubtful} rows lie in cells that a cut divides"
    return Table("grades", columns, SOURCE, note)


Graded = tuple[list[Any], NDArray[np.int64], Floats, Floats, Floats, NDArray[np.int64] | None]


def _graded(
    sample: Sample, grades: NDArray[Any] | None, cuts: Floats, order: Sequence[Any] | None
) -> Graded:
    """Names of the grades, and the grade, prediction, outcome, weight and cluster of each row."""
    if sample.pairs is None:
        return _graded_cells(sample, grades, cuts)
    pairs = sample.pairs
    if pairs.raw_weight is not None or pairs.soft:
        raise Unavailable("the grade table counts defaults; it takes no weights and no soft labels")
    cluster = None if sample.clusters is None else sample.clusters[0]
    ones = np.ones(pairs.n)
    if grades is None:
        codes = np.searchsorted(cuts, pairs.p, side="right")
        return _ranges(cuts), codes, pairs.p, pairs.y, ones, cluster
    column, numbers = sample.column("grades", grades, "Pass the grade of each row.")
    _refuse_missing(column, numbers)
    found, codes = np.unique(
        column.astype(str) if column.dtype.kind == "O" else column, return_inverse=True
    )
    codes = codes.ravel()
    if order is None:
        mean = np.bincount(codes, pairs.p) / np.bincount(codes)
        ranked = np.argsort(mean, kind="stable")
        names = [found[k].item() for k in ranked]
        place = np.empty_like(ranked)
        place[ranked] = np.arange(ranked.size)
        return names, place[codes], pairs.p, pairs.y, ones, cluster
    places = {name: k for k, name in enumerate(order)}
    for name in found.tolist():
        if name not in places:
            raise InputError(
                "must hold every grade",
                argument="order",
                seen=name,
                saying="{} is missing",
                cure="List all grades, from best to worst.",
            )
    return (
        list(order),
        np.array([places[name] for name in found.tolist()])[codes],
        pairs.p,
        pairs.y,
        ones,
        cluster,
    )


def _graded_cells(sample: Sample, grades: NDArray[Any] | None, cuts: Floats) -> Graded:
    if grades is not None:
        raise Unavailable("a column of grades needs rows; a sketch has ranges of predictions only")
    sketch = sample.sketch
    if sketch.weighted or sample.parts:
        raise Unavailable("the grade table of a sketch takes independent rows without weights")
    cells = sample.once(cells_of)
    codes = np.searchsorted(cuts, cells.p + 2.0**-36, side="right")
    return _ranges(cuts), codes, cells.p, cells.label, cells.weight, None


def _doubtful(sketch: Sketch, cuts: Floats) -> int:
    """Rows in cells that a cut divides: so many may be in the neighbouring grade."""
    place = np.asarray(sketch.scale.locate(cuts)) * sketch.nodes
    divided = np.floor(place[place % 1.0 > 0.0]).astype(np.int64)
    rows = over_outcomes(sketch.counts)
    return int(rows[np.isin(sketch.cells, divided) & (rows > 1)].sum())


def _refuse_missing(grades: NDArray[Any], numbers: NDArray[np.int64]) -> None:
    missing = np.flatnonzero(is_missing(grades))
    if missing.size:
        raise InputError(
            "must not hold missing values",
            argument="grades",
            where=Where(row=int(numbers[missing[0]])),
            cure="Leave such rows out first.",
        )


def _ranges(cuts: Floats) -> list[str]:
    ends = [0.0, *cuts.tolist(), 1.0]
    return [f"{low:g} to {high:g}" for low, high in pairwise(ends)]


def _design_effects(
    codes: NDArray[np.int64], many: int, y: Floats, weight: Floats, cluster: NDArray[np.int64]
) -> Floats:
    """By how much clusters inflate the variance of each grade's default rate; at least 1."""
    factors = np.ones(many)
    for grade in range(many):
        own = codes == grade
        n = int(own.sum())
        if n == 0:
            continue
        _, inside = np.unique(cluster[own], return_inverse=True)
        sizes = np.bincount(inside.ravel())
        rate = float(y[own].mean())
        if not 0.0 < rate < 1.0:
            factors[grade] = float(sizes @ sizes) / n
            continue
        sums = np.bincount(inside.ravel(), y[own] - rate)
        groups = sizes.size
        seen = float(sums @ sums) * (groups / (groups - 1.0) if groups > 1 else 1.0)
        factors[grade] = max(seen / (n * rate * (1.0 - rate)), 1.0) if groups > 1 else float(n)
    return factors


def _whole(values: NDArray[Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in np.rint(values))
