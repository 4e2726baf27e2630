"""What a comparison of models found, and how it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from html import escape
from textwrap import fill
from types import MappingProxyType
from typing import Any

from calibrant._format import decimals, p_equation
from calibrant.inference.assessment import LARGE, LINE, Assessment
from calibrant.inference.correction import Correction
from calibrant.measures.result_record import plain

__all__ = ["Comparison", "Difference"]

LONGEST_NAME = 28


@dataclass(frozen=True)
class Difference:
    """SmoothECE of the first model minus that of the second.

    Attributes
    ----------
    first, second : str
        The models; the first has the larger kernel error, so it is the worse one as it seems.
    value : float
        SmoothECE of the first in this sample less that of the second.
    low, high : float
        Interval for that difference in the population.
    p_value, adjusted_p_value : float
        P-values of "both models have the same kernel calibration error"; the second accounts for all pairs
        that were compared.
    """

    first: str
    second: str
    value: float
    low: float
    high: float
    p_value: float
    adjusted_p_value: float


@dataclass(frozen=True)
class Comparison:
    """Assessments of several models, best first, and all pairs of them.

    Attributes
    ----------
    assessments : mapping of str to Assessment
        Sorted by kernel error; read-only.
    kernel_errors : mapping of str to float
        Kernel calibration error of each model, whose square is estimated without bias; 0 where that is
        negative, as for about half of all calibrated models.
    differences : tuple of Difference
        All pairs, the clearest first.
    paired : bool
        Whether the models were seen on the same rows. Where not, as for sketches, chance differences
        between the rows do not cancel, and the intervals are wider.
    correction : str
        For the number of pairs: "holm", "bh", "bonferroni" or "none".
    clusters : int or None
        If rows are dependent.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.compare([0, 0, 1, 1], {"a": [0.1, 0.4, 0.6, 0.9], "b": [0.9, 0.2, 0.3, 0.1]})
    >>> sorted(found.assessments), len(found.differences), found.paired
    (['a', 'b'], 1, True)
    """

    assessments: Mapping[str, Assessment]
    kernel_errors: Mapping[str, float]
    differences: tuple[Difference, ...]
    paired: bool
    correction: Correction
    clusters: int | None
    confidence: float
    seed: int

    def __post_init__(self) -> None:
        for name in ("assessments", "kernel_errors"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    def __reduce__(self) -> tuple[Callable[..., Comparison], tuple[Any, ...]]:
        """To pickle and to copy: a read-only mapping can do neither."""
        first, second, *others = (getattr(self, item.name) for item in fields(self))
        return Comparison, (dict(first), dict(second), *others)

    @property
    def verdict(self) -> str:
        """The finding in one line.

        Models that are not told apart are "inconclusive" as in `Assessment.finding`: where the interval
        of a difference reaches beyond 0.05 or the rarer outcome's rate, a large one is not ruled out.
        """
        best, *others = self.assessments
        against = {
            pair.first if pair.second == best else pair.second: pair
            for pair in self.differences
            if best in (pair.first, pair.second)
        }
        worse = [name for name in others if against[name].adjusted_p_value <= self.level]
        if len(worse) == len(others):
            return (
                f"{best} is better calibrated than {_listed(others)}{self._unsure(worse, against)}"
            )
        rivals = [name for name in others if name not in worse]
        line = f"no evidence that calibration differs between {_listed([best, *rivals])}"
        reach = max(max(against[name].high, -against[name].low) for name in rivals)
        rate = self.assessments[best].event_rate
        if reach > min(LARGE, rate, 1.0 - rate):
            line = (
                f"inconclusive: too few rows to tell {_listed([best, *rivals])} apart; a difference of "
                f"{reach:.2g} is not ruled out"
            )
        return line + (f"; {best} is better than {_listed(sorted(worse))}" if worse else "")

    @property
    def level(self) -> float:
        """The largest corrected p-value that tells two models apart, up to rounding."""
        return 1.0 - self.confidence + 1e-12

    def _unsure(self, worse: Iterable[str], against: Mapping[str, Difference]) -> str:
        """What the intervals of SmoothECE do not confirm."""
        equal = [name for name in worse if against[name].low <= 0.0 <= against[name].high]
        other_way = [name for name in worse if against[name].high < 0.0]
        if other_way:
            return f" by kernel error, but by SmoothECE {_listed(other_way)} is better"
        return (
            f" by kernel error; SmoothECE may be equal to that of {_listed(equal)}" if equal else ""
        )

    def __str__(self) -> str:
        how = "paired, on the same rows" if self.paired else "unpaired: the rows are not known"
        if self.clusters is not None:
            how += f", in {self.clusters} clusters"
        width = max(len(name) for name in ["model", *self.assessments] if len(name) <= LONGEST_NAME)
        lines = [
            fill(self.verdict, LINE),
            "",
            f"{'model':<{width}}  SmoothECE  interval            kernel error  test",
        ]
        for name, one in self.assessments.items():
            kernel = decimals(self.kernel_errors[name])
            if len(name) > LONGEST_NAME:  # has a line of its own
                lines.append(fill(name, LINE))
                name = ""
            span = f"{decimals(one.interval.low)} to {decimals(one.interval.high)}"
            lines.append(
                f"{name:<{width}}  {decimals(one.smooth_ece):>9}  {span:<18}  {kernel:>12}  "
                f"{p_equation(one.p_value)}"
            )
        corrected = (
            "not corrected" if self.correction == "none" else f"corrected: {self.correction}"
        )
        lines += [
            "",
            fill(
                f"differences of SmoothECE ({how}), and test of equal kernel error ({corrected})",
                LINE,
            ),
        ]
        for pair in self.differences:
            line = (
                f"{pair.first} - {pair.second}: {decimals(pair.value)} ({decimals(pair.low)} to "
                f"{decimals(pair.high)}), {p_equation(pair.adjusted_p_value)}"
            )
            lines.append(fill(line, LINE, initial_indent="  ", subsequent_indent="    "))
        return "\n".join(lines)

    def __repr__(self) -> str:
        kind = "paired" if self.paired else "unpaired"
        return f"Comparison({kind}, {len(self.assessments)} models: {self.verdict})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; numbers that are not finite are None."""
        out: dict[str, Any] = plain(
            {
                "verdict": self.verdict,
                "paired": self.paired,
                "correction": self.correction,
                "clusters": self.clusters,
                "confidence": self.confidence,
                "seed": self.seed,
                "assessments": self.assessments,
                "kernel_errors": self.kernel_errors,
                "differences": self.differences,
            }
        )
        return out


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
