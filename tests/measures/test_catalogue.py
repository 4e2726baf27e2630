"""One table of all measures, from arrays and from a sketch."""

import json
import re

import numpy as np
import pytest
from tests.refusals import refused

import calibrant as cal
import calibrant.measures as measures
from calibrant import Sketch, measure_all
from calibrant.measures.catalogue import MEASURES, RECOMMENDED, multiclass_error
from calibrant.measures.distance import distance_to_calibration_result
from calibrant.measures.isotonic import binned_decomposition, corp_decomposition
from calibrant.measures.kernel import kde_ece


def sample(n=4000):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return (rng.random(n) < p**1.5).astype(int), p


def test_six_by_default_all_on_request_or_by_name():
    y, p = sample()
    assert [line.name for line in measure_all(y, p)] == list(RECOMMENDED)
    assert len(RECOMMENDED) == 6
    assert len(measure_all(y, p, which="all")) == len(MEASURES)
    assert measure_all(y, p, which=["mmce"])["mmce"].value > 0
    with refused("which", "brier"):
        measure_all(y, p, which=["brier"])
    with pytest.raises(KeyError):
        measure_all(y, p)["mmce"]


def test_every_line_has_value_cost_and_what_it_misses():
    y, p = sample()
    table = measure_all(y, p, which="all")
    for line in table:
        assert np.isfinite(line.value)
        assert line.seconds >= 0
        assert 10 < len(line.misses) < 80
    assert json.loads(json.dumps(table.to_dict()))["n"] == 4000
    assert "smooth_ece" in str(table)
    assert "<table>" in table._repr_html_()


@pytest.mark.parametrize("nodes", [1 << 8, 1 << 16])
def test_a_sketch_agrees_with_the_rows_within_bounds_or_the_width_of_a_cell(nodes):
    y, p = sample()
    chosen = {
        "debiased_ece",
        "sweep_ece",
        "cross_validated_ece",
        "t_cal",
    }  # in bins, which may jump
    rows = measure_all(y, p, which="all")
    table = measure_all(Sketch.from_arrays(y, p, nodes=nodes), which="all")
    bounded = {"smooth_ece", "weak_calibration_error", "distance_to_calibration", "binned_ece"}
    bounded |= {"binned_ece_mass", "binned_rms", "binned_max"}
    assert {line.name for line in table if not np.isnan(line.error)} == bounded
    assert str(table).count("no bound") == table._repr_html_().count("no bound") == 14
    for exact, rough in zip(rows, table, strict=True):
        width = 5e-3 if rough.name in chosen else max(1 / nodes, 1e-4)
        bound = rough.error if rough.name in bounded else width
        error = 0.0 if np.isnan(exact.error) else exact.error
        assert abs(exact.value - rough.value) <= error + bound + 1e-12, exact.name


def test_measures_that_count_rows_say_so_when_weights_are_given():
    y, p = sample(200)
    plain = measure_all(y, p, which="all")
    table = measure_all(y, p, which="all", sample_weight=np.full(200, 2.0))
    refused = [line.name for line in table if np.isnan(line.value)]
    assert refused == ["cross_validated_ece"]
    assert "sample_weight" in table["cross_validated_ece"].misses
    for line in table:
        if line.name not in refused:
            assert line.value == pytest.approx(plain[line.name].value, abs=2e-7), line.name
    sketch = Sketch.from_arrays(y, p, sample_weight=np.full(200, 2.0))
    refused = [line.name for line in measure_all(sketch, which="all") if np.isnan(line.value)]
    assert refused == ["debiased_ece", "cross_validated_ece", "t_cal"]


@pytest.mark.parametrize("score", ["brier", "log"])
def test_rows_without_weight_change_no_decomposition(score):
    y, p, w = [0, 1, 1, 0, 1], [0.1, 0.9, 0.4, 0.6, 0.97], [0, 1, 2, 1, 0]
    for split in (corp_decomposition, binned_decomposition):
        got = split(y, p, sample_weight=w, score=score).to_dict()
        alone = split(y[1:4], p[1:4], sample_weight=w[1:4], score=score).to_dict()
        for name in alone.keys() - {"n", "score", "dropped"}:
            assert got[name] == pytest.approx(alone[name], abs=1e-14), name


