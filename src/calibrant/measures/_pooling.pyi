import numpy as np
from numpy.typing import NDArray

def pooled(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]: ...
