"""The experiments of the paper: their rows, and the numbers that it prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import datasets

Rows = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Experiment:
    """One figure: where its rows come from and what is printed under it.

    `printed` is what the paper (or, for the first figure, the authors' notebook) prints; `digits` is
    how many digits that has. `variant_of` names the figure that other rows of the same table could be.
    """

    name: str
    title: str
    rows: Callable[[], Rows]
    printed: float | None
    margin: float | None = None
    digits: int = 3
    truth: Callable[[Any], Any] | None = None
    variant_of: str = ""


def _named(name: str) -> Callable[[], Rows]:
    def rows() -> Rows:
        loaded = datasets.load(name)
        return loaded.p, loaded.y

    return rows


def _rain_two_days_ahead() -> Rows:
    """The 48-hour forecasts of the same table; sentinels mean that a value is missing."""
    table = datasets.load("fmi_rain_raw_sentinels")
    known = (table["p48_cat0"] >= 0.0) & (table["obs_mm"] < 999.0)
    return 1.0 - table["p48_cat0"][known], table.y[known]


def _drawn() -> Rows:
    drawn = datasets.generate("paper_sine")
    return drawn.p, drawn.y


def _logistic_regression() -> Rows:
    """The first figure's model, trained as the authors' notebook trains it."""
    import warnings

    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import train_test_split

    made = make_classification(n_samples=700, random_state=0)
    train, test, y_train, y_test = train_test_split(*made, test_size=400, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = LogisticRegressionCV().fit(train, y_train)
    return model.predict_proba(test)[:, 1], y_test


def _eight() -> Rows:
    """Eight rows to show how the number is made."""
    p = np.array([0.06, 0.18, 0.31, 0.42, 0.55, 0.68, 0.83, 0.95])
    return p, np.array([0, 1, 0, 0, 1, 1, 0, 1])


EXPERIMENTS = (
    Experiment("hero", "The first figure: a logistic regression", _logistic_regression, 0.1337, digits=4),
    Experiment("imagenet", "ResNet-34 on ImageNet", _named("imagenet_resnet34"), 0.078, 0.004),
    Experiment("flares", "Solar flares (DAFFS)", _named("solar_flares_daffs_c1"), 0.067, 0.021),
    Experiment("rain", "Rain in Finland, 24 hours ahead", _named("fmi_rain_tampere_2003"), 0.132, 0.041),
    Experiment("rain-48", "Rain in Finland, 48 hours ahead", _rain_two_days_ahead, None, variant_of="rain"),
    Experiment(
        "synthetic", "The synthetic example", _drawn, 0.045, 0.013,
        truth=datasets.generate("paper_sine", 1).truth,
    ),
    Experiment("eight", "Eight rows", _eight, None),
)  # fmt: skip
