"""Rows on a real line of their own: smoothing on a scale, from arrays, as finely as asked for.

A sketch needs a grid that is the same for all data. Rows that are at hand can have one that fits them:
it starts where they start, and leaves out what lies in a gap too wide to be smoothed across.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.data.pairs import Pairs
from calibrant.data.scales import WIDTHS_OF_MARGIN, Scale
from calibrant.smoothing.nodes import LEVEL, BinningError, fold
from calibrant.smoothing.spectrum import Spectrum

__all__ = ["Line"]

Floats = NDArray[np.float64]


class Line:
    """Residuals of rows at their places on a scale, ready for any number of cells.

    Predictions at infinity (exactly 0 or 1 under a logit) stand alone, beyond all others, so that they
    add the absolute value of their summed residual and nothing else. On the probability scale the line
    ends at 0 and at 1, where the kernel is reflected, unless the rows lie too far away for that to show.

    Parameters
    ----------
    pairs : Pairs
        Checked rows.
    scale : Scale
        Where the rows lie.
    widest : float
        No bandwidth beyond this will be asked for.
    """

    def __init__(self, pairs: Pairs, scale: Scale, widest: float) -> None:
        weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight
        self.residual: Floats = (pairs.p - pairs.y) * weight / weight.sum()
        self.absolute = float(np.abs(self.residual).sum())
        z = _places(pairs, scale)
        self._order = np.argsort(z, kind="stable")
        self._sorted: Floats = z[self._order]
        self._reflected = scale.reflected
        self.narrow(widest)

    def narrow(self, widest: float) -> None:
        """Leave no more room at the ends and in gaps than bandwidths up to `widest` need."""
        self.widest = widest
        margin = WIDTHS_OF_MARGIN * widest
        with np.errstate(invalid="ignore"):  # neighbours at the same infinity
            gaps = np.nan_to_num(np.diff(self._sorted), nan=0.0, posinf=2.0 * margin)
        before = after = margin
        if self._reflected:
            before = min(margin, float(self._sorted[0]))
            after = min(margin, 1.0 - float(self._sorted[-1]))
        steps = np.concatenate([[0.0], np.cumsum(np.minimum(gaps, 2.0 * margin))])
        self.length = float(steps[-1]) + before + after
        self.position: Floats = np.empty_like(self._sorted)
        self.position[self._order] = (steps + before) / self.length

    def spectrum(self, cells: int) -> Spectrum:
        """Lay the residuals onto nodes to fourth order, and transform."""
        place = self.position * cells
        at = np.minimum(place.astype(np.int64), cells - 1)
        u, r = place - at, self.residual
        v = u * (1.0 - u)
        nodes = np.zeros(cells + 4)
        shares = (
            -v * (2.0 - u) / 6.0,
            (1.0 - u) + 0.5 * v * (1.0 - u),
            u + 0.5 * v * u,
            -v * (1.0 + u) / 6.0,
        )
        for shift, share in enumerate(shares):
            nodes += np.bincount(at + shift, share * r, minlength=cells + 4)
        rounding = 8.0 * float(np.finfo(float).eps)
        summands = self.residual.size
        error = BinningError(
            cells, self.absolute, 0.0, 0.0, 0.0, 0.0, LEVEL, rounding, summands=summands
        )
        return Spectrum.of_residuals(fold(nodes), error, self.length)


def _places(pairs: Pairs, scale: Scale) -> Floats:
    """z of each row; log-odds that came as such do not pass through probabilities."""
    if pairs.form == "logit" and scale.logits_per_unit is not None:
        return np.asarray(pairs.raw_prob, dtype=np.float64) / scale.logits_per_unit
    return scale.z(pairs.p)
