from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Integers = NDArray[np.int64]
Real = TypeVar("Real", np.float32, np.float64)

def product(a: NDArray[Real], b: NDArray[Real]) -> NDArray[Real]: ...
def kernel_shares(
    position: Floats,
    edges: Floats,
    bandwidth: float,
    reflected: bool,
    table: Floats,
    per_unit: float,
    shares: Floats,
    first: Integers,
    stretches: Floats,
) -> None: ...
def binomial_surprises(
    uniform: Singles,
    start: int,
    rows: Integers,
    chance: Floats,
    worth: Floats,
    surprises: Singles,
) -> None: ...
def counts_below(uniform: Floats, rows: Integers, chance: Floats) -> Floats: ...
def between_entries(
    x: Floats,
    row: Integers,
    tables: Floats,
    per_unit: float,
    values: Floats,
) -> None: ...
def strayed_logs(
    means: Singles,
    first: Integers,
    chain: int,
    tables: Singles,
    per_unit: float,
    logs: Singles,
) -> None: ...
def inverse_sums(logs: Singles, shares: Singles) -> Singles: ...
def lowered_sums(x: Singles, errors: Singles, narrow: float, bump: float) -> Singles: ...
def evidence(
    x: Floats, degrees: Integers, shares: Floats, tables: Floats, per_unit: float
) -> float: ...
def orthogonal(gram: Floats, least: Floats, dependent: float, mixed: Floats) -> int: ...
def smoothed_errors(
    place: Floats,
    residuals: Singles,
    bandwidth: float,
    low: float,
    high: float,
    errors: Floats,
) -> None: ...
