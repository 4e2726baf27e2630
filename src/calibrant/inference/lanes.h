/* The innermost loops behind noise floors and tests. */
#ifndef CALIBRANT_LANES_H
#define CALIBRANT_LANES_H

#include <stddef.h>

/* The normal distribution at (x - at) * narrow + middle, a place in its table of entries 0 ... last, by the
   line between two of them. */
void normal_at(const double *x, size_t count, double at, double narrow, double middle, const double *table,
               int last, double *values);

/* (value - mean) * factor, where a value counts the thresholds, in rising order, that a number is above. */
void count_above(const float *numbers, size_t count, const float *thresholds, size_t steps, float mean,
                 float factor, float *values);

/* The largest of several rows of numbers in size. */
void largest_sizes(const float *numbers, size_t rows, size_t count, float *sizes);

/* The length of vectors that have one more number each, from the squares of those before. */
void next_lengths(const float *numbers, size_t count, float *squares, float *lengths);

/* x >= 0 becomes what a table has at x * per_unit, by the line between two entries. The last line goes on. */
void look_up(float *x, size_t count, const float *table, int last, float per_unit);

/* The smallest of several rows of logarithms, at most 0, and sums += share * exp(smallest - log). */
void add_inverse(const float *logs, size_t rows, size_t count, const float *shares, float *smallest, float *sums);

/* sums += error * (|x| - bump * exp(-narrow * x * x)), of rows of x with an error each. */
void add_lowered(const float *x, size_t rows, size_t count, const float *errors, float narrow, float bump,
                 float *sums);

/* Kernels at one place go to the next: each is multiplied by its ratio, and that by `bend`. */
void next_kernels(double *kernel, double *ratio, size_t count, double bend);

/* errors += weight * |sum|, of rows of sums with a weight each. */
void add_sizes(const float *sums, size_t rows, size_t draws, const double *weights, double *errors);

/* out [rows, columns] = a [rows, inner] times b [inner, columns], whose rows lie `step` apart. Each number is
   a sum from the first to the last, the same on every machine and however many threads it has. `bands` is room
   for two numbers to every six rows. */
void product_of_floats(const float *a, size_t rows, size_t inner, const float *b, size_t step, size_t columns,
                       size_t *bands, float *out);
void product_of_doubles(const double *a, size_t rows, size_t inner, const double *b, size_t step,
                        size_t columns, size_t *bands, double *out);

#endif
