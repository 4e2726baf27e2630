import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

def rows_of_a_word(log2_cells: int) -> int: ...
def pack(
    p: NDArray[np.floating], y: NDArray[np.generic], log2_cells: int, packed: Words, occupied: Words
) -> int: ...
def mark(packed: Words, occupied: Words) -> int: ...
def marked(occupied: Words) -> int: ...
def unpack(
    packed: Words,
    occupied: Words,
    log2_cells: int,
    cells: Integers,
    counts: Integers,
    offsets: Integers,
) -> None: ...
def fill_counts(
    p: NDArray[np.floating],
    y: NDArray[np.generic],
    log2_cells: int,
    counts: Integers,
    offsets: Integers,
) -> int: ...
def add_squares(
    p: NDArray[np.floating],
    y: NDArray[np.generic],
    log2_cells: int,
    packed: Words,
    sums: Floats,
) -> int: ...
def fill_weights(
    p: Floats,
    y: Floats,
    w: Floats,
    log2_cells: int,
    counts: Integers,
    offsets: Integers,
    weights: Floats,
    squared_weights: Floats,
    weighted_offsets: Floats,
) -> int: ...
def outline(
    p: NDArray[np.floating], y: NDArray[np.generic], w: Floats, step: int
) -> tuple[float, float, float, float, float, float]: ...
def sum_log_losses(p: Floats, y: Floats, w: Floats, soft: bool) -> tuple[float, float]: ...
def add_moments(
    p: NDArray[np.floating],
    y: NDArray[np.generic],
    w: Floats,
    soft: bool,
    start: float,
    cells_per_unit: float,
    moments: Floats,
) -> int: ...
def fill_classes(
    probs: NDArray[np.floating],
    labels: Integers,
    log2_cells: int,
    counts: Integers,
    offsets: Integers,
) -> None: ...
def sum_words(
    words: NDArray[np.uint64],
    spare: NDArray[np.uint64],
    low: int,
    high: int,
    places: Integers,
    counts: Integers,
    offsets: Integers,
) -> int: ...
def coarse_sums(
    cells: Integers,
    shift: int,
    offset_bits: int,
    counts: Integers,
    offsets: Integers,
    wide: Integers,
    rows: Integers,
    places: Integers,
) -> int: ...
