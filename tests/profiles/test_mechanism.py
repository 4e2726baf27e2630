"""A profile computes what it lists, from rows or a sketch, and is shown wherever the assessment is."""

import json
import pickle

import numpy as np
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant.profiles import (
    PROFILES,
    Profile,
    Quantity,
    Table,
    Unavailable,
    clinical,
    credit,
    weather,
)
from calibrant.profiles import profile as register

RNG = np.random.default_rng(0)
P = RNG.random(200)
Y = (RNG.random(200) < P).astype(int)


def moon(sample):
    raise Unavailable("a thing needs the moon")


def mean_prediction(sample):
    return sample.mean("mean prediction", sample.p, source="a paper")


MINE = Profile(
    "mine",
    {
        "mean prediction": mean_prediction,
        "endless": lambda sample: Quantity("endless", float("inf"), 1.0, float("inf")),
        "moon": moon,
        "grades": lambda sample: Table("grades", {"grade": ["a", "b"], "n": [1, 2000]}, note="few"),
    },
)


def test_quantities_are_shown_as_text_html_and_json():
    found = cal.assess(Y, P, profile=MINE)
    table = found.profile
    assert list(table) == ["mean prediction", "endless", "moon", "grades"]
    assert table["mean prediction"].value == pytest.approx(P.mean())
    for text in (str(found), found._repr_html_()):
        assert "mean prediction" in text
        assert "∞" in text
        assert "moon" in text
        assert "2,000" in text
    told = json.loads(json.dumps(found.to_dict()))["profile"]
    assert told["quantities"][1]["high"] == "inf"
    assert told["quantities"][2]["value"] is None
    assert "moon" in told["quantities"][2]["note"]
    assert told["tables"][0]["rows"][1] == {"grade": "b", "n": 2000}
    assert pickle.loads(pickle.dumps(found)).profile.to_dict() == table.to_dict()


def test_only_what_is_asked_for_is_computed():
    def fails(sample):
        raise AssertionError("nobody asked")

    profile = Profile("mine", {"mean prediction": mean_prediction, "other": fails})
    assert list(cal.assess(Y, P, profile=profile.only("mean prediction")).profile) == [
        "mean prediction"
    ]
    with refused("names", "slopes"):
        profile.only("slopes")


def test_a_sketch_gives_means_and_names_what_it_cannot_give():
    def rows_alone(sample):
        return Quantity("rows", sample.require_rows("the number of rows").n)

    sketch = cal.Sketch.from_arrays(Y, P, sample_weight=1.0 + P)
    profile = Profile("mine", {**MINE.measures, "rows": rows_alone})
    table = cal.assess(sketch, profile=profile).profile
    assert table["mean prediction"].value == pytest.approx(np.average(P, weights=1.0 + P), abs=1e-9)
    assert np.isnan(table["rows"].value)
    assert "needs rows" in table["rows"].note


def test_the_mean_has_students_interval_and_clusters_widen_it():
    quantity = cal.assess(np.r_[Y, Y], np.r_[P, 1 - P], profile=MINE).profile["mean prediction"]
    error = np.r_[P, 1 - P].std(ddof=1) / np.sqrt(400)  # no skewness: Student's own
    assert quantity.high - quantity.value == pytest.approx(1.965927 * error, rel=1e-6)
    quantity = cal.assess(Y, P, profile=MINE).profile["mean prediction"]
    error = P.std(ddof=1) / np.sqrt(200)
    assert quantity.standard_error == pytest.approx(error)
    order = np.argsort(P)
    twice = cal.assess(Y[order], P[order], cluster=np.arange(200) // 4, profile=MINE).profile
    assert twice["mean prediction"].standard_error > 1.9 * error


def test_every_group_has_the_profile_of_its_rows():
    group = np.where(np.arange(200) % 3 == 0, "a", "b")
    cluster = np.arange(200) // 2
    found = cal.assess_by(Y, P, by=group, profile="clinical")
    alone = cal.assess(Y[group == "a"], P[group == "a"], profile="clinical").profile
    assert found["a"].profile["calibration slope"] == alone["calibration slope"]
    clustered = cal.assess_by(Y, P, by={"g": group}, cluster=cluster, profile="clinical")
    own = group == "b"
    same = cal.assess(Y[own], P[own], cluster=cluster[own], profile="clinical").profile
    assert clustered["b"].profile["AUC"].to_dict() == same["AUC"].to_dict()  # NaN is None here
    sketches = cal.scan({"y": Y, "p": P, "g": group}, y_true="y", y_prob="p", by="g", scale="logit")
    sketched = cal.assess_by(sketches, profile="clinical")["a"].profile["calibration slope"]
    assert sketched.value == pytest.approx(alone["calibration slope"].value, abs=1e-5)


@pytest.mark.parametrize("result", [0.5, None, [0.5]])
def test_a_measure_that_gives_no_quantity_is_refused(result):
    with refused("profile", holds="'half'"):
        cal.assess(Y, P, profile=Profile("mine", {"half": lambda sample: result}))


def test_every_name_that_a_profile_lists_can_be_asked_for():
    for name in clinical().measures:
        assert list(clinical().only(name).measures) == [name]
    assert list(cal.assess(Y, P, profile=clinical().only("E50")).profile) == ["E50"]


def test_columns_of_a_profile_are_split_by_group():
    group, grades = np.where(np.arange(200) % 3, "a", "b"), np.where(P < 0.4, "A", "B")
    climate = np.linspace(0.2, 0.6, 200)
    p = P.copy()
    p[5] = np.nan  # a row that is dropped must not shift the others
    own = group == "a"
    for whole, part in (
        (credit(grades=grades), credit(grades=grades[own])),
        (weather(climatology=climate), weather(climatology=climate[own])),
    ):
        split = cal.assess_by(Y, p, by=group, profile=whole, on_invalid="drop")["a"]
        alone = cal.assess(Y[own], p[own], profile=part, on_invalid="drop")
        assert split.profile.to_dict() == alone.profile.to_dict()


def test_a_column_of_the_wrong_length_says_how_long_it_should_be():
    with refused("grades", holds=("100", "200")):
        cal.assess_by(Y, P, by=np.arange(200) % 2, profile=credit(grades=["A"] * 100))


def test_a_registered_profile_is_known_by_name():
    built_in = set(PROFILES)

    @register
    def halves():
        return Profile("halves", {"above": lambda sample: sample.mean("above", sample.p > 0.5)})

    try:
        assert cal.assess(Y, P, profile="halves").profile["above"].value == np.mean(P > 0.5)
    finally:
        del PROFILES["halves"]
    assert set(PROFILES) == built_in
