"""Every engine as a function from columns to a source, so that one suite runs over all of them."""

from __future__ import annotations

import importlib.util
import os
import sys

import numpy as np
import pytest

LIGHT = {
    "pandas": ["pandas"],
    "pandas nullable": ["pandas"],
    "pandas arrow": ["pandas", "pyarrow"],
    "polars": ["polars"],
    "polars lazy": ["polars"],
    "arrow table": ["pyarrow"],
    "arrow dataset": ["pyarrow"],
    "arrow reader": ["pyarrow"],
    "duckdb": ["duckdb", "pyarrow"],
    "iterator": ["pyarrow"],
    "dict": [],
    "parquet": ["pyarrow"],
    "csv": ["pyarrow"],
    "jsonl": ["pyarrow"],
    "arrow file": ["pyarrow"],
}
HEAVY = {
    "spark": ["pyspark"],
    "spark connect": ["pyspark", "grpc"],
    "dask": ["dask"],
    "ray": ["ray"],
    "ray of pandas": ["ray"],
    "ibis": ["ibis"],
    "modin": ["modin"],
}


# Whose columns have types of their own: CSV and JSON are text, Dask makes text of what pandas holds as
# objects, and what stands for pandas' nullable types here are numbers and text.
TYPED = [
    name
    for name in (*LIGHT, *HEAVY)
    if name not in ("csv", "jsonl", "dask", "pandas nullable", "spark connect", "ray of pandas")
]


def pytest_generate_tests(metafunc):
    marks = {name: [pytest.mark.heavy] if name in HEAVY else [] for name in (*LIGHT, *HEAVY)}
    for fixture, names in (("engine", marks), ("typed_engine", TYPED)):
        if fixture in metafunc.fixturenames:
            params = [pytest.param(name, id=name, marks=marks[name]) for name in names]
            metafunc.parametrize(fixture, params, indirect=True, scope="session")


@pytest.fixture(scope="session")
def engine(request, tmp_path_factory):
    """A function from a dict of lists (None for missing) to a source of the engine."""
    return _started(request, tmp_path_factory)


@pytest.fixture(scope="session")
def typed_engine(request, tmp_path_factory):
    """As `engine`, for those whose columns hold dates, bytes and lists."""
    return _started(request, tmp_path_factory)


def _started(request, tmp_path_factory):
    name = request.param
    for package in {**LIGHT, **HEAVY}[name]:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{name} could not be started: {package} is not installed")
    return _MAKERS[name](request, tmp_path_factory)


