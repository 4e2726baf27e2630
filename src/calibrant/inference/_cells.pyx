"""The compiled loops over the cells of a sketch: where their rows lie, and sums of what these stray."""

import numpy as np

from libc.math cimport log, log1p
from libc.stdint cimport int64_t


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
    """Of the predictions of each (cell, label), and of one for each cell: sums of squares, and of -log."""
    cdef:
        Py_ssize_t i
        int label
        double w, brier = 0.0, least_brier = 0.0, surprise = 0.0, least_surprise = 0.0
    with nogil:
        for i in range(weights.shape[0]):
            for label in range(2):
                w = weights[i, label]
                if w > 0.0:
                    brier += w * (predictions[i, label] - label) * (predictions[i, label] - label)
                    least_brier += w * (regression[i] - label) * (regression[i] - label)
                    surprise += w * log_loss(predictions[i, label], label)
                    least_surprise += w * log_loss(regression[i], label)
    return brier, least_brier, surprise, least_surprise


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
