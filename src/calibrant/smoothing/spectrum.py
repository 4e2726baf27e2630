"""The cosine spectrum of residuals: one transform, then any bandwidth, with a bound on the error.

The reflected Gaussian kernel on [0, 1] is the Neumann heat kernel: in the cosine basis it multiplies
the k-th coefficient by exp(-k²π²σ²/2). So with c_k = E[(f - y) cos(πk f)],

    r_σ(t) = c_0 + 2 Σ_k c_k exp(-k²π²σ²/2) cos(πkt)        smECE_σ = ∫ |r_σ(t)| dt

(Błasiok and Nakkiran), and the infinite reflections cost nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.smoothing._solver import Transform

Floats = NDArray[np.float64]

DECAY = 2.9
"""Coefficients beyond DECAY / bandwidth are below 1e-18 of the whole."""
SLOPE_NORMS = (0.7978845609, 0.9678828981, 1.5100132, 2.8006004)
"""L1 norms of the derivatives of the Gaussian density of unit bandwidth, orders 1 to 4, rounded up.
Reflection is a contraction, so they bound the reflected kernel too."""
INTERPOLATION = 0.1026591
"""(½ · 3/2 · 5/2 · 7/2)² / 8! times the L1 norm of the eighth derivative, rounded up."""
THIRD_MOMENT = 3.0
"""E|u - ū|³ of the rows is at most 2 of those ū(1-ū)/2, and where they are laid at most one more."""
EPSILON = float(np.finfo(float).eps)


class Spread(NamedTuple):
    """Unknown spread of a sketch: rows of one (cell, label) are known by number and mean position alone.

    With u the position in a cell and ū its mean, the variance lies between 0 and ū(1-ū). Half of the rows
    are laid at the mean and half at both ends, which has half of that variance: the other half bounds
    the error.

    Attributes
    ----------
    cell : float
        Width of a cell of the sketch, in units of its grid.
    residual : float
        Mean of ū(1-ū)/2 times |p - y|, over cells whose variance is not known.
    mass : float
        Mean of ū(1-ū)/2 over the same cells.
    slopes : tuple of float
        Derivatives of the prediction in the position on the grid, orders 1 to 3.
    position : float
        Rounding of positions to fixed point.
    """

    cell: float
    residual: float
    mass: float
    slopes: tuple[float, float, float]
    position: float

    def at(self, bandwidth: float, total_residual: float) -> float:
        """The bound at a bandwidth in units of the sketch's grid.

        Second order: half the square of a cell times the second derivative of (p - y) K, by the product
        rule. Third order: E|u - ū|³ is at most ū(1-ū) for the rows, and half of that where they are laid.
        """
        h, (a, b, c) = self.cell, self.slopes
        d1, d2, d3, _ = [norm / bandwidth**k for k, norm in enumerate(SLOPE_NORMS, 1)]
        residual = self.residual + a * h * self.mass  # anywhere in the cells
        second = residual * d2 + self.mass * (2 * a * d1 + b)
        third = THIRD_MOMENT * (residual * d3 + self.mass * (3 * a * d2 + 3 * b * d1 + c))
        return h**2 / 2 * second + h**3 / 6 * third + self.position * (a + total_residual * d1)

    def of_mean(self) -> float:
        """The bound on the mean residual, which no bandwidth changes."""
        h, (a, b, c) = self.cell, self.slopes
        bent = h**2 / 2 * self.mass * b + h**3 / 6 * THIRD_MOMENT * self.mass * c
        return bent + self.position * a


class Skew(NamedTuple):
    """Unknown skewness of rows of a (cell, label) of known number, mean and variance, on [0, 1].

    The third moment of rows in a cell then lies between that of the distribution with a mass at the left
    end and that of the one with a mass at the right end, each with one other point; half of the rows are
    laid as each of them, in the middle between both.

    Attributes
    ----------
    cell : float
        Width of a cell, in units of the grid.
    third, third_mass : float
        Mean of half the range of the third moment, with and without |p - y|.
    fourth, fourth_mass : float
        Mean of the variance, likewise: the rows' E(u - ū)⁴ is at most that, and so is that of what is laid.
    position : float
        Rounding of positions to fixed point.
    """

    cell: float
    third: float
    third_mass: float
    fourth: float
    fourth_mass: float
    position: float

    def at(self, bandwidth: float, total_residual: float) -> float:
        """The bound at a bandwidth in units of the grid: Taylor's series of (p - y) K about the mean."""
        h = self.cell
        d1, d2, d3, d4 = [norm / bandwidth**k for k, norm in enumerate(SLOPE_NORMS, 1)]
        third = self.third * d3 + self.third_mass * 3 * d2
        fourth = 2.0 * ((self.fourth + h * self.fourth_mass) * d4 + self.fourth_mass * 4 * d3)
        moved = self.position * (1.0 + total_residual * d1)
        return h**3 / 6 * third + h**4 / 24 * fourth + moved

    def of_mean(self) -> float:
        """The bound on the mean residual: only positions are rounded."""
        return self.position


