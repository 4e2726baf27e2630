/* The integral of |r| for a cosine series r, with a bound on its error.

   On each cell of the mesh, r, r' and r'' at both ends and the mean of r are known. One polynomial H' of
   degree six has these seven values: the derivative of the Hermite interpolant H of R = the integral of r
   with four values at each end. Its Bernstein coefficients tell where it keeps its sign. */
#ifndef CALIBRANT_QUADRATURE_H
#define CALIBRANT_QUADRATURE_H

#include <stddef.h>

typedef struct {
  double integral; /* of |r| */
  double slopes;   /* sum of |r'| over the zeros of r */
  double error;    /* bound on the error of the integral, apart from rounding */
} absolute_integral;

/* (A, B) are what the transform of `series_spectrum` gave on 2 * mesh points. `seventh` holds for each
   cell a bound on h^7 |r'''''''|, or is NULL for one bound, `largest`, everywhere; below `noise` nothing
   is told from zero. */
absolute_integral integrate_absolute(const double *A, const double *B, size_t mesh,
                                     const double *seventh, double largest, double noise);

/* What to transform: A is r (even) and h r' (odd), B is h^2 r'' (even) and a correction (odd) whose
   differences turn Hermite's quadrature of r, r', r'' into the mean over a cell. `damped` holds the
   coefficients of the cosines 0 ... last < mesh, `odd` the corrections of a mesh. Returns the 2-norm of the
   spectrum, and in `largest` a bound on h^7 |r'''''''|. */
double series_spectrum(const double *damped, size_t last, size_t mesh, const double *odd, double *re,
                       double *im, double *largest);

/* Factors of the coefficients 0 ... mesh - 1 in those corrections. */
void series_corrections(size_t mesh, double *odd);

#endif
