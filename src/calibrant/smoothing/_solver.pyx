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
    int spectrum_lay(const double *, size_t, double, double *) nogil
    int smooth_series(const double *, size_t, size_t, const double *, int, size_t, double *, double *, double *) nogil
    int smooth_nodes(const double *, size_t, double, size_t, double *, double *, double *) nogil

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
    def cells(self):
        """Number of cells."""
        return self.own.cells

    @property
    def bias(self):
        """The sum of all residuals."""
        return self.own.coefficients[0]

    @property
    def nodal(self):
        """The sum of the absolute residuals on the nodes, which no smoothing makes larger."""
        return self.own.nodal

    @property
    def coefficients(self):
        """A copy of the cosine coefficients."""
        return np.asarray(<double[: self.own.cells + 1]>self.own.coefficients).copy()

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


def series_values(const double[:, ::1] coefficients, double bandwidth, Py_ssize_t points, Py_ssize_t mesh):
    """Series with these coefficients [rows, K], smoothed, at points + 1 of the nodes of a mesh."""
    cdef:
        int log2_mesh = int(mesh).bit_length() - 1, failed
        Py_ssize_t rows = coefficients.shape[0]
        double[:, ::1] values = np.empty((rows, points + 1))
        double[::1] bandwidths = np.full(rows, bandwidth)
    if mesh != 1 << log2_mesh or points < 1 or mesh % points:
        raise ValueError("a power of two of nodes, and of points")
    if rows:
        with nogil:
            failed = smooth_series(&coefficients[0, 0], coefficients.shape[1] - 1, rows, &bandwidths[0],
                                   log2_mesh, mesh // points, &values[0, 0], NULL, NULL)
        if failed:
            raise MemoryError
    return np.asarray(values)


def series_sizes(const double[:, ::1] coefficients, const double[::1] bandwidths, Py_ssize_t mesh):
    """Mean absolute values of series [rows, K], each smoothed at its own bandwidth, on a mesh."""
    cdef:
        int log2_mesh = int(mesh).bit_length() - 1, failed
        Py_ssize_t rows = coefficients.shape[0]
        double[::1] sizes = np.empty(rows)
    if mesh != 1 << log2_mesh or bandwidths.shape[0] != rows:
        raise ValueError("a power of two of nodes, and a bandwidth for each row")
    if rows:
        with nogil:
            failed = smooth_series(&coefficients[0, 0], coefficients.shape[1] - 1, rows, &bandwidths[0],
                                   log2_mesh, 1, NULL, &sizes[0], NULL)
        if failed:
            raise MemoryError
    return np.asarray(sizes)


def mean_root(const double[::1] coefficients, double bandwidth, Py_ssize_t points, Py_ssize_t mesh):
    """Mean square root of a series, smoothed, at points + 1 of the nodes of a mesh; where below 0, of 0."""
    cdef:
        int log2_mesh = int(mesh).bit_length() - 1, failed
        double mean
    if mesh != 1 << log2_mesh or points < 1 or mesh % points or not coefficients.shape[0]:
        raise ValueError("a power of two of nodes, and of points")
    with nogil:
        failed = smooth_series(&coefficients[0], coefficients.shape[0] - 1, 1, &bandwidth, log2_mesh,
                               mesh // points, NULL, NULL, &mean)
    if failed:
        raise MemoryError
    return mean


def nodes_of_moments(const double[:, ::1] moments):
    """What lies on the nodes of a grid, from moments about the middles of its cells (see `Transform`)."""
    cdef:
        Py_ssize_t cells = moments.shape[0]
        double[::1] nodes = np.empty(cells + 1)
        int failed
    if cells < 8 or moments.shape[1] != 8:
        raise ValueError("eight moments of eight cells or more")
    with nogil:
        failed = spectrum_lay(&moments[0, 0], cells, 1.0, &nodes[0])
    if failed:
        raise MemoryError
    return np.asarray(nodes)


def kernel_values(const double[::1] on_nodes, double bandwidth, Py_ssize_t points):
    """What lies on nodes, smoothed by adding up kernels, at points + 1 of them."""
    cdef double[::1] values = np.empty(points + 1)
    add_kernels(on_nodes, bandwidth, points, &values[0], NULL, NULL)
    return np.asarray(values)


def kernel_size(const double[::1] on_nodes, double bandwidth, Py_ssize_t points):
    """The mean absolute value of that, by trapezoids."""
    cdef double size = 0.0
    add_kernels(on_nodes, bandwidth, points, NULL, &size, NULL)
    return size


def kernel_root(const double[::1] on_nodes, double bandwidth, Py_ssize_t points):
    """Its mean square root; where below 0, of 0."""
    cdef double root = 0.0
    add_kernels(on_nodes, bandwidth, points, NULL, NULL, &root)
    return root


cdef int add_kernels(const double[::1] on_nodes, double bandwidth, Py_ssize_t points, double *values,
                     double *size, double *root) except -1:
    cdef Py_ssize_t cells = on_nodes.shape[0] - 1
    cdef int failed
    if points < 1 or cells < points or cells % points:
        raise ValueError("a part of the nodes")
    with nogil:
        failed = smooth_nodes(&on_nodes[0], cells, bandwidth, points, values, size, root)
    if failed:
        raise MemoryError
    return 0


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
