"""Recalibration by group: errors of cells and of pairs go, few rows are corrected little, none does harm."""

import sqlite3

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from tests.refusals import refused

from calibrant.recalibration import GroupRecalibrator, load_recalibrator


def exclusive_or(seed, n=4000, size=0.5):
    rng = np.random.default_rng(seed)
    a, b = rng.choice(["u", "v"], n), rng.choice(["x", "it's"], n)
    p = expit(rng.normal(-0.5, 1.2, n))
    truth = expit(logit(p) + np.where((a == "u") == (b == "x"), size, -size))
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(50, 15, n))
    X = pd.DataFrame({"p": p, "a": a, "b": b, "age": age})
    return X, (rng.random(n) < truth).astype(int), truth


def log_loss(y, p):
    return -np.where(y == 1, np.log(p), np.log1p(-p))


def fitted(**options):
    X, y, _ = exclusive_or(0)
    return GroupRecalibrator(by=["a", "b", "age"], y_prob="p", **options).fit(X, y)


def test_an_error_in_the_combination_of_two_columns_goes():
    X, _, truth = exclusive_or(1)
    for depth, left in ((1, (0.08, 0.12)), (2, (0.0, 0.03))):
        found = fitted(depth=depth).transform(X)
        cell = [X.a.to_numpy() == "u", X.b.to_numpy() == "x"]
        worst = max(
            abs((truth - found)[(cell[0] == i) & (cell[1] == j)].mean())
            for i in (False, True)
            for j in (False, True)
        )
        assert left[0] <= worst <= left[1]


def test_it_is_no_worse_than_the_map_alone():
    """Held-out log loss of calibrated predictions: at most one standard error above that of the map."""
    for seed in range(10):
        X, y, _ = exclusive_or(seed, 600, size=0.0)
        made = GroupRecalibrator(y_prob="p", recalibrator="platt").fit(X, y)
        T, u, _ = exclusive_or(seed + 100, 4000, size=0.0)
        worse = log_loss(u, made.transform(T)) - log_loss(u, made.map_.transform(T["p"]))
        assert worse.mean() <= worse.std() / np.sqrt(worse.size) + 1e-12
        assert made.score(T, u) == pytest.approx(-log_loss(u, made.transform(T)).mean())


def test_few_rows_are_corrected_little():
    rng = np.random.default_rng(0)
    group = np.repeat([*"abcdefgh", "few"], [*[400] * 8, 5])
    p = np.full(group.size, 0.4)
    y = rng.random(group.size) < np.where(np.isin(group, [*"abcd"]), 0.55, 0.25)
    y[group == "few"] = True
    effects = (
        GroupRecalibrator(y_prob="p", recalibrator="none").fit({"p": p, "g": group}, y).effects_
    )
    assert effects["g a"][0] == pytest.approx(logit(0.55) - logit(0.4), abs=0.25)
    assert 0 < effects["g few"][0] < 2.0  # five of five are events


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_sql_gives_the_same(dialect):
    made = fitted(recalibrator="platt")
    X = exclusive_or(2, 500)[0]
    X.loc[:1, "b"] = "new"
    X.loc[2:3, "p"] = np.nan
    query = f"SELECT {made.to_sql(dialect, tolerance=1e-5)} AS q FROM X"
    if dialect == "sqlite":
        database = sqlite3.connect(":memory:")
        X.to_sql("X", database, index=False)
        found = [row[0] for row in database.execute(query)]
    else:
        duckdb = pytest.importorskip("duckdb")
        found = [row[0] for row in duckdb.sql(query).fetchall()]
    found = np.array(found, dtype=float)
    assert np.isnan(found[2:4]).all()
    kept = X["p"].notna()
    assert found[kept] == pytest.approx(made.transform(X[kept]), abs=1e-4)


def test_files_places_and_frames(tmp_path):
    import polars as pl

    made = fitted()
    X = exclusive_or(3, 200)[0]
    made.save(tmp_path / "map.json")
    again = load_recalibrator(tmp_path / "map.json").transform(X)
    assert again.tolist() == made.transform(X).tolist()
    assert made.transform(pl.from_pandas(X)).to_list() == made.transform(X).tolist()
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.random(300), rng.integers(0, 3, 300)])
    placed = GroupRecalibrator(by=[1], y_prob=0).fit(table, rng.random(300) < table[:, 0])
    assert placed.transform(table).shape == (300,)


