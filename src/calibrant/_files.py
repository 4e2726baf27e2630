"""Files that appear whole or not at all, and that say so when they are damaged.

Every file that calibrant writes passes `DISK`: into a hidden folder beside its place, synced, renamed,
and the folder of its place synced. Files that it reads back (sketches, maps, monitors, checkpoints) name
their format and version and carry a checksum: JSON as one of its fields, anything else at its end.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from calibrant._locks import workplace
from calibrant.errors import CalibrantError, InputError, Where

__all__ = [
    "Disk",
    "damaged",
    "decoding",
    "json_of",
    "object_of",
    "open_envelope",
    "place_of_file",
    "read_bytes",
    "remove_file",
    "replaced_when_whole",
    "require_version",
    "sealed",
    "unsealed",
    "with_digest",
    "write_whole",
]

Target = str | os.PathLike[str]
DIGEST_BYTES = 32
REFUSED_BY_DISKS = {
    getattr(errno, name, None)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "EIO", "EISDIR", "EBUSY")
} - {None}


class Disk:
    """What files ask of the operating system, one method for each step.

    A test puts another in the place of `DISK`, notes the steps, and replays each beginning of them as
    if the power had gone there.
    """

    def write(self, path: Path, content: bytes) -> None:
        """Make a file with this content."""
        with open(path, "wb") as file:
            file.write(content)

    def sync(self, path: Path) -> None:
        """Have the content of a file on the disk."""
        with open(path, "rb+") as file:
            os.fsync(file.fileno())

    def replace(self, made: Path, final: Path) -> None:
        """Rename a file, in the place of another if there is one."""
        os.replace(made, final)

    def remove(self, path: Path) -> None:
        """Take a file away, if it is there."""
        path.unlink(missing_ok=True)

    def sync_folder(self, folder: Path) -> None:
        """Have the names in a folder on the disk, where the system can."""
        if os.name == "nt":
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            with suppress(OSError):  # some network disks refuse, and do it anyway
                os.fsync(handle)
        finally:
            os.close(handle)


DISK = Disk()


@contextmanager
def replaced_when_whole(target: Target) -> Iterator[Path]:
    """A path to write to, which takes the place of `target` if the block ends without an error.

    It has the name of `target`, in a hidden folder beside it: two writers do not meet, and the file has
    the permissions that any new file gets, or those of the file that it replaces. A link stays, and
    what it points to is replaced; what is no file, such as a pipe, is written to as it is. When the
    block has ended, a power cut does not undo it.

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
    if final.exists() and not final.is_file():
        yield final
        return
    with _writing(target), workplace(final.parent) as folder:
        made = folder / final.name
        yield made
        with suppress(FileNotFoundError):
            shutil.copymode(final, made)
        DISK.sync(made)
        DISK.replace(made, final)
        DISK.sync_folder(final.parent)


@contextmanager
def _writing(target: Target) -> Iterator[None]:
    """What the disk refuses becomes an error that names the file; others' errors, of a network, pass."""
    try:
        yield
    except OSError as error:
        if isinstance(error, CalibrantError) or error.errno not in REFUSED_BY_DISKS:
            raise
        raise CalibrantError(
            "the file cannot be written: {reason}",
            where=Where(file=str(target)),
            cure="Free some space, or name a place that is yours; what was there before is intact.",
            reason=error.strerror or str(error),
        ) from error


def _place(target: Target) -> Path:
    """Where a file is to be, behind links."""
    try:
        os.fsencode(target)
        return Path(os.path.realpath(target))
    except (ValueError, TypeError) as error:  # a NUL, half a character, no path at all
        raise InputError(
            "must be the path of a file",
            argument="path",
            seen=target,
            cure="Pass text or a Path, without a NUL character.",
        ) from error


def place_of_file(target: Target) -> Path:
    """Where a file is to be written, behind links; refuses folders, and places in folders that are none."""
    final = _place(target)
    if final.is_dir():
        raise InputError(
            "must be the path of a file",
            argument="path",
            seen=str(target),
            cure="Pass text or a Path, without a NUL character.",
        )
    if not final.parent.is_dir():
        raise InputError(
            "cannot be written, as there is no folder {folder}",
            argument="path",
            where=Where(file=str(final)),
            cure="Make the folder first.",
            folder=repr(str(final.parent)),
        )
    return final


def write_whole(target: Target, content: bytes | str) -> Path:
    """Write a file, all or nothing, so that a power cut leaves the old one or this one.

    Examples
    --------
    >>> import tempfile
    >>> path = write_whole(os.path.join(tempfile.mkdtemp(), "note.txt"), "whole")
    >>> path.read_text()
    'whole'
    """
    with replaced_when_whole(target) as path:
        DISK.write(path, content.encode() if isinstance(content, str) else content)
    return Path(target)


def remove_file(path: Target) -> None:
    """Take a file away, if it is there, so that a power cut does not bring it back."""
    DISK.remove(Path(path))
    DISK.sync_folder(Path(path).parent)


