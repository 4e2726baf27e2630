#include "fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "wide.h"

#define SHARED_LOG2 14
static const double PI = 3.14159265358979323846;

/* Tables for the lengths 1, 2, 4, ..., one after another: that of 2^l starts at pair 2^l - 1. */
static double shared[2 * ((2 << SHARED_LOG2) - 1)];

/* cos and sin are computed in the first eighth of a turn, where they are right to the last bit but one;
   the other seven are its mirror images, to the bit. */
static void fill(int log2_length, double *table) {
  size_t length = (size_t)1 << log2_length, quarter_turn = length / 4, half_turn = length / 2;
  for (size_t j = 0; j <= length / 8; j++) {
    double angle = 2.0 * PI * ((double)j / (double)length), c = cos(angle), s = sin(angle);
    size_t steep = quarter_turn - j;
    table[2 * j] = c, table[2 * j + 1] = s;
    table[2 * steep] = s, table[2 * steep + 1] = c;
  }
  for (size_t j = 0; j < quarter_turn; j++) {
    double c = table[2 * j], s = table[2 * j + 1];
    double *second = table + 2 * (j + quarter_turn), *third = table + 2 * (j + half_turn);
    double *fourth = table + 2 * (j + quarter_turn + half_turn);
    second[0] = -s, second[1] = c;
    third[0] = -c, third[1] = -s;
    fourth[0] = s, fourth[1] = -c;
  }
}

void fourier_prepare(void) {
  fill(SHARED_LOG2, shared + 2 * (((size_t)1 << SHARED_LOG2) - 1));
  for (int l = SHARED_LOG2 - 1; l >= 0; l--) {
    double *table = shared + 2 * (((size_t)1 << l) - 1);
    const double *finer = shared + 2 * (((size_t)2 << l) - 1);
    for (size_t j = 0; j < (size_t)1 << l; j++) memcpy(table + 2 * j, finer + 4 * j, 2 * sizeof(double));
  }
}

const double *fourier_roots(int log2_length, double **own) {
  *own = NULL;
  if (log2_length <= SHARED_LOG2) return shared + 2 * (((size_t)1 << log2_length) - 1);
  *own = malloc(((size_t)2 << log2_length) * sizeof(double));
  if (*own) fill(log2_length, *own);
  return *own;
}

/* One stage of Stockham's algorithm: `parts` butterflies of four numbers that lie `parts * step` apart,
   each for `step` transforms at once. */
#define BUTTERFLY(q)                                                                                      \
  {                                                                                                       \
    double evenr = ar[q] + ar[q + 2 * apart], eveni = ai[q] + ai[q + 2 * apart];                          \
    double diffr = ar[q] - ar[q + 2 * apart], diffi = ai[q] - ai[q + 2 * apart];                          \
    double oddr = ar[q + apart] + ar[q + 3 * apart], oddi = ai[q + apart] + ai[q + 3 * apart];            \
    double turnr = ar[q + apart] - ar[q + 3 * apart], turni = ai[q + apart] - ai[q + 3 * apart];          \
    double r1 = diffr - turni, i1 = diffi + turnr, r2 = evenr - oddr, i2 = eveni - oddi;                  \
    double r3 = diffr + turni, i3 = diffi - turnr;                                                        \
    br[q] = evenr + oddr, bi[q] = eveni + oddi;                                                           \
    br[q + step] = r1 * w[0] - i1 * w[1], bi[q + step] = r1 * w[1] + i1 * w[0];                           \
    br[q + 2 * step] = r2 * w[2] - i2 * w[3], bi[q + 2 * step] = r2 * w[3] + i2 * w[2];                   \
    br[q + 3 * step] = r3 * w[4] - i3 * w[5], bi[q + 3 * step] = r3 * w[5] + i3 * w[4];                   \
  }

WIDE static void quarter(const double *restrict xr, const double *restrict xi, double *restrict yr,
                         double *restrict yi, size_t parts, size_t step, const double *restrict roots) {
  size_t apart = parts * step;
  for (size_t p = 0; p < parts; p++) {
    const double *one = roots + 2 * p * step, *two = roots + 4 * p * step, *three = roots + 6 * p * step;
    const double w[6] = {one[0], one[1], two[0], two[1], three[0], three[1]};
    const double *ar = xr + step * p, *ai = xi + step * p;
    double *br = yr + 4 * step * p, *bi = yi + 4 * step * p;
    if (step == 1) {
      BUTTERFLY(0)
    } else {
      for (size_t q = 0; q < (step & ~(size_t)3); q++) BUTTERFLY(q)
    }
  }
}

void fourier(double *re, double *im, double *re_room, double *im_room, int log2_length,
             const double *roots) {
  size_t length = (size_t)1 << log2_length, left = length, step = 1;
  double *xr = re, *xi = im, *yr = re_room, *yi = im_room;
  while (left >= 4) {
    quarter(xr, xi, yr, yi, left / 4, step, roots);
    left /= 4, step *= 4;
    double *swap = xr; xr = yr; yr = swap;
    swap = xi; xi = yi; yi = swap;
  }
  if (left == 2) {
    for (size_t q = 0; q < step; q++) {
      double ar = xr[q], ai = xi[q], br = xr[q + step], bi = xi[q + step];
      yr[q] = ar + br, yi[q] = ai + bi;
      yr[q + step] = ar - br, yi[q + step] = ai - bi;
    }
    xr = yr, xi = yi;
  }
  if (xr != re) {
    memcpy(re, xr, length * sizeof(double));
    memcpy(im, xi, length * sizeof(double));
  }
}
