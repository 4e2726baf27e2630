"""Calibration in Hugging Face `evaluate`: a module that is loaded from a path.

import evaluate
from calibrant.integrations.hugging_face import path

evaluate.load(path()).compute(predictions=p, references=y)
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["path"]


def path() -> str:
    """Path of the module, for `evaluate.load`.

    Examples
    --------
    >>> path().endswith("smooth_ece.py")
    True
    """
    return str(Path(__file__).with_name("smooth_ece.py"))
