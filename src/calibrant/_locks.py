"""Who is at work: locks of threads that a forked child finds open, and of files among processes."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.errors import CalibrantError, InputError, Where

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["ForkSafeLock", "cached_property", "collect_litter", "held", "workplace"]

HIDDEN = ".calibrant-"
"""How the names of what is under way begin, beside the file that it is for."""
LONGEST_NAME = 255
"""Bytes of the name of a file."""
OLD_SECONDS = 86_400.0
"""Where a lock does not tell that its owner is gone, what is older than a day is litter."""

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property):
        """As later Pythons have it: that of 3.11 has a lock, which children inherit when they are forked."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


class ForkSafeLock:
    """A lock between threads; in a child that was forked while one of them held it, it is open.

    What it guards must be replaced in one assignment, so that a child never finds it half changed.

    Examples
    --------
    >>> with ForkSafeLock():
    ...     pass
    """

    __slots__ = ("_lock", "_process")

    def __init__(self) -> None:
        self._lock, self._process = threading.Lock(), os.getpid()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            with _FIRST_IN_CHILD:
                if self._process != os.getpid():
                    self._lock, self._process = threading.Lock(), os.getpid()
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return ForkSafeLock, ()


_FIRST_IN_CHILD = threading.Lock()
_HELD: dict[Path, tuple[tuple[int, int], int]] = {}
"""Which process and thread holds a file, and by which handle."""


def _renew() -> None:
    """In a forked child: a lock of its own, and none of its parent's on files."""
    global _FIRST_IN_CHILD
    _FIRST_IN_CHILD = threading.Lock()
    while _HELD:
        _, (_, handle) = _HELD.popitem()
        with suppress(OSError):
            os.close(handle)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@contextmanager
def held(target: str | os.PathLike[str]) -> Iterator[None]:
    """Keep a file to oneself, among all processes and threads that ask for it in this way.

    The lock is a hidden file beside it, which goes with it; the system lets go of it when a process
    ends, however that comes about. A thread that has the file already would wait for itself, so that is
    refused: what it changed first would be lost to what it reads again.
    """
    final = Path(os.path.realpath(target))
    owner = os.getpid(), threading.get_ident()
    if _HELD.get(final, (None,))[0] == owner:
        raise InputError(
            "the file is already open in this thread",
            where=Where(file=str(final)),
            cure="Use the monitor of the outer block, or leave that block first.",
        )
    path = final.with_name(f"{HIDDEN}lock-{final.name}")
    if len(os.fsencode(path.name)) > LONGEST_NAME:
        path = final.with_name(
            f"{HIDDEN}lock-{hashlib.sha256(os.fsencode(final.name)).hexdigest()}"
        )
    while True:
        handle = _opened(path)
        try:
            _wait_for(handle, path)
            if _is_at(handle, path):
                break
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # the one before took it away while we waited
    _HELD[final] = owner, handle
    try:
        yield
    finally:
        if (
            owner[0] == os.getpid()
        ):  # a child that was forked in the block leaves the lock to its parent
            del _HELD[final]
            with suppress(OSError):
                path.unlink()
            os.close(handle)


def collect_litter(folder: Path) -> None:
    """Take away what processes that are gone have left in a folder."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith(HIDDEN):
                _collect(Path(entry.path))


def _collect(path: Path) -> None:
    with suppress(OSError):
        if fcntl is None:
            if time.time() - path.stat().st_mtime > OLD_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
            return
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe of that name would wait
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, path):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        finally:
            os.close(handle)


@contextmanager
def workplace(parent: Path) -> Iterator[Path]:
    """A hidden folder of our own, which others leave alone, and which is gone at the end."""
    collect_litter(parent)
    folder, handle = _locked_folder(parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if handle >= 0:
            os.close(handle)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=HIDDEN))
        if fcntl is None:
            return folder, -1
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:  # taken for litter before it was locked
            continue
        with suppress(OSError):  # where there are no locks, nothing is taken for litter either
            fcntl.flock(handle, fcntl.LOCK_EX)
        if _is_at(handle, folder):
            return folder, handle
        os.close(handle)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise _unlockable(path, error) from error


def _wait_for(handle: int, path: Path) -> None:
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        else:
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
    except OSError as error:
        raise _unlockable(path, error) from error


def _unlockable(path: Path, error: OSError) -> CalibrantError:
    return CalibrantError(
        "the file cannot be locked: {reason}",
        where=Where(file=str(path)),
        cure="Keep it on a local disk of this machine, in a folder that you may write to.",
        reason=error.strerror or str(error),
    )


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False
