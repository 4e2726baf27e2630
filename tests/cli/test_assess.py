"""`calibrant assess`: its table, its JSON, its gates, profiles and logs of language models."""

from __future__ import annotations

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import calibrant as cal
from calibrant.measures.result_record import plain


def test_json_of_groups_is_to_dict_of_the_result(calibrant, parquet) -> None:
    named = {"y_true": "y", "y_prob": "p", "by": ["model", "day"]}
    expected = cal.assess_by(data=str(parquet), **named, limit=3).to_dict()
    words = ("--by", "model,day", "--limit", "3", "--json")  # as in Python; also --max-groups
    done = calibrant("assess", parquet, *words)
    assert done.json == json.loads(json.dumps(plain(expected)))
    assert "5 others combined" in done.err


@pytest.fixture
def uneven(tmp_path):
    """Two groups of fifty rows and one of a single row."""
    draw = np.random.default_rng(3)
    p = draw.random(101)
    table = {
        "p": p,
        "y": (draw.random(101) < p).astype(int),
        "g": ["a"] * 50 + ["b"] * 50 + ["lone"],
        "c": np.arange(101) % 10,
        "id": np.arange(101),
    }
    path = tmp_path / "uneven.parquet"
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    return path


def test_a_group_of_one_row_stops_nobody(calibrant, uneven) -> None:
    for more in ((), ("--cluster", "c"), ("--details",)):
        gate = calibrant("assess", uneven, "--by", "g", *more, "--require-below", "0.99")
        assert (gate.code, "too few rows" in gate.out) == (4, True)
        assert "Too few rows to say: g lone." in gate.err
    for more in ((), ("--cluster", "c")):
        page = uneven.with_name("r.json")
        done = calibrant("report", uneven, "--by", "g", *more, "-o", page)
        assert (done.code, "too few rows or clusters: lone." in done.err) == (0, True)
    done = calibrant("compare", uneven, "--by", "g")
    assert (done.code, "Left out, with too few rows: lone." in done.err) == (0, True)
    assert calibrant("compare", uneven, "--by", "id").code == 2


def test_one_group_ends_with_the_verdict(calibrant, parquet) -> None:
    verdict = cal.assess(data=str(parquet), y_true="y", y_prob="p").verdict
    last = "".join(calibrant("assess", parquet).out.split())  # the verdict may take two lines
    assert last.endswith("".join(f"{verdict}.".split()))
    details = calibrant("assess", parquet, "--details").out
    assert "noise floor" in details
    assert "bandwidth" in details


@pytest.mark.parametrize(
    ("limits", "code", "words"),
    [
        (("--fail-above", "0.5"), 0, "passed"),
        (("--fail-above", "0.05"), 3, "FAILED. Shown to be above it: model halved."),
        (("--fail-above", "10%"), 3, "10% of the event rate: FAILED"),
        (("--require-below", "0.5"), 0, "passed"),
        (("--require-below", "0.03"), 4, "Inconclusive, the interval holds the limit: model good."),
        (("--fail-above", "0.02", "--require-below", "0.02"), 3, "FAILED"),
        (("--fail-above", "much"), 2, "`--fail-above` "),
        (("--fail-above", "5"), 2, "`--fail-above` "),
        (("--require-below", "-1"), 2, "`--require-below` "),
    ],
)
def test_gates(calibrant, parquet, limits, code, words) -> None:
    done = calibrant("assess", parquet, "--by", "model", *limits)
    assert (done.code, words in done.err) == (code, True), done.err


def test_the_same_numbers_from_a_sketch(calibrant, parquet, tmp_path) -> None:
    sketch = tmp_path / "s.parquet"
    assert calibrant("scan", parquet, "--by", "model", "-o", sketch).code == 0
    rows = calibrant("assess", parquet, "--by", "model", "--json").json
    assert calibrant("assess", sketch, "--by", "model", "--json").json == rows


