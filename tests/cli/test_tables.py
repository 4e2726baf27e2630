"""Verbs that take whole tables: groups that nobody named, censored times, quantiles."""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

ROSSI = Path(__file__).parents[2] / "docs" / "data" / "rossi.csv"


def test_survival_equals_the_library(calibrant):
    words = ["--time", "week", "--event", "arrest", "--risk", "risk40", "--horizon", "40"]
    assert (
        "observed 0.1968, expected 0.1968, ratio 1.000" in calibrant("survival", ROSSI, *words).out
    )
    document = calibrant("survival", ROSSI, *words, "--json").json
    assert document["assessment"]["n"] == 432


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 5000))
    p = rng.uniform(0.2, 0.8, 5000)
    y = rng.random(5000) < p + np.where(a == b, 0.1, -0.1)
    z = rng.normal(size=5000)
    path = tmp_path / "rows.csv"
    columns = np.column_stack([a, b, p, y, z, np.full(5000, -1.2816), np.full(5000, 1.2816)])
    np.savetxt(path, columns, delimiter=",", header="a,b,p,y,z,low,high", comments="")
    return path


def test_audit_finds_the_pairs(calibrant, table):
    document = calibrant("audit", table, "--column", "a", "--column", "b", "--json").json
    assert {one["group"] for one in document["groups"] if one["p_value"] <= 0.05} == {
        f"a {i} and b {j}" for i in (0, 1) for j in (0, 1)
    }
    rows = np.genfromtxt(table, delimiter=",", names=True)
    found = cal.find_groups(
        data={name: rows[name] for name in rows.dtype.names},
        y_true="y",
        y_prob="p",
        columns=["a", "b"],
    )
    assert document == json.loads(json.dumps(found.to_dict()))
    named = calibrant("audit", table, "--columns", "a,b", "--prob", "p", "--label", "y")
    assert named.out.strip() == str(found)
    assert "must have a column 'q'" in calibrant("audit", table, "--column", "q").err


def test_a_picture_or_a_page(calibrant, table, tmp_path):
    words = ["--time", "week", "--event", "arrest", "--risk", "risk40", "--horizon", "40"]
    assert calibrant("survival", ROSSI, *words, "-o", tmp_path / "risk.svg").code == 0
    assert calibrant("survival", ROSSI, *words, "-o", tmp_path / "risk.md").code == 0
    assert "| observed / expected | 0.9997 |" in (tmp_path / "risk.md").read_text()
    quantile = ["--label", "z", "--quantile", "0.1=low,0.9=high"]
    assert calibrant("quantiles", table, *quantile, "-o", tmp_path / "levels.svg").code == 0
    samples = ["--label", "z", "--samples", "*ow", "-o", tmp_path / "pit.html"]
    assert calibrant("distributions", table, *samples).code == 0
    assert "<svg" in (tmp_path / "levels.svg").read_text()
    assert "Predictive distributions" in (tmp_path / "pit.html").read_text()


def test_quantiles(calibrant, table):
    words = ["--label", "z", "--quantile", "0.1=low", "--quantile", "0.9=high", "--json"]
    document = calibrant("quantiles", table, *words).json
    assert [one["level"] for one in document["levels"]] == [0.1, 0.9]
    twice = calibrant(
        "quantiles", table, "--label", "z", "--quantile", "0.1=low", "--quantile", "0.10=a"
    )
    assert twice.code != 0
    assert "0.1 has 'low' and 'a'" in twice.err


def test_the_label_is_no_member_of_an_ensemble(calibrant, tmp_path):
    table, rng = tmp_path / "rows.csv", np.random.default_rng(0)
    np.savetxt(table, rng.normal(size=(200, 3)), delimiter=",", header="sold,s1,s2", comments="")
    by_pattern, by_name = (
        calibrant("distributions", table, "--label", "sold", *words, "--json").json
        for words in (["--samples", "s*"], ["--samples", "s1", "--samples", "s[12]"])
    )
    assert by_pattern == by_name
    none = calibrant("distributions", table, "--label", "sold", "--samples", "so*")
    assert none.code != 0
    assert "it matches 'sold'" in none.err
