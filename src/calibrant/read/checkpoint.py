"""Where a long scan stands: written atomically now and then, read back after a crash.

A checkpoint is the sum of the first jobs of a scan, and how many they were. Jobs are added up in a fixed
order, so going on from a checkpoint gives the bits that an undisturbed scan gives.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._files import replaced_when_whole
from calibrant._optional import require
from calibrant.errors import CalibrationError, InputError
from calibrant.read import formats, text
from calibrant.read.arrow import as_numpy
from calibrant.read.find_files import DataFile
from calibrant.read.request import Request
from calibrant.read.sums import SUM_NAMES, DenseSums, GroupedSums
from calibrant.read.totals import GroupTotal

__all__ = ["Checkpoint"]

VERSION = 1
_PROBES = np.linspace(0.01, 0.99, 33)
# Under which names the stores that fsspec knows tell of a file's version.
_TELLING = [
    "ETag",
    "etag",
    "LastModified",
    "Last-Modified",
    "last_modified",
    "updated",
    "generation",
    "created",
    "modified",
    "md5Hash",
    "Content-MD5",
]


class Checkpoint:
    """The file in which a scan of these files notes how far it is."""

    def __init__(
        self, path: str | os.PathLike[str], request: Request, files: Sequence[DataFile]
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"`checkpoint` must be the path of a file; got {path!r}.")
        self.path = Path(path)
        self.request = request
        self.fingerprint = _fingerprint(request, files)
        self._require_place()

    def _require_place(self) -> None:
        """Refuse a place where nothing can be written, before anything is read."""
        try:
            if self.path.is_dir():
                raise IsADirectoryError("it is a folder")
            with tempfile.TemporaryFile(dir=self.path.parent):
                pass
        except OSError as error:
            raise InputError(
                f"`checkpoint` must name a file that can be written; {self.path} cannot: {error}. "
                "Name one in a folder that exists and is yours."
            ) from error

    def save(self, done: int, total: DenseSums | GroupTotal) -> None:
        """Write the sums of the first `done` jobs; what was there before stays until this is whole."""
        pyarrow = require("pyarrow", caller="scan with a checkpoint")
        keys, places, sums = _long(total)
        note = {"version": VERSION, "fingerprint": self.fingerprint, "done": done}
        by = zip(*keys, strict=True) if keys else [() for _ in self.request.by]
        groups = pyarrow.table({f"group_{i}": list(column) for i, column in enumerate(by)})
        columns = {"place": places, **dict(zip(SUM_NAMES, sums, strict=False))}
        table = pyarrow.table(columns).replace_schema_metadata({"calibrant": json.dumps(note)})
        try:
            with replaced_when_whole(self.path) as partial, open(partial, "wb") as sink:
                for piece in (table, groups):
                    with pyarrow.ipc.new_stream(sink, piece.schema) as writer:
                        writer.write_table(piece)
                sink.flush()
                os.fsync(sink.fileno())
        except OSError as error:
            again = "Free some space or name another place, and run the scan again"
            if self.path.exists():
                again = (
                    f"The one before is intact in {self.path}. Free some space and run the scan again: "
                    "it goes on from there"
                )
            raise CalibrationError(
                f"the checkpoint {self.path} could not be written: {error}. {again}."
            ) from error

    def load(self, total: DenseSums | GroupTotal) -> int:
        """Add what a stopped scan had summed to `total`; the number of jobs that are done."""
        if not self.path.exists():
            return 0
        pyarrow = require("pyarrow", caller="scan with a checkpoint")
        try:
            with open(self.path, "rb") as source:
                table = pyarrow.ipc.open_stream(source).read_all()
                groups = pyarrow.ipc.open_stream(source).read_all()
            note = json.loads(table.schema.metadata[b"calibrant"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{self.path} must be a checkpoint of a scan; it cannot be read: {error}. Name another "
                "file, or remove it."
            ) from error
        if note["version"] != VERSION or note["fingerprint"] != self.fingerprint:
            raise InputError(
                f"{self.path} is the checkpoint of another scan: its files, columns, groups or grid "
                "differ, or the files have changed since. Name another file, or remove it."
            )
        columns = [as_numpy(column) for column in table.columns]
        _restore(total, _keys(groups), columns[0], tuple(columns[1:]))
        return int(note["done"])

    def remove(self) -> None:
        """Forget the scan, once it is finished."""
        self.path.unlink(missing_ok=True)


def _fingerprint(request: Request, files: Sequence[DataFile]) -> str:
    described = [
        dict(request.selection),
        request.nodes,
        [request.scale.name, request.scale.locate(_PROBES).tolist()],  # two may have one name
        request.form,
        request.soft,
        [[*file.identity, _version(file)] for file in files],
        [formats.JOB_ROWS, text.BLOCK_BYTES],  # how the work is cut
    ]
    return hashlib.sha256(json.dumps(described, default=str).encode()).hexdigest()


def _version(file: DataFile) -> Any:
    """What a remote store says of a file's contents, where it tells no time of change."""
    remote = getattr(getattr(file.filesystem, "handler", None), "fs", None)
    if remote is None or file.modified != "None":
        return None
    told = remote.info(file.path)
    found = {key: str(told[key]) for key in _TELLING if told.get(key) is not None}
    return found or remote.ukey(file.path)


def _long(total: DenseSums | GroupTotal) -> tuple[list[Any], Any, tuple[Any, ...]]:
    if isinstance(total, DenseSums):
        part = total.grouped(())
        return [], part.places, part.sums
    places, sums = total.merge()
    return list(total.index), places, sums


def _keys(groups: Any) -> list[tuple[Any, ...]]:
    columns = [column.to_pylist() for column in groups.columns]
    return list(zip(*columns, strict=True))


def _restore(
    total: DenseSums | GroupTotal, keys: list[Any], places: Any, sums: tuple[Any, ...]
) -> None:
    if isinstance(total, DenseSums):
        for column, values in zip(total.columns, sums, strict=True):
            column[places] = values
    else:
        total.add(GroupedSums(keys, np.array(places), sums))
