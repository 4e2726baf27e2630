"""The cosine spectrum of a sketch: one transform, then any bandwidth, with a bound on the error.

The reflected Gaussian kernel on [0, 1] is the Neumann heat kernel: in the cosine basis it multiplies
the k-th coefficient by exp(-k²π²σ²/2). So with c_k = E[(f - y) cos(πk f)],

    r_σ(t) = c_0 + 2 Σ_k c_k exp(-k²π²σ²/2) cos(πkt)        smECE_σ = ∫ |r_σ(t)| dt

(Błasiok and Nakkiran), and the infinite reflections cost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.smoothing.nodes import BinningError

__all__ = [
    "Evaluation",
    "Spectrum",
    "cosine_coefficients",
    "cosine_series",
    "damped_coefficients",
    "midpoint_series",
    "sine_series",
]

Floats = NDArray[np.float64]

DECAY = 2.9
"""Coefficients beyond DECAY / bandwidth are below 1e-18 of the whole."""
MESH_PER_BANDWIDTH = 32
INTERPOLATION_NORM = 1.25
"""Cubic interpolation has weights of both signs; their absolute values add up to at most this."""
HERMITE = np.sqrt(3.0) / 216.0
"""|H' - R'| ≤ HERMITE · h³ · max|R''''| for the cubic Hermite interpolant H of R."""


@dataclass(frozen=True)
class Evaluation:
    """smECE at one bandwidth, and a bound on its error, term by term (`rounding` is customary)."""

    bandwidth: float
    value: float
    binning: float
    quadrature: float
    rounding: float

    @property
    def error(self) -> float:
        """The true smECE at this bandwidth lies within this of `value`."""
        return self.binning + self.quadrature + self.rounding


@dataclass(frozen=True)
class Spectrum:
    """Cosine coefficients of the residuals, in units of the grid.

    Attributes
    ----------
    coefficients : float64[K + 1]
        c_k = E[(f - y) cos(πk f)].
    error : BinningError
        What the grid costs, at any bandwidth.
    length : float
        Range of the scale that the grid covers; bandwidths are given in units of the scale.
    nodal : float
        Sum of the absolute residuals on the nodes, which no smoothing makes larger.
    """

    coefficients: Floats
    error: BinningError
    length: float = 1.0
    nodal: float = math.inf

    @classmethod
    def of_residuals(cls, residual: Floats, error: BinningError, length: float = 1.0) -> Spectrum:
        """Transform residuals that lie on the nodes 0 ... cells."""
        nodal = float(np.abs(residual).sum())
        return cls(cosine_coefficients(residual), error, length, nodal)

    @property
    def bias(self) -> float:
        """E[f - y], the mean residual; no smECE is smaller than its absolute value."""
        return float(self.coefficients[0])

    @property
    def bias_error(self) -> float:
        """The true mean residual lies within this of `bias`."""
        return self.error.of_mean() + self._rounding(math.inf, 2)

    def smoothed(self, bandwidth: float) -> Floats:
        """Coefficients after smoothing, up to where they vanish."""
        return damped_coefficients(self.coefficients, bandwidth / self.length)

    def value_and_slope(self, bandwidth: float) -> tuple[float, float]:
        """smECE and its derivative in the bandwidth, quickly and without a bound."""
        s = bandwidth / self.length
        value, slopes, _ = _absolute_integral(self.smoothed(bandwidth), _mesh(s) // 2, proved=False)
        return value, -2.0 * s * slopes / self.length

    def evaluate(self, bandwidth: float, *, tolerance: float = np.inf) -> Evaluation:
        """smECE at a bandwidth, on a mesh fine enough for a quadrature error of `tolerance`."""
        s = bandwidth / self.length
        damped = self.smoothed(bandwidth)
        mesh = _mesh(s)
        binning = self.error.at(s)
        enough = max(tolerance, 0.1 * binning)  # a finer mesh would not make the sum much smaller
        while True:
            value, _, quadrature = _absolute_integral(damped, mesh)
            if quadrature <= enough or mesh >= 1 << 23:
                break
            mesh *= 2
        return Evaluation(
            bandwidth=bandwidth,
            value=value,
            binning=binning,
            quadrature=quadrature,
            rounding=self._rounding(s, mesh) + 2.0 * self._size * _tail(damped.size, s),
        )

    def at_most(self, bandwidth: float) -> Evaluation:
        """A bound on smECE without a transform: what lies on the nodes, and what the grid costs."""
        s = bandwidth / self.length
        half = 0.5 * self.nodal
        return Evaluation(bandwidth, half, self.error.at(s), half, self._rounding(s, 2))

    @property
    def _size(self) -> float:
        """A bound on every coefficient: the sum of absolute residuals on the nodes."""
        return INTERPOLATION_NORM * self.error.total_residual

    def _rounding(self, s: float, mesh: int) -> float:
        """The customary bound on two fast transforms, and the sums of floats that went into them.

        A transform of length N spreads a relative error of about ε log₂ N evenly over its values. The
        root mean square of r_σ is at most the size of a coefficient times the root of
        1 + 2 Σ exp(-k²π²σ²) < 1 + 1/(√π σ).
        """
        steps = math.log2(mesh) + math.log2(self.error.cells)
        noise = 4.0 * steps * math.sqrt(1.0 + 0.57 / s) + self.error.summands
        return float(np.finfo(float).eps) * (self._size * noise + 4.0)


def damped_coefficients(coefficients: Floats, bandwidth: float) -> Floats:
    """Smooth: multiply by the kernel's eigenvalues, up to where nothing is left; the last axis is k."""
    last = min(coefficients.shape[-1] - 1, int(np.ceil(DECAY / bandwidth)))
    decay = np.exp(-0.5 * (np.pi * bandwidth * np.arange(last + 1)) ** 2)
    damped: Floats = coefficients[..., : last + 1] * decay
    return damped


def _mesh(s: float) -> int:
    """A power of two with at least MESH_PER_BANDWIDTH points to a bandwidth."""
    return 1 << max(7, int(np.ceil(np.log2(MESH_PER_BANDWIDTH / s))))


def _tail(first: int, s: float) -> float:
    """Bound on the sum of exp(-k²π²s²/2) over k ≥ first."""
    return math.erfc(math.pi * s * (first - 1) / math.sqrt(2.0)) / (s * math.sqrt(2.0 * math.pi))


def _absolute_integral(
    damped: Floats, mesh: int, *, proved: bool = True
) -> tuple[float, float, float]:
    """∫|r|, the sum of |r'| over the zeros of r, and, if `proved`, a bound on the error of ∫|r|.

    On each cell of the mesh R = ∫r is known at both ends together with its slope r. Where the cubic
    Hermite interpolant H of R is monotone, ∫|r| is |ΔR|; elsewhere it is the total variation of H.
    Both are exact unless r comes within |H' - r| of zero, and then they are wrong by at most the
    integral of |H' - r|, for which the third derivative of r on the mesh gives a bound.
    """
    h = 1.0 / mesh
    k: Floats = np.pi * np.arange(1.0, damped.size)
    r = cosine_series(damped, mesh)
    # The mean of r over each cell is a series of its own: differences of R would lose digits, and
    # where r vanishes their noise would add up over the mesh.
    mean = midpoint_series(damped * np.sinc(0.5 * h * np.arange(damped.size)), mesh)
    left, right = r[:-1], r[1:]
    # H' on a cell is left + b u + c u², which lies within |c| / 4 of the line from left to right.
    c = 3.0 * (left + right) - 6.0 * mean
    gap = _hermite_gap(damped[1:], k, mesh) if proved else np.zeros(mesh)
    size = np.abs(r)
    near = np.minimum(size[:-1], size[1:]) <= 0.25 * np.abs(c) + gap
    at = np.flatnonzero(near | (left * right <= 0.0))
    variation, slopes = _variation(left[at], right[at] - left[at] - c[at], c[at])
    monotone = np.abs(mean)
    monotone[at] = 0.0
    return h * (float(monotone.sum()) + variation), slopes / h, h * float(gap[at].sum())


def _hermite_gap(damped: Floats, k: Floats, mesh: int) -> Floats:
    """Bound on |H' - r| in each cell of the mesh, from the third derivative of r at its ends."""
    h = 1.0 / mesh
    third = np.abs(sine_series(damped * k**3, mesh))
    fifth = 2.0 * float(np.sum(np.abs(damped) * k**5))
    gap: Floats = HERMITE * h**3 * (np.maximum(third[:-1], third[1:]) + h**2 / 8.0 * fifth)
    return gap


def _variation(a: Floats, b: Floats, c: Floats) -> tuple[float, float]:
    """∫₀¹ |a + b u + c u²| du, and |b + 2 c u| at the roots in (0, 1), summed over the cells."""
    square = b * b - 4.0 * a * c
    stable = -0.5 * (b + np.copysign(np.sqrt(np.maximum(square, 0.0)), b))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        roots = np.stack([stable / c, a / stable])
    roots[~((square >= 0.0) & (roots >= 0.0) & (roots < 1.0))] = 1.0
    roots.sort(axis=0)
    cuts = np.zeros((4, a.size))
    cuts[1:3], cuts[3] = roots, 1.0
    antiderivative = cuts * (a + cuts * (b / 2.0 + cuts * c / 3.0))
    variation = np.abs(antiderivative[1:] - antiderivative[:-1]).sum()
    slopes = np.abs(b + 2.0 * c * roots)[roots < 1.0].sum()
    return float(variation), float(slopes)


def cosine_coefficients(on_nodes: Floats) -> Floats:
    """Σ_j x_j cos(πkj/M) for k = 0 ... M; the last axis is the grid."""
    cells = on_nodes.shape[-1] - 1
    return np.fft.rfft(on_nodes, n=2 * cells, axis=-1).real


def cosine_series(coefficients: Floats, mesh: int) -> Floats:
    """c_0 + 2 Σ_k c_k cos(πkj/mesh) for j = 0 ... mesh; the last axis is k < mesh."""
    series: Floats = np.fft.irfft(coefficients, n=2 * mesh, axis=-1, norm="forward")
    return series[..., : mesh + 1]


def midpoint_series(coefficients: Floats, mesh: int) -> Floats:
    """c_0 + 2 Σ_k c_k cos(πk(j + ½)/mesh) for j = 0 ... mesh - 1; the last axis is k < mesh."""
    turned = coefficients * np.exp(0.5j * np.pi / mesh * np.arange(coefficients.shape[-1]))
    series: Floats = np.fft.irfft(turned, n=2 * mesh, axis=-1, norm="forward")
    return series[..., :mesh]


def sine_series(coefficients: Floats, mesh: int) -> Floats:
    """2 Σ_k b_k sin(πkj/mesh) for j = 0 ... mesh, with b_1 first; the last axis is k < mesh."""
    rotated = np.zeros((*coefficients.shape[:-1], coefficients.shape[-1] + 1), dtype=np.complex128)
    rotated.imag[..., 1:] = -coefficients
    series: Floats = np.fft.irfft(rotated, n=2 * mesh, axis=-1, norm="forward")
    return series[..., : mesh + 1]
