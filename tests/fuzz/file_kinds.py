"""Files of every kind that calibrant reads, and what was in them."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

import calibrant as cal
import calibrant.recalibration as maps
from calibrant.io.answers import read_answers
from calibrant.io.files import find_files
from calibrant.io.rows import read_table

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
    checked : bool
        Whether a checksum covers all of it, as in those that calibrant writes: then no other value may ever
        come out of it.
    counts_rows : bool
        Of others' files, whether the number of rows is certain.
    """

    name: str
    write: Callable[[Path], object]
    read: Callable[[Path], Any]
    checked: bool = False
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


MAPS: dict[str, Callable[[], Any]] = {
    **{name: partial(maps.make_map, name) for name in maps.map_names()},
    "randomized": lambda: maps.RandomizedRecalibrator(bandwidth=0.2, require_miscalibration=False),
    "smooth": lambda: maps.SmoothRecalibrator(bandwidth=0.2),
}
CLASS_MAPS: dict[str, Callable[[], Any]] = {
    f"classes-{name}": partial(maps.make_map, name, n_classes=3)
    for name in maps.map_names(n_classes=3)
}


def write_map(path: Path) -> None:
    name = path.stem.removeprefix("map-")
    table = rows()
    p, y = table["p"].to_numpy(), table["y"].to_numpy()
    if name in MAPS:
        MAPS[name]().fit(p, y).save(path)
    else:
        classes = np.stack([p / 2, (1 - p) / 2, np.full(len(p), 0.5)], axis=1)
        CLASS_MAPS[name]().fit(classes, np.where(np.arange(len(y)) % 3 == 0, 2, y)).save(path)


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
    path.write_text("".join(json.dumps(row) + "\n" for row in rows().to_pylist()))


def packed(name: str) -> Callable[[Path], None]:
    """A text file of another kind, packed with what has a checksum."""

    def write(path: Path) -> None:
        plain = path.with_name(f"plain-{name}")
        KINDS[name].write(plain)
        path.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))

    return write


def as_table(path: Path) -> pa.Table:
    """All columns, as the command line reads them."""
    return read_table(find_files([path]))


def samples() -> list[dict[str, Any]]:
    table = rows().slice(0, 40).to_pylist()
    return [
        {"id": k, "confidence": row["p"], "correct": bool(row["y"])} for k, row in enumerate(table)
    ]


def write_answers(path: Path) -> None:
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples()))


def write_archive(path: Path) -> None:
    """A log as Inspect writes them."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "m", "task": "t"}}))
        for sample in samples():
            metadata = {"confidence": sample["confidence"]}
            score = {"judge": {"value": int(sample["correct"]), "metadata": metadata}}
            said = {"choices": [{"message": {"content": "B."}}]}
            content = {"id": sample["id"], "epoch": 1, "scores": score, "output": said}
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(content))


def answers(path: Path) -> Any:
    log = read_answers(path)
    return pa.table({"p": log.y_prob, "y": log.y_true, "q": list(log.cluster)})


def _parquet(**options: Any) -> Callable[[Path], object]:
    return lambda path: pq.write_table(rows(), path, row_group_size=100, **options)


def read_map(path: Path) -> Any:
    return cal.load_recalibrator(path).to_dict()


def read_monitor(path: Path) -> Any:
    monitor = cal.Monitor.load(path)
    return monitor.level, monitor.last, monitor.to_json()


_ALL = [
    Kind("sketch.json", lambda path: cal.save(sketches(), path), cal.load, checked=True),
    Kind("sketch.parquet", lambda path: cal.save(sketches(), path), cal.load, checked=True),
    *(Kind(f"map-{name}.json", write_map, read_map, checked=True) for name in (*MAPS, *CLASS_MAPS)),
    Kind("monitor.json", write_monitor, read_monitor, checked=True),
    Kind("checkpoint", write_checkpoint, read_checkpoint, checked=True),
    Kind("rows.parquet", _parquet(), scanned),
    Kind("rows-checked.parquet", _parquet(write_page_checksum=True), scanned),
    Kind("rows-plain.parquet", _parquet(compression="none", use_dictionary=False), scanned),
    Kind("rows.arrow", write_arrow, scanned),
    Kind("rows-stream.arrow", write_stream, scanned),
    Kind("rows.feather", lambda path: feather.write_feather(rows(), path), scanned),
    Kind("rows.csv", write_csv, scanned, counts_rows=False),
    Kind("rows.jsonl", write_json_lines, scanned, counts_rows=False),
    Kind("rows.csv.gz", packed("rows.csv"), scanned, checked=True),
    Kind("rows.jsonl.gz", packed("rows.jsonl"), scanned, checked=True),
    Kind("table.parquet", _parquet(), as_table),
    Kind("table.arrow", write_arrow, as_table),
    Kind("table-stream.arrow", write_stream, as_table),
    Kind("table.csv", write_csv, as_table, counts_rows=False),
    Kind("table.jsonl", write_json_lines, as_table, counts_rows=False),
    Kind("answers.eval", write_archive, answers, counts_rows=False),
    Kind("answers.jsonl", write_answers, answers, counts_rows=False),
]
KINDS = {kind.name: kind for kind in _ALL}
