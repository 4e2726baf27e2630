"""The compiled fill, in plain Python integers: one row after another."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction


def counts_and_offsets(y, p, nodes):
    """{(cell, label): [rows, sum of offsets]} with exact arithmetic."""
    table = defaultdict(lambda: [0, 0])
    width = 2**36 // nodes
    for outcome, prediction in zip(y, p, strict=True):
        fixed = math.floor(Fraction(float(prediction)) * 2**36)
        entry = table[fixed // width, int(outcome)]
        entry[0] += 1
        entry[1] += fixed % width
    return dict(table)


def as_table(sketch):
    """What a sketch holds, in the same form."""
    return {
        (int(cell), label): [int(sketch.counts[row, label]), int(sketch.offsets[row, label])]
        for row, cell in enumerate(sketch.cells)
        for label in (0, 1)
        if sketch.counts[row, label]
    }
