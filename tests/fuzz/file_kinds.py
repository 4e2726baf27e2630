"""Files of every kind that calibrant reads, and what was in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

import calibrant as cal
from calibrant.recalibration import (
    BetaRecalibrator,
    IsotonicRecalibrator,
    RandomizedRecalibrator,
    SmoothRecalibrator,
    TemperatureRecalibrator,
)

__all__ = ["KINDS", "Kind"]

ROWS = 300
COLUMNS = {"y_true": "y", "y_prob": "p", "by": "g"}


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    name : str
        Of the file.
    write : callable
        Writes it.
    read : callable
        What is in it, as a value that can be compared.
    ours : bool
        Whether calibrant wrote it: then no other value may ever come out of it.
    counts_rows : bool
        Of others' files, whether the number of rows is certain.
    """

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], Any]
    ours: bool = False
    counts_rows: bool = True


def rows(weights: bool = False) -> pa.Table:
    rng = np.random.default_rng(0)
    p = rng.random(ROWS)
    names = np.array(["north", "süd", "east-north-east", ""])
    columns = {
        "p": p,
        "y": (rng.random(ROWS) < p).astype(np.int64),
        "g": names[rng.integers(0, 4, ROWS)],
    }
    if weights:
        columns["w"] = rng.exponential(size=ROWS)
    return pa.table(columns)


def sketches() -> cal.Sketches:
    table = rows(weights=True)
    return cal.scan(table, sample_weight="w", **COLUMNS)


def scanned(path: Path) -> cal.Sketches:
    return cal.scan(path, on_invalid="drop", threads=1, **COLUMNS)


def write_map(path: Path) -> None:
    maps = (
        IsotonicRecalibrator(),
        TemperatureRecalibrator(),
        BetaRecalibrator(),
        SmoothRecalibrator(bandwidth=0.2),
        RandomizedRecalibrator(bandwidth=0.2, require_miscalibration=False),
    )
    table = rows()
    kind = maps[int(path.stem.rsplit("-", 1)[1]) if "-" in path.stem else 0]
    kind.fit(table["p"].to_numpy(), table["y"].to_numpy()).save(path)


def write_monitor(path: Path) -> None:
    rng = np.random.default_rng(0)
    watch = cal.Monitor()
    for day in range(6):
        p = rng.random(60)
        watch.update(rng.random(60) < p**2, p, batch=f"day {day}")
    watch.save(path)


def write_checkpoint(path: Path) -> None:
    lake = path.with_name(f"{path.name}.lake.parquet")
    pq.write_table(rows(weights=True), lake)
    cal.scan(lake, checkpoint=path, sample_weight="w", threads=1, **COLUMNS)


def read_checkpoint(path: Path) -> cal.Sketches:
    lake = path.with_name(f"{path.name}.lake.parquet")
    return cal.scan(lake, checkpoint=path, sample_weight="w", threads=1, **COLUMNS)


def write_stream(path: Path) -> None:
    table = rows()
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


def write_arrow(path: Path) -> None:
    table = rows()
    table = table.set_column(2, "g", table["g"].dictionary_encode())
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)


def write_csv(path: Path) -> None:
    import pyarrow.csv

    pyarrow.csv.write_csv(rows(), path)


def write_json_lines(path: Path) -> None:
    import json

    path.write_text("".join(json.dumps(row) + "\n" for row in rows().to_pylist()))


def _parquet(**options: Any) -> Callable[[Path], object]:
    return lambda path: pq.write_table(rows(), path, row_group_size=100, **options)


def read_map(path: Path) -> Any:
    return cal.load_recalibrator(path).to_dict()


def read_monitor(path: Path) -> Any:
    monitor = cal.Monitor.load(path)
    return monitor.level, monitor.last, monitor.to_json()


_ALL = [
    Kind("sketch.json", lambda path: cal.save(sketches(), path), cal.load, ours=True),
    Kind("sketch.parquet", lambda path: cal.save(sketches(), path), cal.load, ours=True),
    *(Kind(f"map-{k}.json", write_map, read_map, ours=True) for k in range(5)),
    Kind("monitor.json", write_monitor, read_monitor, ours=True),
    Kind("checkpoint", write_checkpoint, read_checkpoint, ours=True),
    Kind("rows.parquet", _parquet(), scanned),
    Kind("rows-checked.parquet", _parquet(write_page_checksum=True), scanned),
    Kind("rows-plain.parquet", _parquet(compression="none", use_dictionary=False), scanned),
    Kind("rows.arrow", write_arrow, scanned),
    Kind("rows-stream.arrow", write_stream, scanned),
    Kind("rows.feather", lambda path: feather.write_feather(rows(), path), scanned),
    Kind("rows.csv", write_csv, scanned, counts_rows=False),
    Kind("rows.jsonl", write_json_lines, scanned, counts_rows=False),
]
KINDS = {kind.name: kind for kind in _ALL}
