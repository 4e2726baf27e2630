"""Profiles: the quantities that a field of use asks for, each with its interval and its source.

A profile is a name with functions from a `Sample` to a `Quantity`. To add one that `assess` and the command
line know by name, write one module in `calibrant/profiles` whose function has the decorator `profile`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from math import isnan, nan
from textwrap import fill
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import nearest
from calibrant._format import aligned, decimals, html_table, p_text
from calibrant.data.arrays import require_entries
from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.points import Points
from calibrant.data.rows import Rows
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Stacked
from calibrant.errors import InputError, invalid, show_value
from calibrant.inference.quantiles import normal_quantile, skewed_quantiles, skewness
from calibrant.inference.residuals import LabelSums, cell_positions
from calibrant.measures.result_record import frame_of, plain

if TYPE_CHECKING:
    from calibrant.inference.assessment import Assessment

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Result = TypeVar("Result")
P = ParamSpec("P")

LINE = 80
"""Width of every text."""
UNIT = 2.0**-FRACTION_BITS
UNSEEN = 1e-6
"""A bound up to this changes no digit that a table shows."""


class Unavailable(InputError):
    """A quantity that the sample cannot give; the profile shows the reason in its place.

    Examples
    --------
    >>> print(Unavailable("there is no event"))
    there is no event
    """


@dataclass(frozen=True)
class Quantity:
    """A number with its interval and its source.

    Attributes
    ----------
    name : str
        As tables show it.
    value : float
        NaN where the sample cannot give it; `note` says why.
    low, high : float
        Confidence limits; NaN where there are none.
    p_value, standard_error : float
        NaN where there is none.
    bound : float
        Largest distance from the value of the rows, where it is known: of SmoothECE and binned sums from a
        sketch. Other values of a sketch are those of rows at the means of their cells.
    source : str
        Paper that defines it.
    note : str
        What a reader must know beside the number.

    Examples
    --------
    >>> gap = Quantity("gap", 0.03, low=0.01, high=0.05)
    >>> gap.value, gap.low, gap.high
    (0.03, 0.01, 0.05)
    """

    name: str
    value: float = nan
    low: float = nan
    high: float = nan
    p_value: float = nan
    standard_error: float = nan
    bound: float = 0.0
    source: str = ""
    note: str = ""

    def cells(self) -> list[str]:
        """Name, value, interval and p-value as text."""
        value = decimals(self.value)
        if self.bound > UNSEEN and not isnan(self.value):
            value += f" ± {self.bound:.1g}"
        unknown = isnan(self.low) and isnan(self.high)
        interval = "" if unknown else f"{decimals(self.low)} to {decimals(self.high)}"
        return [self.name, value, interval, "" if isnan(self.p_value) else p_text(self.p_value)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; infinities as "inf" and "-inf"."""
        return {name: _number(value) for name, value in vars(self).items()}


@dataclass(frozen=True)
class Table:
    """Several numbers for each of several rows, such as grades.

    Attributes
    ----------
    name : str
        Heading.
    columns : mapping
        From the name of a column to its values; the first column names the rows.
    source, note : str
        As in `Quantity`.

    Examples
    --------
    >>> grades = Table("Grades", {"grade": ["A", "B"], "rows": [120, 80]})
    >>> list(grades.columns)
    ['grade', 'rows']
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    source: str = ""
    note: str = ""

    def cells(self) -> list[list[str]]:
        """Header and rows as text."""
        values = zip(*self.columns.values(), strict=True)
        return [list(self.columns), *([_text(value) for value in row] for row in values)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the rows as a list of mappings."""
        values = zip(*self.columns.values(), strict=True)
        rows = [dict(zip(self.columns, map(_number, row), strict=True)) for row in values]
        return {"name": self.name, "rows": rows, "source": self.source, "note": self.note}


