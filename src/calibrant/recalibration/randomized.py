"""Randomised post-processing κ of the paper: noise as wide as the bandwidth, then the regression."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, require_flag, require_seed
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch
from calibrant.errors import CalibrantError
from calibrant.inference.assess import assess
from calibrant.inference.assessment import UNDETECTED
from calibrant.measures.smooth_ece import smooth_ece_result
from calibrant.recalibration.learned_map import (
    Floats,
    Parts,
    Recalibrator,
    State,
    Training,
    register,
)
from calibrant.recalibration.smooth import SMALLEST_BANDWIDTH, regression_on_knots, scale_of

LEVEL = 0.05
"""Of the test that refuses predictions without a detected error."""
CELLS_OF_DISPLACEMENT = 1 << 10
"""Cells in which the mean displacement is summed, or as many as put 32 in a bandwidth."""


@register("randomized")
class RandomizedRecalibrator(Recalibrator):
    """κ(f) = μ̂(f + ση): add Gaussian noise, reflected into [0, 1], then take the smooth regression.

    On the rows it was learned from its expected calibration error is exactly 0: given the noisy
    prediction t, the mean outcome is μ̂(t). On fresh rows it falls like 1/√(nσ).

    Parameters
    ----------
    bandwidth : float, optional
        By default SmoothECE's own, σ* = smECE_σ*.
    random_state : int
        Seed of the noise: the same predictions in the same order give the same bytes.
    require_miscalibration : bool
        Refuse to fit where the test of calibration has p > 0.05. The noise of κ does harm to a model
        that is calibrated already: fresh error about σ* where there was none.
    scale : str or Scale
        Where the noise is added.

    Attributes
    ----------
    expected_displacement : float
        E|κ(f) - f| over the rows and the noise.
    displacement_bound : float
        smECE_σ + σ, which the theorem promises (for |·|, whatever the scale, where h' ≥ 1).

    Notes
    -----
    A row's noise is drawn by the seed, its prediction and the number of rows before it in the call that
    have the same one. So rows get the same noise in any order and however they are divided over calls
    and machines, scored one at a time for instance, as long as their predictions differ. Rows that share
    a prediction and come in separate calls share their noise as well, and the theorem is then about the
    distinct predictions: where these are few, transform all rows in one call.

    References
    ----------
    Błasiok and Nakkiran, *Smooth ECE*: (T13) and (T14) of the theory page. With a scale the theorem is
    printed for the distance on that scale, for which it is false; it holds for |κ(f) - f|.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> kappa = RandomizedRecalibrator().fit(p, rng.random(4000) < p**2)
    >>> kappa.expected_displacement <= kappa.displacement_bound
    True
    """

    exportable = False
    parts: ClassVar[Parts] = {
        "bandwidth": float,
        "scale": str,
        "values": np.ndarray,
        **dict.fromkeys(("displacement", "bound", "p_value"), float),
    }

    def __init__(
        self,
        bandwidth: float | None = None,
        random_state: int = 0,
        require_miscalibration: bool = True,
        scale: str | Scale = PROBABILITY.name,
    ) -> None:
        self.bandwidth = bandwidth
        self.random_state = random_state
        self.require_miscalibration = require_miscalibration
        self.scale = scale

    @property
    def expected_displacement(self) -> float:
        return float(self.state["displacement"])

    @property
    def displacement_bound(self) -> float:
        return float(self.state["bound"])

    def _learn(self, training: Training) -> State:
        require_seed(self.random_state, "random_state")
        require_flag("require_miscalibration", self.require_miscalibration)
        sketch = training.sketch(self.scale)
        measured = smooth_ece_result(sketch, bandwidth=self.bandwidth)
        p_value = assess(sketch).p_value
        if self.require_miscalibration and p_value > LEVEL:
            raise CalibrantError(
                f"{UNDETECTED.capitalize()} in these {training.points.n} rows (SmoothECE "
                f"{measured.value:.4f}, p = {p_value:.2g} > {LEVEL}): the noise of a randomised map would "
                "make calibrated predictions worse.",
                hint="Leave the predictions as they are, or pass `require_miscalibration=False`.",
            )
        sigma = max(measured.bandwidth, SMALLEST_BANDWIDTH * sketch.scale.length)
        _, values = regression_on_knots(sketch, sigma)
        return {
            "bandwidth": sigma,
            "scale": sketch.scale.name,
            "values": values,
            "displacement": _mean_displacement(sketch, sigma, values),
            "bound": measured.value + sigma,
            "p_value": p_value,
        }

    def _apply(self, p: Floats, state: State) -> Floats:
        scale, values = scale_of(self.scale, state), state["values"]
        position = scale.locate(p) + noise_of(p, self.random_state) * (
            state["bandwidth"] / scale.length
        )
        return np.interp(_inside(position, scale), np.linspace(0.0, 1.0, values.size), values)


def _inside(position: Floats, scale: Scale) -> Floats:
    """Positions, reflected into [0, 1] where the scale is."""
    return 1.0 - np.abs(1.0 - np.mod(position, 2.0)) if scale.reflected else position


def noise_of(p: Floats, seed: int) -> Floats:
    """Standard normal numbers, each a function of the seed, the prediction and its occurrence in `p`.

    Examples
    --------
    >>> p = np.array([0.2, 0.7, 0.2])
    >>> together, alone = noise_of(p, 0), noise_of(p[:1], 0)
    >>> bool(together[0] == alone[0] != together[2])
    True
    """
    from scipy.special import ndtri

    keys = generator(seed).integers(0, 1 << 64, (2, 1), dtype=np.uint64)
    bits = _mixed((p + 0.0).view(np.uint64) ^ keys[0])  # + 0.0: there are two zeros
    bits = _mixed(bits ^ _mixed(_occurrences(p).astype(np.uint64) ^ keys[1]))
    return np.asarray(ndtri(((bits >> np.uint64(11)) + 0.5) / (1 << 53)), dtype=np.float64)


def _occurrences(p: Floats) -> NDArray[np.int64]:
    """Number of rows before each one with its prediction."""
    order = np.argsort(p, kind="stable")
    place = np.arange(p.size)
    begins = np.concatenate([[True], np.diff(p[order]) > 0.0])
    occurrence = np.empty(p.size, dtype=np.int64)
    occurrence[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
    return occurrence


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Permutation of 64 bits in which each bit depends on all (the finaliser of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _mean_displacement(sketch: Sketch, bandwidth: float, values: Floats) -> float:
    """E|κ(f) - f|: rows on a grid as coarse as the bandwidth allows, and all of the noise."""
    scale = sketch.scale
    cells = CELLS_OF_DISPLACEMENT
    while cells < sketch.nodes and cells * bandwidth < 32 * scale.length:
        cells *= 2
    points = Points.of(sketch.rebin(min(cells, sketch.nodes)))
    place, weight = scale.locate(points.p), over_outcomes(points.mass) / points.total
    z = np.linspace(-6.0, 6.0, 193)
    chance = np.exp(-0.5 * z * z)
    chance /= chance.sum()
    knots = np.linspace(0.0, 1.0, values.size)
    total = 0.0
    for shift, share in zip(z * (bandwidth / scale.length), chance, strict=True):
        moved = np.interp(_inside(place + shift, scale), knots, values)
        total += share * float(weight @ np.abs(moved - points.p))
    return total
