"""Tensors into integer tables, on the device where they lie.

A table has a slot for each (group, cell, label) and one for each reason to refuse a row; see `calibrant.data`
for cells and offsets. Shapes and types are refused here; nothing depends on values: the host never waits.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.rows import REASONS
from calibrant.errors import InputError

MISSING_PREDICTION, OUT_OF_RANGE, MISSING_LABEL, INVALID_LABEL = range(4)
NOT_COUNTED = len(REASONS)
"""The slot, after those of the reasons, for rows that are padding (`ignore_index`)."""
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
