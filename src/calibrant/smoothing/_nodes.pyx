"""The compiled loops over points and over the cells of a sketch: onto nodes, and into moments."""

from libc.math cimport fabs, fmax
from libc.stdint cimport int64_t


cdef extern from "moments.h":
    ctypedef struct gathering:
        double *moments
        size_t cells, held
    void add_residual(double *moments, size_t cells, double place, double residual) nogil
    void gather(gathering *, double place, double residual) nogil
    void gather_rest(gathering *) nogil

ctypedef fused amount:
    int64_t
    double


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


def means_of_cells(const int64_t[::1] cells, const amount[:, ::1] weights, const amount[:, ::1] offsets,
                   double cell_width, double nodes, double[:, ::1] means):
    """The mean position in [0, 1] of each (cell, label)."""
    cdef:
        Py_ssize_t i
        int label
        double u
    with nogil:
        for i in range(cells.shape[0]):
            for label in range(2):
                u = 0.0
                if weights[i, label] > 0:
                    u = <double>offsets[i, label] / <double>weights[i, label] / cell_width
                means[i, label] = (<double>cells[i] + u) / nodes


def outline_of_cells(const int64_t[::1] cells, const amount[:, ::1] weights, const double[:, ::1] predictions,
                     double nodes, Py_ssize_t step):
    """Of every `step`-th cell, as if its rows lay at its left end: what `outline` has of rows.

    Means of p - y and |p - y|, and the sum of means of p - y in each eighth of the grid, without signs.
    """
    cdef:
        Py_ssize_t i = 0, eighth = 0
        double position, p, negative, positive, too_high = 0.0, too_low = 0.0, total = 0.0
        double here = 0.0, coarse = 0.0, bounds = 1.0 / 8.0
        bint plain = predictions.shape[0] == 0
    with nogil:
        while i < cells.shape[0]:
            position = <double>cells[i] / nodes
            if position >= bounds:
                coarse += fabs(here)
                here = 0.0
                eighth = <Py_ssize_t>(8.0 * position)
                bounds = <double>(eighth + 1) / 8.0
            p = position if plain else predictions[i, 2]
            negative = <double>weights[i, 0]
            positive = <double>weights[i, 1]
            total += negative + positive
            too_high += negative * p
            too_low += positive * (1.0 - p)
            here += negative * p - positive * (1.0 - p)
            i += step
    total = total if total > 0.0 else 1.0
    return (too_high - too_low) / total, (too_high + too_low) / total, (coarse + fabs(here)) / total


def add_cells(const int64_t[::1] cells, const int64_t[:, ::1] counts, const amount[:, ::1] weights,
              const amount[:, ::1] offsets, double cell_width, bint shared, double nodes,
              const double[:, ::1] predictions, double length, double[:, ::1] moments):
    """Add the residuals of each (cell, label), half at the mean and half at both ends (see `Spread`).

    A cell's rows are `shared` between the labels where weights or soft outcomes may be; otherwise weights
    are counts, and a count of 1 means that the position is known, and all of it lies there. The grid of
    `moments` covers so much of the sketch's from its start, or of a line on which the cells lie elsewhere,
    in any order. `predictions` are those at `means_of_cells` and at both ends of each cell; empty where a
    prediction is its position. Returns sums of the weights,
    of |p - y|, and of ū(1-ū)/2 with and without |p - y|, times the weight.
    """
    cdef:
        Py_ssize_t i
        int label
        int64_t rows
        double weight, u, at_end, place, mean, left, right = 0.0, residual, at_left, at_right
        double before = 0.0, after = 0.0
        double total = 0.0, absolute = 0.0, spread = 0.0, spread_mass = 0.0
        size_t parts = <size_t>moments.shape[0]
        double per_unit = <double>parts / length, cell = 1.0 / nodes  # a power of two: exact
        double per_cell = 1.0 / cell_width, step = per_unit * cell
        gathering table
        bint plain = predictions.shape[0] == 0
    table.held = 0
    table.moments = &moments[0, 0]
    table.cells = parts
    with nogil:
        for i in range(cells.shape[0]):
            left = <double>cells[i] * cell
            right = <double>(cells[i] + 1) * cell
            before = 0.0
            if i > 0:
                if cells[i - 1] + 1 == cells[i]:
                    before = after  # the end of one cell is the start of the next
                elif after != 0.0:
                    mean = <double>(cells[i - 1] + 1) * cell
                    gather(&table, mean * per_unit, after)
            after = 0.0
            place = left * per_unit
            if not shared and counts[i, 0] + counts[i, 1] == 1:  # no branch on its outcome, which is random
                label = <int>counts[i, 1]
                mean = (<double>cells[i] + <double>offsets[i, label] * per_cell) * cell
                residual = (mean if plain else predictions[i, label]) - label
                gather(&table, mean * per_unit, residual)
                total += 1.0
                absolute += fabs(residual)
                if before != 0.0:
                    gather(&table, place, before)
                continue
            for label in range(2):
                weight = <double>weights[i, label]
                if weight <= 0.0:
                    continue
                total += weight
                rows = counts[i, 0] + counts[i, 1] if shared else counts[i, label]
                at_end = <double>offsets[i, label] * per_cell  # of the weight, were all of it at both ends
                u = at_end / weight
                at_left = 0.5 * (weight - at_end) * ((left if plain else predictions[i, 2]) - label)
                at_right = 0.5 * at_end * ((right if plain else predictions[i, 3]) - label)
                if plain:  # half at the mean is as much as half at both ends, and of one sign
                    residual = at_left + at_right
                    absolute += 2.0 * fabs(residual)
                else:
                    residual = 0.5 * weight * (predictions[i, label] - label)
                    absolute += fabs(residual) + fmax(fabs(residual), fabs(at_left) + fabs(at_right))
                if rows == 1 or not u * (1.0 - u) > 0.0:
                    gather(&table, place + u * step, 2.0 * residual)
                    continue
                gather(&table, place + u * step, residual)
                before += at_left
                after += at_right
                spread += u * (1.0 - u) * fabs(residual)
                spread_mass += 0.5 * at_end * (1.0 - u)
            if before != 0.0:
                gather(&table, place, before)
        if after != 0.0:
            gather(&table, right * per_unit, after)
        gather_rest(&table)
    return total, absolute, spread, spread_mass


