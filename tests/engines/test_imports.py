"""Using one engine never imports another."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from importlib.metadata import version

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
# Before version 2 DuckDB hands its results over by way of others.
OF_DUCKDB = set() if version("duckdb") >= "2" else {"pandas", "pyarrow"}
CASES = {
    "dict": ("import numpy", f"{ROWS}", set()),
    "pandas": ("import pandas as pd", f"pd.DataFrame({ROWS})", set()),
    "polars": ("import polars as pl", f"pl.DataFrame({ROWS})", set()),
    "polars lazy": ("import polars as pl", f"pl.LazyFrame({ROWS})", set()),
    "pyarrow": ("import pyarrow as pa", f"pa.table({ROWS})", set()),
    "duckdb": (
        "import duckdb",
        "duckdb.sql(\"SELECT 0.25 AS p, 0 AS y, 'a' AS g UNION ALL SELECT 0.75, 1, 'b'\")",
        OF_DUCKDB,
    ),
    "csv": (
        "import pathlib; pathlib.Path('rows.csv').write_text('p,y,g\\n0.25,0,a\\n0.75,1,b\\n')",
        "'rows.csv'",
        {"pyarrow"},
    ),
}
# The others hand over batches of Arrow for scales other than probability and for soft labels.
EVERY_SCALE = ("dict", "polars", "polars lazy", "pyarrow", "csv")
SPARK = """
import os
from pyspark.sql import SparkSession
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
"""
RAY = """
import ray
ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
ray.data.DataContext.get_current().enable_progress_bars = False
"""
MODIN = "import os; os.environ['MODIN_ENGINE'] = 'python'\nimport modin.pandas as mpd"
HEAVY = {
    "pyspark": (
        SPARK,
        "spark.createDataFrame([(0.25, 0, 'a'), (0.75, 1, 'b')], 'p double, y int, g string')",
        set(),
    ),
    "dask": ("import dask.dataframe as dd", f"dd.from_dict({ROWS}, npartitions=1)", set()),
    "ray": (RAY, f"ray.data.from_pandas(__import__('pandas').DataFrame({ROWS}))", set()),
    "ibis": ("import ibis", f"ibis.memtable({ROWS})", {"duckdb"}),  # its backend
    "modin": (MODIN, f"mpd.DataFrame({ROWS})", set()),
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
if {every_scale}:
    for options in ({{"scale": "logit"}}, {{"labels": "soft"}}):
        assert cal.scan(source, y_true="y", y_prob="p", by="g", **options).total().n == 2
print("loaded", *(name for name in {engines} if name in set(sys.modules) - brought))
"""


def imported_by(code, folder):
    """The engines that the code says it has loaded."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd=folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return set(done.stdout.splitlines()[-1].split()) - {"loaded"}


@pytest.mark.parametrize(
    "case", [*CASES, *(pytest.param(case, marks=pytest.mark.heavy) for case in HEAVY)]
)
def test_no_other_engine_is_imported(case, tmp_path):
    if case in HEAVY and importlib.util.find_spec(case) is None:
        pytest.skip(f"{case} could not be started: it is not installed")
    prepare, source, allowed = {**CASES, **HEAVY}[case]
    every_scale = case in EVERY_SCALE
    code = CODE.format(
        prepare=prepare, source=source, engines=sorted(ENGINES), every_scale=every_scale
    )
    assert imported_by(code, tmp_path) <= allowed


TORCH = """
import sys
import torch
try:
    import torchmetrics
except ImportError:
    pass
brought = set(sys.modules)
from calibrant.integrations.torch import MulticlassSmoothECE, ReliabilityDiagram, smooth_ece_loss
p, y = torch.tensor([0.25, 0.75]), torch.tensor([0, 1])
metric = ReliabilityDiagram()
metric.update(p, y)
metric.compute()
classes = MulticlassSmoothECE(2)
classes.update(torch.stack([1 - p, p], 1), y)
classes.compute()
smooth_ece_loss(p, y)
print("loaded", *(name for name in {engines} if name in set(sys.modules) - brought))
"""


@pytest.mark.heavy
def test_torch_metrics_import_no_engine(tmp_path):
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch could not be started: it is not installed")
    assert imported_by(TORCH.format(engines=sorted(ENGINES)), tmp_path) == set()
