"""The same rows by every way in, against their exact sums: the same bits, or a refusal, on every engine."""

from __future__ import annotations

import csv
import json
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from tests.fuzz.exact import Sums, exact_sums

import calibrant as cal
from calibrant.read import sql

__all__ = ["CLUSTERS", "WAYS", "Checks", "try_rows"]

PREDICTIONS = ["float64", "float32", "float16", "bool", "int8", "int64", "decimal", "wide decimal"]
LABELS = ["int64", "uint8", "int8", "int32", "uint64", "bool", "float64", "float32", "decimal"]
WEIGHTS = [None, "float64", "float32", "int64"]
GROUPS = [None, "text", "int64", "two columns"]
NODES = [2, 256, 1 << 16, 1 << 20]


@dataclass(frozen=True)
class Rows:
    """Some rows, as Python's values, and the Arrow columns that hold them."""

    y: list[Any]
    p: list[Any]
    table: pa.Table
    kinds: tuple[str, str]

    @property
    def weights(self) -> list[Any] | None:
        return self.table["w"].to_pylist() if "w" in self.table.column_names else None

    @property
    def by(self) -> list[str]:
        return [name for name in ("g", "h") if name in self.table.column_names]

    @property
    def groups(self) -> list[Any] | None:
        columns = [self.table[name].to_pylist() for name in self.by]
        if len(columns) == 2:
            return list(zip(*columns, strict=True))
        return columns[0] if columns else None


@dataclass
class Checks:
    """How many comparisons were made, how many refusals there were, and what differed."""

    made: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{sum(self.made.values()):,} checks over {len(self.made)} ways in, "
            f"{sum(self.refused.values()):,} refusals; {len(self.failures)} failures"
        )


def drawn(rng: np.random.Generator) -> Rows:
    """Rows of a random kind, close to every border that there is."""
    n = int(rng.integers(1, 40))
    kinds = (str(rng.choice(LABELS)), str(rng.choice(PREDICTIONS)))
    y = [_label(rng, kinds[0]) for _ in range(n)]
    p = [_prediction(rng, kinds[1]) for _ in range(n)]
    if rng.random() < 0.3:
        for column in (y, p):
            for row in np.flatnonzero(rng.random(n) < 0.2):
                column[row] = None
    columns = {"y": _column(y, kinds[0]), "p": _column(p, kinds[1])}
    weights, groups = rng.choice(np.array(WEIGHTS)), rng.choice(np.array(GROUPS))
    if weights is not None:
        columns["w"] = pa.array(_weights(rng, n, weights), pa.type_for_alias(weights))
    if groups is not None:
        names = ["a", "b", "x, y", 'süd "q"', "'; --", None]
        text = [names[k] for k in rng.integers(0, 6, n)]
        numbers = [None if k == 3 else int(k) - 1 for k in rng.integers(0, 4, n)]
        columns["g"] = pa.array(numbers, pa.int64()) if groups == "int64" else pa.array(text)
        if groups == "two columns":
            columns["h"] = pa.array(numbers, pa.int64())
    table = pa.table(columns)
    # Half floats of older Arrows come as NumPy's, which are no numbers of Python's.
    y, p = ([getattr(v, "item", lambda v=v: v)() for v in table[c].to_pylist()] for c in "yp")
    return Rows(y, p, table, kinds)


def _weights(rng: np.random.Generator, n: int, kind: str) -> list[Any]:
    """Eighths, whose sums are floats in any order; some that are none."""
    eighths = rng.integers(0, 64, n)
    if kind == "int64":
        values: list[Any] = [int(k) - (rng.random() < 0.02) * 100 for k in eighths]
        return [None if rng.random() < 0.03 else value for value in values]
    broken = [None, np.nan, np.inf, -0.125, -np.inf]
    picks = rng.integers(0, len(broken), n)
    return [
        broken[pick] if rng.random() < 0.05 else float(k) / 8
        for k, pick in zip(eighths, picks, strict=True)
    ]


def _label(rng: np.random.Generator, kind: str) -> Any:
    if kind == "bool":
        return bool(rng.integers(2))
    odd = {"uint64": [2, 2**63], "int8": [-1, 2], "float64": [0.5, np.nan, 2.0, -0.0]}
    value = rng.choice(odd.get(kind, [2])) if rng.random() < 0.03 else int(rng.integers(2))
    if kind == "decimal":
        return Decimal(int(value))
    return float(value) if kind.startswith("float") else int(value)


