"""Predictions and targets of a batch as rows: shapes and types are refused here, values on the device."""

from __future__ import annotations

import torch

from calibrant.errors import Code, InputError, Option, TypeName
from calibrant.integrations.torch.tables import Rows

__all__ = ["binary_rows", "class_rows", "require_same_shape"]

SUM_TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 1e-2}


def binary_rows(
    preds: torch.Tensor, target: torch.Tensor, from_logits: bool, ignored: int | None
) -> Rows:
    """Predictions and targets of one shape as rows."""
    _require_tensors(preds, target)
    require_same_shape(preds, target)
    preds = _as_floats(preds)
    if from_logits:
        preds = preds.sigmoid()
    return Rows(preds.reshape(-1), target.detach().reshape(-1), None, 1, ignored)


def class_rows(
    preds: torch.Tensor, target: torch.Tensor, classes: int, from_logits: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities [rows, classes] and labels [rows]; a row that does not sum to 1 is made invalid."""
    _require_tensors(preds, target)
    if (
        preds.ndim < 2
        or preds.shape[1] != classes
        or preds.shape[:1] + preds.shape[2:] != target.shape
    ):
        raise InputError(
            "must have the shape [n, {classes}, ...], and {target} the shape [n, ...]",
            argument="preds",
            seen=tuple(preds.shape),
            saying="they have {} and {shape}",
            cure="Move the classes to the second place.",
            classes=classes,
            target=Option("target"),
            shape=repr(tuple(target.shape)),
        )
    tolerance = SUM_TOLERANCE.get(preds.dtype, 1e-4)
    probs = _as_floats(preds).movedim(1, -1).reshape(-1, classes)
    if from_logits:
        probs = probs.softmax(dim=1)
    # A probability of 2 is out of range, and NaN stays NaN, so that each is counted for what it is.
    whole = ((probs.sum(dim=1) - 1).abs() <= tolerance) & (probs.amin(dim=1) >= 0)
    missing = probs.isnan().any(dim=1)
    wrong = (~whole & ~missing).unsqueeze(1)
    probs = torch.where(
        wrong, 2.0, torch.where(missing.unsqueeze(1), torch.nan, probs.clamp(max=1))
    )
    return probs, target.detach().reshape(-1)


def require_same_shape(preds: torch.Tensor, target: torch.Tensor) -> None:
    """Refuse predictions and targets that are not one for one."""
    if preds.shape != target.shape:
        raise InputError(
            "must have the shape of {target}",
            argument="preds",
            seen=tuple(preds.shape),
            saying="its shape is {}, that of the targets {shape}",
            cure="Pass one prediction for each target.",
            target=Option("target"),
            shape=repr(tuple(target.shape)),
        )


def _require_tensors(preds: object, target: object) -> None:
    for name, given in (("preds", preds), ("target", target)):
        if not isinstance(given, torch.Tensor):
            raise InputError(
                "must be a tensor",
                argument=name,
                seen=TypeName.of(given),
                cure="Turn it into one with {convert}.",
                convert=Code("torch.as_tensor"),
            )


def _as_floats(preds: torch.Tensor) -> torch.Tensor:
    if not preds.is_floating_point():
        raise InputError(
            "must be floating-point",
            argument="preds",
            seen=TypeName(preds.dtype),
            saying="its type is {}",
            cure="Pass probabilities or logits, not classes.",
        )
    preds = preds.detach()
    return preds if preds.dtype in (torch.float32, torch.float64) else preds.float()
