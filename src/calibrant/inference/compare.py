"""`compare`: which model is better calibrated, and is the difference more than noise?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_seed
from calibrant.data.rows import Dropped, InputOptions, Rows, as_rows, require_one_sample
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import Function, InputError, Option, TooFewRows, TypeName, Where
from calibrant.inference.assess import assessment_of
from calibrant.inference.assessment import Assessment
from calibrant.inference.clusters import ClusterResiduals, cluster_codes
from calibrant.inference.comparison import Comparison, Difference
from calibrant.inference.correction import Correction, adjusted_p_values, require_correction
from calibrant.inference.dependence import warn_of_repeated_rows
from calibrant.inference.interval import require_confidence
from calibrant.inference.kernel_difference_test import KernelError, difference_p_value
from calibrant.inference.paired import Folds, Influence, difference_bounds

__all__ = ["compare"]

Codes = tuple[NDArray[np.int64], int]
Bounds = tuple[float, float]


def compare(
    y_true: Any,
    y_probs: Mapping[str, Any] | None = None,
    *,
    cluster: Any = None,
    confidence: float = CONFIDENCE,
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
        Confidence of the intervals, and 1 minus the level of the verdict.
    correction : {"holm", "bh", "bonferroni", "none"}
        For the number of pairs. Unless it is "none", the intervals of all pairs hold together, too.
    seed, scale, **options
        As in `assess`. A row that is dropped for one model is dropped for all.

    Notes
    -----
    *The test.* Its null is that both models have the same kernel calibration error, E[r r' k(f, f')]^½ with
    the Laplace kernel of width 0.05 (`measures.kernel_calibration_error`). The statistic is the difference
    of the unbiased estimates of its square, over pairs of different rows, with a jackknife standard error.
    Neither model's noise biases it, so that it finds differences far below the noise floor of SmoothECE.

    *The interval.* It is for the difference of SmoothECE. Each end takes the plug-in of one model, which errs
    upwards, and for the other the mean of (f - y) g(f), with a g that was learnt on other rows, which errs
    downwards. So it holds wherever the errors lie, and is wide near the noise floor. Small errors of
    many signs have a small kernel error, so that it may hold 0 where the test tells the models apart.

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
                "cannot be combined with other rows: a mapping of sketches holds outcomes and predictions",
                argument="y_true",
                seen=TypeName.of(y_true),
                saying="",
                cure="Pass the mapping of sketches alone.",
            )
        return _unpaired(_named(y_true), scale, confidence, correction, seed)
    require_one_sample(options.get("multiclass"), "compare")
    if not isinstance(y_probs, Mapping):
        raise InputError(
            'must be a mapping of model names to predictions, such as {"a": p1, "b": p2}',
            argument="y_probs",
            seen=TypeName.of(y_probs),
            cure="Name each model, with its predictions for all rows.",
        )
    models, codes = _read(y_true, _named(y_probs), cluster, options)
    if codes is None:
        warn_of_repeated_rows(*models.values(), stacklevel=3)
    chosen = PROBABILITY if scale is None else as_scale(scale)
    counted, their_codes = _with_weight(models, codes)
    folds = Folds.of(list(counted.values()), their_codes)
    assessments, errors, influences = {}, {}, {}
    for name, pairs in models.items():
        sketch = Sketch.from_rows(pairs, scale=chosen)
        clusters = None
        if codes is not None:
            clusters = ClusterResiduals.of(chosen, pairs, codes)
        assessments[name] = assessment_of(sketch, clusters, confidence=confidence, seed=seed)
        errors[name] = KernelError.of_rows(counted[name], chosen, their_codes)
        influences[name] = Influence.of(sketch, counted[name], assessments[name], folds)
    alone = _alone(confidence, correction, len(models))

    def bounds(one: str, other: str) -> Bounds:
        if np.array_equal(models[one].p, models[other].p):
            return 0.0, 0.0
        return difference_bounds(influences[one], influences[other], folds, confidence=alone)

    differences = _differences(assessments, errors, bounds, True, correction)
    number = None if codes is None else codes[1]
    return _sorted(assessments, errors, differences, True, correction, number, confidence, seed)


def _unpaired(
    sketches: Mapping[str, Any],
    scale: str | Scale | None,
    confidence: float,
    correction: Correction,
    seed: int,
) -> Comparison:
    """Models on rows of their own: the interval of a difference is made of each model's own."""
    assessments, errors, intervals = {}, {}, {}
    first = next(iter(sketches.items()))
    each = 1.0 - 0.5 * (1.0 - _alone(confidence, correction, len(sketches)))
    for name, model in sketches.items():
        if not isinstance(model, Sketch):
            raise InputError(
                "a mapping without outcomes must hold sketches", seen=TypeName.of(model),
                where=Where(group=repr(name)),
                cure="For arrays, pass the outcomes first: {compare}(y_true, models).",
                compare=Function("compare"),
            )  # fmt: skip
        sketch = as_sketch(model, scale=scale)
        if sketch.scale != first[1].scale:
            raise InputError(
                "must be one and the same for all models", argument="scale", seen=sketch.scale.name,
                where=Where(group=repr(name)),
                cure="{first} is on {other}. Build all sketches with the same {option}.",
                first=repr(first[0]), other=repr(first[1].scale.name), option=Option("scale"),
            )  # fmt: skip
        assessments[name] = assessment_of(sketch, confidence=confidence, seed=seed)
        errors[name] = KernelError.of_sketch(sketch)
        intervals[name] = assessment_of(sketch, confidence=each, seed=seed).interval

    def bounds(one: str, other: str) -> Bounds:
        worse, better = intervals[one], intervals[other]
        return worse.low - better.high, worse.high - better.low

    differences = _differences(assessments, errors, bounds, False, correction)
    return _sorted(assessments, errors, differences, False, correction, None, confidence, seed)


