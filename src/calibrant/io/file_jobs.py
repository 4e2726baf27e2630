"""Files cut into jobs: pieces of about a million rows that threads read and sum independently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from calibrant.io.arrow_batches import Batch
from calibrant.io.file_layout import GroupKinds
from calibrant.io.find_files import DataFile
from calibrant.io.parquet_arrow_reader import arrow_pieces, parquet_pieces
from calibrant.io.scan_request import Request
from calibrant.io.text import text_jobs

__all__ = ["Job", "Jobs", "jobs_of"]

JOB_ROWS = 1 << 22
Batches = Iterator[Batch]


@dataclass(frozen=True)
class Job:
    """A piece of work: `read()` gives batches under the names of the request.

    `size` counts rows where the format knows them, else bytes.
    """

    read: Callable[[], Batches]
    size: int


@dataclass(frozen=True)
class Jobs:
    """The jobs of a scan, in a fixed order, and the total of their sizes."""

    jobs: Iterator[Job]
    total: int


def jobs_of(files: Sequence[DataFile], request: Request) -> Jobs:
    """The jobs for files of one format."""
    request.require_names()
    if files[0].format in ("csv", "jsonl"):
        jobs = (Job(read, size) for read, size in text_jobs(files, request))
        return Jobs(jobs, sum(file.size for file in files))
    pieces = parquet_pieces if files[0].format == "parquet" else arrow_pieces
    kinds = GroupKinds(request)
    cut = [piece for file in files for piece in pieces(file, request, kinds)]
    return Jobs(_bundled(cut), sum(rows for _, rows in cut))


def _bundled(pieces: list[tuple[Callable[[], Batches], int]]) -> Iterator[Job]:
    """Neighbouring pieces in one job until it is worth a thread's while."""
    waiting: list[Callable[[], Batches]] = []
    rows = 0
    for read, size in pieces:
        waiting.append(read)
        rows += size
        if rows >= JOB_ROWS:
            yield Job(_chained(waiting), rows)
            waiting, rows = [], 0
    if waiting:
        yield Job(_chained(waiting), rows)


def _chained(readers: list[Callable[[], Batches]]) -> Callable[[], Batches]:
    def read() -> Batches:
        for reader in readers:
            yield from reader()

    return read
