"""Groups: the worst one, what could have been seen in each, and how two differ."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.assess import assess
from calibrant.inference.assess_by import assess_by
from calibrant.inference.assessment import TOO_FEW
from calibrant.inference.calibration_test import CalibrationTest
from calibrant.inference.correction import adjusted_p_values
from calibrant.inference.group_difference import group_difference
from calibrant.inference.groups import Others
from calibrant.inference.planning import detectable_error, required_n

COLUMNS = {"y_true": "y", "y_prob": "p"}


def _frame(n: int = 2000, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    sex, race = rng.choice(["f", "m"], n), rng.choice(["a", "b", "c"], n)
    truth = np.where((sex == "m") & (race == "b"), p**2, p)
    y = (rng.random(n) < truth).astype(int)
    return pl.DataFrame({"y": y, "p": p, "sex": sex, "race": race, "match": np.arange(n) // 4})


def test_groups_read_what_assess_reads() -> None:
    frame = _frame(400)
    p, y, sex = (frame[name].to_numpy() for name in ("p", "y", "sex"))
    plainly = assess_by(y, p, by=sex)
    assert assess_by(y, 100 * p, by=sex, percent=True)["f"].smooth_ece == pytest.approx(
        plainly["f"].smooth_ece, rel=1e-9
    )
    logits = np.log(p) - np.log1p(-p)
    assert assess_by(y, logits, by=sex, from_logits=True)["m"].smooth_ece == pytest.approx(
        plainly["m"].smooth_ece, rel=1e-9
    )
    logits[3] = np.nan
    dropped = assess_by(y, logits, by=sex, from_logits=True, on_invalid="drop")
    assert sum(one.n for one in dropped.values()) == 399
    shares = 0.25 + 0.5 * y
    soft = assess_by(shares, p, by=sex, labels="soft")
    assert (
        soft["m"].smooth_ece == assess(shares[sex == "m"], p[sex == "m"], labels="soft").smooth_ece
    )
    sketches = cal.scan(frame, **COLUMNS, by="sex")
    with refused(holds="labels"):
        assess_by(sketches, labels="soft")
    for columns in ({"y_true": "y", "by": "sex"}, {"y_prob": "p", "by": "sex"}, COLUMNS):
        with pytest.raises(InputError) as error:
            assess_by(data=frame, **columns)
        assert error.value.argument not in columns


def test_crossed_groups_are_corrected_and_the_worst_comes_first() -> None:
    groups = assess_by(data=_frame(), **COLUMNS, by=["race", "sex"])
    assert len(groups) == 6
    assert next(iter(groups)) == groups.worst == ("b", "m")
    expected = adjusted_p_values([one.p_value for one in groups.values()], "holm")
    assert [one.p_value_adjusted for one in groups.values()] == expected
    assert groups.miscalibrated == (("b", "m"),)
    assert 0.02 < groups.groups[0].detectable < 0.15
    document = json.loads(json.dumps(groups.to_dict(), allow_nan=False))
    assert document["worst"] == document["groups"][0]["group"] == "b, m"
    assert [one["finding"] for one in document["groups"]] == [one.finding for one in groups.groups]
    again = pickle.loads(pickle.dumps(groups))
    assert again.to_dict() == groups.to_dict()
    assert again.by == ("race", "sex")


def test_the_worst_group_has_the_largest_error_for_certain() -> None:
    rows = np.full(3, 4000)
    small, large = (
        Sketch.from_counts([0.2, 0.5, 0.8], rows, events)
        for events in ([1000, 2200, 3000], [2000, 2000, 2000])
    )
    few = Sketch.from_counts([0.5], [3], [3])
    groups = assess_by(cal.Sketches({"small": small, "large": large, "few": few}, by="class"))
    assert 0.0 < groups["large"].p_value < groups["small"].p_value < 1e-15
    assert list(groups) == ["large", "small", "few"]
    assert groups.worst == "large"


@pytest.mark.parametrize("correction", ["holm", "bh", "bonferroni", "none"])
def test_every_finding_is_that_of_the_p_value_adjusted(correction: str) -> None:
    frame = _frame(1500, seed=3)
    p = frame["p"].to_numpy()
    y = (np.random.default_rng(0).random(p.size) < 0.5 + 0.8 * (p - 0.5)).astype(int)
    by = np.arange(p.size) % 5
    groups = assess_by(y, p, by=by, correction=correction)
    expected = adjusted_p_values([one.p_value for one in groups.values()], correction)
    for one, corrected in zip(groups.values(), expected, strict=True):
        assert one.p_value_judged == pytest.approx(corrected)
        assert one.miscalibrated == (corrected <= 0.05)
        assert (one.finding in ("miscalibrated", "slightly off")) == one.miscalibrated
    assert (correction == "none") == all(one.p_value_adjusted is None for one in groups.values())
    assert assess_by(y, p, by=np.zeros(p.size), correction=correction)[0].p_value_adjusted is None


@pytest.mark.parametrize("cluster", [None, "match"])
def test_a_limit_sums_up_the_smaller_groups(cluster: str | None) -> None:
    frame = pl.concat(
        [_frame(90 + 30 * k, seed=k).with_columns(site=pl.lit(f"s{k}")) for k in range(6)]
    )
    groups = assess_by(data=frame, **COLUMNS, by="site", cluster=cluster, limit=3)
    assert {one.key for one in groups.groups} == {"s5", "s4", "s3", Others(3)}
    rest = frame.filter(pl.col("site").is_in(["s0", "s1", "s2"]))
    units = None if cluster is None else rest[cluster].to_numpy()
    alone = assess(rest["y"].to_numpy(), rest["p"].to_numpy(), cluster=units)
    assert groups[Others(3)].smooth_ece == pytest.approx(alone.smooth_ece)
    assert groups[Others(3)].clusters == alone.clusters
    assert [one.stands_for for one in groups.sorted("given")] == [1, 1, 1, 3]
    assert [one.name for one in groups.sorted("rows")] == ["s5", "s4", "s3", "(3 others)"]
    everything = assess_by(data=frame, **COLUMNS, by="site", limit=5)
    assert len(everything) == 6  # one group is not summed up
    with refused("limit"):
        assess_by(data=frame, **COLUMNS, by="site", limit=0)


def test_each_group_equals_its_own_assessment() -> None:
    frame = _frame()
    found = assess_by(data=frame, **COLUMNS, by="sex")
    men = frame.filter(pl.col("sex") == "m")
    alone = assess(men["y"].to_numpy(), men["p"].to_numpy())
    # Groups are read into sketches, which know the log loss to their bounds only.
    assert found["m"] == replace(alone, p_value_adjusted=found["m"].p_value_adjusted)
    assert found["m"].brier == alone.brier
    assert found["m"].log_loss.value == pytest.approx(alone.log_loss.value, rel=1e-6)
    for again in (
        assess_by(cal.scan(frame, **COLUMNS, by="sex")),
        assess_by(data=cal.scan(frame, **COLUMNS, by="sex")),
    ):
        assert again["m"] == found["m"]


@pytest.mark.parametrize("cluster", [None, "match"])
def test_arrays_give_what_the_frame_gives(cluster: str | None) -> None:
    frame = _frame()
    by_name = assess_by(data=frame, **COLUMNS, by=["race", "sex"], cluster=cluster)
    crossed = frame.select("race", "sex")
    for by in (crossed, crossed.to_dict(as_series=False)):
        found = assess_by(
            frame["y"], frame["p"], by=by, cluster=None if cluster is None else frame[cluster]
        )
        if cluster is None:
            assert found.to_dict() == by_name.to_dict()
            continue
        # Rows of arrays keep their places, of which sketches of clusters keep the sums in cells.
        for key, one in by_name.items():
            own = found[key]
            assert (own.n, own.clusters, own.smooth_ece) == (one.n, one.clusters, one.smooth_ece)
            ends = [[x.interval.low, x.interval.high] for x in (own, one)]
            np.testing.assert_allclose(*ends, atol=0.002)
            assert own.p_value == pytest.approx(one.p_value, abs=0.05)  # draws of other places
            again = assess(*(frame.filter(race=key[0], sex=key[1])[c] for c in "yp"),
                           cluster=frame.filter(race=key[0], sex=key[1])[cluster])  # fmt: skip
            assert (own.interval.high, own.p_value) == (again.interval.high, again.p_value)
    alone = assess_by(frame["y"], frame["p"], by=frame["sex"].to_numpy())
    assert dict(alone) == dict(assess_by(data=frame, **COLUMNS, by="sex"))


def test_clusters_by_sketch_equal_clusters_by_row() -> None:
    frame = _frame(400)
    rows = assess(frame["y"].to_numpy(), frame["p"].to_numpy(), cluster=frame["match"].to_numpy())
    sketched = assess(cal.scan(frame, **COLUMNS, cluster="match"), cluster="match")
    assert sketched.clusters == rows.clusters == 100
    assert sketched.interval.low == pytest.approx(rows.interval.low, abs=1e-3)
    assert sketched.interval.high == pytest.approx(rows.interval.high, abs=2e-3)
    found = assess_by(data=frame, **COLUMNS, by="sex", cluster="match")
    assert found["m"].clusters is not None
    with refused("cluster", holds="match"):
        assess(cal.scan(frame, **COLUMNS, cluster="match"))


@pytest.mark.parametrize("cluster", [None, "match"])
@pytest.mark.parametrize("by", ["sex", ["race"], ("race", "sex")])
def test_sketches_are_grouped_by_what_is_asked_for(by: object, cluster: str | None) -> None:
    frame = _frame(600)
    sketches = cal.scan(frame, **COLUMNS, by=["sex", "race"], cluster="match")
    found = assess_by(sketches, by=by, cluster=cluster)
    names = [by] if isinstance(by, str) else list(by)
    expected = assess_by(cal.scan(frame, **COLUMNS, by=names, cluster=cluster), cluster=cluster)
    assert found.by == expected.by == tuple(names)
    assert {key: (one.n, one.smooth_ece, one.clusters) for key, one in found.items()} == {
        key: (one.n, one.smooth_ece, one.clusters) for key, one in expected.items()
    }


@pytest.mark.parametrize(
    ("settled", "name"),
    [
        ({"y_prob": "p"}, "y_prob"),
        ({"sample_weight": "w"}, "sample_weight"),
        ({"on_invalid": "drop"}, "on_invalid"),
        ({"data": []}, "data"),
    ],
)
def test_what_sketches_have_settled_is_refused(settled: dict, name: str) -> None:
    sketches = cal.scan(_frame(100), **COLUMNS, by="sex")
    with refused(name):
        assess_by(sketches, **settled)
    for by in ("race", []):
        with refused("by"):
            assess_by(sketches, by=by)
    with pytest.raises(InputError):
        assess_by(sketches, scale="logit")


def test_tiny_groups_are_skipped_and_named() -> None:
    frame = pl.concat([_frame(300), _frame(1).with_columns(sex=pl.lit("<x>"))])
    found = assess_by(data=frame, **COLUMNS, by="sex", margin=np.float32(0.1))
    (few,) = found.too_few
    assert few is found.groups[-1]
    assert (few.name, few.n, few.assessment, few.finding) == ("<x>", 1, None, TOO_FEW)
    assert "<x>" not in found
    assert "<x>" in str(found)
    assert "&lt;x&gt;" in found._repr_html_()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["groups"][-1]["n"] == 1
    with pytest.raises(TooFewRows):
        assess_by([1, 0], [0.5, 0.5], by=["a", "b"])


@pytest.mark.parametrize("p", [0.01, 0.05, 0.95])
def test_groups_whose_outcomes_are_all_alike_are_not_apart(p: float) -> None:
    band = group_difference(*(Sketch.from_counts([p], [n], [n * round(p)]) for n in (30, 60)))
    assert band.p_value > 0.05
    assert np.all((band.low < 0) & (band.high > 0))
    low, high = (Sketch.from_counts([q], [50], [0]) for q in (0.1, 0.9))
    with pytest.raises(TooFewRows):
        group_difference(low, high)


def test_equal_outcomes_at_equal_predictions_are_no_difference() -> None:
    """Both groups err alike, and their predictions lie elsewhere: blur must not tell them apart."""
    rejected = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        sketches = []
        for p in (rng.beta(2, 5, 800), rng.beta(5, 2, 800)):
            chance = np.clip(p + 0.2 * np.sin(2 * np.pi * p), 0.0, 1.0)
            sketches.append(Sketch.from_arrays(rng.random(800) < chance, p))
        rejected += group_difference(*sketches).p_value <= 0.05
    assert rejected <= 4  # of 20 at .05: more have probability .003


def test_errors_and_shares_that_oscillate_together_are_no_difference() -> None:
    """Ten times along the predictions: a smoother that blurs either sees a difference in most samples."""
    rejected = 0
    for seed in range(20):
        rng = np.random.default_rng([seed, 3])
        p = rng.random(1600)
        wave = np.sin(20 * np.pi * p)
        first, y = rng.random(1600) < 0.5 + 0.4 * wave, rng.random(1600) < p + 0.25 * wave
        a, b = (Sketch.from_arrays(y[side], p[side]) for side in (first, ~first))
        rejected += group_difference(a, b).p_value <= 0.05
    assert rejected <= 4  # of 20 at .05: more have probability .003


@pytest.mark.parametrize("seed", range(6))
def test_the_band_leaves_zero_exactly_where_the_p_value_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.random(600), rng.beta(2, 2, 600)
    a = Sketch.from_arrays(rng.random(600) < p, p)
    b = Sketch.from_arrays(rng.random(600) < np.clip(q - 0.03 * seed, 0, 1), q)
    for confidence in (0.5, 0.95, 0.999):
        band = group_difference(a, b, confidence=confidence)
        leaves = bool(np.any((band.low > 0) | (band.high < 0)))
        assert leaves == (band.p_value <= 1 - confidence)
    mirrored = group_difference(b, a)
    assert mirrored.difference == pytest.approx(-group_difference(a, b).difference, abs=1e-9)


def test_difference_band_sees_the_difference_and_only_that() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.random(2000), rng.random(2000)
    a = Sketch.from_arrays(rng.random(2000) < p, p)
    b = Sketch.from_arrays(rng.random(2000) < q**1.7, q)
    apart = group_difference(a, b)
    assert apart.p_value < 0.01
    middle = np.searchsorted(apart.prediction, 0.5)
    assert apart.low[middle] > 0
    same = [
        group_difference(
            Sketch.from_arrays(rng.random(500) < (u := rng.random(500)), u),
            Sketch.from_arrays(rng.random(500) < (v := rng.random(500)), v),
        ).p_value
        for _ in range(10)
    ]
    assert np.mean(np.array(same) <= 0.05) <= 0.3
    found = assess_by(data=_frame(), **COLUMNS, by="sex").difference("f", "m")
    assert found.prediction.size == found.low.size
    assert repr(found).startswith("GroupDifference(")


@pytest.mark.parametrize(
    ("a", "b", "n", "sign"), [(1, 1, 300, 1), (2, 5, 300, -1), (1, 49, 1000, 1)]
)
def test_detectable_error_is_detected_with_the_power_it_says(
    a: int, b: int, n: int, sign: int
) -> None:
    rng = np.random.default_rng(0)

    def tested(error: float) -> CalibrationTest:
        p = rng.beta(a, b, n)
        sketch = Sketch.from_arrays(rng.random(n) < p + sign * error, p, nodes=1 << 12)
        return CalibrationTest.of(sketch)

    size = detectable_error(tested(0.0))
    assert size is not None
    # an error of one sign has the SmoothECE of its mean
    outcomes = np.clip((p := rng.beta(a, b, 10_000)) + sign * 1.1 * size, 0, 1)
    error = 1.1 * size * size / abs(np.mean(outcomes - p))
    found = sum(tested(error).p_value <= 0.05 for _ in range(60))
    assert 44 <= found < 60  # .8 of 60 is 48


def test_what_no_rows_could_show_is_not_detectable() -> None:
    y, p = np.tile([0, 1], 20), np.tile([0.4, 0.6], 20)
    by, cluster = np.repeat([0, 1], 20), np.arange(40) // 10
    groups = assess_by(y, p, by=by, cluster=cluster)
    assert [one.detectable for one in groups.groups] == [None, None]  # of two clusters each


def test_certain_predictions_are_refuted_by_one_failure() -> None:
    sketch = Sketch.from_arrays(np.ones(100, int), np.ones(100))
    size = detectable_error(CalibrationTest.of(sketch))
    assert size == pytest.approx(1 - 0.2 ** (1 / 100))


def test_what_is_detectable_accounts_for_all_groups() -> None:
    rng = np.random.default_rng(1)
    p, by = rng.random(2000), np.arange(2000) % 20
    y = rng.random(2000) < p
    alone, together = (
        assess_by(y, p, by=by, correction=correction).groups for correction in ("none", "holm")
    )
    of_alone = {one.key: one.detectable for one in alone}
    assert all(one.detectable > 1.1 * of_alone[one.key] for one in together)


def test_required_n() -> None:
    wide, narrow = required_n(0.1), required_n(0.05)
    assert 100 < wide.simulated < narrow.simulated < narrow.theorem
    assert 4 < narrow.simulated / wide.simulated < 16  # n goes like 1 / margin³
    rare = required_n(0.05, np.random.default_rng(0).beta(0.5, 20, 500))
    assert rare.simulated < narrow.simulated
    assert int(wide) == wide.to_dict()["simulated"]
    rng = np.random.default_rng(1)
    p = rng.random(narrow.simulated)
    assert assess(rng.random(p.size) < p, p, margin=0.05).interval.high < 0.07


@pytest.mark.parametrize("margin", [0.33, 0.5, 0.6, 0.9])
def test_required_n_of_a_wide_margin(margin: float) -> None:
    """Few rows, where the middle of two numbers of rows may be one of them."""
    assert 2 <= required_n(margin).simulated < 50


def test_required_n_by_the_theorem_shows_what_it_says() -> None:
    """With so many rows, a calibrated sample's bound is within the margin as often as `power` says."""
    found = required_n(0.3, power=np.float32(0.8), confidence=np.float32(0.9))
    n, within = found.theorem, 0
    kernel = 1 + 2 * np.exp(-((np.arange(1, 30) * np.pi * 0.3) ** 2)).sum()
    reach = (np.sqrt(kernel) + np.sqrt(2 * np.log(10))) / np.sqrt(n)
    for seed in range(20):
        p = np.random.default_rng(seed).random(n)
        y = np.random.default_rng(seed + 100).random(n) < p
        within += cal.smooth_ece(y, p, bandwidth=0.3) + reach <= 0.3
    assert within >= 16
    assert found.theorem < required_n(0.3, power=0.95, confidence=0.9).theorem
    assert json.loads(json.dumps(found.to_dict()))["power"] == pytest.approx(0.8)


