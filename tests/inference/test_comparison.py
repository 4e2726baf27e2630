"""Which model is better calibrated: paired, corrected, and honest about what it cannot tell."""

from __future__ import annotations

import copy
import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refusals import refused

import calibrant as cal
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.compare import compare, compare_by
from calibrant.inference.correction import adjusted_p_values
from calibrant.inference.dependence import DependenceWarning
from calibrant.measures.cumulative import cumulative_differences


def _models(n: int, seed: int = 0) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    truth = rng.random(n)
    y = (rng.random(n) < truth).astype(int)
    noisy = np.clip(truth + 0.02 * rng.standard_normal(n), 0, 1)
    return y, {"good": truth, "noisy": noisy, "timid": 0.25 + 0.5 * truth, "bold": truth**2}


def test_finds_the_better_model_and_says_so() -> None:
    y, models = _models(4000)
    found = compare(y, models)
    assert list(found.assessments)[-2:] == ["timid", "bold"]
    assert found.paired
    by_pair = {frozenset((d.first, d.second)): d for d in found.differences}
    assert len(by_pair) == 6
    clear = by_pair[frozenset(("good", "bold"))]
    assert clear.first == "bold"
    assert clear.low > 0
    assert clear.p_value_adjusted < 0.001
    assert by_pair[frozenset(("good", "noisy"))].p_value_adjusted > 0.05
    assert "no difference in calibration detected between" in found.verdict
    assert found.assessments["bold"].smooth_ece == pytest.approx(
        cal.smooth_ece(y, models["bold"]), abs=1e-6
    )


@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([30, 200, 800]),
    tilt=st.sampled_from([0.0, 0.3, 0.7, 1.5]),
    correction=st.sampled_from(["holm", "bh", "bonferroni", "none"]),
    kind=st.sampled_from(["rows", "clusters", "weights", "sketches"]),
)
@settings(max_examples=12, deadline=None)
def test_a_p_value_and_its_interval_never_contradict(
    seed: int, n: int, tilt: float, correction: str, kind: str
) -> None:
    """At every level, after every correction: an interval leaves 0 exactly where its p-value rejects."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(0.8, 1.2, n)
    y = (rng.random(n) < truth).astype(int)
    models = {
        "a": truth,
        "b": np.clip(truth + 0.3 * tilt, 0, 1),
        "c": np.round(truth ** (1 + tilt), 1),
    }
    beside = {
        "rows": {},
        "clusters": {"cluster": np.arange(n) // 3},
        "weights": {"sample_weight": rng.exponential(size=n) + 0.1},
        "sketches": {},
    }[kind]
    arguments = [y, models]
    if kind == "sketches":
        arguments = [{name: Sketch.from_arrays(y, p) for name, p in list(models.items())[:2]}]
    for confidence in (0.99, 0.95, 0.8):
        with warnings.catch_warnings(action="ignore"):
            found = compare(*arguments, confidence=confidence, correction=correction, **beside)
        for pair in found.differences:
            assert (pair.p_value_adjusted <= found.level) == (pair.low > 0 or pair.high < 0)
            assert pair.low <= pair.value <= pair.high


def test_models_that_differ_clearly_are_told_apart_by_interval_and_verdict_alike() -> None:
    """20,000 rows with SmoothECE .05 and .1: the interval leaves 0, and the verdict says so."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.8, 20_000)
    y = rng.random(p.size) < p
    found = compare(y, {"low": p + 0.05, "high": p + 0.1})
    assert found.verdict == "low is better calibrated than high"
    (pair,) = found.differences
    assert (pair.first, pair.second) == ("high", "low")
    assert 0 < pair.low < 0.05 < pair.high
    assert pair.p_value_adjusted <= 0.05


def test_models_come_as_a_mapping_a_frame_or_columns() -> None:
    y, models = _models(400)
    expected = compare(y, models).to_dict()
    names = list(models)
    matrix = np.stack(list(models.values()), axis=1)
    assert compare(y, pd.DataFrame(models)).to_dict() == expected
    assert compare(y, pl.DataFrame(models)).to_dict() == expected
    assert compare(y, matrix, names=names).to_dict() == expected
    assert "model 4" in compare(y, matrix).assessments
    frame = compare(y, models).to_frame("polars")
    assert frame["first"].to_list() == [pair["first"] for pair in expected["differences"]]
    with refused("names"):
        compare(y, matrix, names=["a"])
    with refused("y_prob"):
        compare(y, matrix[:, 0])


