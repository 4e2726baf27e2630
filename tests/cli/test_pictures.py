"""`calibrant plot`, `report` and `demo`: files that are there, whole, and say what they should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import calibrant as cal


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("one.svg", ()),
        ("two.svg", ("--by", "model")),
        ("grid.png", ("--by", "model", "--layout", "grid", "--theme", "dark", "--kind", "binned")),
        ("many.svg", ("--by", "model,day", "--max-groups", "5", "--kind", "cumulative")),
        ("chart.html", ("--by", "model")),
        ("charts.html", ("--by", "model,day")),
    ],
)
def test_a_picture(calibrant, parquet, tmp_path, name, words) -> None:
    target = tmp_path / name
    done = calibrant("plot", parquet, "-o", target, *words)
    assert done.code == 0, done.err
    assert f"Wrote {str(target)[:40]}" in done.err
    assert 2000 < target.stat().st_size < 2_000_000
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["preds.parquet", name])


@pytest.mark.parametrize("theme", ["light", "print"])
@pytest.mark.parametrize("kind", ["smooth", "binned", "isotonic", "cumulative"])
def test_a_picture_is_that_of_the_library(calibrant, parquet, tmp_path, kind, theme) -> None:
    words = ("--kind", kind, "--theme", theme, "--confidence", "0.8", "--seed", "3")
    assert calibrant("plot", parquet, "-o", tmp_path / "drawn.svg", *words).code == 0
    draw = cal.reliability_diagram if kind == "smooth" else getattr(cal.plotting, f"{kind}_diagram")
    seed = {"seed": 3} if kind in ("smooth", "isotonic") else {}
    rows = cal.scan(str(parquet), y_true="y", y_prob="p")
    draw(rows, confidence=0.8, **seed).save(tmp_path / "meant.svg", theme=theme)
    assert (tmp_path / "drawn.svg").read_bytes() == (tmp_path / "meant.svg").read_bytes()


def test_bands_know_no_clusters(calibrant, parquet, tmp_path) -> None:
    done = calibrant("plot", parquet, "--cluster", "day", "-o", tmp_path / "x.svg")
    assert (done.code, "`--cluster`" in done.err) == (2, True)


def test_a_page_and_its_other_forms(calibrant, parquet, tmp_path) -> None:
    for name in ("report.html", "report.md", "report.json"):
        done = calibrant(
            "report", parquet, "--by", "model", "-o", tmp_path / name, "--title", "Mine"
        )
        assert done.code == 0, done.err
        assert "Mine" in (tmp_path / name).read_text()
        assert ("Open it in a browser" in done.err) is (name == "report.html")
    found = json.loads((tmp_path / "report.json").read_text())
    assert len(found["groups"]) == 2
    done = calibrant("report", parquet, "--cluster", "day", "-o", tmp_path / "one.json")
    assert done.code == 0, done.err


def test_where_nothing_can_be_written(calibrant, parquet, tmp_path) -> None:
    for verb, name in (("plot", "x.gif"), ("report", "x.docx")):
        done = calibrant(verb, parquet, "-o", tmp_path / name)
        assert (done.code, name in done.data) == (2, True)
    done = calibrant("plot", parquet, "-o", tmp_path / "no" / "x.svg")
    assert (done.code, "no" in done.data) == (2, True)
    if Path("/proc").is_dir():  # a folder in which not even root can make a file
        done = calibrant("plot", parquet, "-o", "/proc/x.svg")
        assert (done.code, "/proc/x.svg" in done.err) == (2, True)


def test_a_failure_leaves_what_was_there(calibrant, tmp_path) -> None:
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
    assert max(len(line) for line in done.out.splitlines() if "/" not in line) <= 80
    done = calibrant("demo", "-o", tmp_path / "demo" / "report.html")
    assert (done.code, "report.html" in done.data) == (2, True)


def test_a_report_says_on_the_terminal_that_it_sums_up(calibrant, parquet, tmp_path) -> None:
    words = ("report", parquet, "--by", "day", "--max-groups", "1", "-o", tmp_path / "r.md")
    assert "The 1 largest are shown, the others summed up" in calibrant(*words).err
    text = (tmp_path / "r.md").read_text()
    assert "The calibrant authors" in text
    assert "arXiv:2309.12236" in text
