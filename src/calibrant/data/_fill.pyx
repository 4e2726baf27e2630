"""The compiled loops: everything here touches every row, and nothing else in calibrant does.

Each loop releases the GIL, checks the values it reads and returns the first row that breaks a rule, or
-1. The caller explains that row in words (calibrant.data.rows).
"""

from libc.math cimport fabs, frexp, log, log1p
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

cdef extern from "bits.h":
    int lowest_bit(uint64_t) nogil
    int count_bits(uint64_t) nogil
    uint64_t bits_of(double) nogil

cdef extern from "moments.h":
    void add_residual(double *moments, size_t cells, double place, double residual) nogil

ctypedef fused probability:
    float
    double

ctypedef fused label:
    uint8_t
    int64_t
    double

cdef enum:
    FRACTION_BITS = 36
    SQUARE_BITS = 22
    COARSE_CELLS = 8

cdef double ONE = <double>(<int64_t>1 << FRACTION_BITS)
cdef double LOG_OF_2 = log(2.0)
cdef double NEARLY_ONE = 1.0 - 1.0 / 1024.0, LEAST_FACTOR = 1e-30, LEAST_PRODUCT = 1e-150


cdef inline bint lies_in_unit_interval(const probability *p) noexcept nogil:
    """0 ≤ p ≤ 1, by one comparison: the bits of floats that are not negative have their order."""
    if probability is double:
        return (<const uint64_t *>p)[0] <= 0x3FF0000000000000ULL or p[0] == 0.0
    else:
        return (<const uint32_t *>p)[0] <= 0x3F800000U or p[0] == 0.0


cdef inline bint is_binary(const label *y) noexcept nogil:
    """0 or 1. A float is compared with the one of the two that a bit of it says, not with both: which of
    two comparisons holds is a branch, missed as often as outcomes are random.
    """
    cdef uint64_t wide
    if label is double:
        wide = (<const uint64_t *>y)[0]
        return wide == (-(wide >> 60 & 1) & 0x3FF0000000000000ULL) or y[0] == 0.0
    else:
        return <uint64_t>y[0] <= 1


cdef Py_ssize_t pack_rows(const probability *p, const label *y, Py_ssize_t n, int offset_bits,
                          int count_shift, uint64_t *packed, uint64_t *occupied) noexcept nogil:
    """Add one to the count, and the offset to the sum, of each row's (cell, label), in one word.

    `occupied` has a bit for every cell that holds a row; where it is NULL, none is set. Returns the first
    row that breaks a rule, or -1.
    """
    cdef:
        uint64_t one_row = (<uint64_t>1) << count_shift, offset_mask = ((<uint64_t>1) << offset_bits) - 1
        uint64_t fixed, cell
        double one = ONE
        Py_ssize_t i
    for i in range(n):
        # A branch on an outcome, as good as random, would be missed half of the time: the outcome is
        # part of the address instead.
        if not lies_in_unit_interval(&p[i]) or not is_binary(&y[i]):
            return i
        fixed = <uint64_t><int64_t>(p[i] * one)
        cell = fixed >> offset_bits
        packed[2 * cell + <uint64_t><int64_t>y[i]] += one_row + (fixed & offset_mask)
        if occupied != NULL:
            occupied[cell >> 6] |= (<uint64_t>1) << (cell & 63)
    return -1