@pytest.mark.parametrize("labels", ["binary", "soft"])
@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_rows_without_weight_change_no_measure(labels, decimals):
    """But for the normal reference rule of `kde_ece`, which goes by the number of rows."""
    y, p = sample(300)
    p = np.round(p, decimals)
    weight = np.where(
        np.round(10 * p) % 3 == 0, 0.0, np.arange(300) % 4.0
    )  # whole predictions, too
    used = weight > 0
    which = [name for name in MEASURES if name not in ("kde_ece", "cross_validated_ece")]
    if labels == "soft":
        y, which = 0.2 + 0.6 * y, [name for name in which if name != "debiased_ece"]
    options = {"labels": labels, "which": which}
    all_rows = measure_all(y, p, sample_weight=weight, **options)
    some = measure_all(y[used], p[used], sample_weight=weight[used], **options)
    for one, other in zip(all_rows, some, strict=True):
        assert one.value == pytest.approx(other.value, abs=one.error + other.error + 1e-12), (
            one.name
        )
        assert np.isfinite(one.value)
    given = [
        kde_ece(y[rows], p[rows], sample_weight=weight[rows], labels=labels, bandwidth=0.1)
        for rows in (slice(None), used)
    ]
    assert given[0] == pytest.approx(given[1], abs=1e-12)


@pytest.mark.parametrize("read", [dict, Sketch.from_arrays])
def test_every_result_counts_the_rows_that_were_left_out(read):
    y, p = sample(200)
    p[:3], y = [np.nan, 2.0, np.nan], y.astype(float)
    y[7] = np.nan
    given = read(y_true=y, y_prob=p, on_invalid="drop")
    args, options = ([given], {}) if isinstance(given, Sketch) else ([], given)
    gone = {"missing prediction": 2, "prediction out of range": 1, "missing label": 1}
    for make in (
        cal.smooth_ece_result,
        measure_all,
        corp_decomposition,
        binned_decomposition,
        measures.cumulative_differences,
        distance_to_calibration_result,
        measures.loss_gap_result,
        measures.t_cal,
        measures.weak_calibration_error_result,
        cal.reliability_diagram,
        cal.plotting.binned_diagram,
        cal.plotting.cumulative_diagram,
        cal.plotting.isotonic_diagram,
    ):
        result = make(*args, **options)
        assert (result.n, dict(result.dropped)) == (196, gone), make
        assert json.loads(json.dumps(result.to_dict()))["dropped"] == gone
        if make is not cal.reliability_diagram:
            assert re.search("dropped=4|4 rows dropped", repr(result))
    assert "dropped=4" in str(measure_all(*args, **options))
    assert "dropped=4" in measure_all(*args, **options)._repr_html_()


def test_class_probabilities_by_every_view():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(4), 3000)
    y = np.array([rng.choice(4, p=q) for q in probs])
    sharp = probs**2 / (probs**2).sum(axis=1, keepdims=True)
    for view in ("confidence", "top_label", "classwise_mean", "classwise_max"):
        good, bad = (multiclass_error(y, q, view=view) for q in (probs, sharp))
        assert good < bad
    top = sharp.argmax(axis=1)
    by_hand = np.sum(
        [
            np.mean(top == k) * cal.smooth_ece((y == k)[top == k], sharp[top == k, k])
            for k in range(4)
        ]
    )
    assert multiclass_error(y, sharp, view="top_label") == pytest.approx(by_hand, abs=1e-4)
    each = [cal.smooth_ece(y == k, sharp[:, k]) for k in range(4)]
    assert multiclass_error(y, sharp, view="classwise_mean") == pytest.approx(
        np.mean(each), abs=1e-4
    )
    assert multiclass_error(y, sharp, view="classwise_max") == pytest.approx(max(each), abs=1e-4)
    with refused("view"):
        multiclass_error(y, probs, view="joint")


@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_bounds_of_coarse_sketches_hold(scale):
    """Rows far from every edge of a bin: what the scale bends inside a cell is all there is."""
    which = ["binned_ece", "binned_ece_mass", "binned_rms", "binned_max"]
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 60))
        p = np.floor(15 * rng.random(n)) / 15 + 1 / 30 + 0.004 * rng.random(n)
        y = (rng.random(n) < p).astype(int)
        sketch = Sketch.from_arrays(y, p, scale=scale, nodes=1024)
        lines = measure_all(y, p, which=which), measure_all(sketch, which=which)
        for exact, rough in zip(*lines, strict=True):
            if np.isfinite(exact.value):
                assert abs(exact.value - rough.value) <= rough.error + 1e-12, exact.name


def test_an_infinite_score_is_infinite_within_bins():
    split = binned_decomposition([0, 1, 1, 0], [0, 1, 0.5, 1.0], score="log")
    assert split.mean_score == split.within_bins == np.inf
