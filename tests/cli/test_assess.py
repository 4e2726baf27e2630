"""`calibrant assess`: its table, its JSON, its gates."""

from __future__ import annotations

import json

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import calibrant as cal


def test_a_line_per_group(calibrant, parquet, rows) -> None:
    done = calibrant("assess", parquet, "--by", "model")
    assert done.code == 0, done.err
    header, halved, good, _, summary, *_ = done.out.splitlines()
    assert summary.startswith("1 of 2 groups is miscalibrated (corrected for testing 2).")
    assert header.split() == ["model", "rows", "error", "interval", "floor", "p", "O/E", "verdict"]
    assert good.startswith("good")
    assert good.endswith("inconclusive")  # 200 rows leave room for an error
    assert "inconclusive: no more error than chance explains, but too few rows" in done.err
    assert halved.endswith("miscalibrated")
    expected = cal.assess(rows["y"][1::2], rows["p"][1::2])
    assert f"{expected.smooth_ece:.3f}" in halved
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.fixture
def uneven(tmp_path):
    """Two groups of fifty rows and one of a single row, which two clusters share."""
    draw = np.random.default_rng(3)
    p = draw.random(101)
    table = {
        "p": p,
        "y": (draw.random(101) < p).astype(int),
        "g": ["a"] * 50 + ["b"] * 50 + ["lone"],
        "c": np.arange(101) % 10,
        "w": draw.random(101),
        "id": np.arange(101),
    }
    path = tmp_path / "uneven.parquet"
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    return path


@pytest.mark.parametrize("more", [(), ("--cluster", "c"), ("--weight", "w"), ("--details",)])
def test_a_group_of_one_row_stops_nobody(calibrant, uneven, more) -> None:
    done = calibrant("assess", uneven, "--by", "g", *more)
    assert done.code == 0, done.err
    assert "too few rows" in done.out or "fewer than two rows" in done.out
    gate = calibrant("assess", uneven, "--by", "g", *more, "--require-below", "0.99")
    assert (gate.code, "Too few rows to say: lone." in gate.err) == (4, True)
    if "--details" not in more:
        *able, lone = json.loads(calibrant("assess", uneven, "--by", "g", *more, "--json").out)[
            "results"
        ]
        assert list(lone) == list(able[0])
        assert (lone["n"], lone["smooth_ece"], lone["finding"]) == (1, None, "too few rows")


def test_a_group_of_one_row_is_left_out_of_pages_and_comparisons(calibrant, uneven) -> None:
    page = uneven.with_name("r.json")
    for more in ((), ("--cluster", "c")):
        done = calibrant("report", uneven, "--by", "g", *more, "-o", page)
        assert done.code == 0, done.err
        assert [each["name"] for each in json.loads(page.read_text())["groups"]] == ["a", "b"]
    assert "Left out, with too few rows or clusters: lone." in done.err
    done = calibrant("compare", uneven, "--by", "g")
    assert done.code == 0, done.err
    assert "Left out, with too few rows: lone." in done.err
    done = calibrant("compare", uneven, "--by", "id")
    assert (done.code, "`--by model`" in done.err) == (2, True)
    done = calibrant("compare", uneven, "--by", "g", "--max-groups", "1")
    assert (done.code, "`--max-groups`" in done.err) == (2, True)


def test_only_groups_of_one_row(calibrant, uneven) -> None:
    done = calibrant("assess", uneven, "--by", "id", "--max-groups", "200")
    assert (done.code, done.refusal.seen) == (2, 1)


def test_one_group_ends_with_the_verdict(calibrant, parquet) -> None:
    assert "iscalibrat" in calibrant("assess", parquet).out.splitlines()[-1]
    details = calibrant("assess", parquet, "--details").out
    assert "noise floor" in details
    assert "bandwidth" in details


