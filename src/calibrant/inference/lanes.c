#include "lanes.h"

#include <math.h>

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

WIDE void next_kernels(double *kernel, double *ratio, size_t count, double bend) {
  for (size_t i = 0; i < count; i++) kernel[i] *= ratio[i], ratio[i] *= bend;
}

#define LANES 16

WIDE void add_sizes(const float *kernel, const float *residual, size_t sites, size_t draws, double weight,
                    double *errors) {
  size_t d = 0;
  for (; d + 4 * LANES <= draws; d += 4 * LANES) {
    float sums[4 * LANES] = {0.0f};
    for (size_t i = 0; i < sites; i++)
      for (int j = 0; j < 4 * LANES; j++) sums[j] += kernel[i] * residual[i * draws + d + (size_t)j];
    for (int j = 0; j < 4 * LANES; j++) errors[d + (size_t)j] += weight * (double)fabsf(sums[j]);
  }
  for (; d < draws; d += LANES) {
    float sums[LANES] = {0.0f};
    for (size_t i = 0; i < sites; i++)
      for (int j = 0; j < LANES; j++) sums[j] += kernel[i] * residual[i * draws + d + (size_t)j];
    for (int j = 0; j < LANES; j++) errors[d + (size_t)j] += weight * (double)fabsf(sums[j]);
  }
}