def add_variances(const double[:, ::1] sums, double cell_width, double start, double length,
                  double[:, ::1] moments):
    """Add the residuals of each (cell, label) of which number, mean and variance are known (see `Skew`).

    `sums` has a row for each cell and label: rows, sum of offsets, sum of squared offsets, in units of
    which a cell is `cell_width` wide. Half of the rows are laid at the left end and at one other point,
    half at the right end and at another, so that mean and variance are kept. Returns sums of |p - y|, and
    of half the range of the third moment and of the variance, each with and without |p - y|.
    """
    cdef:
        Py_ssize_t cell, cells = sums.shape[0] // 2
        size_t parts = <size_t>moments.shape[0]
        int label
        double rows, u, square, spread, low, high, at_low, at_high, residual, half, size
        double left, right = 0.0, before, after = 0.0, per_node = 1.0 / <double>(cells - 1)
        double per_unit = <double>parts / length, per_cell = 1.0 / cell_width  # powers of two: exact
        double absolute = 0.0, third = 0.0, third_mass = 0.0, fourth = 0.0, fourth_mass = 0.0
        gathering table
    table.held = 0
    table.moments = &moments[0, 0]
    table.cells = parts
    with nogil:
        for cell in range(cells):
            left = <double>cell * per_node
            right = <double>(cell + 1) * per_node
            before = after  # the end of one cell is the start of the next
            after = 0.0
            for label in range(2):
                rows = sums[2 * cell + label, 0]
                if rows == 0.0:
                    continue
                u = sums[2 * cell + label, 1] / rows * per_cell
                square = sums[2 * cell + label, 2] / rows * per_cell * per_cell
                spread = square - u * u
                residual = (<double>cell + u) * per_node - label
                if not spread > 1e-13:  # all at one place, but for rounding
                    gather(&table, ((<double>cell + u) * per_node - start) * per_unit, rows * residual)
                    absolute += rows * fabs(residual)
                    continue
                low = square / u
                high = (u - square) / (1.0 - u)
                at_low = u / low
                at_high = (1.0 - u) / (1.0 - high)
                half = fabs(0.5 * ((1.0 - at_high) + at_high * high * high * high - at_low * low * low * low))
                third += rows * half * fabs(residual)
                third_mass += rows * half
                fourth += rows * spread * fabs(residual)
                fourth_mass += rows * spread
                rows *= 0.5
                size = 0.0
                residual = rows * at_low * ((<double>cell + low) * per_node - label)
                gather(&table, ((<double>cell + low) * per_node - start) * per_unit, residual)
                size += fabs(residual)
                residual = rows * at_high * ((<double>cell + high) * per_node - label)
                gather(&table, ((<double>cell + high) * per_node - start) * per_unit, residual)
                size += fabs(residual)
                residual = rows * (1.0 - at_low) * (left - label)
                before += residual
                size += fabs(residual)
                residual = rows * (1.0 - at_high) * (right - label)
                after += residual
                absolute += size + fabs(residual)
            if before != 0.0:
                gather(&table, (left - start) * per_unit, before)
        gather_rest(&table)
    return absolute, third, third_mass, fourth, fourth_mass


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
