"""Saving and loading: plain JSON, versioned, with clear refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.refusals import refused

from calibrant import CalibrantError, InputError
from calibrant._files import dump_versioned
from calibrant.data.scales import Scale
from calibrant.recalibration import (
    CrossVennAbersRecalibrator,
    PriorShift,
    VennAbersRecalibrator,
)
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.isotonic import IsotonicRecalibrator
from calibrant.recalibration.learned_map import load_recalibrator
from calibrant.recalibration.parametric import (
    BetaRecalibrator,
    OffsetRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)
from calibrant.recalibration.randomized import RandomizedRecalibrator
from calibrant.recalibration.smooth import SmoothRecalibrator
from calibrant.recalibration.spline import SplineRecalibrator

RNG = np.random.default_rng(0)
P = RNG.random(400)
Y = (RNG.random(400) < P**2).astype(int)
ALL = [
    AdaptiveRecalibrator(),
    AdaptiveRecalibrator(monotone=False),
    VennAbersRecalibrator(),
    SplineRecalibrator(),
    CrossVennAbersRecalibrator(cv=3),
    SmoothRecalibrator(),
    SmoothRecalibrator(monotone=True, scale="logit/4"),
    SmoothRecalibrator(scale="relative"),
    RandomizedRecalibrator(random_state=7),
    PlattRecalibrator(),
    TemperatureRecalibrator(),
    BetaRecalibrator(),
    OffsetRecalibrator(),
    PriorShift(to_rate=0.1),
    IsotonicRecalibrator(),
]


@pytest.mark.parametrize("recalibrator", ALL, ids=lambda r: r.kind)
def test_a_saved_map_is_the_same_map(recalibrator, tmp_path):
    recalibrator.fit(P, Y)
    recalibrator.save(tmp_path / "map.json")
    again = load_recalibrator(tmp_path / "map.json")
    assert type(again) is type(recalibrator)
    assert np.array_equal(again.transform(P), recalibrator.transform(P))
    assert again.get_params(deep=False) == recalibrator.get_params(deep=False)


@pytest.mark.parametrize("recalibrator", ALL, ids=lambda r: r.kind)
@pytest.mark.parametrize("weight", [None, 1.0 + np.arange(400) % 3])
def test_fit_transform_is_fit_and_then_transform(recalibrator, weight):
    at_once = recalibrator.fit_transform(P, Y, weight)
    again = type(recalibrator)(**recalibrator.get_params(deep=False)).fit(P, Y, weight)
    assert np.array_equal(at_once, again.transform(P))
    assert not np.array_equal(at_once, P)


@pytest.mark.parametrize("recalibrator", ALL, ids=lambda r: r.kind)
@pytest.mark.parametrize("given", [0.3, [], None, [[0.1, 0.9]], [[0.1, 0.2, 0.7]], [1.5], ["a"]])
def test_predictions_that_cannot_be_mapped_are_blamed_by_their_name(recalibrator, given):
    recalibrator.fit(P, Y)
    with refused("y_prob"):
        recalibrator.transform(given)
    if recalibrator.kind == "offset":
        with refused("y_prob"):
            OffsetRecalibrator(target_mean=0.2).fit(given)


@pytest.mark.parametrize("recalibrator", ALL, ids=lambda r: r.kind)
def test_before_fit_there_is_nothing_to_transform_or_save(recalibrator, tmp_path):
    fresh = type(recalibrator)()
    for call in (lambda: fresh.transform(P), lambda: fresh.save(tmp_path / "map.json")):
        with pytest.raises(NotFittedError, match=type(recalibrator).__name__):
            call()


def test_refuses_files_of_another_version_kind_or_origin(tmp_path):
    path = tmp_path / "map.json"
    PlattRecalibrator().fit(P, Y).save(path)
    document = json.loads(path.read_text())
    for change in [
        {"version": 1},
        {"version": 4},
        {"version": True},
        {"format": "other"},
        {"kind": "magic"},
        {"settings": {"colour": 1}},
        {"state": None},
    ]:
        for text in (json.dumps({**document, **change}), resealed({**document, **change})):
            path.write_text(text)
            with pytest.raises(InputError) as error:
                load_recalibrator(path)
            assert error.value.file == str(path)
    for text in ("not json", "[" * 100_000, '{"format":' * 1000 + "1" + "}" * 1000):
        path.write_text(text)
        with pytest.raises(InputError):
            load_recalibrator(path)


def resealed(document):
    """As if whoever changed it had made the checksum anew: what remains are the checks of meaning."""
    content = {k: v for k, v in document.items() if k not in ("format", "version", "checksum")}
    return dump_versioned(document["format"], document["version"], content)


@pytest.mark.parametrize(
    ("recalibrator", "state"),
    [
        (IsotonicRecalibrator(), {"values": {"array": [0.2, 8.3]}, "p": {"array": [0.1, 0.9]}}),
        (IsotonicRecalibrator(), {"values": {"array": [0.5]}, "p": {"array": [0.1, 0.9]}}),
        (IsotonicRecalibrator(), {"values": 0.5}),
        (TemperatureRecalibrator(), {"temperature": 0.0}),
        (TemperatureRecalibrator(), {"temperature": float("inf")}),
        (BetaRecalibrator(), {"a": "1"}),
        (SmoothRecalibrator(), {"scale": "magic"}),
        (RandomizedRecalibrator(), {"more": 2.0}),
    ],
)
def test_a_map_that_cannot_be_meant_is_refused(recalibrator, state, tmp_path):
    path = tmp_path / "map.json"
    recalibrator.fit(P, Y).save(path)
    document = json.loads(path.read_text())
    path.write_text(resealed({**document, "state": {**document["state"], **state}}))
    with pytest.raises(InputError) as error:
        load_recalibrator(path)
    assert error.value.file == str(path)


@pytest.mark.parametrize("learn", [PlattRecalibrator().fit, OffsetRecalibrator(0.1).fit])
def test_a_map_is_learned_from_probabilities(learn):
    for wrong in (100 * P, 8 * P - 4, np.where(P < 0.5, np.nan, P), np.where(Y, "yes", "no")):
        with refused("y_prob"):
            learn(wrong, Y)
    for form in ("from_logits", "percent"):
        with refused(form):
            learn(P, Y, **{form: True})


def test_a_map_on_a_scale_of_ones_own_is_not_written_over_another(tmp_path):
    path = tmp_path / "map.json"
    PlattRecalibrator().fit(P, Y).save(path)
    before = path.read_bytes()
    own = SmoothRecalibrator(scale=Scale(lambda p: p**3, np.cbrt)).fit(P, Y)
    with pytest.raises(CalibrantError):
        own.save(path)
    assert path.read_bytes() == before


GOLDEN = Path(__file__).parents[1] / "golden/maps"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED["maps"])
def test_files_of_earlier_versions_are_read(name):
    made = load_recalibrator(GOLDEN / f"v2_{name}.json")
    given = EXPECTED["grid"]
    if name.startswith("class"):
        given = EXPECTED["logits" if made.from_logits else "probs"]
        assert made.classes_ == ["ant", "bee", "cat"]
    assert np.asarray(made.transform(given)) == pytest.approx(
        np.array(EXPECTED["maps"][name]), abs=1e-12
    )
