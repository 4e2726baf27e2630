"""The report's JSON is as its published schema says."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/report.json").read_text())


@pytest.mark.parametrize("options", [(), ("--by", "model"), ("--profile", "weather")], ids=str)
def test_a_report_follows_its_schema(calibrant, parquet, tmp_path, options) -> None:
    done = calibrant("report", parquet, *options, "-o", tmp_path / "page.json")
    assert done.code == 0, done.err
    jsonschema.validate(json.loads((tmp_path / "page.json").read_text()), SCHEMA)
