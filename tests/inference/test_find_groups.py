"""Groups that nobody named: found where they are, and not where they are not."""

import json

import numpy as np
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant.inference.find_groups import find_groups


def table(seed, n, columns=5):
    rng = np.random.default_rng(seed)
    data = {f"c{k}": rng.integers(0, 4, n) if k % 2 else rng.normal(size=n) for k in range(columns)}
    return data, rng


def search(data, p, y, **options):
    columns = [name for name in data if name.startswith(("c", "a", "b"))]
    return find_groups(
        data={**data, "p": p, "y": y}, y_true="y", y_prob="p", columns=columns, **options
    )


def exclusive_or(n=20_000):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, n))
    p = rng.uniform(0.2, 0.8, n)
    return {"a": a, "b": b}, p, rng.random(n) < p + np.where(a == b, 0.1, -0.1)


def test_an_error_in_the_combination_of_two_columns_is_found_at_depth_two():
    data, p, y = exclusive_or()
    assert not search(data, p, y, depth=1).shown
    found = search(data, p, y)
    assert {one.label for one in found.shown} == {
        f"a {i} and b {j}" for i in (0, 1) for j in (0, 1)
    }
    assert all(one.low < np.sign(one.gap) * 0.1 < one.high for one in found.shown)
    assert found.p_value < 1e-6


@pytest.mark.parametrize("shape", [(2, 3), (1, 30), (30, 1)])
def test_calibrated_predictions_have_no_groups_too_often(shape):
    false = 0
    for seed in range(25):
        data, rng = table(seed, 2000)
        p = rng.beta(*shape, 2000)
        false += search(data, p, rng.random(2000) < p).p_value <= 0.05
    assert false <= 5  # P(Binomial(25, .05) > 5) = .001


def test_over_confident_predictions_without_gaps_have_no_groups():
    """Their residuals vary more than f (1 - f) says, which is no gap of any group."""
    false = 0
    for seed in range(10):
        data, rng = table(seed, 2000)
        p = rng.beta(0.1, 0.1, 2000)
        false += search(data, p, rng.random(2000) < 0.5 + 0.4 * (p - 0.5)).miscalibrated
    assert false <= 2


def test_a_planted_pair_is_found_and_not_blamed_on_its_cells_alone():
    data, rng = table(0, 20_000)
    p = rng.uniform(0.2, 0.8, 20_000)
    planted = (data["c1"] == 3) & (data["c0"] > np.quantile(data["c0"], 0.8))
    found = search(data, p, rng.random(20_000) < p + 0.15 * planted)
    assert set(found[0].conditions) == {"c0", "c1"}
    assert found[0].gap == pytest.approx(0.15, abs=0.05)
    assert found[0].n == planted.sum()


def test_a_cell_is_listed_without_its_pairs():
    data, rng = table(3, 8000)
    p = rng.uniform(0.2, 0.8, 8000)
    found = search(data, p, rng.random(8000) < p + 0.15 * (data["c1"] == 2))
    assert found[0].conditions == {"c1": "2"}
    assert all(len(one.conditions) == 1 for one in found.shown)


def test_frames_of_any_library_and_missing_values():
    import pandas as pd
    import polars as pl

    data, rng = table(2, 1000, 2)
    data["c1"] = np.where(rng.random(1000) < 0.2, None, "x").astype(object)
    p = rng.random(1000)
    y = rng.random(1000) < p
    whole = {**data, "p": p, "y": y}
    results = [
        find_groups(data=kind(whole), y_true="y", y_prob="p", columns=["c0", "c1"])
        for kind in (dict, pd.DataFrame, pl.DataFrame)
    ]
    assert results[0].to_dict() == results[1].to_dict() == results[2].to_dict()
    frame = pd.DataFrame(whole)
    names = {"y_true": "y", "y_prob": "p", "columns": frame.columns[:2]}  # any iterable of names
    assert find_groups(data=frame, **names).to_dict() == results[0].to_dict()
    columns = {name: frame[name] for name in frame} | {"c1": frame["c1"].sort_values()}
    with refused("data", holds="`data['c1'].loc[data['y'].index]`"):
        find_groups(data=columns, **names)
    assert any("missing" in one.label for one in results[0])


def test_a_forest_of_gaps_and_a_section_of_the_report():
    data, p, y = exclusive_or()
    found = search({**data, "a<b>": data["a"]}, p, y)
    plot = found.plot()
    assert plot.ax.get_xlabel() == "Event rate less mean prediction"
    assert plot.artists["off"][0].get_offsets().shape == (len(found.shown), 2)
    assert [one.get_text() for one in plot.ax.get_yticklabels()][-1] == found[0].label
    assert len(found.to_frame()) == len(found)
    page = cal.report(y, p).with_outcomes(found)
    assert json.loads(json.dumps(page.to_dict()))["outcomes"][0]["tested"] == found.tested
    assert "## Groups that nobody named" in page.markdown
    assert f"{found[0].gap:+.4f}" in page.markdown
    assert "a&lt;b&gt;" in page.html
    assert "a<b>" not in page.html
    with refused("found"):
        cal.plotting.gap_plot(3)