@dataclass(frozen=True, eq=False)
class Sample:
    """Data that a quantity is computed from: rows, or the cells of a sketch.

    The arrays `p`, `y`, `share` have one entry for each row; from a sketch, two for each cell: its rows
    without and with the event, at their mean.

    Attributes
    ----------
    sketch : Sketch
        Sketch of all rows.
    assessment : Assessment
        The assessment: confidence and seed, SmoothECE, observed/expected.
    rows : Rows or None
        The rows, where they are at hand.
    clusters : (int64[n], int) or None
        Cluster of each row as 0, 1, ..., and the number of clusters.
    parts : sequence of Sketch
        Sketch of each cluster, where there are clusters but no rows.
    places : (int64[n], int) or None
        Place of each row of a group among all rows that were passed, and the number of these.

    Examples
    --------
    >>> import calibrant as cal
    >>> from calibrant.profiles import Profile
    >>> mine = Profile("mine", {"above ½": lambda sample: sample.mean("above ½", sample.p > 0.5)})
    >>> assessment = cal.assess([0, 1, 0, 1], [0.1, 0.8, 0.3, 0.6], profile=mine)
    >>> assessment.profile["above ½"].value
    0.5
    """

    sketch: Sketch
    assessment: Assessment
    rows: Rows | None = None
    clusters: tuple[Integers, int] | None = None
    parts: Sequence[Sketch] = ()
    places: tuple[Integers, int] | None = None
    _memory: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def confidence(self) -> float:
        """Confidence of every interval."""
        return self.assessment.confidence

    @property
    def dependent(self) -> bool:
        """True where rows depend on each other, in clusters."""
        return self.cluster is not None

    @property
    def fractional(self) -> bool:
        """True where rows can count for other than one whole outcome (weights or soft labels)."""
        return self.sketch.weighted if self.rows is None else self.rows.fractional

    @cached_property
    def points(self) -> Points:
        """Sorted distinct predictions with the weight of each outcome."""
        return Points.of(self.sketch if self.rows is None else self.rows)

    def once(self, compute: Callable[[Sample], Result]) -> Result:
        """Result of `compute` for this sample, computed once for all quantities that share it."""
        if compute not in self._memory:
            self._memory[compute] = compute(self)
        shared: Result = self._memory[compute]
        return shared

    def require_rows(self, quantity: str) -> Rows:
        """The rows; `Unavailable` where there is only a sketch."""
        if self.rows is None:
            raise Unavailable(f"{quantity} needs rows; a sketch does not keep them")
        return self.rows

    def column(self, name: str, values: NDArray[Any]) -> tuple[NDArray[Any], Integers]:
        """Entries of an argument, one for each row passed, that belong to the rows; and their numbers."""
        rows = self.require_rows(f"a column of {name}")
        if self.places is None:
            return rows.entries(values, name), rows.entries(np.arange(rows.passed), name)
        at, passed = self.places
        require_entries(name, values, passed)
        return values[at], at

    # -- entries -----------------------------------------------------------------------------------

    @cached_property
    def _cells(self) -> tuple[Floats, Floats, Integers | None]:
        """Position and weight [m, 2] of the cells of a sketch, or of each cluster's, and the clusters."""
        if not self.parts:
            return cell_positions(self.sketch, by_label=True), self.sketch.weights, None
        table = Stacked.of(self.parts)
        return (
            cell_positions(table.entries, by_label=True),
            table.entries.weights,
            np.repeat(table.code, 2),
        )

    @cached_property
    def p(self) -> Floats:
        """Prediction of each entry."""
        if self.rows is not None:
            return self.rows.p
        return np.clip(np.asarray(self.sketch.scale.prediction(self._cells[0])).ravel(), 0.0, 1.0)

    @cached_property
    def y(self) -> Floats:
        """Outcome of each entry."""
        return np.tile([0.0, 1.0], self.p.size // 2) if self.rows is None else self.rows.y

    @cached_property
    def share(self) -> Floats:
        """Share of each entry in the whole weight."""
        if self.rows is None:
            return self._cells[1].ravel() / self.sketch.total_weight
        if self.rows.weight is None:
            return np.full(self.rows.n, 1.0 / self.rows.n)
        return np.asarray(self.rows.weight / self.rows.weight.sum())

    @cached_property
    def cluster(self) -> Integers | None:
        """Cluster of each entry as 0, 1, ...; None where rows are independent."""
        if self.rows is None:
            return self._cells[2]
        return None if self.clusters is None else self.clusters[0]

    @cached_property
    def log_odds(self) -> Floats:
        """Log-odds of each entry: infinite at 0 and 1, and as they were passed where they were logits.

        A sketch does not know them where it has several rows in its first or last cell.
        """
        if self.rows is not None and self.rows.form == "logit":
            return np.asarray(self.rows.raw_prob, dtype=np.float64)
        scale = self.sketch.scale
        if self.rows is None and scale.logits_per_unit is not None:
            position = self._cells[0].ravel()
            line = scale.limits[0] - scale.margin + position * scale.length
            return np.asarray(line * scale.logits_per_unit)
        if self.rows is None:
            self._require_known_log_odds()
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.p) - np.log1p(-self.p))

    def _require_known_log_odds(self) -> None:
        if not self.sketch.scale.reflected:
            raise Unavailable("log-odds need rows, or a sketch on the probability or logit scale")
        p, width = self.points.p, 1.0 / self.sketch.nodes
        rows = self.sketch.counts[self.sketch.weights.sum(axis=1) > 0.0].sum(axis=1)
        # Nearer to 0 than a few units of the fixed point not even a row alone is known well enough.
        unknown = (p < width) | ((p >= 1.0 - width) & (p < 1.0))
        unknown &= (rows > 1) | (p < 64.0 * UNIT)
        if unknown.any():
            raise Unavailable(
                f"log-odds need rows, or a logit sketch: {int(rows[unknown].sum()):,} rows of this sketch "
                "lie so near 0 or 1 that theirs are not known"
            )

    # -- means and standard errors -----------------------------------------------------------------

    @cached_property
    def _squared(self) -> Floats:
        """Sum of the squared shares of the rows of each entry."""
        if self.rows is not None:
            return self.share**2
        return np.asarray(self.sketch.squared_weights.ravel() / self.sketch.total_weight**2)

    @cached_property
    def units(self) -> float:
        """Effective number (Σw)² / Σw² of independent rows or clusters."""
        if self.dependent:
            return float(1.0 / (self.by_unit(self.share) ** 2).sum())
        return min(float(1.0 / self._squared.sum()), float(self.sketch.n))

    def by_unit(self, values: Floats) -> Floats:
        """Sum of the values of each cluster; the values themselves where rows are independent."""
        if self.cluster is None:
            return values
        return np.bincount(self.cluster, values).astype(np.float64)

    def covariance(self, *influences: Floats) -> Floats:
        """Covariance of the sums Σ share · influence, one influence for each entry.

        Rows of one cluster are added up first; weights are importance, not counts.
        """
        many, d = float(np.count_nonzero(self.by_unit(self.share))), np.stack(influences)
        if self.dependent:
            sums = np.stack([self.by_unit(self.share * one) for one in d])
            products = sums @ sums.T
        else:
            products = (d * self._squared) @ d.T
        if self.rows is None and not self.dependent:
            many, cells = self.units, d.reshape(len(d), -1, 2)
            cross = LabelSums.of(self.sketch).cross / self.sketch.total_weight**2
            both = (cells[..., 0] * cross) @ cells[..., 1].T
            products += both + both.T
        return np.asarray(products * (many / (many - 1.0) if many > 1.0 else nan))

    def standard_error(self, influence: Floats) -> float:
        """Standard error of Σ share · influence."""
        return float(np.sqrt(max(self.covariance(influence)[0, 0], 0.0)))

    @property
    def quantile(self) -> float:
        """Student's two-sided quantile with `units` - 1 degrees of freedom."""
        return normal_quantile(0.5 + 0.5 * self.confidence, self.units - 1.0)

    def mean(self, name: str, values: Any, **known: Any) -> Quantity:
        """Mean of one value an entry as a Quantity.

        The interval is Student's, corrected for skewness (see `skewed_quantiles`). That matters where few
        rows make most of the mean, as events do when they are rare.
        """
        values = np.asarray(values, dtype=np.float64)
        value = float(self.share @ values)
        deviations = values - value
        error = self.standard_error(deviations)
        if self.dependent:
            skew = skewness(self.by_unit(self.share * deviations))
        else:  # the rows of an entry are taken to weigh alike
            alike = self._squared**2 / np.where(self.share > 0.0, self.share, 1.0)
            variance = float(self._squared @ deviations**2)
            skew = float(alike @ deviations**3) / variance**1.5 if variance > 0.0 else 0.0
        below, above = skewed_quantiles(self.confidence, self.units - 1.0, skew)
        low, high = value - above * error, value - below * error
        return Quantity(name, value, low, high, standard_error=error, **known)


