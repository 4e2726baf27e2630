"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from calibrant.cli.text import printable
from calibrant.errors import InputError

__all__ = ["require_ending", "written"]


def require_ending(output: str, endings: tuple[str, ...], what: str) -> Path:
    """The path, if its ending is one of these."""
    target = Path(output)
    if target.suffix.lower() not in endings:
        raise InputError(
            f"{what} is written as {', '.join(endings)}; got {printable(output, 200)!r}."
        )
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {printable(target.parent, 200)!r}; make it first.")
    return target


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
