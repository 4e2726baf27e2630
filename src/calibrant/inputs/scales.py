"""The scales on which predictions can be smoothed, each with the fixed grid that sketches share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError

__all__ = ["PROBABILITY", "Scale", "as_scale"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scale:
    """The plain probability scale: z = p on [0, 1], with the reflected Gaussian kernel.

    A scale maps a prediction to z = h(p), where the smoothing happens, and z to a position in [0, 1] on
    a grid that is the same for all data, or sketches could not be added.

    Attributes
    ----------
    name : str
        How the user asked for it, and how results and files name it.
    length : float
        The range of z that the grid covers: a bandwidth in units of z is `length` times wider than in
        units of the grid.
    steepness : float
        The most that the prediction changes per unit of z; part of the certificate.
    curvature : float
        The most that this slope changes per unit of z; part of the certificate.
    """

    name: str = "probability"
    length: float = 1.0
    steepness: float = 1.0
    curvature: float = 0.0

    def locate(self, p: Floats) -> Floats:
        """Positions in [0, 1] on the grid of the predictions `p`."""
        return p

    def prediction(self, position: Floats) -> Floats:
        """Predictions that stand at these positions of the grid (the inverse of `locate`)."""
        return position


PROBABILITY = Scale()


def as_scale(scale: str | Scale) -> Scale:
    """The scale of that name, or the scale itself.

    Examples
    --------
    >>> as_scale("probability").length
    1.0
    """
    if isinstance(scale, Scale):
        return scale
    if scale == PROBABILITY.name:
        return PROBABILITY
    raise InputError(f'`scale` must be "probability" or a Scale; got {scale!r}.')