def test_groups_are_compared_one_by_one_and_corrected_together() -> None:
    rng = np.random.default_rng(2)
    p = rng.uniform(0.1, 0.7, 6000)
    y = rng.random(p.size) < p
    by = rng.choice(["x", "y"], p.size)
    models = {"good": p, "bad": p + np.where(by == "x", 0.2, 0.0)}
    found = compare_by(y, models, by=by)
    assert found.wins["good"] == 1
    assert list(found) == ["x", "y"]
    assert (
        found["x"].assessments["bad"]
        == compare(y[by == "x"], {name: q[by == "x"] for name, q in models.items()}).assessments[
            "bad"
        ]
    )
    assert found.verdict == "better calibrated: good for 1 of 2 groups (corrected for testing 2)"
    assert found.to_frame("polars")["group"].to_list() == ["x", "y"]
    one = found["x"].differences[0]
    assert one.p_value_adjusted == pytest.approx(2 * one.p_value)
    document = found.to_dict()
    assert [one["group"] for one in document["groups"]] == ["x", "y"]
    light = compare_by(y, models, by=by, sample_weight=np.where(by == "y", 0.0, 1.0))
    assert (list(light), light.too_few) == (["x"], ("y",))
    with refused("by"):
        compare_by(y, models, by=by[1:])


@pytest.mark.parametrize(("first", "second"), [(0.01, 0.05), (0.99, 0.95)])
def test_models_are_not_apart_where_all_outcomes_are_alike(first: float, second: float) -> None:
    y = np.full(60, round(first))
    (pair,) = compare(y, {"a": np.full(60, first), "b": np.full(60, second)}).differences
    assert pair.p_value > 0.05
    assert pair.low < 0 < pair.high


def test_the_interval_holds_where_the_error_is_local() -> None:
    """40% of predictions at 1 with events at .975 there, the rest calibrated: SmoothECE is .01."""
    covered = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        certain = rng.random(10_000) < 0.4
        p = np.where(certain, 1.0, rng.beta(2, 2, 10_000))
        chance = np.where(certain, 0.975, p)
        y = rng.random(p.size) < chance
        (pair,) = compare(y, {"a": p, "b": chance}).differences
        assert pair.first == "a"
        covered += pair.low <= 0.01 <= pair.high
    assert covered >= 4


def test_intervals_of_many_pairs_hold_together() -> None:
    y, models = _models(600)
    together, alone = (compare(y, models, correction=c) for c in ("holm", "none"))
    widths = {
        frozenset((pair.first, pair.second)): pair.high - pair.low for pair in alone.differences
    }
    for pair in together.differences:
        assert pair.high - pair.low > widths[frozenset((pair.first, pair.second))]


def test_equal_models_are_not_told_apart() -> None:
    rejected = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        p = rng.random(600)
        y = (rng.random(600) < 0.2 + 0.6 * p).astype(int)
        # Mirrored predictions have the same SmoothECE in the population.
        q = rng.permutation(p)
        z = (rng.random(600) < 0.2 + 0.6 * q).astype(int)
        found = compare({"a": Sketch.from_arrays(y, p), "b": Sketch.from_arrays(z, q)})
        rejected += found.differences[0].p_value <= 0.05
    assert rejected <= 3


def test_pairing_narrows_the_interval() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(2000)
    y = (rng.random(2000) < 0.2 + 0.6 * p).astype(int)
    close = np.clip(p + 0.01, 0, 1)
    paired = compare(y, {"a": p, "b": close})
    unpaired = compare({"a": Sketch.from_arrays(y, p), "b": Sketch.from_arrays(y, close)})
    widths = [found.differences[0].high - found.differences[0].low for found in (paired, unpaired)]
    assert widths[0] < 0.6 * widths[1]
    assert "unpaired: the rows are not known" in str(unpaired)