def read_bytes(path: Target, what: str) -> bytes:
    """The content of a file, or an InputError that names it."""
    try:
        return _place(path).read_bytes()
    except OSError as error:
        raise InputError(
            "cannot read {what}",
            seen=error.strerror or str(error),
            where=Where(file=str(path)),
            saying="{where}: {reason}",
            cure="Check the path, and that you may read the file.",
            what=what,
            reason=error.strerror or str(error),
        ) from error


@contextmanager
def decoding(what: str, path: Target | None = None) -> Iterator[None]:
    """Whatever a decoder of others raises on damaged bytes becomes an InputError."""
    try:
        yield
    except CalibrantError:
        raise
    except Exception as error:
        raise InputError(
            "{what} must be whole; this one cannot be decoded: {reason}",
            where=None if path is None else Where(file=str(path)),
            cure="The file is damaged or incomplete: copy it again, or make it again.",
            what=what,
            reason=" ".join(str(error).split()) or type(error).__name__,
        ) from error


def json_of(text: str | bytes) -> Any:
    """The value of a JSON text; a ValueError where an object names a field twice, as JSON forbids.

    Python's own reader takes the last of the two in silence.

    Examples
    --------
    >>> json_of('{"p": 0.2, "p": 0.9}')
    Traceback (most recent call last):
    ValueError: an object names the field 'p' twice
    """
    return json.loads(text, object_pairs_hook=object_of)


def object_of(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object with these fields; a ValueError where one is named twice."""
    row = dict(fields)
    if len(row) < len(fields):
        names = [name for name, _ in fields]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object names the field {repeated!r} twice")
    return row


# -- the envelope ------------------------------------------------------------------------------


def sealed(form: str, version: int, content: Mapping[str, Any]) -> str:
    """JSON text that names its format and version, and holds a checksum of all the rest.

    Floats keep every bit. The checksum is that of the text without it, with no blanks.

    Examples
    --------
    >>> text = sealed("calibrant.note", 1, {"n": 3})
    >>> unsealed(text, "calibrant.note", 1, "a note")["n"]
    3
    """
    document = {"format": form, "version": version, **content}
    return _dumped({**document, "checksum": _checksum(document)})


def unsealed(
    text: str | bytes,
    form: str,
    version: int,
    what: str,
    *,
    oldest: int | None = None,
    unsigned: int = 0,
) -> dict[str, Any]:
    """The content of what `sealed` wrote; anything else is an InputError.

    Versions from the `oldest` on are read, by default this one alone; files of versions up to `unsigned`
    may lack the checksum.
    """
    try:
        document = json_of(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(
            "this is not {what}: it is no JSON",
            cure="Check the path, or make the file again.",
            what=what,
        ) from error
    if not isinstance(document, dict) or document.get("format") != form:
        raise InputError(
            'this is not {what}: its "format" must be {form}',
            seen=document.get("format") if isinstance(document, dict) else type(document).__name__,
            cure="Check the path, or make the file again.",
            what=what,
            form=form,
        )
    seen = require_version(document.get("version"), version, what, oldest)
    stated = document.pop("checksum", None)
    if not (stated is None and seen <= unsigned) and stated != _checksum(document):
        raise damaged(what)
    return document


def require_version(seen: Any, version: int, what: str, oldest: int | None = None) -> int:
    """The version of a file, if this calibrant reads it: from the oldest to this one."""
    if not isinstance(seen, int) or isinstance(seen, bool) or seen < 1:
        raise InputError(
            "the version of {what} must be a whole number",
            seen=seen,
            what=what,
            cure="Make the file again.",
        )
    if seen > version:
        raise InputError(
            "this is {what} in version {seen} of its format; this calibrant reads up to version "
            "{version}",
            what=what,
            seen=seen,
            version=version,
            cure="Upgrade calibrant.",
        )
    if seen < (version if oldest is None else oldest):
        raise InputError(
            "this is {what} in version {seen} of its format, of before the first release",
            what=what,
            seen=seen,
            cure="Make it again.",
        )
    return seen


def damaged(what: str) -> InputError:
    """What to raise of a file whose checksum does not match."""
    return InputError(
        "the checksum of {what} does not match its content: the file was damaged, or edited by hand",
        what=what,
        cure="Use a copy of it, or make it again.",
    )


def with_digest(form: str, version: int, payload: bytes) -> bytes:
    """Bytes behind a line with their format and version, and before a digest of both.

    Examples
    --------
    >>> open_envelope(with_digest("calibrant.note", 1, b"rows"), "calibrant.note", 1, "a note")
    b'rows'
    """
    content = f"{form} {version}\n".encode() + payload
    return content + hashlib.sha256(content).digest()


def open_envelope(content: bytes, form: str, version: int, what: str) -> bytes:
    """The bytes that `with_digest` took; anything else is an InputError."""
    if not content.startswith(f"{form} ".encode()):
        raise InputError(
            "this is not {what}",
            seen=content[: len(form)],
            saying="it begins with {}",
            cure="Check the path, or make the file again.",
            what=what,
        )
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
