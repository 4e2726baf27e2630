"""Where files lie: paths, globs, folders and hive partitions, on this machine or behind fsspec."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from calibrant._files import decoding
from calibrant._optional import require
from calibrant.errors import InputError, MissingDependency, Where
from calibrant.io.csv_rows import separator_of

__all__ = ["DataFile", "changed", "find_files", "short_names", "unchanged_file"]

PEEK_BYTES = 1 << 16

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
OTHER_DATA = ("", ".xz", ".zip", ".orc", ".avro", ".xlsx", ".xls", ".txt", ".dat")
"""Endings of files in a folder that may well hold rows, and cannot be read."""
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
    separator: str | None = None

    def open(self) -> Any:
        """The file, for reading at any place."""
        return self.filesystem.open_input_file(self.path)

    def stream(self) -> Any:
        """The file's contents from the beginning, decompressed."""
        return self.filesystem.open_input_stream(self.path, compression=self.compression)

    @property
    def delimiter(self) -> str:
        """What stands between the fields of a CSV."""
        if self.separator is not None:
            return self.separator
        return "\t" if _endings(self.path)[0] == ".tsv" else self._detected_delimiter

    @cached_property
    def _detected_delimiter(self) -> str:
        try:
            with self.stream() as stream:
                first = stream.read(PEEK_BYTES).split(b"\n", 1)[0]
        except (OSError, ValueError):  # said again, with its place, when the file is read
            return ","
        return separator_of(first.decode("utf-8", errors="replace"))

    @property
    def identity(self) -> list[Any]:
        """What must not change between a scan and its resumption."""
        return [self.path, self.size, self.modified]


