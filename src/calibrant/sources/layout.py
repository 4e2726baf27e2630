"""Which columns of a file are read, and which groups stand in its path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.sources.request import Request, require_columns
from calibrant.sources.store import DataFile

__all__ = ["PER_CENT_CURE", "layout", "without_sign"]

PER_CENT_CURE = "If these are percentages, pass `percent=True`."


def without_sign(text: str) -> str:
    """A percentage without its sign.

    Examples
    --------
    >>> without_sign("85 %"), without_sign("0.5")
    ('85', '0.5')
    """
    return text.strip().removesuffix("%").rstrip()


def layout(
    file: DataFile, present: Sequence[str], request: Request
) -> tuple[dict[str, str], dict[str, Any]]:
    """Names to read from the file, and groups that stand in its path, by the names of the request."""
    constants = {
        alias: file.partitions[name]
        for alias, name in request.selection.items()
        if alias in request.group_aliases and name not in present and name in file.partitions
    }
    names = {a: name for a, name in request.selection.items() if a not in constants}
    require_columns(names.values(), present, file.path)
    return names, constants
