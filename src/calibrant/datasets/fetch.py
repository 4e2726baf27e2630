"""Bring an original file here, whole or not at all."""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import TextIO

from calibrant._files import replaced_when_whole
from calibrant.errors import CalibrantError, Where

__all__ = ["DownloadError", "cache_folder", "download"]

_BLOCK = 1 << 16
_LARGEST = 1 << 30
_PATIENCE_SECONDS = 60.0


class DownloadError(CalibrantError, OSError):
    """A file could not be downloaded whole and as it is on record; nothing of it was kept.

    Examples
    --------
    >>> from calibrant import datasets
    >>> try:
    ...     flares = datasets.load("solar_flares_daffs_c1")  # doctest: +SKIP
    ... except datasets.DownloadError as error:
    ...     print("no network, or the original has changed:", error)
    """


def cache_folder() -> Path:
    """Where converted data sets are kept: `CALIBRANT_CACHE`, or the system's place for caches."""
    named = os.environ.get("CALIBRANT_CACHE")
    if named:
        return Path(named)
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return root / "calibrant"


class _Progress:
    """A bar on a terminal, nothing elsewhere."""

    def __init__(self, label: str, size: int | None, stream: TextIO) -> None:
        self._label, self._size, self._stream = label, size, stream
        self._shown = stream.isatty()

    def show(self, done: int) -> None:
        if not self._shown:
            return
        text = f"{done / 1e6:.1f} MB"
        if self._size:
            filled = round(24 * done / self._size)
            text = f"[{'#' * filled}{'.' * (24 - filled)}] {text} of {self._size / 1e6:.1f} MB"
        self._stream.write(f"\r{self._label} {text}")
        self._stream.flush()

    def end(self) -> None:
        if self._shown:
            self._stream.write("\n")


def download(address: str, target: Path, *, stream: TextIO | None = None) -> None:
    """Fetch `address` into `target`, from the first byte to the last.

    A transfer that stops early is an error and leaves nothing behind: it is never resumed, because
    a partial file of unknown origin cannot be told from a whole one.
    """
    request = urllib.request.Request(address, headers={"User-Agent": "calibrant"})
    label = address.rsplit("/", 1)[-1]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            urllib.request.urlopen(request, timeout=_PATIENCE_SECONDS) as answer,
            replaced_when_whole(target) as partial,
            partial.open("wb") as out,
        ):
            announced = answer.headers.get("Content-Length")
            size = int(announced) if announced is not None else None
            progress = _Progress(label, size, stream or sys.stderr)
            done = 0
            while block := answer.read(_BLOCK):
                out.write(block)
                done += len(block)
                if done > _LARGEST:
                    raise DownloadError(
                        "the file is larger than {largest} bytes, so the transfer was stopped",
                        where=Where(file=address),
                        cure="Check the address.",
                        largest=f"{_LARGEST:,}",
                    )
                progress.show(done)
            progress.end()
            if size is not None and done != size:
                raise DownloadError(
                    "the transfer ended too early, and nothing was kept",
                    seen=done,
                    where=Where(file=address),
                    saying="{where} gave {done} of {size} bytes",
                    cure="Try again.",
                    done=f"{done:,}",
                    size=f"{size:,}",
                )
    except DownloadError:
        raise
    except (urllib.error.URLError, HTTPException, OSError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the answer's socket
        raise DownloadError(
            "the file could not be fetched ({reason}), and nothing was kept",
            where=Where(file=address),
            cure="Without a network, put the converted file in the folder that {variable} names.",
            reason=str(error),
            variable="CALIBRANT_DATA",
        ) from error
