"""The compiled loop that lays the cells of a sketch onto nodes (see `BinningError` for the weights)."""

from libc.math cimport fabs
from libc.stdint cimport int64_t


def lay_cells(const int64_t[::1] cells, const int64_t[:, ::1] counts, const double[:, ::1] weights,
              const double[:, ::1] offsets, double total, double cell_width, bint shared,
              const double[::1] prediction, double reach, double[:, ::1] nodes):
    """Add each (cell, label)'s share of the total weight to the four nodes around its mean.

    `nodes[label, j + 1]` stands at node j. A cell's rows are `shared` between the labels where soft
    outcomes may be; otherwise a count of 1 means that the position is known exactly. Returns what the
    mean leaves open of the second and third moments: (spread, spread_mass, skew, skew_mass).
    """
    cdef:
        Py_ssize_t i, cell
        int64_t rows
        int label
        double share, u, v, outer, inner, residual
        double spread = 0.0, spread_mass = 0.0, skew = 0.0, skew_mass = 0.0
    with nogil:
        for i in range(cells.shape[0]):
            cell = cells[i]
            for label in range(2):
                if weights[i, label] <= 0.0:
                    continue
                rows = counts[i, 0] + counts[i, 1] if shared else counts[i, label]
                share = weights[i, label] / total
                u = offsets[i, label] / weights[i, label] / cell_width
                v = u * (1.0 - u)
                if rows != 1 and v > 0.0:
                    v *= 0.5
                    residual = fabs(prediction[cell + 1] - label) + reach
                    spread += share * v * residual
                    spread_mass += share * v
                    skew += share * residual / 16.0
                    skew_mass += share / 16.0
                outer = share * v / 6.0
                inner = share * (1.0 + 0.5 * v)
                nodes[label, cell] -= outer * (2.0 - u)
                nodes[label, cell + 1] += inner * (1.0 - u)
                nodes[label, cell + 2] += inner * u
                nodes[label, cell + 3] -= outer * (1.0 + u)
    return spread, spread_mass, skew, skew_mass
