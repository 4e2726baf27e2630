"""The bandwidth that equals its own error: σ* = smECE_σ*, after Błasiok and Nakkiran."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from calibrant.smoothing.spectrum import INTERPOLATION, Evaluation, Spectrum

__all__ = ["FixedPoint", "Residuals", "evaluate", "solve"]

START = 0.1
SMALLEST_BANDWIDTH = 1e-5
FEWEST_CELLS = 1 << 5
MOST_CELLS = 1 << 20


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
    """σ* with the interval that provably holds it, and the evaluation that settled it."""

    value: float
    low: float
    high: float
    last: Evaluation
    evaluations: int

    @property
    def certificate(self) -> float:
        """The true σ* lies within this of `value`."""
        return max(self.high - self.value, self.value - self.low)


def solve(residuals: Residuals, *, tolerance: float) -> FixedPoint:
    """The fixed point, on a grid as fine as the tolerance asks for, or the data allow."""
    cells = _cells_for(residuals, max(residuals.guess, SMALLEST_BANDWIDTH), tolerance)
    evaluations = 0
    while True:
        spectrum = residuals.spectrum(cells)
        fixed, coarse = _on_grid(spectrum, residuals, tolerance, evaluations)
        evaluations, last, certified = fixed.evaluations, fixed.last, fixed.certificate <= tolerance
        mirrored = spectrum.error.mirrored(last.bandwidth / spectrum.length)
        if mirrored > tolerance / 16 and residuals.widen(last.bandwidth):
            cells = max(cells, _cells_for(residuals, last.bandwidth, tolerance))
            continue
        if not certified:
            exact = _where_residuals_cancel(residuals, fixed, tolerance)
            if exact is not None:
                return exact
        if cells >= MOST_CELLS or not (coarse or _worth_more_cells(spectrum, last, tolerance)):
            if certified or not residuals.refine():
                return fixed
            continue
        residuals.narrow(fixed.high)
        aim = last.bandwidth * (0.5 if coarse else 0.97)
        cells = max(2 * cells, _cells_for(residuals, aim, tolerance))


def evaluate(residuals: Residuals, bandwidth: float, *, tolerance: float) -> Evaluation:
    """smECE at a bandwidth, on a grid as fine as the tolerance asks for, or the data allow."""
    cells = _cells_for(residuals, bandwidth, tolerance)
    while True:
        spectrum = residuals.spectrum(cells)
        seen = spectrum.evaluate(bandwidth, tolerance=tolerance / 8)
        if cells < MOST_CELLS and _worth_more_cells(spectrum, seen, tolerance):
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


def _worth_more_cells(spectrum: Spectrum, seen: Evaluation, tolerance: float) -> bool:
    """True where the error that more cells would mend is too large, beside what they would not."""
    if seen.binning <= tolerance / 4.0:
        return False
    error, width = spectrum.error, seen.bandwidth / spectrum.length
    return error.interpolation(width) > max(tolerance / 4.0, 0.1 * error.inherent(width))


def _on_grid(
    spectrum: Spectrum, residuals: Residuals, tolerance: float, evaluations: int
) -> tuple[FixedPoint, bool]:
    """The fixed point on one grid, and whether it lies below what that grid can tell."""
    transform, length = spectrum.transform, spectrum.length
    floor = max(SMALLEST_BANDWIDTH * length, residuals.narrowest)
    if transform.nodal < floor:
        return _vanishing(spectrum, floor, evaluations), False
    # smECE_σ never exceeds the mean absolute residual, so neither does σ*.
    start = min(START, spectrum.error.total_residual, 2.0 * residuals.guess)
    sigma, value, _, quadrature, rounding, more, coarse = transform.solve(
        length, start, floor, tolerance
    )
    last = spectrum.evaluated(sigma, value, quadrature, rounding)
    return _certified(spectrum, last, tolerance, evaluations + more), coarse


def _vanishing(spectrum: Spectrum, floor: float, evaluations: int) -> FixedPoint:
    """Fixed point near 0, where residuals cancel on the nodes: bounded by the grid alone."""
    proofs = [spectrum.at_most(floor * 2.0**k) for k in range(16)]
    low, high = _within(spectrum, *proofs)
    best = min(proofs, key=lambda seen: max(seen.bandwidth, seen.value + seen.error))
    return FixedPoint(0.5 * (low + high), low, high, best, evaluations + 1)


def _certified(
    spectrum: Spectrum, last: Evaluation, tolerance: float, evaluations: int
) -> FixedPoint:
    """smECE_σ falls with σ, so σ* lies between σ and smECE_σ, up to the proved error of the latter."""
    low, high = _within(spectrum, last)
    # Far below the width of a cell an evaluation proves little; a wider bandwidth may prove more.
    wider, proofs = last.bandwidth, [last]
    while high - low > tolerance and wider < 0.1 * spectrum.length and last.error > 0.1 * wider:
        wider *= 2.0
        proofs.append(spectrum.evaluate(wider))
        low, high = _within(spectrum, *proofs)
    value = min(max(last.value, low), high)
    if last.value < last.bandwidth * (1 - 1e-9):  # stopped at the floor
        value = 0.5 * (low + high)
    return FixedPoint(value, low, high, last, evaluations + len(proofs) - 1)


def _within(spectrum: Spectrum, *proofs: Evaluation) -> tuple[float, float]:
    """Interval that holds σ* by all of these evaluations."""
    low = max(abs(spectrum.bias) - spectrum.bias_error, 0.0)
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
    proof = Evaluation(low, high, 0.0, 0.0, rounding)
    return FixedPoint(0.5 * (low + high), max(low - rounding, 0.0), high + rounding, proof, 1)
