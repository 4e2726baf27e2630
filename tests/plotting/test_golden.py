"""Eight default pictures beside those that were looked at and found good.

Compared as blurred grey images: fonts and versions of matplotlib move a letter, not a curve. To look anew and
keep what is drawn today: CALIBRANT_GOLDEN=write python -m pytest tests/plotting/test_golden.py
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from docs.contact_sheet import several, synthetic
from matplotlib.image import imread, imsave
from scipy.ndimage import gaussian_filter

import calibrant as cal

matplotlib.use("Agg")

FOLDER = Path(__file__).parents[1] / "golden" / "pictures"
NAMES = [
    *("12 rows", "300 rows", "three values", "gap", "saturated"),
    *("events 1 in 1,000", "inverted", "4 models"),
]
DPI, BLUR = 50, 2.0
DIFFERENCE = 0.02
"""Root mean square of the difference of grey levels: a shifted line has .03, another font .01."""


def grey(path: Path) -> np.ndarray:
    return gaussian_filter(imread(path)[..., :3].mean(axis=2).astype(float), BLUR)


@pytest.fixture(scope="module")
def makers():
    single = {name: (lambda s=s: cal.reliability_diagram(*s)) for name, s in synthetic().items()}
    return {**single, **several()}


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_the_one_that_was_found_good(makers, tmp_path, name: str) -> None:
    kept = FOLDER / f"{name.replace(' ', '-').replace(',', '')}.png"
    drawn = makers[name]().save(tmp_path / "drawn.png", dpi=DPI)
    if os.environ.get("CALIBRANT_GOLDEN") == "write":
        imsave(kept, imread(drawn))
    new, old = grey(drawn), grey(kept)
    assert new.shape == old.shape
    assert np.sqrt(np.mean((new - old) ** 2)) < DIFFERENCE


def test_a_shifted_curve_is_another_picture(tmp_path) -> None:
    y, p = synthetic()["300 rows"]
    one = cal.reliability_diagram(y, p).save(tmp_path / "a.png", dpi=DPI)
    other = cal.reliability_diagram(y, p**1.5).save(tmp_path / "b.png", dpi=DPI)
    assert np.sqrt(np.mean((grey(one) - grey(other)) ** 2)) > DIFFERENCE
