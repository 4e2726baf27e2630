import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

def mean_positions(
    cells: Integers, weights: Floats, moments: Floats, nodes: float, unit: float, by_label: bool
) -> Floats: ...
def strayed_sums(weights: Floats, squared: Floats, predictions: Floats) -> tuple[float, ...]: ...
def score_sums(
    weights: Floats, predictions: Floats, regression: Floats
) -> tuple[float, float, float]: ...
def log_loss_bounds(
    counts: Integers,
    weights: Floats,
    predictions: Floats,
    ends: Floats,
    low_known: int,
    high_known: int,
) -> tuple[float, float]: ...
def starts_of_runs(
    weight: Floats, variance: Floats, total: float, whole: float, most: int
) -> Integers: ...
def sums_of_runs(
    first: Integers,
    weights: Floats,
    squared: Floats,
    place: Floats,
    predictions: Floats,
    variance: Floats,
    counts: Integers,
) -> tuple[Floats, Integers]: ...
def witness_rows(
    position: Floats,
    prediction: Floats,
    null: Floats,
    total: float,
    levels: int,
    reach: float,
    largest: float,
    waves: int,
) -> Floats: ...
