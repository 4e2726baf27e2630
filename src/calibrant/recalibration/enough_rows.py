"""How many rows a map must have to learn from: for its parameters, and of every class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import Function, TooFewRows

__all__ = ["LEAST_OF_A_CLASS", "require_parameters", "require_rows_of_classes"]

LEAST_OF_A_CLASS = 2
"""Rows of a class for parameters of its own: from none or one, they would only say that it is rare."""
_TEMPERATURE = Function("recalibration.TemperatureScaling")


def require_parameters(rows: int, parameters: int) -> None:
    """Refuse a map that has more parameters than there are rows.

    Examples
    --------
    >>> require_parameters(3, 3)
    >>> require_parameters(2, 3)
    Traceback (most recent call last):
    calibrant.errors.TooFewRows: `y_true` must have at least as many rows as the map has parameters, which
    would be learned by heart; it has 2 for 3. Use a map with fewer parameters, such as a temperature, or
    more rows.
    """
    if parameters > rows:
        raise TooFewRows(
            "must have at least as many rows as the map has parameters, which would be learned by heart",
            argument="y_true",
            seen=rows,
            saying="it has {} for {parameters}",
            cure="Use a map with fewer parameters, such as a temperature, or more rows.",
            parameters=parameters,
        )


def require_rows_of_classes(
    counts: NDArray[np.int64], classes: Sequence[Any], *, shared: bool
) -> None:
    """Refuse rows of one class; and, unless all classes share the parameters, a class with fewer than two.

    Whatever a map learned of a class without rows would be that it never happens.
    """
    if np.count_nonzero(counts) < 2:
        raise TooFewRows(
            "must hold rows of two classes or more",
            argument="y_true",
            seen=classes[int(np.argmax(counts))],
            saying="all hold {}",
            cure="Pass rows of other classes too.",
        )
    rarest = int(np.argmin(counts))
    if not shared and counts[rarest] < LEAST_OF_A_CLASS:
        raise TooFewRows(
            "must hold {least} rows or more of every class for a map with parameters of each class",
            argument="y_true",
            seen=classes[rarest],
            saying="of class {} it has {rows}",
            cure="Pass more rows of it, leave its column out, or use {temperature}, which all classes share.",
            temperature=_TEMPERATURE,
            least=LEAST_OF_A_CLASS,
            rows=int(counts[rarest]),
        )
