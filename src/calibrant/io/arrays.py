"""Columns that are NumPy arrays, or become such at no cost: eager frames, dicts of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_array
from calibrant.errors import InputError, Where
from calibrant.io.group_keys import Key, indexed
from calibrant.io.required_columns import LABEL, WEIGHT, require_columns
from calibrant.io.scan_request import Request
from calibrant.io.sums import DenseSums, GroupedSums, RowBatch, sums_of_rows

__all__ = ["sums_of_arrays", "sums_of_dict"]


def sums_of_dict(batch: Mapping[str, Any], request: Request) -> list[DenseSums | GroupedSums]:
    """The sums of a dict of arrays, as training loops and data loaders yield it."""
    request.require_names()
    require_columns(request.names(), batch, "the batch")
    arrays = {alias: as_array(batch[name], name) for alias, name in request.columns.items()}
    groups = zip(request.group_aliases, request.groups.values(), strict=True)
    arrays |= {alias: _as_objects(batch[name], name) for alias, name in groups}
    sizes = {str(request.selection[alias]): array.shape for alias, array in arrays.items()}
    if len(set(sizes.values())) > 1 or next(iter(arrays.values())).ndim != 1:
        raise InputError(
            "the columns of a batch must be vectors of equal length",
            seen=sizes,
            saying="got {}",
            cure="Give every column one entry for each row.",
        )
    return sums_of_arrays(arrays, request)


def sums_of_arrays(
    arrays: Mapping[str, NDArray[Any]],
    request: Request,
    first_row: int = 0,
    groups: tuple[NDArray[np.int64], list[Key]] | None = None,
) -> list[DenseSums | GroupedSums]:
    """The sums of arrays under the names of the request; missing values are NaN or None.

    `groups` are each row's place among distinct groups, and these, where they are known already.
    """
    for alias in request.columns:
        kind = arrays[alias].dtype
        may_be_other = request.named_labels if alias == LABEL else request.multiclass is not None
        if kind.kind not in "biuf" and arrays[alias].size and not may_be_other:
            raise InputError(
                "must hold numbers",
                argument=_ARGUMENT_OF.get(alias, "y_prob"),
                seen=str(kind),
                saying="the type of column {column} is {}",
                column=repr(str(request.columns[alias])),
                cure="Convert the column first.",
            )
    label = arrays[LABEL]
    if not label.size:
        return []
    keys: list[Key] | None = None
    group = None
    if groups is not None:
        group, keys = groups
    elif request.groups:
        columns = [arrays[alias].tolist() for alias in request.group_aliases]
        group, keys = indexed(zip(*columns, strict=True))
    batch = RowBatch(
        [_as_predictions(arrays[alias]) for alias in request.prob_aliases],
        label,
        arrays[WEIGHT].astype(np.float64) if request.weighted else None,
        keys,
        group,
        lambda row: Where(row=first_row + row),
    )
    dense: dict[Key, DenseSums] = {}
    parts = sums_of_rows(request, batch, dense)
    return [*parts, *(total.grouped(key) for key, total in dense.items())]


_ARGUMENT_OF = {LABEL: "y_true", WEIGHT: "sample_weight"}


def _as_predictions(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype.kind not in "biuf":
        return values
    return np.ascontiguousarray(
        values, dtype=values.dtype if values.dtype == np.float32 else np.float64
    )


def _as_objects(values: Any, name: str) -> NDArray[Any]:
    """Values of groups as they are: numbers stay numbers, and dates dates."""
    array = values if isinstance(values, np.ndarray) else None
    is_column = isinstance(values, Sized) and isinstance(values, Iterable)
    if isinstance(values, str | bytes) or not is_column:
        raise InputError(
            "a group must be given for every row",
            seen=values,
            saying="got {} as {name}",
            name=name,
            cure="Pass an array with the group of each row.",
        )
    if array is None or array.dtype.kind in "Mm":
        found = list(values) if array is None else list(array)
        array = np.empty(len(found), dtype=object)
        array[:] = [
            v.item() if hasattr(v, "item") and not hasattr(v, "astype") else v for v in found
        ]
    return array
