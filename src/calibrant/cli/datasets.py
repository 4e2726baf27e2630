"""`calibrant datasets`: the collection of real predictions."""

from __future__ import annotations

import json as json_format
from pathlib import Path
from typing import Any

from calibrant import datasets
from calibrant._optional import require
from calibrant.cli.output import note, printable, require_ending, written
from calibrant.cli.table import Column, show_table
from calibrant.errors import InputError

__all__ = ["run_datasets"]


def run_datasets(name: str | None, output: str | None, json: bool) -> None:
    """List the collection, describe one of it, or fetch one."""
    if output is not None:
        if name is None:
            raise InputError(
                "writes one data set",
                argument="output",
                cure="Name it: `calibrant datasets NAME -o FILE`.",
            )
        _write(name, Path(output))
        return
    sources = [datasets.describe(each) for each in ([name] if name else datasets.names())]
    described = [
        {
            "name": source.name,
            "title": source.title,
            "rows": source.rows,
            "licence": source.licence,
            "citation": source.citation,
            "addresses": list(source.addresses()),
        }
        for source in sources
    ]
    if json:
        print(
            json_format.dumps({"schema": "calibrant.datasets/1", "datasets": described}, indent=2)
        )
    elif name is not None:
        _describe(described[0])
    else:
        show_table(
            [
                Column("name", [source.name for source in sources], is_name=True),
                Column("rows", [f"{source.rows:,}" for source in sources]),
                Column("what it is", [source.title for source in sources], is_prose=True),
            ]
        )
        note("`calibrant datasets NAME` tells more; `-o FILE` fetches it.")


def _describe(source: dict[str, Any]) -> None:
    for key, value in source.items():
        for line in value if isinstance(value, list) else [value]:
            print(f"{key:10} {line:,}" if isinstance(line, int) else f"{key:10} {line}")


def _write(name: str, target: Path) -> None:
    writers = {".parquet": "pyarrow.parquet", ".csv": "pyarrow.csv"}
    require_ending(str(target), tuple(writers), "a data set")
    pyarrow = require("pyarrow", caller="calibrant datasets")
    module = require(writers[target.suffix], caller="calibrant datasets")
    found = datasets.load(name)
    flat = {column: values for column, values in found.columns.items() if values.ndim == 1}
    if len({values.size for values in flat.values()}) != 1 or len(flat) < len(found.columns):
        raise InputError(
            "{name} holds a matrix of class scores, which is no table",
            name=name,
            cure="Load it in Python with `calibrant.datasets.load({quoted})`.",
            quoted=repr(name),
        )
    table = pyarrow.table(flat)
    write = module.write_table if target.suffix == ".parquet" else module.write_csv
    written(target, lambda path: write(table, path))
    note(f"Wrote {printable(target, 200)}: {found.n:,} rows, columns {', '.join(flat)}.")
