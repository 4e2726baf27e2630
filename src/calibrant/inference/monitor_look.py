"""What a monitor says after a batch, and when it rejects calibration."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from calibrant._format import SMALLEST_P_VALUE, group_text

__all__ = ["DIRECTIONS", "Alarm", "ClassLook", "Look", "e_and_p"]

DIRECTIONS = (
    "over-forecasting",
    "under-forecasting",
    "over-confident",
    "under-confident",
    "wrong in places",
)
"""What an alarm can say is wrong with the predictions."""


@dataclass(frozen=True)
class Alarm:
    """What the monitor says when it rejects calibration.

    Attributes
    ----------
    look : int
        At which look, counted from 1.
    since : int
        The look at which the winning bet's best run began: an estimate of when it went wrong.
    direction : str
        "over-forecasting" or "under-forecasting" where the mean error since then is clear; otherwise
        what the best bet stands for: "over-confident", "under-confident" or "wrong in places".
    mean_error : float
        Mean prediction minus event rate since that look.
    group : optional
        For many classes, the one with the most evidence: the rest of the alarm is about it.
    """

    look: int
    since: int
    direction: str
    mean_error: float
    group: Any = None

    def __str__(self) -> str:
        of = "" if self.group is None else f", most of all class {group_text(self.group)}"
        return f"miscalibrated since about look {self.since}: {self.direction}{of}"


@dataclass(frozen=True)
class ClassLook:
    """One class among those that are watched.

    Attributes
    ----------
    name
        The class.
    n : int
        Rows of it so far: that were predicted to be of it, or all.
    e_value, p_value : float
        Those of this class alone.
    mean_error : float
        Mean prediction minus event rate over all of them.
    """

    name: Any
    n: int
    e_value: float
    p_value: float
    mean_error: float


@dataclass(frozen=True)
class Look:
    """What one look found: valid however often one looks, and whenever one stops.

    Attributes
    ----------
    look, n : int
        Number of batches, and of rows, so far.
    e_value : float
        What a stake of 1 has become by betting against calibration.
    p_value : float
        1 / the largest e-value so far, at most 1 and never 0.
    alarm : Alarm or None
        The first alarm, if one was raised by now.
    classes : tuple of ClassLook
        Where classes are watched, each of them, the one with the most evidence first.
    """

    look: int
    n: int
    e_value: float
    p_value: float
    alarm: Alarm | None
    classes: tuple[ClassLook, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; of classes only where they are watched."""
        content = asdict(self)
        classes = content.pop("classes")
        if classes:
            return {**content, "classes": list(classes)}
        if self.alarm is not None:
            content["alarm"].pop("group")
        return content


def e_and_p(log_e_value: float, highest: float) -> tuple[float, float]:
    """The e-value, never infinite, and the p-value, never 0, by the logarithms of e-values."""
    return float(np.exp(min(log_e_value, 700.0))), max(float(np.exp(-highest)), SMALLEST_P_VALUE)
