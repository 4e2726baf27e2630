"""`compare`: which model is better calibrated, and is the difference more than noise?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from html import escape
from itertools import combinations
from types import MappingProxyType
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inference.assess import SMALLEST_BANDWIDTH, assessment_of
from calibrant.inference.assessment import Assessment, format_p_value
from calibrant.inference.clusters import (
    ClusterResiduals,
    cluster_codes,
    random_blocks,
    rows_on_nodes,
)
from calibrant.inference.correction import Correction, adjusted_p_values
from calibrant.inference.interval import normal_quantile, require_confidence, row_spread
from calibrant.inference.residuals import ResidualGrid
from calibrant.inputs.pairs import InputOptions, Pairs, as_pairs
from calibrant.inputs.scales import PROBABILITY, Scale
from calibrant.inputs.seeds import generator
from calibrant.sketch.table import Sketch, as_sketch

__all__ = ["Comparison", "Difference", "compare"]

Floats = NDArray[np.float64]
Codes = tuple[NDArray[np.int64], int]

RESAMPLES = 400
ABOVE_FLOOR = 1.5


@dataclass(frozen=True, eq=False)
class _Draws:
    """SmoothECE of resamples, and the influence of the blocks of rows on the observed one."""

    values: Floats
    influence: Floats


@dataclass(frozen=True)
class Difference:
    """SmoothECE of the first model minus that of the second.

    Attributes
    ----------
    first, second : str
        The models; the first has the larger SmoothECE, so it is the worse one as it seems.
    value : float
        Difference of the debiased values.
    low, high : float
        Interval at the comparison's confidence, for this pair alone.
    p_value, adjusted_p_value : float
        Of "equally well calibrated"; the second accounts for all pairs that were compared.
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
        Sorted by debiased SmoothECE.
    differences : tuple of Difference
        All pairs, the clearest first.
    paired : bool
        Whether the models were seen on the same rows. Where not, as for sketches, chance differences
        between the rows do not cancel, and the intervals are wider.
    correction : str
        For the number of pairs: "holm", "bonferroni" or "none".
    clusters : int or None
        If rows are dependent.
    """

    assessments: Mapping[str, Assessment]
    differences: tuple[Difference, ...]
    paired: bool
    correction: str
    clusters: int | None
    confidence: float
    seed: int

    @property
    def verdict(self) -> str:
        """The finding in one line."""
        best, *others = self.assessments
        clear = {
            pair.first
            for pair in self.differences
            if pair.second == best and pair.adjusted_p_value <= 1.0 - self.confidence
        }
        if len(clear) == len(others):
            return f"{best} is better calibrated than {_listed(others)}"
        rivals = [name for name in others if name not in clear]
        line = f"no evidence that calibration differs between {_listed([best, *rivals])}"
        return line + (f"; {best} is better than {_listed(sorted(clear))}" if clear else "")

    def __str__(self) -> str:
        how = "paired, on the same rows" if self.paired else "unpaired: the rows are not known"
        if self.clusters is not None:
            how += f", in {self.clusters} clusters"
        width = max(len(name) for name in ["model", *self.assessments])
        lines = [
            self.verdict,
            "",
            f"{'model':<{width}}  SmoothECE  debiased  interval            test",
        ]
        for name, one in self.assessments.items():
            span = f"{one.interval.low:.4f} to {one.interval.high:.4f}"
            lines.append(
                f"{name:<{width}}  {one.smooth_ece:9.4f}  {one.debiased:8.4f}  {span}    "
                f"{format_p_value(one.p_value)}"
            )
        lines += ["", f"differences ({how}; p-values corrected: {self.correction})"]
        for pair in self.differences:
            lines.append(
                f"  {pair.first} - {pair.second}: {pair.value:.4f} ({pair.low:.4f} to "
                f"{pair.high:.4f}), {format_p_value(pair.adjusted_p_value)}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        kind = "paired" if self.paired else "unpaired"
        return f"Comparison({kind}, {len(self.assessments)} models: {self.verdict})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        return {
            "verdict": self.verdict,
            "paired": self.paired,
            "correction": self.correction,
            "clusters": self.clusters,
            "confidence": self.confidence,
            "seed": self.seed,
            "assessments": {name: one.to_dict() for name, one in self.assessments.items()},
            "differences": [asdict(pair) for pair in self.differences],
        }


def compare(
    y_true: Any,
    y_probs: Mapping[str, Any] | None = None,
    *,
    cluster: Any = None,
    confidence: float = 0.95,
    correction: Correction = "holm",
    seed: int = 0,
    scale: str | Scale | None = None,
    **options: Unpack[InputOptions],
) -> Comparison:
    """Compare the calibration of several models.

    Parameters
    ----------
    y_true : array, or mapping of name to Sketch
        Outcomes; or sketches of the models, and no `y_probs`: these are compared unpaired.
    y_probs : mapping of name to array
        Each model's predictions of the same rows.
    cluster : array, optional
        What makes rows dependent; see `assess`.
    confidence : float
        Of the intervals, and 1 minus the level of the verdict.
    correction : {"holm", "bonferroni", "none"}
        For the number of pairs.
    seed, scale, **options
        As in `assess`. A row that is dropped for one model is dropped for all.

    Notes
    -----
    Rows (or clusters) are resampled together for all models, so what is common to them cancels. The
    plug-in SmoothECE is biased upwards, more for some distributions of predictions than for others;
    the debiased one is noisy near 0. The interval reaches from the lower of the two differences to
    the higher, plus standard errors, and a difference counts only as far as both agree. The standard
    error is the larger of the bootstrap's and that of the rows' influence; where a model is close to
    its noise floor it is the sum of both models' own. There the comparison is cautious.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(3000)
    >>> y = rng.random(3000) < truth
    >>> print(compare(y, {"sharp": truth, "timid": 0.25 + 0.5 * truth}).verdict)
    sharp is better calibrated than timid
    """
    require_confidence(confidence)
    if isinstance(y_true, Mapping):
        if y_probs is not None or cluster is not None or options:
            raise InputError(
                "sketches hold outcomes and predictions already; pass the mapping of sketches alone."
            )
        return _unpaired(y_true, scale, confidence, correction, seed)
    if not isinstance(y_probs, Mapping):
        raise InputError(
            "`y_probs` must be a mapping of model names to predictions, such as "
            f'{{"a": p1, "b": p2}}; got {type(y_probs).__name__}.'
        )
    _require_two(y_probs)
    models, codes = _read(y_true, y_probs, cluster, options)
    n = next(iter(models.values())).n
    block, blocks = random_blocks(*(codes or (np.arange(n), n)), seed=seed)
    counts = generator(seed, 7).multinomial(blocks, np.full(blocks, 1.0 / blocks), size=RESAMPLES)
    found, drawn = {}, {}
    for name, pairs in models.items():
        sketch = Sketch.from_pairs(pairs, scale=PROBABILITY if scale is None else scale)
        clusters = None
        if codes is not None:
            clusters = partial(ClusterResiduals.of, pairs=pairs, codes=codes, seed=seed)
        found[name] = assessment_of(sketch, clusters, confidence=confidence, seed=seed)
        value = max(found[name].smooth_ece, SMALLEST_BANDWIDTH * sketch.scale.length)
        drawn[name] = _resampled(sketch, pairs, value, block, blocks, counts)
    degrees = np.inf if codes is None else blocks - 1.0
    differences = _differences(found, drawn, True, confidence, correction, degrees)
    return _sorted(found, differences, True, correction, codes, confidence, seed)


def _unpaired(
    sketches: Mapping[Any, Any],
    scale: str | Scale | None,
    confidence: float,
    correction: Correction,
    seed: int,
) -> Comparison:
    _require_two(sketches)
    found, drawn = {}, {}
    for place, (name, given) in enumerate(sketches.items()):
        if not isinstance(given, Sketch):
            raise InputError(
                f"a mapping without outcomes must hold sketches; {name!r} is a "
                f"{type(given).__name__}. For arrays: `compare(y_true, {{name: y_prob}})`."
            )
        sketch = as_sketch(given, scale=scale)
        found[str(name)] = assessment_of(sketch, confidence=confidence, seed=seed)
        value = max(found[str(name)].smooth_ece, SMALLEST_BANDWIDTH * sketch.scale.length)
        drawn[str(name)] = _drawn(sketch, value, seed + place)
    differences = _differences(found, drawn, False, confidence, correction, np.inf)
    return _sorted(found, differences, False, correction, None, confidence, seed)


def _read(
    y_true: Any, y_probs: Mapping[str, Any], cluster: Any, options: InputOptions
) -> tuple[dict[str, Pairs], Codes | None]:
    """Every model's pairs on the rows that are valid for all, and the clusters of these rows."""
    drop = options.get("on_invalid") == "drop"
    unchecked = options.copy()
    unchecked["on_invalid"] = "raise"
    models = {}
    for name, prob in y_probs.items():
        try:
            models[str(name)] = as_pairs(y_true, prob, **unchecked)
        except InputError as error:
            raise InputError(f"model {name!r}: {error}") from error
    n = next(iter(models.values())).n
    codes = None if cluster is None else cluster_codes(cluster, n)
    if drop:
        kept = np.ones(n, dtype=np.bool_)
        for pairs in models.values():
            kept &= pairs.reason_codes(slice(None)) < 0
        if not kept.any():
            raise InputError(
                f"no valid rows are left: all {n} were dropped for one model or another."
            )
        if not kept.all():
            dropped = MappingProxyType({"invalid for one of the models": int(n - kept.sum())})
            models = {
                name: replace(pairs.select(kept), dropped=dropped) for name, pairs in models.items()
            }
            codes = None if codes is None else cluster_codes(codes[0][kept], int(kept.sum()))
    if next(iter(models.values())).n < 2:
        raise InputError(f"a comparison needs at least two rows; there is {n}.")
    return models, codes


