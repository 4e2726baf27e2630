"""The default picture of 28 samples, on one page: real models, small and large samples, odd predictions.

python docs/contact_sheet.py             # writes docs/images/contact-sheet.png
python docs/contact_sheet.py --to DIR    # and each picture as a file of its own
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from calibrant.plotting.diagrams import Diagrams

Sample = tuple[NDArray[Any], NDArray[np.float64]]
SHEET = Path(__file__).parent / "images" / "contact-sheet.png"
COLUMNS = 5
DPI = 64


def real_models() -> dict[str, Sample]:
    """Test rows of five classifiers, on breast cancer data and on synthetic data with 1% events."""
    from sklearn.datasets import load_breast_cancer, make_classification
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "naive Bayes": GaussianNB(),
        "random forest": RandomForestClassifier(200, random_state=0),
        "gradient boosting": HistGradientBoostingClassifier(random_state=0),
        "neural network": make_pipeline(
            StandardScaler(), MLPClassifier((50,), max_iter=300, random_state=0)
        ),
    }
    rare = make_classification(
        40_000, n_informative=6, weights=[0.99], flip_y=0.002, random_state=0
    )
    samples: dict[str, Sample] = {}
    for kind, (X, y) in {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "1% events": rare,
    }.items():
        train, test, y_train, y_test = train_test_split(
            X, y, test_size=0.5, random_state=0, stratify=y
        )
        for name, model in models.items():
            p = model.fit(train, y_train).predict_proba(test)[:, 1]
            samples[f"{kind}, {name}"] = (y_test, p)
    return samples


def _logistic(z: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1.0 / (1.0 + np.exp(-z))


def _log_odds(p: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.log(p) - np.log1p(-p)


def synthetic() -> dict[str, Sample]:
    """Samples that a picture must survive."""
    rng = np.random.default_rng(1)

    def drawn(p: NDArray[np.float64], truth: NDArray[np.float64]) -> Sample:
        return (rng.random(p.size) < truth).astype(int), p

    def uniform(n: int) -> Sample:
        p = rng.random(n)
        return drawn(p, p)

    two = np.where(rng.random(1000) < 0.5, rng.normal(0.3, 0.05, 1000), rng.normal(0.8, 0.05, 1000))
    gap = two.clip(0.01, 0.99)
    many = rng.beta(2, 3, 2_000_000)
    few, tenths = rng.choice([0.2, 0.5, 0.8], 500), np.round(rng.beta(1, 2, 346), 1)
    saturated, rare = rng.beta(0.05, 0.05, 2000), rng.beta(1, 999, 50_000)
    narrow, wrong, clean = rng.uniform(0.42, 0.55, 3000), rng.random(1500), rng.beta(2, 5, 1500)
    clean[:4] = 0.93, 0.95, 0.97, 0.99
    return {
        "12 rows": uniform(12),
        "60 rows": uniform(60),
        "300 rows": uniform(300),
        "2,000,000 rows": drawn(many, _logistic(0.95 * _log_odds(many))),
        "three values": drawn(few, few**1.3),
        "eleven values": drawn(tenths, 0.8 * tenths),
        "gap": drawn(gap, gap),
        "saturated": drawn(saturated, 0.1 + 0.8 * saturated),
        "events 1 in 1,000": drawn(rare, 1.5 * rare),
        "narrow range": drawn(narrow, np.full(3000, 0.5)),
        "constant": drawn(np.full(400, 0.3), np.full(400, 0.36)),
        "inverted": drawn(wrong, 1.0 - wrong),
        "outliers": drawn(clean, clean),
    }


def several() -> dict[str, Callable[[], Diagrams]]:
    """Pictures of several models, of ten classes, and before and after recalibration."""
    rng = np.random.default_rng(2)
    z = rng.normal(0.3, 1.5, 6000)
    y = (rng.random(z.size) < _logistic(z)).astype(int)

    def models(count: int) -> Diagrams:
        slopes = [1.9, 1.0, 0.55, 1.3, 0.8, 2.4, 1.1, 1.6][:count]
        return cal.reliability_diagrams(
            {f"model {chr(65 + k)}": (y, _logistic(a * z)) for k, a in enumerate(slopes)}
        )

    def digits() -> Diagrams:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import cross_val_predict
        from sklearn.naive_bayes import GaussianNB

        X, labels = load_digits(return_X_y=True)
        probs = cross_val_predict(GaussianNB(), X, labels, cv=5, method="predict_proba")
        return cal.reliability_diagrams(labels, probs, multiclass="classwise")

    def repaired() -> Diagrams:
        half = y.size // 2
        p = _logistic(2.2 * z)
        fitted = cal.AdaptiveRecalibrator().fit(p[:half], y[:half])
        return cal.reliability_diagrams(
            {
                "before recalibration": (y[half:], p[half:]),
                "after recalibration": (y[half:], fitted.transform(p[half:])),
            }
        )

    return {
        "2 models": lambda: models(2),
        "4 models": lambda: models(4),
        "before and after": repaired,
        "8 models": lambda: models(8),
        "ten digits": digits,
    }


def pictures() -> dict[str, bytes]:
    """Each picture with the defaults, as PNG."""
    single: Mapping[str, Sample] = {**real_models(), **synthetic()}
    makers: dict[str, Callable[[], Any]] = {
        name: (lambda sample=sample: cal.reliability_diagram(*sample))
        for name, sample in single.items()
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in {**makers, **several()}.items():
            found[name] = make().save(Path(folder) / "one.png", dpi=DPI).read_bytes()
    return found


def sheet(found: Mapping[str, bytes]) -> NDArray[np.uint8]:
    """All pictures on one page, each under its name."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(13)
    images = {name: Image.open(io.BytesIO(png)).convert("RGB") for name, png in found.items()}
    cell = max(image.width for name, image in images.items() if image.width < 500) + 14
    rows: list[list[str]] = [[]]
    room = COLUMNS
    for name, image in images.items():
        span = -(-image.width // cell)
        if span > room:
            rows.append([])
            room = COLUMNS
        rows[-1].append(name)
        room -= span
    heights = [max(images[name].height for name in row) + 30 for row in rows]
    page = Image.new("RGB", (COLUMNS * cell, sum(heights)), "#e9ebee")
    pen = ImageDraw.Draw(page)
    y = 0
    for row, height in zip(rows, heights, strict=True):
        x = 0
        for name in row:
            pen.text((x + 8, y + 6), name, fill="#1f2328", font=font)
            page.paste(images[name], (x + 6, y + 24))
            x += -(-images[name].width // cell) * cell
        y += height
    return np.asarray(page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, help="folder for each picture")
    asked = parser.parse_args()
    found = pictures()
    if asked.to is not None:
        asked.to.mkdir(parents=True, exist_ok=True)
        for name, png in found.items():
            (asked.to / f"{name.replace(', ', '-').replace(' ', '-')}.png").write_bytes(png)
    from PIL import Image

    Image.fromarray(sheet(found)).quantize(256, method=Image.Quantize.FASTOCTREE).save(
        SHEET, optimize=True
    )
    print(SHEET)


if __name__ == "__main__":
    main()
