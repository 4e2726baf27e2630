"""Sums of a Laplace kernel over sorted points, by one recursion."""

import numpy as np

from libc.math cimport exp


def laplace_sum(const double[::1] z, const double[::1] r, double bandwidth):
    """Sum of r_i r_j exp(-|z_i - z_j| / bandwidth) over all pairs; z increases, ends may be infinite."""
    cdef:
        Py_ssize_t m = z.shape[0], i
        double before = 0.0, total = 0.0
    with nogil:
        for i in range(m):
            if i > 0:
                before = (before + r[i - 1]) * exp(-(z[i] - z[i - 1]) / bandwidth)
            total += r[i] * (r[i] + 2.0 * before)
    return total


def laplace_sums(const double[::1] z, const double[::1] r, const long long[::1] group):
    """Sum over j of r_j exp(-|z_i - z_j|) for every i, of the j in its group.

    Groups lie one after the other, and z increases in each.
    """
    cdef:
        Py_ssize_t m = z.shape[0], i
        double before = 0.0, after = 0.0
        double[::1] sums
    result = np.empty(m)
    sums = result
    with nogil:
        for i in range(m):
            if i > 0 and group[i] == group[i - 1]:
                before = (before + r[i - 1]) * exp(z[i - 1] - z[i])
            else:
                before = 0.0
            sums[i] = r[i] + before
        for i in range(m - 2, -1, -1):
            after = (after + r[i + 1]) * exp(z[i] - z[i + 1]) if group[i] == group[i + 1] else 0.0
            sums[i] += after
    return result
