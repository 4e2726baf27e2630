"""The compiled solver: moments of residuals in the cells of a grid → smECE, the fixed point, their errors."""

from libc.stdlib cimport free
from libc.string cimport memset

import numpy as np


cdef extern from "solver.h":
    ctypedef struct spectrum:
        size_t cells
        double *coefficients
        double nodal
        double forward
    ctypedef struct evaluation:
        double bandwidth, value, slope, quadrature, rounding
        int evaluations, coarse
    void solver_prepare()
    int spectrum_make(spectrum *, const double *, int, double) nogil
    void spectrum_free(spectrum *) nogil
    int spectrum_evaluate(const spectrum *, double, double, evaluation *) nogil
    int spectrum_solve(const spectrum *, double, double, double, double, evaluation *) nogil

cdef extern from "fourier.h":
    const double *fourier_roots(int, double **)
    void fourier(double *, double *, double *, double *, int, const double *) nogil

solver_prepare()


cdef class Transform:
    """The cosine spectrum of residuals whose moments about the middles of cells are given.

    `moments[cell, power]` are sums of residual · (position in the cell - ½)**power, and `share` the part
    of the whole that one unit of residual has.
    """

    cdef spectrum own

    def __cinit__(self):
        memset(&self.own, 0, sizeof(spectrum))

    def __init__(self, const double[:, ::1] moments, double share):
        cdef int log2_cells = int(moments.shape[0]).bit_length() - 1, failed
        if moments.shape[0] != 1 << log2_cells or log2_cells < 4 or moments.shape[1] != 8:
            raise ValueError("moments of a power of two of cells, eight of each")
        spectrum_free(&self.own)
        with nogil:
            failed = spectrum_make(&self.own, &moments[0, 0], log2_cells, share)
        if failed:
            raise MemoryError

    def __dealloc__(self):
        spectrum_free(&self.own)

    @property
    def bias(self):
        """The sum of all residuals."""
        return self.own.coefficients[0]

    @property
    def nodal(self):
        """The sum of the absolute residuals on the nodes, which no smoothing makes larger."""
        return self.own.nodal

    def evaluate(self, double bandwidth, double enough):
        """smECE at a bandwidth in units of the grid: (value, slope, quadrature, rounding)."""
        cdef evaluation out
        cdef int failed
        with nogil:
            failed = spectrum_evaluate(&self.own, bandwidth, enough, &out)
        if failed:
            raise MemoryError
        return out.value, out.slope, out.quadrature, out.rounding

    def solve(self, double length, double start, double narrowest, double tolerance):
        """The fixed point: (bandwidth, value, slope, quadrature, rounding, evaluations, coarse)."""
        cdef evaluation out
        cdef int failed
        with nogil:
            failed = spectrum_solve(&self.own, length, start, narrowest, tolerance, &out)
        if failed:
            raise MemoryError
        return (out.bandwidth * length, out.value, out.slope / length, out.quadrature, out.rounding,
                out.evaluations, bool(out.coarse))


def transform(const double[::1] re, const double[::1] im):
    """Σ x_k exp(2πijk / n), for a power of two n: the loop that everything here rests on, to be tested."""
    cdef int log2_length = int(re.shape[0]).bit_length() - 1
    cdef double *own = NULL
    if re.shape[0] != 1 << log2_length or im.shape[0] != re.shape[0]:
        raise ValueError("a power of two")
    room = np.empty((4, re.shape[0]))
    room[0], room[1] = re, im
    cdef double[:, ::1] rows = room
    cdef const double *roots = fourier_roots(log2_length, &own)
    fourier(&rows[0, 0], &rows[1, 0], &rows[2, 0], &rows[3, 0], log2_length, roots)
    if own != NULL:
        free(own)
    return room[0] + 1j * room[1]
