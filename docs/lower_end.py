"""Draws the picture of the lower end on the page of the test, from synthetic predictions.

python docs/lower_end.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from calibrant.data.sketch import Sketch
from calibrant.inference.calibration_test import FAMILIES, CalibrationTest

PATH = Path(__file__).parent / "images" / "lower-end.svg"


def main() -> None:
    rng = np.random.default_rng(3)
    p = rng.random(10_000)
    bumps = [np.exp(-0.5 * ((p - middle) / 0.08) ** 2) for middle in (0.3, 0.6)]
    y = rng.random(p.size) < p + 0.2 * bumps[0] - 0.15 * bumps[1]
    test = CalibrationTest.of(Sketch.from_arrays(y, p))
    low = test.lower_end(0.95)
    assert low > test.noise_floor  # so it is of half of the level, which is drawn
    family, scale, bound = test.lower_bounds(0.025)
    plt.rcParams["svg.hashsalt"] = "calibrant"
    figure, ax = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    widths = np.geomspace(scale.min(), low * 1.3, 50)
    ax.plot(widths, widths, color="0.6", lw=1)
    ax.annotate("m = s", (widths[-1], widths[-1]), ha="right", va="bottom", color="0.4")
    for k, name in enumerate(FAMILIES):
        scales = np.unique(scale[family == k])
        values = [max(bound[(family == k) & (scale == s)].max(), 0.0) for s in scales]
        label = "the curve, smECE" if name == "smooth" else name
        ax.plot(scales, values, "o-", ms=3, lw=1, label=label)
    ax.axhline(low, color="0.3", ls="--", lw=1)
    ax.annotate(f"lower end {low:.4f}", (0.5, low), va="bottom", ha="right")
    ax.axhline(test.noise_floor, color="0.6", ls=":", lw=1)
    ax.annotate(f"noise floor {test.noise_floor:.4f}", (scale.min(), test.noise_floor), va="top")
    ax.set(xscale="log", xlabel="Bandwidth s", ylabel="Lower bound m")
    ax.legend(
        frameon=False, title="Largest of each family", loc="center left", bbox_to_anchor=(1.0, 0.5)
    )
    figure.savefig(PATH, metadata={"Date": None})


if __name__ == "__main__":
    main()
