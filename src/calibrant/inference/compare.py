"""Comparison of models: the difference of their SmoothECE, its interval and the test that it is 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from itertools import combinations
from textwrap import fill
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import (
    CONFIDENCE,
    generator,
    require_choice,
    require_confidence,
)
from calibrant._format import decimals, group_text, p_equation
from calibrant.data.arrays import as_array, as_column, cure_of_two_columns, require_entries
from calibrant.data.classes import as_class_probabilities, top_label
from calibrant.data.rows import (
    InputOptions,
    Rows,
    as_rows,
    is_frame,
    require_one_sample,
    require_same_index,
)
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError, TooFewRows, invalid, show_value
from calibrant.inference.assess import assessed, warn_of_few_units
from calibrant.inference.assessment import LARGE, Assessment
from calibrant.inference.calibration_test import CalibrationTest
from calibrant.inference.clusters import ClusterResiduals, cluster_codes
from calibrant.inference.correction import (
    Correction,
    adjusted_p_values,
    decision_level,
    require_correction,
)
from calibrant.inference.dependence import warn_of_repeated_rows
from calibrant.inference.profile import LINE
from calibrant.inference.quantiles import normal_quantile, wilson_error
from calibrant.inference.residuals import ResidualGrid
from calibrant.io.from_data import refuse_groups, sample_from
from calibrant.io.group_keys import indexed
from calibrant.io.request import require_columns
from calibrant.io.scan import ReadingOptions
from calibrant.measures.result_record import Record, frame_of, plain

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Codes = tuple[Integers, int]
Bounds = tuple[float, float]

FOLDS, REPEATS = 5, 4
"""Folds learn from four fifths of the rows; the mean over four splits varies little between others."""


@dataclass(frozen=True)
class Difference:
    """SmoothECE of the first model minus that of the second.

    Attributes
    ----------
    first, second : str
        The models; the first has the larger SmoothECE in this sample.
    value : float
        The difference in this sample.
    low, high : float
        Interval for the difference in the population.
    p_value, p_value_adjusted : float
        P-values of "both models have the same SmoothECE"; the second accounts for all pairs that were
        compared. It is at most 1 - confidence exactly where the interval leaves 0.
    """

    first: str
    second: str
    value: float
    low: float
    high: float
    p_value: float
    p_value_adjusted: float


@dataclass(frozen=True)
class Comparison(Record):
    """Assessments of several models, the smallest SmoothECE first, and the differences of all pairs.

    Attributes
    ----------
    assessments : mapping of str to Assessment
        Sorted by SmoothECE.
    differences : tuple of Difference
        All pairs, the clearest first.
    paired : bool
        True for models on the same rows. On others, as of sketches, chance differences between the rows do
        not cancel, and the intervals are wider.
    correction : str
        For the number of pairs: "holm", "bh", "bonferroni" or "none".
    clusters : int or None
        If rows are dependent.
    confidence : float
        As it was asked for.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.compare([0, 0, 1, 1], {"a": [0.1, 0.4, 0.6, 0.9], "b": [0.9, 0.2, 0.3, 0.1]})
    >>> sorted(found.assessments), len(found.differences), found.paired
    (['a', 'b'], 1, True)
    """

    assessments: Mapping[str, Assessment]
    differences: tuple[Difference, ...]
    paired: bool
    correction: Correction
    clusters: int | None
    confidence: float

    @property
    def level(self) -> float:
        """The largest adjusted p-value that tells two models apart, up to rounding."""
        return 1.0 - self.confidence + 1e-12

    @property
    def verdict(self) -> str:
        """The finding in one line, about the model with the smallest SmoothECE.

        "inconclusive" where a difference beyond 0.1, or beyond the rarer outcome's rate, is not ruled out.
        """
        line, names = self._finding, self.assessments
        backwards = [name for name, one in names.items() if one.direction.backwards]
        if backwards:
            line += f"; predictions of {_listed(backwards)} rank backwards: are labels flipped?"
        return line

    @property
    def _finding(self) -> str:
        best, *others = self.assessments
        against = {one.first: one for one in self.differences if one.second == best}
        worse = [name for name in others if against[name].p_value_adjusted <= self.level]
        if len(worse) == len(others):
            return f"{best} is better calibrated than {_listed(others)}"
        rivals = [name for name in others if name not in worse]
        reach = max(max(against[name].high, -against[name].low) for name in rivals)
        rate = self.assessments[best].event_rate
        line = (
            f"no difference in calibration detected between {_listed([best, *rivals])} (could be up to "
            f"{reach:.2g})"
        )
        if reach > min(LARGE, rate, 1.0 - rate):
            line = (
                f"inconclusive: too few rows to tell {_listed([best, *rivals])} apart; a difference of "
                f"{reach:.2g} is not ruled out"
            )
        return line + (f"; {best} is better than {_listed(sorted(worse))}" if worse else "")

    def __str__(self) -> str:
        how = "paired, on the same rows" if self.paired else "unpaired: the rows are not known"
        how += "" if self.clusters is None else f", in {self.clusters} clusters"
        corrected = (
            "no correction" if self.correction == "none" else f"correction: {self.correction}"
        )
        lines = [fill(self.verdict, LINE), "", "SmoothECE, interval, test of calibration"]
        texts = [
            f"{name}: {decimals(one.smooth_ece)} ({decimals(one.interval.low)} to "
            f"{decimals(one.interval.high)}), {p_equation(one.p_value)}"
            for name, one in self.assessments.items()
        ]
        pairs = [
            f"{pair.first} - {pair.second}: {decimals(pair.value)} ({decimals(pair.low)} to "
            f"{decimals(pair.high)}), {p_equation(pair.p_value_adjusted)}"
            for pair in self.differences
        ]
        how = fill(f"differences of SmoothECE ({how}; {corrected})", LINE)
        lines += [_indented(line) for line in texts]
        lines += ["", how, *map(_indented, pairs)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        kind = "paired" if self.paired else "unpaired"
        return f"Comparison({kind}, {len(self.assessments)} models: {self.verdict})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; numbers that are not finite are None."""
        return {"verdict": self.verdict, **super().to_dict()}

    def to_frame(self, backend: Any = None) -> Any:
        """A data frame with a row for each pair of models."""
        return frame_of([plain(pair) for pair in self.differences], backend)


