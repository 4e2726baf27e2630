"""Where a long scan stands: written atomically now and then, read back after a crash.

A checkpoint is the sum of the first jobs of a scan, and how many they were. Jobs are added up in a fixed
order, so going on from a checkpoint gives the bits that an undisturbed scan gives. It stays when the scan
is done, and goes when the result is on the disk (`calibrant.save(..., checkpoint=...)`).
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from calibrant._files import (
    decoding,
    dump_bytes,
    load_bytes,
    read_bytes,
    remove_file,
    write_whole,
)
from calibrant._optional import require
from calibrant.errors import CalibrantError, Cure, InputError, Where
from calibrant.io import file_jobs, text
from calibrant.io.arrow_batches import as_numpy
from calibrant.io.find_files import DataFile, changed
from calibrant.io.scan_request import Request
from calibrant.io.sums import SUM_NAMES, DenseSums, GroupedSums
from calibrant.io.totals import GroupTotal

__all__ = ["Checkpoint", "unchanged"]

FORMAT = "calibrant.checkpoint"
VERSION = 2
WHAT = "a checkpoint of a scan"
REMOVE = "Name another file, or remove it."
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
            raise InputError(
                "must be the path of a file",
                argument="checkpoint",
                seen=path,
                cure="Pass the path of a file to keep the sums in.",
            )
        self.path = Path(path)
        self.request = request
        self.fingerprint = _fingerprint(request, files)
        self.done = -1
        """Jobs of which the file holds the sums."""
        self._require_place()

    def _require_place(self) -> None:
        """Refuse a place where nothing can be written, before anything is read."""
        try:
            with suppress(FileNotFoundError):
                os.stat(self.path)  # raises where no file can have such a name
            if self.path.is_dir():
                raise IsADirectoryError("it is a folder")
            with tempfile.TemporaryFile(dir=self.path.parent):
                pass
        except (OSError, ValueError) as error:
            raise InputError(
                "must name a file that can be written; {path} cannot: {reason}.",
                argument="checkpoint",
                path=str(self.path),
                reason=str(error),
                cure="Name one in a folder that exists and is yours.",
            ) from error

    def save(self, done: int, total: DenseSums | GroupTotal) -> None:
        """Write the sums of the first `done` jobs; what was there before stays until this is whole."""
        pyarrow = require("pyarrow", caller="scan with a checkpoint")
        keys, places, sums = _long(total)
        note = {"fingerprint": self.fingerprint, "done": done}
        by = zip(*keys, strict=True) if keys else [() for _ in self.request.by]
        groups = pyarrow.table({f"group_{i}": list(column) for i, column in enumerate(by)})
        columns = {"place": places, **dict(zip(SUM_NAMES, sums, strict=False))}
        table = pyarrow.table(columns).replace_schema_metadata({"calibrant": json.dumps(note)})
        content = BytesIO()
        for piece in (table, groups):
            with pyarrow.ipc.new_stream(content, piece.schema) as writer:
                writer.write_table(piece)
        try:
            write_whole(self.path, dump_bytes(FORMAT, VERSION, content.getvalue()))
        except CalibrantError as error:
            cure = (
                "The one before is intact: free some space, and the same scan goes on from there."
            )
            if not self.path.exists():
                cure = "Free some space or name another place, and run the scan again."
            rule = "the checkpoint could not be written: {reason}"
            raise error.but(rule=rule, cures=(Cure(cure),)) from error.__cause__
        self.done = done

    def load(self, total: DenseSums | GroupTotal) -> int:
        """Add what a stopped scan had summed to `total`; the number of jobs that are done."""
        if not self.path.exists():
            return 0
        pyarrow = require("pyarrow", caller="scan with a checkpoint")
        try:
            payload = load_bytes(read_bytes(self.path, WHAT), FORMAT, VERSION, WHAT)
        except InputError as error:
            raise error.at(file=str(self.path)).but(cures=(Cure(REMOVE),)) from error.__cause__
        with decoding(WHAT, self.path):
            source = pyarrow.BufferReader(payload)
            table = pyarrow.ipc.open_stream(source).read_all()
            groups = pyarrow.ipc.open_stream(source).read_all()
            table.validate(full=True)
            groups.validate(full=True)
            note = json.loads(table.schema.metadata[b"calibrant"])
            columns = [as_numpy(column) for column in table.columns]
            keys = _keys(groups)
            is_ours = note["fingerprint"] == self.fingerprint
            done = int(note["done"])
        if not is_ours:
            raise InputError(
                "the checkpoint is that of another scan: its files, columns, groups or grid differ, or "
                "the files have changed since",
                where=Where(file=str(self.path)),
                cure=REMOVE,
            )
        self._require_sound(columns, len(keys), done)
        _restore(total, keys, columns[0], tuple(columns[1:]))
        self.done = done
        return done

    def _require_sound(self, columns: list[Any], groups: int, done: int) -> None:
        """Refuse sums that no scan can have: places outside of the grid, negative counts."""
        places, *sums = columns
        entries = self.request.slots * (groups if self.request.groups else 1)
        sound = (
            done >= 0
            and len(sums) in (0, 2 + 3 * self.request.fractional)
            and not (places.size and not sums)
            and np.all((places >= 0) & (places < entries))
            and np.all(np.diff(places) > 0)
            and all(np.all((values >= 0) & np.isfinite(values)) for values in sums)
        )
        if not sound:
            raise InputError(
                "a checkpoint must hold sums of rows; this one does not",
                where=Where(file=str(self.path)),
                cure=REMOVE,
            )

    def remove(self) -> None:
        """Forget the scan, once its result is on the disk."""
        remove_file(self.path)


def _fingerprint(request: Request, files: Sequence[DataFile]) -> str:
    described = [
        dict(request.selection),
        request.nodes,
        [request.scale.name, request.scale.locate(_PROBES).tolist()],  # two may have one name
        request.form,
        request.soft,
        [[*file.identity, _version(file)] for file in files],
        [file_jobs.JOB_ROWS, text.BLOCK_BYTES],  # how the work is cut
    ]
    return hashlib.sha256(json.dumps(described, default=str).encode()).hexdigest()


@contextmanager
def unchanged(files: Sequence[DataFile]) -> Iterator[None]:
    """Refuse files that are others when they have been read than when they were found."""
    before = [_identity_now(file) for file in files]
    yield
    for file, was in zip(files, before, strict=True):
        if _identity_now(file) != was or was[:2] != file.identity[1:]:
            raise changed(file.path)


def _identity_now(file: DataFile) -> list[Any]:
    """Size, time of change and whatever else tells a file from one that takes its place."""
    remote = getattr(getattr(file.filesystem, "handler", None), "fs", None)
    if remote is not None:
        remote.invalidate_cache()
    info = file.filesystem.get_file_info(file.path)
    inode = os.stat(file.path).st_ino if remote is None and os.path.exists(file.path) else None
    return [info.size or 0, str(info.mtime_ns), inode, _version(file)]


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