Measure = Callable[[Sample], Quantity | Table | Sequence[Quantity]]


@dataclass(frozen=True)
class Profile:
    """A named list of quantities.

    Parameters
    ----------
    name : str
        As headings show it.
    measures : mapping
        From what can be asked for to the function that computes it from a Sample.

    Examples
    --------
    >>> import calibrant as cal
    >>> sharpness = lambda sample: sample.mean("sharpness", abs(sample.p - 0.5))
    >>> mine = Profile("mine", {"sharpness": sharpness})
    >>> found = cal.assess([0, 1, 0, 1], [0.1, 0.8, 0.3, 0.6], profile=mine)
    >>> found.profile["sharpness"].value
    0.25
    """

    name: str
    measures: Mapping[str, Measure]

    def only(self, *names: str) -> Profile:
        """The profile with these quantities alone.

        Examples
        --------
        >>> Profile("mine", {"a": len, "b": len}).only("b")
        Profile(mine: b)
        """
        for name in names:
            if not isinstance(name, str) or name not in self.measures:
                raise invalid("names", f"be among {', '.join(self.measures)}", name)
        return Profile(self.name, {name: self.measures[name] for name in names})

    def measured(self, sample: Sample) -> Profiled:
        """Everything that the profile lists, of this sample."""
        entries: list[Quantity | Table] = []
        for name, measure in self.measures.items():
            try:
                result: Any = measure(sample)
            except Unavailable as reason:
                result = Quantity(name, note=str(reason))
            for entry in result if isinstance(result, list | tuple) else [result]:
                if not isinstance(entry, Quantity | Table):
                    raise InputError(
                        f"`profile` must hold measures that return a Quantity, a Table, or a list of these; "
                        f"{name!r} gives {show_value(entry)}.",
                        hint="Return Quantity(name, value).",
                    )
                entries.append(entry)
        return Profiled(self.name, tuple(entries), sample.confidence)

    def __repr__(self) -> str:
        return f"Profile({self.name}: {', '.join(self.measures)})"


