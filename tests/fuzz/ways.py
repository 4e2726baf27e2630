"""Every way in: how rows become something that calibrant reads, and what it makes of it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
from tests.fuzz.draws import Rows

import calibrant as cal
from calibrant.cli import main
from calibrant.data.cell_sums import DEFAULT_NODES
from calibrant.io import sql

__all__ = [
    "IN_DATABASES",
    "NARROW",
    "NO_HALVES",
    "WAYS",
    "ClosedAtTheEnd",
    "Result",
    "Way",
    "arrays",
    "by_query",
    "from_arrays",
    "scan",
    "slices",
]

Result = cal.Sketch | cal.Sketches
Make = Callable[[Rows, Path], Any]
NO_HALVES = frozenset({"float16"})
NARROW = NO_HALVES | {"broad decimal"}
"""Numbers that engines of their own do not have."""
IN_TEXT = NO_HALVES | {
    f"{kind} groups" for kind in ("bool", "float64", "date", "time", "zoned time", "decimal")
}
"""What text does not tell from something else; bytes it has none."""
IN_TEXT |= {"bytes groups"}


@dataclass(frozen=True)
class Way:
    """A way in.

    Attributes
    ----------
    make : callable
        The rows as this engine holds them; a folder is there for files.
    take : callable
        What calibrant makes of it.
    lacks : set of str
        Kinds of columns that the engine does not have.
    package : str
        Which it needs, where it is not always installed.
    groups : bool
        Whether it has groups.
    nodes : int
        The one grid that it has.
    percent : bool
        Whether it has predictions that are percentages.
    """

    make: Make
    take: Callable[[Any, Rows, int], Result]
    lacks: frozenset[str] = frozenset()
    package: str | None = None
    groups: bool = True
    nodes: int | None = None
    percent: bool = True

    @property
    def is_installed(self) -> bool:
        return self.package is None or find_spec(self.package) is not None

    def has(self, rows: Rows, nodes: int) -> bool:
        """Whether such rows can come this way."""
        return (
            not any(kind in rows.kinds for kind in self.lacks)
            and self.nodes in (None, nodes)
            and (self.groups or not rows.by)
            and (self.percent or not rows.kinds.percent)
        )


def scan(source: Any, rows: Rows, nodes: int) -> Result:
    return cal.scan(
        source,
        y_true="y",
        y_prob="p",
        sample_weight=None if rows.weights is None else "w",
        by=rows.by or None,
        nodes=nodes,
        on_invalid="drop",
        percent=rows.kinds.percent,
    )


def by_query(dialect: str) -> Callable[[Callable[[str], Any], Rows, int], Result]:
    """By the text of a query, for a database that has the rows in a table of that name."""

    def take(run: Callable[[str], Any], rows: Rows, nodes: int) -> Result:
        weight = None if rows.weights is None else "w"
        text = sql.query("rows", "p", "y", rows.by, dialect, weight=weight, nodes=nodes)
        return sql.read(run(text))

    return take


def from_arrays(columns: dict[str, Any], rows: Rows, nodes: int) -> Result:
    options = {"sample_weight": columns["w"]} if "w" in columns else {}
    options |= {"percent": rows.kinds.percent, "on_invalid": "drop"}
    return cal.Sketch.from_arrays(columns["y"], columns["p"], nodes=nodes, **options)


def _by_command(path: Path, rows: Rows, nodes: int) -> Result:
    words = ["scan", str(path), "--prob", "p", "--label", "y", "--on-invalid", "drop"]
    words += ["--percent"] * rows.kinds.percent
    words += ["--weight", "w"] * (rows.weights is not None)
    words += [word for name in rows.by for word in ("--by", name)]
    said, target = io.StringIO(), path.with_name("made.parquet")
    with redirect_stdout(said), redirect_stderr(said):
        try:
            main([*words, "-o", str(target)])
        except SystemExit as end:
            if end.code:
                kind = cal.InputError if end.code == 2 else RuntimeError
                raise kind(said.getvalue()) from end
    return cal.load(target)


# -- how rows are held -------------------------------------------------------------------------


def arrays(rows: Rows, _: Path) -> dict[str, Any]:
    """Of numbers and text, where none is missing, arrays of their type; of anything else, objects."""

    def array(name: str, values: list[Any]) -> Any:
        kind = rows.table.schema.field(name).type
        plain = pa.types.is_primitive(kind) and not pa.types.is_temporal(kind)
        if plain and None not in values:
            return np.array(values, kind.to_pandas_dtype())
        if pa.types.is_string(kind):
            return np.array(values)
        objects = np.empty(len(values), object)
        objects[:] = values
        return objects

    return {name: array(name, values) for name, values in rows.lists.items()}


def _columns(frame: Any) -> dict[str, Any]:
    names = frame.column_names if isinstance(frame, pa.Table) else frame.columns
    return {name: frame[name] for name in names}


def slices(rows: Rows, size: int) -> Iterator[pa.Table]:
    return (rows.table.slice(at, size) for at in range(0, rows.table.num_rows, max(size, 1)))


class Capsule:
    """Rows of which nothing is known but that Arrow can stream them."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def _written(write: Callable[[pa.Table, Path], object], name: str) -> Make:
    def written(rows: Rows, folder: Path) -> Path:
        path = folder / name
        write(rows.table, path)
        return path

    return written


