"""Calibration inside torch: metrics for training loops and a differentiable SmoothECE.

Importing and updating the metrics needs torch and NumPy, and no compiled part of calibrant.
"""

from calibrant.integrations.torch.loss import smooth_ece_loss
from calibrant.integrations.torch.metrics import (
    BinarySmoothECE,
    MulticlassSmoothECE,
    ReliabilityDiagram,
)

__all__ = ["BinarySmoothECE", "MulticlassSmoothECE", "ReliabilityDiagram", "smooth_ece_loss"]
