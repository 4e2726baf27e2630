#include "quadrature.h"

#include <math.h>
#include <string.h>

#include "wide.h"

static const double PI = 3.14159265358979323846;

/* R - H vanishes at both ends, so (R - H)' has a zero inside, and three at each end: H' interpolates r
   in seven points, and |H' - r| <= u^3 (1-u)^3 max(u, 1-u) / 7! h^7 max |r'''''''|, */
static const double GAP = 1.6653e-6;
/* and |H - R| <= (u (1-u))^4 / 8! h^8 max |r'''''''| by Hermite's formula for the remainder. */
static const double GAP_OF_INTEGRAL = 1.0 / 10321920.0;
static const int DEEPEST = 24;

/* 1/x - cot(x/2) (1 - x^2/60) / 2 - x/10 = sum of these times x^5, x^7, ...; the coefficients are
   b(m) - b(m-1)/60 with b(m) = 2 zeta(2m) / (2 pi)^(2m). */
static const double CORRECTION[] = {
    9.92063492063492063e-6,  2.75573192239858907e-7,  7.09809737587515365e-9,
    1.80473064070947669e-10, 4.57555296620552352e-12, 1.15925754120846973e-13,
    2.93659489574020645e-15, 7.43858355845087779e-17, 1.88422166409679306e-18,
    4.77279330521214082e-20, 1.20896292532738025e-21, 3.06233902765510106e-23,
    7.75699547831425252e-25, 1.96486991497606401e-26, 4.97707364136164494e-28,
};
enum { CORRECTIONS = sizeof CORRECTION / sizeof *CORRECTION };

WIDE void series_corrections(size_t mesh, double *odd) {
  double step = PI / (double)mesh;
  for (size_t k = 0; k < mesh; k++) {
    double x = step * (double)k, z = x * x, sum = CORRECTION[CORRECTIONS - 1];
    for (int m = CORRECTIONS - 2; m >= 0; m--) sum = sum * z + CORRECTION[m];
    odd[k] = sum * z * z * x;
  }
}

double series_spectrum(const double *damped, size_t last, size_t mesh, const double *odd, double *re,
                       double *im, double *largest) {
  size_t length = 2 * mesh;
  double squares = damped[0] * damped[0], seventh = 0.0, step = PI / (double)mesh;
  re[0] = damped[0], im[0] = 0.0;
  memset(re + last + 1, 0, (length - 2 * last - 1) * sizeof(double));
  memset(im + last + 1, 0, (length - 2 * last - 1) * sizeof(double));
  for (size_t k = 1; k <= last; k++) {
    double x = step * (double)k, z = x * x, half = damped[k];
    double value = half, slope = -x * half, bend = -z * half, correction = odd[k] * half;
    re[k] = value + correction, im[k] = bend - slope;
    re[length - k] = value - correction, im[length - k] = bend + slope;
    squares += 2.0 * (value * value + correction * correction + bend * bend + slope * slope);
    seventh += fabs(half) * z * z * z * x;
  }
  *largest = 2.0 * seventh;
  return sqrt(squares);
}

/* The value at u of the polynomial with these Bernstein coefficients. */
static double bernstein(const double *b, int degree, double u) {
  double t[8];
  memcpy(t, b, (size_t)(degree + 1) * sizeof(double));
  for (int d = degree; d > 0; d--)
    for (int i = 0; i < d; i++) t[i] += u * (t[i + 1] - t[i]);
  return t[0];
}

/* The root in [0, 1] of an increasing or decreasing H': Newton's steps inside a bracket. */
static double root_of_monotone(const double *b, const double *rise) {
  double low = 0.0, high = 1.0, u = b[0] / (b[0] - b[6]);
  int falling = b[0] > 0.0;
  for (int i = 0; i < 60; i++) {
    double value = bernstein(b, 6, u), slope = bernstein(rise, 5, u);
    if ((value > 0.0) == falling) low = u; else high = u;
    double next = u - value / slope;
    if (!(next >= low && next <= high)) next = 0.5 * (low + high);
    double moved = fabs(next - u);
    u = next;
    if (moved < 1e-9) break;
  }
  return u;
}

/* The integral of |H'| over [0, 1], |H''| at its roots, and what is left open at the deepest cut. Zero
   counts as negative, so that a root on a node belongs to one of the two cells that meet there. */
