"""SmoothECE without a grid, slowly and obviously: two methods that share nothing.

`smooth_error` adds up the reflected Gaussian kernels one by one and cuts [0, 1] into pieces until on each
piece the residual is proved to keep its sign, or to be monotone; then ∫|r| is a sum of differences of
error functions. `smooth_error_by_cosines` sums the cosine series term by term and looks for its roots.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

REACH = 9.5  # Gaussians end here: beyond lie 2e-21 of their mass
NEGLIGIBLE = 2e-16  # of the whole: the rounding of r itself
PEAK = 1.0 / np.sqrt(2.0 * np.pi)


class Kernels:
    """The kernels of all rows and of their mirror images, with their residuals as masses."""

    def __init__(self, y, p, bandwidth, weight=None):
        p, y = np.asarray(p, np.float64), np.asarray(y, np.float64)
        weight = np.ones(p.size) if weight is None else np.asarray(weight, np.float64)
        mass = weight / weight.sum() * (p - y)
        turns = np.arange(-np.ceil(1 + REACH * bandwidth), np.ceil(2 + REACH * bandwidth)) * 2.0
        places = np.concatenate([(p + t, t - p) for t in turns]).ravel()
        masses = np.tile(mass, places.size // mass.size)
        near = (places > -REACH * bandwidth) & (places < 1 + REACH * bandwidth)
        order = np.argsort(places[near], kind="stable")
        self.at, self.mass = places[near][order], masses[near][order]
        self.bandwidth, self.bias = float(bandwidth), abs(mass.sum())
        self.size = np.abs(mass).sum()

    def sums(self, of, *points):
        """Sum over kernels of mass times `of`(distances in bandwidths, mass), at sorted points."""
        s = self.bandwidth
        results = []
        for start in range(0, points[0].size, 128):
            part = [value[start : start + 128] for value in points]
            low = np.searchsorted(self.at, part[0].min() - (REACH + 1) * s)
            high = np.searchsorted(self.at, part[-1].max() + (REACH + 1) * s)
            distance = [(t[:, None] - self.at[None, low:high]) / s for t in part]
            results.append(of(*distance, self.mass[low:high]))
        return np.concatenate(results) if results else np.empty(0)

    def residual(self, t):
        return self.sums(lambda z, m: (density(z) * m).sum(axis=1) / self.bandwidth, t)

    def slope(self, t):
        return self.sums(lambda z, m: (-z * density(z) * m).sum(axis=1) / self.bandwidth**2, t)

    def bend(self, t, half):
        """A bound on the second derivative of the residual within `half` of t."""

        def envelope(z, m):
            z = np.maximum(np.abs(z) - half / self.bandwidth, 0.0)
            steepest = np.where(z < np.sqrt(3.0), PEAK, (z * z - 1.0) * density(z))
            return (steepest * np.abs(m)).sum(axis=1) / self.bandwidth**3

        return self.sums(envelope, t)

    def integral(self, low, high):
        def between(a, b, m):
            # Far tails are differenced where ndtr is small, so that nothing cancels.
            flip = np.where(a > 0, -1.0, 1.0)
            return ((ndtr(flip * b) - ndtr(flip * a)) * flip * m).sum(axis=1)

        return self.sums(between, low, high)


def density(z):
    return PEAK * np.exp(-0.5 * z * z)


def smooth_error(y, p, bandwidth, weight=None):
    """smECE at a bandwidth; wrong by rounding alone."""
    kernels = Kernels(y, p, bandwidth, weight)
    cells = int(np.ceil(2.0 / bandwidth)) + 4
    low = np.arange(cells) / cells
    width = 1.0 / cells
    pieces = []
    for _ in range(60):
        middle, half = low + width / 2, width / 2
        r, slope = kernels.residual(middle), kernels.slope(middle)
        bend = kernels.bend(middle, half)
        largest = np.abs(r) + half * np.abs(slope) + half**2 / 2 * bend
        signed = np.abs(r) > half * np.abs(slope) + half**2 / 2 * bend
        monotone = ~signed & (np.abs(slope) > half * bend)
        negligible = ~signed & (largest < NEGLIGIBLE * kernels.size)
        pieces.append(np.abs(kernels.integral(low[signed], low[signed] + width)))
        crossing = np.flatnonzero(monotone & ~negligible)
        roots = _roots(kernels, low[crossing], low[crossing] + width)
        pieces.append(np.abs(kernels.integral(low[crossing], roots)))
        pieces.append(np.abs(kernels.integral(roots, low[crossing] + width)))
        undecided = low[~(signed | monotone | negligible)]
        if undecided.size == 0:
            break
        width /= 2
        low = np.sort(np.concatenate([undecided, undecided + width]))
    else:
        raise AssertionError("the residual stays undecided")
    return float(np.concatenate(pieces).sum())


def _roots(kernels, low, high):
    """The root of a monotone residual in each interval, or the end nearest to it."""
    rises = kernels.residual(high) > kernels.residual(low)
    a, b = low.copy(), high.copy()
    for _ in range(52):
        middle = 0.5 * (a + b)
        above = (kernels.residual(middle) > 0) == rises
        a, b = np.where(above, a, middle), np.where(above, middle, b)
    return b


def fixed_point(y, p, weight=None):
    """The bandwidth that equals its own smooth error, at least 1e-6."""
    floor = max(Kernels(y, p, 1.0, weight).bias, 1e-6)
    if smooth_error(y, p, floor, weight) <= floor:
        return floor
    return brentq(lambda s: smooth_error(y, p, s, weight) - s, floor, 1.01, xtol=1e-13, rtol=1e-13)


def smooth_error_by_cosines(y, p, bandwidth, weight=None):
    """The same by the cosine series of the heat kernel and the roots of its sum."""
    p, y = np.asarray(p, np.float64), np.asarray(y, np.float64)
    weight = np.ones(p.size) if weight is None else np.asarray(weight, np.float64)
    mass = weight / weight.sum() * (p - y)
    k = np.arange(1, int(3.0 / bandwidth) + 2)
    damped = (
        2 * np.exp(-0.5 * (np.pi * k * bandwidth) ** 2) * (np.cos(np.pi * np.outer(k, p)) @ mass)
    )

    def residual(t):
        return mass.sum() + np.cos(np.pi * np.outer(np.atleast_1d(t), k)) @ damped

    def antiderivative(t):
        return mass.sum() * t + np.sin(np.pi * np.outer(t, k)) @ (damped / (np.pi * k))

    mesh = np.linspace(0, 1, int(64 / bandwidth) + 1)
    seen = residual(mesh)
    cuts = [0.0, 1.0]
    for j in np.flatnonzero(np.sign(seen[:-1]) * np.sign(seen[1:]) < 0):
        if min(abs(seen[j]), abs(seen[j + 1])) > 1e-13:
            cuts.append(brentq(lambda t: residual(t)[0], mesh[j], mesh[j + 1], xtol=1e-15))
        else:  # where the residual vanishes its sign is noise, and any point will do
            cuts.append(mesh[j])
    return float(np.abs(np.diff(antiderivative(np.sort(cuts)))).sum())
