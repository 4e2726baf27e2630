"""calibrant for scikit-learn: a display, a scorer, and a classifier with calibrated probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.integrations.classifier import RecalibratedClassifier
    from calibrant.integrations.sklearn import ReliabilityDisplay, neg_smooth_ece_scorer

__all__ = ["RecalibratedClassifier", "ReliabilityDisplay", "neg_smooth_ece_scorer"]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    if name == "RecalibratedClassifier":
        from calibrant.integrations.classifier import RecalibratedClassifier

        return RecalibratedClassifier
    if name in __all__:
        from calibrant.integrations import sklearn

        return getattr(sklearn, name)
    raise AttributeError(f"module 'calibrant.sklearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
