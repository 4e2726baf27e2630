"""The compiled loops over points and over the cells of a sketch: onto nodes, and into moments."""

from libc.math cimport fabs
from libc.stdint cimport int64_t


cdef extern from "moments.h":
    void add_residual(double *moments, size_t cells, double place, double residual) nogil


def add_points(const double[::1] position, const double[::1] residual, double[:, ::1] moments):
    """Add residuals at positions in [0, 1]; returns the sum of their absolute values."""
    cdef:
        Py_ssize_t i
        size_t cells = <size_t>moments.shape[0]
        double absolute = 0.0
        double *table = &moments[0, 0]
    with nogil:
        for i in range(position.shape[0]):
            add_residual(table, cells, position[i] * <double>cells, residual[i])
            absolute += fabs(residual[i])
    return absolute


def means_of_cells(const int64_t[::1] cells, const double[:, ::1] weights, const double[:, ::1] offsets,
                   double cell_width, double nodes, double[:, ::1] means):
    """The mean position in [0, 1] of each (cell, label)."""
    cdef:
        Py_ssize_t i
        int label
        double u
    with nogil:
        for i in range(cells.shape[0]):
            for label in range(2):
                u = offsets[i, label] / weights[i, label] / cell_width if weights[i, label] > 0.0 else 0.0
                means[i, label] = (<double>cells[i] + u) / nodes


def add_cells(const int64_t[::1] cells, const int64_t[:, ::1] counts, const double[:, ::1] weights,
              const double[:, ::1] offsets, double cell_width, bint shared, double nodes,
              const double[:, ::1] predictions, double start, double length, double[:, ::1] moments):
    """Add the residuals of each (cell, label), half at the mean and half at both ends (see `Spread`).

    A cell's rows are `shared` between the labels where soft outcomes may be; otherwise a count of 1 means
    that the position is known, and all of it lies there. The grid of `moments` covers [start, start +
    length] of the sketch's. `predictions` are those at `means_of_cells` and at both ends of each cell;
    empty where a prediction is its position. Returns sums of the weights, of |p - y|, and of ū(1-ū)/2
    with and without |p - y|, times the weight.
    """
    cdef:
        Py_ssize_t i
        int label
        int64_t rows
        double weight, u, v, mean, left, right = 0.0, residual, before = 0.0, after = 0.0
        double total = 0.0, absolute = 0.0, spread = 0.0, spread_mass = 0.0
        size_t parts = <size_t>moments.shape[0]
        double per_unit = <double>parts / length
        double *table = &moments[0, 0]
        bint plain = predictions.shape[0] == 0
    with nogil:
        for i in range(cells.shape[0]):
            left = <double>cells[i] / nodes
            right = <double>(cells[i] + 1) / nodes
            before = 0.0
            if i > 0:
                if cells[i - 1] + 1 == cells[i]:
                    before = after  # the end of one cell is the start of the next
                elif after != 0.0:
                    mean = <double>(cells[i - 1] + 1) / nodes
                    add_residual(table, parts, (mean - start) * per_unit, after)
            after = 0.0
            for label in range(2):
                weight = weights[i, label]
                if weight <= 0.0:
                    continue
                total += weight
                rows = counts[i, 0] + counts[i, 1] if shared else counts[i, label]
                u = offsets[i, label] / weight / cell_width
                v = 0.5 * u * (1.0 - u)
                mean = (<double>cells[i] + u) / nodes
                residual = weight * ((mean if plain else predictions[i, label]) - label)
                if rows == 1 or not v > 0.0:
                    add_residual(table, parts, (mean - start) * per_unit, residual)
                    absolute += fabs(residual)
                    continue
                spread += v * fabs(residual)
                spread_mass += v * weight
                add_residual(table, parts, (mean - start) * per_unit, 0.5 * residual)
                absolute += 0.5 * fabs(residual)
                weight *= 0.5
                residual = weight * (1.0 - u) * ((left if plain else predictions[i, 2]) - label)
                before += residual
                absolute += fabs(residual)
                residual = weight * u * ((right if plain else predictions[i, 3]) - label)
                after += residual
                absolute += fabs(residual)
            if before != 0.0:
                add_residual(table, parts, (left - start) * per_unit, before)
        if after != 0.0:
            add_residual(table, parts, (right - start) * per_unit, after)
    return total, absolute, spread, spread_mass


def lay_cells(const int64_t[::1] cells, const int64_t[:, ::1] counts, const double[:, ::1] weights,
              const double[:, ::1] offsets, double total, double cell_width, bint shared,
              double[:, ::1] nodes):
    """Add each (cell, label)'s share of the total weight to the four nodes around its mean.

    `nodes[label, j + 1]` stands at node j. A cell's rows are `shared` between the labels where soft
    outcomes may be; otherwise a count of 1 means that the position is known exactly.
    """
    cdef:
        Py_ssize_t i, cell
        int64_t rows
        int label
        double share, u, v, outer, inner
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
                outer = share * v / 6.0
                inner = share * (1.0 + 0.5 * v)
                nodes[label, cell] -= outer * (2.0 - u)
                nodes[label, cell + 1] += inner * (1.0 - u)
                nodes[label, cell + 2] += inner * u
                nodes[label, cell + 3] -= outer * (1.0 + u)