@pytest.mark.parametrize(
    ("limits", "code", "words"),
    [
        ((), 0, ""),
        (("--fail-above", "0.5"), 0, "passed"),
        (("--fail-above", "0.05"), 3, "FAILED. Shown to be above it: halved."),
        (("--fail-above", "10%"), 3, "10% of the event rate: FAILED"),
        (("--require-below", "0.5"), 0, "passed"),
        (("--require-below", "0.03"), 4, "Inconclusive, the interval holds the limit: good."),
        (("--fail-above", "0.02", "--require-below", "0.02"), 3, "FAILED"),
        (("--fail-above", "much"), 2, "`--fail-above` "),
        (("--fail-above", "5"), 2, "`--fail-above` "),
        (("--require-below", "-1"), 2, "`--require-below` "),
        (("--fail-above", "0"), 2, "`--fail-above` "),
    ],
)
def test_gates(calibrant, parquet, limits, code, words) -> None:
    done = calibrant("assess", parquet, "--by", "model", *limits)
    assert (done.code, words in done.err) == (code, True), done.err


def test_an_inconclusive_gate_passes_and_says_so(calibrant, parquet) -> None:
    verdict = json.loads(calibrant("assess", parquet, "--by", "model", "--json").out)
    limit = str(verdict["results"][0]["smooth_ece"])
    done = calibrant("assess", parquet, "--by", "model", "--fail-above", limit)
    assert done.code == 0
    assert "passed. Inconclusive" in done.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("assess", ()),
        ("assess_by", ("--by", "model", "--fail-above", "0.05", "--require-below", "20%")),
        ("assess_weight_cluster", ("--weight", "w", "--cluster", "day", "--seed", "3")),
        ("assess_max_groups", ("--by", "model,day", "--max-groups", "3", "--on-invalid", "drop")),
    ],
)
def test_the_json_is_as_it_was(calibrant, as_golden, parquet, name, words) -> None:
    done = calibrant("assess", parquet, "--json", *words)
    as_golden(name, json.loads(done.out))


def test_the_same_numbers_from_a_sketch(calibrant, parquet, tmp_path) -> None:
    sketch = tmp_path / "s.parquet"
    assert calibrant("scan", parquet, "--by", "model", "-o", sketch).code == 0
    rows = json.loads(calibrant("assess", parquet, "--by", "model", "--json").out)
    kept = json.loads(calibrant("assess", sketch, "--by", "model", "--json").out)
    assert kept["results"] == rows["results"]
    assert kept["columns"] is None


def test_a_query_result_is_assessed(calibrant, parquet, tmp_path) -> None:
    duckdb = pytest.importorskip("duckdb")
    query = calibrant("sql", "preds", "--by", "model").out
    preds = pyarrow.parquet.read_table(parquet)  # noqa: F841  (the query names it)
    result = duckdb.sql(query).to_arrow_table()
    pyarrow.parquet.write_table(result, tmp_path / "result.parquet")
    done = calibrant("assess", tmp_path / "result.parquet", "--json")
    expected = json.loads(calibrant("assess", parquet, "--by", "model", "--json").out)
    found = {each["group"]["model"]: each for each in json.loads(done.out)["results"]}
    for each in expected["results"]:
        assert found[each["group"]["model"]]["smooth_ece"] == each["smooth_ece"]


def test_hostile_groups(calibrant, tmp_path) -> None:
    names = ["<script>alert(1)</script>", "\x1b[2Jgone", "[bold red]x[/]", "y" * 100_000, ""]
    draw = np.random.default_rng(0)
    table = {
        "p": draw.random(50),
        "y": draw.integers(0, 2, 50),
        "g": np.array(names)[np.arange(50) % 5],
    }
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    done = calibrant("assess", path, "--by", "g")
    assert done.code == 0, done.err
    assert all(c.isprintable() or c == "\n" for c in done.out + done.err)
    assert "[bold red]x[/]" in done.out
    assert len(done.out) < 2000
    found = json.loads(calibrant("assess", path, "--by", "g", "--json").out)
    assert {each["group"]["g"] for each in found["results"]} == set(names)


def test_many_groups_are_summed_up(calibrant, tmp_path) -> None:
    draw = np.random.default_rng(1)
    n, path = 20_000, tmp_path / "x.parquet"
    p = draw.random(n)
    table = {"p": p, "y": (draw.random(n) < p).astype(int), "g": draw.integers(0, 5000, n)}
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    done = calibrant("assess", path, "--by", "g", "--max-groups", "2")
    lines = done.out.splitlines()
    assert sum("others)" in line for line in lines) == 1
    assert "The 2 largest are shown" in done.err


