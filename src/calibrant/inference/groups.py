"""What an assessment of groups found: the one place where their number is accounted for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from html import escape
from importlib import import_module
from textwrap import fill
from types import MappingProxyType
from typing import Any, Literal

from calibrant._arguments import require_choice
from calibrant._format import decimals, group_text, p_equation, p_text
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError
from calibrant.inference.assessment import LINE, Assessment, Finding
from calibrant.inference.band import DifferenceBand, difference_band
from calibrant.inference.correction import Correction
from calibrant.inference.pooling import Pooling, pool_groups
from calibrant.measures.result_record import plain

__all__ = [
    "TOO_FEW",
    "GroupAssessment",
    "GroupAssessments",
    "Order",
    "Others",
    "shown_key",
    "worst_first",
]

TOO_FEW: Literal["too few rows"] = "too few rows"
"""The finding of a group that cannot be assessed."""
Order = Literal["worst", "given", "rows"]


@dataclass(frozen=True)
class Others:
    """The key of all groups that were summed up, and how many these are."""

    number: int

    def __str__(self) -> str:
        return f"({self.number:,} other{'' if self.number == 1 else 's'})"


@dataclass(frozen=True, eq=False)
class GroupAssessment:
    """One group: its assessment, corrected for how many groups there are, or why there is none.

    Attributes
    ----------
    key : object
        The group's value; a tuple where several columns group; `Others` for the rest of a long list.
    n : int
        Its rows.
    assessment : Assessment or None
        Its `finding`, `miscalibrated`, `verdict` and `corrected_p_value` account for all groups.
    detectable : float or None
        The SmoothECE that its rows would show with a probability of .8 or more, were predictions too high
        everywhere, or too low everywhere. Errors of both signs may take a larger one. Accounts for all
        groups; None where its rows could show none.
    why : str
        Why there is no assessment: "fewer than two rows", or "no row has weight".
    """

    key: Any
    n: int
    assessment: Assessment | None
    detectable: float | None = None
    why: str = ""

    @property
    def name(self) -> str:
        """The key as text."""
        return shown_key(self.key)

    @property
    def finding(self) -> Finding | Literal["too few rows"]:
        """What was found in it, in the words of `FINDINGS`."""
        return TOO_FEW if self.assessment is None else self.assessment.finding

    @property
    def stands_for(self) -> int:
        """How many groups it is: 1, unless it is the rest of a long list."""
        return self.key.number if isinstance(self.key, Others) else 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        own = {} if self.assessment is None else self.assessment.to_dict()
        out = {
            "group": self.name,
            "groups": self.stands_for,
            "detectable": self.detectable,
            "why": self.why or None,
            "finding": self.finding,
            "n": self.n,
        }
        plainly: dict[str, Any] = plain(out | own)
        return plainly


@dataclass(frozen=True, eq=False)
class GroupAssessments(Mapping[Any, Assessment]):
    """Assessments by group, the worst group first, corrected for how many there are.

    As a mapping it holds the assessments of the groups that could be assessed; `groups` holds all. Every
    word and flag in it (`finding`, `miscalibrated`, `corrected_p_value`) is after correction; an
    assessment's `p_value` is the group's own.

    Attributes
    ----------
    by : tuple of str
        The grouping columns.
    groups : tuple of GroupAssessment
        All groups: those that were assessed, the worst first, then those with too few rows.
    correction : str
        For the number of groups: "holm", "bh", "bonferroni" or "none".
    clustered : bool
        Whether rows were taken to depend on each other.
    confidence, seed : float, int
        As they were asked for.

    Examples
    --------
    >>> import calibrant as cal
    >>> rows = {"y": [0, 1, 0, 1], "p": [0.1, 0.8, 0.3, 0.6], "site": ["a", "a", "b", "b"]}
    >>> groups = cal.assess_by(data=rows, y_true="y", y_prob="p", by="site")
    >>> sorted(groups), groups["a"].n
    (['a', 'b'], 2)
    """

    by: tuple[str, ...]
    groups: tuple[GroupAssessment, ...]
    correction: Correction
    clustered: bool
    confidence: float
    seed: int
    sketches: Mapping[Any, Sketch]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sketches", MappingProxyType(dict(self.sketches)))

    def __reduce__(self) -> tuple[Callable[..., GroupAssessments], tuple[Any, ...]]:
        """To pickle and to copy: a read-only mapping can do neither."""
        *others, sketches = (getattr(self, item.name) for item in fields(self))
        return GroupAssessments, (*others, dict(sketches))

    @cached_property
    def _assessments(self) -> dict[Any, Assessment]:
        return {one.key: one.assessment for one in self.groups if one.assessment is not None}

    def __getitem__(self, key: Any) -> Assessment:
        return self._assessments[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._assessments)

    def __len__(self) -> int:
        return len(self._assessments)

    @property
    def worst(self) -> Any:
        """The group whose error is largest for certain: by the interval's lower end, then the estimate."""
        return max(self, key=lambda key: _badness(self[key]))

    @property
    def too_few(self) -> tuple[GroupAssessment, ...]:
        """Groups that could not be assessed; their `why` says why."""
        return tuple(one for one in self.groups if one.assessment is None)

    @property
    def miscalibrated(self) -> tuple[Any, ...]:
        """Groups whose calibration is rejected, after correction."""
        return tuple(key for key, one in self.items() if one.miscalibrated)

    @cached_property
    def pooling(self) -> Pooling | None:
        """What all groups say together, and each one's mean error drawn towards the others'.

        None for clusters, and for fewer than two groups.
        """
        return None if self.clustered else pool_groups(self.sketches, confidence=self.confidence)

    def sorted(self, order: Order) -> tuple[GroupAssessment, ...]:
        """All groups, the worst first, as they were given, or the largest first."""
        if order == "worst":
            return self.groups
        if order == "rows":
            return tuple(sorted(self.groups, key=lambda one: (isinstance(one.key, Others), -one.n)))
        require_choice("order", order, ("worst", "given", "rows"))
        place = {key: k for k, key in enumerate(self.sketches)}
        return tuple(sorted(self.groups, key=lambda one: place[one.key]))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found over all groups, sentence by sentence: the words of every surface.

        The first is the headline. The others are there only where they say something.
        """
        tested, wrong = len(self), len(self.miscalibrated)
        alone = sum(one.p_value <= one.level for one in self.values())
        slight = sum(one.finding == "slightly off" for one in self.values())
        unsure = sum(one.finding == "inconclusive" for one in self.values())
        unsure += sum(one.stands_for for one in self.too_few)
        corrected = f" (corrected for testing {tested:,})" if self._corrects else ""
        sentences = [f"{_counted(wrong, tested)} miscalibrated{corrected}."]
        if alone != wrong:
            sentences.append(f"Without that correction it would be {alone:,}.")
        if slight:
            sentences.append(f"{slight:,} of them {_is(slight)} only slightly off.")
        if unsure:
            groups, have = ("group", "has") if unsure == 1 else ("groups", "have")
            sentences.append(f"{unsure:,} {groups} {have} too few rows to tell.")
        if not wrong and self.pooling is not None and self.pooling.p_value <= 1.0 - self.confidence:
            sentences.append(self._taken_together(self.pooling))
        return tuple(sentences)

    def _taken_together(self, pooling: Pooling) -> str:
        found, typical = p_equation(pooling.p_value), pooling.typical
        start = f"Taken together the groups are miscalibrated ({found})"
        if typical.low <= 0.0 <= typical.high:
            return f"{start}: their errors differ."
        how = "too high" if typical.value > 0 else "too low"
        return f"{start}: predictions are {decimals(abs(typical.value))} {how} on average."

    @property
    def _corrects(self) -> bool:
        return len(self) > 1 and self.correction != "none"

    @property
    def verdict(self) -> str:
        """The finding in one line, with the worst group where one is miscalibrated."""
        line = self.sentences[0]
        if self.miscalibrated:
            worst = self[self.worst]
            line += (
                f" Worst: {shown_key(self.worst)}, {decimals(worst.smooth_ece)} "
                f"({decimals(worst.interval.low)} to {decimals(worst.interval.high)})."
            )
        return line

    @property
    def summary(self) -> str:
        """All sentences as one text."""
        return " ".join(self.sentences)

    def difference(self, first: Any, second: Any) -> DifferenceBand:
        """How much more often the event came in one group than in another, at equal predictions."""
        if self.clustered:
            raise InputError(
                "the band of a difference takes rows to be independent, and these are in clusters",
                cure="Keep one row of each cluster, and assess again without clusters.",
            )
        for argument, key in (("first", first), ("second", second)):
            if key not in self._assessments:
                names = ", ".join(map(shown_key, self))
                raise InputError(
                    "must be a group that was assessed", argument=argument, seen=key,
                    cure="These are: {names}.", names=names,
                )  # fmt: skip
        return difference_band(
            self.sketches[first], self.sketches[second], confidence=self.confidence
        )

    def plot(self, ax: Any = None, **look: Any) -> Any:
        """Draw every group's error with its interval and noise floor: a forest plot, the worst on top.

        See `calibrant.plotting.forest.forest_plot`, whose `plot` this is.
        """
        # Pictures know assessments, and not the other way round: so by name.
        forest = import_module("calibrant.plotting.forest")
        return forest.forest_plot(self).plot(ax, **look)

    def rows(self) -> list[list[str]]:
        """What the text table shows, a header first."""
        header = ["n", "SmoothECE", "interval", "floor", "detectable", "p", "corrected", "finding"]
        rows = [[", ".join(self.by), *header]]
        for group in self.groups:
            one = group.assessment
            cells = ["–"] * 6
            if one is not None:
                cells = [
                    decimals(one.smooth_ece),
                    f"{decimals(one.interval.low)} to {decimals(one.interval.high)}",
                    decimals(one.noise_floor.value),
                    "–" if group.detectable is None else decimals(group.detectable),
                    p_text(one.p_value),
                    p_text(one.judged_p_value),
                ]
            rows.append([group.name, f"{group.n:,}", *cells, group.finding])
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        words = {0, len(widths) - 1}
        lines = [
            "  ".join(
                text.ljust(width) if k in words else text.rjust(width)
                for k, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([fill(self.summary, LINE), "", *lines])

    def __repr__(self) -> str:
        return f"GroupAssessments(by {', '.join(self.by)}: {self.verdict})"

    def _repr_html_(self) -> str:
        header, *rows = self.rows()
        head = "".join(f"<th>{escape(text)}</th>" for text in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
        )
        return f"<p><b>{escape(self.summary)}</b></p><table><tr>{head}</tr>{body}</table>"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; numbers that are not finite are None."""
        return {
            "verdict": self.verdict,
            "sentences": list(self.sentences),
            "by": list(self.by),
            "worst": shown_key(self.worst),
            "correction": self.correction,
            "tested": len(self),
            "confidence": self.confidence,
            "seed": self.seed,
            "pooling": None if self.pooling is None else self.pooling.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
        }


def _badness(assessment: Assessment) -> tuple[float, float]:
    return assessment.interval.low, assessment.smooth_ece


def worst_first(groups: Iterable[GroupAssessment]) -> tuple[GroupAssessment, ...]:
    """Those that were assessed by how large their error is for certain, then those that were not."""

    def rank(group: GroupAssessment) -> tuple[bool, float, float]:
        one = group.assessment
        if one is None:
            return True, 0.0, 0.0
        low, estimate = _badness(one)
        return False, -low, -estimate

    return tuple(sorted(groups, key=rank))


def _counted(number: int, of: int) -> str:
    if of == 1:
        return f"The one group is {'' if number else 'not clearly '}".rstrip()
    if number == 0:
        return f"None of the {of:,} groups is clearly"
    return f"{number:,} of {of:,} groups {_is(number)}"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def shown_key(key: Any) -> str:
    """A group's key as text."""
    return ", ".join(map(group_text, key)) if isinstance(key, tuple) else group_text(key)