def test_the_interval_of_a_difference_covers() -> None:
    grid = (np.arange(1 << 14) + 0.5) / (1 << 14)
    chance = 0.2 + 0.6 * grid
    timid = 0.3 + 0.4 * grid
    truth = cal.smooth_ece(chance, grid, labels="soft", tolerance=1e-3) - cal.smooth_ece(
        chance, timid, labels="soft", tolerance=1e-3
    )
    covered = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.random(800)
        y = (rng.random(800) < 0.2 + 0.6 * p).astype(int)
        (pair,) = compare(y, {"a": p, "b": 0.3 + 0.4 * p}).differences
        signed = truth if pair.first == "a" else -truth
        covered += pair.low <= signed <= pair.high
    assert covered >= 17


def test_clusters_widen_it() -> None:
    y, models = _models(300)
    rows = np.repeat(np.arange(300), 8)
    repeated = {name: p[rows] for name, p in list(models.items())[2:]}
    by_cluster = compare(y[rows], repeated, cluster=rows)
    with pytest.warns(DependenceWarning):
        as_rows = compare(y[rows], repeated)
    widths = [d.differences[0].high - d.differences[0].low for d in (by_cluster, as_rows)]
    assert by_cluster.clusters == 300
    assert widths[0] > 2 * widths[1]


def test_rows_without_weight_are_no_part_of_a_resample() -> None:
    """With 5 weights of 1,200 above 0, one resample of rows in 150 would have no weight at all."""
    y, models = _models(1200)
    weight = np.zeros(1200)
    weight[:60:12] = 1.0
    two = {"good": models["good"], "bold": models["bold"]}
    (pair,) = compare(y, two, sample_weight=weight).differences
    kept = weight > 0
    (alone,) = compare(y[kept], {name: p[kept] for name, p in two.items()}).differences
    assert (pair.first, pair.low) == (alone.first, alone.low)
    assert pair.p_value == pytest.approx(alone.p_value, rel=0.05)
    with pytest.raises(TooFewRows):
        compare(y, two, sample_weight=np.arange(1200) == 7)
    with pytest.raises(TooFewRows):
        compare(y, two, cluster=np.arange(1200) // 60, sample_weight=weight)


def test_it_travels() -> None:
    y, models = _models(300)
    found = compare(y, models, confidence=np.float32(0.9))
    for other in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert other == found
        assert list(other.assessments) == list(found.assessments)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["confidence"] == np.float32(0.9)


def test_dependence_is_pointed_out() -> None:
    y, models = _models(300)
    repeated = {name: np.repeat(p, 5) for name, p in models.items()}
    with pytest.warns(DependenceWarning) as caught:
        compare(np.repeat(y, 5), repeated)
    assert [warning.filename for warning in caught] == [__file__]
    assert "5.0 times" in str(caught[0].message)


def test_a_row_is_dropped_for_all_models() -> None:
    y, models = _models(500)
    a, b = models["good"].copy(), models["bold"].copy()
    a[3], b[7] = np.nan, 2.0
    found = compare(y, {"a": a, "b": b}, on_invalid="drop")
    assert {one.n for one in found.assessments.values()} == {498}
    assert dict(found.assessments["a"].dropped) == {"invalid for one of the models": 2}
    kept = np.delete(np.arange(500), [3, 7])
    cluster = np.arange(500) // 4
    texts = {"a": ["unsure" if v != v else v for v in a], "b": b, "c": models["timid"]}
    found = compare(y, texts, cluster=cluster, on_invalid="drop")
    whole = {"a": a[kept], "b": b[kept], "c": models["timid"][kept]}
    assert found.differences == compare(y[kept], whole, cluster=cluster[kept]).differences


@pytest.mark.parametrize("on_invalid", ["raise", "drop"])
def test_dropping_rows_hides_no_mistake_in_the_call(on_invalid: str) -> None:
    y, models = _models(60)
    options = {"on_invalid": on_invalid}
    with refused(holds="'good'"):
        compare(np.arange(60) % 3, models, pos_label=1, **options)
    with pytest.raises(InputError):
        compare(models["good"], {"a": y, "b": 1 - y}, **options)
    with refused(holds="'b'", kind=TooFewRows):
        compare(y, {"a": models["good"], "b": np.full(60, np.nan)}, on_invalid="drop")


TWO = ([0, 1], {"a": [0.1, 0.2], "b": [0.1, 0.9]})
SCALES = {s: Sketch.from_arrays([0, 1], [0.2, 0.7], scale=s) for s in ("probability", "logit")}


@pytest.mark.parametrize(
    ("arguments", "options", "field", "value"),
    [
        (([0, 1], {"a": [0.1, 0.2]}), {}, "seen", "there is 1"),
        (([0, 1], [0.1, 0.2]), {}, "argument", "y_prob"),
        (([0, 1], {"a": [0.1, 0.2], "b": [0.1]}), {}, "group", "'b'"),
        (TWO, {"correction": "x"}, "seen", "x"),
        (({"a": [0.1], "b": [0.2]},), {}, "seen", "list"),
        (([0, 1], {1: [0.1, 0.2], "1": [0.1, 0.9]}), {}, "seen", "1"),
        (([0, 1], {"a": [0.1, 0.2], "b": [0.1, 1.9]}), {}, "group", "'b'"),
        ((SCALES,), {}, "seen", "logit"),
    ],
)
def test_bad_input(arguments: tuple, options: dict, field: str, value: object) -> None:
    with pytest.raises(InputError) as error:
        compare(*arguments, **options)
    if field == "argument":
        assert error.value.argument == value
    else:
        assert str(value) in str(error.value)


def test_corrections() -> None:
    assert adjusted_p_values([0.01, 0.04, 0.03], "holm") == pytest.approx([0.03, 0.06, 0.06])
    assert adjusted_p_values([0.01, 0.5], "bonferroni") == pytest.approx([0.02, 1.0])
    assert adjusted_p_values([0.01, 0.5], "none") == [0.01, 0.5]
    assert adjusted_p_values([0.03, 0.01, 0.02, 0.5], "bh") == pytest.approx(
        [0.04, 0.04, 0.04, 0.5]
    )


def test_few_rows_are_inconclusive_and_many_are_not() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 20_000)
    y = rng.random(p.size) < p
    for rows, said in ((60, "inconclusive: too few rows to tell"), (10_000, "no difference in")):
        parts = {
            name: Sketch.from_arrays(y[k::2][:rows], p[k::2][:rows]) for k, name in enumerate("ab")
        }
        assert compare(parts).verdict.startswith(said)