@pytest.mark.parametrize(
    ("column", "word"),
    [
        (np.arange(300).astype(str), "of its own"),
        (np.full(300, None), "no values"),
        (np.ones(300), "one value"),
        (np.r_[np.arange(10).repeat(14), np.arange(160)].astype(str), "of its own"),
        ("the outcome", "determines the outcome"),
        ("the outcome in pieces", "determines the outcome"),
        (np.arange(299), "one entry per row"),
    ],
)
def test_columns_that_cannot_define_groups(column, word):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    if isinstance(column, str):
        pieces = np.where(y == 1, "e", np.where(p > 0.5, "a", "b"))
        pieces[:9] = ""
        column = pieces if column.endswith("pieces") else 2 * y
        y = np.where(column == "", 0, y)
    with refused("columns", holds=word):
        find_groups(
            data={"x": column, "p": p, "y": y},
            y_true="y",
            y_prob="p",
            columns=["x"],
        )


def test_a_column_named_twice_and_too_many_cells():
    rows = {"x": np.arange(200) % 3, "p": np.full(200, 0.5), "y": np.arange(200) % 2}
    names = {"y_true": "y", "y_prob": "p"}
    with refused("columns", holds="named twice"):
        find_groups(data=rows, **names, columns=["x", "x"])
    with refused("n_bins", 1000):
        find_groups(data=rows, **names, columns=["x"], n_bins=1000)


def test_groups_with_few_rows_or_events_are_counted_and_not_tested():
    """`a` has one row; `b` has ninety, and next to no expected events."""
    rng = np.random.default_rng(0)
    group = np.r_[["a"], ["b"] * 90, np.tile(["c", "d"], 205)[:409]]
    p = np.where(group == "b", 1e-6, rng.random(500))
    rows = {"x": group, "p": p, "y": rng.random(500) < p}
    found = find_groups(data=rows, y_true="y", y_prob="p", columns=["x"])
    assert (found.tested, found.too_few) == (2, 2)
    assert "2 more have too few rows or events" in str(found)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.9999])
def test_intervals_leave_zero_exactly_where_p_values_reject(confidence):
    for seed in range(6):
        data, rng = table(seed, 1500)
        p = rng.beta(1, 12, 1500)
        y = rng.random(1500) < np.clip(p + 0.08 * (data["c1"] == 1), 0, 1)
        for one in search(data, p, y, confidence=confidence):
            leaves = one.low > 0 or one.high < 0
            assert leaves == (one.p_value <= 1 - confidence + 1e-12)
            assert one.low < one.gap < one.high


@pytest.mark.parametrize("common", [0.0, 9.0])
def test_a_number_that_most_rows_share_is_a_cell(common):
    """As in a gain that is 0 for nine persons in ten."""
    rng = np.random.default_rng(0)
    p, rare = rng.random(2000), np.arange(2000) % 10 == 0
    rows = {"x": np.where(rare, rng.uniform(1, 8, 2000), common), "p": p, "y": rng.random(2000) < p}
    found = find_groups(data=rows, y_true="y", y_prob="p", columns=["x"])
    assert {one.n for one in found} == {200, 1800}


@pytest.mark.parametrize("p_of_b", [0.9999, 1e-4, 1.0, 0.0])
def test_predictions_near_0_or_1_that_are_wrong_are_said(p_of_b):
    rng = np.random.default_rng(0)
    group = np.r_[["b"] * 990, np.tile(["c", "d"], 500)]
    p = np.where(group == "b", p_of_b, rng.uniform(0.2, 0.8, group.size))
    y = rng.random(group.size) < np.where(group == "b", 0.5, p)
    found = find_groups(data={"x": group, "p": p, "y": y}, y_true="y", y_prob="p", columns=["x"])
    (one,) = found.surprising
    assert (one.label, one.n, one.observed) == ("x b", 990, y[:990].sum())
    assert one.expected == pytest.approx(990 * p_of_b)
    assert one.p_value < 1e-6
    assert found.miscalibrated
    assert "no group" not in str(found)
    assert f"predictions are near 0 or 1; observed {y[:990].sum()}" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["surprising"][0]["n"] == 990


def test_calibrated_predictions_near_0_or_1_surprise_seldom():
    false = 0
    for seed in range(60):
        data, rng = table(seed, 1000)
        p = rng.beta(0.05, 1.0, 1000)
        false += bool(search(data, p, rng.random(1000) < p).surprising)
    assert false <= 8  # P(Binomial(60, .05) > 8) = .004


def test_rows_that_are_dropped_are_counted():
    data, p, y = exclusive_or(2000)
    found = search(data, p, np.r_[[np.nan] * 5, y[5:]], on_invalid="drop")
    assert found.to_dict()["dropped"] == {"missing label": 5}
    assert "5 rows were dropped: missing label" in str(found)


def test_predictions_near_1_alone():
    """No group has a score; the one whose outcomes differ is said, and without any there are too few rows."""
    group, names = np.repeat(["b", "c"], 500), {"y_true": "y", "y_prob": "p", "columns": ["x"]}
    rows = {
        "x": group,
        "p": np.full(1000, 0.9999),
        "y": (group == "c") | (np.arange(1000) % 2 == 0),
    }
    found = find_groups(data=rows, **names)
    assert (found.tested, [one.label for one in found.surprising]) == (0, ["x b"])
    assert "no group" not in str(found)
    assert "gap" in found.to_frame("pandas").columns
    page = cal.report(found)
    assert "x b (500 rows)" in page.html
    assert "| x b | 500 | -0.4999 |" in page.markdown
    with refused("found", holds="found.surprising"):
        found.plot()
    rows["y"] = np.arange(1000) > 0
    rows["y"][600] = False
    with refused("columns", holds="enough rows"):
        find_groups(data=rows, **names)