def pytest_terminal_summary(terminalreporter, config):
    """Say at the end of `make test-all`, in one place, what did not run and why."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = {str(report.longrepr[-1]) for report in skipped if isinstance(report.longrepr, tuple)}
    if config.option.markexpr == "heavy" and reasons:
        terminalreporter.section("did not run")
        for reason in sorted(reasons):
            terminalreporter.line(reason.removeprefix("Skipped: "))


def arrow_table(columns, chunks=3):
    """An Arrow table in several chunks, with nulls for None."""
    import pyarrow as pa

    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    size = max(1, -(-table.num_rows // chunks))
    return pa.Table.from_batches(table.to_batches(max_chunksize=size), schema=table.schema)


def _simple(convert):
    def maker(request, tmp_path_factory):
        return lambda columns: convert(columns)

    return maker


def _pandas(columns):
    import pandas as pd

    return pd.DataFrame({name: _plain_array(values) for name, values in columns.items()})


def _plain_array(values):
    plain = [np.nan if value is None else value for value in values]
    if not any(isinstance(value, str | list) for value in values):
        return np.array(plain)
    array = np.empty(len(plain), dtype=object)
    array[:] = plain
    return array


def _pandas_nullable(columns):
    import pandas as pd

    return pd.DataFrame({name: _extension_array(pd, values) for name, values in columns.items()})


def _extension_array(pd, values):
    if any(isinstance(value, str) for value in values):
        return pd.array(values, dtype="string")
    missing = np.array([value is None for value in values])
    filled = np.array([0 if value is None else value for value in values])
    if filled.dtype.kind == "f":
        return pd.arrays.FloatingArray(filled.astype(np.float64), missing)
    return pd.arrays.IntegerArray(filled.astype(np.int64), missing)


def _pandas_arrow(columns):
    import pandas as pd

    return arrow_table(columns).to_pandas(types_mapper=pd.ArrowDtype)


def _polars(columns):
    import polars as pl

    return pl.DataFrame(columns, strict=False)


def _dataset(columns):
    import pyarrow.dataset as ds

    return ds.dataset(arrow_table(columns))


CONNECTIONS = []


def _duckdb(columns):
    import duckdb

    CONNECTIONS.append(duckdb.connect())  # before DuckDB 1.2 relations do not keep theirs
    return CONNECTIONS[-1].from_arrow(arrow_table(columns))


def _files(suffix, write):
    def maker(request, tmp_path_factory):
        def make(columns):
            folder = tmp_path_factory.mktemp("source")
            table = arrow_table(columns)
            batches = table.to_batches() or [_no_rows(table.schema)]
            for part, batch in enumerate(batches):
                write(batch, folder / f"part-{part}{suffix}")
            return str(folder / f"*{suffix}")

        return make

    return maker


def _no_rows(schema):
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([], schema=schema)


def _write_parquet(batch, path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_batches([batch]), path, row_group_size=700)


def _write_csv(batch, path):
    with open(path, "w", newline="") as sink:
        sink.write(",".join(batch.schema.names) + "\n")
        for row in batch.to_pylist():
            sink.write(",".join("" if v is None else str(v) for v in row.values()) + "\n")


def _write_jsonl(batch, path):
    import json

    with open(path, "w") as sink:
        for row in batch.to_pylist():
            sink.write(json.dumps(row) + "\n")


def _write_arrow(batch, path):
    import pyarrow as pa

    with pa.ipc.new_file(path, batch.schema) as writer:
        writer.write(batch)


def _spark(request, tmp_path_factory):
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    request.addfinalizer(spark.stop)
    return lambda columns: spark.createDataFrame(arrow_table(columns)).repartition(3)


def _spark_connect(request, tmp_path_factory):
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    request.addfinalizer(spark.stop)
    return lambda columns: spark.createDataFrame(arrow_table(columns))


def _dask(request, tmp_path_factory):
    import dask.dataframe as dd

    return lambda columns: dd.from_pandas(_pandas(columns), npartitions=3)


def _started_ray(request):
    import ray

    ray.data.DataContext.get_current().enable_progress_bars = False
    if not ray.is_initialized():
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        request.addfinalizer(ray.shutdown)
    return ray


def _ray_of_pandas(request, tmp_path_factory):
    ray = _started_ray(request)

    def make(columns):
        frame = _pandas(columns)
        half = -(-len(frame) // 2)
        return ray.data.from_pandas([frame.iloc[:half], frame.iloc[half:]])

    return make


def _ray(request, tmp_path_factory):
    ray = _started_ray(request)

    def make(columns):
        rows = arrow_table(columns)
        return ray.data.from_arrow([rows.slice(at, 900) for at in range(0, rows.num_rows, 900)])

    return make


def _ibis(request, tmp_path_factory):
    import ibis

    connection = ibis.duckdb.connect()

    def make(columns):
        rows = arrow_table(columns)
        connection.con.register("rows", rows)
        connection.con.execute("CREATE OR REPLACE TABLE source AS SELECT * FROM rows")
        return connection.table("source")

    return make


def _modin(request, tmp_path_factory):
    os.environ.setdefault("MODIN_ENGINE", "python")
    import modin.pandas as mpd

    return lambda columns: mpd.DataFrame(_pandas(columns))


_MAKERS = {
    "pandas": _simple(_pandas),
    "pandas nullable": _simple(_pandas_nullable),
    "pandas arrow": _simple(_pandas_arrow),
    "polars": _simple(_polars),
    "polars lazy": _simple(lambda columns: _polars(columns).lazy()),
    "arrow table": _simple(arrow_table),
    "arrow dataset": _simple(_dataset),
    "arrow reader": _simple(lambda columns: arrow_table(columns).to_reader()),
    "duckdb": _simple(_duckdb),
    "iterator": _simple(lambda columns: iter(arrow_table(columns).to_batches())),
    "dict": _simple(lambda columns: {k: np.array(v, dtype=object) for k, v in columns.items()}),
    "parquet": _files(".parquet", _write_parquet),
    "csv": _files(".csv", _write_csv),
    "jsonl": _files(".jsonl", _write_jsonl),
    "arrow file": _files(".arrow", _write_arrow),
    "spark": _spark,
    "spark connect": _spark_connect,
    "dask": _dask,
    "ray": _ray,
    "ray of pandas": _ray_of_pandas,
    "ibis": _ibis,
    "modin": _modin,
}
