"""Using one engine never imports another."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENGINES = {
    "pandas",
    "polars",
    "duckdb",
    "pyarrow",
    "pyspark",
    "dask",
    "ray",
    "ibis",
    "modin",
    "torch",
}
ROWS = "{'p': [0.25, 0.75], 'y': [0, 1], 'g': ['a', 'b']}"
CASES = {
    "dict": ("import numpy", f"{ROWS}", set()),
    "pandas": ("import pandas as pd", f"pd.DataFrame({ROWS})", set()),
    "polars": ("import polars as pl", f"pl.DataFrame({ROWS})", set()),
    "polars lazy": ("import polars as pl", f"pl.LazyFrame({ROWS})", set()),
    "pyarrow": ("import pyarrow as pa", f"pa.table({ROWS})", set()),
    "duckdb": (
        "import duckdb",
        "duckdb.sql(\"SELECT 0.25 AS p, 0 AS y, 'a' AS g UNION ALL SELECT 0.75, 1, 'b'\")",
        set(),
    ),
    "csv": (
        "import pathlib; pathlib.Path('rows.csv').write_text('p,y,g\\n0.25,0,a\\n0.75,1,b\\n')",
        "'rows.csv'",
        {"pyarrow"},
    ),
}
CODE = """
import sys
{prepare}
source = {source}
brought = set(sys.modules)
import calibrant as cal
whole = cal.scan(source, y_true="y", y_prob="p")
groups = cal.scan(source, y_true="y", y_prob="p", by="g")
assert groups.total() == whole and whole.n == 2
print(",".join(name for name in {engines} if name in set(sys.modules) - brought))
"""


@pytest.mark.parametrize("case", CASES)
def test_no_other_engine_is_imported(case, tmp_path):
    prepare, source, allowed = CASES[case]
    code = CODE.format(prepare=prepare, source=source, engines=sorted(ENGINES))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.strip().split(",")) - {""}
    assert imported <= allowed
