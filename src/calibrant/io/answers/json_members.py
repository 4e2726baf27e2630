"""The members of a JSON object one at a time, so that a long list in it is never held whole."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from typing import Any

from calibrant._files import object_of
from calibrant.errors import InputError
from calibrant.io.answers.lines import opened

__all__ = ["document_members"]

CHUNK = 1 << 20


def document_members(
    path: str | os.PathLike[str], items: str, what: str
) -> Iterator[tuple[str, Any]]:
    """The members of the object that a file holds, and for the list `items` each of its items.

    Anything but such an object is refused as not `what`.
    """
    try:
        with io.TextIOWrapper(opened(path), encoding="utf-8") as file:
            yield from _members(_Text(file), items)
    except (ValueError, RecursionError) as error:
        raise InputError(
            "{file} is not {what}: it is not JSON ({error})",
            file=os.fspath(path),
            what=what,
            error=str(error),
            cure="Check the path, or name another format.",
        ) from error


def _members(text: _Text, items: str) -> Iterator[tuple[str, Any]]:
    for name in text.members():
        if name == items and text.peek() == "[":
            for _ in text.separated("[", "]"):
                yield name, text.value()
        else:
            yield name, text.value()
    if text.peek():
        raise ValueError("there is more after its end")


class _Text:
    """Text that is read as far as it is needed."""

    def __init__(self, file: io.TextIOBase) -> None:
        self._file = file
        self._held, self._at = "", 0
        self._decode = json.JSONDecoder(object_pairs_hook=object_of).raw_decode

    def _more(self) -> bool:
        """Read as much again as is held and not yet used; False at the end."""
        rest = self._held[self._at :]
        chunk = self._file.read(max(CHUNK, len(rest)))
        self._held, self._at = rest + chunk, 0
        return bool(chunk)

    def peek(self) -> str:
        """The next character that is no blank; "" at the end."""
        while True:
            while self._at < len(self._held):
                if self._held[self._at] not in " \t\n\r":
                    return self._held[self._at]
                self._at += 1
            if not self._more():
                return ""

    def take(self, character: str) -> None:
        """Go past this character, which must come next."""
        if self.peek() != character:
            raise ValueError(f"{character!r} is missing")
        self._at += 1

    def value(self) -> Any:
        """The next value."""
        self.peek()
        while True:
            try:
                value, end = self._decode(self._held, self._at)
            except json.JSONDecodeError:
                if not self._more():
                    raise
                continue
            if end == len(self._held) and self._more():
                continue  # a number may go on
            self._at = end
            return value

    def separated(self, start: str, end: str) -> Iterator[None]:
        """Once for each value between these, which the caller takes."""
        self.take(start)
        if self.peek() != end:
            yield
            while self.peek() == ",":
                self.take(",")
                yield
        self.take(end)

    def members(self) -> Iterator[str]:
        """The name of each member of an object, whose value the caller takes."""
        names: set[str] = set()
        for _ in self.separated("{", "}"):
            name = self.value() if self.peek() == '"' else None
            if name is None:
                raise ValueError("the name of a member is missing")
            if name in names:
                raise ValueError(f"an object names the field {name!r} twice")
            names.add(name)
            self.take(":")
            yield name
