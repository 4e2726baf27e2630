"""Real predictions by name, fetched and checked, and synthetic ones whose truth is known."""

from __future__ import annotations

import difflib
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._files import decoding, replaced_when_whole
from calibrant._optional import require
from calibrant.datasets.catalogue import CATALOGUE, PUBLIC_ADDRESS, Source
from calibrant.datasets.convert import CONVERTERS, Columns, fingerprint, row_count
from calibrant.datasets.fetch import DownloadError, cache_folder, download
from calibrant.datasets.synthetic import SHAPES, Synthetic, generate
from calibrant.errors import CalibrantError, Function, InputError, Where

__all__ = [
    "SHAPES",
    "Dataset",
    "DownloadError",
    "Source",
    "Synthetic",
    "describe",
    "generate",
    "load",
    "names",
]


@dataclass(frozen=True)
class Dataset:
    """A data set that was checked against its fingerprint.

    Attributes
    ----------
    source : Source
        Where it comes from: repository, commit, licence, citation.
    columns : mapping of str to ndarray
        `p` and `y` with groups and dates, or the class scores and labels of a multi-class set.

    Examples
    --------
    >>> source = describe("fmi_rain_tampere_2003")
    >>> rows = Dataset(source, {"p": np.array([0.2, 0.7]), "y": np.array([0, 1])})
    >>> rows["p"].tolist(), rows.source.licence
    ([0.2, 0.7], ...)
    """

    source: Source
    columns: Mapping[str, NDArray[Any]]

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.columns[column]

    @property
    def p(self) -> NDArray[Any]:
        """Predicted probabilities."""
        return self.columns["p"]

    @property
    def y(self) -> NDArray[Any]:
        """Outcomes."""
        return self.columns["y"]

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.source.rows

    def to_dict(self) -> dict[str, Any]:
        """Everything but the values."""
        return {
            "name": self.source.name,
            "title": self.source.title,
            "n": self.n,
            "columns": list(self.columns),
            "repository": self.source.repository,
            "commit": self.source.commit,
            "licence": self.source.licence,
            "citations": list(self.source.citations),
        }

    def __repr__(self) -> str:
        return f"Dataset({self.source.name!r}, n={self.n:,}, columns={list(self.columns)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(key)}</th><td>{escape(str(value))}</td></tr>"
            for key, value in self.to_dict().items()
        )
        return f"<table>{rows}</table>"


def names() -> tuple[str, ...]:
    """The data sets that `load` knows.

    Examples
    --------
    >>> from calibrant import datasets
    >>> "imagenet_resnet34" in datasets.names()
    True
    """
    return tuple(CATALOGUE)


def describe(name: str) -> Source:
    """Where a data set comes from, its licence and whom to cite.

    Examples
    --------
    >>> from calibrant import datasets
    >>> datasets.describe("solar_flares_daffs_c1").rows
    731
    """
    if name not in CATALOGUE:
        near = difflib.get_close_matches(name, CATALOGUE, n=1)
        raise InputError(
            "must be a data set that exists",
            argument="name",
            seen=name,
            cure="Did you mean {near}?" if near else "{names} lists all.",
            near=repr(near[0]) if near else "",
            names=Function("datasets.names"),
        )
    return CATALOGUE[name]


def load(name: str, *, mirror: str = PUBLIC_ADDRESS) -> Dataset:
    """Load a data set by name: from `CALIBRANT_DATA`, from the cache, or from its public address.

    Parameters
    ----------
    name : str
        One of `names()`.
    mirror : str
        Where the original files are fetched from when they are not here: a server that answers
        ``/owner/repository/commit/path`` as GitHub's does.

    Returns
    -------
    Dataset
        Checked: its rows have the fingerprint that the catalogue records.

    Notes
    -----
    A folder named by the environment variable ``CALIBRANT_DATA`` is looked in first, for
    ``<name>.parquet`` or ``<name>.npz``. A download prints the licence and the citation, and what
    it leaves in the cache (``CALIBRANT_CACHE``, or the system's) was whole and checked.

    Examples
    --------
    >>> from calibrant import datasets
    >>> flares = datasets.load("solar_flares_daffs_c1")  # doctest: +SKIP
    >>> flares.p, flares.y  # doctest: +SKIP
    """
    source = describe(name)
    found = _local_file(source)
    if found is not None:
        return _checked(source, _read(found), str(found))
    cache_folder().mkdir(parents=True, exist_ok=True)
    with replaced_when_whole(cache_folder() / f"{name}.npz") as target:
        dataset = _fetched(source, mirror)
        with target.open("wb") as out:
            np.savez_compressed(out, allow_pickle=False, **dict(dataset.columns))
    return dataset


def _local_file(source: Source) -> Path | None:
    named = os.environ.get("CALIBRANT_DATA")
    folders = [Path(named)] if named else []
    for folder in (*folders, cache_folder()):
        for suffix in (".parquet", ".npz"):
            path = folder / f"{source.name}{suffix}"
            if path.is_file():
                return path
    return None


def _read(path: Path) -> Columns:
    with decoding("a data set", path):
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        table = require("pyarrow.parquet", caller="datasets.load").read_table(path)
        table.validate(full=True)
        return {
            name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names
        }


def _checked(source: Source, columns: Columns, origin: str) -> Dataset:
    rows = row_count(columns)
    if rows != source.rows or fingerprint(columns) != source.fingerprint:
        raise DownloadError(
            "the rows of {name} are not the ones on record: {expected} rows, and their values",
            seen=rows,
            where=Where(file=str(origin)),
            saying="{where} has {rows} rows",
            cure="Remove that file and load again. If it stays so, report that the original has changed.",
            name=source.name,
            expected=f"{source.rows:,}",
            rows=f"{rows:,}",
        )
    for values in columns.values():
        values.flags.writeable = False
    return Dataset(source, MappingProxyType(columns))


def _fetched(source: Source, mirror: str) -> Dataset:
    print(
        f"{source.name}: {source.title}\n  licence: {source.licence}",
        *(f"  cite: {citation}" for citation in source.citations),
        sep="\n",
        file=sys.stderr,
    )
    addresses = source.addresses(mirror)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, address.rsplit("/", 1)[-1]) for address in addresses]
        for address, path in zip(addresses, paths, strict=True):
            download(address, path)
        try:
            columns = CONVERTERS[source.converter](paths)
        except (ValueError, KeyError, IndexError, StopIteration, EOFError) as error:
            raise DownloadError(
                "the file does not have the layout of {name} ({reason}), and nothing was kept",
                where=Where(file=addresses[0]),
                cure="Report that the original has changed.",
                name=source.name,
                reason=error if isinstance(error, CalibrantError) else repr(error),
            ) from error
    return _checked(source, columns, addresses[0])
