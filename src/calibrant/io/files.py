"""Data files: paths, globs, folders and hive partitions, on this machine or behind fsspec; the formats."""

from __future__ import annotations

import glob
import importlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol
from urllib.parse import unquote

from calibrant._optional import require
from calibrant.errors import InputError, MissingDependency, invalid, show_value
from calibrant.io.request import Request, require_columns

__all__ = [
    "DataFile",
    "GroupTypes",
    "Job",
    "OpenFile",
    "damaged_file",
    "file_format",
    "find_files",
    "formats",
    "integers_of",
    "jobs_of",
    "layout",
    "short_names",
    "unchanged",
    "unchanged_file",
]

LONGEST_LINE = 1 << 26
"""Bytes of a line of text, or a sample of a log: 64 MB; more is a mistake, and must not fill memory."""
COMPRESSION_OF = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
OTHER_DATA = ("", ".xz", ".zip", ".avro", ".xlsx", ".xls", ".txt", ".dat")
"""Endings of files in a folder that may well hold rows, and cannot be read."""
TABLE_LOGS = {"_delta_log": "Delta Lake", ".hoodie": "Hudi"}
"""Folders in which formats of tables keep what their files alone do not tell."""
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


# -- formats -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """Piece of a file that a thread reads by itself: `read()` gives batches under the names of a request.

    `size` is its share of the bytes of the file. Neighbouring jobs whose `rows` are known, or estimated, are
    read as one where they are small.
    """

    read: Callable[[], Iterator[Any]]
    size: int
    rows: int | None = None


class OpenFile(Protocol):
    """File whose columns are known: what a format gives."""

    def __init__(self, file: DataFile) -> None: ...

    @property
    def names(self) -> list[str]:
        """Names of the columns."""

    def jobs(self, request: Any, groups: Any) -> Iterator[Job]:
        """Jobs in a fixed order; `groups` takes note of the types of the grouping columns."""

    def table(self) -> Any:
        """All columns and rows as an Arrow table."""


@dataclass(frozen=True)
class _Format:
    opened: type[OpenFile]
    endings: tuple[str, ...]


_FORMATS: dict[str, _Format] = {}
_MODULES = ("columnar", "text")
"""Modules of this package that register formats."""


def file_format(name: str, *endings: str) -> Callable[[Any], Any]:
    """Class decorator that registers the format of files with these endings.

    Examples
    --------
    >>> sorted(formats())
    ['arrow', 'csv', 'jsonl', 'orc', 'parquet']
    """

    def register(opened: Any) -> Any:
        _FORMATS[name] = _Format(opened, endings)
        return opened

    return register


def formats() -> Mapping[str, _Format]:
    """Formats by name."""
    for module in _MODULES:
        importlib.import_module(f"calibrant.io.{module}")
    return _FORMATS


def known_endings() -> list[str]:
    """Endings of the files that can be read."""
    return [ending for each in formats().values() for ending in each.endings]


@dataclass(frozen=True)
class DataFile:
    """File to read: its format, its place, and the partition values in its path."""

    path: str
    format: str
    compression: str | None
    size: int
    filesystem: Any
    partitions: Mapping[str, Any] = field(default_factory=dict)
    separator: str | None = None

    def open(self) -> Any:
        """Handle for reading at any place."""
        return self.filesystem.open_input_file(self.path)

    def stream(self) -> Any:
        """Contents from the beginning, decompressed."""
        return self.filesystem.open_input_stream(self.path, compression=self.compression)

    def opened(self) -> OpenFile:
        """The file as its format reads it; whatever is wrong with it becomes an InputError."""
        with damaged_file(self):
            return _FORMATS[self.format].opened(self)

    @property
    def is_local(self) -> bool:
        """On this machine."""
        return bool(self.filesystem.type_name == "local")

    def identity(self) -> list[Any]:
        """Size, times and other marks that tell a file from one that takes its place."""
        if self.is_local:
            return _local_identity(self.path)
        remote = self.filesystem.handler.fs
        remote.invalidate_cache()
        about = remote.info(self.path)
        marks = {name: str(value) for name, value in about.items() if name.lower() in _MARKS}
        return [about.get("size"), marks or remote.ukey(self.path)]


_MARKS = {
    *("mtime", "etag", "lastmodified", "last-modified", "last_modified", "updated"),
    *("generation", "created", "modified", "md5hash", "content-md5"),
}
"""Under which names the stores that fsspec knows tell of a file's version."""


