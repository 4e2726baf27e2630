"""What a monitor says after a batch, and when it rejects calibration."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["DIRECTIONS", "Alarm", "Look"]

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
    """

    look: int
    since: int
    direction: str
    mean_error: float

    def __str__(self) -> str:
        return f"miscalibrated since about look {self.since}: {self.direction}"


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
    """

    look: int
    n: int
    e_value: float
    p_value: float
    alarm: Alarm | None

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        return asdict(self)
