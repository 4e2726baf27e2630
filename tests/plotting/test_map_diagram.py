"""The picture of a map: its curve is the map, its band holds it and knows of clusters, its words are true."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from calibrant.data.sketch import Sketch
from calibrant.errors import InputError
from calibrant.plotting.map_diagram import map_diagram
from calibrant.recalibration import (
    AdaptiveRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    RandomizedRecalibrator,
    SmoothRecalibrator,
    VennAbersRecalibrator,
)

MAPS = [AdaptiveRecalibrator, PlattRecalibrator, IsotonicRecalibrator, VennAbersRecalibrator]


def rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    p = draw.random(n)
    return draw.random(n) < p**2, p


@pytest.mark.parametrize("made", MAPS)
def test_the_curve_is_the_map_of_all_rows_and_lies_in_its_band(made) -> None:
    y, p = rows(400)
    diagram = map_diagram(y, p, recalibrator=made(), resamples=40)
    columns = diagram.columns()
    learned = made().fit(p, y)
    np.testing.assert_array_equal(columns["repaired"], learned.transform(columns["prediction"]))
    inside = (columns["low"] <= columns["repaired"]) & (columns["repaired"] <= columns["high"])
    assert inside.mean() > 0.95
    assert diagram.prediction[[0, -1]].tolist() == [p.min(), p.max()]


def test_maps_of_resampled_rows_are_in_the_band_as_often_as_it_says() -> None:
    """An oracle: a Platt map learned from as many new rows, many times."""
    y, p = rows(500)
    diagram = map_diagram(y, p, recalibrator=PlattRecalibrator(), confidence=0.9)
    others = [PlattRecalibrator().fit(*rows(500, seed)[::-1]) for seed in range(1, 201)]
    fresh = np.array([other.transform(diagram.prediction) for other in others])
    expected = np.subtract(*np.quantile(fresh, [0.95, 0.05], axis=0))
    width = diagram.band.high - diagram.band.low
    assert 0.8 < np.median(width / expected) < 1.25


def test_rows_that_were_copied_tell_no_more_when_their_clusters_are_named() -> None:
    y, p = (np.repeat(column, 6) for column in rows(150))
    event = np.repeat(np.arange(150), 6)
    for made in (AdaptiveRecalibrator(), PlattRecalibrator()):
        naive = map_diagram(y, p, recalibrator=made, resamples=60)
        aware = map_diagram(y, p, recalibrator=made, resamples=60, cluster=event)
        wider = (aware.band.high - aware.band.low) / (naive.band.high - naive.band.low)
        assert np.median(wider) > 1.25
        assert aware.effect.high - aware.effect.low > naive.effect.high - naive.effect.low


def test_a_fitted_map_is_drawn_alone_and_a_sketch_as_its_rows() -> None:
    y, p = rows(800)
    learned = AdaptiveRecalibrator().fit(p, y)
    alone = map_diagram(learned)
    assert alone.effect is None
    assert alone.n is None
    assert alone.prediction[[0, -1]].tolist() == [0.0, 1.0]
    assert map_diagram(PlattRecalibrator().fit(p, y)).band is None
    of_sketch = map_diagram(Sketch.from_arrays(y, p))
    at = of_sketch.prediction
    np.testing.assert_allclose(of_sketch.repaired, learned.transform(at), atol=1e-3)


def test_the_words_are_those_of_the_map() -> None:
    y, p = rows(500)
    diagram = map_diagram(y, p, recalibrator=SmoothRecalibrator(monotone=False), resamples=20)
    assert diagram.keeps_order == diagram.recalibrator.keeps_order
    svg = diagram.to_svg()
    for text in ("no change", "uncertainty of the map", "repaired probability", "AUC"):
        assert text in svg
    few = map_diagram(y, p / 100, recalibrator=PlattRecalibrator(), resamples=20)
    assert "50" not in few.says.split("into")[0]  # no row is near one half
    document = json.loads(json.dumps(diagram.to_dict()))
    assert document["effect"]["n"] == 500
    again = pickle.loads(pickle.dumps(diagram))
    np.testing.assert_array_equal(again.repaired, diagram.repaired)
    with pytest.raises(ValueError, match="read-only"):
        diagram.repaired[0] = 1.0


def test_too_few_rows_to_hold_some_out_are_drawn_without_a_gain() -> None:
    y, p = np.array([0, 0, 0, 1]), np.array([0.1, 0.2, 0.3, 0.8])
    assert map_diagram(y, p).effect is None


def test_what_cannot_be_drawn() -> None:
    y, p = rows(300)
    learned = PlattRecalibrator().fit(p, y)
    for arguments, options, argument in (
        ((learned, p), {}, "y_prob"),
        ((y, p), {"recalibrator": RandomizedRecalibrator()}, "recalibrator"),
        ((y, p), {"recalibrator": "platt"}, "recalibrator"),
        ((y, p), {"resamples": 5}, "resamples"),
        ((y, p), {"confidence": 95}, "confidence"),
    ):
        with pytest.raises(InputError) as error:
            map_diagram(*arguments, **options)
        assert error.value.argument == argument
        assert error.value.hint
