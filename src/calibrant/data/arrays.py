"""Arrays of any library as NumPy arrays, importing none the user did not, and checks of their entries."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, invalid, show_value

_LIBRARY: ContextVar[str | None] = ContextVar("library of frames", default=None)

SEVERAL_MODELS = (
    "Several models are for `assess_by`, `compare`, `report` or `reliability_diagrams`."
)


def remember_library(native: Any) -> None:
    """Take note of the library of a frame or column of narwhals, if it is pandas or polars."""
    name = native.implementation.value
    if name in ("pandas", "polars"):
        _LIBRARY.set(name)


def frame_library() -> str | None:
    """pandas or polars, whichever the last column or frame was of that came in."""
    return _LIBRARY.get()


def as_array(values: Any, name: str, *, dates: bool = False) -> NDArray[Any]:
    """NumPy array of the values, in the shape they have.

    Missing values become NaN in numeric columns and None in columns of text. Half precision and
    bfloat16 are widened; nothing else is changed and nothing is copied that need not be. Dates and
    spans of time are refused unless `dates` says that they mean something.
    """
    array: NDArray[Any] = values if isinstance(values, np.ndarray) else _from_foreign(values, name)
    if isinstance(array, np.ma.MaskedArray):
        masked, array = np.ma.getmaskarray(array), array.data.astype(object)
        array[masked] = None
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind not in ("biufOUSTMm" if dates else "biufOUST"):
        array = _from_extension_dtype(array, name)
    if array.dtype.kind == "O":
        array = _from_objects(array)
    if array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float64)
    return array


def as_column(values: Any, name: str, *, dates: bool = False) -> NDArray[Any]:
    """One-dimensional NumPy array that is not empty, of any library's column; see `as_array`."""
    column = as_array(values, name, dates=dates)
    if column.ndim == 1 and column.size:
        return column
    if column.ndim == 1:
        raise InputError(f"`{name}` must not be empty; it has no rows.")
    if column.ndim == 0:
        message = f"`{name}` must be an array or a list; got {type(values).__name__}."
        models = name == "y_prob" and isinstance(values, Mapping)
        raise InputError(message, hint=SEVERAL_MODELS if models else None)
    hint = "For class probabilities use `calibrant.confidence`, `top_label` or `classwise`."
    if column.ndim == 2 and 1 in column.shape:
        hint = f"Pass `numpy.ravel({name})`."
    elif column.ndim == 2 and column.shape[1] == 2 and name == "y_prob":
        hint = f"{cure_of_two_columns(values)}, and with labels other than 0 and 1 `pos_label=`; for the "
        hint += 'confidence in the likelier one pass `multiclass="confidence"`.'
    message = f"`{name}` must be one-dimensional; its shape is {column.shape}."
    raise InputError(message, hint=hint)


def cure_of_two_columns(values: Any) -> str:
    """Cure for the probabilities of two classes, as the library that they are of is written."""
    columns = getattr(values, "columns", None)
    if isinstance(values, list | tuple):
        event = "numpy.array(y_prob)[:, 1]"
    elif columns is None:
        event = "y_prob[:, 1]"
    else:
        event = f"y_prob[{show_value(list(columns)[1])}]"
    return f"For two classes pass the probability of the event, `{event}`"


def is_missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of entries that are NaN, None or a null of its library."""
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column))
    if column.dtype.kind in "Mm":
        return np.asarray(np.isnat(column))
    if column.dtype.kind == "O":
        return np.fromiter((_is_null(value) for value in column), dtype=np.bool_, count=column.size)
    return np.zeros(column.shape, dtype=np.bool_)


def _from_foreign(values: Any, name: str) -> NDArray[Any]:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        if values.dtype in (torch.float16, torch.bfloat16):
            values = values.float()
        return np.asarray(values.numpy())
    if isinstance(values, list | tuple):
        return _from_sequence(values, name)
    pyarrow = sys.modules.get("pyarrow")
    chunked = pyarrow is not None and isinstance(values, pyarrow.ChunkedArray)
    if chunked and hasattr(values.type, "value_type") and hasattr(values.type, "index_type"):
        values = values.cast(
            values.type.value_type
        )  # Arrow hands over a value where one is missing
    if np.isscalar(values) or values is None:
        raise invalid(name, "be an array", values)
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(values):
        message = f"`{name}` must be a dense array; it is a sparse {type(values).__name__}."
        raise InputError(message, hint="Pass `.toarray()` of it.")
    import narwhals as nw

    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        remember_library(series)
        if series.dtype == nw.Decimal and not series.implementation.is_polars():
            return np.array(series.to_list(), dtype=object)  # Arrow's cast misses the nearest float
        if series.null_count() and series.dtype.is_numeric():
            try:
                series = series.cast(nw.Float64)
            except Exception:  # Arrow's cast refuses integers that are no floats
                return np.array(series.to_list(), dtype=object)
        values = series
    try:
        return np.asarray(values.to_numpy() if isinstance(values, nw.Series) else values)
    except Exception as error:
        message = f"`{name}` must be an array, a list or a column of a frame; got {type(values).__name__}."
        raise InputError(message) from error


def _from_sequence(values: list[Any] | tuple[Any, ...], name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
        # NumPy turns a list of numbers and text into text alone, and hides which row was wrong.
        return np.asarray(values, dtype=object) if array.dtype.kind in "US" else array
    except ValueError as error:
        message = f"`{name}` must be an array; its rows differ in length."
        raise InputError(message) from error


def _from_extension_dtype(values: NDArray[Any], name: str) -> NDArray[Any]:
    if values.dtype.names is None and values.dtype.kind not in "cMm":
        try:
            return values.astype(np.float32)  # bfloat16 and the 8-bit floats of ml_dtypes
        except (TypeError, ValueError):
            pass
    message = f"`{name}` must hold numbers or labels; its type is {values.dtype}."
    hint = "Complex data not supported: pass real numbers." if values.dtype.kind == "c" else None
    raise InputError(message, hint=hint)


def _from_objects(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as floats where all of them are numbers or missing; otherwise with None for missing."""
    flat = values.ravel()
    numeric = np.empty(flat.shape, dtype=np.float64)
    for row, value in enumerate(flat):
        if _is_null(value):
            numeric[row] = np.nan
        elif isinstance(value, str | bytes):
            return _with_none(values)
        else:
            try:
                numeric[row] = float(value)
            except (TypeError, ValueError, OverflowError):
                return _with_none(values)
    return numeric.reshape(values.shape)


