"""The compiled loops behind noise floors and tests: kernels on cells, draws of outcomes, tails of them."""

import numpy as np

from libc.math cimport ceil, exp, fabs, log, log1p, sqrt
from libc.stdint cimport int64_t

cdef extern from "lanes.h":
    void normal_at(const double *, size_t, double, double, double, const double *, int, double *) nogil
    void count_above(const float *, size_t, const float *, size_t, float, float, float *) nogil
    void largest_sizes(const float *, size_t, size_t, float *) nogil
    void next_lengths(const float *, size_t, float *, float *) nogil
    void look_up(float *, size_t, const float *, int, float) nogil
    void add_inverse(const float *, size_t, size_t, const float *, float *, float *) nogil
    void add_lowered(const float *, size_t, size_t, const float *, float, float, float *) nogil
    void next_kernels(double *, double *, size_t, double) nogil
    void add_sizes(const float *, size_t, size_t, const double *, double *) nogil
    void product_of_floats(const float *, size_t, size_t, const float *, size_t, size_t, size_t *, float *) nogil
    void product_of_doubles(const double *, size_t, size_t, const double *, size_t, size_t, size_t *, double *) nogil

cdef:
    double REACH = 6.0  # bandwidths from its middle to where a kernel is taken to end
    double APART = 10.0  # bandwidths between neighbours that do not see each other
    double PER_BANDWIDTH = 6.0

ctypedef fused real:
    float
    double


