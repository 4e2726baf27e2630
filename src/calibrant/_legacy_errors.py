"""The old message language, rendered at once: deleted with the last call that uses it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.errors import show_value

__all__ = ["NOTHING", "Code", "Cure", "Function", "Option", "TypeName", "Where"]

NOTHING: Any = type("Nothing", (), {"__repr__": lambda _: "nothing"})()


class TypeName(str):
    @classmethod
    def of(cls, value: Any) -> TypeName:
        return cls(type(value).__name__)

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Option:
    name: str
    value: Any = NOTHING


@dataclass(frozen=True)
class Function:
    name: str


@dataclass(frozen=True)
class Code:
    text: str


@dataclass(frozen=True)
class Where:
    row: int | None = None
    line: int | None = None
    column: str | None = None
    file: str | None = None
    group: str | None = None

    def __str__(self) -> str:
        places = [
            f"row {self.row}" if self.row is not None else "",
            f"line {self.line}" if self.line is not None else "",
            f"column {self.column!r}" if self.column is not None else "",
            f"group {self.group}" if self.group is not None else "",
            self.file or "",
        ]
        return " of ".join(place for place in places if place)


@dataclass(frozen=True, eq=False)
class Cure:
    text: str
    values: Mapping[str, Any] = field(default_factory=dict)


def show(value: Any) -> str:
    if isinstance(value, Option):
        if value.value is NOTHING:
            return f"`{value.name}`"
        if value.value is ...:
            return f"`{value.name}=`"
        quoted = f'"{value.value}"' if isinstance(value.value, str) else show_value(value.value)
        return f"`{value.name}={quoted}`"
    if isinstance(value, Function):
        return f"`calibrant.{value.name}`"
    if isinstance(value, Code):
        return f"`{value.text}`"
    if isinstance(value, tuple) and all(isinstance(v, Option | Function | Code) for v in value):
        return ", ".join(map(show, value))
    if isinstance(value, BaseException):
        return str(value).rstrip(".")
    return value if isinstance(value, str) else show_value(value)


def filled(text: str, values: Mapping[str, Any]) -> str:
    return re.sub(r"\{(\w+)\}", lambda m: show(values[m[1]]) if m[1] in values else m[0], text)


def rendered(
    rule: str, argument: str | None, row: Any, file: Any, hint: str | None, legacy: dict[str, Any]
) -> tuple[str, Any, Any, str | None]:
    seen, where = legacy.pop("seen", NOTHING), legacy.pop("where", None) or Where()
    saying, cure = legacy.pop("saying", None), legacy.pop("cure", ())
    text = filled(rule, legacy)
    if argument is not None:
        text = f"`{argument}` {text}"
    place, said = str(where), ""
    if saying is not None:
        shown = {**legacy, "seen": show_value(seen), "where": place}
        said = filled(saying.replace("{}", "{seen}"), shown)
        said = said if not place or "{where}" in saying else f"{said} ({place})"
    elif seen is NOTHING:
        said = f"see {place}" if place else ""
    else:
        said = f"{place} has {show_value(seen)}" if place else f"got {show_value(seen)}"
    text = f"{text}; {said}" if said else text
    if not text.endswith((".", "?", "!")):
        text += "."
    cures: Iterable[Any] = [cure] if isinstance(cure, str | Cure) else list(cure)
    told = [filled(c, legacy) if isinstance(c, str) else filled(c.text, c.values) for c in cures]
    words = " ".join(t for t in ([hint] if hint else []) + told if t)
    return (
        text,
        where.row if row is None else row,
        where.file if file is None else file,
        words or None,
    )


def but(error: Any, changed: dict[str, Any]) -> Any:
    other = type(error).__new__(type(error), *error.args)
    other.__dict__.update(error.__dict__)
    if "cures" in changed:
        told = [c if isinstance(c, str) else filled(c.text, c.values) for c in changed["cures"]]
        other.hint = " ".join(filter(None, told)) or None
    if "rule" in changed:
        other.message = f"{changed['rule']}."
    if "where" in changed:
        where = changed["where"]
        if error.row is not None and error.row != where.row:
            other.message = re.sub(rf"\brow {error.row}\b", str(where), other.message)
            other.row = where.row
        return other.at(row=where.row, file=where.file)
    return other
