"""A profile: the quantities that a field of use asks for, each with its interval and its source."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from math import nan
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant.data.points import Points
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError
from calibrant.inference.profile_quantity import Quantity, Table, Unavailable
from calibrant.inference.quantiles import skewed_quantiles, skewness

if TYPE_CHECKING:
    from calibrant.inference.assessment import Assessment

__all__ = [
    "Measure",
    "Profile",
    "Profiled",
    "Quantity",
    "Sample",
    "Table",
    "Unavailable",
    "as_profile",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Result = TypeVar("Result")

WIDTH = 80
BUILT_IN = ("clinical", "credit", "weather", "llm")
"""Names that `as_profile` knows; each is a function of `calibrant.profiles` that makes a profile."""


@dataclass(frozen=True, eq=False)
class Sample:
    """What a quantity is computed from: rows, or the sketch that they left.

    Attributes
    ----------
    sketch : Sketch
        Of all rows.
    assessment : Assessment
        What was found already: confidence and seed, SmoothECE, observed/expected.
    pairs : Rows or None
        The rows, where they are at hand.
    clusters : (int64[n], int) or None
        The cluster of each row as 0, 1, ..., and how many there are.
    parts : sequence of Sketch
        One for each cluster, where there are clusters but no rows.
    places : (int64[n], int) or None
        Where each row of a group was among all rows that were passed, and how many these were.

    Examples
    --------
    A quantity of your own is a function of a Sample:

    >>> import calibrant as cal
    >>> from calibrant.profiles import Profile
    >>> def share_above_half(sample):
    ...     return sample.mean("above ½", sample.rows("above ½").p > 0.5)
    >>> mine = Profile("mine", {"above ½": share_above_half})
    >>> assessment = cal.assess([0, 1, 0, 1], [0.1, 0.8, 0.3, 0.6], profile=mine)
    >>> assessment.profile["above ½"].value
    0.5
    """

    sketch: Sketch
    assessment: Assessment
    pairs: Rows | None = None
    clusters: tuple[Integers, int] | None = None
    parts: Sequence[Sketch] = ()
    places: tuple[Integers, int] | None = None
    _memory: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def confidence(self) -> float:
        """Of every interval."""
        return self.assessment.confidence

    @property
    def dependent(self) -> bool:
        """Whether rows depend on each other, in clusters."""
        return self.clusters is not None or bool(self.parts)

    @cached_property
    def atoms(self) -> Points:
        """Sorted distinct predictions: exact from rows, with a position error from a sketch."""
        if self.pairs is None:
            return Points.of(self.sketch)
        return Points.of(self.pairs)

    def once(self, compute: Callable[[Sample], Result]) -> Result:
        """What `compute` makes of this sample, computed once for all quantities that share it."""
        if compute not in self._memory:
            self._memory[compute] = compute(self)
        shared: Result = self._memory[compute]
        return shared

    def rows(self, what: str) -> Rows:
        """The rows, or the reason why `what` cannot be had without them."""
        if self.pairs is None:
            raise Unavailable("{what} needs rows; a sketch does not keep them", what=what)
        return self.pairs

    def column(self, name: str, values: NDArray[Any], cure: str) -> tuple[NDArray[Any], Integers]:
        """The rows' own part of an argument with one entry for each row passed, and their row numbers."""
        pairs = self.rows(f"a column of {name}")
        if self.places is None:
            passed = pairs.n + sum(pairs.dropped.values())
            at = np.arange(passed) if pairs.kept is None else np.arange(passed)[pairs.kept]
        else:
            at, passed = self.places
        if values.size != passed:
            raise InputError(
                "must have one entry for each of {passed} rows",
                argument=name,
                seen=values.size,
                saying="it has {}",
                cure=cure,
                passed=passed,
            )
        return values[at], at

    @cached_property
    def weights(self) -> Floats:
        """The share of each row, 1 in all."""
        pairs = self.rows("a weight for each row")
        if pairs.weight is None:
            return np.full(pairs.n, 1.0 / pairs.n)
        return np.asarray(pairs.weight / pairs.weight.sum())

    def standard_error(self, influence: Floats) -> tuple[float, float]:
        """The standard error of a sum of influences, one for each row, and its degrees of freedom.

        Rows of one cluster go together; weights are importance, not counts.
        """
        influence, share = self.together(influence), self.together(self.weights)
        units = float(1.0 / (share @ share))
        many = np.count_nonzero(share)
        factor = many / (many - 1.0) if many > 1 else nan
        return float(np.sqrt(factor * (influence @ influence))), units - 1.0

    def together(self, values: Floats) -> Floats:
        """One value for each independent unit: a row's own, or the sum over a cluster."""
        if self.clusters is None:
            return values
        codes, number = self.clusters
        return np.asarray(np.bincount(codes, values, number), dtype=np.float64)

    def mean(self, name: str, values: Floats, **known: Any) -> Quantity:
        """The mean of one value a row as a Quantity.

        Its interval is Student's, corrected for skewness (see `skewed_quantiles`). That matters where few
        rows make most of the mean, as events do when they are rare.
        """
        share = self.weights
        value = float(share @ values)
        influence = share * (values - value)
        error, degrees = self.standard_error(influence)
        skew = skewness(self.together(influence))
        below, above = skewed_quantiles(self.confidence, degrees, skew)
        low, high = value - above * error, value - below * error
        return Quantity(name, value, low, high, standard_error=error, **known)


Measure = Callable[[Sample], Quantity | Table | Sequence[Quantity]]


