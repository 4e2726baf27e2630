"""The bandwidth that equals its own error: σ* = smECE_σ* (Błasiok & Nakkiran, Definition 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.smoothing.spectrum import Evaluation, Spectrum

__all__ = ["FixedPoint", "solve"]

START = 0.1
SMALLEST_BANDWIDTH = 1e-5
CONVERGED = 1e-13
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


def solve(spectrum: Spectrum, *, tolerance: float) -> FixedPoint:
    """Bracketed Newton steps on log smECE_σ - log σ, then the proof.

    smECE_σ falls with σ, so σ* lies between σ and smECE_σ at every σ that was evaluated, up to the
    proved error of the evaluation. The certificate is what all these intervals have in common.
    """
    floor = max(SMALLEST_BANDWIDTH, 1.0 / spectrum.error.cells) * spectrum.length
    low, high = max(floor, abs(spectrum.bias)), np.inf
    sigma = max(START, low)
    proofs: list[Evaluation] = []
    for _ in range(MOST_STEPS):
        seen = spectrum.evaluate(sigma)
        proofs.append(seen)
        if abs(seen.value - sigma) <= CONVERGED + 1e-12 * sigma:
            break
        if seen.value > sigma:
            low, high = max(low, sigma), min(high, seen.value)
        elif sigma <= floor or (seen.slope == 0.0 and sigma <= low):
            break
        else:
            low, high = max(low, seen.value), min(high, sigma)
        sigma = _next(seen, low, high)
    refined = spectrum.evaluate(sigma, tolerance=tolerance / 8)
    return _certified(spectrum, [*proofs, refined], tolerance)


def _next(seen: Evaluation, low: float, high: float) -> float:
    """The Newton step, or an end or the middle of the bracket where it would leave it."""
    if seen.value <= 0.0:
        return low
    relative_slope = seen.slope * seen.bandwidth / seen.value
    step = np.log(seen.value / seen.bandwidth) / (1.0 - relative_slope)
    sigma = seen.bandwidth * float(np.exp(step))
    if sigma <= low:
        return low
    return sigma if sigma < high else float(np.sqrt(low * high))


def _certified(spectrum: Spectrum, proofs: list[Evaluation], tolerance: float) -> FixedPoint:
    last = proofs[-1]
    low, high = _common_interval(spectrum, proofs)
    # Far below the width of a cell an evaluation proves little; a wider bandwidth may prove more.
    wider = last.bandwidth
    while high - low > tolerance and wider < 0.1 * spectrum.length and last.error > 0.1 * wider:
        wider *= 2.0
        proofs.append(spectrum.evaluate(wider))
        low, high = _common_interval(spectrum, proofs)
    value = float(np.clip(last.value, low, high))
    if last.value < last.bandwidth * (1 - 1e-9):  # stopped at the floor
        value = 0.5 * (low + high)
    return FixedPoint(value, low, high, last, len(proofs))


def _common_interval(spectrum: Spectrum, proofs: list[Evaluation]) -> tuple[float, float]:
    slack = spectrum.error.position + 1e-15
    lows = [min(seen.bandwidth, seen.value - seen.error) for seen in proofs]
    highs = [max(seen.bandwidth, seen.value + seen.error) for seen in proofs]
    return float(max(abs(spectrum.bias) - slack, *lows, 0.0)), float(min(highs))
