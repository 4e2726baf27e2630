"""`calibrant certify`, `selective` and `decide`."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calibrant as cal
from calibrant.io.answers import read_answers
from calibrant.measures.result_record import plain


def test_certify_prints_what_the_library_says(calibrant, log) -> None:
    answers = read_answers(log, form="percent")
    expected = cal.certify(
        answers.y_true, answers.y_prob, cluster=answers.cluster, abstained=1, risk=0.2
    )
    words = ("certify", log, "--percent", "--risk", "0.2")
    done = calibrant(*words)
    assert (done.code, done.out.strip()) == (0, expected.sentence)
    assert calibrant(*words, "--json").json == json.loads(json.dumps(plain(expected.to_dict())))


def test_a_failed_certificate_has_an_exit_code(calibrant, log) -> None:
    words = ("certify", log, "--form", "percent", "--risk", "0.001", "--by", "model")
    done = calibrant(*words)
    assert (done.code, len(done.out.splitlines())) == (4, 2)
    assert done.out.startswith("model a: ")
    found = calibrant(*words, "--json").json
    assert [(one["group"], one["threshold"]) for one in found] == [("a", None), ("b", None)]


def test_selective_prints_areas_and_draws(calibrant, log, tmp_path) -> None:
    answers = read_answers(log, form="percent")
    expected = cal.selective(answers.y_true, answers.y_prob, cluster=answers.cluster, abstained=1)
    words = ("selective", log, "--percent")
    done = calibrant(*words, "-o", tmp_path / "c.svg")
    assert (done.code, done.out.strip()) == (0, str(expected))
    assert "<svg" in (tmp_path / "c.svg").read_text()
    assert calibrant(*words, "--json").json["aurc"] == pytest.approx(expected.aurc)
    by_model = calibrant(*words, "--by", "model")
    assert (by_model.code, by_model.out.split()[:2]) == (0, ["model", "rows"])


def test_abstentions_count_in_the_group_that_has_them(calibrant, log, tmp_path) -> None:
    with log.open("a") as file:
        for question, model in enumerate(["a"] * 5 + ["c"]):
            line = {"question_id": f"x{question}", "model": model, "answer": "I don't know"}
            file.write(json.dumps(line | {"confidence": None, "correct": None}) + "\n")
    words = ("--percent", "--by", "model")
    done = calibrant("selective", log, *words, "--json")
    assert {one["group"]: one["abstained"] for one in done.json} == {"a": 5, "b": 0}
    assert "c: 1 abstention and no answer" in done.err
    sketch, again = tmp_path / "answers.parquet", tmp_path / "merged.json"
    assert calibrant("scan", log, *words, "-o", sketch).code == 0
    assert calibrant("merge", sketch, "-o", again).code == 0
    for path in (sketch, again):
        kept = ("--cluster", "question", "--by", "model", "--json")
        read = calibrant("selective", path, *kept).json
        assert [(one["group"], one["n"], one["abstained"]) for one in read] == [
            (one["group"], one["n"], one["abstained"]) for one in done.json
        ]


@pytest.mark.parametrize("verb", ["assess", "certify", "selective", "decide"])
def test_clusters_of_a_sketch_are_named_as_those_of_rows(calibrant, tmp_path, verb) -> None:
    draw = np.random.default_rng(2)
    p = np.round(draw.random(900), 3)
    y = (draw.random(900) < p).astype(int)
    table, sketch = tmp_path / "x.csv", tmp_path / "s.parquet"
    rows = zip(p, y, np.arange(900) // 3, strict=True)
    table.write_text("p,y,c\n" + "".join(f"{a},{b},{c}\n" for a, b, c in rows))
    assert calibrant("scan", table, "--by", "c", "-o", sketch).code == 0
    for file in (table, sketch):
        assert calibrant(verb, file, "--cluster", "c", "--json").json["clusters"] == 300
    done = calibrant(verb, sketch, "--cluster", "d")
    assert (done.code, "`--cluster`" in done.err) == (2, True)


def test_decide_prints_and_draws(calibrant, parquet, rows, tmp_path) -> None:
    words = ("decide", parquet, "--thresholds", "0.1,0.3")
    done = calibrant(*words, "-o", tmp_path / "curve.svg")
    assert (done.code, "net benefit" in done.out) == (0, True)
    found = calibrant(*words, "--json").json
    expected = cal.decision_curve(rows["y"], rows["p"], thresholds=[0.1, 0.3])
    assert found["value"] == pytest.approx(expected.benefit.value, abs=1e-3)
    groups = calibrant(*words, "--by", "model", "-o", tmp_path / "two.svg")
    assert (groups.code, "model good: " in groups.out) == (0, True)
