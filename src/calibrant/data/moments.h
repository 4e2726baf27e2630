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

/* The same for residuals that come in order of their places: those of one cell are added up first. */
typedef struct {
  double *moments;
  size_t cells, cell;
#if defined(__GNUC__)
  moment_pair a, b, c, d;
#else
  double sums[8];
#endif
} gathering;

INLINE void gather_rest(gathering *g) {
#if defined(__GNUC__)
  moment_pair *at = (moment_pair *)(g->moments + 8 * g->cell), none = {0.0, 0.0};
  at[0] += g->a, at[1] += g->b, at[2] += g->c, at[3] += g->d;
  g->a = g->b = g->c = g->d = none;
#else
  double *at = g->moments + 8 * g->cell;
  for (int i = 0; i < 8; i++) {
    at[i] += g->sums[i];
    g->sums[i] = 0.0;
  }
#endif
}

INLINE void gather(gathering *g, double place, double residual) {
  size_t j = (size_t)(int64_t)place;
  if (j >= g->cells) j = g->cells - 1;
  if (j != g->cell) {
    gather_rest(g);
    g->cell = j;
  }
  double v = place - (double)(int64_t)j - 0.5, square = v * v;
#if defined(__GNUC__)
  moment_pair term = {residual, residual * v}, squares = {square, square};
  g->a += term, term *= squares;
  g->b += term, term *= squares;
  g->c += term, term *= squares;
  g->d += term;
#else
  double even = residual, odd = residual * v;
  for (int i = 0; i < 4; i++) {
    g->sums[2 * i] += even, g->sums[2 * i + 1] += odd;
    even *= square, odd *= square;
  }
#endif
}

#endif
