"""Base of results: a dictionary of plain values, a data frame, and a line of HTML."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from calibrant.data.arrays import frame_library
from calibrant.errors import MissingDependency, invalid


class Bounded(NamedTuple):
    """Number with a bound on its distance from the exact one: 0 from arrays, more from a sketch.

    NaN where there is no bound.
    """

    value: float
    error: float


class Record:
    """Frozen dataclass of numbers, strings and arrays; arrays become read-only."""

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __repr__(self) -> str:
        """Numbers and words on one line, rows last; arrays are left out."""
        numbers = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        rows = rows_text(numbers.pop("n"), numbers.pop("dropped", {})) if "n" in numbers else ""
        parts = [
            f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value!r}"
            for name, value in numbers.items()
            if isinstance(value, int | float | str)
        ]
        return f"{type(self).__name__}({', '.join(filter(None, [*parts, rows]))})"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON; numbers that are not finite are None."""
        return {
            item.name: plain(getattr(self, item.name))
            for item in fields(self)  # type: ignore[arg-type]
        }

    def to_frame(self, backend: Any = None) -> Any:
        """Data frame of one row with the plain numbers and strings; see `frame_of`."""
        plain_fields = self.to_dict().items()
        return frame_of(
            [{k: v for k, v in plain_fields if not isinstance(v, list | dict)}], backend
        )

    def _repr_html_(self) -> str:
        return f"<code>{escape(repr(self))}</code>"


def bound_text(error: float) -> str:
    """Text of an error bound, or that there is none.

    Examples
    --------
    >>> bound_text(0.00012), bound_text(float("nan"))
    ('± 1.2e-04', 'no bound')
    """
    return "no bound" if np.isnan(error) else f"± {error:.1e}"


def rows_text(n: int, dropped: Mapping[str, int]) -> str:
    """Text of the number of rows, and of those left out where there are any.

    Examples
    --------
    >>> rows_text(40, {"missing label": 2})
    'n=40, dropped=2'
    """
    gone = sum(dropped.values())
    return f"n={n}, dropped={gone}" if gone else f"n={n}"


def plain(value: Any) -> Any:
    """Plain value for JSON: arrays and tuples as lists, results as mappings, None where not finite.

    Examples
    --------
    >>> plain({"a": np.float32(0.5), "b": (np.inf, np.int64(3)), "c": np.array([1.0, np.nan])})
    {'a': 0.5, 'b': [None, 3], 'c': [1.0, None]}
    """
    if type(value) is float:  # nearly all that there is, so it comes first
        return value if math.isfinite(value) else None
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        own = getattr(value, "to_dict", None)
        return own() if own else {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    return value


def frame_of(rows: Sequence[Mapping[str, Any]] | Mapping[str, Any], backend: Any = None) -> Any:
    """Data frame with these rows or columns, of pandas, polars or pyarrow: of the `backend`.

    Without a `backend`, it is of pandas or polars, whichever the last column or frame that came in was of;
    else of the first of them that the session has loaded, or that is installed.

    Examples
    --------
    >>> list(frame_of([{"name": "a", "n": 3}, {"name": "b", "n": 4}]).columns)
    ['name', 'n']
    """
    import narwhals as nw

    frames = ("pandas", "polars", "pyarrow")
    if backend is None:
        loaded = [name for name in frames[:2] if name in sys.modules]
        installed = [name for name in frames if find_spec(name) is not None]
        backend = frame_library() or [*loaded, *installed, *frames][0]
    if isinstance(rows, Mapping):
        columns: Mapping[str, Any] = rows
    else:
        columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
    try:
        return nw.from_dict(columns, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"a data frame needs {backend}.", hint=f"Install it with `pip install {backend}`."
        ) from error
    except (TypeError, ValueError, AssertionError) as error:  # narwhals raises any of these
        raise invalid("backend", "be pandas, polars or pyarrow", backend) from error