def test_hostile_groups(calibrant, tmp_path) -> None:
    names = ["<script>alert(1)</script>", "\x1b[2Jgone", "[bold red]x[/]", "y" * 100_000, ""]
    draw = np.random.default_rng(0)
    groups = np.array(names)[np.arange(50) % 5]
    table = {"p": draw.random(50), "y": draw.integers(0, 2, 50), "g": groups}
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    done = calibrant("assess", path, "--by", "g")
    assert done.code == 0, done.err
    assert all(c.isprintable() or c == "\n" for c in done.out + done.err)
    assert "[bold red]x[/]" in done.out
    assert len(done.out) < 2000


# --- profiles ---


@pytest.fixture
def fields(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.random(400)
    table = {
        "p": p,
        "y": (rng.random(400) < p**2).astype(int),
        "model": rng.choice(["a", "b"], 400),
        "grade": np.where(p < 0.3, "A", "B"),
        "climate": np.full(400, 0.3),
        "day": np.arange(400) // 4,
    }
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(pyarrow.table(table), "rows.parquet")
    return table


def test_the_profile_of_every_group_is_that_of_its_rows(calibrant, fields) -> None:
    words = ("--by", "model", "--cluster", "day", "--profile", "clinical", "--thresholds", "0.2")
    found = calibrant("assess", "rows.parquet", *words, "--json").json["groups"]
    own = fields["model"] == "a"
    profile = cal.profiles.clinical(thresholds=[0.2])
    expected = cal.assess(
        fields["y"][own], fields["p"][own], cluster=fields["day"][own], profile=profile
    ).profile
    (one,) = (each["profile"] for each in found if each["group"] == "a")
    assert one == json.loads(json.dumps(plain(expected.to_dict())))
    done = calibrant("assess", "rows.parquet", "--profile", "clinical", "--hosmer-lemeshow")
    assert "Hosmer-Lemeshow" in done.out


def test_columns_of_grades_and_climatology(calibrant, fields) -> None:
    words = ("assess", "rows.parquet", "--by", "model", "--profile")
    found = calibrant(*words, "credit", "--grades", "grade", "--json").json["groups"]
    table = found[0]["profile"]["tables"][0]["rows"]
    assert [row["grade"] for row in table] == ["A", "B"]
    done = calibrant(*words, "weather", "--climatology", "climate")
    assert "Brier skill score" in done.out
    done = calibrant(*words, "credit", "--cuts", "0.3,0.6", "--json")
    assert done.json["groups"][0]["profile"]["tables"]


# --- logs of language models ---


def test_a_log_is_read_by_question(calibrant, log) -> None:
    done = calibrant("assess", log, "--percent", "--log", "jsonl", "--by", "model")
    assert "1,200 answers to 400 questions, 1 abstention." in done.err
    assert "corrected for testing 2" in done.out
    found = calibrant("assess", log, "--percent", "--json").json
    assert found["clusters"] == 400
    found = calibrant("assess", log, "--percent", "--profile", "llm", "--json").json
    assert {one["name"]: one["value"] for one in found["profile"]["quantities"]}["coverage"] == (
        pytest.approx(1200 / 1201)
    )
    with log.open("a") as file:  # an abstention counts in the profile of its own model
        line = {"question_id": 1000, "model": "a", "confidence": None, "correct": None}
        file.write(json.dumps(line) + "\n")
    words = ("--percent", "--profile", "llm", "--by", "model", "--json")
    groups = calibrant("assess", log, *words).json["groups"]
    coverage = {
        group["group"]: one["value"]
        for group in groups
        for one in group["profile"]["quantities"]
        if one["name"] == "coverage"
    }
    assert coverage == pytest.approx({"a": 600 / 601, "b": 1.0})
    done = calibrant("certify", "-", "--percent", "--json", stdin=log.read_bytes())
    assert "calibrant-" not in done.err + done.out


def test_words_and_judges_have_options(calibrant, tmp_path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [
        {"question_id": k, "confidence": ("likely", "unlikely")[k % 2], "correct": 1 + k % 5}
        for k in range(200)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = ("--score-range", "1,5", "--outcomes", "soft")
    found = calibrant("assess", path, "--words", "likely=0.7,unlikely=0.2", *judged, "--json").json
    assert found["mean_prediction"] == pytest.approx(0.45)
    assert found["event_rate"] == pytest.approx(0.5)
