"""`compare`: which model is better calibrated, and is the difference more than noise?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_seed
from calibrant._format import SMALLEST_P_VALUE
from calibrant.data.dropped import Dropped
from calibrant.data.pairs import InputOptions, Pairs, as_pairs
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.assess import assessment_of
from calibrant.inference.assessment import Assessment
from calibrant.inference.clusters import (
    ClusterResiduals,
    cluster_codes,
)
from calibrant.inference.comparison import Comparison, Difference
from calibrant.inference.correction import Correction, adjusted_p_values, require_correction
from calibrant.inference.dependence import warn_of_repeated_rows
from calibrant.inference.interval import normal_quantile, require_confidence
from calibrant.inference.paired import (
    Blocks,
    Draws,
    resampled,
    resketched,
    standard_error,
)
from calibrant.inference.wilson import wilson_error

__all__ = ["compare"]

Codes = tuple[NDArray[np.int64], int]


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
    its noise floor it is the sum of both models' own. There the comparison is cautious. With m rows or
    clusters, a difference d counts as d / √(s² + d/m) standard errors, as in Wilson's interval: rows
    that agree to the last are no proof that the next one will.

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
    confidence, seed = float(confidence), require_seed(seed)
    if isinstance(y_true, Mapping):
        if y_probs is not None or cluster is not None or options:
            raise InputError(
                "sketches hold outcomes and predictions already; pass the mapping of sketches alone."
            )
        return _unpaired(_named(y_true), scale, confidence, correction, seed)
    if not isinstance(y_probs, Mapping):
        raise InputError(
            "`y_probs` must be a mapping of model names to predictions, such as "
            f'{{"a": p1, "b": p2}}; got {type(y_probs).__name__}.'
        )
    models, codes = _read(y_true, _named(y_probs), cluster, options)
    if codes is None:
        warn_of_repeated_rows(*models.values(), stacklevel=3)
    blocks = Blocks.of(next(iter(models.values())), codes, seed=seed)
    found, drawn = {}, {}
    for name, pairs in models.items():
        sketch = Sketch.from_pairs(pairs, scale=PROBABILITY if scale is None else scale)
        clusters = None
        if codes is not None:
            clusters = partial(ClusterResiduals.of, pairs=pairs, codes=codes, seed=seed)
        found[name] = assessment_of(sketch, clusters, confidence=confidence, seed=seed)
        drawn[name] = resampled(sketch, pairs, found[name], blocks)
    degrees = np.inf if codes is None else blocks.number - 1.0
    twins = {
        frozenset(pair)
        for pair in combinations(models, 2)
        if np.array_equal(models[pair[0]].p, models[pair[1]].p)
    }
    differences = _differences(found, drawn, True, confidence, correction, degrees, twins)
    return _sorted(found, differences, True, correction, codes, confidence, seed)


def _unpaired(
    sketches: Mapping[str, Any],
    scale: str | Scale | None,
    confidence: float,
    correction: Correction,
    seed: int,
) -> Comparison:
    found, drawn = {}, {}
    first = next(iter(sketches.items()))
    for place, (name, given) in enumerate(sketches.items()):
        if not isinstance(given, Sketch):
            raise InputError(
                f"a mapping without outcomes must hold sketches; {name!r} is a "
                f"{type(given).__name__}. For arrays: `compare(y_true, {{name: y_prob}})`."
            )
        sketch = as_sketch(given, scale=scale)
        if sketch.scale != first[1].scale:
            raise InputError(
                f"models are compared on one scale; {first[0]!r} is on {first[1].scale.name!r} and "
                f"{name!r} on {sketch.scale.name!r}. Build their sketches with the same `scale=`."
            )
        found[name] = assessment_of(sketch, confidence=confidence, seed=seed)
        drawn[name] = resketched(sketch, found[name], seed + place)
    differences = _differences(found, drawn, False, confidence, correction, np.inf)
    return _sorted(found, differences, False, correction, None, confidence, seed)


def _read(
    y_true: Any, y_probs: Mapping[str, Any], cluster: Any, options: InputOptions
) -> tuple[dict[str, Pairs], Codes | None]:
    """Every model's pairs on the rows that are valid for all, and the clusters of these rows."""
    models = {}
    for name, prob in y_probs.items():
        try:
            models[name] = as_pairs(y_true, prob, **options)
            models[name].require_valid()
        except InputError as error:
            raise type(error)(f"model {name!r}: {error}") from error
    some = next(iter(models.values()))
    n = some.n + sum(some.dropped.values())
    codes = None if cluster is None else cluster_codes(cluster, n)
    valid = np.ones(n, dtype=np.bool_)
    for pairs in models.values():
        if pairs.kept is not None:
            valid &= np.bincount(pairs.kept, minlength=n) > 0
    if not valid.any():
        raise TooFewRows(f"no valid rows are left: all {n} were dropped for one model or another.")
    if not valid.all():
        dropped = Dropped({"invalid for one of the models": int(n - valid.sum())})
        for name, pairs in models.items():
            common = valid if pairs.kept is None else valid[pairs.kept]
            models[name] = replace(pairs.select(common), dropped=dropped)
        codes = None if codes is None else cluster_codes(codes[0][valid], int(valid.sum()))
    some = next(iter(models.values()))
    if codes is not None and some.weight is not None:
        codes = cluster_codes(codes[0], some.n, some.weight)
    counted = some.n if some.weight is None else int(np.count_nonzero(some.weight))
    if counted < 2:
        raise TooFewRows(f"a comparison needs at least two rows with weight; there is {counted}.")
    return models, codes


