"""The bandwidth that equals its own error: σ* = smECE_σ*, after Błasiok and Nakkiran."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.smoothing.spectrum import Evaluation, Spectrum

__all__ = ["FixedPoint", "solve"]

START = 0.1
SMALLEST_BANDWIDTH = 1e-5
ONE_STEP_AWAY = 1e-6
"""A Newton step squares the relative distance: from here it leads to the last digit."""
MOST_STEPS = 60


@dataclass(frozen=True)
class FixedPoint:
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


def solve(spectrum: Spectrum, *, tolerance: float, widest: float = np.inf) -> FixedPoint:
    """Bracketed Newton steps on log smECE_σ - log σ, then the proof.

    `widest` is a bandwidth that σ* is known not to exceed.

    smECE_σ falls with σ, so σ* lies between σ and smECE_σ at every σ that was evaluated, up to the
    proved error of the evaluation. The certificate is what all these intervals have in common.
    """
    floor = max(SMALLEST_BANDWIDTH, 1.0 / spectrum.error.cells) * spectrum.length
    if spectrum.nodal < floor:
        return _vanishing(spectrum, floor)
    low, high = max(floor, abs(spectrum.bias)), np.inf
    # smECE_σ never exceeds the mean absolute residual, so neither does σ*.
    sigma = max(min(START, widest, spectrum.error.total_residual), low)
    tried = 0
    while tried < MOST_STEPS:
        tried += 1
        value, slope = spectrum.value_and_slope(sigma)
        if abs(value - sigma) <= ONE_STEP_AWAY * sigma:
            sigma = max(floor, sigma + (value - sigma) / (1.0 - slope))
            break
        if value > sigma:
            low, high = max(low, sigma), min(high, value)
        elif sigma <= floor or (slope == 0.0 and sigma <= low):
            break
        else:
            low, high = max(low, value), min(high, sigma)
        sigma = _next(sigma, value, slope, low, high)
    last = spectrum.evaluate(sigma, tolerance=tolerance / 8)
    return _certified(spectrum, last, tolerance, widest, tried)


def _vanishing(spectrum: Spectrum, floor: float) -> FixedPoint:
    """Where residuals cancel on the nodes, the grid alone says how far from 0 the value can be."""
    proofs = [spectrum.at_most(floor * 2.0**k) for k in range(16)]
    low, high = _common_interval(spectrum, proofs)
    best = min(proofs, key=lambda seen: max(seen.bandwidth, seen.value + seen.error))
    return FixedPoint(0.5 * (low + high), low, high, best, 1)


def _next(sigma: float, value: float, slope: float, low: float, high: float) -> float:
    """The Newton step, or an end or the middle of the bracket where it would leave it."""
    if value <= 0.0:
        return low
    step = np.log(value / sigma) / (1.0 - slope * sigma / value)
    following = sigma * float(np.exp(step))
    if following <= low:
        return low
    return following if following < high else float(np.sqrt(low * high))


def _certified(
    spectrum: Spectrum, last: Evaluation, tolerance: float, widest: float, tried: int
) -> FixedPoint:
    proofs = [last]
    low, high = _common_interval(spectrum, proofs)
    # Far below the width of a cell an evaluation proves little; a wider bandwidth may prove more.
    wider = last.bandwidth
    most = min(widest, 0.1 * spectrum.length)
    while high - low > tolerance and wider < most and last.error > 0.1 * wider:
        wider *= 2.0
        proofs.append(spectrum.evaluate(wider))
        low, high = _common_interval(spectrum, proofs)
    value = float(np.clip(last.value, low, high))
    if last.value < last.bandwidth * (1 - 1e-9):  # stopped at the floor
        value = 0.5 * (low + high)
    return FixedPoint(value, low, high, last, tried + len(proofs))


def _common_interval(spectrum: Spectrum, proofs: list[Evaluation]) -> tuple[float, float]:
    slack = spectrum.bias_error
    lows = [min(seen.bandwidth, seen.value - seen.error) for seen in proofs]
    highs = [max(seen.bandwidth, seen.value + seen.error) for seen in proofs]
    low = max(abs(spectrum.bias) - slack, *lows, 0.0)
    # No error exceeds 1, so an interval up to 1 says that the grid tells nothing.
    return float(min(low, 1.0)), float(min(1.0, *highs))
