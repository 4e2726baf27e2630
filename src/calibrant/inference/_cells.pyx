"""The compiled loops over the cells of a sketch: where their rows lie, sums of what these stray, witnesses."""

import numpy as np

from libc.math cimport cos, fabs, floor, log, log1p
from libc.stdint cimport int64_t

cdef double PI = 3.14159265358979323846


def mean_positions(const int64_t[::1] cells, const double[:, ::1] weights, const double[:, ::1] moments,
                   double nodes, double unit, bint by_label):
    """Mean place of the rows of each cell [m], or of each (cell, label) [m, 2], on a grid from 0 to 1.

    `moments` are sums of weight times offset, in parts of `unit` to the whole. A cell without weight is
    at its left end.
    """
    cdef:
        Py_ssize_t i, k, m = cells.shape[0], labels = 2 if by_label else 1
        double mass, moment
        double[:, ::1] place = np.empty((m, labels))
    with nogil:
        for i in range(m):
            for k in range(labels):
                mass, moment = weights[i, k], moments[i, k]
                if not by_label:
                    mass, moment = mass + weights[i, 1], moment + moments[i, 1]
                place[i, k] = <double>cells[i] / nodes
                if mass > 0.0:
                    place[i, k] += moment / mass / unit
    return np.asarray(place) if by_label else np.asarray(place).reshape(-1)


def strayed_sums(const double[:, ::1] weights, const double[:, ::1] squared, const double[::1] predictions):
    """Sums over rows with these predictions, in the order of `Strayed`, whose values they are."""
    cdef:
        Py_ssize_t i, m = predictions.shape[0]
        int label
        double f, side, residual, chance, ratio, strayed, square
        double total = 0.0, events = 0.0, expected = 0.0, bias = 0.0, gap = 0.0, above = 0.0
        double second = 0.0, calibrated = 0.0, of_bias = 0.0, of_gap = 0.0, variance = 0.0, third = 0.0
        double negative = 0.0, positive = 0.0
    with nogil:
        for i in range(m):
            f = predictions[i]
            side = 1.0 if f > 0.5 else -1.0 if f < 0.5 else 0.0
            chance = min(max(f, 0.0), 1.0)
            residual = weights[i, 0] * f + weights[i, 1] * (f - 1.0)
            total += weights[i, 0] + weights[i, 1]
            events += weights[i, 1]
            expected += (weights[i, 0] + weights[i, 1]) * f
            bias += residual
            gap += residual * side
            if f > 0.5:
                above += weights[i, 0] + weights[i, 1]
            negative += squared[i, 0]
            positive += squared[i, 1]
            second += squared[i, 0] * f * f + squared[i, 1] * (1.0 - f) * (1.0 - f)
            calibrated += (squared[i, 0] + squared[i, 1]) * chance * (1.0 - chance)
        expected /= total
        bias /= total
        gap /= total
        ratio = events / total / expected if expected > 0.0 else 0.0
        for i in range(m):
            f = predictions[i]
            side = 1.0 if f > 0.5 else -1.0 if f < 0.5 else 0.0
            for label in range(2):
                square, residual, strayed = squared[i, label], f - label, label - ratio * f
                of_bias += square * (residual - bias) * (residual - bias)
                of_gap += square * (residual * side - gap) * (residual * side - gap)
                variance += square * strayed * strayed
                third += square * strayed * strayed * strayed
    return (total, events, expected, bias, gap, above / total, negative, positive, second, calibrated, of_bias,
            of_gap, variance, third)


cdef inline double log_loss(double f, int label) noexcept nogil:
    return -log(f) if label else -log1p(-f)


def score_sums(const double[:, ::1] weights, const double[:, ::1] predictions, const double[::1] regression):
    """Sums of squares of the predictions of each (cell, label), and of their regression, with that of -log.

    The regression, one number for each cell, is the same for runs of cells: their weights come first.
    """
    cdef:
        Py_ssize_t i = 0, m = weights.shape[0]
        int label
        double f, brier = 0.0, least_brier = 0.0, least_surprise = 0.0
        double own[2]
    with nogil:
        while i < m:
            f = regression[i]
            own[0], own[1] = 0.0, 0.0
            while True:
                for label in range(2):
                    own[label] += weights[i, label]
                    brier += weights[i, label] * (predictions[i, label] - label) * (predictions[i, label] - label)
                i += 1
                if i == m or regression[i] != f:
                    break
            for label in range(2):
                if own[label] > 0.0:
                    least_brier += own[label] * (f - label) * (f - label)
                    least_surprise += own[label] * log_loss(f, label)
    return brier, least_brier, least_surprise


