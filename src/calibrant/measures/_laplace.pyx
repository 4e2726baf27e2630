"""The double sum of a Laplace kernel over sorted points, by one recursion."""

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
