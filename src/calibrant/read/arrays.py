"""Columns that are NumPy arrays, or become such at no cost: eager frames, dicts of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array
from calibrant.errors import InputError
from calibrant.read.group_keys import indexed
from calibrant.read.request import LABEL, PROB, WEIGHT, Request, require_columns
from calibrant.read.sums import DenseSums, GroupedSums, sums_by_group

__all__ = ["LOOP_LABELS", "as_outcomes", "sums_of_arrays", "sums_of_dict"]

LOOP_LABELS = ("uint8", "int32", "int64", "float32", "float64")


def sums_of_dict(batch: Mapping[str, Any], request: Request) -> DenseSums | GroupedSums:
    """The sums of a dict of arrays, as training loops and data loaders yield it."""
    request.require_names()
    require_columns(request.names(), batch, "the batch")
    arrays = {alias: as_array(batch[name], name) for alias, name in request.columns.items()}
    groups = zip(request.group_aliases, request.groups.values(), strict=True)
    arrays |= {alias: _as_objects(batch[name], name) for alias, name in groups}
    sizes = {str(request.selection[alias]): array.shape for alias, array in arrays.items()}
    if len(set(sizes.values())) > 1 or arrays[PROB].ndim != 1:
        raise InputError(f"the columns of a batch must be vectors of equal length; got {sizes}.")
    return sums_of_arrays(arrays, request)


def sums_of_arrays(arrays: Mapping[str, NDArray[Any]], request: Request) -> DenseSums | GroupedSums:
    """The sums of arrays under the names of the request; missing values are NaN or None."""
    for alias in request.columns:
        kind = arrays[alias].dtype
        if kind.kind not in "biuf" and arrays[alias].size:
            raise InputError(
                f"column {str(request.columns[alias])!r} must hold numbers; its type is {kind}."
            )
    p, y = arrays[PROB], as_outcomes(arrays[LABEL])
    p = np.ascontiguousarray(p, dtype=p.dtype if p.dtype == np.float32 else np.float64)
    w = arrays[WEIGHT].astype(np.float64) if request.weighted else None
    if request.groups and p.size:
        columns = [arrays[alias].tolist() for alias in request.group_aliases]
        group, keys = indexed(zip(*columns, strict=True))
        return sums_by_group(request, keys, group, p, y, w)
    total = DenseSums(request)
    if p.size:
        total.add_rows(p, y, w)
    return total


def as_outcomes(y: NDArray[Any]) -> NDArray[Any]:
    """Labels of a type that the compiled loop reads."""
    y = np.ascontiguousarray(y)
    if y.dtype in (np.bool_, np.int8):  # a negative label becomes a large one: both are refused
        return y.view(np.uint8)
    return y if y.dtype.name in LOOP_LABELS else y.astype(np.float64)


def _as_objects(values: Any, name: str) -> NDArray[Any]:
    """Values of groups as they are: numbers stay numbers, and dates dates."""
    array = values if isinstance(values, np.ndarray) else None
    is_column = isinstance(values, Sized) and isinstance(values, Iterable)
    if isinstance(values, str | bytes) or not is_column:
        raise InputError(f"a group must be given for every row; got {values!r} as `{name}`.")
    if array is None or array.dtype.kind in "Mm":
        found = list(values) if array is None else list(array)
        array = np.empty(len(found), dtype=object)
        array[:] = [
            v.item() if hasattr(v, "item") and not hasattr(v, "astype") else v for v in found
        ]
    return array
