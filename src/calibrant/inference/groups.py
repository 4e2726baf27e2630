"""Assessments of groups, corrected for their number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from textwrap import fill
from typing import Any, Literal

from calibrant._arguments import require_choice
from calibrant._format import aligned, decimals, group_text, html_table, p_equation, p_text
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, invalid
from calibrant.inference.assessment import (
    MISCALIBRATED,
    TOO_FEW,
    WITHIN_MARGIN,
    Assessment,
    Finding,
)
from calibrant.inference.correction import Correction
from calibrant.inference.group_difference import GroupDifference, group_difference
from calibrant.inference.profile import LINE
from calibrant.inference.random_effects import RandomEffects, random_effects
from calibrant.measures.result_record import frame_of, plain

Order = Literal["worst", "given", "rows"]
MOST_NAMED = 3
"""Groups whose names fit a sentence."""
NOUNS = {"model": "model", "prediction": "model", "predicted": "class", "class": "class"}
"""Noun for the values of a column; of any other column they are groups."""


@dataclass(frozen=True)
class Others:
    """Key of all groups that were added up to one, with their number."""

    number: int

    def __str__(self) -> str:
        return f"({self.number:,} other{'' if self.number == 1 else 's'})"


@dataclass(frozen=True, eq=False)
class GroupAssessment:
    """Assessment of one group, corrected for the number of groups, or the reason why there is none.

    Attributes
    ----------
    key : object
        The group's value; a tuple where several columns group; `Others` for the rest of a long list.
    n : int
        Its rows.
    assessment : Assessment or None
        Its `finding`, `miscalibrated`, `verdict` and `p_value_adjusted` account for all groups.
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
        return group_text(self.key)

    @property
    def finding(self) -> Finding:
        """Finding, one of `FINDINGS`: too few rows where the group cannot be assessed."""
        return TOO_FEW if self.assessment is None else self.assessment.finding

    @property
    def stands_for(self) -> int:
        """Number of groups: 1, unless it is the rest of a long list."""
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
    """Assessments by group, the worst group first, corrected for the number of groups.

    As a mapping it holds the assessments of the groups that could be assessed; `groups` holds all. Every
    word and flag in it (`finding`, `miscalibrated`, `p_value_adjusted`) is after correction; an
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
        True where rows were taken to depend on each other.
    confidence : float
        As it was asked for.
    sketches : mapping of key to Sketch
        The rows of each group.

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
    sketches: Mapping[Any, Sketch]

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
        """The group with the largest lower end of the interval."""
        return self.groups[0].key

    @property
    def too_few(self) -> tuple[GroupAssessment, ...]:
        """Groups that could not be assessed; their `why` says why."""
        return tuple(one for one in self.groups if one.assessment is None)

    @property
    def miscalibrated(self) -> tuple[Any, ...]:
        """Groups whose finding is "miscalibrated", after correction."""
        return tuple(key for key, one in self.items() if one.finding == MISCALIBRATED)

    def changed(self, change: Callable[[Any, Assessment], Assessment]) -> GroupAssessments:
        """Groups with another assessment each, made of the key and the one that is there."""
        groups = [
            one
            if one.assessment is None
            else replace(one, assessment=change(one.key, one.assessment))
            for one in self.groups
        ]
        return replace(self, groups=tuple(groups))

    def of_confidence(self) -> GroupAssessments:
        """Groups whose rows are of the confidence in the likeliest class; see `Assessment`."""
        return self.changed(lambda _, one: one.of_confidence())

    @cached_property
    def random_effects(self) -> RandomEffects | None:
        """Random-effects model of the groups' mean errors, with a prediction interval for a new group.

        None for clusters, for fewer than two groups, and for too few events.
        """
        if self.clustered:
            return None
        return random_effects(self.sketches, confidence=self.confidence)

    def sorted(self, order: Order) -> tuple[GroupAssessment, ...]:
        """All groups, the worst first, as they were given, or the largest first."""
        require_choice("order", order, ("worst", "given", "rows"))
        if order == "worst":
            return self.groups
        if order == "rows":
            return tuple(sorted(self.groups, key=lambda one: (isinstance(one.key, Others), -one.n)))
        place = {key: k for k, key in enumerate(self.sketches)}
        return tuple(sorted(self.groups, key=lambda one: place[one.key]))

    def _noun(self, number: int) -> str:
        noun = NOUNS.get(self.by[0], "group") if len(self.by) == 1 else "group"
        return noun if number == 1 else f"{noun}es" if noun == "class" else f"{noun}s"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Findings over all groups: the headline, and what else there is to say."""
        tested, wrong = len(self), len(self.miscalibrated)
        corrects = tested > 1 and self.correction != "none"
        within = [one for one in self.values() if one.finding == WITHIN_MARGIN]
        alone = sum(one.p_value <= one.level for one in self.values() if one not in within)
        unsure = sum(one.finding == TOO_FEW for one in self.values())
        unsure += sum(one.stands_for for one in self.too_few)
        corrected = f" (corrected for testing {tested:,})" if corrects else ""
        if tested == 1:
            start = f"The one {self._noun(1)} is {'' if wrong else 'not clearly '}".rstrip()
        elif wrong:
            start = f"{wrong:,} of {tested:,} {self._noun(tested)} {'is' if wrong == 1 else 'are'}"
        else:
            start = f"None of the {tested:,} {self._noun(tested)} is clearly"
        sentences = [f"{start} miscalibrated{corrected}."]
        if within:
            are = "is" if len(within) == 1 else "are"
            sentences.append(
                f"{len(within):,} of {tested:,} {are} within the margin of {within[0].margin:g}."
            )
        if alone != wrong:
            sentences.append(f"Without that correction it would be {alone:,}.")
        backwards = [group_text(key) for key, one in self.items() if one.direction.backwards]
        if backwards:
            few = len(backwards) <= MOST_NAMED
            where = ", ".join(backwards) if few else f"{len(backwards):,} of {tested:,}"
            sentences.append(f"Predictions rank backwards in {where}: are labels flipped?")
        if unsure:
            have = "has" if unsure == 1 else "have"
            sentences.append(f"{unsure:,} {self._noun(unsure)} {have} too few rows to tell.")
        model = None if wrong else self.random_effects
        if model is not None and model.p_value <= 1.0 - self.confidence:
            start = f"Together the {self._noun(2)} are miscalibrated ({p_equation(model.p_value)})"
            how = "too high" if model.mean.value > 0 else "too low"
            mean = f"predictions are {decimals(abs(model.mean.value))} {how} on average"
            differ = model.mean.low <= 0.0 <= model.mean.high
            sentences.append(f"{start}: {'their errors differ' if differ else mean}.")
        return tuple(sentences)

    @property
    def verdict(self) -> str:
        """The finding in one line, with the worst group where one is miscalibrated."""
        line = self.sentences[0]
        if self.miscalibrated:
            worst = self[self.worst]
            line += (
                f" Worst: {group_text(self.worst)}, {decimals(worst.smooth_ece)} "
                f"({decimals(worst.interval.low)} to {decimals(worst.interval.high)})."
            )
        return line

    @property
    def summary(self) -> str:
        """All sentences as one text."""
        return " ".join(self.sentences)

    def difference(self, first: Any, second: Any) -> GroupDifference:
        """Mantel–Haenszel difference of two groups' outcomes at equal predictions, with a band and a test."""
        if self.clustered:
            raise InputError(
                "the difference of two groups takes rows to be independent, and these are in clusters.",
                hint="Keep one row of each cluster, and assess again without clusters.",
            )
        for argument, key in (("first", first), ("second", second)):
            if key not in self._assessments:
                raise invalid(
                    argument,
                    "be a group that was assessed",
                    key,
                    hint=f"These are: {', '.join(map(group_text, self))}.",
                )
        return group_difference(
            self.sketches[first], self.sketches[second], confidence=self.confidence
        )

    def rows(self) -> list[list[str]]:
        """Cells of the text table, a header first."""
        header = ["n", "SmoothECE", "interval", "floor", "detectable", "p", "corrected", "finding"]
        rows = [[", ".join(self.by), *header]]
        for group in self.groups:
            one, cells = group.assessment, ["–"] * 6
            if one is not None:
                cells = [
                    decimals(one.smooth_ece),
                    f"{decimals(one.interval.low)} to {decimals(one.interval.high)}",
                    decimals(one.noise_floor.value),
                    "–" if group.detectable is None else decimals(group.detectable),
                    p_text(one.p_value),
                    p_text(one.p_value_judged),
                ]
            rows.append([group.name, f"{group.n:,}", *cells, group.finding])
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        table = aligned(rows, left={0, len(rows[0]) - 1})
        return f"{fill(self.summary, LINE)}\n\n{table}"

    def __repr__(self) -> str:
        return f"GroupAssessments(by {', '.join(self.by)}: {self.verdict})"

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.summary)}</b></p>{html_table(self.rows())}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; numbers that are not finite are None."""
        model = self.random_effects
        return {
            "verdict": self.verdict,
            "sentences": list(self.sentences),
            "by": list(self.by),
            "worst": group_text(self.worst),
            "correction": self.correction,
            "tested": len(self),
            "confidence": self.confidence,
            "random_effects": None if model is None else model.to_dict(),
            "groups": [group.to_dict() for group in self.groups],
        }

    def to_frame(self, backend: Any = None) -> Any:
        """A data frame with a row for each group, the worst first; a column for each grouping column."""
        rows = []
        for group in self.groups:
            one, values = group.assessment, group.key
            if len(self.by) == 1 or isinstance(values, Others):
                values = [group.name if isinstance(values, Others) else values] * len(self.by)
            row = {**dict(zip(self.by, values, strict=True)), "n": group.n}
            row["smooth_ece"] = one and one.smooth_ece
            row["low"] = one and one.interval.low
            row["high"] = one and one.interval.high
            row["noise_floor"] = one and one.noise_floor.value
            row["detectable"] = group.detectable
            row["p_value"] = one and one.p_value
            row["p_value_adjusted"] = one and one.p_value_judged
            rows.append(row | {"finding": group.finding})
        return frame_of(rows, backend)


def worst_first(groups: Iterable[GroupAssessment]) -> tuple[GroupAssessment, ...]:
    """Groups by the lower end of their interval, the largest first; then those that were not assessed."""

    def rank(group: GroupAssessment) -> tuple[bool, float, float]:
        one = group.assessment
        return (True, 0.0, 0.0) if one is None else (False, -one.interval.low, -one.smooth_ece)

    return tuple(sorted(groups, key=rank))
