"""Draws the picture at the top of the README, from synthetic predictions.

    python docs/hero.py

A classifier whose log-odds are 1.7 times too large, and the same one after its log-odds are shrunk.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from calibrant.plotting.group import reliability_diagrams

FOLDER = Path(__file__).parent / "images"


def main() -> None:
    rng = np.random.default_rng(0)
    log_odds = rng.normal(0.35, 1.5, 4000)
    y = rng.random(log_odds.size) < 1 / (1 + np.exp(-log_odds))
    models = {
        "as trained": (y, 1 / (1 + np.exp(-1.7 * log_odds))),
        "recalibrated": (y, 1 / (1 + np.exp(-log_odds))),
    }
    diagrams = reliability_diagrams(models)
    FOLDER.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        path = FOLDER / f"reliability-{theme}.svg"
        diagrams.save(path, layout="grid", width=7.6, theme=theme)
        print(path)


if __name__ == "__main__":
    main()