def _parquet_folder(rows: Rows, folder: Path) -> Path:
    """Files of other writers: pages of the second version, other codecs, no dictionaries."""
    place = Path(tempfile.mkdtemp(dir=folder))
    options: list[dict[str, Any]] = [
        {"data_page_version": "2.0", "compression": "zstd"},
        {"use_dictionary": False, "compression": "none", "write_page_checksum": True},
        {"store_decimal_as_integer": True},
    ]
    size = -(-rows.table.num_rows // 3)
    for number, part in enumerate(slices(rows, size)):
        pq.write_table(part, place / f"{number}.parquet", **options[number])
    return place


def _stream(table: pa.Table, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def _address(rows: Rows, _: Path) -> str:
    with fsspec.open("memory://rows/rows.parquet", "wb") as file:
        pq.write_table(rows.table, file)
    return "memory://rows/rows.parquet"


def _csv(sep: str = ",", ending: str = "csv") -> Make:
    def written(rows: Rows, folder: Path) -> Path:
        path = folder / f"rows.{ending}"
        opened = gzip.open if ending.endswith("gz") else open
        with opened(path, "wt", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n", delimiter=sep)
            writer.writerow(rows.table.column_names)
            writer.writerows([_text(value) for value in row] for row in _in_text(rows))
        return path

    return written


def _in_text(rows: Rows) -> Iterator[list[Any]]:
    """The rows, with numbers for predictions that are truth values: in text those are none."""
    place = rows.table.column_names.index("p") if "p" in rows.lists else 0
    for row in map(list, rows.as_python()):
        row[place] = int(row[place]) if isinstance(row[place], bool) else row[place]
        yield row


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
    plain = ([float(v) if isinstance(v, Decimal) else v for v in row] for row in _in_text(rows))
    path.write_text("".join(json.dumps(dict(zip(names, r, strict=True))) + "\n" for r in plain))
    return path


def _in_duckdb(rows: Rows, _: Path) -> Callable[[str], Any]:
    warehouse = duckdb.connect()
    warehouse.register("rows", rows.table)
    return lambda text: warehouse.execute(text)


class ClosedAtTheEnd(sqlite3.Connection):
    def __del__(self) -> None:
        self.close()


def _in_sqlite(rows: Rows, _: Path) -> Callable[[str], Any]:
    warehouse = sqlite3.connect(":memory:", factory=ClosedAtTheEnd, check_same_thread=False)
    names = rows.table.column_names
    warehouse.execute(f"CREATE TABLE rows ({', '.join(f'`{name}`' for name in names)})")
    places = ", ".join("?" * len(names))
    warehouse.executemany(f"INSERT INTO rows VALUES ({places})", list(rows.as_python()))
    return warehouse.execute


def _categories_of_numbers() -> bool:
    """Whether this version of polars has them: early ones have categories of text alone."""
    try:
        pl.from_arrow(pa.table({"x": pa.array([0.5]).dictionary_encode()}))
    except pl.exceptions.ComputeError:
        return False
    return True


IN_POLARS = NARROW | (set() if _categories_of_numbers() else {"categories"})
IN_DATABASES = NARROW | frozenset({"wide decimal"})
"""The database rounds such decimals itself, DuckDB before version 2 badly."""
IN_DUCKDB = IN_DATABASES | ({"zoned time groups"} if find_spec("pytz") is None else set())
"""Its rows of such times need another package."""
IN_SQLITE = NO_HALVES | {"uint64 labels", "decimal", "broad decimal", "wide decimal"}
IN_SQLITE |= {f"{kind} groups" for kind in ("date", "time", "zoned time", "decimal")}
WAYS: dict[str, Way] = {
    "lists": Way(lambda rows, _: rows.lists, from_arrays, groups=False),
    "arrays": Way(arrays, from_arrays, groups=False),
    "columns of arrow": Way(lambda rows, _: _columns(rows.table), from_arrays, groups=False),
    "columns of pandas": Way(
        lambda rows, _: _columns(rows.table.to_pandas()), from_arrays, groups=False
    ),
    "columns of polars": Way(
        lambda rows, _: _columns(pl.from_arrow(rows.table)), from_arrays, IN_POLARS, groups=False
    ),
    "dict of arrays": Way(arrays, scan),
    "arrow": Way(lambda rows, _: rows.table, scan),
    "arrow in chunks": Way(lambda rows, _: pa.concat_tables(slices(rows, 3)), scan),
    "arrow reader": Way(lambda rows, _: rows.table.to_reader(max_chunksize=4), scan),
    "arrow dataset": Way(lambda rows, _: ds.dataset(rows.table), scan),
    "arrow capsule": Way(lambda rows, _: Capsule(rows.table), scan),
    "batches of arrow": Way(lambda rows, _: slices(rows, 5), scan),
    "batches of pandas": Way(lambda rows, _: (p.to_pandas() for p in slices(rows, 6)), scan),
    "pandas": Way(lambda rows, _: rows.table.to_pandas(), scan),
    "pandas of arrow": Way(
        lambda rows, _: rows.table.to_pandas(types_mapper=pd.ArrowDtype), scan, NO_HALVES
    ),
    "pandas nullable": Way(lambda rows, _: rows.table.to_pandas().convert_dtypes(), scan),
    "polars": Way(lambda rows, _: pl.from_arrow(rows.table), scan, IN_POLARS),
    "polars lazy": Way(lambda rows, _: pl.from_arrow(rows.table).lazy(), scan, IN_POLARS),
    "duckdb": Way(lambda rows, _: duckdb.from_arrow(rows.table), scan, NARROW),
    "sql on duckdb": Way(_in_duckdb, by_query("duckdb"), IN_DUCKDB, percent=False),
    "sql on sqlite": Way(_in_sqlite, by_query("sqlite"), IN_SQLITE, percent=False),
    "parquet": Way(
        _written(lambda table, path: pq.write_table(table, path, row_group_size=9), "rows.parquet"),
        scan,
    ),
    "parquet folder": Way(_parquet_folder, scan),
    "fsspec address": Way(_address, scan),
    "arrow file": Way(_written(feather.write_feather, "rows.arrow"), scan),
    "arrow stream": Way(_written(_stream, "rows.ipc"), scan),
    "csv": Way(_csv(), scan, IN_TEXT),
    "csv, compressed": Way(_csv(ending="csv.gz"), scan, IN_TEXT),
    "csv with tabs": Way(_csv("\t", "tsv"), scan, IN_TEXT),
    "json lines": Way(_json_lines, scan, IN_TEXT),
    "command on parquet": Way(
        _written(pq.write_table, "rows.parquet"), _by_command, nodes=DEFAULT_NODES
    ),
    "command on csv": Way(_csv(), _by_command, IN_TEXT, nodes=DEFAULT_NODES),
}
