"""Ways in by engines that are not always installed, and slow to start: each reads many cases at a time."""

from __future__ import annotations

import atexit
import glob
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from tests.fuzz.draws import Rows
from tests.fuzz.ways import (
    IN_DATABASES,
    NARROW,
    NO_HALVES,
    Way,
    arrays,
    by_query,
    from_arrays,
    scan,
    slices,
)

__all__ = ["ENGINES", "SERVERS", "postgres"]


def _tensors(rows: Rows, folder: Path) -> dict[str, Any]:
    import torch

    columns = arrays(rows, folder)
    with_nan = {n: c.astype(np.float64) if c.dtype == object else c for n, c in columns.items()}
    return {name: torch.from_numpy(column) for name, column in with_nan.items()}


def _dask(rows: Rows, _: Path) -> Any:
    import dask.dataframe

    # Of what pandas holds as objects, Dask makes text.
    frame = rows.table.to_pandas(types_mapper=pd.ArrowDtype)
    return dask.dataframe.from_pandas(frame, npartitions=3)


@cache
def _started_ray() -> Any:
    import ray

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray


def _ray(rows: Rows, _: Path) -> Any:
    return _started_ray().data.from_arrow(_thirds(rows))


def _ray_of_pandas(rows: Rows, _: Path) -> Any:
    return _started_ray().data.from_pandas([part.to_pandas() for part in _thirds(rows)])


def _thirds(rows: Rows) -> list[pa.Table]:
    return list(slices(rows, -(-rows.table.num_rows // 3))) or [rows.table]


@cache
def _session() -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = session.config("spark.ui.showConsoleProgress", "false")
    session = session.config("spark.sql.session.timeZone", "UTC")
    return session.config("spark.sql.shuffle.partitions", "2").getOrCreate()


def spark_connect(rows: Rows, _: Path) -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return SparkSession.builder.remote("local[2]").getOrCreate().createDataFrame(rows.table)


def stop_spark() -> None:
    """End the session that runs."""
    from pyspark.sql import SparkSession

    _session.cache_clear()
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


def _spark(rows: Rows, folder: Path) -> Any:
    """By way of a file: rows of Python's have no types of their own."""
    path = Path(tempfile.mkdtemp(dir=folder)) / "rows.parquet"
    pq.write_table(rows.table, path)
    return _session().read.parquet(str(path))


def _in_spark(rows: Rows, folder: Path) -> Callable[[str], Any]:
    _spark(rows, folder).createOrReplaceTempView("rows")
    return lambda text: _session().sql(text).toPandas()


def _ibis(rows: Rows, _: Path) -> Any:
    import ibis

    connection = ibis.duckdb.connect()
    connection.con.register("given", rows.table)
    connection.con.execute("CREATE TABLE rows AS SELECT * FROM given")
    return connection.table("rows")


def _modin(rows: Rows, _: Path) -> Any:
    os.environ.setdefault("MODIN_ENGINE", "python")
    import modin.pandas

    return modin.pandas.DataFrame(rows.table.to_pandas())


# -- PostgreSQL ----------------------------------------------------------------------------------

SERVERS = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
KINDS_IN_POSTGRES = {
    "double": "DOUBLE PRECISION",
    "float": "REAL",
    "bool": "BOOLEAN",
    "int8": "SMALLINT",
    "uint8": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint64": "NUMERIC(20, 0)",
    "string": "TEXT",
    "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP",
    "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
    "binary": "BYTEA",
}


@cache
def postgres() -> Any:
    """A connection to a server of our own, which ends when we do."""
    import psycopg

    home = tempfile.mkdtemp(prefix="calibrant-pg-")
    # The server refuses to run as root.
    user = pwd.getpwnam("postgres") if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    os.chown(home, user.pw_uid, user.pw_gid)
    become = {"user": user.pw_uid, "group": user.pw_gid} if os.getuid() == 0 else {}

    def server(name: str, *options: str) -> None:
        command = [os.path.join(SERVERS[-1], name), "-D", f"{home}/data", *options]
        subprocess.run(command, check=True, cwd=home, capture_output=True, timeout=60, **become)

    server("initdb", "-A", "trust", "-U", "tester", "-N")
    flags = f"-c listen_addresses='' -c unix_socket_directories={home} -c fsync=off"
    server("pg_ctl", "-w", "-l", f"{home}/log", "-o", flags, "start")
    connection = psycopg.connect(host=home, user="tester", dbname="postgres", autocommit=True)

    def end() -> None:
        connection.close()
        server("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(home, ignore_errors=True)

    atexit.register(end)
    connection.execute("SET TIME ZONE 'UTC'")
    return connection


def _kind_in_postgres(kind: Any) -> str:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_decimal(kind):
        return f"NUMERIC({kind.precision}, {kind.scale})"
    return KINDS_IN_POSTGRES[str(kind)]


def _in_postgres(rows: Rows, _: Path) -> Callable[[str], Any]:
    connection = postgres()
    columns = (f'"{field.name}" {_kind_in_postgres(field.type)}' for field in rows.table.schema)
    connection.execute(f"DROP TABLE IF EXISTS rows; CREATE TABLE rows ({', '.join(columns)})")
    with connection.cursor().copy("COPY rows FROM STDIN") as copy:
        for row in rows.as_python():
            copy.write_row(row)
    return lambda text: connection.execute(text)


IN_POSTGRES = IN_DATABASES | {"bool predictions"}
NO_DECIMALS = frozenset({"decimal", "broad decimal", "wide decimal"})
ENGINES: dict[str, Way] = {
    "torch": Way(_tensors, from_arrays, NO_DECIMALS, "torch", groups=False),
    "dask": Way(_dask, scan, NO_HALVES, "dask"),
    "ray": Way(_ray, scan, package="ray"),
    "ray of pandas": Way(_ray_of_pandas, scan, package="ray"),
    "spark": Way(_spark, scan, NARROW | {"uint64 labels"}, "pyspark"),
    "sql on spark": Way(_in_spark, by_query("spark"), IN_DATABASES, "pyspark", percent=False),
    "ibis": Way(_ibis, scan, NARROW, "ibis"),
    "modin": Way(_modin, scan, package="modin"),
    "sql on postgres": Way(
        _in_postgres, by_query("postgres"), IN_POSTGRES, "psycopg", percent=False
    ),
}
