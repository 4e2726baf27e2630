"""Draws the picture at the top of the README: a real classifier before and after recalibration.

    python docs/hero.py

Naive Bayes on the breast cancer data of scikit-learn, predictions of rows that were left out.
"""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB

import calibrant as cal

FOLDER = Path(__file__).parent / "images"


def main() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    raw = cross_val_predict(GaussianNB(), X, y, cv=5, method="predict_proba")[:, 1]
    recalibrated = cross_val_predict(
        cal.RecalibratedClassifier(GaussianNB()), X, y, cv=5, method="predict_proba"
    )[:, 1]
    diagrams = cal.reliability_diagrams(
        {"naive Bayes": (y, raw), "naive Bayes, recalibrated": (y, recalibrated)}
    )
    FOLDER.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        path = FOLDER / f"reliability-{theme}.svg"
        diagrams.save(path, layout="grid", width=7.6, theme=theme)
        print(path)


if __name__ == "__main__":
    main()
