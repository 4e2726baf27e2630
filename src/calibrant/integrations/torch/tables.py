"""Tensors into integer tables, and SmoothECE of these, on the device where they lie.

A table has a slot for each (group, cell, label) and one for each reason to refuse a row; see `calibrant.data`
for cells and offsets. Shapes and types are refused here; nothing depends on values: the host never waits.

SmoothECE is that of `calibrant.smoothing` in tensor operations whose shapes and number do not depend
on the data, for all tables at once: residuals onto the nodes of the grid, one transform, then Newton's steps
towards the bandwidth that equals its own error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.rows import REASONS
from calibrant.errors import InputError

__all__ = [
    "NOT_COUNTED",
    "Batch",
    "add_rows",
    "binary_rows",
    "class_rows",
    "require_same_shape",
    "smooth_ece_of_tables",
]

MISSING_PREDICTION, OUT_OF_RANGE, MISSING_LABEL, INVALID_LABEL = range(4)
NOT_COUNTED = len(REASONS)
"""The slot, after those of the reasons, for rows that are padding (`ignore_index`)."""
STEPS = 6
FINEST_MESH = 1 << 16
START = 0.1
NOISE_PER_ROW = 22.0
TINY = 1e-300
ENTRIES_PER_PART = 1 << 23
SUM_TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 1e-2}


@dataclass(frozen=True)
class Batch:
    """Rows of one update.

    Attributes
    ----------
    p : Tensor[n]
        Predictions, float32 or float64.
    y : Tensor[n]
        Labels, of any type.
    ignored : Tensor[n] or None
        Where rows are padding.
    group : Tensor[n] or None
        Each row's place among several tables.
    """

    p: torch.Tensor
    y: torch.Tensor
    ignored: torch.Tensor | None
    group: torch.Tensor | None = None


def add_rows(
    counts: torch.Tensor, offsets: torch.Tensor, refused: torch.Tensor, batch: Batch, nodes: int
) -> None:
    """Add rows, in place, to counts[g, 2 (nodes + 1)], offsets of that shape, and refused[7]."""
    reason = _reason(batch.p, batch.y, batch.ignored)
    valid = reason < 0
    offset_bits = FRACTION_BITS - (nodes.bit_length() - 1)
    position = torch.where(valid, batch.p, torch.zeros_like(batch.p))
    fixed = (position * float(1 << FRACTION_BITS)).to(torch.int64)
    slot = 2 * (fixed >> offset_bits) + (batch.y == 1)
    if batch.group is not None:
        slot = slot + batch.group * counts.shape[1]
    slot = torch.where(valid, slot, torch.zeros_like(slot))
    counts.view(-1).scatter_add_(0, slot, valid.to(torch.int64))
    offsets.view(-1).scatter_add_(0, slot, fixed & ((1 << offset_bits) - 1))
    refused += torch.stack([(reason == code).sum() for code in range(refused.numel())])


def _reason(p: torch.Tensor, y: torch.Tensor, ignored: torch.Tensor | None) -> torch.Tensor:
    """Index into REASONS of the first rule that a row breaks; NOT_COUNTED for padding; else -1."""
    reason = torch.full(p.shape, -1, dtype=torch.int64, device=p.device)
    reason = torch.where((y == 0) | (y == 1), reason, INVALID_LABEL)
    if y.is_floating_point():
        reason = torch.where(torch.isnan(y), MISSING_LABEL, reason)
    reason = torch.where((p >= 0) & (p <= 1), reason, OUT_OF_RANGE)
    reason = torch.where(torch.isnan(p), MISSING_PREDICTION, reason)
    return reason if ignored is None else torch.where(ignored, NOT_COUNTED, reason)


def binary_rows(
    preds: torch.Tensor, target: torch.Tensor, from_logits: bool, ignore_index: int | None
) -> Batch:
    """Rows from predictions and targets of one shape."""
    _require_tensors(preds, target)
    require_same_shape(preds, target)
    preds, y = _as_floats(preds), target.detach().reshape(-1)
    p = (preds.sigmoid() if from_logits else preds).reshape(-1)
    return Batch(p, y, None if ignore_index is None else y == ignore_index)


def class_rows(
    preds: torch.Tensor,
    target: torch.Tensor,
    kind: str,
    num_classes: int,
    from_logits: bool,
    ignore_index: int | None,
) -> Batch:
    """Rows from predictions [n, classes, ...] and class indices [n, ...]."""
    probs, label = _class_probabilities(preds, target, num_classes, from_logits)
    group = None
    if kind == "classwise":
        p = probs.reshape(-1)
        group = torch.arange(num_classes, device=p.device).repeat(label.numel())
        label = label.repeat_interleave(num_classes)
        hit = label == group
    else:
        p, predicted = probs.max(dim=1)
        hit = label == predicted
        group = predicted if kind == "top_label" else None
    ignored = None if ignore_index is None else label == ignore_index
    known = (label >= 0) & (label < num_classes)
    if not label.is_floating_point():
        return Batch(p, torch.where(known, hit.to(torch.int64), -1), ignored, group)
    known &= label == label.floor()
    wrong = torch.where(label.isnan(), label, -1)
    return Batch(p, torch.where(known, hit.to(label.dtype), wrong), ignored, group)


def _class_probabilities(
    preds: torch.Tensor, target: torch.Tensor, num_classes: int, from_logits: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities [rows, classes] and labels [rows]; a row that does not sum to 1 is made invalid."""
    _require_tensors(preds, target)
    if (
        preds.ndim < 2
        or preds.shape[1] != num_classes
        or preds.shape[:1] + preds.shape[2:] != target.shape
    ):
        raise InputError(
            f"`preds` must have the shape [n, {num_classes}, ...], and `target` the shape [n, ...]; they "
            f"have {tuple(preds.shape)} and {tuple(target.shape)}."
        )
    tolerance = SUM_TOLERANCE.get(preds.dtype, 1e-4)
    probs = _as_floats(preds).movedim(1, -1).reshape(-1, num_classes)
    if from_logits:
        probs = probs.softmax(dim=1)
    # A probability of 2 is out of range, and NaN stays NaN, so that each is counted for what it is.
    whole = ((probs.sum(dim=1) - 1).abs() <= tolerance) & (probs.amin(dim=1) >= 0)
    missing = probs.isnan().any(dim=1).unsqueeze(1)
    inside = torch.where(missing, torch.nan, probs.clamp(max=1))
    probs = torch.where(~whole.unsqueeze(1) & ~missing, 2.0, inside)
    return probs, target.detach().reshape(-1)


def require_same_shape(preds: torch.Tensor, target: torch.Tensor) -> None:
    """Refuse predictions and targets that are not one for one."""
    if preds.shape != target.shape:
        raise InputError(
            f"`preds` must have the shape of `target`; they have {tuple(preds.shape)} and "
            f"{tuple(target.shape)}."
        )


def _require_tensors(preds: object, target: object) -> None:
    for name, given in (("preds", preds), ("target", target)):
        if not isinstance(given, torch.Tensor):
            raise InputError(f"`{name}` must be a tensor; got a {type(given).__name__}.")


def _as_floats(preds: torch.Tensor) -> torch.Tensor:
    if not preds.is_floating_point():
        raise InputError(
            f"`preds` must be floating-point; its type is {preds.dtype}.",
            hint="Pass probabilities or logits, not classes.",
        )
    preds = preds.detach()
    return preds if preds.dtype in (torch.float32, torch.float64) else preds.float()


# -- SmoothECE of tables -------------------------------------------------------------------------


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
