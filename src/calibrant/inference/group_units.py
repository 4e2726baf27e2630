"""Groups of rows, and what in each of them is independent: its rows, or its clusters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import as_column
from calibrant.data.rows import InputOptions, Rows, as_rows
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches, Stacked
from calibrant.errors import InputError
from calibrant.inference.assessment import Assessment
from calibrant.inference.clusters import ClusterResiduals, cluster_codes, clusters_with_weight
from calibrant.inference.groups import Others
from calibrant.inference.profile import Sample
from calibrant.io.group_keys import indexed

__all__ = ["GroupUnits", "GroupedRows", "largest_of", "parts_of", "total_of"]


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Arrays apart by group: the number of each row's, and of each its place among all that were passed."""

    pairs: Rows
    group: NDArray[np.int64]
    number: Mapping[Any, int]
    units: NDArray[Any] | None
    places: NDArray[np.int64]
    passed: int

    @classmethod
    def of(
        cls, y_true: Any, y_prob: Any, by: Any, cluster: Any, options: InputOptions
    ) -> GroupedRows:
        pairs = as_rows(y_true, y_prob, **options)
        columns = by.values() if isinstance(by, Mapping) else [by]
        if hasattr(by, "columns"):
            columns = [by[name] for name in by.columns]
        group, keys = indexed(
            zip(*(as_column(c, "by", dates=True).tolist() for c in columns), strict=True)
        )
        number = {key if len(key) > 1 else key[0]: place for place, key in enumerate(keys)}
        units = None if cluster is None else as_column(cluster, "cluster", dates=True)
        if units is not None:
            cluster_codes(units, group.size)  # says what is wrong with it
        passed, places = group.size, np.arange(group.size)
        if pairs.kept is not None:
            group, places = group[pairs.kept], places[pairs.kept]
            units = None if units is None else units[pairs.kept]
        return cls(pairs, group, number, units, places, passed)

    def at(self, keys: Collection[Any]) -> NDArray[np.int64]:
        """The rows of these groups."""
        wanted = np.zeros(len(self.number), dtype=np.bool_)
        wanted[[self.number[key] for key in keys]] = True
        return np.flatnonzero(wanted[self.group])


@dataclass(frozen=True, eq=False)
class GroupUnits:
    """The groups, and what in each of them is independent: its rows, or its clusters."""

    parts: Mapping[Any, Mapping[Any, Sketch]]
    rows: GroupedRows | None
    cluster: Any

    def clusters(self, key: Any, scale: Scale) -> ClusterResiduals | None:
        """The clusters of a group, where there are any; TooFewRows where there is one."""
        if self.cluster is None:
            return None
        if self.rows is not None:
            pairs, codes = self._own(key)
            assert codes is not None
            return ClusterResiduals.of(scale, pairs, codes)
        sketches = clusters_with_weight(Stacked.of(self.parts[key].values()))
        return ClusterResiduals.of_sketches(scale, sketches)

    def sample(self, key: Any, assessment: Assessment) -> Sample:
        """A group as quantities are computed from it."""
        sketch = total_of(self.parts[key])
        if self.rows is None:
            parts: Sequence[Sketch] = []
            if self.cluster is not None:
                parts = clusters_with_weight(Stacked.of(self.parts[key].values()))
            return Sample(sketch, assessment, parts=parts)
        pairs, codes = self._own(key)
        places = (self.rows.places[self._at(key)], self.rows.passed)
        return Sample(sketch, assessment, pairs, codes, places=places)

    def _at(self, key: Any) -> NDArray[np.int64]:
        assert self.rows is not None
        if not isinstance(key, Others):
            return self.rows.at([key])
        return self.rows.at([one for one in self.rows.number if one not in self.parts])

    def _own(self, key: Any) -> tuple[Rows, tuple[NDArray[np.int64], int] | None]:
        assert self.rows is not None
        at = self._at(key)
        own = self.rows.pairs.select(at)
        units = self.rows.units
        return own, None if units is None else cluster_codes(units[at], own.n, own.weight)


def parts_of(sketches: Sketches, cluster: str | None) -> dict[Any, dict[Any, Sketch]]:
    """The sketches that make up each group, by cluster."""
    names = tuple(name for name in sketches.by if name != cluster)
    if not names or (cluster is not None and cluster not in sketches.by):
        raise InputError(
            "must be one of the columns that group the sketches, beside another to group by",
            argument="cluster", seen=cluster,
            cure="They are grouped by: {names}.", names=", ".join(sketches.by),
        )  # fmt: skip
    places = [sketches.by.index(name) for name in names]
    last = None if cluster is None else sketches.by.index(cluster)
    parts: dict[Any, dict[Any, Sketch]] = {}
    for key, sketch in sketches.items():
        values = key if len(sketches.by) > 1 else (key,)
        group = tuple(values[place] for place in places)
        own = parts.setdefault(group if len(group) > 1 else group[0], {})
        unit = len(own) if last is None else values[last]
        own[unit] = own.get(unit, 0) + sketch
    return parts


def largest_of(
    parts: Mapping[Any, Mapping[Any, Sketch]], limit: int | None, *, clustered: bool
) -> Mapping[Any, Mapping[Any, Sketch]]:
    """The largest groups in their order, and all others as one more, by cluster."""
    if limit is None or len(parts) <= limit + 1:
        return parts
    # Classes against the rest have the same number of rows: those with the most cases are the largest.
    size = {
        key: (
            -sum(sketch.n for sketch in own.values()),
            -sum(int(sketch.counts[:, 1].sum()) for sketch in own.values()),
        )
        for key, own in parts.items()
    }
    largest = set(sorted(parts, key=lambda key: size[key])[:limit])
    shown = {key: own for key, own in parts.items() if key in largest}
    others: dict[Any, Sketch] = {}
    for key in [key for key in parts if key not in largest]:
        for unit, sketch in parts[key].items():
            place = unit if clustered else (key, unit)
            others[place] = others.get(place, 0) + sketch
    return {**shown, Others(len(parts) - limit): others}


def total_of(parts: Mapping[Any, Sketch]) -> Sketch:
    """The sketch of a group."""
    return Sketches(parts, by="part").total()
