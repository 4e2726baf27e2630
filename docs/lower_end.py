"""Draws the picture of the lower end on the page about uncertainty, from synthetic predictions.

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
    p = rng.random(2_000)
    y = rng.random(p.size) < p - 0.12 * np.exp(-0.5 * ((p - 0.6) / 0.1) ** 2)
    test = CalibrationTest.of(Sketch.from_arrays(y, p))
    plt.rcParams["svg.hashsalt"] = "calibrant"
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    family, scale, bound = test.lower_bounds(0.025)
    for k, name in enumerate(FAMILIES):
        scales = np.unique(scale[family == k])
        values = [min(s, max(bound[(family == k) & (scale == s)].max(), 0.0)) for s in scales]
        ax.plot(scales, values, "o-", ms=3, label="smECE" if name == "smooth" else name)
    low = test.lower_end(0.95)
    ax.axhline(low, color="0.3", ls="--", lw=1)
    ax.annotate(f"lower end {low:.3f}", (0.5, low), va="bottom", ha="right")
    ax.set(xscale="log", xlabel="Bandwidth s", ylabel="Lower bound min(s, m)")
    ax.legend(frameon=False, title="Largest of each family")
    figure.savefig(PATH, metadata={"Date": None})


if __name__ == "__main__":
    main()