def _prediction(rng: np.random.Generator, kind: str) -> Any:
    if kind == "bool":
        return bool(rng.integers(2))
    if kind.startswith("int"):
        return int(rng.choice([0, 1, 1, 0, 0, 1, 2, -1]))
    if "decimal" in kind:
        return _decimal(rng, 20 if kind == "wide decimal" else 15)
    draw = rng.random()
    if draw < 0.35:
        return float(rng.random())
    if draw < 0.8:  # a border of some grid, or a neighbour of it
        edge = float(rng.integers(0, 2**20 + 1)) / 2.0 ** int(rng.integers(0, 21))
        edge = min(edge, 1.0)
        return float(np.nextafter(edge, rng.choice([-1.0, edge, 2.0])))
    special = [0.0, -0.0, 1.0, 5e-324, 1e-310, 1 - 2**-53, 1 - 2**-24, 2**-36, 2**-37, 0.1, 1 / 3]
    broken = [np.nan, np.inf, -np.inf, 1 + 2**-52, -5e-324, 7.0]
    return float(rng.choice(special if draw < 0.97 else broken))


def _decimal(rng: np.random.Generator, digits: int) -> Decimal:
    """A border of a grid of at most so many halvings, or next to it, or anything."""
    if rng.random() < 0.3:
        return Decimal(int(rng.integers(0, 10**15 + 2))).scaleb(-15)
    halvings = int(rng.integers(0, digits + 1))
    edge = Decimal(int(rng.integers(0, 2**halvings + 1))) / 2**halvings
    return edge + Decimal(int(rng.choice([0, 0, 1, -1]))).scaleb(-digits)


def _column(values: list[Any], kind: str) -> pa.Array:
    if kind == "float16":
        values = [None if v is None else np.float16(v) for v in values]
    kinds = {
        "bool": pa.bool_(),
        "decimal": pa.decimal128(18, 15),
        "wide decimal": pa.decimal128(38, 20),
    }
    return pa.array(
        values, type=kinds.get(kind) or pa.type_for_alias(kind.replace("float16", "halffloat"))
    )


# -- ways in -----------------------------------------------------------------------------------


def scan(source: Any, rows: Rows, nodes: int) -> cal.Sketch | cal.Sketches:
    return cal.scan(
        source,
        y_true="y",
        y_prob="p",
        sample_weight=None if rows.weights is None else "w",
        by=rows.by or None,
        nodes=nodes,
        on_invalid="drop",
    )


def _numpy(rows: Rows, _: Path) -> dict[str, Any]:
    def array(values: list[Any]) -> Any:
        if any(value is None or isinstance(value, Decimal) for value in values):
            return np.array(values, dtype=object)
        return np.array(values)

    columns = {"y": array(rows.y), "p": array(rows.p)}
    return columns | {
        name: array(rows.table[name].to_pylist()) for name in rows.table.column_names[2:]
    }


def _written(write: Callable[[pa.Table, Path], object], ending: str) -> Callable[[Rows, Path], Any]:
    def written(rows: Rows, folder: Path) -> Path:
        path = folder / f"rows.{ending}"
        write(rows.table, path)
        return path

    return written


def _csv(rows: Rows, folder: Path) -> Path:
    path = folder / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows.table.column_names)
        writer.writerows([_text(value) for value in row] for row in _in_text(rows))
    return path


def _in_text(rows: Rows) -> Iterator[tuple[Any, ...]]:
    """The rows, with numbers for predictions that are truth values: in text those are none."""
    p = (int(value) if isinstance(value, bool) else value for value in rows.p)
    others = (rows.table[name].to_pylist() for name in rows.table.column_names[2:])
    return zip(rows.y, p, *others, strict=True)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, str):
        return value
    return repr(value).lower() if isinstance(value, bool) else repr(value)


