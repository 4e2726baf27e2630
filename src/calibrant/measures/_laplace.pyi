import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

def laplace_sum(z: Floats, r: Floats, bandwidth: float) -> float: ...
