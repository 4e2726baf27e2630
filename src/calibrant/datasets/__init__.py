"""Real predictions by name, checked against a fingerprint, and synthetic ones whose truth is known."""

from __future__ import annotations

import difflib
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from calibrant._files import decoding
from calibrant._optional import require
from calibrant.datasets.synthetic import SHAPES, Synthetic, generate
from calibrant.errors import CalibrantError, invalid

__all__ = [
    "SHAPES",
    "Dataset",
    "Source",
    "Synthetic",
    "cache_folder",
    "catalogue",
    "describe",
    "fingerprint",
    "generate",
    "load",
    "names",
]

PUBLIC_ADDRESS = "https://raw.githubusercontent.com"
CATALOGUE = Path(__file__).with_name("catalogue.toml")
SUFFIXES = (".parquet", ".npz")


@dataclass(frozen=True)
class Source:
    """Origin of a data set: the files it is made from and what the result must be.

    `fingerprint` is the SHA-256 of the converted rows, sorted and rounded to nine digits, so a
    changed original, a damaged transfer and a wrong conversion are all caught by one check.

    Examples
    --------
    >>> from calibrant import datasets
    >>> source = datasets.describe(datasets.names()[0])
    >>> source.rows > 0, len(source.fingerprint)
    (True, 64)
    """

    name: str
    title: str
    repository: str
    commit: str
    paths: tuple[str, ...]
    converter: str
    rows: int
    fingerprint: str
    licence: str
    citations: tuple[str, ...]

    def addresses(self, mirror: str = PUBLIC_ADDRESS) -> tuple[str, ...]:
        """Public address of each original file, at the commit that was looked at."""
        root = f"{mirror.rstrip('/')}/{self.repository}/{self.commit}"
        return tuple(f"{root}/{quote(path)}" for path in self.paths)


@dataclass(frozen=True)
class Dataset:
    """Data set that was checked against its fingerprint.

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
    >>> rows["p"].tolist(), rows.source is source
    ([0.2, 0.7], True)
    """

    source: Source
    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def checked(cls, source: Source, columns: Mapping[str, NDArray[Any]], origin: str) -> Dataset:
        """Data set of these columns, or the error for rows that are not the ones on record."""
        rows = next(len(columns[k]) for k in ("y", "labels", "labels_test") if k in columns)
        if rows != source.rows or fingerprint(columns) != source.fingerprint:
            message = f"The {rows:,} rows of {origin} are not the {source.rows:,} of {source.name}."
            hint = (
                "Remove that file and load again. If it stays so, report that the original changed."
            )
            raise CalibrantError(message, file=origin, hint=hint)
        for values in columns.values():
            values.flags.writeable = False
        return cls(source, MappingProxyType(dict(columns)))

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
        about = {k: getattr(self.source, k) for k in ("name", "title", "repository", "commit")}
        about |= {"licence": self.source.licence, "citations": list(self.source.citations)}
        return {**about, "n": self.n, "columns": list(self.columns)}

    def __repr__(self) -> str:
        return f"Dataset({self.source.name!r}, n={self.n:,}, columns={list(self.columns)})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{escape(key)}</th><td>{escape(str(value))}</td></tr>"
            for key, value in self.to_dict().items()
        )
        return f"<table>{rows}</table>"


@cache
def catalogue() -> dict[str, Source]:
    """Sources of all data sets, by name."""

    def source(name: str, entry: dict[str, Any]) -> Source:
        lists = {key: tuple(entry[key]) for key in ("paths", "citations")}
        return Source(name=name, **{**entry, **lists})

    content = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    return {name: source(name, entry) for name, entry in content.items()}


def names() -> tuple[str, ...]:
    """Data sets that `load` knows.

    Examples
    --------
    >>> from calibrant import datasets
    >>> "imagenet_resnet34" in datasets.names()
    True
    """
    return tuple(catalogue())


def describe(name: str) -> Source:
    """Origin of a data set, with its licence and whom to cite.

    Examples
    --------
    >>> from calibrant import datasets
    >>> datasets.describe("solar_flares_daffs_c1").rows
    731
    """
    if not isinstance(name, str) or name not in catalogue():
        near = difflib.get_close_matches(name, catalogue(), n=1) if isinstance(name, str) else []
        hint = f"Did you mean {near[0]!r}?" if near else "`calibrant.datasets.names()` lists all."
        raise invalid("name", "be a data set that exists", name, hint=hint)
    return catalogue()[name]


def load(name: str) -> Dataset:
    """Data set by name, from the folder that `CALIBRANT_DATA` names, or from the cache.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Dataset
        Checked: its rows have the fingerprint that the catalogue records.

    Notes
    -----
    A folder named by the environment variable ``CALIBRANT_DATA`` is looked in first, for
    ``<name>.parquet`` or ``<name>.npz``, then the cache (``CALIBRANT_CACHE``, or the system's). None of
    the data ships with the package: ``python -m bench.originals NAME``, in a checkout of the repository,
    fetches the original at its commit, converts it and leaves it in the cache.

    Examples
    --------
    >>> from calibrant import datasets
    >>> flares = datasets.load("solar_flares_daffs_c1")  # doctest: +SKIP
    >>> flares.p, flares.y  # doctest: +SKIP
    """
    source = describe(name)
    named = os.environ.get("CALIBRANT_DATA")
    folders = [*([Path(named)] if named else []), cache_folder()]
    files = [folder / f"{name}{suffix}" for folder in folders for suffix in SUFFIXES]
    path = next((file for file in files if file.is_file()), None)
    if path is None:
        looked = " or ".join(map(str, folders))
        message = f"The data set {name!r} is not in {looked}."
        hint = f"In a checkout of the repository, `python -m bench.originals {name}` fetches it."
        raise CalibrantError(message, hint=hint)
    return Dataset.checked(source, _read(path), str(path))


def cache_folder() -> Path:
    """Folder of converted data sets: `CALIBRANT_CACHE`, or the system's place for caches."""
    named = os.environ.get("CALIBRANT_CACHE")
    if named:
        return Path(named)
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return root / "calibrant"


def _read(path: Path) -> dict[str, NDArray[Any]]:
    with decoding("a data set", path):
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        table = require("pyarrow.parquet", caller="datasets.load").read_table(path)
        table.validate(full=True)
        return {k: table.column(k).to_numpy(zero_copy_only=False) for k in table.column_names}


def fingerprint(columns: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of the rows: sorted pairs to nine digits, or float32 scores with their labels."""
    try:
        return _digest({str(name): np.asarray(values) for name, values in columns.items()})
    except Exception as error:  # of any object
        raise invalid("columns", "be arrays of numbers by name", columns) from error


def _digest(columns: Mapping[str, NDArray[Any]]) -> str:
    digest = sha256()
    if "p" in columns:
        rows = np.stack([_nano(columns["y"]), _nano(columns["p"])])
        digest.update(rows[:, np.lexsort(rows)].astype("<i8").tobytes())
        return digest.hexdigest()
    for name in sorted(columns):
        kind = "<i8" if name.startswith("labels") else "<f4"
        digest.update(name.encode() + columns[name].astype(kind).tobytes())
    return digest.hexdigest()


def _nano(values: NDArray[Any]) -> NDArray[np.int64]:
    """Integers that do not depend on the last bits of a float; missing is the lowest integer."""
    floats = np.asarray(values, dtype=np.float64)
    missing = np.isnan(floats)
    scaled = np.rint(np.where(missing, 0.0, floats) * 1e9).astype(np.int64)
    scaled[missing] = np.iinfo(np.int64).min
    return scaled
