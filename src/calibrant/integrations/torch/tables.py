"""Tensors into integer tables, on the device where they lie and without asking it anything.

A table has a slot for each (group, cell, label) and one for each reason to refuse a row; see
`calibrant.data` for cells and offsets. Nothing here depends on the values: no branch, no shape, no
error, so that the host never waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.rows import REASONS

__all__ = ["Rows", "add_rows", "class_outcome"]

MISSING_PREDICTION, OUT_OF_RANGE, MISSING_LABEL, INVALID_LABEL = range(4)
NOT_COUNTED = len(REASONS)
"""The slot, after those of the reasons, for rows that are padding (`ignore_index`)."""


@dataclass(frozen=True)
class Rows:
    """What one update brings.

    Attributes
    ----------
    p : Tensor[n]
        Predictions, float32 or float64.
    y : Tensor[n]
        Labels, of any type; for `classes` > 1 with no `group`, a class index for each of p's rows of
        that many entries.
    group : Tensor[n] or None
        Each row's place among several tables.
    classes : int
        Entries per label: above 1, every class is a table of its own, one against the rest.
    ignored : int or None
        The label of rows that are padding.
    """

    p: torch.Tensor
    y: torch.Tensor
    group: torch.Tensor | None = None
    classes: int = 1
    ignored: int | None = None


def add_rows(
    counts: torch.Tensor, offsets: torch.Tensor, refused: torch.Tensor, rows: Rows, nodes: int
) -> None:
    """Add rows, in place, to counts[g, 2 (nodes + 1)], offsets of that shape, and refused[7]."""
    if rows.p.numel() == 0:
        return
    if rows.p.is_cuda:
        from calibrant.integrations.torch.fused import fused_add, is_available

        if is_available():
            fused_add(counts, offsets, refused, rows, nodes)
            return
    _add(counts, offsets, refused, rows, nodes)


def _add(
    counts: torch.Tensor, offsets: torch.Tensor, refused: torch.Tensor, rows: Rows, nodes: int
) -> None:
    """The same in plain tensor operations."""
    p, y, group = rows.p, rows.y, rows.group
    if rows.classes > 1:
        n = y.numel()
        group = torch.arange(rows.classes, device=p.device).repeat(n)
        label = y.repeat_interleave(rows.classes)
        y = class_outcome(label, label == group, rows.classes)
        ignored = label == rows.ignored if rows.ignored is not None else None
    else:
        ignored = y == rows.ignored if rows.ignored is not None else None
    reason = _reason(p, y, ignored)
    valid = reason < 0
    offset_bits = FRACTION_BITS - (nodes.bit_length() - 1)
    position = torch.where(valid, p, torch.zeros_like(p))
    fixed = (position * float(1 << FRACTION_BITS)).to(torch.int64)
    slot = 2 * (fixed >> offset_bits) + (y == 1)
    if group is not None:
        slot = slot + group * counts.shape[1]
    slot = torch.where(valid, slot, torch.zeros_like(slot))
    counts.view(-1).scatter_add_(0, slot, valid.to(torch.int64))
    offsets.view(-1).scatter_add_(0, slot, fixed & ((1 << offset_bits) - 1))
    refused += torch.stack([(reason == code).sum() for code in range(refused.numel())])


def class_outcome(label: torch.Tensor, hit: torch.Tensor, classes: int) -> torch.Tensor:
    """1 for a hit and 0 for a miss where the label is a class; NaN where it is NaN; else -1."""
    known = (label >= 0) & (label < classes)
    if not label.is_floating_point():
        return torch.where(known, hit.to(torch.int64), -1)
    known = known & (label == label.floor())
    return torch.where(known, hit.to(label.dtype), torch.where(label.isnan(), label, -1))


def _reason(p: torch.Tensor, y: torch.Tensor, ignored: torch.Tensor | None) -> torch.Tensor:
    """Index into REASONS of the first rule that a row breaks; NOT_COUNTED for padding; else -1."""
    reason = torch.full(p.shape, -1, dtype=torch.int64, device=p.device)
    reason = torch.where((y == 0) | (y == 1), reason, INVALID_LABEL)
    if y.is_floating_point():
        reason = torch.where(torch.isnan(y), MISSING_LABEL, reason)
    reason = torch.where((p >= 0) & (p <= 1), reason, OUT_OF_RANGE)
    reason = torch.where(torch.isnan(p), MISSING_PREDICTION, reason)
    return reason if ignored is None else torch.where(ignored, NOT_COUNTED, reason)
