import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

def minimise(cumulative: Floats, gaps: Floats, flow: Floats) -> float: ...
def witness(cumulative: Floats, gaps: Floats, flow: Floats, w: Floats) -> None: ...
