"""`assess`: everything that one sample says about calibration, in one object."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_choice, require_confidence, require_share
from calibrant.data.arrays import require_each
from calibrant.data.rows import InputOptions, Rows, as_rows, has_classes, require_same_index
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch, as_sketch, warn_of_hard_labels
from calibrant.data.sketches import Stacked, is_summed
from calibrant.errors import CalibrantWarning, InputError, TooFewRows
from calibrant.inference.assessment import Assessment
from calibrant.inference.calibration_test import CalibrationTest, Interval, NoiseFloor
from calibrant.inference.clusters import (
    ClusterResiduals,
    cluster_codes,
    clusters_of_sketches,
)
from calibrant.inference.dependence import warn_of_repeated_cells, warn_of_repeated_rows
from calibrant.inference.direction import direction_of
from calibrant.inference.observed_expected import observed_expected
from calibrant.inference.profile import Profile, Sample, as_profile
from calibrant.inference.residuals import ResidualGrid
from calibrant.inference.scores import ClassScores, ProperScores
from calibrant.io.from_data import sample_from
from calibrant.io.scan import ReadingOptions
from calibrant.measures.smooth_ece import smooth_ece_result
from calibrant.smoothing.spectrum import SMALLEST_BANDWIDTH

Codes = tuple[NDArray[np.int64], int]
FINEST_OF_FLOOR = 0.1
"""Part of the noise floor below which no bandwidth shows anything."""
FEW_UNITS = 40.0
"""Where the size of the test begins to leave its level (bench.coverage)."""


def assess(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    cluster: Any = None,
    margin: float | None = None,
    confidence: float = CONFIDENCE,
    scale: str | Scale | None = None,
    profile: str | Profile | None = None,
    weight_type: Literal["importance", "frequency"] = "importance",
    **options: Unpack[ReadingOptions],
) -> Assessment:
    """Assessment of calibration: SmoothECE, its interval, the test and the direction of the error.

    Parameters
    ----------
    y_true : array, Sketch or Sketches
        Outcomes, 0 or 1; or a Sketch, and no `y_prob`; or sketches by cluster, as
        `scan(..., cluster="match")` gives them, with `cluster="match"`.
    y_prob : array
        Predicted probabilities of outcome 1.
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true`, `y_prob`, `cluster` and `sample_weight` then name columns.
    cluster : array, optional
        What rows have in common that makes them dependent: the question, patient, match or day that
        they forecast. Interval, noise floor and test are then those of clusters.
    margin : float, optional
        Largest acceptable SmoothECE: `decision` tells if the interval is within it, beyond it, or neither.
    confidence : float
        Confidence of the interval; the test's level is 1 - `confidence`.
    scale : str or Scale, default "probability"
        Where the smoothing happens.
    profile : str or Profile, optional
        Adds the numbers that your field asks for, as the result's `profile`: "clinical" or another name in
        `calibrant.profiles.PROFILES`.
    weight_type : {"importance", "frequency"}
        Meaning of `sample_weight`. Importance: a row of weight 2 counts twice and is still one
        observation; weights may depend on the outcome. Frequency: it stands for two equal rows.
    **options
        How to read the arrays: `sample_weight`, `pos_label`, `from_logits`, `from_logprobs`, `percent`,
        `labels`, `on_invalid`, `multiclass`, `classes` (see `calibrant.data.InputOptions`).

    Returns
    -------
    Assessment
        Print it for a table; `.verdict` is one line; `.to_dict()` is for JSON.

    Notes
    -----
    The interval is for the population from which the rows were drawn. Rows are taken to be
    independent unless `cluster` says otherwise; where they are not, the interval is too narrow and
    the p-value too small. The interval excludes 0 exactly when the p-value is at most 1 - `confidence`:
    both come from one construction (see `calibrant.inference.calibration_test`).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> y = rng.random(2000) < 0.5 + 0.7 * (p - 0.5)
    >>> found = assess(y, p)
    >>> print(found.verdict)
    miscalibrated: 0.0838, noise floor 0.024, p < 0.001; overconfident
    >>> found.interval.low < 0.0735 < found.interval.high
    True
    """
    require_confidence(confidence)
    require_margin(margin)
    reading: InputOptions = options
    if data is not None:
        by_row = profile is not None or weight_type == "frequency"
        by_row = by_row or (options.get("multiclass") is not None and _is_in_memory(data))
        y_true, y_prob, cluster, reading = sample_from(
            data, y_true, y_prob, options, cluster=cluster, scale=scale, rows=by_row
        )
    asked = None if profile is None else as_profile(profile)
    hint = 'Survey weights are "importance"; "frequency" is for rows that stand for several equal ones.'
    require_choice("weight_type", weight_type, ("importance", "frequency"), hint)
    if weight_type == "frequency" and is_summed(y_true):
        raise InputError(
            "`weight_type` of a sketch was settled when it was made: importance.",
            hint="A table of counts becomes a sketch of rows by `Sketch.from_counts`.",
        )
    clusters: ClusterResiduals | None = None
    pairs, codes = None, None
    stacked: Stacked | None = None
    if is_summed(y_true):
        stacked = clusters_of_sketches(y_true, cluster)
        sketch = as_sketch(y_true.total(), y_prob, scale=scale, **reading)
        if stacked is not None:
            clusters = ClusterResiduals.of_sketches(sketch.scale, stacked)
        elif not sketch.weighted:
            warn_of_repeated_cells(sketch, stacklevel=3)
    else:
        if y_prob is None and not isinstance(y_true, Rows):
            as_sketch(y_true, **reading)  # says what is missing
        pairs, codes = read_clustered(y_true, y_prob, cluster, **reading)
        sketch = Sketch.from_rows(pairs, scale=PROBABILITY if scale is None else scale)
        if weight_type == "frequency":
            sketch = counted(pairs, sketch)
        if codes is None:
            warn_of_repeated_rows(pairs, stacklevel=3)
        else:
            clusters = ClusterResiduals.of(sketch.scale, pairs, codes)
    warn_of_hard_labels([sketch], stacklevel=3)
    assessment, test, _ = assessed(
        sketch, clusters, pairs=pairs, margin=margin, confidence=confidence
    )
    warn_of_few_units(test, stacklevel=3)
    ways = reading.get("multiclass"), reading.get("classes")
    if pairs is not None and y_prob is not None and has_classes(y_prob, *ways):
        assessment = replace(assessment, classes=ClassScores.of(y_true, y_prob, **reading))
    elif options.get("multiclass") is not None:  # of a source that is read in batches
        assessment = assessment.of_confidence()
    if asked is None:
        return assessment
    sample = Sample(sketch, assessment, pairs, codes, () if stacked is None else stacked)
    return replace(assessment, profile=asked.measured(sample))


def _is_in_memory(data: Any) -> bool:
    """True of columns by name and frames in memory, of which rows cost nothing to read."""
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True, pass_through=True)
    return isinstance(data, Mapping) or isinstance(frame, nw.DataFrame)


def assessed(
    sketch: Sketch,
    clusters: ClusterResiduals | None = None,
    *,
    pairs: Rows | None = None,
    margin: float | None = None,
    confidence: float,
) -> tuple[Assessment, CalibrationTest, ResidualGrid]:
    """Assessment, the test that it rests on, and the rows on a grid for their bandwidth."""
    if sketch.n < 2:
        raise TooFewRows(f"An assessment needs at least two rows; there is {sketch.n}.")
    result = smooth_ece_result(sketch)
    test = CalibrationTest.of(sketch, clusters)
    # Far below the noise a finer grid shows nothing but costs much.
    finest = max(SMALLEST_BANDWIDTH * sketch.scale.length, FINEST_OF_FLOOR * test.noise_floor)
    value = max(result.value, finest)
    grid = ResidualGrid(sketch, value)
    high = max(test.upper_end(confidence, grid.error, value), result.value)
    rate = float(sketch.weights[:, 1].sum() / sketch.total_weight)
    direction = direction_of(sketch, grid, value, test, confidence)
    assessment = Assessment(
        smooth_ece=result.value,
        interval=Interval(min(test.lower_end(confidence), result.value), high, confidence),
        noise_floor=NoiseFloor(test.noise_floor),
        p_value=test.p_value,
        observed_expected=observed_expected(grid.sums, confidence, clusters),
        relative=result.value / rate if rate > 0 else float("inf"),
        direction=direction,
        mean_prediction=rate + direction.bias,
        event_rate=rate,
        scores=ProperScores(sketch, pairs),
        n=sketch.n,
        dropped=sketch.dropped,
        clusters=None if clusters is None else clusters.number,
        bandwidth=result.bandwidth,
        certificate=result.certificate,
        scale=result.scale,
        confidence=confidence,
        margin=margin,
    )
    return assessment, test, grid


def warn_of_few_units(test: CalibrationTest, group: str = "", *, stacklevel: int) -> None:
    """Warn where weights or clusters leave too few independent units; see docs/uncertainty.md."""
    cells = test.cells
    if math.isfinite(cells.degrees) and cells.units < FEW_UNITS:
        what = "rows with weights" if cells.scores is None else "clusters"
        message = (
            f"The effective number of {what}{group} is {cells.units:.1f}. Below {FEW_UNITS:g} p-value and "
            "interval are approximate: the test may reject up to twice as often as its level says."
        )
        warnings.warn(CalibrantWarning(message), stacklevel=stacklevel + 1)


def counted(pairs: Rows, sketch: Sketch) -> Sketch:
    """The sketch of as many rows as the weights say."""
    weight = pairs.weight
    if weight is None:
        return sketch
    rule = "be whole numbers if they are frequencies"
    hint = 'For weights that are not counts, leave out `weight_type="frequency"`.'
    require_each("sample_weight", weight, weight == np.floor(weight), rule, hint)
    counts = np.rint(sketch.weights).astype(np.int64)
    offsets = np.rint(sketch.weighted_offsets).astype(np.int64)
    used = counts.any(axis=1)
    rows = sketch.cells[used], counts[used], offsets[used]
    return Sketch(rows, nodes=sketch.nodes, scale=sketch.scale, dropped=sketch.dropped)


def read_clustered(
    y_true: Any, y_prob: Any, cluster: Any, **options: Unpack[InputOptions]
) -> tuple[Rows, Codes | None]:
    """Rows, and the cluster of each row that is kept."""
    pairs = as_rows(y_true, y_prob, **options)
    if cluster is None:
        return pairs, None
    require_same_index(y_true=y_true, cluster=cluster)
    if pairs.kept is None:
        return pairs, cluster_codes(cluster, pairs.n, pairs.weight)
    codes, _ = cluster_codes(cluster, pairs.passed)
    return pairs, cluster_codes(codes[pairs.kept], pairs.n, pairs.weight)


def require_margin(margin: float | None) -> None:
    """Refuse a margin that says nothing of a SmoothECE, which is at most 1."""
    if margin is not None:
        require_share("margin", margin)
