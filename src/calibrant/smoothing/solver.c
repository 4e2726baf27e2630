#include "solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fourier.h"
#include "quadrature.h"

static const double PI = 3.14159265358979323846;
static const double EPSILON = 2.220446049250313e-16;
static const double DECAY = 2.9;             /* coefficients beyond DECAY / bandwidth are below 1e-18 */
static const double MESH_PER_BANDWIDTH = 2.5;
static const double CELLS_PER_BANDWIDTH = 3; /* fewer, and coefficients are missing */
static const double LARGEST_SEVENTH = 14.178; /* of the Gaussian density's seventh derivative */
static const double FALLS_FROM = 4.15;        /* beyond this, that derivative falls to zero */
static const double REACH = 10.0;
enum { SHORTEST = 4, LONGEST = 21, MOST_STEPS = 60, PROOFS = 4 };

static double weights[MOMENTS][MOMENTS]; /* [node][power] of Lagrange's polynomials, about the middle */

void solver_prepare(void) {
  fourier_prepare();
  for (int node = 0; node < MOMENTS; node++) {
    double *w = weights[node];
    memset(w, 0, sizeof weights[node]);
    w[0] = 1.0;
    for (int other = 0, degree = 0; other < MOMENTS; other++) {
      if (other == node) continue;
      degree++;
      for (int i = degree; i >= 0; i--)
        w[i] = ((i ? w[i - 1] : 0.0) - (other - 3.5) * w[i]) / (double)(node - other);
    }
  }
}

/* Nodes -3 ... cells + 3; what lies beyond an end is folded back, as the reflected kernel has it. */
static int lay(const double *moments, size_t cells, double share, double *on_nodes) {
  double *ghosted = calloc(cells + 7, sizeof(double));
  if (!ghosted) return -1;
  for (size_t cell = 0; cell < cells; cell++) {
    const double *m = moments + MOMENTS * cell;
    double any = 0.0;
    for (int i = 0; i < MOMENTS; i++) any += fabs(m[i]);
    if (any == 0.0) continue;
    double *at = ghosted + cell;
    for (int node = 0; node < MOMENTS / 2; node++) { /* the other half are mirror images */
      const double *w = weights[node];
      double even = (w[0] * m[0] + w[2] * m[2]) + (w[4] * m[4] + w[6] * m[6]);
      double odd = (w[1] * m[1] + w[3] * m[3]) + (w[5] * m[5] + w[7] * m[7]);
      at[node] += share * (even + odd);
      at[MOMENTS - 1 - node] += share * (even - odd);
    }
  }
  double *nodes = ghosted + 3;
  for (int i = 1; i <= 3; i++) {
    nodes[i] += ghosted[3 - i];
    nodes[cells - (size_t)i] += nodes[cells + (size_t)i];
  }
  memcpy(on_nodes, nodes, (cells + 1) * sizeof(double));
  free(ghosted);
  return 0;
}

/* sum of x_k cos(pi jk / points) over k < count, for j = 0 ... points: twice as many points, of which the
   second half is zero, as a complex sequence of even and odd ones. */
static void cosine_sums(const double *x, size_t count, int log2_points, const double *roots,
                        const double *half_roots, double *room, double *sums) {
  size_t points = (size_t)1 << log2_points;
  double *re = room, *im = room + points;
  memset(re, 0, 2 * points * sizeof(double));
  for (size_t k = 0; k < count; k++) {
    if (k & 1) im[k / 2] = x[k]; else re[k / 2] = x[k];
  }
  fourier(re, im, room + 2 * points, room + 3 * points, log2_points, roots);
  for (size_t j = 0; j <= points; j++) {
    size_t i = j & (points - 1), mirror = (points - j) & (points - 1);
    double even = 0.5 * (re[i] + re[mirror]);
    double oddr = 0.5 * (im[i] + im[mirror]), oddi = 0.5 * (re[mirror] - re[i]);
    sums[j] = even + (half_roots[2 * j] * oddr - half_roots[2 * j + 1] * oddi);
  }
}

int spectrum_make(spectrum *s, const double *moments, int log2_cells, double share) {
  size_t cells = (size_t)1 << log2_cells;
  double *own = NULL, *own_half = NULL, *room = malloc(4 * cells * sizeof(double));
  const double *roots = fourier_roots(log2_cells, &own);
  const double *half_roots = fourier_roots(log2_cells + 1, &own_half);
  s->cells = cells, s->log2_cells = log2_cells;
  s->coefficients = malloc((cells + 1) * sizeof(double));
  s->nodes = malloc((cells + 1) * sizeof(double));
  int failed = !room || !roots || !half_roots || !s->coefficients || !s->nodes ||
               lay(moments, cells, share, s->nodes);
  if (!failed) {
    double squares = 0.0;
    s->nodal = 0.0;
    for (size_t j = 0; j <= cells; j++) s->nodal += fabs(s->nodes[j]), squares += s->nodes[j] * s->nodes[j];
    cosine_sums(s->nodes, cells + 1, log2_cells, roots, half_roots, room, s->coefficients);
    /* |c_k| errs by no more than the two numbers it is made of: 2 in the 2-norm; that of r is at most
       sqrt(2) times that of the coefficients, and bounds the integral of |r|. */
    double relative = FOURIER_ERROR * log2_cells + 2.0 * EPSILON;
    s->forward = 2.83 * relative * sqrt((double)cells * squares);
  }
  free(room), free(own), free(own_half);
  if (failed) spectrum_free(s);
  return failed ? -1 : 0;
}

