"""SmoothECE of tables where they lie: no table leaves the device, and the host waits for nothing.

The mathematics of `calibrant.smoothing` in tensor operations whose shapes and number do not depend on the
data, for all tables at once: residuals onto the nodes of the grid, one transform, then Newton's steps
towards the bandwidth that equals its own error.
"""

from __future__ import annotations

import math

import torch

from calibrant.data.cell_sums import FRACTION_BITS

__all__ = ["smooth_ece_of_tables"]

STEPS = 6
FINEST_MESH = 1 << 16
START = 0.1
NOISE_PER_ROW = 22.0
TINY = 1e-300
ENTRIES_PER_PART = 1 << 23


@torch.no_grad()  # type: ignore[untyped-decorator]
def smooth_ece_of_tables(
    counts: torch.Tensor, offsets: torch.Tensor, nodes: int, *, steps: int = STEPS
) -> torch.Tensor:
    """SmoothECE, rows and last step of each table: of counts[tables, 2 (nodes + 1)] and their offsets.

    The result is float64 [3, tables]: the SmoothECE, NaN where there are no rows; the number of rows; and
    the last step's share of the bandwidth. Steps square the distance to the fixed point: where the last
    one was short, nothing is left to go.

    Rows of one (cell, label) are known by number and mean. As in `calibrant.smoothing`, half of them are
    laid at the mean and half at both ends of the cell, and a single one at its place. A value below the
    width of a cell cannot be told from sums over cells: it is put in the middle of what it can be.
    """
    at_once = max(1, ENTRIES_PER_PART // nodes)
    parts = [
        _solve(counts[i : i + at_once], offsets[i : i + at_once], nodes, steps)
        for i in range(0, counts.shape[0], at_once)
    ]
    return torch.cat(parts, dim=1)


def _solve(counts: torch.Tensor, offsets: torch.Tensor, nodes: int, steps: int) -> torch.Tensor:
    rows = counts.sum(dim=1, keepdim=True).double()
    residuals = _on_nodes(counts, offsets, rows, nodes)
    series = _series(residuals, nodes)
    floor, mesh = 1.0 / nodes, series.shape[1] - 1
    waves = torch.arange(mesh + 1, dtype=torch.float64, device=counts.device)
    rates = -0.5 * (math.pi * waves) ** 2
    # No smECE is below the mean residual, and that of calibrated rows hardly below their noise.
    low = series[:, :1].abs().clamp(min=floor)
    noise = (NOISE_PER_ROW * rows).clamp(min=START**-3) ** (-1 / 3)
    sigma = torch.maximum(low, noise)
    state = torch.cat([sigma, low, torch.ones_like(sigma), sigma, sigma], dim=1)
    series = series / mesh  # a sum over the mesh is then an integral
    for _ in range(steps):
        damped = series * torch.exp(rates * state[:, :1] ** 2)
        state = _newton_step(torch.fft.irfft(damped, n=2 * mesh, norm="forward"), state, mesh)
    sigma, _, _, before, value = state.split(1, dim=1)
    below = (before == floor) & (value < floor)
    most = _absolute_sum(residuals).clamp(max=floor)  # no smoothing makes residuals larger
    settled = torch.where(below, 0.5 * (value + most), sigma)
    moved = torch.where(below, 0.0, (sigma / before - 1.0).abs())
    return torch.cat([torch.where(rows > 0.0, settled, torch.nan), rows, moved], dim=1).T


def _on_nodes(
    counts: torch.Tensor, offsets: torch.Tensor, rows: torch.Tensor, nodes: int
) -> torch.Tensor:
    """Residuals of each table, of which the sum is the mean residual, on the nodes 0 ... `nodes`.

    A mass goes to the four nodes around it, which keeps its first three moments: smECE at a bandwidth of
    x cells errs by at most 0.066 / x⁴ times the mean absolute residual.
    """
    table = counts.view(-1, nodes + 1, 2)
    weight = table.double()
    place = torch.arange(nodes + 2, dtype=torch.float64, device=counts.device) / nodes
    label = torch.arange(2, dtype=torch.float64, device=counts.device)
    u = offsets.view_as(table) / (weight.clamp(min=1.0) * (2.0**FRACTION_BITS / nodes))
    weight = weight / rows.clamp(min=1.0).unsqueeze(2)
    v = u * (1.0 - u)
    half = torch.where((table > 1) & (v > 0.0), 0.5 * weight, 0.0)
    ends = place.unsqueeze(1) - label
    point = (weight - half) * (ends[:-1] + u / nodes)
    inner, outer = point * (1.0 + 0.5 * v), point * v / 6.0
    masses = (
        -outer * (2.0 - u),
        (inner + half * ends[:-1]) * (1.0 - u),
        (inner + half * ends[1:]) * u,
        -outer * (1.0 + u),
    )
    laid = torch.zeros((table.shape[0], nodes + 4), dtype=torch.float64, device=counts.device)
    for first, mass in enumerate(masses):
        laid[:, first : first + nodes + 1] += mass[..., 0] + mass[..., 1]
    on_nodes = laid[:, 1 : nodes + 2]
    # What lies beyond an end is folded back, as the reflected kernel has it.
    on_nodes[:, 1] += laid[:, 0]
    on_nodes[:, -2] += laid[:, -2]
    return on_nodes


def _series(on_nodes: torch.Tensor, nodes: int) -> torch.Tensor:
    """Cosine coefficients of masses on the nodes, twice as many where those are few: they repeat themselves.

    So a mesh has two points to the narrowest bandwidth, where each of many tables has few nodes.
    """
    once = torch.fft.rfft(on_nodes, n=2 * nodes).real
    return once if nodes >= FINEST_MESH else torch.cat([once, once[:, :nodes].flip(1)], dim=1)


def _newton_step(r: torch.Tensor, state: torch.Tensor, mesh: int) -> torch.Tensor:
    """Next bandwidth of each table: from r over the mesh's cells, on [0, 1] and its mirror image.

    The state [tables, 5] has the bandwidth of r, between what is known to be too low and too high, and, on
    return, the bandwidth before and smECE there.

    |r| is summed by the trapezoidal rule, which is as good as exact where r keeps its sign. Where it goes
    from a to b and changes sign, that adds s/6 + ab/s, s = |a - b|: the first term of Euler and Maclaurin's
    formula, and two triangles in place of a trapezium. The derivative of smECE is -2 σ Σ |r'| over the
    zeros of r. smECE falls with the bandwidth, so the fixed point lies between the two.
    """
    left, right = r[:, :mesh], r[:, 1 : mesh + 1]
    apart, product = (left - right).abs(), left * right
    crossing = (left > 0.0) != (right > 0.0)  # a zero on a node belongs to one of its two cells
    slopes = _absolute_sum(torch.where(crossing, apart, 0.0))
    triangles = _absolute_sum(torch.where(crossing, product / apart, 0.0))  # none is positive
    value = 0.5 * _absolute_sum(r) + slopes / 6.0 - triangles
    sigma, low, high = state[:, :3].split(1, dim=1)
    low = torch.maximum(low, torch.minimum(value, sigma))
    high = torch.minimum(high, torch.maximum(value, sigma))
    ratio = value.clamp(min=TINY) / sigma
    steepness = ratio + 2.0 * mesh**2 * slopes * sigma
    following = torch.clamp(sigma * ratio ** (ratio / steepness), low, high)
    return torch.cat([following, low, high, sigma, value], dim=1)


def _absolute_sum(values: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(values, ord=1, dim=1, keepdim=True)
