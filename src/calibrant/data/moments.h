/* A residual into the moments of its cell: two at a time, the same sums in the same order everywhere. */
#ifndef CALIBRANT_MOMENTS_H
#define CALIBRANT_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
typedef double moment_pair __attribute__((vector_size(16), aligned(8), may_alias));
#else
#define INLINE static inline
#endif

/* `place` counts cells from the start of the grid; the moments 0 ... 7 are about the middle of a cell, in
   units of its width. */
INLINE void add_residual(double *moments, size_t cells, double place, double residual) {
  size_t j = (size_t)(int64_t)place;
  j -= j >= cells; /* the right end belongs to the last cell; no branch, which many rows at 1 would miss */
  double v = place - (double)(int64_t)j - 0.5, square = v * v;
#if defined(__GNUC__)
  moment_pair *at = (moment_pair *)(moments + 8 * j), squares = {square, square};
  moment_pair term = {residual, residual * v};
  for (int i = 0; i < 4; i++) {
    at[i] += term;
    term *= squares;
  }
#else
  double *at = moments + 8 * j, even = residual, odd = residual * v;
  for (int i = 0; i < 4; i++) {
    at[2 * i] += even, at[2 * i + 1] += odd;
    even *= square, odd *= square;
  }
#endif
}

/* The same for residuals that come in order of their places: those of one cell are added up first. A few
   are held back, so that the loop that adds them has the registers to itself. */
enum { HELD = 96 };
typedef struct {
  double *moments;
  size_t cells, held;
  double places[HELD], residuals[HELD];
} gathering;

static void gather_rest(gathering *g) {
  size_t cell = 0;
#if defined(__GNUC__)
  moment_pair a = {0.0, 0.0}, b = a, c = a, d = a;
#define EMPTY                                                                                          \
  moment_pair *at = (moment_pair *)(g->moments + 8 * cell);                                            \
  at[0] += a, at[1] += b, at[2] += c, at[3] += d;
#else
  double sums[8] = {0.0};
#define EMPTY                                                                                          \
  for (int k = 0; k < 8; k++) g->moments[8 * cell + k] += sums[k];
#endif
  for (size_t i = 0; i < g->held; i++) {
    double place = g->places[i], residual = g->residuals[i];
    size_t j = (size_t)(int64_t)place;
    if (j >= g->cells) j = g->cells - 1;
    double v = place - (double)(int64_t)j - 0.5, square = v * v;
    int other = j != cell;
    if (other) {
      EMPTY
      cell = j;
    }
#if defined(__GNUC__)
    moment_pair term = {residual, residual * v}, squares = {square, square}, none = {0.0, 0.0};
    if (other) a = b = c = d = none;
    a += term, term *= squares;
    b += term, term *= squares;
    c += term, term *= squares;
    d += term;
#else
    double even = residual, odd = residual * v;
    for (int k = 0; k < 4; k++) {
      sums[2 * k] = (other ? 0.0 : sums[2 * k]) + even, even *= square;
      sums[2 * k + 1] = (other ? 0.0 : sums[2 * k + 1]) + odd, odd *= square;
    }
#endif
  }
  EMPTY
  g->held = 0;
}

INLINE void gather(gathering *g, double place, double residual) {
  g->places[g->held] = place, g->residuals[g->held] = residual;
  if (++g->held == HELD) gather_rest(g);
}

#undef EMPTY
#endif
