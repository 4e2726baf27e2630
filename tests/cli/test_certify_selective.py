"""From a log to a threshold: `calibrant certify` and `calibrant selective`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
from calibrant.io.answers import read_answers


@pytest.fixture
def log(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    path = tmp_path / "answers.jsonl"
    with path.open("w") as file:
        for question in range(400):
            for _ in range(3):
                sure = float(draw.choice([0.5, 0.7, 0.9, 0.99]))
                line = {
                    "question_id": question,
                    "model": "ab"[question % 2],
                    "confidence": 100 * sure,
                    "correct": bool(draw.random() < sure),
                }
                file.write(json.dumps(line) + "\n")
        file.write(json.dumps({"question_id": 999, "confidence": None, "correct": None}) + "\n")
    return path


def test_certify_prints_what_the_library_says(calibrant, log) -> None:
    answers = read_answers(log, form="percent")
    expected = cal.certify(
        answers.y_true, answers.y_prob, cluster=answers.cluster, abstained=1, risk=0.2
    )
    words = ("certify", log, "--log", "jsonl", "--percent", "--risk", "0.2")
    done = calibrant(*words)
    assert (done.code, done.out.strip()) == (0, expected.sentence)
    document = json.loads(calibrant(*words, "--json").out)
    assert document["schema"] == "calibrant.certify/1"
    assert document["log"]["abstained"] == 1
    (result,) = document["results"]
    assert result["threshold"] == pytest.approx(expected.threshold, abs=2**-16)
    assert (result["clusters"], result["coverage"]) == (400, expected.coverage)


def test_what_cannot_be_certified_has_an_exit_code(calibrant, log) -> None:
    words = ("certify", log, "--log", "jsonl", "--form", "percent", "--risk", "0.001")
    done = calibrant(*words, "--by", "model")
    assert (done.code, len(done.out.splitlines())) == (4, 2)
    assert json.loads(calibrant(*words, "--json").out)["results"][0]["threshold"] is None


def test_certify_reads_rows_and_sketches_and_both_sides(calibrant, tmp_path) -> None:
    draw = np.random.default_rng(1)
    p = np.round(draw.random(3000), 3)
    y = (draw.random(3000) < p).astype(int)
    table = tmp_path / "x.csv"
    table.write_text("p,y\n" + "".join(f"{a},{b}\n" for a, b in zip(p, y, strict=True)))
    words = ("--side", "both", "--json")
    (rows,) = json.loads(calibrant("certify", table, *words).out)["results"]
    assert calibrant("scan", table, "-o", tmp_path / "s.parquet").code == 0
    (cells,) = json.loads(calibrant("certify", tmp_path / "s.parquet", *words).out)["results"]
    assert rows == cells
    assert rows["below"]["threshold"] < rows["above"]["threshold"]


@pytest.mark.parametrize("wrong", [("--risk", "10"), ("--risk", "much"), ("--side", "up")])
def test_mistakes_are_named_by_their_option(calibrant, log, wrong) -> None:
    done = calibrant("certify", log, "--log", "jsonl", *wrong)
    assert (done.code, wrong[0] in done.err) == (2, True)


def test_a_form_is_for_logs_alone(calibrant, parquet) -> None:
    done = calibrant("certify", parquet, "--form", "sum")
    assert (done.code, "--form" in done.err) == (2, True)


def test_selective_prints_areas_and_draws(calibrant, log, tmp_path) -> None:
    answers = read_answers(log, form="percent")
    expected = cal.selective(answers.y_true, answers.y_prob, cluster=answers.cluster, abstained=1)
    words = ("selective", log, "--log", "jsonl", "--percent")
    done = calibrant(*words, "-o", tmp_path / "c.svg")
    assert (done.code, done.out.strip()) == (0, str(expected))
    assert "<svg" in (tmp_path / "c.svg").read_text()
    (result,) = json.loads(calibrant(*words, "--json").out)["results"]
    assert result["aurc"] == pytest.approx(expected.aurc)
    by_model = calibrant(*words, "--by", "model")
    assert (by_model.code, by_model.out.split()[:2]) == (0, ["model", "rows"])
    assert calibrant(*words, "--by", "model", "-o", tmp_path / "d.svg").code == 2


def test_what_a_log_lacks_is_counted(calibrant, tmp_path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [{"confidence": 0.5, "correct": k % 2} for k in range(40)]
    rows += [{"confidence": "high", "correct": 1}, {"confidence": None, "correct": 1}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = calibrant("selective", path, "--log", "jsonl", "--on-invalid", "drop")
    assert done.code == 0, done.err
    assert "1 answer without a confidence" in done.err
    assert "1 answer with one that cannot be read" in done.err


def test_abstentions_count_in_the_group_that_has_them(calibrant, log) -> None:
    with log.open("a") as file:
        for question, model in enumerate(["a"] * 5 + ["c"]):
            line = {"question_id": f"x{question}", "model": model, "answer": "I don't know"}
            file.write(json.dumps(line | {"confidence": None, "correct": None}) + "\n")
    done = calibrant("selective", log, "--percent", "--by", "model", "--json")
    results = json.loads(done.out)["results"]
    assert {one["group"]["model"]: one["abstained"] for one in results} == {"a": 5, "b": 0}
    assert "c: 1 abstention and no answer" in done.err


def test_lines_that_judge_answers_to_questions_are_a_log(calibrant, log, tmp_path) -> None:
    by_name = calibrant("certify", log, "--log", "jsonl", "--percent", "--risk", "0.2")
    assert calibrant("certify", log, "--percent", "--risk", "0.2").out == by_name.out
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f'{{"p": 0.9, "y": {k % 10 > 0:d}}}\n' for k in range(200)))
    done = calibrant("certify", rows, "--risk", "0.2", "--json")
    assert json.loads(done.out)["log"] is None


def test_words_and_judges_have_options(calibrant, tmp_path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [
        {"question_id": k, "confidence": ("likely", "unlikely")[k % 2], "correct": 1 + k % 5}
        for k in range(200)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = ("--score-range", "1,5", "--outcomes", "soft")
    done = calibrant("assess", path, "--words", "likely=0.7,unlikely=0.2", *judged, "--json")
    (result,) = json.loads(done.out)["results"]
    assert result["mean_prediction"] == pytest.approx(0.45)
    assert result["event_rate"] == pytest.approx(0.5)
    for wrong in (("--words", "likely"), ("--words", "likely=x"), ("--score-range", "1")):
        done = calibrant("assess", path, *wrong)
        assert (done.code, wrong[0] in done.err) == (2, True)


def test_standard_input_has_no_other_name(calibrant, log) -> None:
    done = calibrant("certify", "-", "--percent", "--json", stdin=log.read_bytes())
    assert "calibrant-" not in done.err + done.out
    assert json.loads(done.out)["files"] == ["standard input"]


def test_what_cannot_be_read_counts_in_the_result(calibrant, log) -> None:
    with log.open("a") as file:
        for sure in ("high", None):
            line = {"question_id": 0, "model": "a", "confidence": sure, "correct": 1}
            file.write(json.dumps(line) + "\n")
    words = (log, "--percent", "--on-invalid", "drop", "--json")
    document = json.loads(calibrant("certify", *words, "--risk", "0.3").out)
    (result,) = document["results"]
    assert result["dropped"] == {"missing prediction": 1, "prediction out of range": 1}
    assert result["coverage"] == result["above"]["rows"] / 1203
    document = json.loads(calibrant("assess", *words, "--profile", "llm").out)
    (coverage,) = (
        one for one in document["results"][0]["profile"]["quantities"] if one["name"] == "coverage"
    )
    assert coverage["value"] == 1200 / 1203


def test_answers_without_questions_that_repeat_are_noticed(calibrant, tmp_path) -> None:
    draw = np.random.default_rng(0)
    path = tmp_path / "x.jsonl"
    with path.open("w") as file:
        for sure in draw.random(300):
            line = {"confidence": sure, "correct": bool(draw.random() < sure)}
            file.write(3 * (json.dumps(line) + "\n"))
    done = calibrant("certify", path, "--log", "jsonl", "--risk", "0.3")
    assert "`--cluster" in done.err
    assert "3.0" in done.err


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
        done = calibrant(verb, file, "--cluster", "c", "--json")
        assert done.code in (0, 4), done.err
        (result,) = json.loads(done.out)["results"]
        assert result["clusters"] == 300
    done = calibrant(verb, sketch, "--cluster", "d")
    assert (done.code, "`--cluster`" in done.err) == (2, True)


@pytest.mark.parametrize("by", [(), ("--by", "model")])
def test_the_sketch_of_a_log_counts_what_was_declined(calibrant, log, tmp_path, by) -> None:
    with log.open("a") as file:
        for model in ("a", "b", "b"):
            line = {"question_id": 1, "model": model, "confidence": None, "correct": None}
            file.write(json.dumps(line) + "\n")
    sketch = tmp_path / "answers.parquet"
    made = calibrant("scan", log, "--log", "jsonl", "--percent", *by, "-o", sketch)
    assert "abstention" in made.err
    again = tmp_path / "merged.json"
    assert calibrant("merge", sketch, "-o", again).code == 0
    for verb in ("certify", "selective"):
        direct = calibrant(verb, log, "--log", "jsonl", "--percent", *by, "--json")
        for path in (sketch, again):
            read = calibrant(verb, path, "--cluster", "question", *by, "--json")
            cases = [
                [(one["group"], one["n"], one["abstained"], one["coverage"], one["dropped"])
                 for one in json.loads(done.out)["results"]]
                for done in (direct, read)
            ]  # fmt: skip
            assert cases[0] == cases[1]


def test_answers_to_one_question_are_too_few(calibrant, tmp_path) -> None:
    path = tmp_path / "one.jsonl"
    line = json.dumps({"question_id": 1, "confidence": 0.9, "correct": True}) + "\n"
    path.write_text(line * 40)
    done = calibrant("certify", path, "--log", "jsonl")
    assert (done.code, " 40 " in done.err, "--cluster" in done.err) == (2, True, True)
    path.write_text(line)
    done = calibrant("certify", path, "--log", "jsonl")
    assert (done.code, " 29 " in done.out) == (4, True)
