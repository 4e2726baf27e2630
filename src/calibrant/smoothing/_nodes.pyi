import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

def lay_cells(
    cells: Integers,
    counts: Integers,
    weights: Floats,
    offsets: Floats,
    total: float,
    cell_width: float,
    shared: bool,
    prediction: Floats,
    reach: float,
    nodes: Floats,
) -> tuple[float, float, float, float]: ...