@dataclass(frozen=True)
class GroupComparisons(Mapping[Any, Comparison], Record):
    """From group or class to Comparison, the clearest difference first; corrected over all pairs of all.

    Attributes
    ----------
    comparisons : mapping of key to Comparison
        Of those with enough rows.
    too_few : tuple
        Groups with fewer than two rows of a model.
    by : str
        "group"; "class", or "predicted" where the rows are those that a model predicted to be of this class.
    correction : str
        For the number of groups and pairs.
    """

    comparisons: Mapping[Any, Comparison]
    too_few: tuple[Any, ...]
    by: str
    correction: Correction

    def __getitem__(self, name: Any) -> Comparison:
        return self.comparisons[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    @property
    def wins(self) -> dict[str, int]:
        """Number of groups in which each model is better calibrated than all others."""
        wins = dict.fromkeys(sorted(next(iter(self.values())).assessments), 0)
        for one in self.values():
            best = next(iter(one.assessments))
            rivals = [pair for pair in one.differences if pair.second == best]
            wins[best] += all(pair.p_value_adjusted <= one.level for pair in rivals)
        return wins

    @property
    def verdict(self) -> str:
        """The finding in one line."""
        noun, nouns = ("group", "groups") if self.by == "group" else ("class", "classes")
        tested = f"corrected for testing {sum(len(one.differences) for one in self.values()):,}"
        best = [f"{name} for {number:,}" for name, number in self.wins.items() if number]
        if not best:
            return f"no {noun} tells the models apart ({len(self):,} {nouns}, {tested})"
        return f"better calibrated: {', '.join(best)} of {len(self):,} {nouns} ({tested})"

    def __str__(self) -> str:
        lines = [f"{group_text(name)}: {one.verdict}" for name, one in self.items()]
        return "\n".join([self.verdict, "", *lines])

    def __repr__(self) -> str:
        return f"GroupComparisons(by {self.by}: {self.verdict})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "verdict": self.verdict,
            "by": self.by,
            "correction": self.correction,
            "too_few": plain(self.too_few),
            "groups": [{"group": group_text(name), **one.to_dict()} for name, one in self.items()],
        }

    def to_frame(self, backend: Any = None) -> Any:
        """A data frame with a row for each group and pair of models."""
        pairs = [(name, pair) for name, one in self.items() for pair in one.differences]
        return frame_of([{self.by: name, **plain(pair)} for name, pair in pairs], backend)


