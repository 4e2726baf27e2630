"""The scales on which predictions can be smoothed, each with the fixed grid that sketches share.

The paper's general metrics, (T16) of the theory page, measure the distance of two predictions as
|h(u) - h(v)| for an increasing h. On such a scale the smoothing is that of the plain Gaussian on the real
line; on the probability scale it is that of the Gaussian reflected at 0 and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import nearest, require_choice, require_number, require_share
from calibrant.errors import InputError, invalid

Floats = NDArray[np.float64]
Map = Callable[[Floats], Floats]

LOGIT_LIMIT = 30.0
"""Logits are clipped there, infinities too: the error is at most 2 exp(-(30 - 9 bandwidth))."""
EXTREME = 1e-13
"""Prediction at which a scale that is infinite at 0 and 1 is clipped: the last with three digits near 1."""
WIDTHS_OF_MARGIN = 9.0
"""A Gaussian leaves 2e-19 of its mass beyond 9 bandwidths."""
LONGEST_GRID = 1000.0
"""Beyond, 65,536 cells are wider than bandwidths of a hundredth."""
_CHECKPOINTS = np.unique(
    np.concatenate(
        [
            [1e-12, 1e-9, 1e-6, 1 - 1e-6, 1 - 1e-9],
            np.linspace(0, 1, 257)[1:-1],
            np.arange(1, 2000)
            * ((np.sqrt(5.0) - 1.0) / 2.0)
            % 1.0,  # uneven, or a wave could hide between them
        ]
    )
)


def _identity(p: Floats) -> Floats:
    return p


@dataclass(frozen=True)
class Logit:
    """p -> factor · log(p / (1 - p)), infinite at the ends."""

    factor: float = 1.0

    def __call__(self, p: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            z: Floats = self.factor * (np.log(p) - np.log1p(-p))
        return z


@dataclass(frozen=True)
class Logistic:
    """The inverse of `Logit`, without overflow."""

    factor: float = 1.0

    def __call__(self, z: Floats) -> Floats:
        from scipy.special import expit

        p: Floats = expit(z / self.factor)
        return p


def _boosting(p: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        z: Floats = (2.0 * p - 1.0) / np.sqrt(p * (1.0 - p))
    return z


def _inverse_boosting(z: Floats) -> Floats:
    """½ (1 + z / √(z² + 4)), written so that small probabilities keep their digits."""
    small: Floats = 2.0 / (z * z + 4.0 + np.abs(z) * np.sqrt(z * z + 4.0))
    return np.where(z > 0, 1.0 - small, small)


MAPS: dict[str, tuple[Map, Map]] = {
    "probability": (_identity, _identity),
    "unreflected": (_identity, _identity),
    "logit": (Logit(), Logistic()),
    "logit/4": (Logit(0.25), Logistic(0.25)),
    "boosting": (_boosting, _inverse_boosting),
}


@dataclass(frozen=True)
class Scale:
    """Increasing map h of predictions: z = h(p) is where distances are measured.

    A position on the grid is z, clipped to fixed limits, between 0 and 1. The limits are the same
    for all data, or sketches could not be added.

    Parameters
    ----------
    forward, inverse : callable
        h and its inverse, on float64 arrays; h must increase strictly and may be infinite at 0 and
        1.
    name : str
        How results name it: none of the names that `as_scale` knows. A scale of your own cannot be read
        back from a file by its name.
    widest : float
        The widest bandwidth for which the grid leaves room. Beyond it, the mass that the ends
        reflect is part of the certificate.

    Attributes
    ----------
    slopes : tuple of float
        Bounds on the first four derivatives of the prediction in z, part of the certificate. For a scale
        of your own they are found by sampling.

    Examples
    --------
    >>> cube = Scale(lambda p: p**3, lambda z: np.cbrt(z), name="cube")
    >>> cube
    Scale('cube')
    >>> from calibrant.data.scales import as_scale
    >>> as_scale("logit").z(np.array([0.5, 1.0]))
    array([ 0., inf])
    """

    forward: Map = field(repr=False)
    inverse: Map = field(repr=False)
    name: str = field(default="custom", kw_only=True)
    widest: float = field(default=1.0, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        for name in ("forward", "inverse"):
            if not callable(getattr(self, name)):
                raise InputError(f"`{name}` must be a function of an array.")
        if not isinstance(self.name, str):
            raise invalid("name", "be text", self.name)
        require_number("widest", self.widest, 0.0)
        # Names stand for scales in files and decide about reflection, so each has one meaning.
        known = MAPS.get(self.name, (self.forward, self.inverse))
        relative = self.name.partition(":")[0] == "relative" and not isinstance(self.forward, Logit)
        if relative or known != (self.forward, self.inverse):
            raise InputError(f"`name` must be your own; {self.name!r} is taken.")
        z = np.asarray(self.forward(_CHECKPOINTS), dtype=np.float64)
        if z.shape != _CHECKPOINTS.shape or not np.all(np.diff(z) > 0):
            raise InputError(f"`forward` of {self.name!r} must increase.")
        wrong = ~(np.abs(np.asarray(self.inverse(z)) - _CHECKPOINTS) < 1e-6)
        if wrong.any():
            at = f"{_CHECKPOINTS[np.argmax(wrong)]:.6g}"
            message = f"`inverse` of {self.name!r} must undo `forward`; at p = {at} it does not."
            raise InputError(message)

    def __repr__(self) -> str:
        return f"Scale({self.name!r})"

    @property
    def reflected(self) -> bool:
        """True where the kernel is reflected at 0 and 1: on the probability scale alone."""
        return self.name == "probability"

    @property
    def logits_per_unit(self) -> float | None:
        """1 / factor where z = factor · logit: logits then need not pass through p."""
        return 1.0 / self.forward.factor if isinstance(self.forward, Logit) else None

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Ends at which z is clipped."""
        if isinstance(self.forward, Logit):
            return -LOGIT_LIMIT * self.forward.factor, LOGIT_LIMIT * self.forward.factor
        with np.errstate(all="ignore"):
            ends = np.asarray(self.forward(np.array([0.0, 1.0])), dtype=np.float64)
        inner = np.asarray(self.forward(np.array([EXTREME, 1.0 - EXTREME])), dtype=np.float64)
        low, high = np.where(np.isfinite(ends), ends, inner)
        return float(low), float(high)

    @cached_property
    def margin(self) -> float:
        """Room that the grid leaves on either side, in units of z."""
        return 0.0 if self.reflected else WIDTHS_OF_MARGIN * self.widest

    @cached_property
    def length(self) -> float:
        """The range of z that the grid covers."""
        return self.limits[1] - self.limits[0] + 2.0 * self.margin

    @property
    def has_grid(self) -> bool:
        """True where a grid of fixed length can serve; elsewhere measures take arrays only."""
        return self.length <= LONGEST_GRID

    @cached_property
    def slopes(self) -> tuple[float, float, float, float]:
        if self.forward is _identity:
            return 1.0, 0.0, 0.0, 0.0
        if isinstance(self.forward, Logit):
            f = self.forward.factor
            return 0.25 / f, float(np.sqrt(3.0) / 18.0 / f**2), 0.125 / f**3, 0.12769 / f**4

        def sampled(order: int, points: int) -> float:
            z, step = np.linspace(*self.limits, points, retstep=True)
            p = np.asarray(self.inverse(z), dtype=np.float64)
            return float(np.max(np.abs(np.diff(p, order)))) / float(step) ** order

        fine, coarse = 1 << 16, 1 << 12  # third differences of fine steps would drown in rounding
        return sampled(1, fine), sampled(2, fine), sampled(3, coarse), sampled(4, coarse)

    def z(self, p: Floats) -> Floats:
        """Predictions on the scale; infinite where the scale is."""
        return p if self.forward is _identity else np.asarray(self.forward(p), dtype=np.float64)

    def locate(self, p: Floats) -> Floats:
        """Positions in [0, 1] on the grid of the predictions `p`; NaN stays NaN."""
        # What lies outside [0, 1] must reach the loop that refuses it, not a warning about logarithms.
        inside = (p >= 0.0) & (p <= 1.0)
        return p if self.reflected else self._position(self.z(np.where(inside, p, np.nan)))

    def locate_logits(self, logits: Floats) -> Floats:
        """Positions on the grid of predictions given as log-odds."""
        from scipy.special import expit

        if self.logits_per_unit is None:
            return self.locate(expit(logits))
        return self._position(logits / self.logits_per_unit)

    def prediction(self, position: Floats) -> Floats:
        """Predictions that stand at these positions of the grid (the inverse of `locate`)."""
        if self.reflected:
            return position
        z = self.limits[0] - self.margin + position * self.length
        if isinstance(self.inverse, Logistic) or self.inverse is _identity:
            return self.inverse(z)
        # Straight on beyond the limits: mass near one is shared with nodes there, and a kink would
        # break the bound on the curvature.
        inside = np.clip(z, *self.limits)
        step = 1e-6 * (self.limits[1] - self.limits[0])
        ends = np.array(self.limits)
        slopes = np.abs(self.inverse(ends) - self.inverse(ends + np.array([step, -step]))) / step
        beyond = (z - inside) * np.where(z < self.limits[0], *slopes)
        return np.asarray(self.inverse(inside), dtype=np.float64) + beyond

    def _position(self, z: Floats) -> Floats:
        if not self.has_grid:
            message = f"`scale` is too steep for a grid, so it has no sketch; {self.name!r} spans "
            hint = "Of arrays `calibrant.smooth_ece` takes it; for all else choose another scale."
            raise InputError(f"{message}{self.length:.3g}.", hint=hint)
        position: Floats = (np.clip(z, *self.limits) - self.limits[0] + self.margin) / self.length
        return position