def log_loss_bounds(const int64_t[:, ::1] counts, const double[:, ::1] weights,
                    const double[:, ::1] predictions, const double[:, ::1] ends, Py_ssize_t low_known,
                    Py_ssize_t high_known):
    """Sums of -log if all rows sit at the mean of their (cell, label), and if at the two ends of the cell.

    Rows with the event in the cells before `low_known`, and those without from `high_known` on, are left
    out. One row alone sits at the mean.
    """
    cdef:
        Py_ssize_t i
        int label
        double w, f, low, high, inside, share, least = 0.0, most = 0.0
    with nogil:
        for i in range(weights.shape[0]):
            low, high = ends[i, 0], ends[i, 1]
            for label in range(2):
                w, f = weights[i, label], predictions[i, label]
                if not w > 0.0 or (i < low_known if label else i >= high_known):
                    continue
                least += w * log_loss(f, label)
                inside = min(max(f, low), high)
                if counts[i, label] <= 1:
                    most += w * log_loss(inside, label)
                    continue
                share = (inside - low) / (high - low) if high > low else 1.0
                if share < 1.0:
                    most += w * (1.0 - share) * log_loss(low, label)
                if share > 0.0:
                    most += w * share * log_loss(high, label)
    return least, most


def starts_of_runs(const double[::1] weight, const double[::1] variance, double total, double whole,
                   Py_ssize_t most):
    """The first of the cells in each of at most `most` runs of nearly equal weight and variance.

    `total` and `whole` are what weight and variance add up to. The first and the last cell stay alone.
    """
    cdef:
        Py_ssize_t i, m = weight.shape[0], count = 0
        double share, below = 0.0, run, before = -2.0
        int64_t[::1] first = np.empty(min(m, most + 1), dtype=np.int64)
    with nogil:
        for i in range(m):
            share = 0.5 * weight[i] / total + 0.5 * variance[i] / whole
            below += share
            run = floor((below - 0.5 * share) * <double>(most - 2))
            if i == 0:
                run = -1.0
            elif i == m - 1:
                run = <double>most
            if run != before:
                first[count] = i
                count += 1
            before = run
    return np.asarray(first)[:count]


def sums_of_runs(const int64_t[::1] first, const double[:, ::1] weights, const double[:, ::1] squared,
                 const double[::1] place, const double[::1] predictions, const double[::1] variance,
                 const int64_t[:, ::1] counts):
    """Sums over runs of cells: [runs, 8] of weights and squared weights by label, of weight times place and
    times prediction, of the variance, and of Σw² (f - y)²; and the number of rows."""
    cdef:
        Py_ssize_t run, i, runs = first.shape[0], stop
        double mass, f
        double[:, ::1] sums = np.zeros((runs, 8))
        int64_t[::1] rows = np.zeros(runs, dtype=np.int64)
        double *own
    with nogil:
        for run in range(runs):
            own = &sums[run, 0]
            stop = first[run + 1] if run + 1 < runs else place.shape[0]
            for i in range(first[run], stop):
                mass, f = weights[i, 0] + weights[i, 1], predictions[i]
                own[0] += weights[i, 0]
                own[1] += weights[i, 1]
                own[2] += squared[i, 0]
                own[3] += squared[i, 1]
                own[4] += mass * place[i]
                own[5] += mass * f
                own[6] += variance[i]
                own[7] += squared[i, 0] * (f * f) + squared[i, 1] * ((1.0 - f) * (1.0 - f))
                rows[run] += counts[i, 0] + counts[i, 1]
    return np.asarray(sums), np.asarray(rows)


def witness_rows(const double[::1] position, const double[::1] prediction, const double[::1] null, double total,
                 int levels, double reach, double largest, int waves):
    """Functions on cells, a row each: the mean, 1 - 2f, centred log-odds, boxes, both ends, and cosines.

    Boxes are halves, quarters, ... by the rank, which is how much of `null`, `total` in all, lies below a
    cell. The ends are `reach` long: the low, the high, both, and their difference. Cosines of the rank have 2 to `waves` turns.
    """
    cdef:
        Py_ssize_t i, m = position.shape[0], row, boxes = (2 << levels) - 2
        int level, k
        double f, below = 0.0, centre = 0.0, size = 1e-300, rank, turn, before, wave
        bint low, high
        double[:, ::1] rows = np.zeros((3 + boxes + 4 + (waves - 1 if waves > 0 else 0), m))
    with nogil:
        for i in range(m):
            f = min(max(prediction[i], 1e-9), 1.0 - 1e-9)
            rows[0, i] = 1.0
            rows[1, i] = 1.0 - 2.0 * f
            rows[2, i] = min(max(log(f / (1.0 - f)), -largest), largest)
            centre += null[i] * rows[2, i]
        centre /= total
        for i in range(m):
            rows[2, i] -= centre
            size = max(size, fabs(rows[2, i]))
        for i in range(m):
            rows[2, i] /= size
            below += null[i]
            rank = (below - 0.5 * null[i]) / total
            row = 3
            for level in range(1, levels + 1):
                rows[row + <Py_ssize_t>min(rank * <double>(1 << level), <double>((1 << level) - 1)), i] = 1.0
                row += 1 << level
            low, high = position[i] <= position[0] + reach, position[i] >= position[m - 1] - reach
            rows[row, i], rows[row + 1, i] = low, high
            rows[row + 2, i], rows[row + 3, i] = low or high, <double>low - <double>high
            turn = cos(PI * rank)
            before, wave = 1.0, turn
            for k in range(2, waves + 1):  # cos(kx) = 2 cos(x) cos((k - 1)x) - cos((k - 2)x)
                before, wave = wave, 2.0 * turn * wave - before
                rows[row + 2 + k, i] = wave
    return np.asarray(rows)