def test_bad_input() -> None:
    frame = _frame(100)
    groups = assess_by(data=frame, **COLUMNS, by="sex")
    for argument, wrong in (
        ("first", lambda: groups.difference("x", "m")),
        ("cluster", lambda: assess_by(cal.scan(frame, **COLUMNS, by="sex"), cluster="match")),
        ("order", lambda: groups.sorted("name")),
    ):
        with refused(argument):
            wrong()
    with refused("y_prob"):
        required_n(0.1, 0.5)


def test_no_number_of_rare_events_reads_as_zero() -> None:
    rows = [10_000_000, 10_000_000]
    off, less = (cal.Sketch.from_counts([1e-5, 4e-5], rows, k) for k in ([400, 1900], [130, 520]))
    diagrams = [
        cal.plotting.binned_diagram(off),
        cal.reliability_diagram(off),
        cal.plotting.isotonic_diagram(off, resamples=10),
        cal.plotting.cumulative_diagram(off),
    ]
    texts = [
        *(text for one in (off, less) for text in (str(cal.assess(one)), repr(cal.assess(one)))),
        str(cal.assess_by(cal.Sketches({"off": off, "less": less}, by="model"))),
        str(cal.compare({"off": off, "less": less})),
        *(text for diagram in diagrams for text in (diagram.label, repr(diagram))),
    ]
    for text in texts:
        assert not re.search(r"(?<![\d.])-?0\.0+(?!\d)", text), text


