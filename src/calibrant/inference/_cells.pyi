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
) -> tuple[float, float, float, float]: ...
def log_loss_bounds(
    counts: Integers,
    weights: Floats,
    predictions: Floats,
    ends: Floats,
    low_known: int,
    high_known: int,
) -> tuple[float, float]: ...