def _alone(confidence: float, correction: Correction, models: int) -> float:
    """The confidence of each pair's interval with which all of them hold together."""
    pairs = 1 if correction == "none" else models * (models - 1) // 2
    return 1.0 - (1.0 - confidence) / pairs


def _with_weight(
    models: Mapping[str, Rows], codes: Codes | None
) -> tuple[Mapping[str, Rows], Codes | None]:
    """The rows that count, and their clusters."""
    weight = next(iter(models.values())).weight
    if weight is None or np.all(weight > 0):
        return models, codes
    counted = {name: pairs.select(weight > 0) for name, pairs in models.items()}
    return counted, None if codes is None else (codes[0][weight > 0], codes[1])


def _read(
    y_true: Any, y_probs: Mapping[str, Any], cluster: Any, options: InputOptions
) -> tuple[dict[str, Rows], Codes | None]:
    """Every model's pairs on the rows that are valid for all, and the clusters of these rows."""
    models = {}
    for name, prob in y_probs.items():
        try:
            models[name] = as_rows(y_true, prob, **options)
            models[name].require_valid()
        except InputError as error:
            raise error.at(group=repr(name)) from error
    some = next(iter(models.values()))
    n = some.n + sum(some.dropped.values())
    codes = None if cluster is None else cluster_codes(cluster, n)
    valid = np.ones(n, dtype=np.bool_)
    for pairs in models.values():
        if pairs.kept is not None:
            valid &= np.bincount(pairs.kept, minlength=n) > 0
    if not valid.any():
        raise TooFewRows(
            "no valid rows are left",
            seen=n,
            saying="all {} were dropped for one model or another",
            cure="Leave out the model whose rows are all invalid.",
        )
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
        raise TooFewRows(
            "a comparison needs at least two rows with weight",
            seen=counted,
            saying="there is {}",
            cure="Pass more rows.",
        )
    return models, codes


def _differences(
    assessments: Mapping[str, Assessment],
    errors: Mapping[str, KernelError],
    bounds: Callable[[str, str], Bounds],
    paired: bool,
    correction: Correction,
) -> tuple[Difference, ...]:
    """Of every pair of models, the clearest first."""
    raw = []
    for pair in combinations(assessments, 2):
        worse, better = sorted(pair, key=lambda name: -errors[name].value)
        p_value = difference_p_value(errors[worse], errors[better], paired=paired)
        value = assessments[worse].smooth_ece - assessments[better].smooth_ece
        low, high = bounds(worse, better)
        raw.append((worse, better, value, min(low, value), max(high, value), p_value))
    adjusted = adjusted_p_values([row[-1] for row in raw], correction)
    pairs = [Difference(*row, p) for row, p in zip(raw, adjusted, strict=True)]
    return tuple(sorted(pairs, key=lambda pair: (pair.p_value, -pair.value)))


def _sorted(
    assessments: Mapping[str, Assessment],
    errors: Mapping[str, KernelError],
    differences: tuple[Difference, ...],
    paired: bool,
    correction: Correction,
    clusters: int | None,
    confidence: float,
    seed: int,
) -> Comparison:
    order = sorted(errors, key=lambda name: (errors[name].value, assessments[name].smooth_ece))
    return Comparison(
        assessments={name: assessments[name] for name in order},
        kernel_errors={name: float(np.sqrt(max(errors[name].value, 0.0))) for name in order},
        differences=differences,
        paired=paired,
        correction=correction,
        clusters=clusters,
        confidence=confidence,
        seed=seed,
    )


def _named(models: Mapping[Any, Any]) -> dict[str, Any]:
    """The models by the text of their names, which must tell them apart."""
    if len(models) < 2:
        raise InputError(
            "a comparison needs at least two models",
            seen=len(models),
            saying="there is {}",
            cure="Pass the predictions of another model.",
        )
    named: dict[str, Any] = {}
    for name, model in models.items():
        if str(name) in named:
            raise InputError(
                "names of models must differ as text", seen=str(name),
                saying="two of them read {}", cure="Rename one.",
            )  # fmt: skip
        named[str(name)] = model
    return named
