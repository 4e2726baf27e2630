"""One prediction for all rows: every table is a number of events, so that nothing need be simulated."""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

import calibrant as cal
from bench import pages
from calibrant.data.sketch import Sketch

CELLS = (
    (0.002, 0.002, 100), (0.01, 0.01, 30), (0.5, 0.5, 20), (0.5, 0.5, 100), (0.02, 0.002, 300),
    (0.02, 0.002, 1_000), (0.2, 0.002, 300), (0.5, 0.01, 100), (0.7, 0.997, 300), (1.0, 0.996, 400),
    (1.0, 0.99, 1_000), (1.0, 0.99, 5_000),
)  # fmt: skip
LEAST = 1e-7


def table() -> pages.Table:
    """Coverage and how often the test rejects, exactly, at the settings that users have."""
    rows = []
    for said, rate, n in CELLS:
        chances = binom.pmf(np.arange(n + 1), n, rate)
        covered = rejected = width = 0.0
        for events in np.flatnonzero(chances > LEAST):
            found = cal.assess(Sketch.from_counts([said], [n], [int(events)]))
            covered += chances[events] * (abs(said - rate) in found.interval)
            rejected += chances[events] * (found.p_value <= 0.05)
            width += chances[events] * found.interval.width
        rows.append(
            [
                f"{said:g}",
                f"{rate:g}",
                f"{n:,}",
                f"{covered:.3f}",
                f"{width:.4f}",
                f"{rejected:.3f}",
            ]
        )
    return pages.Table(
        "The same prediction for every row",
        ["prediction", "chance of the event", "n", "coverage", "width", "rejected"],
        rows,
        [
            "Computed, not simulated: a sum over all numbers of events, each weighted by its "
            "probability. `assess` runs with its defaults.",
            "The hardest samples are those whose outcomes all agree: they show no spread, and only a "
            "few values of the statistic are possible. Where prediction and chance are equal, "
            "`rejected` is the size of the test at level .05. Ties count in full, so it is at most .05 "
            "but for the error of 499 draws, about .01.",
        ],
    )
