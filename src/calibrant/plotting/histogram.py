"""The strip of bars that shows where the predictions are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calibrant.plotting.axis import Axis
from calibrant.plotting.panel import Hill, Mark

__all__ = ["histogram"]

Floats = NDArray[np.float64]

BARS = 60


def histogram(
    axis: Axis, p: Floats, masses: Sequence[Floats], *, says: str, series: str = ""
) -> list[Mark]:
    """How many rows lie along an axis, as bars: of all rows, or below those without and above those with.

    The highest bar has height 1.
    """
    edges = axis.forward(np.clip(np.array(axis.shown or (axis.low, axis.high)), 1e-9, 1 - 1e-9))
    edges = np.linspace(edges[0], edges[1], BARS + 1)
    places = np.clip(axis.forward(np.clip(p, 1e-12, 1 - 1e-12)), edges[0], edges[-1])
    inside = (p >= axis.low) & (p <= axis.high)
    counts = [np.histogram(places[inside], edges, weights=mass[inside])[0] for mass in masses]
    highest = max(max(float(count.max()) for count in counts), 1e-300)
    x = np.repeat(edges, 2)
    x = 1 / (1 + np.exp(-x)) if axis.scale == "logit" else x
    return [
        Hill(
            key="predictions",
            ink="series" if k else "neutral",
            series=series if k else "",
            x=x,
            height=np.concatenate([[0.0], np.repeat(count / highest, 2), [0.0]]),
            side="top" if k else "bottom",
            bars=True,
            says="" if k else says,
        )
        for k, count in enumerate(counts)
    ]
