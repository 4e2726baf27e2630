"""Atomic files, file locks, and versioned envelopes with a checksum.

A file is written under a hidden name beside its place, synced and renamed: it appears whole or not at all. A
process that is killed may leave one hidden file. Files that calibrant reads back (sketches, maps, monitors,
checkpoints) name their format and version and carry a checksum.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from calibrant.errors import CalibrantError, InputError, invalid, show_value

Target = str | os.PathLike[str]
AGAIN = "Check the path, or make the file again."
DIGEST_BYTES = hashlib.sha256().digest_size
LONGEST_PATH = 1024
"""Characters, as systems of files allow at the least."""


@contextmanager
def replaced_when_whole(target: Target) -> Iterator[Path]:
    """Temporary path with the ending of `target`, which it replaces when the block ends without an error.

    The file gets the permissions of any new file, or those of the file that it replaces. A link stays, and
    what it points to is replaced; a pipe is written to as it is. Every error of the disk names `target`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replaced_when_whole(folder / "note.txt") as path:
    ...     _ = path.write_text("whole")
    >>> (folder / "note.txt").read_text(), os.listdir(folder)
    ('whole', ['note.txt'])
    """
    final = place_of_file(target)
    # As mkstemp names it, but with the permissions that the process gives its files.
    made = final.with_name(f".{final.name[:50]}.{secrets.token_hex(8)}{final.suffix[:20]}")
    try:
        if final.exists() and not final.is_file():
            yield final
            return
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield made
        with suppress(FileNotFoundError):
            shutil.copymode(final, made)
        with open(made, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(made, final)
        _sync_folder(final.parent)
    except OSError as error:
        if error.errno is None or isinstance(error, ConnectionError | TimeoutError):  # of a network
            raise
        message = f"The file {_shown(target)} cannot be written: {error.strerror}."
        hint = "Free some space, or name a place that is yours; what was there before is intact."
        raise CalibrantError(message, file=str(target), hint=hint) from error
    finally:
        with suppress(OSError):
            made.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network disks refuse, and do it anyway
            os.fsync(handle)
    finally:
        os.close(handle)


def require_path(path: Any) -> Path:
    """`path` as a Path; anything else, whose text need not exist, is refused."""
    if isinstance(path, str | os.PathLike):
        return Path(path)
    raise invalid("path", "be the path of a file", path)


@contextmanager
def _refused(problem: str, path: Target, hint: str | None = None) -> Iterator[None]:
    """Errors of a disk or of a path as InputError: a NUL, half a character, a circle of links."""
    try:
        yield
    except (OSError, ValueError, TypeError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"The file {_shown(path)} cannot be {problem}: {reason}."
        raise InputError(message, argument="path", file=str(path), hint=hint) from error


def _shown(path: Target) -> str:
    """Path in a message: whole, but for what is longer than any path of a file."""
    text = str(path)
    return text if len(text) <= LONGEST_PATH else show_value(text)


def place_of_file(target: Target) -> Path:
    """Path behind links where a file is to be written; refuses folders, and folders that are not there."""
    require_path(target)
    with _refused("written", target):
        final = Path(os.path.realpath(target))
        with suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(target).st_mode):
                raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not final.parent.is_dir():
        raise InputError(
            f"`path` is {_shown(final)}, but there is no folder {_shown(final.parent)}.",
            file=str(final),
            hint="Make the folder first.",
        )
    return final


def write_whole(target: Target, content: bytes | str) -> Path:
    """Write a file atomically: a power cut leaves the old one or this one.

    Examples
    --------
    >>> import tempfile
    >>> path = write_whole(os.path.join(tempfile.mkdtemp(), "note.txt"), "whole")
    >>> path.read_text()
    'whole'
    """
    with replaced_when_whole(target) as path:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Path(target)


def remove_file(path: Target) -> None:
    """Remove a file, if it is there."""
    gone = require_path(path)
    with _refused("removed", path):
        gone.unlink(missing_ok=True)


def read_bytes(path: Target, what: str) -> bytes:
    """Content of a file, or an InputError that names it."""
    file = require_path(path)
    with _refused(f"read as {what}", path, "Check the path, and that you may read the file."):
        return file.read_bytes()


@contextmanager
def decoding(what: str, path: Target | None = None) -> Iterator[None]:
    """Errors of decoders on damaged bytes, of whatever kind, as InputError."""
    try:
        yield
    except CalibrantError:
        raise
    except Exception as error:
        place = "" if path is None else f" {path}"
        reason = show_value(" ".join(str(error).split()) or type(error).__name__)
        raise InputError(
            f"Cannot decode {what}{place}: {reason}.",
            file=None if path is None else str(path),
            hint="The file is damaged or incomplete: copy it again, or make it again.",
        ) from error


_HELD: set[tuple[Path, int, int]] = set()
"""Files that a thread of a process holds; after a fork the child holds none of them."""


@contextmanager
def file_lock(target: Target) -> Iterator[None]:
    """Exclusive lock on a file among processes and threads, by a hidden lock file that stays beside it.

    A thread that holds the file already would wait for itself, so that is refused: what it changed first
    would be lost to what it reads again.
    """
    import filelock

    final = Path(os.path.realpath(target))
    owner = final, os.getpid(), threading.get_ident()
    if owner in _HELD:
        raise InputError(
            f"The file {final} is already open in this thread.",
            file=str(final),
            hint="Use the monitor of the outer block, or leave that block first.",
        )
    lock = filelock.FileLock(final.with_name(f".{final.name[:50]}.lock"), thread_local=False)
    hint = "Keep it on a local disk of this machine, in a folder that you may write to."
    with _refused("locked", final, hint):
        lock.acquire()
    _HELD.add(owner)
    try:
        yield
    finally:
        _HELD.discard(owner)
        if os.getpid() == owner[1]:  # a child that was forked in the block leaves it to its parent
            lock.release()


def json_of(text: str | bytes) -> Any:
    """Value of a JSON text; a ValueError where an object names a field twice, as JSON forbids.

    Python's own reader takes the last of the two in silence.

    Examples
    --------
    >>> json_of('{"p": 0.2, "p": 0.9}')
    Traceback (most recent call last):
    ValueError: an object names the field 'p' twice
    """
    return json.loads(text, object_pairs_hook=object_of)


def object_of(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object with these fields; a ValueError where one is named twice."""
    row = dict(fields)
    if len(row) < len(fields):
        names = [name for name, _ in fields]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object names the field {repeated!r} twice")
    return row


