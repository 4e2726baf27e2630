"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calibrant.errors import InputError

__all__ = ["replaced_when_whole"]


@contextmanager
def replaced_when_whole(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to, which takes the place of `target` if the block ends without an error.

    It has the name of `target`, in a hidden folder beside it: two writers do not meet, and the file has
    the permissions that any new file gets, or those of the file that it replaces. A link stays, and
    what it points to is replaced; what is no file, such as a pipe, is written to as it is.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replaced_when_whole(folder / "note.txt") as path:
    ...     _ = path.write_text("whole")
    >>> (folder / "note.txt").read_text(), os.listdir(folder)
    ('whole', ['note.txt'])
    """
    final = Path(os.path.realpath(target))
    if final.exists() and not final.is_file():
        yield final
        return
    if not final.parent.is_dir():
        raise InputError(f"there is no folder {str(final.parent)!r}; make it first.")
    folder = tempfile.mkdtemp(dir=final.parent, prefix=".calibrant-")
    try:
        made = Path(folder, final.name)
        yield made
        with suppress(FileNotFoundError):
            shutil.copymode(final, made)
        os.replace(made, final)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