def compare(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    by: Any = None,
    names: Sequence[str] | None = None,
    cluster: Any = None,
    confidence: float = CONFIDENCE,
    correction: Correction = "holm",
    scale: str | Scale | None = None,
    **options: Unpack[ReadingOptions],
) -> Comparison:
    """Comparison of the calibration of several models by the differences of their SmoothECE.

    Parameters
    ----------
    y_true : array, mapping of name to Sketch, or mapping of name to Rows
        Outcomes; or, and no `y_prob`, sketches of the models, which are compared unpaired, or Rows with the
        same outcomes and weights, as `survival.at_horizon` makes them.
    y_prob : mapping of name to array, frame or array[n, models]
        Each model's predictions of the same rows.
    data : frame, files, Sketches or other source, optional
        What `scan` reads; `y_true`, `cluster` and `sample_weight` then name columns, and `y_prob` several.
    by : str, optional
        With `data` and one column of predictions, the column whose values are the models.
    names : sequence of str, optional
        Names of the columns of an array; by default "model 1", "model 2", ....
    cluster : array, optional
        What makes rows dependent; see `assess`.
    confidence : float
        Confidence of the intervals, and 1 minus the level of the verdict.
    correction : {"holm", "bh", "bonferroni", "none"}
        For the number of pairs. Intervals have the level at which the procedure decides, so that one leaves
        0 exactly where its adjusted p-value is at most 1 - `confidence`.
    scale, **options
        As in `assess`. A row that is dropped for one model is dropped for all.

    Notes
    -----
    Each end of the interval takes the plug-in of one model, which errs upwards (Jensen's inequality), and for
    the other the mean of (f - y) g(f), where g = K_σ ∗ s with |s| ≤ 1 was learnt on other folds, which errs
    downwards whatever g is; or 0. The standard error is that of the difference row by row, so what is common
    to the two models cancels; the reach is Wilson's. The p-value inverts the interval. So both hold
    wherever the errors lie. Near the noise floor they are wide: of 1,000 rows, a calibrated model is seldom
    told from one with SmoothECE 0.05, because the sample does not rule out that both err as much.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(3000)
    >>> y = rng.random(3000) < truth
    >>> print(compare(y, {"sharp": truth, "timid": 0.25 + 0.5 * truth}).verdict)
    sharp is better calibrated than timid
    """
    require_confidence(confidence)
    require_correction(correction)
    reading: InputOptions = options
    if data is not None:
        require_arrays(data, names)
        paired = by is None and not isinstance(y_prob, str)
        y_true, y_prob, cluster, reading = sample_from(
            data,
            y_true,
            y_prob,
            options,
            by=by,
            cluster=cluster if paired else None,
            scale=scale,
            rows=paired,
            groups=True,
        )
    else:
        refuse_groups(by)
    if isinstance(y_true, Rows):
        hint = "Pass one model's rows beside another's: `calibrant.compare({name: rows, ...})`."
        raise InputError("`y_true` is Rows of one model alone.", hint=hint)
    if y_prob is None and not isinstance(y_true, Mapping):
        as_sketch(y_true, **reading)  # says what is missing
    if isinstance(y_true, Mapping) and all(isinstance(one, Rows) for one in y_true.values()):
        y_true, y_prob = None, y_true
    if isinstance(y_true, Mapping):
        _require_sketches_alone(y_prob, cluster, *reading)
        compared = _unpaired(_named(y_true), confidence, scale)
    else:
        require_one_sample(reading.get("multiclass"))
        compared = _paired(
            _Sample.of(y_true, models_of(y_prob, names), cluster, reading), confidence, scale
        )
    return _decided([compared], correction, confidence)[0]


