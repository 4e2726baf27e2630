/* Residuals on a grid of [0, 1]: their cosine spectrum, smECE at a bandwidth, and the bandwidth that
   equals its own smECE. */
#ifndef CALIBRANT_SOLVER_H
#define CALIBRANT_SOLVER_H

#include <stddef.h>

enum { MOMENTS = 8 };

typedef struct {
  size_t cells;
  int log2_cells;
  double *coefficients; /* c_k = sum of residuals times cos(pi k position), k = 0 ... cells */
  double *nodes;        /* residuals on the nodes 0 ... cells */
  double nodal;         /* sum of their absolute values */
  double forward;       /* what rounding in the transform costs smECE at any bandwidth */
} spectrum;

typedef struct {
  double bandwidth; /* in units of the grid */
  double value;     /* smECE there */
  double slope;     /* its derivative in the bandwidth */
  double quadrature, rounding;
  int evaluations;
  int coarse; /* whether the solver stopped because the bandwidth is too narrow for the grid */
} evaluation;

/* Residuals of a cell are known by their moments 0 ... 7 about its middle, in units of its width; they
   are laid onto the eight nodes around it with the weights of Lagrange's interpolation. `share` is the
   part of the whole that one unit of residual has. Returns 0, or -1 if there is no memory. */
int spectrum_make(spectrum *s, const double *moments, int log2_cells, double share);
void spectrum_free(spectrum *s);

/* Only what lies on the nodes 0 ... cells then. */
int spectrum_lay(const double *moments, size_t cells, double share, double *nodes);

/* smECE at one bandwidth, with a quadrature error of at most `enough` if that can be had. */
int spectrum_evaluate(const spectrum *s, double bandwidth, double enough, evaluation *out);

/* The fixed point: bandwidths are `length` times wider in the units in which they are to equal smECE.
   `narrowest` and `start` are in those units, as are the tolerances. */
int spectrum_solve(const spectrum *s, double length, double start, double narrowest, double tolerance,
                   evaluation *out);

/* Series c_0 + 2 sum of c_k exp(-k^2 pi^2 s^2 / 2) cos(pi k t) with coefficients 0 ... cells, each at a
   bandwidth s of its own, on the nodes t of a mesh. Where there is room: every `step`-th of its values, the
   mean of the absolute values by trapezoids, and that of the square roots of every `step`-th, of which
   negative ones count as 0. Returns 0, or -1 if there is no memory. */
int smooth_series(const double *coefficients, size_t cells, size_t rows, const double *bandwidths,
                  int log2_mesh, size_t step, double *values, double *absolute, double *roots);

/* The same of what lies on the nodes 0 ... cells, without a transform: each node that holds something adds
   its kernel to the points of a mesh, a part of the nodes. The bandwidth is at least some cells. */
int smooth_nodes(const double *nodes, size_t cells, double bandwidth, size_t mesh, double *values,
                 double *absolute, double *roots);

void solver_prepare(void);

#endif
