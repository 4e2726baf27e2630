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

/* smECE at one bandwidth, with a quadrature error of at most `enough` if that can be had. */
int spectrum_evaluate(const spectrum *s, double bandwidth, double enough, evaluation *out);

/* The fixed point: bandwidths are `length` times wider in the units in which they are to equal smECE.
   `narrowest` and `start` are in those units, as are the tolerances. */
int spectrum_solve(const spectrum *s, double length, double start, double narrowest, double tolerance,
                   evaluation *out);

void solver_prepare(void);

#endif