@pytest.mark.parametrize("kind", ["a default", "hundredths"])
def test_groups_do_not_differ_for_a_prediction_that_many_rows_share(kind: str) -> None:
    """Outcomes depend on the prediction alone; how often each prediction is made depends on the group."""

    def sample(rng: np.random.Generator, share: float) -> Sketch:
        if kind == "a default":
            p = np.where(rng.random(2000) < share, 0.5, rng.beta(2, 2, 2000))
            return Sketch.from_arrays(rng.random(2000) < np.where(p == 0.5, 0.8, p), p)
        k = 2 * rng.integers(5, 45, 2000) + (rng.random(2000) < share)
        return Sketch.from_arrays(
            rng.random(2000) < k / 100 + np.where(k % 2, 0.08, -0.08), k / 100
        )

    rejected = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        rejected += group_difference(sample(rng, 0.8), sample(rng, 0.1)).p_value <= 0.05
    assert rejected <= 4


def test_groups_whose_outcomes_were_sampled_apart_are_not_apart() -> None:
    """One group is whole; of the other, one in twenty rows without the event was kept, with weight 20."""
    rng = np.random.default_rng(6)
    told = 0
    for _ in range(30):
        groups = []
        for rate in (1.0, 0.05):
            p = rng.beta(2, 2, 3000)
            y = rng.random(3000) < p
            kept = y | (rng.random(3000) < rate)
            weight = np.where(y[kept], 1.0, 1.0 / rate)
            groups.append(Sketch.from_arrays(y[kept], p[kept], sample_weight=weight, nodes=1 << 12))
        told += group_difference(*groups).p_value <= 0.05
    assert told <= 5  # of 30; about 6 where the share of a group depends on the outcomes that came


@pytest.mark.parametrize("tiny", [0.0])
def test_groups_without_weight_are_named_and_none_with_any_is_refused(tiny: float) -> None:
    p, group = np.linspace(0.1, 0.9, 90), np.arange(90) % 3
    y = (np.arange(90) * 0.618 % 1 < p).astype(int)
    found = assess_by(y, p, by=group, sample_weight=np.where(group == 0, tiny, 1.0))
    assert sorted(found) == [1, 2]
    assert [one.why for one in found.groups if one.key == 0] == ["no row has weight"]
    assert found.random_effects is not None
    assert set(found.random_effects.groups) == {1, 2}
    with refused("sample_weight"):
        assess_by(y, p, by=group, sample_weight=np.full(90, tiny))
