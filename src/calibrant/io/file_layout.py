"""Which columns of a file are read, and which groups stand in its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.errors import Cure, InputError, Option
from calibrant.io.find_files import DataFile
from calibrant.io.required_columns import require_columns
from calibrant.io.scan_request import Request

__all__ = ["PERCENT_CURE", "GroupKinds", "layout", "without_sign"]

PERCENT_CURE = Cure("If these are percentages, pass {option}.", {"option": Option("percent", True)})


def without_sign(text: str) -> str:
    """A percentage without its sign.

    Examples
    --------
    >>> without_sign("85 %"), without_sign("0.5")
    ('85', '0.5')
    """
    return text.strip().removesuffix("%").rstrip()


_KIND_OF = {int: "int64", str: "string", type(None): "null"}


class GroupKinds:
    """What kinds of values the groups hold: the same in all files of a scan."""

    def __init__(self, request: Request) -> None:
        self.by = dict(zip(request.group_aliases, request.groups, strict=True))
        self._seen: dict[str, tuple[str, str, str]] = {}

    def require(
        self, file: DataFile, kinds: Mapping[str, Any], constants: Mapping[str, Any]
    ) -> None:
        """Refuse a file whose groups are of other types than those of the files before.

        The types of the columns, and the values that stand in the path, are given by alias.
        """
        in_path = {alias: _KIND_OF[type(value)] for alias, value in constants.items()}
        for alias, kind in {**kinds, **in_path}.items():
            family = _family(str(kind))
            if alias not in self.by or family is None:
                continue
            first = self._seen.setdefault(alias, (family, str(kind), file.path))
            if first[0] != family:
                raise InputError(
                    "column {column} must be of one type in all files, to tell groups apart",
                    seen=(first[1], str(kind)),
                    saying="it is {one} in {here} and {other} in {there}",
                    cure="Convert one of them first.",
                    column=repr(self.by[alias]),
                    one=first[1],
                    here=first[2],
                    other=str(kind),
                    there=file.path,
                )


def _family(kind: str) -> str | None:
    """What values of an Arrow type are equal to; None for the type of nothing but nulls."""
    if kind.startswith("dictionary<values="):
        kind = kind.removeprefix("dictionary<values=").split(", indices=")[0]
    if kind == "null":
        return None
    if kind.startswith(("int", "uint", "float", "halffloat", "double", "decimal")):
        return "number"
    if kind.startswith("timestamp"):
        return "timestamp with a zone" if "tz=" in kind else "timestamp"
    for stem in ("string", "binary", "date", "time", "duration"):
        if stem in kind:
            return stem
    return kind


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
