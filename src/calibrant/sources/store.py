"""Where files lie: paths, globs, folders and hive partitions, on this machine or behind fsspec."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from calibrant._optional import require
from calibrant.errors import InputError

__all__ = ["DataFile", "find_files"]

FORMAT_OF = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSION_OF = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class DataFile:
    """One file: what it is, where it lies, and the partition values in its path."""

    path: str
    format: str
    compression: str | None
    size: int
    modified: str
    partitions: Mapping[str, Any]
    filesystem: Any

    def open(self) -> Any:
        """The file, for reading at any place."""
        return self.filesystem.open_input_file(self.path)

    def stream(self) -> Any:
        """The file's contents from the beginning, decompressed."""
        return self.filesystem.open_input_stream(self.path, compression=self.compression)

    @property
    def identity(self) -> list[Any]:
        """What must not change between a scan and its resumption."""
        return [self.path, self.size, self.modified]


def find_files(source: Any) -> list[DataFile]:
    """All files of a path, a glob, a folder, or a list of these, in a fixed order."""
    given = list(source) if isinstance(source, list | tuple) else [source]
    if not given:
        raise InputError("`source` must name at least one file; the list is empty.")
    found: dict[str, DataFile] = {}
    for item in given:
        for file in _find(os.fspath(item)):
            found.setdefault(file.path, file)
    files = _with_typed_partitions(list(found.values()))
    formats = sorted({file.format for file in files})
    if len(formats) > 1:
        raise InputError(
            f"the files of one scan must be of one format; {source!r} holds {', '.join(formats)}. "
            "Narrow it with a glob, such as `folder/**/*.parquet`."
        )
    return files


def _find(pattern: str) -> list[DataFile]:
    filesystem, paths = _remote(pattern) if "://" in pattern else _local(pattern)
    infos = filesystem.get_file_info(paths)
    files = [_described(info, filesystem) for info in infos if info.is_file]
    if not files:
        raise InputError(
            f"`source` must name files that exist; nothing matches {pattern!r}. Known formats: "
            f"{', '.join(FORMAT_OF)}."
        )
    return files


def _local(pattern: str) -> tuple[Any, list[str]]:
    filesystem = require("pyarrow.fs", caller="scan").LocalFileSystem()
    pattern = os.path.expanduser(pattern)
    if os.path.isdir(pattern):
        paths = glob.glob(os.path.join(glob.escape(pattern), "**", "*"), recursive=True)
        return filesystem, sorted(path for path in paths if _is_data(path, pattern))
    if os.path.exists(pattern):
        return filesystem, [pattern]
    return filesystem, sorted(glob.glob(pattern, recursive=True))


def _remote(pattern: str) -> tuple[Any, list[str]]:
    fsspec = require("fsspec.core", caller="scan of a remote path")
    arrow = require("pyarrow.fs", caller="scan")
    remote, path = fsspec.url_to_fs(pattern)
    filesystem = arrow.PyFileSystem(arrow.FSSpecHandler(remote))
    if remote.isdir(path):
        return filesystem, sorted(name for name in remote.find(path) if _is_data(name, path))
    return filesystem, sorted(remote.glob(path)) if glob.has_magic(path) else [path]


def _is_data(path: str, root: str) -> bool:
    """Whether a file of a folder is meant: known formats, nothing hidden (such as `_SUCCESS`)."""
    inside = path[len(root) :]
    hidden = any(part.startswith((".", "_")) for part in inside.split("/") if part)
    return not hidden and _format(path)[0] is not None


def _format(path: str) -> tuple[str | None, str | None]:
    stem, extension = os.path.splitext(path.lower())
    compression = COMPRESSION_OF.get(extension)
    if compression:
        extension = os.path.splitext(stem)[1]
    return FORMAT_OF.get(extension), compression


def _described(info: Any, filesystem: Any) -> DataFile:
    kind, compression = _format(info.path)
    if kind is None:
        raise InputError(
            f"the ending of a file must say its format: {', '.join(FORMAT_OF)}; got {info.path!r}."
        )
    return DataFile(
        path=info.path,
        format=kind,
        compression=compression,
        size=info.size or 0,
        modified=str(info.mtime_ns),
        partitions=_partitions(info.path),
        filesystem=filesystem,
    )


def _partitions(path: str) -> dict[str, str | None]:
    """The `name=value` folders of a path."""
    pairs = (part.split("=", 1) for part in path.split("/")[:-1] if re.match(r"[^=]+=", part))
    values = {name: unquote(value) for name, value in pairs}
    return {name: None if value == _NULL_PARTITION else value for name, value in values.items()}


def _with_typed_partitions(files: list[DataFile]) -> list[DataFile]:
    names = {name for file in files for name in file.partitions}
    readers = {name: reader_of(file.partitions.get(name) for file in files) for name in names}
    return [
        DataFile(
            **{
                **file.__dict__,
                "partitions": {k: readers[k](v) for k, v in file.partitions.items()},
            }
        )
        for file in files
    ]


def reader_of(values: Iterable[str | None]) -> Any:
    """How to read text values of one column: as integers, if all of them are written as such."""
    integers = all(value is None or re.fullmatch(r"0|-?[1-9]\d*", value) for value in values)
    return lambda value: int(value) if integers and value is not None else value
