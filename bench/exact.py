"""SmoothECE without a grid: slow, exact to rounding, and independent of calibrant.

The coefficients of the cosine series are plain sums over the rows, the series is integrated between
its zeros, which are bracketed on a fine mesh and refined, and the fixed point is found by a bracketed
search. Nothing here is shared with the package.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Floats = NDArray[np.float64]

_SMALLEST = 1e-3
_VANISHING = 8.7
_MESH_PER_BANDWIDTH = 40
_NOISE = 1e-13
_RUN = 64
_BLOCK = 1 << 16


class Exact:
    """smECE of some rows at any bandwidth, and its fixed point."""

    def __init__(self, y: Floats, p: Floats) -> None:
        y, p = np.asarray(y, dtype=np.float64), np.asarray(p, dtype=np.float64)
        self._p, where = np.unique(p, return_inverse=True)
        self._mass = np.bincount(where, weights=p - y) / p.size
        self._c = np.zeros(0)

    def _coefficients(self, count: int) -> Floats:
        """E[(p - y) cos(πkp)] for k < count; more are added when a smaller bandwidth needs them."""
        have = self._c.size
        if count > have:
            wanted = -(-count // _RUN) * _RUN
            more = np.zeros(wanted - have)
            for start in range(0, self._p.size, _BLOCK):
                block = slice(start, start + _BLOCK)
                more += _cosine_sums(np.pi * self._p[block], self._mass[block], have, wanted)
            self._c = np.concatenate([self._c, more])
        return self._c[:count]

    def at(self, bandwidth: float) -> float:
        """∫ |r_σ|."""
        count = int(_VANISHING / (np.pi * bandwidth)) + 2
        k = np.arange(count)
        c = self._coefficients(count) * np.exp(-0.5 * (np.pi * bandwidth * k) ** 2)
        c[1:] *= 2

        def r(t: Floats) -> Floats:
            return np.cos(np.pi * np.multiply.outer(t, k)) @ c

        def integral(t: Floats) -> Floats:
            return c[0] * t + np.sin(np.pi * np.multiply.outer(t, k[1:])) @ (
                c[1:] / (np.pi * k[1:])
            )

        mesh = np.linspace(0.0, 1.0, int(_MESH_PER_BANDWIDTH / bandwidth) + 1)
        value = np.concatenate([r(part) for part in np.array_split(mesh, mesh.size // 256 + 1)])
        # Far from every prediction r is rounding noise: its signs there mean nothing.
        known = np.flatnonzero(np.abs(value) >= _NOISE * np.abs(c).sum())
        change = np.flatnonzero(np.sign(value[known[1:]]) != np.sign(value[known[:-1]]))
        zeros = [brentq(r, mesh[known[i]], mesh[known[i + 1]], xtol=1e-15) for i in change]
        cuts = np.concatenate([[0.0], zeros, [1.0]])
        return float(np.abs(np.diff(integral(cuts))).sum())

    def fixed_point(self) -> float:
        """The bandwidth that equals its own smECE: the paper's SmoothECE."""
        high = 1.0
        while self.at(high / 2) <= high / 2:
            high /= 2
            if high < _SMALLEST:
                raise ValueError(f"the fixed point lies under {_SMALLEST}, where this is too slow")
        return float(brentq(lambda s: self.at(s) - s, high / 2, high, xtol=1e-13, rtol=1e-13))


def _cosine_sums(angle: Floats, mass: Floats, first: int, last: int) -> Floats:
    """Σ mass cos(k angle) for first ≤ k < last, by recurrence, restarted before rounding grows."""
    sums = np.zeros(last - first)
    twice = 2 * np.cos(angle)
    for start in range(first, last, _RUN):
        now, before = np.cos(start * angle), np.cos((start - 1) * angle)
        for k in range(start, min(start + _RUN, last)):
            sums[k - first] = mass @ now
            now, before = twice * now - before, now
    return sums


def exact_smooth_ece(y: Floats, p: Floats) -> float:
    """The exact SmoothECE of rows."""
    return Exact(y, p).fixed_point()


def exact_binned_ece(y: Floats, p: Floats, bins: int, *, span: str = "unit") -> tuple[float, float]:
    """ECE over bins of equal width, with the edges in the upper bin and in the lower bin.

    Packages differ in where a prediction on an edge goes; on tenths that matters, and both are right.
    """
    low, high = (0.0, 1.0) if span == "unit" else (float(p.min()), float(p.max()))
    edges = low + (high - low) * np.arange(1, bins) / bins
    residual = np.asarray(p, dtype=np.float64) - y
    both = []
    for right in (False, True):
        where = np.digitize(p, edges, right=right)
        both.append(float(np.abs(np.bincount(where, weights=residual)).sum() / len(p)))
    return both[0], both[1]
