"""Isotonic regression by pooling adjacent violators.

SciPy has it too, in `scipy.optimize`, which takes longer to import than `assess` takes to run.
"""

import numpy as np


def pooled(const double[::1] values, const double[::1] weights):
    """The increasing sequence nearest to `values` in weighted least squares; weights are positive."""
    cdef Py_ssize_t n = values.shape[0], i, k, blocks = 0, row = 0
    fitted = np.empty(n)
    cdef double[::1] out = fitted
    cdef double[::1] mean = np.empty(n)
    cdef double[::1] weight = np.empty(n)
    cdef Py_ssize_t[::1] size = np.empty(n, dtype=np.intp)
    cdef double total
    with nogil:
        for i in range(n):
            mean[blocks], weight[blocks], size[blocks] = values[i], weights[i], 1
            blocks += 1
            while blocks > 1 and mean[blocks - 2] >= mean[blocks - 1]:
                total = weight[blocks - 2] + weight[blocks - 1]
                mean[blocks - 2] += (mean[blocks - 1] - mean[blocks - 2]) * (weight[blocks - 1] / total)
                weight[blocks - 2] = total
                size[blocks - 2] += size[blocks - 1]
                blocks -= 1
        for k in range(blocks):
            for i in range(size[k]):
                out[row] = mean[k]
                row += 1
    return fitted