def _resampled(
    sketch: Sketch,
    pairs: Pairs,
    value: float,
    block: NDArray[np.int64],
    blocks: int,
    counts: NDArray[np.int64],
) -> _Draws:
    """SmoothECE of every resample of blocks of rows, and the influence of each block."""
    grid = ResidualGrid.of(sketch, 0.7 * value)
    weight = np.ones(pairs.n) if pairs.weight is None else pairs.weight / pairs.weight.mean()
    residuals = rows_on_nodes(grid, pairs.p, weight * (pairs.p - pairs.y), block, blocks)
    total = np.bincount(block, weights=weight, minlength=blocks)
    resampled = counts @ residuals / (counts @ total)[:, None]
    influence = residuals @ grid.witness(grid.observed, value) - total * value
    return _Draws(
        grid.fixed_points(resampled, start=value),
        influence / pairs.n * np.sqrt(blocks / (blocks - 1.0)),
    )


def _drawn(sketch: Sketch, value: float, seed: int) -> _Draws:
    """SmoothECE of resampled rows of a sketch, and the influence of its rows as one number."""
    grid = ResidualGrid.of(sketch, 0.7 * value)
    values = [
        grid.fixed_points(block, start=value) for block in grid.bootstrap(RESAMPLES, seed=seed)
    ]
    return _Draws(np.concatenate(values), np.array([row_spread(grid, value).standard_error]))


