"""Decisions on predictions: certified thresholds, selective prediction, net benefit."""

from __future__ import annotations

from calibrant._lazy import lazy_names

_HOME = {
    "certify": "decisions.certify",
    "selective": "decisions.selective",
}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names("calibrant.decisions", _HOME)