def product(const real[:, ::1] a, const real[:, :] b):
    """The matrix product, on one thread: BLAS starts several, which cost more than they save at these sizes.

    The rows of b may lie apart, as those of a slice of columns do. Zeros at both ends of rows of a cost nothing.
    """
    cdef:
        Py_ssize_t rows = a.shape[0], inner = a.shape[1], columns = b.shape[1]
        size_t step = <size_t>(b.strides[0] // <Py_ssize_t>sizeof(real))
    if b.shape[0] != inner or (columns > 1 and b.strides[1] != <Py_ssize_t>sizeof(real)):
        raise ValueError("as many rows as there are columns, each in one piece")
    values = np.empty((rows, columns), dtype=np.float32 if real is float else np.float64)
    cdef real[:, ::1] out = values
    cdef size_t[::1] bands = np.empty(rows // 3 + 2, dtype=np.uintp)
    if not rows or not columns:
        return values
    if not inner:
        values[:] = 0.0
        return values
    with nogil:
        if real is float:
            product_of_floats(&a[0, 0], rows, inner, &b[0, 0], step, columns, &bands[0], &out[0, 0])
        else:
            product_of_doubles(&a[0, 0], rows, inner, &b[0, 0], step, columns, &bands[0], &out[0, 0])
    return values


def kernel_shares(const double[::1] position, const double[::1] edges, double bandwidth, bint reflected,
                  const double[::1] table, double per_unit, double[:, ::1] shares, const int64_t[::1] first,
                  double[:, ::1] stretches):
    """What a normal kernel around each position gives to what lies between each two edges.

    Where it is reflected, what passes the first or last edge comes back, as often as it reaches. The rows of
    `shares` add up to 1. `table` is Φ, `per_unit` entries to a bandwidth, 0 at its start and 1 at its end: there
    the kernel ends. What lies between the edges `first` and the last one goes to `stretches` too. Both hold
    zeros before.
    """
    cdef:
        Py_ssize_t i, j, count = edges.shape[0], near, begin = 0, end = 0, stretch = 0
        int image, images = 0, last = <int>table.shape[0] - 1
        double at, low = edges[0], high = edges[count - 1], narrow = per_unit / bandwidth, turn
        double start, middle = 0.5 * <double>last, reach = middle / narrow
        const double *phi = &table[0]
        double[:, ::1] room = np.ones((2, count))
        double *share = &room[0, 0]
        double *part = &room[1, 0]
    if reflected:
        images = <int>(reach / (high - low)) + 1
    with nogil:
        for i in range(position.shape[0]):
            at = position[i]
            while images < 2 and edges[begin] < at - reach:  # what it does not reach from below is 0
                share[begin] = 0.0
                begin += 1
            while end < count and (images > 1 or edges[end] <= at + reach):  # and from above 1
                end += 1
            normal_at(&edges[begin], end - begin, at, narrow, middle, phi, last, share + begin)
            for image in range(images):
                turn = 2.0 * image * (high - low)
                near = 0  # what passed the first edge, as far as it reaches
                while near < count and edges[near] + at + turn - 2.0 * low <= reach:
                    near += 1
                normal_at(&edges[0], near, 2.0 * low - turn - at, -narrow, middle, phi, last, part)
                for j in range(near):
                    share[j] -= part[j]
                near = count
                while near > 0 and 2.0 * high - edges[near - 1] + turn - at <= reach:
                    near -= 1
                normal_at(&edges[0] + near, count - near, 2.0 * high + turn - at, -narrow, middle, phi, last, part)
                for j in range(near, count):
                    share[j] += 1.0 - part[j - near]
                if image > 0:
                    normal_at(&edges[0], count, at + turn, narrow, middle, phi, last, part)
                    for j in range(count):
                        share[j] += part[j]
                    normal_at(&edges[0], count, at - turn, narrow, middle, phi, last, part)
                    for j in range(count):
                        share[j] += part[j] - 1.0
            start = share[0] if begin == 0 and reflected else 0.0
            for j in range(begin, end):
                share[j] -= start
            share[0], share[count - 1] = 0.0, 1.0
            for j in range(max(begin, 1), min(end + 1, count)):
                shares[i, j - 1] = share[j] - share[j - 1]
            while stretch + 1 < first.shape[0] and first[stretch + 1] < begin:
                stretch += 1
            for j in range(stretch, first.shape[0]):
                if first[j] >= end:
                    break
                turn = share[first[j + 1]] if j + 1 < first.shape[0] else 1.0
                stretches[i, j] = turn - share[first[j]]


def binomial_surprises(const float[:, ::1] uniform, Py_ssize_t start, const int64_t[::1] rows,
                       const double[::1] chance, const double[::1] worth, float[:, ::1] surprises):
    """Fixed binomial draws [cells, draws], less their means, times `worth`: by inversion of the distribution.

    From the uniform numbers of each cell those from `start` on are taken. Most cells have one row or two,
    and are done with after as many comparisons.
    """
    cdef:
        Py_ssize_t i, steps, most = 1
        int64_t k
        double share, below, odds
    for i in range(rows.shape[0]):
        most = max(most, rows[i])
    cdef float[::1] thresholds = np.empty(most, dtype=np.float32)
    with nogil:
        for i in range(rows.shape[0]):
            odds = chance[i] / (1.0 - chance[i])
            share = below = exp(<double>rows[i] * log1p(-chance[i]))
            thresholds[0] = <float>below
            steps = 1
            for k in range(rows[i] - 1):
                share = share * odds * (<double>(rows[i] - k) / (<double>k + 1.0))
                below = below + share
                if below > 1.0 - 1e-7:
                    break
                thresholds[steps] = <float>below
                steps += 1
            count_above(&uniform[i, start], surprises.shape[1], &thresholds[0], steps,
                        <float>(<double>rows[i] * chance[i]), <float>worth[i], &surprises[i, 0])


def counts_below(const double[:, ::1] uniform, const int64_t[::1] rows, const double[::1] chance):
    """Of the numbers of each draw, so many for each cell in turn, how many are below its chance: [draws, cells]."""
    cdef:
        Py_ssize_t d, i, k, at
        int64_t below
        double[:, ::1] counts = np.empty((uniform.shape[0], rows.shape[0]))
    with nogil:
        for d in range(uniform.shape[0]):
            at = 0
            for i in range(rows.shape[0]):
                below = 0
                for k in range(at, at + rows[i]):
                    below += uniform[d, k] < chance[i]
                counts[d, i] = <double>below
                at += rows[i]
    return np.asarray(counts)


def between_entries(const double[:, ::1] x, const int64_t[::1] row, const double[:, ::1] tables, double per_unit,
                    double[:, ::1] values):
    """Each row of x ≥ 0 in the row of the tables that is named, by the line between two entries.

    Beyond the last entry the last line goes on.
    """
    cdef:
        Py_ssize_t i, d, at, last = tables.shape[1] - 2
        double place
        const double *table
    with nogil:
        for i in range(x.shape[0]):
            table = &tables[row[i], 0]
            for d in range(x.shape[1]):
                place = x[i, d] * per_unit
                at = <Py_ssize_t>place if place < <double>last else last
                values[i, d] = table[at] + (place - <double>at) * (table[at + 1] - table[at])


def strayed_logs(const float[:, ::1] means, const int64_t[::1] first, Py_ssize_t chain,
                 const float[:, ::1] tables, float per_unit, float[:, ::1] logs):
    """log p of the largest of each family of means [rows, draws], and of the lengths of chains after them.

    Families begin at the rows `first`, the last ends where `chain` begins, which has as many rows as `logs`
    has beside the families. The row m - 1 of the tables has the logarithms for a length of m.
    """
    cdef:
        Py_ssize_t families = first.shape[0], draws = means.shape[1], part, stop
        int last = <int>tables.shape[1] - 2
        float[::1] squares = np.zeros(draws, dtype=np.float32)
        float *out
    with nogil:
        for part in range(logs.shape[0]):
            out = &logs[part, 0]
            if part < families:
                stop = first[part + 1] if part + 1 < families else chain
                largest_sizes(&means[first[part], 0], stop - first[part], draws, out)
            else:
                next_lengths(&means[chain + part - families, 0], draws, &squares[0], out)
            look_up(out, draws, &tables[0 if part < families else part - families, 0], last, per_unit)


def inverse_sums(const float[:, ::1] logs, const float[::1] shares):
    """Of p-values with these logarithms [parts, draws]: the smallest, and Σ share exp(smallest - log): [2, draws]."""
    values = np.zeros((2, logs.shape[1]), dtype=np.float32)
    cdef float[:, ::1] out = values
    if logs.shape[0] and logs.shape[1]:
        with nogil:
            add_inverse(&logs[0, 0], logs.shape[0], logs.shape[1], &shares[0], &out[0, 0], &out[1, 0])
    return values


def lowered_sums(const float[:, ::1] x, const float[::1] errors, float narrow, float bump):
    """Σ error (|x| - bump exp(-narrow x²)) over the rows of x [rows, draws], with an error each."""
    values = np.zeros(x.shape[1], dtype=np.float32)
    cdef float[::1] sums = values
    if x.shape[0] and x.shape[1]:
        with nogil:
            add_lowered(&x[0, 0], x.shape[0], x.shape[1], &errors[0], narrow, bump, &sums[0])
    return values


def evidence(const double[::1] x, const int64_t[::1] degrees, const double[::1] shares,
             const double[:, ::1] tables, double per_unit):
    """Minus the logarithm of the harmonic mean, with these shares, of p-values whose logarithms are tabled.

    The row m - 1 of the tables has them for m degrees of freedom; beyond the last entry its line goes on.
    """
    cdef:
        Py_ssize_t i, at, last = tables.shape[1] - 2
        int turn
        double place, value, smallest = 0.0, inverse = 0.0
        const double *table
    for turn in range(2):
        for i in range(x.shape[0]):
            table = &tables[degrees[i] - 1, 0]
            place = x[i] * per_unit
            at = <Py_ssize_t>place if place < <double>last else last
            value = table[at] + (place - <double>at) * (table[at + 1] - table[at])
            if turn:
                inverse += shares[i] * exp(smallest - value)
            else:
                smallest = min(smallest, value)
    return log(inverse) - smallest


def orthogonal(const double[:, ::1] gram, const double[::1] least, double dependent, double[:, ::1] mixed):
    """Mixtures of functions with these covariances that are uncorrelated and of variance 1; how many.

    By Gram and Schmidt, twice for each. Those are left out whose variance, less what the ones before
    explain, is at most `least` or a share `dependent` of what it was.
    """
    cdef:
        Py_ssize_t size = gram.shape[0], k, i, j, b, count = 0
        int turn
        double part, left
        double[::1] own = np.zeros(size)
        double[::1] image = np.zeros(size)
    with nogil:
        for k in range(size):
            for i in range(size):
                own[i] = 1.0 if i == k else 0.0
            for turn in range(3):
                for i in range(size):
                    image[i] = 0.0
                    for j in range(k + 1):
                        image[i] += gram[i, j] * own[j]
                if turn == 2:
                    break
                for b in range(count):
                    part = 0.0
                    for i in range(k):
                        part += mixed[b, i] * image[i]
                    for i in range(k):
                        own[i] -= part * mixed[b, i]
            left = 0.0
            for i in range(k + 1):
                left += own[i] * image[i]
            if left > max(dependent * gram[k, k], least[k]):
                for i in range(size):
                    mixed[count, i] = own[i] / sqrt(left)
                count += 1
    return count


cdef inline double gauss(double x) noexcept nogil:
    return exp(-0.5 * x * x)


cdef struct workplace:
    double *kernel
    double *ratio
    float *folded
    float *sums


cdef void add_run(const double *place, Py_ssize_t sites, const float *residual, Py_ssize_t draws,
                  double bandwidth, double low, double high, workplace room, double *errors) noexcept nogil:
    """Add ∫|Σ r K| over a run of sites that see each other, for all draws at once.

    By trapezoids, six to a bandwidth: their error at each change of sign is as often above as below. From
    one to the next a kernel is multiplied by a ratio, which falls by the same factor each time. Six of them
    are multiplied with the residuals together.
    """
    cdef:
        double narrow = 1.0 / bandwidth, reach = REACH * bandwidth
        double start = max(place[0] - reach, low), end = min(place[sites - 1] + reach, high)
        Py_ssize_t steps = <Py_ssize_t>ceil(PER_BANDWIDTH * (end - start) * narrow)
        double step = (end - start) / <double>steps, ahead = step * narrow, t, x, bend = gauss(ahead) * gauss(ahead)
        double weights[6]
        size_t bands[2]
        Py_ssize_t k = 0, i, first = 0, stop = 0, row, rows
        float *folded
    while k <= steps:
        rows = min(6, steps + 1 - k)
        t = start + <double>k * step
        while first < sites - 1 and place[first] < t - reach:
            first += 1
        while stop < sites and place[stop] <= t + <double>(rows - 1) * step + reach:
            x = (t - place[stop]) * narrow
            room.kernel[stop] = gauss(x)
            room.ratio[stop] = exp(-(x + 0.5 * ahead) * ahead)
            stop += 1
        for row in range(rows):
            folded = room.folded + row * (stop - first)
            for i in range(first, stop):
                folded[i - first] = <float>room.kernel[i]
            next_kernels(room.kernel + first, room.ratio + first, stop - first, bend)
            add_images(place + first, stop - first, start + <double>(k + row) * step, narrow, low, high, folded)
            weights[row] = ahead * 0.3989422804014327 * (0.5 if k + row == 0 or k + row == steps else 1.0)
        product_of_floats(room.folded, rows, stop - first, residual + first * draws, draws, draws, bands, room.sums)
        add_sizes(room.sums, rows, draws, weights, errors)
        k += rows


cdef void add_images(const double *place, Py_ssize_t sites, double t, double narrow, double low, double high,
                     float *folded) noexcept nogil:
    """Add to the kernels at t what passes an end and comes back."""
    cdef:
        Py_ssize_t i
        double x, turn
        int image, images = <int>(REACH / narrow / (high - low))
    for i in range(sites):
        x = (t + place[i] - 2.0 * low) * narrow
        if x > REACH:
            break
        folded[i] += <float>gauss(x)
    for i in range(sites - 1, -1, -1):
        x = (2.0 * high - t - place[i]) * narrow
        if x > REACH:
            break
        folded[i] += <float>gauss(x)
    for image in range(1, images + 1):  # and may come back again from the other
        turn = 2.0 * image * (high - low)
        for i in range(sites):
            x = t - place[i]
            folded[i] += <float>(gauss((x + turn) * narrow) + gauss((x - turn) * narrow))
            x = t + place[i] - 2.0 * low
            folded[i] += <float>(gauss((x + turn) * narrow) + gauss((x - turn - 2.0 * (high - low)) * narrow))


def smoothed_errors(const double[::1] place, const float[:, ::1] residuals, double bandwidth, double low,
                    double high, double[::1] errors):
    """smECE at a bandwidth of many residuals [sites, draws], reflected at both ends, added to `errors`.

    Quickest where the number of draws is a multiple of 16. A site that no other is near to adds the size of
    its residual.
    """
    cdef:
        Py_ssize_t first = 0, stop, d, sites = place.shape[0], draws = residuals.shape[1]
        double apart = APART * bandwidth
        double[:, ::1] kernels = np.empty((2, sites))
        float[::1] folded = np.empty(6 * sites, dtype=np.float32)
        float[::1] sums = np.empty(6 * draws, dtype=np.float32)
        workplace room
    if errors.shape[0] != draws or residuals.shape[0] != sites:
        raise ValueError("residuals of all sites, and an error for each draw")
    if not sites or not draws:
        return
    room.kernel, room.ratio, room.folded, room.sums = &kernels[0, 0], &kernels[1, 0], &folded[0], &sums[0]
    with nogil:
        while first < sites:
            stop = first + 1
            while stop < sites and place[stop] - place[stop - 1] <= apart:
                stop += 1
            if stop == first + 1:
                for d in range(draws):
                    errors[d] += fabs(<double>residuals[first, d])
            else:
                add_run(&place[first], stop - first, &residuals[first, 0], draws, bandwidth, low, high, room,
                        &errors[0])
            first = stop
