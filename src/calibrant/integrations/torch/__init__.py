"""Calibration inside torch: metrics for training loops and a differentiable SmoothECE."""

from calibrant.integrations.torch.loss import smooth_ece_loss
from calibrant.integrations.torch.metrics import (
    BinarySmoothECE,
    MulticlassSmoothECE,
    ReliabilityDiagram,
    SmoothECE,
    binary_smooth_ece,
    multiclass_smooth_ece,
    smooth_ece,
)

__all__ = [
    "BinarySmoothECE",
    "MulticlassSmoothECE",
    "ReliabilityDiagram",
    "SmoothECE",
    "binary_smooth_ece",
    "multiclass_smooth_ece",
    "smooth_ece",
    "smooth_ece_loss",
]