def compare_by(
    y_true: Any,
    y_prob: Any = None,
    *,
    by: Any = None,
    names: Sequence[str] | None = None,
    cluster: Any = None,
    confidence: float = CONFIDENCE,
    correction: Correction = "holm",
    **options: Unpack[InputOptions],
) -> GroupComparisons:
    """Comparison of the calibration of several models within each group, or for each class.

    Parameters
    ----------
    y_true : array[n], or mapping of name to Sketches
        Outcomes; the class of each row; or, with models on rows of their own and no `y_prob`, each model's
        sketches by group, as `scan`, `classwise` and `top_label` make them.
    y_prob : mapping of name to array, frame or array[n, models]
        Each model's predictions of outcome 1 where `by` makes groups; otherwise each model's class
        probabilities [n, classes], or logits with `from_logits=True`.
    by : array, optional
        The group of every row.
    names, cluster, confidence
        As in `compare`.
    correction : {"holm", "bh", "bonferroni", "none"}
        For the number of groups and pairs of models together.
    **options
        With class probabilities, `multiclass="classwise"`, the default, compares each class against the rest,
        on the same rows; "top_label" the confidence among the rows that a model predicted to be of the class,
        which differ from model to model. `classes`, `from_logits`, `sample_weight` as in `assess`.

    Returns
    -------
    GroupComparisons
        From group to Comparison; `.verdict` is one line.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1.0, 1.0, 1.0], 3000)
    >>> y = (truth.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    >>> timid = 0.5 * truth + 0.5 / 3
    >>> print(compare_by(y, {"sharp": truth, "timid": timid}).verdict)
    better calibrated: sharp for 3 of 3 classes (corrected for testing 3)
    """
    require_confidence(confidence)
    require_correction(correction)
    column, cases = _cases(y_true, y_prob, by, names, cluster, options)
    found: dict[Any, _Compared] = {}
    too_few = []
    for key, case in cases:
        try:
            if isinstance(case, _Sample):
                found[key] = _paired(case, confidence)
            else:
                found[key] = _unpaired(case, confidence)
        except TooFewRows:
            too_few.append(key)
    if not found:
        raise TooFewRows(f"no group has two rows of all models; there are {len(too_few)} groups.")
    decided = _decided(list(found.values()), correction, confidence)
    each = sorted(zip(found, decided, strict=True), key=lambda item: item[1].differences[0].p_value)
    return GroupComparisons(dict(each), tuple(too_few), column, correction)


# -- difference of two models ------------------------------------------------------------------


class _Pair(NamedTuple):
    """Two models, the first with the larger SmoothECE, and the interval of the difference at any level."""

    first: str
    second: str
    value: float
    p_value: float
    bounds: Callable[[float], Bounds]


@dataclass(frozen=True, eq=False)
class _Compared:
    assessments: Mapping[str, Assessment]
    pairs: Sequence[_Pair]
    clusters: int | None = None
    paired: bool = True


def _decided(
    every: Sequence[_Compared], correction: Correction, confidence: float
) -> list[Comparison]:
    """Comparisons, corrected over all pairs of all of them."""
    p_values = [pair.p_value for compared in every for pair in compared.pairs]
    adjusted = iter(adjusted_p_values(p_values, correction))
    level = decision_level(p_values, correction, 1.0 - confidence)
    comparisons = []
    for compared in every:
        differences = [
            Difference(*pair[:3], *pair.bounds(level), pair.p_value, next(adjusted))
            for pair in compared.pairs
        ]
        differences.sort(key=lambda one: (one.p_value, -one.value))
        order = sorted(compared.assessments.items(), key=lambda item: item[1].smooth_ece)
        comparisons.append(
            Comparison(
                dict(order),
                tuple(differences),
                compared.paired,
                correction,
                compared.clusters,
                float(confidence),
            )
        )
    return comparisons


