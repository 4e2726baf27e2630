"""Loops along sorted predictions: isotonic regression, sums of a Laplace kernel, the sweep behind the weak
calibration error, the witness function that attains it, and the linear system behind the loss gap.

SciPy has isotonic regression too, in `scipy.optimize`, which takes longer to import than `assess` takes to
run.

The dual of sup E[r w] over functions w that change by at most d_i from one point to the next and stay
within [-1, 1] is total-variation smoothing of the cumulative residual A with an L1 loss:

    minimise over B   sum |B_i - B_(i-1)| + sum d_i |A_i - B_i|,   B_0 = 0,  B_m = A_m.

Its message passing keeps a multiset of breakpoints of total weight 2; each enters and leaves once.
"""

import numpy as np

from libc.math cimport exp, fabs
from libc.stdlib cimport free, malloc, qsort


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


cdef struct Breakpoint:
    double position
    double weight

# The multiset, cut at a pivot: what lies under it is a heap with the lowest on top, the rest a heap
# with the highest on top. `sign` is +1 for the first and -1 for the second.
cdef struct Side:
    Breakpoint *items
    Py_ssize_t size
    double sign


cdef int by_position(const void *a, const void *b) noexcept nogil:
    cdef double x = (<const Breakpoint *>a).position, y = (<const Breakpoint *>b).position
    return (x > y) - (x < y)


cdef void push(Side *side, double position, double weight) noexcept nogil:
    cdef Py_ssize_t child = side.size, parent
    cdef double key = side.sign * position
    side.size += 1
    while child > 0:
        parent = (child - 1) >> 1
        if side.sign * side.items[parent].position <= key:
            break
        side.items[child] = side.items[parent]
        child = parent
    side.items[child].position = position
    side.items[child].weight = weight


cdef void pop(Side *side) noexcept nogil:
    cdef Py_ssize_t hole = 0, child = 1, last = side.size - 1
    cdef Breakpoint moved = side.items[last]
    cdef double key = side.sign * moved.position
    side.size = last
    while child < last:
        if (child + 1 < last
                and side.sign * side.items[child + 1].position < side.sign * side.items[child].position):
            child += 1
        if side.sign * side.items[child].position >= key:
            break
        side.items[hole] = side.items[child]
        hole = child
        child = 2 * hole + 1
    if last > 0:
        side.items[hole] = moved


