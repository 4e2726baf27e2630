"""Files that appear whole or not at all."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from calibrant._files import replaced_when_whole
from calibrant.cli.text import printable, quoted
from calibrant.errors import InputError

__all__ = ["require_ending", "require_writable", "written"]


def require_ending(
    output: str, endings: tuple[str, ...], what: str, inputs: Sequence[str] = ()
) -> Path:
    """The path, if its ending is one of these and it may be written."""
    target = Path(output)
    if target.suffix.lower() not in endings:
        raise InputError(f"{what} is written as {' or '.join(endings)}; got {quoted(output, 200)}.")
    require_writable(output, inputs)
    return target


def require_writable(output: str, inputs: Sequence[str] = ()) -> None:
    """Refuse a file without a folder, one that is read-only or one that is read, before all else."""
    folder = Path(output).parent
    if not folder.is_dir():
        raise InputError(f"there is no folder {quoted(folder, 200)}; make it first.")
    if not os.path.exists(output):
        return
    if not os.stat(output).st_mode & 0o222:
        raise InputError(
            f"{quoted(output, 200)} is read-only; write to another file, or make it writable."
        )
    if any(os.path.samefile(output, path) for name in inputs for path in _paths(name)):
        raise InputError(
            f"the output must not be one of the files that are read; {quoted(output, 200)} is. Write "
            "to another file."
        )


def _paths(name: str) -> Iterator[str]:
    """The files on this machine that a word of the command names."""
    name = os.path.expanduser(name)
    if os.path.isdir(name):
        from calibrant.read.find_files import FORMAT_OF

        # Anything else in a folder is not read: a report of yesterday may be written again.
        within = glob.iglob(os.path.join(glob.escape(name), "**", "*"), recursive=True)
        yield from (path for path in within if any(e in path.lower() for e in FORMAT_OF))
    elif os.path.exists(name):
        yield name
    else:
        yield from glob.iglob(name, recursive=True)


def written(target: Path, write: Callable[[Path], object]) -> int:
    """Let `write` make the file, whole or not at all; its size."""
    try:
        with replaced_when_whole(target) as path:
            write(path)
    except OSError as error:
        raise InputError(
            f"{printable(target, 200)} cannot be written: {error.strerror or error}."
        ) from error
    return target.stat().st_size
