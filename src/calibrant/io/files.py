"""Data files: paths, globs, folders and hive partitions, on this machine or behind fsspec; the formats."""

from __future__ import annotations

import glob
import importlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any, Protocol
from urllib.parse import unquote

from calibrant._optional import require
from calibrant.errors import CalibrantError, InputError, MissingDependency, invalid, show_value
from calibrant.io.request import Request, require_columns

LONGEST_LINE = 1 << 26
"""Bytes of a line of text, or a sample of a log: 64 MB; more is a mistake, and must not fill memory."""
COMPRESSION_OF = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
OTHER_DATA = ("", ".xz", ".zip", ".avro", ".xlsx", ".xls", ".txt", ".dat")
"""Endings of files in a folder that may well hold rows, where no format has them: these cannot be read."""
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

    def jobs(self, request: Any) -> Iterator[Job]:
        """Jobs in a fixed order."""

    def table(self) -> Any:
        """All columns and rows as an Arrow table."""


_FORMATS: dict[str, tuple[type[OpenFile], tuple[str, ...]]] = {}
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
        _FORMATS[name] = opened, endings
        return opened

    return register


def formats() -> Mapping[str, tuple[type[OpenFile], tuple[str, ...]]]:
    """Readers and endings of the formats by name."""
    for module in _MODULES:
        importlib.import_module(f"calibrant.io.{module}")
    return _FORMATS


def _supported() -> str:
    return f"Supported: {', '.join(sorted(e for _, own in formats().values() for e in own))}."


@dataclass(frozen=True, eq=False)
class DataFile:
    """File to read: its format, its place, and the partition values in its path."""

    path: str
    format: str
    compression: str | None
    size: int
    filesystem: Any
    partitions: Mapping[str, Any] = field(default_factory=dict)
    separator: str | None = None

    def __fspath__(self) -> str:
        return self.path

    def open(self) -> Any:
        """Handle for reading at any place."""
        return self.filesystem.open_input_file(self.path)

    def stream(self) -> Any:
        """Contents from the beginning, decompressed."""
        return self.filesystem.open_input_stream(self.path, compression=self.compression)

    @lru_cache(maxsize=1)  # noqa: B019  # who asks for the columns of a file reads it next
    def opened(self) -> OpenFile:
        """The file as its format reads it; whatever is wrong with it becomes an InputError."""
        with damaged_file(self):
            return _FORMATS[self.format][0](self)

    def identity(self) -> list[Any]:
        """Size, times and other marks that tell a file from one that takes its place; of a store, its own."""
        if self.filesystem.type_name == "local":
            return _local_identity(self.path)
        remote = self.filesystem.handler.fs
        remote.invalidate_cache()
        return [remote.info(self.path).get("size"), remote.ukey(self.path)]


@contextmanager
def damaged_file(file: DataFile) -> Iterator[None]:
    """Errors of readers on damaged bytes, of whatever kind, as InputError with the name of the file."""
    try:
        yield
    except MissingDependency:
        raise
    except InputError as error:
        raise error if error.file is not None else error.at(file=file.path) from error
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
    waiting: list[Job] = []
    for job in (job for file in files for job in file.opened().jobs(request)):
        waiting.append(job)
        if job.rows is None or sum(each.rows or 0 for each in waiting) >= largest:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(jobs: list[Job]) -> Job:
    return Job(
        lambda: chain.from_iterable(job.read() for job in jobs), sum(job.size for job in jobs)
    )


# -- finding -----------------------------------------------------------------------------------


def find_files(
    source: Any, *, besides: str | os.PathLike[str] | None = None, separator: str | None = None
) -> list[DataFile]:
    """All files of a path, a glob, a folder, or a list of these, in a fixed order, each once.

    Other data in a folder is refused, but hidden files and the checkpoint, `besides`.
    """
    given = list(source) if isinstance(source, list | tuple) else [source]
    if not given:
        raise InputError("`data` must name at least one file; the list is empty.")
    if all(isinstance(item, DataFile) for item in given):  # which were found before
        return given
    ours = os.path.abspath(besides) if isinstance(besides, str | os.PathLike) else None
    found: dict[Any, DataFile] = {}
    for item in given:
        pattern = os.fspath(item)
        try:
            for place, file in _find(pattern, ours):
                found.setdefault(place, file)
        except CalibrantError:
            raise
        except (OSError, ValueError) as error:  # a NUL, a circle of links, no such store
            reason = getattr(error, "strerror", None) or show_value(str(error))
            message = f"`data` must name files that can be read; {show_value(pattern)}: {reason}."
            raise InputError(message, argument="data", file=pattern) from error
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
            raise InputError(f"`sep` is for CSV; these files are {kinds[0]}.")
    return [replace(file, separator=separator) for file in files]


