"""`calibrant plot`, `report` and `demo`: files that are there, whole."""

from __future__ import annotations

import json

import pytest

import calibrant as cal


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("one.svg", ("--title", "Mine", "--width", "3.3")),
        ("one.png", ("--dpi", "50")),
        ("two.svg", ("--by", "model")),
        ("grid.png", ("--by", "model", "--layout", "grid", "--theme", "dark", "--kind", "binned")),
        ("many.svg", ("--by", "model,day", "--max-groups", "5", "--kind", "cumulative")),
        ("forest.svg", ("--by", "model", "--kind", "forest")),
        ("weather.svg", ("--attributes",)),
    ],
)
def test_a_picture(calibrant, parquet, tmp_path, name, words) -> None:
    target = tmp_path / name
    done = calibrant("plot", parquet, "-o", target, *words)
    assert (done.code, "Wrote" in done.err) == (0, True), done.err
    assert 2000 < target.stat().st_size < 2_000_000
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["preds.parquet", name])
    if "--title" in words:
        assert "Mine" in target.read_text()


@pytest.mark.parametrize("kind", ["smooth", "binned", "isotonic", "cumulative"])
def test_a_picture_is_that_of_the_library(calibrant, parquet, tmp_path, kind) -> None:
    words = ("--kind", kind, "--theme", "print", "--confidence", "0.8")
    assert calibrant("plot", parquet, "-o", tmp_path / "drawn.svg", *words).code == 0
    draw = cal.reliability_diagram if kind == "smooth" else getattr(cal.plotting, f"{kind}_diagram")
    rows = cal.scan(str(parquet), y_true="y", y_prob="p")
    draw(rows, confidence=0.8).save(tmp_path / "meant.svg", theme="print")
    assert (tmp_path / "drawn.svg").read_bytes() == (tmp_path / "meant.svg").read_bytes()


def test_a_page_and_its_other_forms(calibrant, parquet, tmp_path) -> None:
    for name in ("report.html", "report.md", "report.json"):
        words = ("report", parquet, "--by", "model", "-o", tmp_path / name, "--title", "Mine")
        done = calibrant(*words)
        assert done.code == 0, done.err
        assert "Mine" in (tmp_path / name).read_text()
    assert len(json.loads((tmp_path / "report.json").read_text())["groups"]) == 2
    done = calibrant("report", parquet, "--profile", "weather", "-o", tmp_path / "r.md")
    assert done.code == 0, done.err
    assert "Brier skill score" in (tmp_path / "r.md").read_text()


def test_a_report_on_classes(calibrant, tmp_path) -> None:
    path = tmp_path / "x.csv"
    lines = [".7,.2,.1,cat", ".2,.5,.3,owl", ".1,.8,.1,dog", ".3,.3,.4,owl"] * 30
    path.write_text("p_cat,p_dog,p_owl,label\n" + "\n".join(lines) + "\n")
    words = ("report", path, "--prob", "p_*", "--multiclass", "confidence")
    done = calibrant(*words, "-o", tmp_path / "page.json")
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "page.json").read_text())["classes"]["number"] == 3


def test_a_failure_leaves_the_old_file(calibrant, tmp_path) -> None:
    target = tmp_path / "report.html"
    target.write_text("before")
    path = tmp_path / "x.csv"
    path.write_text("p,y\n0.5,3\n")
    assert calibrant("report", path, "-o", target).code == 2
    assert target.read_text() == "before"


def test_the_demo(calibrant, tmp_path) -> None:
    pytest.importorskip("sklearn")
    done = calibrant("demo", "-o", tmp_path / "demo")
    assert done.code == 0, done.err
    for name in ("predictions.parquet", "diagram.svg", "report.html"):
        assert str((tmp_path / "demo" / name).resolve()) in done.out
        assert (tmp_path / "demo" / name).is_file()
    assert "naive Bayes" in done.out
    assert "miscalibrated" in done.out
    done = calibrant("demo", "-o", tmp_path / "demo" / "report.html")
    assert (done.code, "report.html" in done.err) == (2, True)