cpdef Py_ssize_t rows_of_a_word(int log2_cells):
    """How many rows one packed word holds before either half could overflow."""
    return ((<Py_ssize_t>1) << ((64 - (FRACTION_BITS - log2_cells)) // 2)) - 1


def pack(const probability[::1] p, const label[::1] y, int log2_cells, uint64_t[::1] packed,
         uint64_t[::1] occupied):
    """Add rows, at most `rows_of_a_word` in all, to packed words: count high, sum of offsets low.

    `packed` has two words for each cell, and `occupied` a bit; where it is empty, none is set. Returns
    the first row that breaks a rule, or -1.
    """
    cdef:
        int offset_bits = FRACTION_BITS - log2_cells
        uint64_t *bits = &occupied[0] if occupied.shape[0] else NULL
        Py_ssize_t invalid
    with nogil:
        invalid = pack_rows(&p[0], &y[0], p.shape[0], offset_bits,
                            offset_bits + (64 - offset_bits) // 2, &packed[0], bits)
    return invalid


def mark(const uint64_t[::1] packed, uint64_t[::1] occupied):
    """Set the bit of every cell of which a word is not zero; returns how many there are."""
    cdef Py_ssize_t i, cell, cells = packed.shape[0] // 2, count = 0
    cdef uint64_t bits
    with nogil:
        for i in range(occupied.shape[0]):
            bits = 0
            for cell in range(64 * i, min(cells, 64 * (i + 1))):  # no branch, which random cells would miss
                bits |= <uint64_t>((packed[2 * cell] | packed[2 * cell + 1]) != 0) << (cell & 63)
            occupied[i] = bits
            count += count_bits(bits)
    return count


def marked(const uint64_t[::1] occupied):
    """How many bits are set."""
    cdef Py_ssize_t i, count = 0
    for i in range(occupied.shape[0]):
        count += count_bits(occupied[i])
    return count


def unpack(uint64_t[::1] packed, uint64_t[::1] occupied, int log2_cells, int64_t[::1] cells,
           int64_t[:, ::1] counts, int64_t[:, ::1] offsets):
    """Move the words of occupied cells into sorted columns, and leave zeros behind."""
    cdef:
        int offset_bits = FRACTION_BITS - log2_cells, shift = offset_bits + (64 - offset_bits) // 2
        uint64_t bits, word, sums = ((<uint64_t>1) << shift) - 1
        Py_ssize_t i, row = 0, cell
        int label
    with nogil:
        for i in range(occupied.shape[0]):
            bits = occupied[i]
            occupied[i] = 0
            while bits:
                cell = 64 * i + lowest_bit(bits)
                bits &= bits - 1
                cells[row] = cell
                for label in range(2):
                    word = packed[2 * cell + label]
                    counts[row, label] = <int64_t>(word >> shift)
                    offsets[row, label] = <int64_t>(word & sums)
                    packed[2 * cell + label] = 0
                row += 1


def fill_counts(const probability[::1] p, const label[::1] y, int log2_cells, int64_t[:, ::1] counts,
                int64_t[:, ::1] offsets):
    """Add counts and sums of offsets of any number of rows to tables with a row for each cell.

    The packed words are emptied into the tables before either half can overflow. Returns the first row
    that breaks a rule, or -1.
    """
    cdef:
        int offset_bits = FRACTION_BITS - log2_cells, shift = offset_bits + (64 - offset_bits) // 2
        Py_ssize_t chunk = rows_of_a_word(log2_cells), n = p.shape[0], start = 0, stop, slot
        Py_ssize_t slots = 2 * (((<Py_ssize_t>1) << log2_cells) + 1), invalid = -1
        uint64_t sums = ((<uint64_t>1) << shift) - 1
        int64_t *count_of = &counts[0, 0]
        int64_t *offset_of = &offsets[0, 0]
        uint64_t *packed = <uint64_t *>calloc(slots, sizeof(uint64_t))
    if packed == NULL:
        raise MemoryError
    with nogil:
        while start < n and invalid < 0:
            stop = min(n, start + chunk)
            invalid = pack_rows(&p[start], &y[start], stop - start, offset_bits, shift, packed, NULL)
            if invalid >= 0:
                invalid += start
            for slot in range(slots):
                if packed[slot]:
                    count_of[slot] += <int64_t>(packed[slot] >> shift)
                    offset_of[slot] += <int64_t>(packed[slot] & sums)
                    packed[slot] = 0
            start = stop
        free(packed)
    return invalid


def add_squares(const probability[::1] p, const label[::1] y, int log2_cells, uint64_t[:, ::1] packed,
                double[:, ::1] sums):
    """Add count, offset and squared offset of each row to its (cell, label), in units of 2**-22 of a cell.

    `packed` is room for two words a (cell, label), zero before and after; `sums` has their three sums.
    Positions are rounded to the nearest unit. Returns the first row that breaks a rule, or -1.
    """
    cdef:
        int shift = SQUARE_BITS + (64 - SQUARE_BITS) // 2
        uint64_t one_row = (<uint64_t>1) << shift, mask = ((<uint64_t>1) << SQUARE_BITS) - 1, fixed, offset
        Py_ssize_t n = p.shape[0], chunk = ((<Py_ssize_t>1) << (64 - 2 * SQUARE_BITS)) - 1
        Py_ssize_t i, start = 0, stop, slot, invalid = -1
        const probability *probs = &p[0]
        const label *outcomes = &y[0]
        uint64_t *words = &packed[0, 0]
        uint64_t *word
        double anchor = <double>((<int64_t>1) << (52 - SQUARE_BITS - log2_cells))  # its last bit is a unit
        uint64_t bits_of_anchor = bits_of(anchor)
    with nogil:
        while start < n and invalid < 0:
            stop = min(n, start + chunk)
            for i in range(start, stop):
                if not lies_in_unit_interval(&probs[i]) or not is_binary(&outcomes[i]):
                    invalid = i
                    break
                fixed = bits_of(<double>probs[i] + anchor) - bits_of_anchor
                offset = fixed & mask
                word = words + 2 * (2 * (fixed >> SQUARE_BITS) + <uint64_t><int64_t>outcomes[i])
                word[0] += one_row + offset
                word[1] += offset * offset
            for slot in range(packed.shape[0]):
                if packed[slot, 0]:
                    sums[slot, 0] += <double>(packed[slot, 0] >> shift)
                    sums[slot, 1] += <double>(packed[slot, 0] & (one_row - 1))
                    sums[slot, 2] += <double>packed[slot, 1]
                    packed[slot, 0] = packed[slot, 1] = 0
            start = stop
    return invalid


def fill_weights(const double[::1] p, const double[::1] y, const double[::1] w, int log2_cells,
                 int64_t[:, ::1] counts, int64_t[:, ::1] offsets, double[:, ::1] weights,
                 double[:, ::1] squared_weights, double[:, ::1] weighted_offsets):
    """As `fill_counts`, with a weight for each row, and outcomes anywhere in [0, 1].

    A soft outcome y is y of a row with label 1 and 1 - y of a row with label 0; the row itself is
    counted once, under the likelier label.
    """
    cdef:
        int offset_bits = FRACTION_BITS - log2_cells
        uint64_t offset_mask = ((<uint64_t>1) << offset_bits) - 1
        uint64_t fixed
        Py_ssize_t n = p.shape[0], i, cell, invalid = -1
        double value, outcome, weight, share, offset
        int side
    with nogil:
        for i in range(n):
            value = p[i]
            outcome = y[i]
            weight = w[i]
            if (not (value >= 0.0 and value <= 1.0) or not (outcome >= 0.0 and outcome <= 1.0)
                    or not (weight >= 0.0 and weight <= 1e100)):
                invalid = i
                break
            fixed = <uint64_t><int64_t>(value * ONE)
            cell = fixed >> offset_bits
            offset = <double>(fixed & offset_mask)
            counts[cell, outcome >= 0.5] += 1
            offsets[cell, outcome >= 0.5] += <int64_t>(fixed & offset_mask)
            for side in range(2):
                share = weight * (outcome if side else 1.0 - outcome)
                if share > 0.0:
                    weights[cell, side] += share
                    squared_weights[cell, side] += share * share
                    weighted_offsets[cell, side] += share * offset
    return invalid


def outline(const probability[::1] p, const label[::1] y, const double[::1] w, Py_ssize_t step):
    """Of one row in `step`: sums of weight, residual p - y and |p - y|, and the range of p.

    And the sums of the residuals in each eighth of [0, 1], without their signs. Rows are taken eight in a
    row, as memory hands them over. Nothing is checked. An empty `w` means that every weight is 1.
    """
    cdef:
        Py_ssize_t n = p.shape[0], start = 0, i, cell
        double value, residual, weight = 1.0, total = 0.0, bias = 0.0, absolute = 0.0, coarse = 0.0
        double low = p[0], high = p[0]
        double cells[COARSE_CELLS + 1][8]  # no sum waits for that of the row before
        bint weighted = w.shape[0] > 0
    memset(cells, 0, sizeof(cells))
    with nogil:
        while start < n:
            for i in range(start, min(n, start + 8)):
                value = <double>p[i]
                if weighted:
                    weight = w[i]
                residual = (value - <double>y[i]) * weight
                total += weight
                absolute += fabs(residual)
                low = value if value < low else low
                high = value if value > high else high
                cell = <Py_ssize_t>(value * COARSE_CELLS) if 0.0 <= value <= 1.0 else COARSE_CELLS
                cells[cell][i & 7] += residual
            start += 8 * step
    for cell in range(COARSE_CELLS + 1):
        for i in range(1, 8):
            cells[cell][0] += cells[cell][i]
        bias += cells[cell][0]
        coarse += fabs(cells[cell][0])
    return total, bias, absolute, low, high, coarse


cdef inline double log_of_nearly_one(double rest) noexcept nogil:
    """log(1 - rest), for rest below 2**-10."""
    return -rest * (1.0 + rest * (0.5 + rest * (1.0 / 3.0 + rest * (0.25 + rest * 0.2))))


def sum_log_losses(const double[::1] p, const double[::1] y, const double[::1] w, bint soft):
    """Sums of -log of the chance given to what came, and of the weights. Nothing is checked.

    An empty `w` means that every weight is 1. Rows that count as one are multiplied, and the logarithm is
    that of the product: its power of two is taken out before it gets too small to hold.
    """
    cdef:
        Py_ssize_t n = p.shape[0], i
        double f, outcome, chance, rest, weight = 1.0, product = 1.0, logs = 0.0, total = 0.0
        int64_t powers = 0
        int power
        bint weighted = w.shape[0] > 0
    with nogil:
        if weighted or soft:
            for i in range(n):
                f, outcome = p[i], y[i]
                if weighted:
                    weight = w[i]
                total += weight
                if weight * outcome > 0.0:
                    logs += weight * outcome * log(f)
                if weight * (1.0 - outcome) > 0.0:
                    logs += weight * (1.0 - outcome) * log1p(-f)
        else:
            total = <double>n
            for i in range(n):
                chance = fabs((1.0 - y[i]) - p[i])
                if chance > NEARLY_ONE:
                    rest = fabs(y[i] - p[i])
                    logs += log_of_nearly_one(rest)
                elif chance < LEAST_FACTOR:
                    logs += log(chance)
                else:
                    product *= chance
                    if product < LEAST_PRODUCT:
                        product = frexp(product, &power)
                        powers += power
    return -(logs + log(product) + <double>powers * LOG_OF_2), total


def add_moments(const probability[::1] p, const label[::1] y, const double[::1] w, bint soft,
                double start, double cells_per_unit, double[:, ::1] moments):
    """Add each row's residual p - y (times its weight) to the moments 0 ... 7 of its cell.

    `moments[j]` are those about the middle of the cell that starts at `start` + j / `cells_per_unit`, in
    units of its width; its last row gets the sums of the weights and of |p - y| times the weight. An empty
    `w` means that every weight is 1. Returns the first row that breaks a rule, or -1.
    """
    cdef:
        Py_ssize_t n = p.shape[0], i, invalid = -1
        size_t cells = <size_t>moments.shape[0] - 1
        double residual, weight = 1.0, outcome, total = 0.0, absolute = 0.0
        bint weighted = w.shape[0] > 0
        const probability *probs = &p[0]
        const label *outcomes = &y[0]
        double *table = &moments[0, 0]
    with nogil:
        if not weighted and not soft:
            for i in range(n):
                if not lies_in_unit_interval(&probs[i]) or not is_binary(&outcomes[i]):
                    invalid = i
                    break
                residual = <double>probs[i] - <double>outcomes[i]
                absolute += fabs(residual)
                add_residual(table, cells, (<double>probs[i] - start) * cells_per_unit, residual)
            total = <double>n
        else:
            for i in range(n):
                outcome = <double>outcomes[i]
                if weighted:
                    weight = w[i]
                if (not lies_in_unit_interval(&probs[i]) or not (weight >= 0.0 and weight <= 1e100)
                        or not ((outcome >= 0.0 and outcome <= 1.0) if soft else is_binary(&outcomes[i]))):
                    invalid = i
                    break
                residual = (<double>probs[i] - outcome) * weight
                total += weight
                absolute += fabs(residual)
                add_residual(table, cells, (<double>probs[i] - start) * cells_per_unit, residual)
    moments[cells, 0] += total
    moments[cells, 1] += absolute
    return invalid


def fill_classes(const probability[:, ::1] probs, const int64_t[::1] labels, int log2_cells,
                 int64_t[:, :, ::1] counts, int64_t[:, :, ::1] offsets):
    """One row of class probabilities is a row for every class: `counts[class, cell, label]`.

    The caller has checked the rows; entries a rounding error above 1 count as 1.
    """
    cdef:
        int offset_bits = FRACTION_BITS - log2_cells
        uint64_t offset_mask = ((<uint64_t>1) << offset_bits) - 1
        uint64_t fixed
        Py_ssize_t n = probs.shape[0], classes = probs.shape[1], i, k, slot
        Py_ssize_t slots = 2 * counts.shape[1]
        int64_t *count_of = &counts[0, 0, 0]
        int64_t *offset_of = &offsets[0, 0, 0]
        double value
    with nogil:
        for k in range(classes):  # outside, so that one class's table is at hand for many rows
            for i in range(n):
                value = probs[i, k]
                fixed = <uint64_t><int64_t>((value if value < 1.0 else 1.0) * ONE)
                slot = k * slots + 2 * (fixed >> offset_bits) + (labels[i] == k)
                count_of[slot] += 1
                offset_of[slot] += <int64_t>(fixed & offset_mask)


cdef enum:
    DIGIT = 11


def sum_words(uint64_t[::1] words, uint64_t[::1] spare, int low, int high, int64_t[::1] places,
              int64_t[::1] counts, int64_t[::1] offsets):
    """Words with a place in the bits from `low` to `high` and an offset below: sums by place, in order.

    The words are sorted on the way, digit by digit, in linear time; `spare` is room for as many. Returns how
    many places there are.
    """
    cdef:
        Py_ssize_t n = words.shape[0], i, found = -1
        Py_ssize_t start[1 << DIGIT]
        Py_ssize_t before, here
        int shift
        uint64_t mask = (1 << DIGIT) - 1, word
        uint64_t *source = &words[0]
        uint64_t *target = &spare[0]
        uint64_t *swap
    with nogil:
        shift = low
        while shift < high:
            for i in range(1 << DIGIT):
                start[i] = 0
            for i in range(n):
                start[source[i] >> shift & mask] += 1
            before = 0
            for i in range(1 << DIGIT):
                here = start[i]
                start[i] = before
                before += here
            for i in range(n):
                word = source[i]
                target[start[word >> shift & mask]] = word
                start[word >> shift & mask] += 1
            swap = source
            source = target
            target = swap
            shift += DIGIT
        mask = (<uint64_t>1 << low) - 1
        for i in range(n):
            word = source[i]
            if found < 0 or <int64_t>(word >> low) != places[found]:
                found += 1
                places[found] = <int64_t>(word >> low)
                counts[found] = 0
                offsets[found] = 0
            counts[found] += 1
            offsets[found] += <int64_t>(word & mask)
    return found + 1


def coarse_sums(const int64_t[::1] cells, int shift, int offset_bits, const int64_t[:, ::1] counts,
                const int64_t[:, ::1] offsets, int64_t[::1] wide, int64_t[:, ::1] rows,
                int64_t[:, ::1] places):
    """Add up counts and offsets in cells 2**shift times wider; how many of these hold rows.

    Offsets are from the left end of a cell, so that the place of the narrower cell in the wider one comes to
    them.
    """
    cdef:
        Py_ssize_t i, k, last = -1
        int64_t moved, mask = (<int64_t>1 << shift) - 1
    with nogil:
        for i in range(cells.shape[0]):
            if last < 0 or cells[i] >> shift != wide[last]:
                last += 1
                wide[last] = cells[i] >> shift
                for k in range(2):
                    rows[last, k] = places[last, k] = 0
            moved = (cells[i] & mask) << offset_bits
            for k in range(2):
                rows[last, k] += counts[i, k]
                places[last, k] += offsets[i, k] + counts[i, k] * moved
    return last + 1