@dataclass(frozen=True, eq=False)
class _Folds:
    """Unit of each row, a row or a cluster, and the fold of each unit in every repetition.

    `share` is the weight of each row, of 1 in all; `effective` Kish's number of units. There are no folds
    where the units are too few to learn anything from.
    """

    share: Floats
    unit: Integers
    number: int
    folds: Integers
    effective: float

    @classmethod
    def of(cls, models: Sequence[Rows], codes: Codes | None) -> _Folds:
        rows = models[0]
        weight = np.ones(rows.n) if rows.weight is None else rows.weight
        share = weight / weight.sum()
        unit, number = (np.arange(rows.n), rows.n) if codes is None else codes
        per_unit = np.bincount(unit, weights=share, minlength=number)
        effective = float(1.0 / (per_unit**2).sum())
        # Folds must not depend on the order of the rows.
        columns = sum(model.p for model in models), sum(model.p**2 for model in models), rows.y
        sums = [np.bincount(unit, weights=share * each, minlength=number) for each in columns]
        place = np.argsort(np.lexsort([np.round(each, 15) for each in (*sums, per_unit)]))
        rng = generator(0, 7)
        repeats = REPEATS if effective >= 4 * FOLDS else 0
        folds = [rng.permutation(number)[place] % FOLDS for _ in range(repeats)]
        return cls(share, unit, number, np.array(folds, dtype=np.int64), effective)

    def sums(self, values: Floats) -> Floats:
        """The rows' values, added up by unit."""
        return np.bincount(self.unit, weights=values, minlength=self.number).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Two estimates of a model's SmoothECE, and the influence of every unit on each.

    `upper` is the plug-in. `lower` is the cross-fitted mean of (f - y) g(f) with g = K_σ ∗ s and |s| ≤ 1,
    which is at most SmoothECE on average.
    """

    upper: float
    on_upper: Floats
    lower: float
    on_lower: Floats

    @classmethod
    def of(
        cls, sketch: Sketch, rows: Rows, upper: float, value: float, folds: _Folds
    ) -> _Estimates:
        grid = ResidualGrid(sketch, 0.7 * value)  # those of other folds may be smaller
        position = sketch.scale.locate(rows.p)
        node, right = grid.beside(position)

        def at_rows(on_nodes: Floats) -> Floats:
            return np.asarray(on_nodes[node] * (1.0 - right) + on_nodes[node + 1] * right)

        residual = folds.share * (rows.p - rows.y)
        gain = folds.sums(residual * at_rows(grid.witness(grid.observed, value)))
        weight = folds.sums(folds.share)
        on_upper = (gain - weight * gain.sum()) / (1.0 + grid.steepness(value))
        mean, narrowest = np.zeros(folds.number), upper
        for repeat in folds.folds:
            fold = repeat[folds.unit]
            parts = grid.on_nodes(position, residual, fold, FOLDS).reshape(FOLDS, -1)
            held_out = np.bincount(fold, weights=folds.share, minlength=FOLDS)
            others = (parts.sum(axis=0) - parts) / np.maximum(1.0 - held_out, 1e-12)[:, None]
            sigmas = grid.fixed_points(others, start=value)
            narrowest = min(narrowest, float(sigmas.min()))
            for k, sigma in enumerate(sigmas):
                own = np.where(fold == k, residual, 0.0)
                mean += folds.sums(own * at_rows(grid.witness(others[k], float(sigma)))) / REPEATS
        lower, on_lower = float(mean.sum()), mean - weight * mean.sum()
        # smECE_σ falls with σ: beyond σ itself the mean at σ proves nothing of the fixed point.
        return cls(upper, on_upper, min(lower, narrowest), on_lower)


def _paired_difference(
    one: _Estimates, other: _Estimates, effective: float
) -> tuple[float, Callable[[float], Bounds]]:
    """P-value and interval for SmoothECE of one model less that of the other, on the same units."""
    from scipy.special import stdtr

    degrees = max(effective - 1.0, 1.0)

    def proved(worse: _Estimates, better: _Estimates) -> tuple[float, float]:
        """Estimate that errs downwards of the difference, and its variance."""
        return worse.lower - better.upper, float(((worse.on_lower - better.on_upper) ** 2).sum())

    gaps = proved(one, other), proved(other, one)
    gap, variance = max(gaps)
    # The z of which Wilson's error is the gap.
    z = gap / np.sqrt(variance + gap / effective) if gap > 0.0 else 0.0
    p_value = max(2.0 * float(stdtr(degrees, -z)), np.finfo(np.float64).tiny)

    def bounds(level: float) -> Bounds:
        z = normal_quantile(1.0 - 0.5 * level, degrees)

        def least(gap: float, variance: float, better: _Estimates) -> float:
            alone = float((better.on_upper**2).sum())
            trivial = -better.upper - wilson_error(alone, z, effective)
            return max(gap - wilson_error(variance, z, effective), trivial, -1.0)

        return least(*gaps[0], other), -least(*gaps[1], one)

    return p_value, bounds


@dataclass(frozen=True, eq=False)
class _Sample:
    """Rows that are valid for all models, their places, and the weights and clusters of all."""

    models: Mapping[str, Rows]
    place: Integers
    weight: Floats
    cluster: Integers | None

    @classmethod
    def of(cls, y_true: Any, y_prob: Mapping[str, Any], cluster: Any, options: Any) -> _Sample:
        require_same_index(y_true=y_true, cluster=cluster)
        models = {}
        for name, prob in y_prob.items():
            try:
                made = (prob, None) if isinstance(prob, Rows) else (y_true, prob)
                models[name] = as_rows(*made, **options)
                models[name].require_valid()
            except InputError as error:
                raise error.at(group=repr(name)) from error
        n = next(rows.passed for rows in models.values())
        if y_true is None:
            _require_same_outcomes(models)
        valid = np.ones(n, dtype=np.bool_)
        for rows in models.values():
            if rows.kept is not None:
                valid &= np.bincount(rows.kept, minlength=n) > 0
        if not valid.any():
            raise TooFewRows(f"no row of {n} is valid for all models.")
        for name, rows in models.items():
            models[name] = rows.select(valid if rows.kept is None else valid[rows.kept])
        own, weight = next(iter(models.values())).weight, valid.astype(np.float64)
        if own is not None:
            weight[valid] = own
        codes = None if cluster is None else cluster_codes(cluster, n)[0]
        return cls(models, np.flatnonzero(valid), weight, codes).at(np.ones(n, dtype=np.bool_))

    def at(self, chosen: NDArray[np.bool_]) -> _Sample:
        """Sample of some of the rows that were passed."""
        own = chosen[self.place]
        gone = int(chosen.sum() - own.sum())
        dropped = {"invalid for one of the models": gone} if gone else {}
        models = {
            name: replace(rows.select(own), dropped=dropped) for name, rows in self.models.items()
        }
        return replace(self, models=models, place=self.place[own])


def _require_same_outcomes(models: Mapping[str, Rows]) -> None:
    """Refuse Rows of models that are no predictions of the same subjects."""
    (first, one), *others = models.items()
    for name, rows in others:
        pairs = ((getattr(each, part) for each in (one, rows)) for part in ("y", "weight", "kept"))
        if not all(np.array_equal(own, other) for own, other in pairs):
            raise InputError(f"the rows of {first!r} and {name!r} differ in outcomes or weights.")


def _paired(sample: _Sample, confidence: float, scale: str | Scale | None = None) -> _Compared:
    """Models on the same rows."""
    models, weight = sample.models, sample.weight[sample.place]
    counts = weight > 0
    if counts.sum() < 2:
        raise TooFewRows(
            f"a comparison needs at least two rows with weight; there is {counts.sum()}."
        )
    codes = None
    if sample.cluster is None:
        warn_of_repeated_rows(*models.values(), stacklevel=4)
    else:
        codes = cluster_codes(sample.cluster[sample.place], weight.size, weight)
    counted = {name: rows.select(counts) for name, rows in models.items()}
    units = None if codes is None else (codes[0][counts], codes[1])
    folds = _Folds.of(list(counted.values()), units)
    chosen = PROBABILITY if scale is None else as_scale(scale)
    assessments, estimates = {}, {}
    for name, rows in models.items():
        sketch = Sketch.from_rows(rows, scale=chosen)
        clusters = None if codes is None else ClusterResiduals.of(chosen, rows, codes)
        assessments[name], test, grid = assessed(sketch, clusters, confidence=confidence)
        upper = assessments[name].smooth_ece
        estimates[name] = _Estimates.of(sketch, counted[name], upper, grid.bandwidth, folds)
    warn_of_few_units(test, stacklevel=4)
    pairs = []
    for worse, better, value in _ordered(assessments):
        if np.array_equal(models[worse].p, models[better].p):
            pairs.append(_Pair(worse, better, 0.0, 1.0, lambda level: (0.0, 0.0)))
        else:
            found = _paired_difference(estimates[worse], estimates[better], folds.effective)
            pairs.append(_Pair(worse, better, value, *found))
    return _Compared(assessments, pairs, None if codes is None else codes[1])


class _Alone(NamedTuple):
    """Test of one model, and its rows on a grid for their bandwidth."""

    test: CalibrationTest
    grid: ResidualGrid

    def bounds(self, level: float) -> Bounds:
        """Interval for SmoothECE."""
        start = self.grid.bandwidth
        high = self.test.upper_end(1.0 - level, self.grid.error, start)
        return min(self.test.lower_end(1.0 - level), start), max(high, start)

    def less(self, other: _Alone, level: float) -> Bounds:
        """Interval of the difference, by Bonferroni."""
        (low, high), (least, most) = self.bounds(0.5 * level), other.bounds(0.5 * level)
        return low - most, high - least


def _unpaired(
    sketches: Mapping[str, Any], confidence: float, scale: str | Scale | None = None
) -> _Compared:
    """Models on rows of their own: the interval of a difference is made of each model's own."""
    assessments, alone = {}, {}
    name, first = next(iter(sketches.items()))
    for key, model in sketches.items():
        if not isinstance(model, Sketch):
            raise InputError(
                f"without outcomes, models must be sketches; {key!r} is {type(model).__name__}.",
                hint="For arrays, pass the outcomes first: `calibrant.compare(y_true, models)`.",
            )
        sketch = as_sketch(model, scale=scale)
        if sketch.scale != first.scale:
            raise InputError(
                f"`scale` must be the same for all models; {name!r} is on {first.scale.name}, {key!r} on "
                f"{sketch.scale.name}."
            )
        assessments[key], test, grid = assessed(sketch, confidence=confidence)
        alone[key] = _Alone(test, grid)
    pairs = []
    for worse, better, value in _ordered(assessments):
        bounds = partial(alone[worse].less, alone[better])
        pairs.append(_Pair(worse, better, value, _inverted(bounds), bounds))
    return _Compared(assessments, pairs, paired=False)


