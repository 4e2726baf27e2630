"""Names from the data, made fit to be shown: short, printable and different from each other."""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable

from calibrant.data.naming import group_text

__all__ = ["LONGEST_NAME", "shown_names", "shown_text"]

LONGEST_NAME = 60


def shown_text(value: object, *, longest: int = LONGEST_NAME) -> str:
    r"""A value as one line of printable text; what is cut or cannot be printed is marked.

    Control characters, line breaks and marks that turn the direction of text become U+FFFD.

    Examples
    --------
    >>> shown_text("a\x1b[31mb")
    'a�[31mb'
    >>> shown_text("x" * 10_000_000, longest=8)
    'xxxxxxx…'
    >>> shown_text(("resnet", 2024))
    'resnet, 2024'
    """
    if isinstance(value, tuple):
        each = max(longest // max(len(value), 1), 8)
        return shown_text(
            ", ".join(shown_text(part, longest=each) for part in value), longest=longest
        )
    text = group_text(value)[: longest + 1]
    clean = "".join("�" if unicodedata.category(c)[0] in "CZ" and c != " " else c for c in text)
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def shown_names(keys: Iterable[Hashable]) -> list[str]:
    r"""One name for each key; keys that look the same once they are shown get a number.

    Examples
    --------
    >>> shown_names(["a", "b\n", "b\r", ""])
    ['a', 'b�', 'b� (2)', '(empty)']
    """
    taken: set[str] = set()
    names = []
    for key in keys:
        name = plain = shown_text(key)
        number = 2
        while name in taken:
            name, number = f"{plain} ({number})", number + 1
        taken.add(name)
        names.append(name)
    return names