def short_names(files: Sequence[DataFile]) -> list[str]:
    """Name for each file that no other has: the last part of its path, or all of it."""
    short = [os.path.basename(file.path.rstrip("/")) or file.path for file in files]
    return short if len(set(short)) == len(short) else [file.path for file in files]


def _find(pattern: str, ours: str | None) -> Iterator[tuple[Any, DataFile]]:
    """Files that a pattern names, each with what tells it from all others."""
    arrow = require("pyarrow.fs", caller="scan")
    remote, path = _remote(pattern) if "://" in pattern else (None, pattern)
    if remote is None:
        filesystem = arrow.LocalFileSystem()
        paths = _local_paths(os.path.expanduser(path), ours)
    else:
        filesystem = arrow.PyFileSystem(arrow.FSSpecHandler(remote))
        if remote.isdir(path):
            paths = _data_of(path, remote.find(path), ours)
        else:
            paths = sorted(remote.glob(path)) if glob.has_magic(path) else [path]
    infos = filesystem.get_file_info(paths)
    if not any(info.is_file for info in infos):
        folders = any(info.type.name == "Directory" for info in infos)
        inside = pattern.rstrip("/") + "/**/*.parquet"
        raise InputError(
            f"`data` must name files that exist; {show_value(pattern)} matches "
            f"{'nothing but folders' if folders else 'nothing'}.",
            file=pattern,
            hint=f"Go on into them, such as with {inside!r}." if folders else _supported(),
        )
    for info in infos:
        if info.is_file:
            name = os.path.normcase(os.path.abspath(info.path)) if remote is None else info.path
            kind, compression = _format(info.path)
            if kind is None:
                raise InputError(
                    f"The ending of {show_value(info.path)} must say its format.",
                    argument="data",
                    file=info.path,
                    hint=_supported(),
                )
            yield (remote, name), DataFile(info.path, kind, compression, info.size or 0, filesystem)


def _remote(address: str) -> tuple[Any, str]:
    """Store of fsspec behind an address, None where it is this machine, and the path there."""
    fsspec = require("fsspec.core", caller="scan of a remote path")
    try:
        remote, path = fsspec.url_to_fs(address)
    except ImportError as error:
        raise MissingDependency(
            f"A scan of {address!r} needs a package that is not installed: {error}."
        ) from error
    return (None if "file" in remote.protocol else remote), path


def _local_paths(pattern: str, ours: str | None) -> list[str]:
    try:
        os.stat(pattern)
    except FileNotFoundError:
        return sorted(glob.glob(pattern, recursive=True))
    if not os.path.isdir(pattern):
        return [pattern]
    inside = os.path.join(glob.escape(pattern), "**", "*")
    paths = glob.glob(inside, recursive=True, include_hidden=True)
    return _data_of(pattern, (path for path in paths if not os.path.isdir(path)), ours)


def _data_of(folder: str, files: Iterable[str], ours: str | None) -> list[str]:
    """Files of a folder but the hidden ones (such as `_SUCCESS`); refuses other data."""
    shown, unknown = [], []
    for path in sorted(files):
        parts = [part for part in path[len(folder) :].split("/") if part]
        log = next((TABLE_LOGS[part] for part in parts if part in TABLE_LOGS), None)
        if log is not None:
            raise InputError(
                f"{folder} is a {log} table, whose log, {parts[0]!r}, says which files still count.",
                argument="data",
                hint="Open it with its own package, and pass what it gives, such as an Arrow dataset.",
            )
        if any(part.startswith((".", "_")) for part in parts) or os.path.abspath(path) == ours:
            continue
        if _format(path)[0] is not None:
            shown.append(path)
        elif os.path.splitext(path.lower())[1] in OTHER_DATA:
            unknown.append(os.path.relpath(path, folder))
    if unknown:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise InputError(
            f"Files in {folder} cannot be read: {', '.join(unknown[:5])}{more}.",
            argument="data",
            hint=f"{_supported()} Choose files with a glob, such as folder/**/*.parquet.",
        )
    return shown


def _format(path: str) -> tuple[str | None, str | None]:
    """Format that the ending of a path says, and how the file is compressed."""
    stem, ending = os.path.splitext(path.lower())
    compression = COMPRESSION_OF.get(ending)
    ending = os.path.splitext(stem)[1] if compression else ending
    names = (name for name, (_, endings) in formats().items() if ending in endings)
    return next(names, None), compression


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