@contextmanager
def damaged_file(file: DataFile) -> Iterator[None]:
    """Errors of readers on damaged bytes, of whatever kind, as InputError with the name of the file."""
    try:
        yield
    except InputError as error:
        raise error if error.file is not None else error.at(file=file.path) from error
    except MissingDependency:
        raise
    except Exception as error:
        raise InputError(
            f"{file.path} is not a complete {file.format} file that can be read: "
            f"{show_value(str(error) or type(error).__name__)}.",
            file=file.path,
            hint="It is damaged, or of another format: write it again, or give it the ending of its format.",
        ) from error


# -- reading -----------------------------------------------------------------------------------

JOB_ROWS, GROUPED_JOB_ROWS = 1 << 22, 1 << 19
"""Rows that are worth a thread's while; those in groups are sorted, and their sums wait in memory."""


class GroupTypes:
    """Types of the grouping columns: the same in all files of a scan."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Any, str]] = {}

    def require(self, file: DataFile, types: Mapping[str, Any]) -> None:
        """Refuse a file with a column of another type than in the files before."""
        pyarrow = require("pyarrow", caller="scan")
        for name, kind in types.items():
            kind = kind.value_type if pyarrow.types.is_dictionary(kind) else kind
            kind = pyarrow.string() if str(kind) == "string_view" else kind
            first, path = self._seen.setdefault(name, (kind, file.path))
            both = (pyarrow.schema([(name, one)]) for one in (first, kind))
            try:
                merged = pyarrow.unify_schemas(both, promote_options="permissive")
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
                raise InputError(
                    f"Column {name!r} must be of one type in all files; it is {first} in {path} and "
                    f"{kind} in {file.path}.",
                    file=file.path,
                ) from error
            self._seen[name] = merged.types[0], path


def layout(
    file: DataFile, present: list[str], request: Request
) -> tuple[dict[str, str], dict[str, Any]]:
    """Names to read from the file, and groups that stand in its path, by alias."""
    constants = {
        alias: file.partitions[name]
        for alias, name in zip(request.group_aliases, request.groups.values(), strict=True)
        if name not in present and name in file.partitions
    }
    names = {a: name for a, name in request.selection.items() if a not in constants}
    require_columns(names.values(), present, file.path)
    return names, constants


def jobs_of(files: Sequence[DataFile], request: Request) -> Iterator[Job]:
    """Jobs for files of one format, in a fixed order; neighbouring small ones are joined."""
    request.require_names()
    largest = GROUPED_JOB_ROWS if request.by else JOB_ROWS
    types = GroupTypes()
    waiting: list[Job] = []
    for job in (job for file in files for job in file.opened().jobs(request, types)):
        waiting.append(job)
        if job.rows is None or sum(each.rows or 0 for each in waiting) >= largest:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(jobs: list[Job]) -> Job:
    if len(jobs) == 1:
        return jobs[0]
    read = lambda: chain.from_iterable(job.read() for job in jobs)  # noqa: E731
    return Job(read, sum(job.size for job in jobs))


# -- finding -----------------------------------------------------------------------------------


def find_files(
    source: Any, *, besides: str | os.PathLike[str] | None = None, separator: str | None = None
) -> list[DataFile]:
    """All files of a path, a glob, a folder, or a list of these, in a fixed order, each once.

    Other data in a folder is refused, but hidden files and the checkpoint, `besides`.
    """
    given = list(source) if isinstance(source, list | tuple) else [source]
    if not given:
        raise InputError("`data` must name at least one file; the list is empty.", argument="data")
    ours = os.path.abspath(besides) if isinstance(besides, str | os.PathLike) else None
    found: dict[Any, DataFile] = {}
    for item in given:
        pattern = os.fspath(item)
        try:
            place, files = _find(pattern, ours)
        except (
            OSError,
            ValueError,
        ) as error:  # a NUL, a circle of links, a store that is not there
            if isinstance(error, InputError | MissingDependency):
                raise
            reason = getattr(error, "strerror", None) or show_value(str(error))
            raise InputError(
                f"`data` must name files that can be read; {show_value(pattern)}: {reason}.",
                argument="data",
                file=pattern,
            ) from error
        for file in files:
            name = os.path.normcase(os.path.abspath(file.path)) if place is None else file.path
            found.setdefault((place, name), file)
    files = _with_partitions(list(found.values()))
    kinds = sorted({file.format for file in files})
    if len(kinds) > 1:
        raise InputError(
            f"The files of one scan must be of one format; these are {', '.join(kinds)}.",
            argument="data",
            hint="Narrow a folder with a glob, such as folder/**/*.parquet.",
        )
    if separator is not None:
        if not isinstance(separator, str) or len(separator) != 1 or separator in '"\n\r':
            raise invalid("sep", "be one character", separator)
        if kinds != ["csv"]:
            raise InputError(f"`sep` is for CSV; these files are {kinds[0]}.", argument="sep")
        files = [replace(file, separator=separator) for file in files]
    return files


def short_names(files: Sequence[DataFile]) -> list[str]:
    """Name for each file that no other has: the last part of its path, or all of it."""
    short = [os.path.basename(file.path.rstrip("/")) or file.path for file in files]
    return short if len(set(short)) == len(short) else [file.path for file in files]


def _find(pattern: str, ours: str | None) -> tuple[Any, list[DataFile]]:
    """Files that a pattern names, and where they lie: None is this machine."""
    place, filesystem, paths = (_remote if "://" in pattern else _local)(pattern, ours)
    infos = filesystem.get_file_info(paths)
    files = [_described(info, filesystem) for info in infos if info.is_file]
    if not files:
        folders = any(info.type.name == "Directory" for info in infos)
        inside = pattern.rstrip("/") + "/**/*.parquet"
        raise InputError(
            f"`data` must name files that exist; {show_value(pattern)} matches "
            f"{'nothing but folders' if folders else 'nothing'}.",
            argument="data",
            file=pattern,
            hint=f"Go on into them, such as with {inside!r}."
            if folders
            else f"Supported: {', '.join(known_endings())}.",
        )
    return place, files


def _local(pattern: str, ours: str | None) -> tuple[None, Any, list[str]]:
    filesystem = require("pyarrow.fs", caller="scan").LocalFileSystem()
    pattern = os.path.expanduser(pattern)
    try:
        os.stat(pattern)
    except FileNotFoundError:
        return None, filesystem, sorted(glob.glob(pattern, recursive=True))
    if os.path.isdir(pattern):
        paths = glob.glob(os.path.join(glob.escape(pattern), "**", "*"), recursive=True)
        files = (path for path in paths if not os.path.isdir(path))
        return None, filesystem, _data_of(pattern, files, ours)
    return None, filesystem, [pattern]


def _remote(pattern: str, ours: str | None) -> tuple[Any, Any, list[str]]:
    fsspec = require("fsspec.core", caller="scan of a remote path")
    arrow = require("pyarrow.fs", caller="scan")
    try:
        remote, path = fsspec.url_to_fs(pattern)
    except ImportError as error:
        raise MissingDependency(
            f"A scan of {pattern!r} needs a package that is not installed: {error}."
        ) from error
    named = remote.protocol
    if "file" in ((named,) if isinstance(named, str) else named):
        return _local(path, ours)
    filesystem = arrow.PyFileSystem(arrow.FSSpecHandler(remote))
    if remote.isdir(path):
        return remote, filesystem, _data_of(path, remote.find(path), ours)
    return remote, filesystem, sorted(remote.glob(path)) if glob.has_magic(path) else [path]


def _data_of(folder: str, files: Iterable[str], ours: str | None) -> list[str]:
    """Files of a folder but the hidden ones (such as `_SUCCESS`); refuses other data."""
    files = list(files)
    for log, table in TABLE_LOGS.items():
        if any(f"/{log}/" in f"/{path[len(folder) :]}" for path in files):
            raise InputError(
                f"{folder} is a {table} table, whose log in {log!r} says which files still count.",
                argument="data",
                hint="Open it with its own package, and pass what it gives, such as an Arrow dataset.",
            )
    shown = [
        path
        for path in sorted(files)
        if not any(part.startswith((".", "_")) for part in path[len(folder) :].split("/") if part)
        and (ours is None or os.path.abspath(path) != ours)
    ]
    unknown = [path for path in shown if os.path.splitext(path.lower())[1] in OTHER_DATA]
    if unknown:
        names = ", ".join(os.path.relpath(path, folder) for path in unknown[:5])
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise InputError(
            f"Files in {folder} cannot be read: {names}{more}.",
            argument="data",
            hint=f"Supported: {', '.join(known_endings())}. Choose files with a glob, such as "
            "folder/**/*.parquet.",
        )
    return [path for path in shown if _format(path)[0] is not None]


def _format(path: str) -> tuple[str | None, str | None]:
    """Format that the ending of a path says, and how the file is compressed."""
    stem, ending = os.path.splitext(path.lower())
    compression = COMPRESSION_OF.get(ending)
    ending = os.path.splitext(stem)[1] if compression else ending
    names = (name for name, each in formats().items() if ending in each.endings)
    return next(names, None), compression


def _described(info: Any, filesystem: Any) -> DataFile:
    kind, compression = _format(info.path)
    if kind is None:
        raise InputError(
            f"The ending of {show_value(info.path)} must say its format: {', '.join(known_endings())}.",
            argument="data",
            file=info.path,
        )
    return DataFile(info.path, kind, compression, info.size or 0, filesystem)


def _with_partitions(files: list[DataFile]) -> list[DataFile]:
    """Files with the values of the `name=value` folders of their paths."""
    found = []
    for file in files:
        pairs = (part.split("=", 1) for part in file.path.split("/")[:-1] if part.find("=") > 0)
        values = ((name, unquote(value)) for name, value in pairs)
        found.append({name: None if v == _NULL_PARTITION else v for name, v in values})
    for name in {name for each in found for name in each}:
        holders = [each for each in found if name in each]
        for each, value in zip(holders, integers_of([e[name] for e in holders]), strict=True):
            each[name] = value
    return [replace(file, partitions=each) for file, each in zip(files, found, strict=True)]


def integers_of(values: Sequence[Any]) -> list[Any]:
    """Text of one column as integers, if all of it is written as such, in at most 18 ASCII digits.

    Examples
    --------
    >>> integers_of(["13", None, "-2"]), integers_of(["13", "013"])
    ([13, None, -2], ['13', '013'])
    """
    if all(v is None or (isinstance(v, str) and _INTEGER.fullmatch(v)) for v in values):
        return [None if value is None else int(value) for value in values]
    return list(values)


# -- files that change -------------------------------------------------------------------------


@contextmanager
def unchanged(files: Sequence[DataFile]) -> Iterator[None]:
    """Refuse files that are others at the end of the block than at its beginning."""
    before = [file.identity() for file in files]
    yield
    for file, was in zip(files, before, strict=True):
        with damaged_file(file):
            if file.identity() != was or was[0] != file.size:
                raise _changed(file.path)


@contextmanager
def unchanged_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Refuse a local file that is another, longer or newer at the end of the block than at its beginning."""
    before = _local_identity(path)
    yield
    if not os.path.exists(path) or _local_identity(path) != before:
        raise _changed(os.fspath(path))


def _local_identity(path: str | os.PathLike[str]) -> list[int]:
    about = os.stat(path)
    return [about.st_size, about.st_mtime_ns, about.st_ino, about.st_ctime_ns]


def _changed(path: str) -> InputError:
    return InputError(
        f"A file must not change while it is read; {path} did.",
        file=path,
        hint="Read it again when it is complete.",
    )