def test_no_p_value_underflows_to_zero() -> None:
    """What is possible under the hypothesis has a chance above 0, however far out it is."""
    off, well = (cal.Sketch.from_counts([0.5], [10**8], [k * 10**7]) for k in (9, 5))
    assert compare({"off": off, "well": well}).differences[0].p_value > 0.0
    found = cumulative_differences(off)
    assert min(found.mad_p_value, found.range_p_value) > 0.0


def test_models_that_predict_the_same_do_not_differ() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(600)
    y = rng.random(600) < p
    found = compare(y, {"a": p, "b": p.copy(), "c": p**3})
    twins = next(pair for pair in found.differences if {pair.first, pair.second} == {"a", "b"})
    assert (twins.value, twins.low, twins.high, twins.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert (
        "no difference in calibration detected between a and b (could be up to 0)" in found.verdict
    )


def test_a_comparison_does_not_depend_on_the_order_of_rows_and_models() -> None:
    rng = np.random.default_rng(3)
    p = rng.beta(2, 5, 400)
    y = rng.random(400) < p**1.25
    order = rng.permutation(400)
    first = compare(y, {"a": p, "b": p**1.2}).differences[0]
    for other in (
        compare(y[order], {"a": p[order], "b": p[order] ** 1.2}),
        compare(y, {"b": p**1.2, "a": p}),
    ):
        found = other.differences[0]
        assert (found.low, found.high) == pytest.approx((first.low, first.high), rel=1e-9)
        assert found.p_value == pytest.approx(first.p_value, rel=1e-6)


@pytest.mark.parametrize("clusters", [2, 3, 4, 6])
def test_few_clusters_that_agree_by_chance_tell_no_models_apart(clusters: int) -> None:
    rng, rejected = np.random.default_rng(0), 0
    cluster = np.repeat(np.arange(clusters), 20)
    for _ in range(60):
        y = (rng.random(clusters) < 0.5).astype(int)[cluster]
        models = {"low": np.full(y.size, 0.4), "high": np.full(y.size, 0.6)}
        rejected += cal.compare(y, models, cluster=cluster).differences[0].p_value <= 0.05
    assert rejected <= 9  # of two clusters, half