LOGS_OF_TABLES = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders in which formats of tables keep what their files alone do not tell."""


def find_files(
    source: Any,
    *,
    besides: str | os.PathLike[str] | None = None,
    separator: str | None = None,
) -> list[DataFile]:
    """All files of a path, a glob, a folder, or a list of these, in a fixed order, each once.

    Other data in a folder is refused, but hidden files and the checkpoint, `besides`.
    """
    given = list(source) if isinstance(source, list | tuple) else [source]
    if not given:
        raise InputError(
            "must name at least one file",
            argument="data",
            seen=[],
            cure="Pass a path, a glob or a folder.",
        )
    ours = os.path.abspath(besides) if isinstance(besides, str | os.PathLike) else None
    found: dict[Any, DataFile] = {}
    for item in given:
        place, files = _find(os.fspath(item), ours)
        for file in files:
            found.setdefault((place, _absolute(file.path) if place is None else file.path), file)
    files = _with_typed_partitions(list(found.values()))
    formats = sorted({file.format for file in files})
    if len(formats) > 1:
        raise InputError(
            "the files of one scan must be of one format",
            seen=formats,
            saying="{source} holds {formats}",
            source=repr(source),
            formats=", ".join(formats),
            cure="Narrow a folder with a glob, such as folder/**/*.parquet; or scan each format by "
            "itself and add up the sketches.",
        )
    if separator is not None and (len(separator) != 1 or separator in '"\n\r'):
        raise InputError(
            "must be one character",
            argument="sep",
            seen=separator,
            cure="Leave it out to let the first lines decide.",
        )
    if separator is not None and formats != ["csv"]:
        raise InputError(
            "is what stands between the fields of CSV",
            argument="sep",
            seen=formats[0],
            saying="these files are {}",
            cure="Leave it out.",
        )
    return [replace(file, separator=separator) for file in files] if separator else files


def short_names(files: Sequence[DataFile]) -> list[str]:
    """A name for each file that no other has: the last part of its path, or all of it."""
    short = [os.path.basename(file.path.rstrip("/")) or file.path for file in files]
    return short if len(set(short)) == len(short) else [file.path for file in files]


def _absolute(path: str) -> str:
    return os.path.normcase(os.path.abspath(path))


def _find(pattern: str, ours: str | None) -> tuple[Any, list[DataFile]]:
    """The files that a pattern names, and where they lie: None is this machine."""
    place, filesystem, paths = (_remote if "://" in pattern else _local)(pattern, ours)
    infos = filesystem.get_file_info(paths)
    files = [_described(info, filesystem) for info in infos if info.is_file]
    if not files and any(info.type.name == "Directory" for info in infos):
        raise InputError(
            "must name files",
            argument="data",
            seen=pattern,
            saying="{} matches nothing but folders",
            cure="Go on into them, such as with {inside}.",
            inside=repr(pattern.rstrip("/") + "/**/*.parquet"),
        )
    if not files:
        raise InputError(
            "must name files that exist",
            argument="data",
            seen=pattern,
            saying="nothing matches {}",
            cure="Supported: {formats}.",
            formats=", ".join(FORMAT_OF),
        )
    return place, files


def _local(pattern: str, ours: str | None) -> tuple[None, Any, list[str]]:
    filesystem = require("pyarrow.fs", caller="scan").LocalFileSystem()
    pattern = os.path.expanduser(pattern)
    if os.path.isdir(pattern):
        paths = glob.glob(os.path.join(glob.escape(pattern), "**", "*"), recursive=True)
        files = (path for path in paths if not os.path.isdir(path))
        return None, filesystem, _data_of(pattern, files, ours)
    if os.path.exists(pattern):
        return None, filesystem, [pattern]
    return None, filesystem, sorted(glob.glob(pattern, recursive=True))


def _remote(pattern: str, ours: str | None) -> tuple[Any, Any, list[str]]:
    fsspec = require("fsspec.core", caller="scan of a remote path")
    arrow = require("pyarrow.fs", caller="scan")
    try:
        remote, path = fsspec.url_to_fs(pattern)
    except ImportError as error:
        raise MissingDependency(
            "a scan of {pattern} needs a package that is not installed: {error}",
            pattern=repr(pattern),
            error=str(error),
        ) from error
    except ValueError as error:
        raise InputError(
            "must name files at an address that fsspec knows",
            argument="data",
            seen=pattern,
            saying="got {}: {error}",
            error=str(error),
            cure="Check the address, and that its package is installed.",
        ) from error
    named = remote.protocol
    place = None if "file" in ((named,) if isinstance(named, str) else named) else remote
    filesystem = arrow.PyFileSystem(arrow.FSSpecHandler(remote))
    if remote.isdir(path):
        return place, filesystem, _data_of(path, remote.find(path), ours)
    return place, filesystem, sorted(remote.glob(path)) if glob.has_magic(path) else [path]


def _data_of(folder: str, files: Iterable[str], ours: str | None) -> list[str]:
    """The files of a folder but the hidden ones (such as `_SUCCESS`); refuses other data."""
    files = list(files)
    for log, table in LOGS_OF_TABLES.items():
        if any(f"/{log}/" in f"/{path[len(folder) :]}" for path in files):
            raise InputError(
                "{folder} is a {table} table, whose log says which files still count",
                seen=log,
                saying="it holds {}",
                cure="Open it with its own package, and pass what it gives, such as an Arrow dataset.",
                folder=folder,
                table=table,
            )
    shown = (path for path in files if not _is_hidden(path[len(folder) :]))
    seen = sorted(path for path in shown if ours is None or os.path.abspath(path) != ours)
    unknown = [path for path in seen if os.path.splitext(path.lower())[1] in OTHER_DATA]
    if unknown:
        names = [os.path.relpath(path, folder) for path in unknown[:5]]
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise InputError(
            "cannot read {count} in {folder}: {names}{more}",
            seen=unknown,
            saying="",
            cure=[
                "Supported: {formats}.",
                "Choose files with a glob, such as folder/**/*.parquet.",
            ],
            count="1 file" if len(unknown) == 1 else f"{len(unknown)} files",
            folder=folder,
            names=", ".join(names),
            more=more,
            formats=", ".join(FORMAT_OF),
        )
    return [path for path in seen if _format(path)[0] is not None]


def _is_hidden(inside: str) -> bool:
    return any(part.startswith((".", "_")) for part in inside.split("/") if part)


def _endings(path: str) -> tuple[str, str | None]:
    """What says the format, and what says how it is compressed."""
    stem, ending = os.path.splitext(path.lower())
    return (os.path.splitext(stem)[1], ending) if ending in COMPRESSION_OF else (ending, None)


def _format(path: str) -> tuple[str | None, str | None]:
    ending, packed = _endings(path)
    return FORMAT_OF.get(ending), packed and COMPRESSION_OF[packed]


def _described(info: Any, filesystem: Any) -> DataFile:
    kind, compression = _format(info.path)
    if kind is None:
        raise InputError(
            "the ending of a file must say its format: {formats}",
            seen=info.path,
            cure="Rename the file so that it ends in one of them.",
            formats=", ".join(FORMAT_OF),
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
        replace(file, partitions={k: readers[k](v) for k, v in file.partitions.items()})
        for file in files
    ]


def reader_of(values: Iterable[str | None]) -> Any:
    """How to read text values of one column: as integers, if all of them are written as such."""
    integers = all(value is None or re.fullmatch(r"0|-?[1-9]\d*", value) for value in values)
    return lambda value: int(value) if integers and value is not None else value


@contextmanager
def unchanged_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Refuse a file that is another, longer or newer at the end of the block than at its beginning."""

    def identity() -> tuple[int, ...]:
        about = os.stat(path)
        return about.st_size, about.st_mtime_ns, about.st_ino

    with decoding("a file", path):
        before = identity()
    yield
    with decoding("a file", path):
        if identity() != before:
            raise changed(path)


def changed(path: str | os.PathLike[str]) -> InputError:
    """What to raise of a file that changed while it was read."""
    return InputError(
        "a file must not change while it is read, and this one did",
        where=Where(file=str(path)),
        cure="Read it again when it is complete.",
    )
