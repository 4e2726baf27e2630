"""Every JSON document of the command line is as its published schema says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pyarrow.csv
import pytest

ROOT = Path(__file__).parents[2]
SCHEMAS = {
    path.stem: json.loads(path.read_text()) for path in (ROOT / "docs/schemas").glob("*.json")
}
RUNS = [
    ("assess",),
    ("assess", "--by", "model", "--fail-above", "0.5"),
    ("assess", "--cluster", "day", "--weight", "w", "--confidence", "0.9"),
    ("assess", "--profile", "clinical", "--thresholds", "0.2"),
    ("compare", "--by", "model"),
    ("certify", "--risk", "0.4", "--by", "model"),
    ("selective", "--by", "model"),
    ("decide", "--thresholds", "0.2,0.5"),
    ("monitor", "--batch", "day"),
    ("datasets",),
]


def named_in_the_source() -> set[str]:
    """The schemas that the code writes into documents."""
    text = "".join(path.read_text() for path in (ROOT / "src/calibrant").rglob("*.py"))
    return set(re.findall(r'"(calibrant\.[a-z]+/\d+)"', text))


def test_a_schema_is_published_for_every_document():
    assert {schema["$id"] for schema in SCHEMAS.values()} == named_in_the_source()
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("run", RUNS, ids=" ".join)
def test_what_is_written_follows_it(calibrant, parquet, run):
    verb, *options = run
    files = () if verb == "datasets" else (parquet,)
    done = calibrant(verb, *files, *options, "--json")
    assert done.code in (0, 4), done.err
    jsonschema.validate(json.loads(done.out), SCHEMAS[verb])


@pytest.mark.parametrize("options", [(), ("--by", "model"), ("--profile", "weather")], ids=str)
def test_a_report_follows_its_schema(calibrant, parquet, tmp_path, options):
    done = calibrant("report", parquet, *options, "-o", tmp_path / "page.json")
    assert done.code == 0, done.err
    jsonschema.validate(json.loads((tmp_path / "page.json").read_text()), SCHEMAS["report"])


def test_groups_without_rows_enough_and_dropped_rows_follow_it(calibrant, tmp_path, rows):
    few = {name: column[:60].copy() for name, column in rows.items()}
    few["model"][0] = "lone"
    few["p"][3] = float("nan")
    path = tmp_path / "few.csv"
    pyarrow.csv.write_csv(pyarrow.table(few), path)
    done = calibrant("assess", path, "--by", "model", "--on-invalid", "drop", "--json")
    jsonschema.validate(json.loads(done.out), SCHEMAS["assess"])


@pytest.mark.parametrize("verb", ["assess", "certify", "selective"])
def test_what_is_said_of_a_log_follows_it(calibrant, tmp_path, verb):
    path = tmp_path / "log.jsonl"
    lines = (
        {"question": k, "confidence": 0.5 + k / 200, "correct": k % 3 > 0, "model": "m"}
        for k in range(90)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    done = calibrant(verb, path, "--log", "jsonl", "--json")
    assert done.code in (0, 4), done.err
    document = json.loads(done.out)
    assert document["log"] is not None
    jsonschema.validate(document, SCHEMAS[verb])
    assert calibrant(verb, path, "--log", "jsonl", "--weight", "model").code == 2