void spectrum_free(spectrum *s) {
  free(s->coefficients), free(s->nodes);
  s->coefficients = s->nodes = NULL;
}

/* Room for one mesh after another, and the roots for its transforms. */
typedef struct {
  int log2_mesh, log2_room;
  double *room, *own, *odd;
  const double *roots;
} workspace;

static int fit(workspace *w, int log2_mesh) {
  if (log2_mesh > w->log2_room) {
    free(w->room);
    w->room = malloc(((size_t)11 << log2_mesh) * sizeof(double));
    w->log2_room = w->room ? log2_mesh : -1;
    if (!w->room) return -1;
  }
  if (log2_mesh != w->log2_mesh) {
    free(w->own);
    w->roots = fourier_roots(log2_mesh + 1, &w->own);
    w->log2_mesh = w->roots ? log2_mesh : -1;
    w->odd = w->room + ((size_t)10 << log2_mesh);
    series_corrections((size_t)1 << log2_mesh, w->odd);
  }
  return w->roots ? 0 : -1;
}

static int mesh_for(double bandwidth) {
  int log2_mesh = SHORTEST;
  while (log2_mesh < LONGEST && ldexp(bandwidth, log2_mesh) < MESH_PER_BANDWIDTH) log2_mesh++;
  return log2_mesh;
}

/* c_k exp(-k^2 pi^2 s^2 / 2). The factors come from one another by two products; from the start of each
   eight they have gathered at most 40 roundings. */
static size_t damp(const double *coefficients, size_t cells, double bandwidth, size_t mesh, double *damped) {
  double rate = 0.5 * PI * PI * bandwidth * bandwidth, twice = exp(-2.0 * rate);
  double most = ceil(DECAY / bandwidth);
  size_t last = cells < mesh - 1 ? cells : mesh - 1;
  if (most < (double)last) last = (size_t)most;
  for (size_t start = 0; start <= last; start += 8) {
    double k = (double)start, factor = exp(-rate * k * k), next = exp(-rate * (2.0 * k + 1.0));
    size_t stop = start + 8 <= last + 1 ? start + 8 : last + 1;
    for (size_t i = start; i < stop; i++) {
      damped[i] = coefficients[i] * factor;
      factor *= next, next *= twice;
    }
  }
  return last;
}

/* A bound on h^7 |r'''''''| in each cell of the mesh, from the residuals around it: the kernel's own
   seventh derivative, at the least distance that two cells can have. */
static int local_bounds(const spectrum *s, double bandwidth, size_t mesh, double *bounds) {
  double h = 1.0 / (double)mesh, ratio = h / bandwidth;
  size_t reach = (size_t)ceil(REACH / ratio) + 2;
  double *extended = calloc(mesh + 2 * reach, sizeof(double)), *kernel = malloc((reach + 1) * sizeof(double));
  double *mass = calloc(mesh + 1, sizeof(double));
  int failed = !extended || !kernel || !mass;
  if (!failed) {
    double scale = ratio * ratio * ratio / bandwidth, far = 0.0;
    scale *= ratio * ratio * ratio * ratio;
    for (size_t d = 0; d <= reach; d++) {
      double x = d > 1 ? (double)(d - 1) * ratio : 0.0, z = x * x;
      double own = x * (z * (z * (z - 21.0) + 105.0) - 105.0) * 0.3989422804014327 * exp(-0.5 * z);
      kernel[d] = scale * (x > FALLS_FROM ? fabs(own) : LARGEST_SEVENTH);
    }
    far = kernel[reach] * s->nodal;
    for (size_t j = 0; j <= s->cells; j++) {
      size_t at = (size_t)((double)j / (double)s->cells * (double)mesh);
      mass[at < mesh ? at : mesh - 1] += fabs(s->nodes[j]);
    }
    for (size_t i = 0; i < mesh + 2 * reach; i++) { /* images in the mirrors at both ends */
      size_t turn = (i + 2 * mesh * (reach / mesh + 1) - reach) % (2 * mesh);
      extended[i] = mass[turn < mesh ? turn : 2 * mesh - 1 - turn];
    }
    for (size_t j = 0; j < mesh; j++) bounds[j] = far;
    for (size_t d = 0; d <= 2 * reach; d++) {
      double k = kernel[d < reach ? reach - d : d - reach];
      for (size_t j = 0; j < mesh; j++) bounds[j] += k * extended[j + d];
    }
  }
  free(extended), free(kernel), free(mass);
  return failed ? -1 : 0;
}