def _differences(
    found: Mapping[str, Assessment],
    drawn: Mapping[str, Draws],
    paired: bool,
    confidence: float,
    correction: Correction,
    degrees: float,
    twins: Collection[frozenset[str]] = (),
) -> tuple[Difference, ...]:
    """Of every pair of models; twins predict the same, and do not differ."""
    from scipy.special import ndtr, stdtr

    z = normal_quantile(0.5 + 0.5 * confidence, degrees)
    raw = []
    for one, other in combinations(found, 2):
        if frozenset((one, other)) in twins:
            raw.append((one, other, 0.0, 0.0, 0.0, 1.0))
            continue
        worse, better = sorted((one, other), key=lambda name: -found[name].debiased)
        plug_in = found[worse].smooth_ece - found[better].smooth_ece
        debiased = found[worse].debiased - found[better].debiased
        error = standard_error(drawn[worse], drawn[better], paired=paired)
        units = min(drawn[one].units, drawn[other].units)
        agreed = max(min(plug_in, debiased), 0.0)
        statistic = agreed / np.sqrt(error**2 + agreed / units) if agreed > 0 else 0.0
        tail = ndtr(-statistic) if np.isinf(degrees) else stdtr(degrees, -statistic)
        reach = wilson_error(z, error, units)
        low = float(max(min(plug_in, debiased) - reach, -1.0))
        high = float(min(max(plug_in, debiased) + reach, 1.0))
        raw.append((worse, better, debiased, low, high, max(float(2.0 * tail), SMALLEST_P_VALUE)))
    adjusted = adjusted_p_values([row[-1] for row in raw], correction)
    pairs = [Difference(*row, p) for row, p in zip(raw, adjusted, strict=True)]
    return tuple(sorted(pairs, key=lambda pair: (pair.p_value, -pair.value)))


def _sorted(
    found: Mapping[str, Assessment],
    differences: tuple[Difference, ...],
    paired: bool,
    correction: Correction,
    codes: Codes | None,
    confidence: float,
    seed: int,
) -> Comparison:
    order = sorted(found, key=lambda name: (found[name].debiased, found[name].smooth_ece))
    return Comparison(
        assessments={name: found[name] for name in order},
        differences=differences,
        paired=paired,
        correction=correction,
        clusters=None if codes is None else codes[1],
        confidence=confidence,
        seed=seed,
    )


def _named(models: Mapping[Any, Any]) -> dict[str, Any]:
    """The models by the text of their names, which must tell them apart."""
    if len(models) < 2:
        raise InputError(f"a comparison needs at least two models; there is {len(models)}.")
    named: dict[str, Any] = {}
    for name, model in models.items():
        if str(name) in named:
            raise InputError(
                f"names of models must differ as text; two of them read {str(name)!r}. Rename one."
            )
        named[str(name)] = model
    return named