def _json_lines(rows: Rows, folder: Path) -> Path:
    path = folder / "rows.jsonl"
    names = rows.table.column_names
    lines = (json.dumps(dict(zip(names, map(_plain, row), strict=True))) for row in _in_text(rows))
    path.write_text("".join(line + "\n" for line in lines))
    return path


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _stream(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def _dask(rows: Rows, _: Path) -> Any:
    import dask.dataframe

    # Of what pandas holds as objects, Dask makes text.
    frame = rows.table.to_pandas(types_mapper=pd.ArrowDtype)
    return dask.dataframe.from_pandas(frame, npartitions=2)


def _ray(rows: Rows, _: Path) -> Any:
    import ray

    if not ray.is_initialized():
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
        ray.data.DataContext.get_current().enable_progress_bars = False
    return ray.data.from_arrow(rows.table)


def _spark(rows: Rows, folder: Path) -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = session.config("spark.ui.showConsoleProgress", "false")
    # By way of a file: rows of Python's have no types of their own.
    path = Path(tempfile.mkdtemp(dir=folder)) / "rows.parquet"
    pq.write_table(rows.table, path)
    return session.getOrCreate().read.parquet(str(path))


WAYS: dict[str, Callable[[Rows, Path], Any]] = {
    "dict of arrays": _numpy,
    "iterator": lambda rows, _: iter([rows.table.slice(0, 5), rows.table.slice(5)]),
    "arrow": lambda rows, _: rows.table,
    "arrow in chunks": lambda rows, _: pa.concat_tables(
        [rows.table.slice(0, 3), rows.table.slice(3)]
    ),
    "arrow reader": lambda rows, _: rows.table.to_reader(max_chunksize=4),
    "arrow dataset": lambda rows, _: pa.dataset.dataset(rows.table),
    "pandas": lambda rows, _: rows.table.to_pandas(),
    "pandas of arrow": lambda rows, _: rows.table.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas nullable": lambda rows, _: rows.table.to_pandas().convert_dtypes(),
    "polars": lambda rows, _: pl.from_arrow(rows.table),
    "polars lazy": lambda rows, _: pl.from_arrow(rows.table).lazy(),
    "duckdb": lambda rows, _: duckdb.from_arrow(rows.table),
    "sql": lambda rows, _: rows.table,
    "parquet": _written(
        lambda table, path: pq.write_table(table, path, row_group_size=9), "parquet"
    ),
    "arrow file": _written(lambda table, path: feather.write_feather(table, path), "arrow"),
    "arrow stream": _written(_stream, "ipc"),
    "csv": _csv,
    "json lines": _json_lines,
}
ON_CLUSTERS: dict[str, Callable[[Rows, Path], Any]] = {
    "dask": _dask,
    "ray": _ray,
    "spark": _spark,
}
"""Ways of which one check takes a second, where the engine is installed."""
CLUSTERS = {"dask": "dask", "ray": "ray", "spark": "pyspark"}
"""The package of each."""
NO_HALF_FLOATS = {"polars", "polars lazy", "duckdb", "sql", "pandas of arrow", "csv", "json lines"}
NO_HALF_FLOATS |= {"dask", "spark"}


def sums_of(result: cal.Sketch | cal.Sketches) -> Sums:
    groups = result.items() if isinstance(result, cal.Sketches) else [(None, result)]
    return {group: (_sums_of(sketch), dict(sketch.dropped)) for group, sketch in groups}


def _sums_of(sketch: cal.Sketch) -> dict[tuple[int, int], tuple[Fraction, ...]]:
    columns = [sketch.counts, sketch.offsets]
    if sketch.weighted:
        columns += [sketch.weights, sketch.squared_weights, sketch.weighted_offsets]
    return {
        (int(cell), label): tuple(Fraction(column[row, label].item()) for column in columns)
        for row, cell in enumerate(sketch.cells)
        for label in range(2)
        if sketch.counts[row, label]
    }


def try_rows(least: int, seed: int = 0, ways: Iterable[str] = tuple(WAYS)) -> Checks:
    """Draw rows and take each by every way in, until so many comparisons are made."""
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        for case in count():
            if sum(checks.made.values()) >= least:
                break
            rng = np.random.default_rng([seed, case])
            rows, nodes = drawn(rng), int(rng.choice(NODES))
            exact = exact_sums(rows.y, rows.p, nodes, rows.weights, rows.groups)
            for way in ways:
                if "float16" in rows.kinds and way in NO_HALF_FLOATS:
                    continue
                if "wide decimal" in rows.kinds and way == "sql":
                    continue  # the database rounds such decimals itself, DuckDB before version 2 badly
                checks.made[way] += 1
                found = taken(way, rows, nodes, Path(folder))
                if isinstance(found, cal.InputError):
                    checks.refused[way] += 1
                    if _may_be_refused(found, rows, exact):
                        continue
                if found != exact:
                    checks.failures.append(
                        f"case {case} of seed {seed}, {way}, {rows.kinds}, {nodes} nodes: {found} "
                        f"in place of {exact}"[:900]
                    )
    return checks


def _may_be_refused(found: cal.InputError, rows: Rows, exact: Sums) -> bool:
    """Whether there is nothing to sum, or it is decimals that engines round in two ways."""
    weights = (sums[2] for cells, _ in exact.values() for sums in cells.values() if len(sums) > 2)
    none = not any(cells for cells, _ in exact.values())
    weightless = rows.weights is not None and not any(weights)
    return none or weightless or "wide decimal" in rows.kinds


def taken(way: str, rows: Rows, nodes: int, folder: Path) -> Sums | Exception:
    """The sums by one way in, or the refusal; anything else that is raised is a failure."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of the engine, about the rows
            source = (WAYS | ON_CLUSTERS)[way](rows, folder)
        result = _by_sql(source, rows, nodes) if way == "sql" else scan(source, rows, nodes)
    except cal.InputError as refusal:
        return refusal
    except Exception as error:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return sums_of(result)


def _by_sql(table: pa.Table, rows: Rows, nodes: int) -> cal.Sketch | cal.Sketches:
    weight = None if rows.weights is None else "w"
    query = sql.query("rows", "p", "y", rows.by, "duckdb", weight=weight, nodes=nodes)
    with duckdb.connect() as warehouse:
        warehouse.register("rows", table)
        return sql.read(warehouse.execute(query))
