import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

def add_points(position: Floats, residual: Floats, moments: Floats) -> float: ...
def means_of_cells(
    cells: Integers,
    weights: Floats | Integers,
    offsets: Floats | Integers,
    cell_width: float,
    nodes: float,
    means: Floats,
) -> None: ...
def outline_of_cells(
    cells: Integers, weights: Floats | Integers, predictions: Floats, nodes: float, step: int
) -> tuple[float, float, float]: ...
def add_cells(
    cells: Integers,
    counts: Integers,
    weights: Floats | Integers,
    offsets: Floats | Integers,
    cell_width: float,
    shared: bool,
    nodes: float,
    predictions: Floats,
    length: float,
    moments: Floats,
) -> tuple[float, float, float, float]: ...
def add_variances(
    sums: Floats, cell_width: float, start: float, length: float, moments: Floats
) -> tuple[float, float, float, float, float]: ...
def lay_cells(
    cells: Integers,
    counts: Integers,
    weights: Floats,
    offsets: Floats,
    total: float,
    cell_width: float,
    shared: bool,
    nodes: Floats,
) -> None: ...