cdef void share(Side *full, Side *empty, double *pivot) noexcept nogil:
    """Give the empty side the half of the other that lies next to its own end."""
    cdef Py_ssize_t size = full.size, given = (size + 1) // 2, i
    cdef Breakpoint swap
    qsort(full.items, size, sizeof(Breakpoint), by_position)
    if full.sign > 0:  # what is kept lies lowest already, in order, and in order is in heap order
        for i in range(given):
            empty.items[i] = full.items[size - 1 - i]
        pivot[0] = full.items[max(size - given - 1, 0)].position
    else:
        pivot[0] = full.items[given - 1].position
        for i in range(given):
            empty.items[i] = full.items[i]
        for i in range(size - given):
            full.items[i] = full.items[i + given]
        for i in range((size - given) // 2):
            swap = full.items[i]
            full.items[i] = full.items[size - given - 1 - i]
            full.items[size - given - 1 - i] = swap
    empty.size = given
    full.size = size - given


cdef double trim(Side *side, Side *other, double amount, double *pivot) noexcept nogil:
    """Take this weight from the end of the multiset that `side` holds; where the end lies then."""
    while True:
        if side.size == 0:
            share(other, side, pivot)
        if side.items[0].weight > amount:
            side.items[0].weight -= amount
            return side.items[0].position
        amount -= side.items[0].weight
        if side.size + other.size == 1:  # rounding took the last of it: the place remains
            side.items[0].weight = 0.0
            return side.items[0].position
        pop(side)


def minimise(const double[::1] cumulative, const double[::1] gaps, double[::1] flow):
    """Fill `flow` with the minimiser B and return the minimum, which is the weak calibration error.

    `cumulative` is A_1..A_m, `gaps` is d_1..d_(m-1), each between 0 and 2.
    """
    cdef:
        Py_ssize_t m = cumulative.shape[0], i
        double pivot = 0.0, value = 0.0, below = 0.0
        Side low, high
        double *ends = <double *>malloc(2 * m * sizeof(double))
    low.items = <Breakpoint *>malloc((m + 1) * sizeof(Breakpoint))
    high.items = <Breakpoint *>malloc((m + 1) * sizeof(Breakpoint))
    low.sign, high.sign = 1.0, -1.0
    low.size = high.size = 0
    if low.items == NULL or high.items == NULL or ends == NULL:
        free(low.items)
        free(high.items)
        free(ends)
        raise MemoryError
    with nogil:
        push(&low, 0.0, 2.0)
        for i in range(m - 1):
            if cumulative[i] <= pivot:
                push(&low, cumulative[i], 2.0 * gaps[i])
            else:
                push(&high, cumulative[i], 2.0 * gaps[i])
            ends[2 * i] = trim(&low, &high, gaps[i], &pivot)
            ends[2 * i + 1] = trim(&high, &low, gaps[i], &pivot)
            # The high end may have been the last that the low side held.
            ends[2 * i] = min(ends[2 * i], ends[2 * i + 1])
        flow[m - 1] = cumulative[m - 1]
        for i in range(m - 2, -1, -1):
            flow[i] = min(max(flow[i + 1], ends[2 * i]), ends[2 * i + 1])
            value += fabs(flow[i + 1] - flow[i]) + gaps[i] * fabs(cumulative[i] - flow[i])
        value += fabs(flow[0])
    free(low.items)
    free(high.items)
    free(ends)
    return value


def witness(const double[::1] cumulative, const double[::1] gaps, const double[::1] flow, double[::1] w):
    """Fill `w` with a function that attains the minimum, by complementary slackness.

    w is the sign of each step of B, and its slope is steepest, against the sign of A - B, wherever
    these differ. Where neither fixes it, any value that the neighbours allow will do.
    """
    cdef:
        Py_ssize_t m = cumulative.shape[0], i
        double step, low = -1.0, high = 1.0, rise
        double *ranges = <double *>malloc(2 * m * sizeof(double))
    if ranges == NULL:
        raise MemoryError
    with nogil:
        for i in range(m):
            if i > 0:
                if cumulative[i - 1] == flow[i - 1]:
                    low, high = max(low - gaps[i - 1], -1.0), min(high + gaps[i - 1], 1.0)
                else:
                    rise = gaps[i - 1] if cumulative[i - 1] < flow[i - 1] else -gaps[i - 1]
                    low, high = max(low + rise, -1.0), min(high + rise, 1.0)
            step = flow[i] - (flow[i - 1] if i > 0 else 0.0)
            if step != 0.0:
                low = high = 1.0 if step > 0.0 else -1.0
            ranges[2 * i] = low
            ranges[2 * i + 1] = max(high, low)
        w[m - 1] = 0.5 * (low + max(high, low))
        for i in range(m - 2, -1, -1):
            if cumulative[i] == flow[i]:
                w[i] = min(max(w[i + 1], ranges[2 * i]), ranges[2 * i + 1])
                w[i] = min(max(w[i], w[i + 1] - gaps[i]), w[i + 1] + gaps[i])
            else:
                w[i] = w[i + 1] - (gaps[i] if cumulative[i] < flow[i] else -gaps[i])
            w[i] = min(max(w[i], -1.0), 1.0)
    free(ranges)


def solve_chain(const double[::1] own, const double[::1] coupling, const double[::1] b, double[::1] x):
    """Solve (diag(own) + Laplacian of a chain with these couplings) x = b, all coefficients positive.

    Eliminating a node leaves its neighbour with more of its own: nothing is ever subtracted, so the
    solution is accurate however stiff the chain.
    """
    cdef:
        Py_ssize_t m = own.shape[0], i
        double kept, share
        double *weight = <double *>malloc(m * sizeof(double))
    if weight == NULL:
        raise MemoryError
    with nogil:
        weight[0], x[0] = own[0], b[0]
        for i in range(1, m):
            share = coupling[i - 1] / (coupling[i - 1] + weight[i - 1])
            kept = share * weight[i - 1]
            weight[i] = own[i] + kept
            x[i] = b[i] + share * x[i - 1]
        x[m - 1] /= weight[m - 1]
        for i in range(m - 2, -1, -1):
            x[i] = (x[i] + coupling[i] * x[i + 1]) / (weight[i] + coupling[i])
    free(weight)