def _with_none(values: NDArray[Any]) -> NDArray[Any]:
    """pandas' NA compares to nothing, not even to itself; None does."""
    flat = [None if _is_null(value) else value for value in values.ravel()]
    plain = np.empty(len(flat), dtype=object)
    plain[:] = flat
    return plain.reshape(values.shape)


def _is_null(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


# -- entries -----------------------------------------------------------------------------------


def numbers(value: Any, name: str, data: Any = None, *, ndim: int = 1) -> NDArray[np.float64]:
    """Finite numbers of an argument, which may name a column of `data`.

    Examples
    --------
    >>> numbers("t", "time", {"t": [1, 2]})
    array([1., 2.])
    """
    array = as_array(_named(value, name, data), name)
    if array.ndim != ndim or array.size == 0:
        wanted = "a column of numbers" if ndim == 1 else "a table with a row for each outcome"
        raise InputError(f"`{name}` must be {wanted}; its shape is {array.shape}.")
    require_numbers(name, array.ravel())
    array = array.astype(np.float64)
    finite = np.asarray(np.isfinite(array).reshape(array.shape[0], -1).all(axis=1))
    require_each(name, array, finite, "hold finite numbers", "Leave such rows out first.")
    return array


def require_numbers(name: str, column: NDArray[Any], *, drop: bool = False) -> None:
    """Refuse a column of text; with `drop`, text among numbers is a row out of range."""
    numbers = [isinstance(v, int | float) for v in column] if column.dtype.kind == "O" else [False]
    if column.dtype.kind in "biuf" or (drop and any(numbers)):
        return
    row = numbers.index(False) if False in numbers else 0
    hint = ""
    if name == "y_prob" and show_value(column[row]).rstrip("' ").endswith("%"):
        hint = "Take off the per cent signs, and pass `percent=True`."
    elif name == "y_prob" and isinstance(column[row], str):
        hint = "Convert it to numbers first. Or are `y_true` and `y_prob` exchanged?"
    message = f"`{name}` must hold numbers; row {row} has {show_value(column[row])}."
    raise InputError(message, row=row, hint=hint or None)


def require_each(
    name: str, column: Any, valid: NDArray[np.bool_], rule: str, hint: str | None = None
) -> None:
    """Refuse a column of which an entry breaks a rule; the error names the first that does.

    Examples
    --------
    >>> p = np.array([0.2, 1.5])
    >>> require_each("p", p, p <= 1.0, "be at most 1")
    Traceback (most recent call last):
    calibrant.errors.InputError: `p` must be at most 1; row 1 has 1.5.
    """
    wrong = np.flatnonzero(~valid)
    if wrong.size:
        row = int(wrong[0])
        message = f"`{name}` must {rule}; row {row} has {show_value(column[row])}."
        raise InputError(message, row=row, hint=hint)


def categories(value: Any, name: str, data: Any = None) -> NDArray[Any]:
    """Category of each row, of an argument that may name a column of `data`; objects as their text.

    Missing values stay as None or NaN.

    Examples
    --------
    >>> categories(["u", None, 3], "strata")
    array(['u', None, '3'], dtype=object)
    """
    column = as_column(_named(value, name, data), name, dates=True)
    if column.dtype.kind != "O":
        return column
    try:
        texts = [
            None if gone else str(one) for one, gone in zip(column, is_missing(column), strict=True)
        ]
    except Exception as error:  # of any object
        raise InputError(f"`{name}` must hold numbers or labels.") from error
    column = np.empty(len(texts), dtype=object)
    column[:] = texts
    return column


def _named(value: Any, name: str, data: Any) -> Any:
    if not isinstance(value, str):
        return value
    if data is None:
        raise InputError(f"`{name}` is a name, and there is no `data`.")
    try:
        return data[value]
    except Exception as error:  # of any table
        table = "`data` is a table here: read the file, or collect the frame, first."
        hint = table if isinstance(data, str) or hasattr(data, "collect") else None
        raise InputError(
            f"`{name}` must name a column; {show_value(value)} is none.", hint=hint
        ) from error


def same_length(**columns: NDArray[Any]) -> None:
    """Refuse columns of unequal length."""
    (first, one), *others = columns.items()
    for name, other in others:
        if other.shape[0] != one.shape[0]:
            raise InputError(
                f"`{name}` must have one entry per row of `{first}`; they have {other.shape[0]} and "
                f"{one.shape[0]}."
            )


def require_entries(name: str, column: NDArray[Any], rows: int) -> None:
    """Refuse a column that does not have an entry for each of so many rows."""
    if column.size != rows:
        raise InputError(
            f"`{name}` must have one entry per row; it has {column.size} for {rows} rows."
        )