static double variation(const double *b, int depth, double width, double *slopes, double *open) {
  int positive = 0, negative = 0, rises = 1, falls = 1;
  double sum = 0.0, rise[6];
  for (int i = 0; i < 7; i++) {
    if (b[i] > 0.0) positive = 1; else negative = 1;
    sum += b[i];
  }
  if (!(positive && negative)) return fabs(sum) / 7.0;
  for (int i = 0; i < 6; i++) {
    rise[i] = 6.0 * (b[i + 1] - b[i]);
    if (rise[i] < 0.0) rises = 0;
    if (rise[i] > 0.0) falls = 0;
  }
  if (rises || falls) { /* of two signs, so there is one root */
    double u = root_of_monotone(b, rise), integral[8] = {0.0};
    for (int i = 0; i < 7; i++) integral[i + 1] = integral[i] + b[i] / 7.0;
    double before = bernstein(integral, 7, u);
    *slopes += fabs(bernstein(rise, 5, u)) / width;
    return fabs(before) + fabs(integral[7] - before);
  }
  if (depth == DEEPEST) {
    double most = 0.0;
    for (int i = 0; i < 7; i++) most = fmax(most, fabs(b[i]));
    *open += width * most;
    return fabs(sum) / 7.0;
  }
  double left[7], right[7], t[7];
  memcpy(t, b, sizeof t);
  left[0] = t[0], right[6] = t[6];
  for (int d = 1; d < 7; d++) {
    for (int i = 0; i < 7 - d; i++) t[i] = 0.5 * (t[i] + t[i + 1]);
    left[d] = t[0], right[6 - d] = t[6 - d];
  }
  return 0.5 * (variation(left, depth + 1, 0.5 * width, slopes, open) +
                variation(right, depth + 1, 0.5 * width, slopes, open));
}

/* A bound on | integral of |H'| - integral of |r| | over a cell in which H' is not clear of zero. Where
   H' rises or falls by at least `slope` throughout, it is below the gap on a piece of 2 gap / slope at
   most; elsewhere both have one sign, and their integrals differ by H - R at the ends of pieces. */
static double error_near_zero(const double *b, double gap, double seventh) {
  double least = HUGE_VAL;
  int rises = b[1] > b[0];
  for (int i = 0; i < 6; i++) {
    double rise = 6.0 * (b[i + 1] - b[i]);
    if ((rise > 0.0) != rises) return gap;
    least = fmin(least, fabs(rise));
  }
  return fmin(gap, 2.0 * GAP_OF_INTEGRAL * seventh + 8.0 * gap * gap / least);
}

/* fmin and fmax are calls: they know what to do without a number. */
static inline double least(double a, double b) { return a < b ? a : b; }
static inline double most(double a, double b) { return a > b ? a : b; }

absolute_integral integrate_absolute(const double *A, const double *B, size_t mesh,
                                     const double *seventh, double largest, double noise) {
  size_t length = 2 * mesh;
  double total = 0.0, slopes = 0.0, error = 0.0;
  double ra = A[0], sa = 0.0, qa = B[0], ta = 0.0;
  for (size_t j = 0; j < mesh; j++) {
    size_t i = j + 1, mirror = length - i;
    double rb = 0.5 * (A[i] + A[mirror]), sb = 0.5 * (A[i] - A[mirror]);
    double qb = 0.5 * (B[i] + B[mirror]), tb = 0.5 * (B[i] - B[mirror]);
    double mean = 0.5 * (ra + rb) + (sa - sb) / 10.0 + (qa + qb) / 120.0 + (tb - ta);
    double b[7] = {ra, ra + sa / 6.0, ra + sa / 3.0 + qa / 30.0, 0.0,
                   rb - sb / 3.0 + qb / 30.0, rb - sb / 6.0, rb};
    b[3] = 7.0 * mean - ((b[0] + b[6]) + (b[1] + b[5]) + (b[2] + b[4]));
    double low = least(least(least(b[0], b[6]), least(b[1], b[5])), least(least(b[2], b[4]), b[3]));
    double high = most(most(most(b[0], b[6]), most(b[1], b[5])), most(most(b[2], b[4]), b[3]));
    double bound = seventh ? seventh[j] : largest, gap = GAP * bound;
    if (low > gap || high < -gap) {
      total += fabs(mean);
    } else if (high <= noise && low >= -noise) {
      total += fabs(mean);
      error += fmax(high, -low) + gap;
    } else if (low > 0.0 || high <= 0.0) {
      total += fabs(mean);
      error += gap;
    } else {
      total += variation(b, 0, 1.0, &slopes, &error);
      error += error_near_zero(b, gap, bound);
    }
    ra = rb, sa = sb, qa = qb, ta = tb;
  }
  double h = 1.0 / (double)mesh;
  absolute_integral out = {h * total, slopes / h, h * error};
  return out;
}
