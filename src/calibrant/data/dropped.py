"""How many rows were left out, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

__all__ = ["Dropped"]


class Dropped(Mapping[str, int]):
    """Rows that were left out, by reason: a read-only mapping that can be hashed and pickled.

    Examples
    --------
    >>> Dropped({"missing label": 2})
    {'missing label': 2}
    """

    __slots__ = ("_counts",)

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self._counts = dict(counts or {})

    def __getitem__(self, reason: str) -> int:
        return self._counts[reason]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __hash__(self) -> int:
        return hash(frozenset(self._counts.items()))

    def __repr__(self) -> str:
        return repr(self._counts)
