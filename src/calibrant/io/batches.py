"""Batches of rows as NumPy arrays: what every reader makes of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array, is_missing
from calibrant.errors import InputError, show_value
from calibrant.io.group_keys import Coded, coded
from calibrant.io.request import LABEL, WEIGHT, Request, numberless, require_columns

BATCH_ROWS = 1 << 20
"""Rows of a batch, 8 MB a column."""
LOOP_LABELS = ("uint8", "int64", "float64")
"""Types of labels that the compiled loop reads."""


@dataclass(frozen=True)
class Batch:
    """Rows that were read together.

    Attributes
    ----------
    probs : list of arrays
        The columns of predictions, as they are written.
    label, weight : array
        Missing values are NaN or None.
    groups : list of Coded
        The grouping columns.
    first_row : callable
        Number of rows of the source before the batch, which only a refusal asks for.
    file : str, optional
        The file that holds the rows.
    """

    probs: Sequence[NDArray[Any]]
    label: NDArray[Any]
    weight: NDArray[Any] | None
    groups: Sequence[Coded] = ()
    first_row: Callable[[], int] = lambda: 0
    file: str | None = None

    def placed(self, error: InputError) -> InputError:
        """Error that names a row of the batch, with its row and file in the source."""
        assert error.row is not None
        return error.at(row=self.first_row() + error.row, file=self.file)


def batch_of(
    arrays: Mapping[str, NDArray[Any]],
    groups: Sequence[Coded],
    request: Request,
    first_row: int = 0,
) -> Batch:
    """Batch of arrays by alias, checked to hold numbers where these are meant."""
    columns = {alias: _numbers(arrays[alias], alias, request) for alias in request.columns}
    probs = [_floats(columns[alias]) for alias in request.prob_aliases]
    weight = columns[WEIGHT].astype(np.float64) if request.weighted else None
    return Batch(probs, columns[LABEL], weight, groups, lambda: first_row)


def _floats(column: NDArray[Any]) -> NDArray[Any]:
    """Predictions that the compiled loop reads; lists of class probabilities as they are."""
    is_single = column.dtype == np.float32 or column.dtype.kind not in "biuf"
    return np.ascontiguousarray(column, column.dtype if is_single else np.float64)


def _numbers(values: NDArray[Any], alias: str, request: Request) -> NDArray[Any]:
    """Column of numbers; text among them is out of range, if such rows are to be dropped."""
    may_be_other = request.named_labels if alias == LABEL else request.multiclass is not None
    if values.dtype.kind in "biuf" or not values.size or may_be_other:
        return values
    numbers = [isinstance(value, int | float) for value in values]
    if values.dtype.kind == "O" and request.on_invalid == "drop" and any(numbers):
        other = np.where(is_missing(values), np.nan, request.unreadable(alias))
        pairs = zip(values, other.tolist(), numbers, strict=True)
        return np.array([v if is_number else o for v, o, is_number in pairs], dtype=np.float64)
    row = numbers.index(False)
    value = values[row]
    text = value if isinstance(value, str) else ""
    problem = f"has {show_value(value)} in row {row}"
    raise numberless(alias, request.columns[alias], problem, text=text)


def batch_of_dict(columns: Mapping[str, Any], request: Request) -> Batch:
    """Batch of a dict of arrays, as training loops and data loaders yield it."""
    request.require_names()
    require_columns(request.names(), columns, "the batch")
    arrays = {alias: as_array(columns[name], name) for alias, name in request.columns.items()}
    groups = [_group(columns[name], name) for name in request.groups.values()]
    shapes = {str(request.columns[alias]): array.shape for alias, array in arrays.items()}
    shapes |= {n: g.codes.shape for n, g in zip(request.groups.values(), groups, strict=True)}
    if len(set(shapes.values())) > 1 or next(iter(arrays.values())).ndim != 1:
        raise InputError(
            f"The columns of a batch must be vectors of equal length; got {show_value(shapes)}."
        )
    return batch_of(arrays, groups, request)


def _group(values: Any, name: str) -> Coded:
    """Grouping column of a dict: numbers stay numbers, and dates dates."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "bi" and values.ndim == 1:
        distinct, codes = np.unique(values, return_inverse=True)
        return Coded(codes, distinct.tolist())
    if isinstance(values, np.ndarray) and values.dtype.kind not in "Mm":
        return coded(values.tolist())
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InputError(
            f"A group must be given for every row; got {show_value(values)} as {name!r}."
        )
    return coded(v.item() if hasattr(v, "item") and not hasattr(v, "astype") else v for v in values)
