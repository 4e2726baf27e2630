#include "lanes.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "wide.h"

WIDE void normal_at(const double *restrict x, size_t count, double at, double narrow, double middle,
                    const double *restrict table, int last, double *restrict values) {
  for (size_t j = 0; j < count; j++) {
    double place = (x[j] - at) * narrow + middle;
    place = place > 0.0 ? place : 0.0;
    place = place < (double)last ? place : (double)last;
    int entry = (int)place;
    entry = entry < last - 1 ? entry : last - 1;
    values[j] = table[entry] + (place - (double)entry) * (table[entry + 1] - table[entry]);
  }
}

WIDE void count_above(const float *numbers, size_t count, const float *thresholds, size_t steps, float mean,
                      float factor, float *values) {
  if (steps == 1) { /* most cells have one row */
    float none = (0.0f - mean) * factor, one = (1.0f - mean) * factor, least = thresholds[0];
    for (size_t d = 0; d < count; d++) values[d] = numbers[d] > least ? one : none;
    return;
  }
  for (size_t d = 0; d < count; d++) values[d] = 0.0f;
  for (size_t k = 0; k < steps; k++) {
    float least = thresholds[k];
    for (size_t d = 0; d < count; d++) values[d] += numbers[d] > least ? 1.0f : 0.0f;
  }
  for (size_t d = 0; d < count; d++) values[d] = (values[d] - mean) * factor;
}

WIDE void largest_sizes(const float *numbers, size_t rows, size_t count, float *sizes) {
  for (size_t d = 0; d < count; d++) sizes[d] = 0.0f;
  for (size_t row = 0; row < rows; row++)
    for (size_t d = 0; d < count; d++) {
      float size = fabsf(numbers[row * count + d]);
      sizes[d] = size > sizes[d] ? size : sizes[d];
    }
}

WIDE void next_lengths(const float *numbers, size_t count, float *squares, float *lengths) {
  for (size_t d = 0; d < count; d++) squares[d] += numbers[d] * numbers[d], lengths[d] = sqrtf(squares[d]);
}

WIDE void look_up(float *x, size_t count, const float *table, int last, float per_unit) {
  for (size_t d = 0; d < count; d++) {
    float place = x[d] * per_unit;
    int entry = (int)(place < (float)last ? place : (float)last);
    x[d] = table[entry] + (place - (float)entry) * (table[entry + 1] - table[entry]);
  }
}

/* exp(-x) of x >= 0: 2 to the power of a whole number, times a series for what is left, right to two units in
   the last place near 0, and to 1e-5 where it vanishes. */
#if defined(__GNUC__)
__attribute__((always_inline))
#endif
static inline float vanishing(float x) {
  float power = (x < 87.0f ? x : 87.0f) * -1.44269504f;
  float whole = (power + 12582912.0f) - 12582912.0f, y = (power - whole) * 0.69314718f;
  float series = 4.1666667e-2f + y * (8.3333333e-3f + y * 1.3888889e-3f);
  series = 1.0f + y * (1.0f + y * (0.5f + y * (1.6666667e-1f + y * series)));
  int32_t bits = ((int32_t)whole + 127) << 23;
  float scale;
  memcpy(&scale, &bits, sizeof(scale));
  return series * scale;
}

WIDE void add_inverse(const float *logs, size_t rows, size_t count, const float *shares, float *smallest,
                      float *sums) {
  for (size_t row = 0; row < rows; row++)
    for (size_t d = 0; d < count; d++) {
      float one = logs[row * count + d];
      smallest[d] = one < smallest[d] ? one : smallest[d];
    }
  for (size_t row = 0; row < rows; row++)
    for (size_t d = 0; d < count; d++) sums[d] += shares[row] * vanishing(logs[row * count + d] - smallest[d]);
}

WIDE void add_lowered(const float *x, size_t rows, size_t count, const float *errors, float narrow, float bump,
                      float *sums) {
  for (size_t row = 0; row < rows; row++)
    for (size_t d = 0; d < count; d++) {
      float one = x[row * count + d];
      sums[d] += errors[row] * (fabsf(one) - bump * vanishing(narrow * one * one));
    }
}

WIDE void next_kernels(double *kernel, double *ratio, size_t count, double bend) {
  for (size_t i = 0; i < count; i++) kernel[i] *= ratio[i], ratio[i] *= bend;
}

WIDE void add_sizes(const float *sums, size_t rows, size_t draws, const double *weights, double *errors) {
  for (size_t row = 0; row < rows; row++)
    for (size_t d = 0; d < draws; d++) errors[d] += weights[row] * (double)fabsf(sums[row * draws + d]);
}

