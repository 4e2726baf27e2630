"""`assess_by`: every group, the worst of them, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any, Literal

from calibrant._format import decimals, p_text
from calibrant.data.naming import group_text
from calibrant.data.pairs import as_pairs
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError
from calibrant.inference.assess import assessment_of, require_margin
from calibrant.inference.assessment import Assessment, format_p_value
from calibrant.inference.band import DifferenceBand, difference_band
from calibrant.inference.clusters import (
    ClusterResiduals,
)
from calibrant.inference.correction import adjusted_p_values, smallest_p_value
from calibrant.inference.dependence import warn_of_repeated_ids, warn_of_repeated_rows
from calibrant.inference.hypothesis import RESAMPLES, draws_needed
from calibrant.inference.interval import require_confidence
from calibrant.inference.planning import detectable_error
from calibrant.measures.record import plain
from calibrant.read.scan import scan

__all__ = ["GroupAssessments", "assess_by"]


@dataclass(frozen=True, eq=False)
class GroupAssessments(Mapping[Any, Assessment]):
    """Assessments by group, the strongest evidence of miscalibration first.

    Attributes
    ----------
    by : tuple of str
        The grouping columns.
    assessments : mapping
        From group to Assessment, sorted by p-value.
    adjusted : mapping
        P-value of each group, corrected for all of them (Holm).
    detectable : mapping
        The smallest SmoothECE that each group's rows would show, with probability .8.
    skipped : mapping
        Groups that have too few rows or clusters, and why.
    worst : object
        The group with the strongest evidence.
    worst_p_value : float
        Of its error, accounting for the search among all groups: these are disjoint, so the smallest
        of k p-values is below p with probability 1 - (1 - p)^k if all are calibrated. With clusters,
        which may reach into several groups, it is k p.
    clustered : bool
        Whether rows were taken to depend on each other.
    """

    by: tuple[str, ...]
    assessments: Mapping[Any, Assessment]
    adjusted: Mapping[Any, float]
    detectable: Mapping[Any, float]
    skipped: Mapping[Any, str]
    worst: Any
    worst_p_value: float
    clustered: bool
    confidence: float
    seed: int
    sketches: Mapping[Any, Sketch]

    def __getitem__(self, key: Any) -> Assessment:
        return self.assessments[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.assessments)

    def __len__(self) -> int:
        return len(self.assessments)

    @property
    def verdict(self) -> str:
        """The finding in one line."""
        wrong = sum(p <= 1.0 - self.confidence for p in self.adjusted.values())
        line = f"{wrong} of {len(self)} groups miscalibrated"
        if self.worst_p_value <= 1.0 - self.confidence:
            found = self[self.worst]
            line += (
                f"; worst: {_shown(self.worst)}, {found.smooth_ece:.3g}, "
                f"{format_p_value(self.worst_p_value)} after the search"
            )
        return line

    def difference(self, first: Any, second: Any) -> DifferenceBand:
        """A simultaneous band for the difference of two groups' calibration curves."""
        if self.clustered:
            raise InputError(
                "the band takes rows to be independent, and these are in clusters: it would be too "
                "narrow. Keep one row of each cluster, and assess again without `cluster`."
            )
        for key in (first, second):
            if key not in self.sketches:
                raise InputError(f"no group {key!r}; there are {', '.join(map(_shown, self))}.")
        return difference_band(
            self.sketches[first],
            self.sketches[second],
            confidence=self.confidence,
            seed=self.seed,
        )

    def rows(self) -> list[list[str]]:
        """What the text table shows, a header first."""
        header = [
            ", ".join(self.by),
            "n",
            "SmoothECE",
            "interval",
            "floor",
            "detectable",
            "p",
            "all",
        ]
        rows = [header]
        for key, one in self.items():
            rows.append(
                [
                    _shown(key),
                    f"{one.n:,}",
                    decimals(one.smooth_ece),
                    f"{decimals(one.interval.low)} to {decimals(one.interval.high)}",
                    decimals(one.noise_floor.value),
                    decimals(self.detectable[key]),
                    p_text(one.p_value),
                    p_text(self.adjusted[key]),
                ]
            )
        return rows

    def __str__(self) -> str:
        rows = self.rows()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = [
            "  ".join(
                text.ljust(width) if k == 0 else text.rjust(width)
                for k, (text, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([self.verdict, "", *lines, *self._skipped_lines()])

    def _skipped_lines(self) -> list[str]:
        return [f"{_shown(key)}: {why}" for key, why in self.skipped.items()]

    def __repr__(self) -> str:
        return f"GroupAssessments(by {', '.join(self.by)}: {self.verdict})"

    def _repr_html_(self) -> str:
        header, *rows = self.rows()
        head = "".join(f"<th>{escape(text)}</th>" for text in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows
        )
        skipped = "".join(f"<p>{escape(line)}</p>" for line in self._skipped_lines())
        return f"<p><b>{escape(self.verdict)}</b></p><table><tr>{head}</tr>{body}</table>{skipped}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; numbers that are not finite are None."""
        out: dict[str, Any] = {
            "verdict": self.verdict,
            "by": list(self.by),
            "worst": _shown(self.worst),
            "worst_p_value": self.worst_p_value,
            "groups": [
                {
                    "group": _shown(key),
                    "adjusted_p_value": self.adjusted[key],
                    "detectable": self.detectable[key],
                    **one.to_dict(),
                }
                for key, one in self.items()
            ],
            "skipped": {_shown(key): why for key, why in self.skipped.items()},
        }
        plainly: dict[str, Any] = plain(out)
        return plainly


def assess_by(
    source: Any,
    y_prob: Any = None,
    *,
    y_true: Any = None,
    by: Any = None,
    sample_weight: Any = None,
    cluster: Any = None,
    margin: float | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    scale: str | Scale | None = None,
    labels: Literal["binary", "soft"] = "binary",
    from_logits: bool = False,
    percent: bool = False,
    on_invalid: Literal["raise", "drop"] = "raise",
) -> GroupAssessments:
    """Assess every group of a frame, and find the worst.

    Parameters
    ----------
    source : frame, files, Sketches or array
        Whatever `scan` reads, or what it gave when it grouped; or the outcomes as an array.
    y_true, y_prob, sample_weight : str
        Columns. Where `source` is an array, `y_prob` and `sample_weight` are arrays too.
    by : str or list of str
        Groups; several columns are crossed. Of Sketches, some of their columns: the others are added up.
        With arrays: an array of groups, or several by name, in a mapping or a frame.
    cluster : str, optional
        The column whose values make rows dependent; see `assess`. With arrays, an array.
    margin, confidence, seed, scale, labels, from_logits, percent, on_invalid
        As in `assess`. Of a frame, log-odds and percentages are converted by an expression: see `scan`.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> sex = rng.choice(["f", "m"], 4000)
    >>> y = rng.random(4000) < np.where(sex == "f", p, p**2)
    >>> found = assess_by(
    ...     pl.DataFrame({"y": y, "p": p, "sex": sex}), y_true="y", y_prob="p", by="sex"
    ... )
    >>> found.worst, found["m"].miscalibrated
    ('m', True)
    >>> assess_by(y, p, by=sex).worst
    'm'
    """
    require_confidence(confidence)
    require_margin(margin)
    if isinstance(source, Sketches):
        rows = {"y_prob": y_prob, "y_true": y_true, "sample_weight": sample_weight}
        rows["on_invalid"] = None if on_invalid == "raise" else on_invalid
        rows["labels"] = None if labels == "binary" else labels
        rows |= {"from_logits": from_logits or None, "percent": percent or None}
        return _assessed(
            _regrouped(source, by, cluster, scale, rows), cluster, margin, confidence, seed
        )
    if y_true is None and y_prob is not None and not isinstance(y_prob, str):
        if from_logits or percent:
            read_as = as_pairs(
                source, y_prob, labels=labels, from_logits=from_logits, percent=percent
            )
            y_prob, from_logits, percent = read_as.probabilities(slice(None)), False, False
        source, by = _columns(source, y_prob, by, sample_weight, cluster)
        y_true, y_prob = "y_true", "y_prob"
        sample_weight = None if sample_weight is None else "sample_weight"
        cluster = None if cluster is None else "cluster"
    _require_columns(y_true=y_true, y_prob=y_prob, by=by or None)
    sketches = scan(
        source,
        y_true=y_true,
        y_prob=y_prob,
        sample_weight=sample_weight,
        by=by,
        cluster=cluster,
        scale=PROBABILITY if scale is None else scale,
        labels=labels,
        from_logits=from_logits,
        percent=percent,
        on_invalid=on_invalid,
    )
    assert isinstance(sketches, Sketches)
    if cluster is None:
        warn_of_repeated_ids(source, y_true, y_prob, (*sketches.by, sample_weight), stacklevel=3)
        if isinstance(source, Mapping):
            pairs = as_pairs(source[y_true], source[y_prob], labels=labels, on_invalid=on_invalid)
            warn_of_repeated_rows(pairs, stacklevel=3)
    return _assessed(sketches, cluster, margin, confidence, seed)


def _require_columns(**given: Any) -> None:
    missing = ", ".join(f"`{name}`" for name, value in given.items() if value is None)
    if missing:
        raise InputError(
            f"`y_true`, `y_prob` and `by` must name columns; {missing} was not given. Pass Sketches to go "
            "without them."
        )


def _regrouped(
    sketches: Sketches, by: Any, cluster: Any, scale: str | Scale | None, rows: Mapping[str, Any]
) -> Sketches:
    """The sketches, grouped by what was asked for; refuses all that was settled with them."""
    given = [f"`{name}`" for name, value in rows.items() if value is not None]
    if given:
        raise InputError(
            "sketches already hold predictions, outcomes and weights; leave out "
            f"{', '.join(given)}."
        )
    if scale is not None:
        as_sketch(sketches.total(), scale=scale)
    if by is None:
        return sketches
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names or not all(name in sketches.by for name in names):
        raise InputError(
            f"`by` must name some of the columns that group the sketches, {', '.join(sketches.by)}; "
            f"got {by!r}."
        )
    names = (*names, cluster) if cluster in sketches.by else names
    return sketches.roll_up(*dict.fromkeys(names))


def _columns(
    y_true: Any, y_prob: Any, by: Any, sample_weight: Any, cluster: Any
) -> tuple[dict[str, Any], dict[str, str]]:
    """Arrays as the columns of one batch, and from each grouping's name to its column."""
    if isinstance(by, str) or not hasattr(by, "__iter__") or (isinstance(by, Mapping) and not by):
        raise InputError(
            "with arrays, `by` must give the group of every row, or several such arrays by name; "
            f"got {by!r}. Without groups, use `assess`."
        )
    if isinstance(by, Mapping):
        groups = dict(by)
    elif hasattr(by, "columns"):
        groups = {name: by[name] for name in by.columns}
    else:
        groups = {"group": by}
    given = {"y_true": y_true, "y_prob": y_prob, "sample_weight": sample_weight, "cluster": cluster}
    columns = {name: values for name, values in given.items() if values is not None}
    names = {str(name): f"by[{name!r}]" for name in groups}
    return columns | dict(zip(names.values(), groups.values(), strict=True)), names


def _assessed(
    sketches: Sketches, cluster: str | None, margin: float | None, confidence: float, seed: int
) -> GroupAssessments:
    names = tuple(name for name in sketches.by if name != cluster)
    if not names or (cluster is not None and cluster not in sketches.by):
        raise InputError(
            f"the sketches are grouped by {', '.join(sketches.by)}; `cluster` must be one of these, "
            "and another must be left to group by."
        )
    groups = sketches.roll_up(*names)
    parts = _parts(sketches, names) if cluster is not None else {}
    resamples = max(RESAMPLES, draws_needed(confidence, len(groups)))
    found: dict[Any, Assessment] = {}
    detectable: dict[Any, float] = {}
    skipped: dict[Any, str] = {}
    for key, sketch in groups.items():
        clusters = None
        if cluster is not None:
            own = [part for part in parts[key] if part.total_weight > 0]
            clusters = partial(ClusterResiduals.of_sketches, sketches=own, seed=seed)
            if len(own) < 2:
                skipped[key] = "fewer than two clusters"
                continue
        if sketch.n < 2:
            skipped[key] = "fewer than two rows"
            continue
        found[key] = assessment_of(
            sketch, clusters, margin=margin, confidence=confidence, seed=seed, resamples=resamples
        )
        detectable[key] = detectable_error(sketch, clusters, level=1.0 - confidence, seed=seed)
    if not found:
        units = "rows" if cluster is None else "clusters"
        raise InputError(f"no group has two {units} or more; there is nothing to assess.")
    order = sorted(found, key=lambda key: (found[key].p_value, -_excess(found[key])))
    p_values = [found[key].p_value for key in order]
    return GroupAssessments(
        by=names,
        assessments={key: found[key] for key in order},
        adjusted=dict(zip(order, adjusted_p_values(p_values, "holm"), strict=True)),
        detectable=detectable,
        skipped=skipped,
        worst=order[0],
        worst_p_value=smallest_p_value(p_values, independent=cluster is None),
        clustered=cluster is not None,
        confidence=confidence,
        seed=seed,
        sketches={key: groups[key] for key in order},
    )


def _parts(sketches: Sketches, names: tuple[str, ...]) -> dict[Any, list[Sketch]]:
    """The clusters' sketches of each group."""
    places = [sketches.by.index(name) for name in names]
    parts: dict[Any, list[Sketch]] = {}
    for key, sketch in sketches.items():
        group = tuple(key[place] for place in places)
        parts.setdefault(group if len(group) > 1 else group[0], []).append(sketch)
    return parts


def _excess(found: Assessment) -> float:
    return found.smooth_ece / max(found.noise_floor.value, 1e-300)


def _shown(key: Any) -> str:
    return ", ".join(map(group_text, key)) if isinstance(key, tuple) else group_text(key)
