"""Limits for jobs that must stop: what was asked, what the intervals say, and the exit code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from calibrant.cli.errors import LIMIT_EXCEEDED, LIMIT_NOT_SHOWN
from calibrant.cli.output import listed
from calibrant.errors import InputError
from calibrant.inference.assessment import Assessment

__all__ = ["Gate", "Limit", "judged"]

Position = Literal["above", "below", "inconclusive"]


@dataclass(frozen=True)
class Limit:
    """A number, or a share of the event rate."""

    value: float
    relative: bool

    @classmethod
    def parsed(cls, text: str, option: str) -> Limit:
        """Read `0.05` or `20%`.

        Examples
        --------
        >>> Limit.parsed("20%", "--fail-above")
        Limit(value=0.2, relative=True)
        """
        match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*", text)
        value = float(match[1]) if match else 0.0
        if not match or value <= 0 or (value >= 1 and not match[2]):
            raise InputError(
                "must be a number between 0 and 1 such as 0.05, or a share of the event rate such as 20%",
                argument=option.removeprefix("--").replace("-", "_"),
                seen=text,
                cure="Pass a number such as 0.05, or 20%.",
            )
        return cls(value / 100, True) if match[2] else cls(value, False)

    def of(self, assessment: Assessment) -> float:
        """The limit for this group."""
        return self.value * assessment.event_rate if self.relative else self.value

    def position(self, assessment: Assessment | None) -> Position:
        """Where the whole interval lies; a group with too few rows shows nothing."""
        if assessment is None:
            return "inconclusive"
        limit = self.of(assessment)
        if assessment.interval.low > limit:
            return "above"
        return "below" if assessment.interval.high <= limit else "inconclusive"

    def __str__(self) -> str:
        return f"{100 * self.value:g}% of the event rate" if self.relative else f"{self.value:g}"


@dataclass(frozen=True)
class Gate:
    """The judgement of one limit over all groups."""

    option: str
    limit: Limit
    positions: tuple[Position, ...]
    too_few: tuple[bool, ...]
    passed: bool

    @property
    def code(self) -> int:
        """The exit code where it did not pass."""
        return LIMIT_EXCEEDED if self.option == "--fail-above" else LIMIT_NOT_SHOWN

    def sentence(self, names: Sequence[str]) -> str:
        """What happened, for people."""
        groups = list(zip(names, self.positions, self.too_few, strict=True))
        where = {
            position: [name for name, at, few in groups if at == position and not few]
            for position in ("above", "inconclusive")
        }
        said = [f"{self.option} {self.limit}: {'passed' if self.passed else 'FAILED'}."]
        if where["above"]:
            said.append(f"Shown to be above it: {listed(where['above'])}.")
        if where["inconclusive"]:
            said.append(
                f"Inconclusive, the interval holds the limit: {listed(where['inconclusive'])}."
            )
        if any(self.too_few):
            said.append(f"Too few rows to say: {listed([name for name, _, few in groups if few])}.")
        return " ".join(said)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "option": self.option,
            "limit": self.limit.value,
            "relative_to_event_rate": self.limit.relative,
            "passed": self.passed,
            "positions": list(self.positions),
        }


def judged(
    fail_above: str | None, require_below: str | None, assessments: Sequence[Assessment | None]
) -> list[Gate]:
    """The gates that were asked for."""
    gates = []
    for option, text in (("--fail-above", fail_above), ("--require-below", require_below)):
        if text is not None:
            limit = Limit.parsed(text, option)
            positions = tuple(limit.position(assessment) for assessment in assessments)
            wrong = ("above",) if option == "--fail-above" else ("above", "inconclusive")
            few = tuple(assessment is None for assessment in assessments)
            gates.append(Gate(option, limit, positions, few, not set(wrong) & set(positions)))
    return gates
