"""Whether all of an Arrow file is read: every message of its table of contents, or of its stream.

The contents of a file stand at its end, and are all that a reader goes by: an entry that is missing is
a batch that is never read. The messages lie one behind the other, so what is missing leaves a gap. A
stream has no contents, but an end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from calibrant.io.find_files import DataFile

__all__ = ["ARROW_MAGIC", "require_all_messages", "require_end"]

ARROW_MAGIC = b"ARROW1"
"""How a file of Arrow begins and ends; a stream begins otherwise."""
FIRST_MESSAGE = 8
CONTINUES = 0xFFFFFFFF
DICTIONARIES, BATCHES = 2, 3
"""Fields of the contents, a flatbuffer."""
BLOCK = struct.Struct("<qi4xq")
"""An entry: where a message begins, and the lengths of its header and its body."""
MARK_BYTES = 8
"""Of the end of the stream of messages, which some writers of files leave out."""
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"


def require_all_messages(handle: Any, size: int) -> None:
    """Refuse a file with a gap between its messages.

    Parameters
    ----------
    handle
        The open file.
    size : int
        Its length.
    """
    tail = len(ARROW_MAGIC) + 4
    handle.seek(size - tail)
    (length,) = struct.unpack("<i", handle.read(4))
    handle.seek(size - tail - length)
    contents = handle.read(length)
    blocks = sorted([*_blocks(contents, DICTIONARIES), *_blocks(contents, BATCHES)])
    at = blocks[0][0] if blocks else size - tail - length
    handle.seek(FIRST_MESSAGE)
    mark, schema = struct.unpack("<Ii", handle.read(8))
    if mark == CONTINUES and not 0 <= at - (FIRST_MESSAGE + 8 + schema) <= MARK_BYTES:
        raise ValueError("its contents lack a message")
    for place, header, body in blocks:
        if place != at or header <= 0 or body < 0:
            raise ValueError("its contents lack a message")
        at += header + body
    if not 0 <= size - tail - length - at <= MARK_BYTES:
        raise ValueError("its contents lack a message")


def require_end(file: DataFile, handle: Any) -> None:
    """Refuse a stream that was read up to here and does not end here, or was cut before its end.

    Arrow takes the end of the file for the end of the stream, wherever a message ends.
    """
    if handle.read(1):
        raise ValueError("something follows its end")
    if file.compression is None:
        with file.open() as whole:
            whole.seek(max(0, file.size - len(END_OF_STREAM)))
            if whole.read() != END_OF_STREAM:
                raise ValueError("it ends before the end of its stream")


def _blocks(contents: bytes, field: int) -> Iterator[tuple[int, int, int]]:
    """The entries under a field of the contents."""
    (root,) = struct.unpack_from("<I", contents, 0)
    layout = root - struct.unpack_from("<i", contents, root)[0]
    entry = 4 + 2 * field
    if entry >= struct.unpack_from("<H", contents, layout)[0]:
        return
    (inside,) = struct.unpack_from("<H", contents, layout + entry)
    if inside:
        vector = root + inside + struct.unpack_from("<I", contents, root + inside)[0]
        (count,) = struct.unpack_from("<I", contents, vector)
        for number in range(count):
            yield BLOCK.unpack_from(contents, vector + 4 + BLOCK.size * number)