PROBABILITY = Scale(*MAPS["probability"], name="probability")


def as_scale(scale: str | Scale, *, base_rate: float | None = None) -> Scale:
    """Scale of that name, or the scale itself; "relative" is made for this base rate.

    Examples
    --------
    >>> as_scale("probability").length
    1.0
    >>> as_scale("relative", base_rate=0.002)
    Scale('relative:0.002')
    """
    if isinstance(scale, Scale):
        return scale
    if not isinstance(scale, str):
        raise invalid("scale", "be a name or a Scale", scale)
    relative = scale == "relative" and base_rate is not None
    return relative_scale(base_rate) if relative else _named(scale)  # type: ignore[arg-type]


@cache
def _named(name: str) -> Scale:
    if name in MAPS:
        return PROBABILITY if name == PROBABILITY.name else Scale(*MAPS[name], name=name)
    kind, _, rate = name.partition(":")
    if kind == "relative":
        with suppress(ValueError):
            return relative_scale(float(rate))
    rule = (
        f"be a Scale, or one of {', '.join(MAPS)}, relative:RATE with a base rate between 0 and 1"
    )
    raise invalid("scale", rule, name, nearest(name, MAPS))


def name_for_file(scale: Scale, what: str, hint: str) -> str:
    """Name under which a file holds the scale of `what`, refused where it could not be read again.

    Examples
    --------
    >>> name_for_file(as_scale("logit"), "a sketch", "")
    'logit'
    """
    try:
        known = as_scale(scale.name) == scale
    except InputError:
        known = False
    if not known:
        message = f"`scale` must be one that calibrant knows by name, to write {what} to a file; "
        raise InputError(f"{message}{scale.name!r} is your own.", hint=hint)
    return scale.name