def test_bad_input():
    X, y, _ = exclusive_or(0, 200)
    for by in ("a", ["nothing"], ["p"], []):
        with refused("by"):
            GroupRecalibrator(by=by, y_prob="p").fit(X, y)
    with refused("y_prob"):
        GroupRecalibrator(by=["a"], y_prob="q").fit(X, y)
    with refused("by"):
        fitted().transform(X[["p", "a"]])
    many = {"p": X["p"], **{f"c{k}": np.random.default_rng(k).normal(size=200) for k in range(12)}}
    with refused("by"):
        GroupRecalibrator(y_prob="p", n_bins=8).fit(many, y)
    columns = {
        "no values": np.full(200, np.nan),
        "one value": np.ones(200),
        "of its own": np.arange(200).astype(str),
        "determines": y.astype(str),
        "per row": np.arange(199),
    }
    for fault, column in columns.items():
        with refused("by", holds=fault):
            GroupRecalibrator(by=["c"], y_prob="p").fit({"p": X["p"], "c": column}, y)
    with refused("by", "a"):
        GroupRecalibrator(by=["a", "a"], y_prob="p").fit(X, y)
    with refused("data", holds="have different indexes"):
        moved = {"p": X["p"], "a": X["a"].sort_values()}
        GroupRecalibrator(by=["a"], y_prob="p").fit(moved, y)
    with refused("by", holds="per row"):
        fitted().transform({"p": [0.2, 0.3], "a": ["u", "v"], "b": ["x"], "age": [40.0, 50.0]})


def test_a_number_is_followed_in_more_intervals_than_its_rows_could_tell_apart():
    """Steps between intervals are shrunk: a straight error along a number goes, and no more is added."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"p": np.full(3000, 0.4), "age": rng.uniform(20, 90, 3000)})

    def truth(rows):
        return expit(logit(rows["p"]) + (rows["age"] - 55) / 50)

    y = rng.random(3000) < truth(X)
    made = GroupRecalibrator(by=["age"], y_prob="p", n_bins=60, recalibrator="none").fit(X, y)
    T = pd.DataFrame({"p": np.full(71, 0.4), "age": np.arange(20.0, 91.0)})
    assert np.abs(made.transform(T) - truth(T)).max() < 0.08
    alone = [(y[k] - 0.4).mean() for k in X.groupby(pd.qcut(X["age"], 60)).indices.values()]
    noise = np.abs(np.array(alone) - (truth(X) - 0.4).groupby(pd.qcut(X["age"], 60)).mean()).max()
    assert noise > 0.12  # of 50 rows each


def test_columns_with_many_empty_crossings():
    """Crossings without rows have no effect and cost nothing."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 45, 4000)
    X = {"p": rng.uniform(0.2, 0.8, 4000), "a": a.astype(str), "b": (a % 40).astype(str)}
    y = rng.random(4000) < X["p"] + np.where(a % 2, 0.1, -0.1)
    effects = GroupRecalibrator(y_prob="p").fit(X, y).effects_
    assert len(effects) == 45 + 40 + 45 * 40
    assert effects["a 1 and b 2"] == (0.0, 0.0)


@pytest.mark.parametrize(("codes", "was"), [(int, "a number"), (str, "text")])
def test_numbers_given_as_text_are_refused(codes, was):
    rng = np.random.default_rng(0)
    p, age = rng.random(400), rng.integers(5, 105, 400)
    X = {"p": p, "age": age.astype(codes)}
    made = GroupRecalibrator(by=["age"], y_prob="p").fit(X, rng.random(400) < p)
    other = int if codes is str else str
    with refused("by", "age", holds=f"was {was} in `fit`"):
        made.transform({"p": p, "age": age.astype(other)})
    assert made.transform({"p": p[:2], "age": [None, None]}).shape == (2,)


def test_cells_of_long_numbers_have_effects_of_their_own():
    rng = np.random.default_rng(0)
    p, zips = rng.random(900), np.repeat([12345671, 12345672, 12345673], 300)
    X = {"p": p, "zip": zips, "place": np.tile(["missing", "b", None], 300)}
    made = GroupRecalibrator(by=["zip", "place"], y_prob="p").fit(X, rng.random(900) < p)
    assert len(made.effects_) == 3 + 3 + 9
    assert {"zip 12345671", "place 'missing'", "place missing"} <= made.effects_.keys()