# -- the envelope ------------------------------------------------------------------------------


def dump_versioned(form: str, version: int, content: Mapping[str, Any]) -> str:
    """JSON text with its format and version, and a checksum of all the rest.

    Floats keep every bit. The checksum is that of the text without it, with no blanks.

    Examples
    --------
    >>> text = dump_versioned("calibrant.note", 1, {"n": 3})
    >>> load_versioned(text, "calibrant.note", 1, "a note")["n"]
    3
    """
    document = {"format": form, "version": version, **content}
    return _dumped({**document, "checksum": _checksum(document)})


def load_versioned(
    text: str | bytes,
    form: str,
    version: int,
    what: str,
    *,
    oldest: int | None = None,
    unsigned: int = 0,
) -> dict[str, Any]:
    """Content of what `dump_versioned` wrote; anything else is an InputError.

    Versions from the `oldest` on are read, by default this one alone; files of versions up to `unsigned`
    may lack the checksum.
    """
    try:
        document = json_of(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"This is not {what}: it is no JSON.", hint=AGAIN) from error
    seen = document.get("format") if isinstance(document, dict) else type(document).__name__
    if seen != form:
        message = f'This is not {what}: its "format" must be {form}, not {show_value(seen)}.'
        raise InputError(message, hint=AGAIN)
    number = require_version(document.get("version"), version, what, oldest)
    stated = document.pop("checksum", None)
    if not (stated is None and number <= unsigned) and stated != _checksum(document):
        raise damaged(what)
    return dict(document)


def require_version(seen: Any, version: int, what: str, oldest: int | None = None) -> int:
    """Version of a file, if this calibrant reads it: from the oldest to this one."""
    if not isinstance(seen, int) or isinstance(seen, bool) or seen < 1:
        raise InputError(f"The version of {what} must be a whole number, not {show_value(seen)}.")
    if seen > version:
        message = (
            f"This is {what} in version {show_value(seen)}; this calibrant reads up to {version}."
        )
        raise InputError(message, hint="Upgrade calibrant.")
    if seen < (version if oldest is None else oldest):
        message = f"This is {what} in version {seen}, of before the first release."
        raise InputError(message, hint=AGAIN)
    return seen


def damaged(what: str) -> InputError:
    """Error for a file whose checksum does not match."""
    message = (
        f"The checksum of {what} does not match its content: it was damaged, or edited by hand."
    )
    return InputError(message, hint="Use a copy of it, or make it again.")


def dump_bytes(form: str, version: int, payload: bytes) -> bytes:
    """Bytes behind a line with their format and version, and before a digest of both.

    Examples
    --------
    >>> load_bytes(dump_bytes("calibrant.note", 1, b"rows"), "calibrant.note", 1, "a note")
    b'rows'
    """
    content = f"{form} {version}\n".encode() + payload
    return content + hashlib.sha256(content).digest()


def load_bytes(content: bytes, form: str, version: int, what: str) -> bytes:
    """Bytes that `dump_bytes` took; anything else is an InputError."""
    if not content.startswith(f"{form} ".encode()):
        begin = show_value(content[: len(form)])
        raise InputError(f"This is not {what}: it begins with {begin}.", hint=AGAIN)
    if hashlib.sha256(content[:-DIGEST_BYTES]).digest() != content[-DIGEST_BYTES:]:
        raise damaged(what)
    first, _, payload = content[:-DIGEST_BYTES].partition(b"\n")
    number = first.removeprefix(f"{form} ".encode())
    require_version(int(number) if number.isdigit() else None, version, what)
    return payload


def _dumped(content: Mapping[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"))


def _checksum(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(_dumped(content).encode()).hexdigest()