@dataclass(frozen=True)
class Profile:
    """A named list of quantities; nothing is computed but these.

    Parameters
    ----------
    name : str
        As headings show it.
    measures : mapping
        From what can be asked for to the function that computes it from a Sample.

    Examples
    --------
    >>> import calibrant as cal
    >>> sharpness = lambda sample: sample.mean("sharpness", abs(sample.rows("sharpness").p - 0.5))
    >>> mine = Profile("mine", {"sharpness": sharpness})
    >>> found = cal.assess([0, 1, 0, 1], [0.1, 0.8, 0.3, 0.6], profile=mine)
    >>> found.profile["sharpness"].value
    0.25
    """

    name: str
    measures: Mapping[str, Measure]

    def only(self, *names: str) -> Profile:
        """The same profile with these quantities alone.

        Examples
        --------
        >>> Profile("mine", {"a": len, "b": len}).only("b")
        Profile(mine: b)
        """
        for name in names:
            if not isinstance(name, str) or name not in self.measures:
                raise InputError(
                    "must be one of {known}",
                    argument="names",
                    seen=name,
                    known=", ".join(self.measures),
                    cure="Pass such names one by one.",
                )
        return Profile(self.name, {name: self.measures[name] for name in names})

    def measured(self, sample: Sample) -> Profiled:
        """Everything that the profile lists, of this sample."""
        entries: list[Quantity | Table] = []
        for name, measure in self.measures.items():
            try:
                result = measure(sample)
            except Unavailable as reason:
                result = Quantity(name, note=str(reason))
            entries += _entries(name, result)
        return Profiled(self.name, tuple(entries), sample.confidence)

    def __repr__(self) -> str:
        return f"Profile({self.name}: {', '.join(self.measures)})"


@dataclass(frozen=True)
class Profiled:
    """What a profile found: quantities and tables by name, in the profile's order.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(200)
    >>> found = cal.assess(rng.random(200) < p, p, profile="clinical").profile
    >>> "observed / expected" in list(found)
    True
    """

    name: str
    entries: tuple[Quantity | Table, ...]
    confidence: float

    def __getitem__(self, name: str) -> Any:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise KeyError(f"no {name!r}; there are {', '.join(self)}")

    def __iter__(self) -> Iterator[str]:
        return iter(entry.name for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def quantities(self) -> list[Quantity]:
        """The entries that are one number each."""
        return [entry for entry in self.entries if isinstance(entry, Quantity)]

    @property
    def tables(self) -> list[Table]:
        """The entries that are tables."""
        return [entry for entry in self.entries if isinstance(entry, Table)]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Name and note of every entry that has one."""
        return [(entry.name, entry.note) for entry in self.entries if entry.note]

    @property
    def sources(self) -> dict[str, list[str]]:
        """What is taken from each source, by name."""
        told: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.source:
                told.setdefault(entry.source.replace("; ", ", "), []).append(entry.name)
        return told

    def cells(self) -> list[list[str]]:
        """Header and rows of the table of quantities, as they are shown."""
        header = [self.name, "value", f"{100 * self.confidence:g}% interval", "p"]
        return [header, *(quantity.cells() for quantity in self.quantities)]

    def __str__(self) -> str:
        blocks = [_aligned(self.cells())] if self.quantities else []
        blocks += [f"{table.name}\n{_aligned(table.cells())}" for table in self.tables]
        if self.notes:
            blocks.append("\n".join(f"{name}: {note}" for name, note in self.notes))
        if self.sources:
            said = "; ".join(
                f"{', '.join(names)}: {source}" for source, names in self.sources.items()
            )
            blocks.append(fill(f"Sources. {said}.", WIDTH, subsequent_indent="  "))
        return "\n\n".join(blocks)

    def __repr__(self) -> str:
        return f"Profiled({self.name}: {', '.join(self)})"

    def _repr_html_(self) -> str:
        tables = [self.cells(), *(table.cells() for table in self.tables)]
        notes = "".join(f"<p>{escape(name)}: {escape(note)}</p>" for name, note in self.notes)
        return "".join(map(_html, tables)) + notes

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        return {
            "name": self.name,
            "quantities": [quantity.to_dict() for quantity in self.quantities],
            "tables": [table.to_dict() for table in self.tables],
        }


def as_profile(profile: str | Profile) -> Profile:
    """A profile as it is, or the built-in one of that name."""
    if isinstance(profile, str) and profile in BUILT_IN:
        # By name, as the facade does it: the profiles stand on this module, not the other way round.
        made: Profile = getattr(importlib.import_module("calibrant.profiles"), profile)()
        return made
    if isinstance(profile, Profile):
        return profile
    raise InputError(
        "must be {known}, or a Profile",
        argument="profile",
        seen=profile,
        known=", ".join(map(repr, BUILT_IN)),
        cure="Pass one of these names.",
    )


def _entries(name: str, result: Any) -> list[Quantity | Table]:
    """What a measure gave, as a list."""
    listed = list(result) if isinstance(result, list | tuple) else [result]
    for entry in listed:
        if not isinstance(entry, Quantity | Table):
            raise InputError(
                "must hold measures that return a Quantity, a Table, or a list of these",
                argument="profile",
                seen=entry,
                saying="{measure} gives {}",
                cure="Return Quantity(name, value).",
                measure=repr(name),
            )
    return listed


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if k else text.ljust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _html(rows: Sequence[Sequence[str]]) -> str:
    header, *body = rows
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in body
    )
    return f"<table><tr>{head}</tr>{lines}</table>"