def relative_scale(base_rate: float) -> Scale:
    """π(1-π) · logit with π the base rate: a scale whose errors read as those of a rare event.

    Near the base rate one unit of it is one unit of probability, so that an error of 0.001 means
    the same as on the probability scale where events of rate 0.002 live, and far less near ½.

    Examples
    --------
    >>> relative_scale(0.002).length < 2
    True
    """
    rate = require_share("base_rate", base_rate)
    factor = rate * (1.0 - rate)
    return Scale(
        Logit(factor),
        Logistic(factor),
        name=f"relative:{rate!r}",
        widest=min(1.0, 40.0 * factor),
    )


def loss_scale(
    loss: Literal["squared", "log", "exponential"] | Map, inverse: Map | None = None
) -> Scale:
    """Scale of a proper loss: h = φ', the slope of its convex potential φ.

    Parameters
    ----------
    loss : {"squared", "log", "exponential"} or callable
        A loss by name, or φ' itself.
    inverse : callable
        The inverse of φ', where that was given.

    Examples
    --------
    >>> loss_scale("log")
    Scale('logit')
    """
    if callable(loss):
        return Scale(loss, inverse, name="loss")  # type: ignore[arg-type]  # which refuses None
    names = {"squared": "unreflected", "log": "logit", "exponential": "boosting"}
    require_choice("loss", loss, tuple(names))
    return as_scale(names[loss])
