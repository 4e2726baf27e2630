"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from calibrant.cli.text import printable, quoted
from calibrant.errors import InputError

__all__ = ["require_ending", "require_folder", "written"]


def require_ending(output: str, endings: tuple[str, ...], what: str) -> Path:
    """The path, if its ending is one of these."""
    target = Path(output)
    if target.suffix.lower() not in endings:
        raise InputError(f"{what} is written as {' or '.join(endings)}; got {quoted(output, 200)}.")
    require_folder(output)
    return target


def require_folder(output: str) -> None:
    """Refuse a file in a folder that does not exist, before anything is computed."""
    folder = Path(output).parent
    if not folder.is_dir():
        raise InputError(f"there is no folder {quoted(folder, 200)}; make it first.")


def written(target: Path, write: Callable[[Path], object]) -> int:
    """Let `write` make the file under its own name in a hidden folder, then move it; its size."""
    try:
        folder = tempfile.mkdtemp(dir=target.parent, prefix=".calibrant-")
    except OSError as error:
        raise InputError(
            f"{printable(target, 200)} cannot be written: {error.strerror}."
        ) from error
    try:
        made = Path(folder, target.name)
        write(made)
        os.replace(made, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target.stat().st_size