/* Six rows at a time, of so many columns that they fill a register. The last rows and columns are counted
   from the end, some of them twice. Columns are brought together first: those of a wide matrix lie on as
   many pages as it has rows. Zeros before the first number of all six rows, and after their last, are passed
   over: kernels are 0 far away. */
#define PANEL 256
#if defined(__GNUC__)
#define ALIGNED __attribute__((aligned(64)))
typedef float floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef double doubles __attribute__((vector_size(64), aligned(8), may_alias));
#define TILE(real, vector, width)                                                                          \
  vector s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0};                                       \
  for (size_t i = begin; i < end; i++) {                                                                   \
    vector x = *(const vector *)(from + i * apart);                                                        \
    s0 += f[0][i] * x, s1 += f[1][i] * x, s2 += f[2][i] * x;                                               \
    s3 += f[3][i] * x, s4 += f[4][i] * x, s5 += f[5][i] * x;                                               \
  }                                                                                                        \
  *(vector *)to[0] = s0, *(vector *)to[1] = s1, *(vector *)to[2] = s2;                                     \
  *(vector *)to[3] = s3, *(vector *)to[4] = s4, *(vector *)to[5] = s5;
#else
#define ALIGNED
#define TILE(real, vector, width)                                                                          \
  for (int q = 0; q < 6; q++)                                                                              \
    for (size_t j = 0; j < width; j++) {                                                                   \
      real sum = 0;                                                                                        \
      for (size_t i = begin; i < end; i++) sum += f[q][i] * from[i * apart + j];                           \
      to[q][j] = sum;                                                                                      \
    }
#endif

#define PRODUCT(name, real, vector, width)                                                                 \
  WIDE void name(const real *a, size_t rows, size_t inner, const real *b, size_t step, size_t columns,     \
                 size_t *bands, real *out) {                                                               \
    if (rows == 1) {                                                                                       \
      memset(out, 0, columns * sizeof(real));                                                              \
      for (size_t i = 0; i < inner; i++)                                                                   \
        for (size_t j = 0; j < columns; j++) out[j] += a[i] * b[i * step + j];                             \
      return;                                                                                              \
    }                                                                                                      \
    for (size_t first = 0; first < rows; first += 6) {                                                     \
      size_t begin = inner, end = 0;                                                                       \
      for (size_t row = first; row < first + 6 && row < rows; row++) {                                     \
        const real *f = a + row * inner;                                                                   \
        size_t i = 0, j = inner;                                                                           \
        while (i < begin && f[i] == 0) i++;                                                                \
        while (j > end && f[j - 1] == 0) j--;                                                              \
        begin = i, end = j;                                                                                \
      }                                                                                                    \
      bands[first / 6 * 2] = begin, bands[first / 6 * 2 + 1] = end;                                        \
    }                                                                                                      \
    for (size_t start = 0; start < columns; start += width) {                                              \
      size_t d = columns < width ? 0 : start + width <= columns ? start : columns - width;                 \
      size_t apart = step;                                                                                 \
      const real *from = b + d;                                                                            \
      ALIGNED real panel[PANEL * width];                                                                   \
      if (inner <= PANEL && rows > 6 && columns >= width) {                                                \
        for (size_t i = 0; i < inner; i++) memcpy(panel + i * width, from + i * step, width * sizeof(real)); \
        from = panel, apart = width;                                                                       \
      }                                                                                                    \
      for (size_t first = 0; first < rows; first += 6) {                                                   \
        size_t begin = bands[first / 6 * 2], end = bands[first / 6 * 2 + 1];                               \
        const real *f[6];                                                                                  \
        real *to[6];                                                                                       \
        for (size_t q = 0; q < 6; q++) {                                                                   \
          size_t row = first + q < rows ? first + q : rows - 1;                                            \
          f[q] = a + row * inner, to[q] = out + row * columns + d;                                         \
        }                                                                                                  \
        if (columns >= width) {                                                                            \
          TILE(real, vector, width)                                                                        \
        } else {                                                                                           \
          for (int q = 0; q < 6; q++)                                                                      \
            for (size_t j = 0; j < columns; j++) {                                                         \
              real sum = 0;                                                                                \
              for (size_t i = begin; i < end; i++) sum += f[q][i] * from[i * apart + j];                   \
              to[q][j] = sum;                                                                              \
            }                                                                                              \
        }                                                                                                  \
      }                                                                                                    \
    }                                                                                                      \
  }

PRODUCT(product_of_floats, float, floats, 16)
PRODUCT(product_of_doubles, double, doubles, 8)