def test_answers_of_language_models(calibrant, tmp_path) -> None:
    draw = np.random.default_rng(2)
    lines = []
    for question in range(120):
        for _ in range(2):
            sure = round(float(draw.random()), 2)
            lines.append(
                {
                    "question_id": question,
                    "model": "ab"[question % 2],
                    "confidence": f"{round(100 * sure)}%",
                    "correct": bool(draw.random() < sure / 2),
                }
            )
    lines.append({"question_id": 999, "model": "a", "confidence": None, "correct": None})
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = calibrant("assess", path, "--log", "jsonl", "--by", "model")
    assert done.code == 0, done.err
    assert (
        "240 answers to 120 questions, 1 abstention. Probability: the field 'confidence'."
        in done.err
    )
    assert "2 of 2 groups are miscalibrated" in done.out
    found = json.loads(calibrant("assess", path, "--log", "jsonl", "--json").out)
    assert found["log"]["abstained"] == 1
    assert found["results"][0]["clusters"] == 120
    done = calibrant("assess", path, "--log", "jsonl", "--pos-label", "yes")
    assert (done.code, "`--pos-label`" in done.err) == (2, True)
    path.write_text('{"confidence": 0.5, "correct": 0.5}\n{"confidence": 0.5, "correct": 1}\n')
    done = calibrant("assess", path, "--log", "jsonl")
    assert (done.code, "`--outcomes soft`" in done.err) == (2, True)


def test_too_few_rows(calibrant, tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("p,y\n0.5,1\n")
    done = calibrant("assess", path)
    assert (done.code, type(done.refusal)) == (2, cal.errors.TooFewRows)
    done = calibrant("assess", path, "--confidence", "2")
    assert (done.code, "`--confidence`" in done.err) == (2, True)
    for seed in ("-1", "1.5", "x"):
        done = calibrant("assess", path, "--seed", seed)
        assert (done.code, "--seed" in done.err) == (2, True)
    done = calibrant("assess", path, "--scale", "cubic")
    assert (done.code, "`--scale`" in done.err) == (2, True)


def test_wrong_logs_name_options_that_exist(calibrant, tmp_path) -> None:
    def refused(name: str, rows: list, cure: str, *words: str) -> None:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        done = calibrant("assess", path, *words)
        assert (done.code, cure in done.err) == (2, True), done.err

    sample = {"doc_id": 0, "filtered_resps": ["a"], "resps": [["sure: confidence 50%"]]}
    both = [{**sample, "filter": f, "exact_match": 1.0} for f in ("strict", "loose")]
    refused("samples_x.jsonl", both, "`--filter ")
    refused("samples_x.jsonl", [{**sample, "bleu": 0.2}], "`--label ")
    refused("samples_x.jsonl", [{**sample, "exact_match": 1.0}], "")
    refused("y.jsonl", [{"prompt": 1}], "`--prob ", "--log", "jsonl")
    refused(
        "y.jsonl", [{"p": 0.5, "correct": 1}], "'quest'", "--log", "jsonl", "--cluster", "quest"
    )
    done = calibrant("assess", tmp_path / "y.jsonl", "--filter", "strict", "--log", "jsonl")
    assert (done.code, "`--filter" in done.err) == (2, True)
    path = tmp_path / "samples_x.jsonl"
    path.write_text(
        "".join(json.dumps({**row, "doc_id": k}) + "\n" for k in range(9) for row in both)
    )
    assert calibrant("assess", path, "--filter", "strict", "--by", "task").code == 0


def test_groups_that_are_summed_up_keep_their_clusters(calibrant, parquet, rows) -> None:
    words = ("--by", "day", "--cluster", "model", "--max-groups", "1", "--json")
    found = json.loads(calibrant("assess", parquet, *words).out)
    assert [each["clusters"] for each in found["results"]] == [2, 2]
    assert found["results"][1]["n"] + found["results"][0]["n"] == 400
    done = calibrant("report", parquet, *words[:-1], "-o", parquet.with_name("r.json"))
    assert done.code == 0, done.err
    page = json.loads(parquet.with_name("r.json").read_text())
    assert [group["assessment"]["clusters"] for group in page["groups"]] == [2, 2]