def _standard_error(one: _Draws, other: _Draws, paired: bool, well_above_floor: bool) -> float:
    """Of the difference of two SmoothECEs.

    Near the noise floor a resample's SmoothECE hardly moves with the signal, and the signs of the
    smoothed residual, on which influence rests, are chance. So the bootstrap's standard error is used
    only where the influence of the rows does not give a larger one, and where a model is close to its
    floor nothing is assumed of how the two depend on each other: their errors are added.
    """
    first, second = (float(np.sqrt((draws.influence**2).sum())) for draws in (one, other))
    if not well_above_floor:
        return first + second
    together = (
        float(np.sqrt(((one.influence - other.influence) ** 2).sum()))
        if paired
        else float(np.hypot(first, second))
    )
    return max(together, float(np.std(one.values - other.values, ddof=1)))


def _differences(
    found: Mapping[str, Assessment],
    drawn: Mapping[str, _Draws],
    paired: bool,
    confidence: float,
    correction: Correction,
    degrees: float,
) -> tuple[Difference, ...]:
    from scipy.special import ndtr, stdtr

    z = normal_quantile(0.5 + 0.5 * confidence, degrees)
    raw = []
    for one, other in combinations(found, 2):
        worse, better = sorted((one, other), key=lambda name: -found[name].debiased)
        plug_in = found[worse].smooth_ece - found[better].smooth_ece
        debiased = found[worse].debiased - found[better].debiased
        clear = all(
            found[k].debiased > ABOVE_FLOOR * found[k].noise_floor.value for k in (one, other)
        )
        error = _standard_error(drawn[worse], drawn[better], paired, clear)
        agreed = min(plug_in, debiased) if min(plug_in, debiased) > 0 else 0.0
        statistic = agreed / error if error > 0 else (np.inf if agreed > 0 else 0.0)
        tail = ndtr(-statistic) if np.isinf(degrees) else stdtr(degrees, -statistic)
        low, high = min(plug_in, debiased) - z * error, max(plug_in, debiased) + z * error
        raw.append((worse, better, debiased, low, high, float(2.0 * tail)))
    adjusted = adjusted_p_values([row[-1] for row in raw], correction)
    pairs = [Difference(*row, p) for row, p in zip(raw, adjusted, strict=True)]
    return tuple(sorted(pairs, key=lambda pair: (pair.p_value, -pair.value)))


def _sorted(
    found: Mapping[str, Assessment],
    differences: tuple[Difference, ...],
    paired: bool,
    correction: Literal["holm", "bonferroni", "none"],
    codes: Codes | None,
    confidence: float,
    seed: int,
) -> Comparison:
    order = sorted(found, key=lambda name: (found[name].debiased, found[name].smooth_ece))
    return Comparison(
        assessments=MappingProxyType({name: found[name] for name in order}),
        differences=differences,
        paired=paired,
        correction=correction,
        clusters=None if codes is None else codes[1],
        confidence=confidence,
        seed=seed,
    )


def _require_two(models: Mapping[Any, Any]) -> None:
    if len(models) < 2:
        raise InputError(f"a comparison needs at least two models; there is {len(models)}.")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