@dataclass(frozen=True)
class Profiled:
    """Quantities and tables of a profile by name, in its order.

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
        """Entries that are one number each."""
        return [entry for entry in self.entries if isinstance(entry, Quantity)]

    @property
    def tables(self) -> list[Table]:
        """Entries that are tables."""
        return [entry for entry in self.entries if isinstance(entry, Table)]

    @property
    def notes(self) -> list[tuple[str, str]]:
        """Name and note of every entry that has one."""
        return [(entry.name, entry.note) for entry in self.entries if entry.note]

    @property
    def sources(self) -> dict[str, list[str]]:
        """Names of the quantities by source."""
        names: dict[str, list[str]] = {}
        for entry in self.entries:
            if entry.source:
                names.setdefault(entry.source.replace("; ", ", "), []).append(entry.name)
        return names

    def cells(self) -> list[list[str]]:
        """Header and rows of the table of quantities as text."""
        header = [self.name, "value", f"{100 * self.confidence:g}% interval", "p"]
        return [header, *(quantity.cells() for quantity in self.quantities)]

    def __str__(self) -> str:
        blocks = [aligned(self.cells())] if self.quantities else []
        blocks += [f"{table.name}\n{aligned(table.cells())}" for table in self.tables]
        if self.notes:
            blocks.append("\n".join(f"{name}: {note}" for name, note in self.notes))
        if self.sources:
            each = "; ".join(f"{', '.join(names)}: {one}" for one, names in self.sources.items())
            blocks.append(fill(f"Sources. {each}.", LINE, subsequent_indent="  "))
        return "\n\n".join(blocks)

    def __repr__(self) -> str:
        return f"Profiled({self.name}: {', '.join(self)})"

    def _repr_html_(self) -> str:
        tables = [self.cells(), *(table.cells() for table in self.tables)]
        notes = "".join(f"<p>{escape(name)}: {escape(note)}</p>" for name, note in self.notes)
        return "".join(map(html_table, tables)) + notes

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        return {
            "name": self.name,
            "quantities": [quantity.to_dict() for quantity in self.quantities],
            "tables": [table.to_dict() for table in self.tables],
        }

    def to_frame(self, backend: Any = None) -> Any:
        """Data frame with a row for each quantity; see `frame_of` for the backend."""
        return frame_of([vars(quantity) for quantity in self.quantities], backend)


# -- registry --------------------------------------------------------------------------------------

PROFILES: dict[str, Callable[..., Profile]] = {}
"""Functions that make a profile, by its name; `profile` adds one."""


def profile(make: Callable[P, Profile]) -> Callable[P, Profile]:
    """Decorator that registers a function as the profile of its name.

    Examples
    --------
    >>> @profile
    ... def nothing() -> Profile:
    ...     return Profile("nothing", {})
    >>> as_profile("nothing").name
    'nothing'
    >>> del PROFILES["nothing"]
    """
    PROFILES[make.__name__] = make
    return make


def as_profile(asked: str | Profile) -> Profile:
    """A profile as it is, or the registered one of that name."""
    if isinstance(asked, Profile):
        return asked
    importlib.import_module("calibrant.profiles")  # registers the built-in ones
    if isinstance(asked, str) and asked in PROFILES:
        return PROFILES[asked]()
    known = ", ".join(map(repr, PROFILES))
    raise invalid("profile", f"be {known}, or a Profile", asked, nearest(asked, PROFILES))


# -- text ------------------------------------------------------------------------------------------


def _number(value: Any) -> Any:
    if isinstance(value, float | np.floating) and np.isinf(value):
        return "inf" if value > 0 else "-inf"
    return plain(value)


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return decimals(float(value))
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)
