"""What a part of a learned state must be, so that a damaged file is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant._arguments import is_integer
from calibrant.errors import InputError

__all__ = ["POSITIVE", "PROBABILITIES", "Part", "Parts", "number_of_classes"]


@dataclass(frozen=True)
class Part:
    """What a part of a learned state must be: one number or a row of them, in a range, perhaps rising."""

    kind: type = float
    least: float = -np.inf
    most: float = np.inf
    rising: bool = False

    def holds(self, value: Any) -> bool:
        """Whether the numbers are finite, in the range and in order."""
        numbers = np.asarray(value, dtype=np.float64)
        most = self.most * (1.0 + 1e-9)  # means are rounded
        within = np.isfinite(numbers) & (numbers >= self.least) & (numbers <= most)
        if not (numbers.size and within.all()):
            return False
        return not self.rising or bool(np.all(np.diff(numbers) >= 0.0))

    def __str__(self) -> str:
        rule = "hold finite numbers"
        if np.isfinite([self.least, self.most]).any():
            rule += f" between {self.least:g} and {self.most:g}"
        return rule + (" that do not fall" if self.rising else "")


SMALLEST = float(np.finfo(np.float64).tiny)
POSITIVE = Part(least=SMALLEST)
PROBABILITIES = Part(np.ndarray, 0.0, 1.0)
Parts = Mapping[str, type | Part]
MOST_CLASSES = 1 << 20


def number_of_classes(in_state: int | None, said: Any, names: Sequence[Any] | None) -> int:
    """How many classes a map has; refused where its state, the number in its file and its names differ.

    Examples
    --------
    >>> number_of_classes(None, 3, ["cat", "dog", "owl"])
    3
    """
    if said is not None and not (is_integer(said) and 2 <= said <= MOST_CLASSES):
        raise InputError("it must have 2 classes or more", seen=said)
    many = in_state or said or len(names or "ab")
    if said not in (None, many) or len({*map(str, names or range(many))}) != many:
        raise InputError("it must name each of its classes once")
    return int(many)