class Evaluation(NamedTuple):
    """smECE at one bandwidth, and a bound on its error, term by term.

    `interpolation` is the part that more cells would make smaller, and `inherent` the part that they would
    not change. The true smECE at this bandwidth lies within `error` of `value`.
    """

    bandwidth: float
    value: float
    interpolation: float
    inherent: float
    quadrature: float
    rounding: float
    error: float


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Cosine coefficients of the residuals, and what the grid costs at any bandwidth.

    Laying residuals onto the eight nodes around them with the weights of Lagrange's interpolation leaves
    at most 0.103 / x⁸ times the mean absolute residual, for a bandwidth of x cells. To that come what a
    sum over rows does not know of them, and the mirror images beyond ends where the kernel should not be
    reflected but is.

    Attributes
    ----------
    transform : Transform
        The coefficients.
    length : float
        Range of the scale that the grid covers; bandwidths are given in units of the scale.
    cells : int
        Of the grid onto which residuals are laid.
    total_residual : float
        Mean of |p - y|.
    rounding : float
        Of the sums of floats in cells.
    position : float
        Rounding of positions, in units of the grid.
    margin : float
        Room at the ends, in units of the grid; infinite where the kernel is reflected there.
    spread : Spread or Skew, optional
        What cells leave open that were summed up before.
    window : float
        Part of those cells' grid that this grid covers.
    """

    transform: Transform
    length: float
    cells: int
    total_residual: float
    rounding: float
    position: float
    margin: float = math.inf
    spread: Spread | Skew | None = None
    window: float = 1.0

    @classmethod
    def of(
        cls,
        moments: Floats,
        share: float,
        length: float,
        total_residual: float,
        *,
        summands: int,
        position: float,
        margin: float,
        spread: Spread | Skew | None = None,
        window: float = 1.0,
    ) -> Spectrum:
        """Spectrum of moments of residuals, with at most so many floats added up in a cell."""
        # The weights' absolute values add up to 3.65 at most.
        rounding = 2.0 * EPSILON * total_residual * (summands + 24)
        transform, cells = Transform(moments, share), len(moments)
        return cls(
            transform, length, cells, total_residual, rounding, position, margin, spread, window
        )

    def evaluate(self, bandwidth: float, *, tolerance: float = math.inf) -> Evaluation:
        """smECE at a bandwidth, on a mesh fine enough for a quadrature error of `tolerance`."""
        grid = self.evaluated(bandwidth, 0.0, 0.0, 0.0)
        enough = max(
            tolerance, 0.1 * (grid.interpolation + grid.inherent)
        )  # no finer than the rest
        value, _, quadrature, rounding = self.transform.evaluate(bandwidth / self.length, enough)
        return self.evaluated(bandwidth, value, quadrature, rounding)

    def evaluated(
        self, bandwidth: float, value: float, quadrature: float, rounding: float
    ) -> Evaluation:
        """Evaluation of the compiled solver at a bandwidth, with the cost of the grid."""
        width, size = bandwidth / self.length, self.total_residual
        interpolation = INTERPOLATION * size / (self.cells * width) ** 8
        inherent = self.position * size * SLOPE_NORMS[0] / width
        if self.margin < math.inf:
            inherent += self.mirrored(bandwidth)
        if self.spread is not None:
            inherent += self.spread.at(width * self.window, size)
        rounding += self.rounding
        error = interpolation + inherent + quadrature + rounding
        return Evaluation(bandwidth, value, interpolation, inherent, quadrature, rounding, error)

    def mirrored(self, bandwidth: float) -> float:
        """The part of the error which more room around the rows would make smaller."""
        reach = self.margin / (bandwidth / self.length * math.sqrt(2.0))
        return 2.0 * self.total_residual * math.erfc(reach)

    def at_most(self, bandwidth: float) -> Evaluation:
        """A bound on smECE without a transform: what lies on the nodes, and what the grid costs."""
        half = 0.5 * self.transform.nodal
        return self.evaluated(bandwidth, half, half, EPSILON)


def cosine_coefficients(on_nodes: Floats) -> Floats:
    """Σ_j x_j cos(πkj/M) for k = 0 ... M; the last axis is the grid."""
    cells = on_nodes.shape[-1] - 1
    return np.fft.rfft(on_nodes, n=2 * cells, axis=-1).real.copy()


START = 0.1
"""First bandwidth tried, unless the rows suggest less."""
FINEST_TOLERANCE = 1e-15
"""Rounding of sums of numbers below 1: no search ends on less."""
SMALLEST_BANDWIDTH = 1e-5
"""Ten cells of the finest grid are about as wide."""
FEWEST_CELLS = 1 << 5
"""Of a grid: the eight nodes around a row must fit in."""
MOST_CELLS = 1 << 20
"""Of a grid, whose coefficients are then 8 MB."""


class Residuals(Protocol):
    """Residuals at their places on a scale, ready for any number of cells.

    Attributes
    ----------
    length : float
        Range of the scale that a grid covers.
    narrowest : float
        Bandwidths narrower than this tell nothing.
    guess : float
        A bandwidth below which the fixed point hardly lies.
    size : float
        About the mean absolute residual.
    """

    @property
    def length(self) -> float: ...
    @property
    def narrowest(self) -> float: ...
    @property
    def guess(self) -> float: ...
    @property
    def size(self) -> float: ...

    def spectrum(self, cells: int) -> Spectrum:
        """The residuals on a grid of so many cells, transformed."""

    def narrow(self, widest: float) -> None:
        """Leave no more room around the rows than bandwidths up to `widest` need."""

    def widen(self, bandwidth: float) -> bool:
        """Leave the room that a wider bandwidth needs; False where there is no more to be had."""

    def refine(self) -> bool:
        """Read the rows more exactly from now on; False where that cannot be done."""

    def cancelled(self) -> tuple[float, float, float] | None:
        """|Σ residuals|, Σ|their sums, prediction by prediction| and the rounding of both, if known."""


class FixedPoint(NamedTuple):
    """σ*, within how much of it the true one provably lies and below what, and the last evaluation."""

    value: float
    certificate: float
    high: float
    last: Evaluation
    evaluations: int


def solve(residuals: Residuals, *, tolerance: float) -> FixedPoint:
    """The fixed point, on a grid as fine as the tolerance asks for, or the data allow."""
    tolerance = max(tolerance, FINEST_TOLERANCE)
    cells = _cells_for(residuals, max(residuals.guess, SMALLEST_BANDWIDTH), tolerance)
    evaluations = 0
    while True:
        spectrum = residuals.spectrum(cells)
        fixed, coarse = _on_grid(spectrum, residuals, tolerance, evaluations)
        evaluations, last, certified = fixed.evaluations, fixed.last, fixed.certificate <= tolerance
        mirrored = spectrum.margin < math.inf and spectrum.mirrored(last.bandwidth) > tolerance / 16
        if mirrored and residuals.widen(last.bandwidth):
            cells = max(cells, _cells_for(residuals, last.bandwidth, tolerance))
            continue
        if not certified:
            exact = _where_residuals_cancel(residuals, fixed, tolerance)
            if exact is not None:
                return exact
        if cells >= MOST_CELLS or not (coarse or _worth_more_cells(last, tolerance)):
            if certified or not residuals.refine():
                return fixed
            continue
        residuals.narrow(fixed.high)
        aim = last.bandwidth * (0.5 if coarse else 0.97)
        cells = max(2 * cells, _cells_for(residuals, aim, tolerance))


def evaluate(residuals: Residuals, bandwidth: float, *, tolerance: float) -> Evaluation:
    """smECE at a bandwidth, on a grid as fine as the tolerance asks for, or the data allow."""
    tolerance = max(tolerance, FINEST_TOLERANCE)
    cells = _cells_for(residuals, bandwidth, tolerance)
    while True:
        spectrum = residuals.spectrum(cells)
        seen = spectrum.evaluate(bandwidth, tolerance=tolerance / 8)
        if cells < MOST_CELLS and _worth_more_cells(seen, tolerance):
            cells *= 2
        elif seen.error <= tolerance or not residuals.refine():
            return seen


def _cells_for(residuals: Residuals, bandwidth: float, tolerance: float) -> int:
    """Number of cells with which the bound on the interpolation is a quarter of the tolerance."""
    per_bandwidth = max(6.0, (4.0 * INTERPOLATION * residuals.size / tolerance) ** 0.125)
    wanted = per_bandwidth * min(residuals.length / bandwidth, 1.0 / SMALLEST_BANDWIDTH)
    if not wanted > FEWEST_CELLS:  # also where nothing is known
        return FEWEST_CELLS
    return min(MOST_CELLS, 1 << math.ceil(math.log2(wanted)))


def _worth_more_cells(seen: Evaluation, tolerance: float) -> bool:
    """True where the error that more cells would mend is too large, beside what they would not."""
    return seen.interpolation > max(tolerance / 4.0, 0.1 * seen.inherent)


def _on_grid(
    spectrum: Spectrum, residuals: Residuals, tolerance: float, evaluations: int
) -> tuple[FixedPoint, bool]:
    """The fixed point on one grid, and whether it lies below what that grid can tell."""
    transform, length = spectrum.transform, spectrum.length
    floor = max(SMALLEST_BANDWIDTH * length, residuals.narrowest)
    if transform.nodal < floor:
        return _vanishing(spectrum, floor, evaluations), False
    # smECE_σ never exceeds the mean absolute residual, so neither does σ*.
    start = min(START, spectrum.total_residual, 2.0 * residuals.guess)
    sigma, value, _, quadrature, rounding, more, coarse = transform.solve(
        length, start, floor, tolerance
    )
    last = spectrum.evaluated(sigma, value, quadrature, rounding)
    low, high = _within(spectrum, last)
    # Far below the width of a cell an evaluation proves little; a wider bandwidth may prove more.
    wider, proofs = sigma, [last]
    while high - low > tolerance and wider < 0.1 * length and last.error > 0.1 * wider:
        wider *= 2.0
        proofs.append(spectrum.evaluate(wider))
        low, high = _within(spectrum, *proofs)
    value = min(max(last.value, low), high)
    if last.value < sigma * (1 - 1e-9):  # stopped at the floor
        value = 0.5 * (low + high)
    certificate = max(high - value, value - low)
    evaluations += more + len(proofs) - 1
    return FixedPoint(value, certificate, high, last, evaluations), coarse


def _vanishing(spectrum: Spectrum, floor: float, evaluations: int) -> FixedPoint:
    """Fixed point near 0, where residuals cancel on the nodes: bounded by the grid alone."""
    proofs = [spectrum.at_most(floor * 2.0**k) for k in range(16)]
    low, high = _within(spectrum, *proofs)
    best = min(proofs, key=lambda seen: max(seen.bandwidth, seen.value + seen.error))
    return FixedPoint(0.5 * (low + high), 0.5 * (high - low), high, best, evaluations + 1)


def _within(spectrum: Spectrum, *proofs: Evaluation) -> tuple[float, float]:
    """Interval that holds σ*: smECE_σ falls with σ, so σ* lies between σ and smECE_σ, up to its error."""
    unknown = 0.0 if spectrum.spread is None else spectrum.spread.of_mean()
    unknown += spectrum.rounding + 4.0 * EPSILON * spectrum.cells
    low = max(
        abs(spectrum.transform.bias) - unknown, 0.0
    )  # no smECE is smaller than the mean residual
    high = 1.0  # no error exceeds 1, so an interval up to 1 says that the grid tells nothing
    for seen in proofs:
        sigma, value, error = seen.bandwidth, seen.value, seen.error
        low = max(low, min(sigma, value - error))
        high = min(high, max(sigma, value + error))
    return min(low, 1.0), high


def _where_residuals_cancel(
    residuals: Residuals, fixed: FixedPoint, tolerance: float
) -> FixedPoint | None:
    """σ* where residuals cancel wherever rows meet, which no grid can prove.

    It lies between the absolute mean of the residuals and the sum of their absolute sums, prediction by
    prediction: no kernel, on any scale, makes the former smaller or the latter larger.
    """
    if fixed.value > SMALLEST_BANDWIDTH + fixed.certificate:
        return None
    ends = residuals.cancelled()
    if ends is None or ends[1] > max(SMALLEST_BANDWIDTH, 2.0 * tolerance):
        return None
    low, high, rounding = ends
    proof = Evaluation(low, high, 0.0, 0.0, 0.0, rounding, rounding)
    low, high = max(low - rounding, 0.0), high + rounding
    return FixedPoint(0.5 * (low + high), 0.5 * (high - low), high, proof, 1)
