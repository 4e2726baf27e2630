"""CSV and JSON lines: blocks of whole lines, parsed in parallel, with the line of what is unreadable."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from calibrant.errors import CalibrantError, InputError, Where
from calibrant.io.arrow_batches import Batch
from calibrant.io.csv_reader import CsvParser
from calibrant.io.file_layout import GroupKinds
from calibrant.io.find_files import DataFile
from calibrant.io.json_reader import JsonParser
from calibrant.io.quotes import Quotes
from calibrant.io.scan_request import Request

__all__ = ["head_of_text", "text_blocks", "text_jobs"]

BLOCK_BYTES = 1 << 24
MOST_BLOCKS = 4
"""A line that is longer than so many blocks is a mistake, and must not fill the memory."""
LINE_FEED = 0x0A
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
Batches = Iterator[Batch]


def text_jobs(
    files: Sequence[DataFile], request: Request
) -> Iterator[tuple[Callable[[], Batches], int]]:
    """A reader and a size in bytes for each block of each file."""
    kinds = GroupKinds(request)
    for found in files:
        # The separator is looked for before the file is read: of some stores, two readers share a place.
        is_csv = found.format == "csv"
        file = replace(found, separator=found.delimiter) if is_csv else found
        parser: CsvParser | JsonParser | None = None
        for block, line in text_blocks(file):
            if parser is None:
                parser = (CsvParser if file.format == "csv" else JsonParser)(file, block, request)
                held = {a: parser.kinds[name] or "null" for a, name in parser.names.items()}
                kinds.require(file, held, parser.constants)
            yield _job(parser, block, line), len(block)
        if parser is None:
            raise _empty_file(file)


def _job(parser: CsvParser | JsonParser, block: bytes, line: int) -> Callable[[], Batches]:
    def read() -> Batches:
        try:
            yield parser.parse(block, line)
        except InputError:
            raise
        except Exception as error:
            try:
                yield parser.read_slowly(block, line, error)
            except CalibrantError:
                raise
            except Exception as other:  # damaged text may raise anything
                raise InputError(
                    "the lines from here on cannot be read: {error}",
                    error=str(other),
                    where=Where(file=parser.file.path, line=line),
                    cure="Check the line: it is damaged, or of another format.",
                ) from other

    return read


def text_blocks(file: DataFile) -> Iterator[tuple[bytes, int]]:
    """Blocks that end with a line, and the number of the first line of each."""
    rest, line = b"", 1
    for piece in _pieces(file):
        _refuse_nul(file, rest, piece, line)
        block = rest + piece
        end = _last_line_end(file, block, line)
        if end:
            yield block[:end], line
            # NumPy counts what is frequent faster than bytes do, and lets other threads go on.
            line += int(np.count_nonzero(np.frombuffer(block, np.uint8, end) == LINE_FEED))
        rest = block[end:]
    if rest.strip():
        _last_line_end(file, rest, line, is_last=True)
        yield rest, line


def _refuse_nul(file: DataFile, rest: bytes, piece: bytes, line: int) -> None:
    """Refuse bytes of value 0, which would end a line for one reader and not for another."""
    place = piece.find(b"\0")
    if place >= 0:
        number = line + rest.count(b"\n") + piece.count(b"\n", 0, place)
        raise InputError(
            "text must not hold a NUL byte",
            where=Where(file=file.path, line=number),
            cure="The file was damaged, or is not in UTF-8: write or convert it again.",
        )


def head_of_text(file: DataFile, size: int) -> str:
    """The first bytes of a file as text, without a byte-order mark."""
    with file.stream() as stream:
        start = stream.read(size)
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(
            "the file must be in UTF-8",
            seen="UTF-16",
            where=Where(file=file.path),
            cure="Save it again as UTF-8, or convert it with {command}.",
            command="`iconv -f UTF-16 -t UTF-8`",
        )
    head: str = start.decode("utf-8-sig", errors="replace")
    if not head.strip():
        raise _empty_file(file)
    return head


def _empty_file(file: DataFile) -> InputError:
    """The error for a file of text without a line."""
    return InputError(
        "the file must not be empty",
        seen=0,
        where=Where(file=file.path),
        saying="{where} has no lines",
        cure="Write it again, or leave it out.",
    )


def _pieces(file: DataFile) -> Iterator[bytes]:
    """The file's text, some megabytes at a time, without a byte order mark."""
    try:
        with file.stream() as stream:
            piece = stream.read(BLOCK_BYTES).removeprefix(BYTE_ORDER_MARK)
            while piece:
                yield piece
                piece = stream.read(BLOCK_BYTES)
    except (OSError, ValueError) as error:  # Arrow's errors are of these kinds
        raise InputError(
            "the file cannot be read to its end: {error}",
            where=Where(file=file.path),
            cure="It is damaged, or not all there: copy it again.",
            error=str(error),
        ) from error


def _last_line_end(file: DataFile, block: bytes, line: int, *, is_last: bool = False) -> int:
    """Where the last whole line of the block ends; refuses quotes that would swallow lines."""
    is_long = len(block) > MOST_BLOCKS * BLOCK_BYTES
    if file.format != "csv" or b'"' not in block:
        end = block.rfind(b"\n") + 1
    else:
        quotes = Quotes(block, file.delimiter)
        end = quotes.last_line_end()
        if (start := quotes.goes_on()) >= 0:
            _refuse_quote(file, block, line, start, "goes on after its closing quote")
        if (start := quotes.never_closed()) >= 0 and (is_last or (is_long and not end)):
            _refuse_quote(file, block, line, start, "is never closed")
    if is_long and not end:
        raise InputError(
            "a line must end, with a line feed, within {size} MB",
            where=Where(line=line, file=file.path),
            size=MOST_BLOCKS * BLOCK_BYTES >> 20,
            cure="Check that the file is text with lines.",
        )
    return end


def _refuse_quote(file: DataFile, block: bytes, line: int, start: int, seen: str) -> NoReturn:
    number = line + block.count(b"\n", 0, start)
    beginning = block[start : start + 20].decode(errors="replace")
    raise InputError(
        "a quoted field must end with a quote and then a delimiter or the line",
        seen=beginning,
        where=Where(line=number, file=file.path),
        saying="the one that begins with {} {problem}, which would swallow lines after it",
        problem=seen,
        cure="Double a quote that is part of the text.",
    )
