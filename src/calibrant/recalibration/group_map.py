"""Recalibration by group: a map of the prediction, and offsets and slopes of groups, partially pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, is_integer, require_count
from calibrant.data.arrays import as_array, as_column, categories, is_missing, same_length
from calibrant.data.cells import MOST_BINS, Cells, column_sets, crossed, require_groups
from calibrant.data.points import Points
from calibrant.data.rows import Rows, as_rows, require_same_index_in
from calibrant.errors import InputError, show_value
from calibrant.inference.logistic import expit, log_odds, rows_per_weight
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.export import group_sql
from calibrant.recalibration.learned_map import (
    FitOptions,
    Floats,
    LearnedMap,
    Parts,
    Recalibrator,
    State,
    Training,
    hints_of_maps,
    make_map,
    register,
)

if TYPE_CHECKING:
    from calibrant.io.sql import Expression

MOST_CATEGORIES = 50
"""Categories of a column with a cell of their own; the rarer are pooled as "other"."""
MOST_COEFFICIENTS = 2000
"""Offsets and slopes, whose covariance matrix is inverted in every step."""
DEGREES = 4.0
"""Of the effects' Student law: a fixed choice of Lange, Little and Taylor (1989), so that few large effects
among many small ones are shrunk less than under a normal law."""
STEPS, CONVERGED = 50, 1e-3
"""A change of log-odds by 1e-3 moves a probability by at most 2.5e-4."""
FOLDS, Z = 5, 1.645
"""Of the rows, each of which is held out once; and the normal quantile of a one-sided test at 5%."""


@register("group")
class GroupRecalibrator(LearnedMap):
    """Recalibration by group: logit p' = z + Σ (offset + slope · (z - mean z)), with z = logit m(p).

    m is a map of the prediction alone. Every cell of every column, and every cell of every pair of columns,
    has an offset and a slope. They are random effects with Student's law and a scale for each column or pair,
    which Schall's algorithm (1991) estimates, so that cells with few rows are corrected little; along the
    intervals of a number they are a random walk. All are multiplied by the factor from 0 to 1 that gives rows
    held out the smallest log loss (Copas, 1983). If that is not lower than m's by a paired test at 5%, they
    are left out, and the map is m. Rows are taken as independent.

    Parameters
    ----------
    by : sequence of str or int, optional
        Columns of X that define groups, by name or place; by default all but `y_prob`. Numbers are cut at
        quantiles. A category that was not seen in `fit` is not corrected.
    y_prob : str or int
        Column of the predictions.
    recalibrator : map or str, optional
        The map m; by default `AdaptiveRecalibrator()`.
    depth : {1, 2}
        Cells of columns alone, or of pairs of columns too.
    n_bins : int
        Cells of a column of numbers.

    Attributes
    ----------
    effects_ : dict
        Offset and slope of each cell, by its name.

    References
    ----------
    Schall, *Estimation in generalized linear models with random effects*, 1991. Lange, Little and Taylor,
    *Robust statistical modeling using the t distribution*, 1989. Copas, *Regression, prediction and
    shrinkage*, 1983.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p, sex = rng.uniform(0.2, 0.8, 4000), rng.choice(["f", "m"], 4000)
    >>> y = rng.random(4000) < np.where(sex == "f", p + 0.1, p - 0.1)
    >>> X = {"p": p, "sex": sex}
    >>> better = GroupRecalibrator(by=["sex"], y_prob="p").fit(X, y)
    >>> better.transform({"p": [0.5, 0.5], "sex": ["f", "m"]}).round(1)
    array([0.6, 0.4])
    """

    takes_table: ClassVar[bool] = True
    parts: ClassVar[Parts] = {
        "map": Recalibrator,
        "cells": dict,
        "center": float,
        "offsets": np.ndarray,
        "slopes": np.ndarray,
    }

    def __init__(
        self,
        by: Sequence[str | int] | None = None,
        y_prob: str | int = 0,
        recalibrator: Any = None,
        depth: int = 2,
        n_bins: int = 10,
    ) -> None:
        self.by = by
        self.y_prob = y_prob
        self.recalibrator = recalibrator
        self.depth = depth
        self.n_bins = n_bins

    @hints_of_maps()
    def fit(
        self,
        y_prob: Any,
        y_true: Any = None,
        sample_weight: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn the map and the groups' effects from a table with predictions and groups, and outcomes.

        Parameters
        ----------
        y_prob : frame, mapping or array[n, columns]
            X: the column of predictions and those of groups.
        y_true : array
            Outcomes, 0 or 1.
        sample_weight, **options
            As for every map.
        """
        require_count("depth", self.depth, most=2)
        require_count("n_bins", self.n_bins, least=2, most=MOST_BINS)
        columns = _columns(y_prob)
        prediction, *groups = self._names(columns)
        if not groups:
            raise InputError("`by` must name at least one column.", argument="by")
        require_same_index_in(y_prob, prediction, *groups)
        training = Training.of(columns[prediction], y_true, sample_weight, options)
        rows = training.rows
        if not isinstance(rows, Rows):
            raise InputError("`X` must hold rows, no Sketch.", argument="y_prob")
        made = AdaptiveRecalibrator() if self.recalibrator is None else make_map(self.recalibrator)
        made.fit(rows.p, rows.y, rows.weight, labels="soft" if rows.soft else "binary")
        values = [rows.entries(categories(columns[name], "by"), "by") for name in groups]
        cells = [Cells.of(column, self.n_bins, MOST_CATEGORIES) for column in values]
        for name, cell, column in zip(groups, cells, values, strict=True):
            require_groups(name, cell, cell.codes(column), column, rows.y, "by")
        z = log_odds(made.mapped(rows.p))
        weight = np.ones(rows.n) if rows.weight is None else rows.weight
        weight = weight * rows_per_weight(Points.of(rows))
        center = float(weight @ z / weight.sum())
        design = self._design(cells, values, z - center)
        basis, sets = _basis(cells, values, design, self.depth)
        if sets.size > MOST_COEFFICIENTS:
            raise InputError(
                f"`by` makes {sets.size:,} offsets and slopes; at most {MOST_COEFFICIENTS:,} can be fitted.",
                argument="by",
                hint="Name fewer columns, or pass a smaller `n_bins`, or `depth=1`.",
            )
        effects = _pooled(design, basis, sets, z, rows.y, weight)
        effects *= _shrinkage(design, basis, sets, z, rows.y, weight)
        state = {
            "map": made,
            "cells": {"names": groups, "cells": [one.to_dict() for one in cells]},
            "center": center,
            "offsets": effects[: effects.size // 2],
            "slopes": effects[effects.size // 2 :],
        }
        self._set_state(state, len(columns))
        return self

    def transform(self, y_prob: Any) -> Any:
        """Recalibrated predictions of the rows of a table with the columns of the fit.

        Of a frame of pandas or polars they are a Series, with the index of pandas; else an array.
        """
        name = self._names(_columns(y_prob))[0]
        return self._contained(self.mapped(y_prob), y_prob, name)

    def mapped(self, y_prob: Any) -> Floats:
        """Recalibrated predictions as an array."""
        return self._mapped(_columns(y_prob), self.state)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Name of the one column that `transform` gives: that of the predictions."""
        names = super().get_feature_names_out(input_features)
        return (
            names[[int(self.y_prob)]]
            if is_integer(self.y_prob)
            else np.array([self.y_prob], object)
        )

    def score(self, y_prob: Any, y_true: Any, sample_weight: Any = None) -> float:
        """Minus the mean log loss of the recalibrated predictions: larger is better."""
        rows = as_rows(y_true, self.mapped(y_prob), sample_weight=sample_weight)
        loss = _log_loss(log_odds(rows.p), rows.y)
        return -float(np.average(loss, weights=rows.weight))

    def _mapped(self, columns: Mapping[Any, Any], state: State) -> Floats:
        prediction = self._names(columns)[0]
        names, cells = _cells_of(state)
        for name in names:
            if name not in columns:
                raise InputError(
                    f"`by` must name columns of `X`; {show_value(name)} is none.", argument="by"
                )
        z = log_odds(state["map"].mapped(as_column(columns[prediction], "y_prob")))
        values = [categories(columns[name], "by") for name in names]
        for name, cell, column in zip(names, cells, values, strict=True):
            same_length(y_prob=z, by=column)
            if cell.is_numeric != (column.dtype.kind in "biuf") and not is_missing(column).all():
                was, now = ("a number", "text") if cell.is_numeric else ("text", "a number")
                raise InputError(
                    f"`by`: {show_value(name)} was {was} in `fit`; it is {now} here.",
                    argument="by",
                    hint="Convert it first.",
                )
        design = self._design(cells, values, z - state["center"])
        return expit(z + design @ np.concatenate([state["offsets"], state["slopes"]]))

    @property
    def effects_(self) -> dict[str, tuple[float, float]]:
        """Offset and slope of each cell."""
        state = self.state
        names, cells = _cells_of(state)
        labels = [
            [f"{name} {one}" for one in cell.labels]
            for name, cell in zip(names, cells, strict=True)
        ]
        words = [
            " and ".join(each)
            for columns in column_sets(len(cells), self.depth)
            for each in product(*(labels[k] for k in columns))
        ]
        each = zip(state["offsets"].tolist(), state["slopes"].tolist(), strict=True)
        return dict(zip(words, each, strict=True))

    def to_sql(self, dialect: str = "duckdb", *, tolerance: float = 1e-5) -> Expression:
        """SQL expression of the map of a row's columns, which the database must have under the same names.

        Parameters
        ----------
        dialect : {"duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite"}
            The warehouse; it needs LN and EXP.
        tolerance : float
            As for the map of the prediction alone.
        """
        state = self.state
        names, cells = _cells_of(state)
        return group_sql(
            str(self.y_prob),
            state,
            dict(zip(map(str, names), cells, strict=True)),
            self.depth,
            dialect,
            tolerance,
        )

    def _names(self, columns: Mapping[Any, Any]) -> list[Any]:
        """Column of predictions, then those of groups."""
        names = list(columns)
        prediction = self.y_prob
        if is_integer(prediction) and 0 <= int(prediction) < len(names):
            prediction = names[int(prediction)]
        by = [name for name in names if name != prediction] if self.by is None else self.by
        if isinstance(by, str) or not np.iterable(by):
            raise InputError(
                f"`by` must be a list of columns; got {show_value(by)}.", argument="by"
            )
        roles = [("y_prob", prediction), *(("by", one) for one in by)]
        for place, (argument, name) in enumerate(roles):
            if name not in names or name in [other for _, other in roles[:place]]:
                raise InputError(
                    f"`{argument}` must name columns of `X`, each in one role; got {show_value(name)}.",
                    argument=argument,
                )
        return [prediction, *by]

    def _design(
        self, cells: Sequence[Cells], values: Sequence[NDArray[Any]], deviation: Floats
    ) -> Any:
        """Sparse matrix of the offset and the slope of each cell, by row."""
        from scipy.sparse import csr_array, hstack

        codes = [cell.codes(column) for cell, column in zip(cells, values, strict=True)]
        sizes = [len(cell) for cell in cells]
        blocks = []
        for _, code, size in crossed(codes, sizes, self.depth):
            known = np.flatnonzero(code >= 0)
            place = (known, code[known])
            blocks.append(csr_array((np.ones(known.size), place), (code.size, size)))
        offsets = hstack(blocks, format="csr")
        return hstack([offsets, offsets.multiply(deviation[:, None])], format="csr")

    def _try_out(self) -> None:
        names, cells = _cells_of(self.state)
        grid = np.linspace(0.0, 1.0, 33)
        columns = {
            name: np.full(33, (*cell.edges, *cell.values)[0])
            for name, cell in zip(names, cells, strict=True)
        }
        key = self.y_prob if self.by is not None or type(self.y_prob) is str else "y_prob"
        mapped = self._mapped({key: grid, **columns}, self.state)
        if not np.all((mapped >= 0.0) & (mapped <= 1.0)):
            raise InputError("it does not give probabilities")


def _columns(table: Any) -> dict[Any, Any]:
    """Columns of a frame by name, of an array by place."""
    import narwhals as nw

    if isinstance(table, Mapping):
        return dict(table)
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return {name: frame[name].to_native() for name in frame.columns}
    array = as_array(table, "X")
    if array.ndim != 2:
        raise InputError(
            "`X` must be a table with predictions and groups as columns.", argument="y_prob"
        )
    return dict(enumerate(array.T))


def _cells_of(state: State) -> tuple[list[Any], list[Cells]]:
    return state["cells"]["names"], [Cells.from_dict(one) for one in state["cells"]["cells"]]


def _basis(
    cells: Sequence[Cells], values: Sequence[NDArray[Any]], design: Any, depth: int
) -> tuple[Any, NDArray[np.int64]]:
    """Matrix from random effects to the effects of cells, and the set that each random effect belongs to.

    A category has an effect of its own. Along numbers, effects are the steps from one interval to the next,
    so that neighbours share what is known (a random walk). Those of a pair are products.
    """
    from scipy.sparse import block_diag, csr_array, kron

    each = []
    for cell, column in zip(cells, values, strict=True):
        one = np.eye(len(cell))
        intervals = len(cell.edges) - 1
        if intervals > 1:
            steps = np.tril(np.ones((intervals, intervals)))[:, 1:]
            rows = np.bincount(cell.codes(column), minlength=len(cell))[:intervals]
            one = np.delete(one, 0, axis=1)
            one[:intervals, : intervals - 1] = steps - rows @ steps / rows.sum()
        each.append(csr_array(one))
    blocks = [
        reduce(partial(kron, format="csr"), [each[k] for k in columns])
        for columns in column_sets(len(cells), depth)
    ]
    sets = np.concatenate([np.full(block.shape[1], k) for k, block in enumerate(blocks)])
    basis = block_diag([*blocks, *blocks], format="csr")
    sets = np.concatenate([sets, sets + len(blocks)])
    occupied = np.asarray(abs(design).sum(axis=0)).ravel() > 0.0
    known = np.asarray(abs(basis[occupied]).sum(axis=0)).ravel() > 0.0
    return basis[:, known], sets[known]


def _pooled(
    design: Any, basis: Any, sets: NDArray[np.int64], z: Floats, y: Floats, weight: Floats
) -> Floats:
    """Random effects of a logistic regression with the offset z.

    Newton's step for the effects alternates with Schall's estimate of each set's variance: the sum of squares
    of the effects over their effective number, Σ (1 - posterior variance / prior variance). Student's law is
    a normal one whose precision is drawn for each effect; it enters with its mean (`tail`).
    """
    spread = np.full(int(sets[-1]) + 1, 0.3)
    effects, tail = np.zeros(sets.size), np.ones(sets.size)
    for _ in range(STEPS):
        precision = tail * spread[sets] ** -2.0
        mean = expit(z + design @ (basis @ effects))
        curvature = design.T @ design.multiply((weight * mean * (1.0 - mean))[:, None])
        curvature = (basis.T @ curvature @ basis).toarray()
        covariance = np.linalg.inv(curvature + np.diag(precision))
        slope = basis.T @ (design.T @ (weight * (y - mean)))
        step = covariance @ (slope - precision * effects)
        effects = effects + step
        variance = np.diag(covariance)
        known = np.bincount(sets, 1.0 - precision * variance)
        squares = np.bincount(sets, tail * effects**2)
        spread = np.sqrt(squares / np.maximum(known, 1e-9)).clip(1e-3, 10.0)
        squares = (effects**2 + variance) / spread[sets] ** 2
        tail = (DEGREES + 1.0) / (DEGREES + squares)
        if np.abs(step).max() < CONVERGED:
            break
    return np.asarray(basis @ effects)


def _shrinkage(
    design: Any, basis: Any, sets: NDArray[np.int64], z: Floats, y: Floats, weight: Floats
) -> float:
    """Factor from 0 to 1 of the effects that gives rows held out the smallest log loss.

    It is 0 unless that is below the base map's by a one-sided paired test at 5%.
    """
    from scipy.optimize import minimize_scalar

    fold = generator(0, 9).permutation(y.size) % FOLDS
    change = np.zeros_like(z)
    for k in range(FOLDS):
        own, rest = fold == k, fold != k
        effects = _pooled(design[rest], basis, sets, z[rest], y[rest], weight[rest])
        change[own] = design[own] @ effects

    def loss(factor: float) -> float:
        return float(weight @ _log_loss(z + factor * change, y))

    found = float(minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded").x)
    best = min((found, 1.0), key=loss)
    gain = weight * (_log_loss(z, y) - _log_loss(z + best * change, y))
    return best if gain.sum() > Z * np.linalg.norm(gain - gain.mean()) else 0.0


def _log_loss(z: Floats, y: Floats) -> Floats:
    return np.logaddexp(0.0, z) - y * z
