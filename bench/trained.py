"""Predictions that played no part in making the default map: of models of data that come with scikit-learn.

Every row is predicted by a model that has not seen it (five folds).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.rows import Rows

DRAWN = 4_000


def sets() -> Iterator[Rows]:
    """Five kinds of models on real and on drawn data."""
    from sklearn.model_selection import cross_val_predict

    for name, (X, y) in _data().items():
        for model, made in _models().items():
            p = cross_val_predict(made, X, y, cv=5, method="predict_proba")[:, 1]
            yield Rows(f"{name}, {model}", np.asarray(p, dtype=np.float64), y.astype(np.float64))


def _data() -> dict[str, tuple[Any, Any]]:
    from sklearn import datasets

    def drawn(made: Callable[..., Any], **options: Any) -> tuple[Any, Any]:
        return made(n_samples=DRAWN, random_state=0, **options)

    digits, digit = datasets.load_digits(return_X_y=True)
    diabetes, progression = datasets.load_diabetes(return_X_y=True)
    hastie, sign = drawn(datasets.make_hastie_10_2)
    easy = {"n_features": 20, "n_informative": 8}
    return {
        "breast cancer": datasets.load_breast_cancer(return_X_y=True),
        "diabetes": (diabetes, progression > np.quantile(progression, 0.7)),
        "digit 3": (digits, digit == 3),
        "digit 8": (digits, digit == 8),
        "odd digits": (digits, digit % 2 == 1),
        "ten normals": (hastie, sign > 0),
        "clusters": drawn(datasets.make_classification, **easy, flip_y=0.1),
        "rare clusters": drawn(datasets.make_classification, **easy, weights=[0.95]),
        "noisy clusters": drawn(datasets.make_classification, **easy, flip_y=0.4, class_sep=0.5),
        "moons": drawn(datasets.make_moons, noise=0.4),
    }


def _models() -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return {
        "naive Bayes": GaussianNB(),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
        "forest": RandomForestClassifier(50, random_state=0),
        "boosted trees": HistGradientBoostingClassifier(max_iter=50, random_state=0),
        "neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(20)),
    }


TITLE = "Confirming the default"
NOTE = (
    "Ten tasks that come with scikit-learn, five models each. Every row is predicted by a model that has not "
    "seen it. We looked at none of these when we chose the default."
)