/* smECE at a bandwidth on a mesh. With `proved`, quadrature and rounding are bounded too: first by one
   bound for all cells, and where that does not do, by one for each. */
static int evaluate_on(const spectrum *s, workspace *w, double bandwidth, int log2_mesh, double enough,
                       int proved, evaluation *out) {
  if (fit(w, log2_mesh)) return -1;
  size_t mesh = (size_t)1 << log2_mesh;
  double *re = w->room, *im = re + 2 * mesh, *spare = im + 2 * mesh, *damped = spare + 4 * mesh;
  size_t last = damp(s->coefficients, s->cells, bandwidth, mesh, damped);
  double seventh, norm = series_spectrum(damped, last, mesh, w->odd, re, im, &seventh);
  fourier(re, im, spare, spare + 2 * mesh, log2_mesh + 1, w->roots);
  double noise = 16.0 * EPSILON * norm; /* some times the root mean square of rounding */
  absolute_integral found = integrate_absolute(re, im, mesh, NULL, proved ? seventh : 0.0, noise);
  if (proved && found.error > enough) {
    double *bounds = spare;
    if (local_bounds(s, bandwidth, mesh, bounds)) return -1;
    for (size_t j = 0; j < mesh; j++) bounds[j] = fmin(bounds[j], seventh);
    found = integrate_absolute(re, im, mesh, bounds, 0.0, noise);
  }
  out->bandwidth = bandwidth;
  out->value = found.integral;
  out->slope = -2.0 * bandwidth * found.slopes;
  out->quadrature = found.error;
  out->evaluations++;
  /* The seven coefficients of a cell err by less than twice the errors of the transform at its ends, so
     that the integral errs by 4 times their root mean square; 40 roundings are in the damped
     coefficients. What is left out is bounded by the tail of the series. */
  double tail = erfc(PI * bandwidth * (double)last / sqrt(2.0)) / (bandwidth * sqrt(2.0 * PI));
  double relative = 4.0 * FOURIER_ERROR * (log2_mesh + 1) + 50.0 * EPSILON;
  out->rounding = relative * norm + EPSILON * (double)mesh * found.integral + s->forward +
                  2.0 * s->nodal * tail;
  return 0;
}

static int prove(const spectrum *s, workspace *w, double bandwidth, double enough, evaluation *out) {
  int log2_mesh = mesh_for(bandwidth);
  do {
    if (evaluate_on(s, w, bandwidth, log2_mesh, enough, 1, out)) return -1;
  } while (out->quadrature > enough && ++log2_mesh <= LONGEST);
  return 0;
}

static void close_workspace(workspace *w) { free(w->room), free(w->own); }

int spectrum_evaluate(const spectrum *s, double bandwidth, double enough, evaluation *out) {
  workspace w = {-1, -1, NULL, NULL, NULL, NULL};
  memset(out, 0, sizeof *out);
  int failed = prove(s, &w, bandwidth, enough, out);
  close_workspace(&w);
  return failed;
}

/* Bracketed Newton steps on log smECE - log sigma: smECE falls as sigma grows, so the fixed point lies
   between sigma and smECE at every sigma. No smECE is below |c_0|. */
int spectrum_solve(const spectrum *s, double length, double start, double narrowest, double tolerance,
                   evaluation *out) {
  workspace w = {-1, -1, NULL, NULL, NULL, NULL};
  double low = fmax(narrowest, fabs(s->coefficients[0])), high = HUGE_VAL;
  double sigma = fmax(start, low), finest = CELLS_PER_BANDWIDTH / (double)s->cells * length;
  int failed = 0;
  memset(out, 0, sizeof *out);
  sigma = fmax(sigma, finest);
  for (int step = 0; step < MOST_STEPS && !failed; step++) {
    double width = sigma / length;
    failed = evaluate_on(s, &w, width, mesh_for(width), HUGE_VAL, 0, out);
    double value = out->value, slope = out->slope / length, change = value - sigma;
    if (fabs(change) <= 1e-5 * sigma) { /* one step squares the distance */
      sigma = fmax(fmax(low, finest), sigma + change / (1.0 - slope));
      break;
    }
    if (value > sigma) low = fmax(low, sigma), high = fmin(high, value);
    else if (sigma <= narrowest || (slope == 0.0 && sigma <= low)) break;
    else if (sigma <= finest) { out->coarse = 1; break; }
    else low = fmax(low, value), high = fmin(high, sigma);
    double next = value > 0.0 ? sigma * exp(log(value / sigma) / (1.0 - slope * sigma / value)) : low;
    sigma = fmax(finest, next <= low ? low : next < high ? next : sqrt(low * high));
  }
  for (int proof = 0; proof < PROOFS && !failed; proof++) {
    failed = prove(s, &w, sigma / length, tolerance / 8.0, out);
    double change = out->value - sigma, slope = out->slope / length;
    double following = fmax(fmax(low, finest), sigma + change / (1.0 - slope));
    if (out->coarse || fabs(change) <= tolerance / 64.0 || following == sigma) break;
    sigma = following;
  }
  close_workspace(&w);
  return failed;
}
