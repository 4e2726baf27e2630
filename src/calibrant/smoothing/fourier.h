/* A fast Fourier transform of a power of two, in two halves: real and imaginary parts apart.

   Each of its stages is orthogonal up to a factor. A stage of radix four does two additions and one
   multiplication by a root of unity on every number, so that in the 2-norm it errs by less than 9 u of
   what it transforms (u = 2^-53; the roots are right within 2 u). A transform of length 2^l therefore
   errs by less than FOURIER_ERROR * l of its result (Higham, Accuracy and Stability of Numerical
   Algorithms, section 24.1, for the argument). */
#ifndef CALIBRANT_FOURIER_H
#define CALIBRANT_FOURIER_H

#include <stddef.h>

#define FOURIER_ERROR 8.8817841970012523e-16 /* 8 u for each doubling of the length */

/* Fill the table of roots that short transforms share. Call once, before any other. */
void fourier_prepare(void);

/* cos and sin of 2 pi j / 2^log2_length for j < 2^log2_length, one pair after another. The table is
   shared where *own is NULL afterwards; otherwise *own is to be freed. NULL if there is no memory. */
const double *fourier_roots(int log2_length, double **own);

/* x_j <- sum over k of x_k exp(2 pi i jk / 2^log2_length), with room for as much again. */
void fourier(double *re, double *im, double *re_room, double *im_room, int log2_length,
             const double *roots);

#endif