def _inverted(bounds: Callable[[float], Bounds]) -> float:
    """The smallest level at which an interval leaves 0, at least 1e-12: confidence has no more digits."""
    low, high = 1e-12, 0.9  # a narrower interval is no wider than the rounding of its ends
    if not bounds(high)[0] > 0.0:
        return 1.0
    while high > 1.000001 * low:
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if bounds(middle)[0] > 0.0 else (middle, high)
    return high


def _ordered(assessments: Mapping[str, Assessment]) -> Iterator[tuple[str, str, float]]:
    """All pairs of models, the one with the larger SmoothECE first, and the difference."""
    order = sorted(assessments, key=lambda name: assessments[name].smooth_ece)
    for better, worse in combinations(order, 2):
        yield worse, better, assessments[worse].smooth_ece - assessments[better].smooth_ece


# -- reading -----------------------------------------------------------------------------------


def require_arrays(data: Any, names: Sequence[str] | None) -> None:
    """Refuse names of models beside `data`, whose columns have names."""
    if data is not None and names is not None:
        raise InputError(
            "`names` are for the columns of an array; those of `data` have their own.",
            hint="Map them: `y_prob={name: column, ...}`.",
        )


def models_of(y_prob: Any, names: Sequence[str] | None) -> dict[str, Any]:
    """Predictions by the name of the model, from a mapping, a frame or the columns of an array."""
    import narwhals as nw

    if names is not None and (isinstance(y_prob, Mapping) or is_frame(y_prob)):
        raise InputError(
            "`names` are for the columns of an array; a mapping or a frame has its own.",
            hint="Leave it out, or rename the models of `y_prob`.",
        )
    if isinstance(names, str):
        hint = f"Pass {show_value(list(names))}."
        raise invalid("names", "list a name for each model", names, hint)
    if isinstance(y_prob, Mapping):
        return _named(y_prob)
    if is_frame(y_prob):
        require_columns(y_prob.columns, y_prob.columns, "`y_prob`")
    frame = nw.from_native(y_prob, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        models = {name: frame[name].to_native() for name in frame.columns}
        _refuse_two_classes(y_prob, [*models.values()])
        return _named(models)
    array = np.empty(0) if y_prob is None else as_array(y_prob, "y_prob")
    if array.ndim != 2:
        raise InputError(
            "`y_prob` must be a mapping of model names to predictions, a frame or an array with a column "
            "for each model."
        )
    if names is None:
        _refuse_two_classes(y_prob, [*array.T])
    called = [f"model {k + 1}" for k in range(array.shape[1])] if names is None else list(names)
    if len(called) != array.shape[1]:
        lying = len(called) == len(array)
        raise InputError(
            f"`names` must have one for each of the {array.shape[1]} columns; got {len(called)}.",
            hint="Pass `numpy.column_stack(y_prob)`." if lying else None,
        )
    return _named([*zip(called, array.T, strict=True)])


def _refuse_two_classes(y_prob: Any, columns: Sequence[Any]) -> None:
    """Refuse what `predict_proba` gives for two classes, of which one alone is a model's predictions."""
    if len(columns) != 2:
        return
    first, second = (as_array(column, "y_prob") for column in columns)
    numbers = first.dtype.kind == second.dtype.kind == "f" and len(first) > 2
    if numbers and np.all(np.abs(first + second - 1.0) <= 1e-6):
        message = f"`y_prob` must not be the probabilities of two classes; all {len(first)} rows add up to 1."
        hint = f"{cure_of_two_columns(y_prob)}; of two models, a mapping from their names."
        raise InputError(message, hint=hint)


def _named(models: Mapping[Any, Any] | Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """Models by the text of their names, which must tell them apart."""
    items = list(models.items()) if isinstance(models, Mapping) else models
    if len(items) < 2:
        raise InputError(f"`y_prob` must have two models or more; there is {len(items)}.")
    named: dict[str, Any] = {}
    for name, model in items:
        if str(name) in named:
            raise InputError(f"names of models must differ; two are {show_value(str(name))}.")
        named[str(name)] = model
    return named


def _require_sketches_alone(*beside: Any) -> None:
    if any(value is not None for value in beside):
        raise InputError(
            "`y_true` is a mapping of sketches, which hold outcomes and predictions already.",
            hint="Pass the mapping of sketches alone.",
        )


Cases = Iterator[tuple[Any, _Sample | Mapping[str, Any]]]
"""Models of each group: rows that they share, or a sketch of each."""


def _cases(
    y_true: Any, y_prob: Any, by: Any, names: Any, cluster: Any, options: Any
) -> tuple[str, Cases]:
    """Noun of the groups, and the models of each."""
    if isinstance(y_true, Mapping):
        _require_sketches_alone(y_prob, by, cluster, *options)
        sketches = _named(y_true)
        for name, each in sketches.items():
            if not isinstance(each, Sketches) or len(each.by) != 1:
                raise InputError(
                    f"`y_true` must hold sketches by one column for each model; {name!r} is "
                    f"{type(each).__name__}."
                )
        column = str(next(iter(sketches.values())).by[0])
        return column if column in ("class", "predicted") else "group", _of_sketches(sketches)
    if by is not None:
        require_same_index(y_true=y_true, by=by)
        sample = _Sample.of(y_true, models_of(y_prob, names), cluster, options)
        return "group", _of_groups(sample, as_column(by, "by", dates=True))
    if not isinstance(y_prob, Mapping):
        raise InputError(
            "`y_prob` must map two models or more to their class probabilities; or pass `by`."
        )
    view = options.get("multiclass") or "classwise"
    require_choice("multiclass", view, ("classwise", "top_label"))
    known = ("multiclass", "from_logits", "classes", "sample_weight")
    for name in options.keys() - known:
        raise InputError(f"`{name}` is not read of class probabilities of several models.")
    reading = {k: v for k, v in options.items() if k != "multiclass" and v is not None}
    if view == "classwise":
        return "class", _of_classes(y_true, _named(y_prob), cluster, reading)
    if cluster is not None:
        raise InputError(
            "`cluster` needs the same rows for all models, and each has those that it predicted.",
            hint='Compare with `multiclass="classwise"`.',
        )
    predicted = {name: top_label(y_true, p, **reading) for name, p in _named(y_prob).items()}
    return "predicted", _of_sketches(predicted)


def _of_sketches(models: Mapping[str, Sketches]) -> Cases:
    """Sketches of each group that every model has."""
    for key in dict.fromkeys(key for sketches in models.values() for key in sketches):
        if all(key in sketches for sketches in models.values()):
            yield key, {name: sketches[key] for name, sketches in models.items()}


def _of_groups(sample: _Sample, group: NDArray[Any]) -> Cases:
    """Rows of each group."""
    require_entries("by", group, sample.weight.size)
    code, keys = indexed((value,) for value in group.tolist())
    for place, (key,) in enumerate(keys):
        yield key, sample.at(code == place)


def _of_classes(y_true: Any, y_prob: Mapping[str, Any], cluster: Any, reading: Any) -> Cases:
    """Membership of each class, and each model's probability of it."""
    matrices = {}
    for name, prob in y_prob.items():
        try:
            matrices[name] = as_class_probabilities(y_true, prob, **reading)
            matrices[name].top()  # refuses the first bad row
        except InputError as error:
            raise error.at(group=repr(name)) from error
    first = next(iter(matrices.values()))
    columns = {name: np.minimum(matrix.probs.T, 1.0) for name, matrix in matrices.items()}
    for place, called in enumerate(first.classes):
        probs = {name: each[place].astype(np.float64) for name, each in columns.items()}
        options = {} if first.weight is None else {"sample_weight": first.weight}
        yield called, _Sample.of(first.labels == place, probs, cluster, options)


def _indented(line: str) -> str:
    return fill(line, LINE, initial_indent="  ", subsequent_indent="    ")


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last
