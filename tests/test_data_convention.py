"""Every verb takes arrays, or `data=` with the names of columns, and says the same of both."""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.refusals import refused

import calibrant as cal


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    draw = np.random.default_rng(4)
    p = draw.random(500)
    return pd.DataFrame(
        {
            "y": (draw.random(500) < p**1.4).astype(int),
            "p": p,
            "q": np.sqrt(p),
            "g": draw.choice(["a", "b"], 500),
            "day": np.arange(500) // 5,
            "w": draw.uniform(0.5, 2, 500),
        }
    )


def number(result) -> float:
    """The number that every result of these verbs has somewhere."""
    for name in ("smooth_ece", "value"):
        if hasattr(result, name):
            return float(getattr(result, name))
    return float(result)


@pytest.mark.parametrize(
    "verb", ["smooth_ece", "smooth_ece_result", "assess", "reliability_diagram"]
)
@pytest.mark.parametrize("options", [{}, {"sample_weight": "w"}, {"scale": "logit"}], ids=str)
def test_a_frame_a_file_and_arrays_say_the_same(frame, tmp_path, verb, options):
    path = tmp_path / "rows.parquet"
    frame.to_parquet(path)
    function = getattr(cal, verb)
    arrays = {k: frame.get(v, v) for k, v in options.items()}
    expected = number(function(frame["y"], frame["p"], **arrays))
    for data in (frame, pl.from_pandas(frame), path, {name: frame[name] for name in frame}):
        found = number(function(data=data, y_true="y", y_prob="p", **options))
        assert found == pytest.approx(expected, abs=2e-6)
    sketch = cal.scan(frame, y_true="y", y_prob="p", **options)
    assert number(function(data=sketch)) == number(function(sketch))


def test_groups_clusters_and_models_are_columns(frame):
    by_cluster = cal.assess(data=frame, y_true="y", y_prob="p", cluster="day")
    assert by_cluster.clusters == 100
    groups = cal.assess_by(data=frame, y_true="y", y_prob="p", by="g")
    assert set(groups) == {"a", "b"}
    assert cal.report(data=frame, y_true="y", y_prob="p", by="g").summary is not None
    both = cal.compare(data=frame, y_true="y", y_prob=["p", "q"])
    apart = cal.compare(frame["y"], {"p": frame["p"], "q": frame["q"]})
    assert both.to_dict() == apart.to_dict()
    named = cal.assess_by(data=frame, y_true="y", y_prob={"plain": "p", "root": "q"})
    assert set(named) == {"plain", "root"}
    assert named["root"].smooth_ece == cal.assess(data=frame, y_true="y", y_prob="q").smooth_ece


def test_small_tools_take_data_too(frame):
    y, p, w, age = frame["y"], frame["p"], frame["w"], frame["q"]
    columns = {"data": frame, "y_true": "y", "y_prob": "p", "sample_weight": "w"}
    for tool in (cal.measures.corp_decomposition, cal.measures.murphy):
        named, own = tool(**columns), tool(y, p, sample_weight=w)
        found = [getattr(one, "miscalibration", 0.0) for one in (named, own)]
        assert np.max(found[0]) == pytest.approx(np.max(found[1]), abs=1e-4)
    found = cal.bias_by("q", **columns)
    assert found.to_dict() == cal.bias_by(age, y, p, sample_weight=w).to_dict()


def test_a_monitor_and_the_choice_of_a_map_take_data_too(frame):
    watch, same = cal.Monitor(), cal.Monitor()
    watch.update(data=frame, y_true="y", y_prob="p")
    assert same.update(frame["y"], frame["p"]) == watch.last
    by_group = cal.scan(frame, y_true="y", y_prob="p", by="g")
    with refused("by", holds="by g"):
        watch.update(data=by_group)
    choice = cal.choose_recalibrator(data=frame, y_true="y", y_prob="p")
    assert choice.best == cal.choose_recalibrator(frame["y"], frame["p"]).best


def test_mistakes_with_data(frame):
    with refused("y_true", holds="Series"):
        cal.assess(frame["y"], frame["p"], data=frame)
    with refused("y_prob", None):
        cal.assess(data=frame, y_true="y")
    with refused(option="y_prob"):
        cal.smooth_ece(data=cal.scan(frame, y_true="y", y_prob="p"), y_prob="p")
    for models in ({}, {"p": 3, "q": "q"}, {"p": frame["p"], "q": "q"}, {1: "p", "1": "q"}):
        for verb in (cal.assess_by, cal.compare, cal.report, cal.reliability_diagrams):
            with refused("y_prob", option="y_prob"):
                verb(data=frame, y_true="y", y_prob=models)
    models = {"p": frame["p"], "q": frame["q"]}
    for verb in (cal.compare, cal.report, cal.reliability_diagrams):
        with refused("by", holds="assess_by"):
            verb(frame["y"], models, by=frame["g"])


def test_several_models_where_one_is_asked_for(frame):
    """The error names what takes them; a scan takes a list of columns."""
    models = {"first": "p", "second": "q"}
    names = {"data": frame, "y_true": "y"}
    for verb in (cal.assess, cal.smooth_ece, cal.reliability_diagram):
        for several in (models, ["p", "q"]):
            with refused("y_prob", holds=("one column", "`assess_by`, `compare`, `report`")):
                verb(**names, y_prob=several)
    with refused("y_prob", holds=("list of columns", "`assess_by`, `compare`, `report`")):
        cal.scan(frame, y_true="y", y_prob=models)
    assert len(cal.scan(frame, y_true="y", y_prob=["p", "q"])) == 2
    assert len(cal.assess_by(**names, y_prob=models)) == 2


def test_a_result_becomes_a_frame_of_the_library_that_came_in_last(frame):
    for columns, library in ((frame, pd), (pl.from_pandas(frame), pl), (frame, pd)):
        assert isinstance(cal.assess(columns["y"], columns["p"]).to_frame(), library.DataFrame)
    found = cal.assess(data=pl.from_pandas(frame), y_true="y", y_prob="p")
    assert isinstance(found.to_frame(), pl.DataFrame)


def test_help_shows_the_convention():
    for verb in ("assess", "report", "compare", "reliability_diagrams", "certify"):
        parameter = inspect.signature(getattr(cal, verb)).parameters["data"]
        assert parameter.kind is parameter.KEYWORD_ONLY


@pytest.mark.parametrize("verb", [cal.assess, cal.reliability_diagram, cal.decision_curve])
def test_columns_of_a_mapping_with_different_indexes_are_refused(verb):
    y, p = pd.Series([0, 1, 0, 1]), pd.Series([0.4, 0.2, 0.7, 0.1])
    with refused("data", holds=("have different indexes", ".loc[data['p'].index]")):
        verb(data={"y": y, "p": p.sort_values()}, y_true="y", y_prob="p")
