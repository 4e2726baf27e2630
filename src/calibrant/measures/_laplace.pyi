import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

def laplace_sum(z: Floats, r: Floats, bandwidth: float) -> float: ...
def laplace_sums(z: Floats, r: Floats, group: Integers) -> Floats: ...
