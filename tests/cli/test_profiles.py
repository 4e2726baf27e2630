"""`--profile` and `calibrant decide`: the library's numbers, with one flag."""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.profiles import clinical


@pytest.fixture
def rows(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    n = 400
    p = rng.random(n)
    table = {
        "p": p,
        "y": (rng.random(n) < p**2).astype(int),
        "model": rng.choice(["a", "b"], n),
        "grade": np.where(p < 0.3, "A", "B"),
        "climate": np.full(n, 0.3),
        "day": np.arange(n) // 4,
    }
    lines = [
        ",".join(table),
        *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    return table


def test_assess_prints_the_profile(calibrant, rows):
    done = calibrant("assess", "rows.csv", "--profile", "clinical", "--thresholds", "0.1,0.2")
    assert done.code == 0
    assert "calibration slope" in done.out
    assert "net benefit at 0.2" in done.out


def test_json_has_the_librarys_numbers_for_every_group(calibrant, rows):
    done = calibrant(
        "assess", "rows.csv", "--by", "model", "--cluster", "day", "--profile", "clinical",
        "--thresholds", "0.2", "--json",
    )  # fmt: skip
    results = {one["group"]["model"]: one["profile"] for one in json.loads(done.out)["results"]}
    own = rows["model"] == "a"
    expected = cal.assess(
        rows["y"][own], rows["p"][own], cluster=rows["day"][own], profile=clinical(thresholds=0.2)
    ).profile
    told = {quantity["name"]: quantity["value"] for quantity in results["a"]["quantities"]}
    for name in ("calibration slope", "AUC", "net benefit at 0.2"):
        assert told[name] == pytest.approx(expected[name].value, rel=1e-12)


def test_columns_of_grades_and_climatology(calibrant, rows):
    credit = calibrant("assess", "rows.csv", "--profile", "credit", "--grades", "grade", "--json")
    table = json.loads(credit.out)["results"][0]["profile"]["tables"][0]["rows"]
    assert [row["grade"] for row in table] == ["A", "B"]
    assert table[0]["n"] == (rows["p"] < 0.3).sum()
    weather = calibrant("assess", "rows.csv", "--profile", "weather", "--climatology", "climate")
    assert "Brier skill score" in weather.out


def test_a_sketch_has_a_profile_too(calibrant, rows):
    calibrant("scan", "rows.csv", "-o", "rows.parquet", "--scale", "logit")
    done = calibrant("assess", "rows.parquet", "--profile", "clinical", "--scale", "logit")
    assert done.code == 0
    assert "±" in done.out


def test_decide_prints_draws_and_tells(calibrant, rows):
    done = calibrant("decide", "rows.csv", "--thresholds", "0.1,0.3", "-o", "curve.svg")
    assert done.code == 0
    assert "net benefit" in done.out
    told = json.loads(calibrant("decide", "rows.csv", "--thresholds", "0.1,0.3", "--json").out)
    expected = cal.decision_curve(rows["y"], rows["p"], thresholds=[0.1, 0.3])
    assert told["results"][0]["value"] == pytest.approx(expected.net_benefit)
    groups = calibrant("decide", "rows.csv", "--by", "model", "--cluster", "day", "-o", "two.svg")
    assert groups.code == 0


def test_the_report_has_a_section(calibrant, rows):
    for kind, name in (("clinical", "calibration slope"), ("weather", "Brier skill score")):
        assert calibrant("report", "rows.csv", "--profile", kind, "-o", "page.md").code == 0
        text = Path("page.md").read_text(encoding="utf-8")
        assert f"Profile: {kind}" in text
        assert name in text
    page = cal.report(rows["y"], rows["p"], profile="clinical").html
    assert "treat all" in page or "act always" in page
    assert "DeLong" in page


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["assess", "rows.csv", "--thresholds", "0.1"], "--thresholds"),
        (["assess", "rows.csv", "--profile", "clinical", "--thresholds", "1.5"], "--thresholds"),
        (["assess", "rows.csv", "--profile", "clinical", "--thresholds", "a"], "--thresholds"),
        (["assess", "rows.csv", "--profile", "weather", "--grades", "grade"], "--grades"),
        (["assess", "rows.csv", "--profile", "dentist"], "--profile"),
        (["decide", "rows.csv", "--thresholds", "0"], "--thresholds"),
    ],
)
def test_mistakes_name_the_option(calibrant, rows, words, name):
    done = calibrant(*words)
    assert done.code == 2
    assert name in done.err


def test_hosmer_lemeshow_and_cuts_are_options(calibrant, rows):
    clinical_ = calibrant("assess", "rows.csv", "--profile", "clinical", "--hosmer-lemeshow")
    assert "Hosmer-Lemeshow" in clinical_.out
    credit = calibrant("assess", "rows.csv", "--profile", "credit", "--cuts", "0.3,0.6", "--json")
    table = json.loads(credit.out)["results"][0]["profile"]["tables"][0]["rows"]
    assert [row["grade"] for row in table] == ["0 to 0.3", "0.3 to 0.6", "0.6 to 1"]
    for wrong in (["credit", "--hosmer-lemeshow"], ["clinical", "--cuts", "0.3"]):
        refused = calibrant("assess", "rows.csv", "--profile", *wrong)
        assert refused.code == 2
        assert wrong[1] in refused.err


def test_a_report_of_clusters_says_why_it_has_no_decision_curve(calibrant, rows):
    for page in ("page.html", "page.md"):
        done = calibrant("report", "rows.csv", "--cluster", "day", "-o", page)
        assert done.code == 0
        assert "No decision curve" in Path(page).read_text()
        calibrant("report", "rows.csv", "-o", page)
        assert "No decision curve" not in Path(page).read_text()
