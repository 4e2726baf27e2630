"""Damaged files, read in a child: a crash, a foreign exception or a silent other value is a failure.

In files of our own, and in packed ones, no damage may pass. Others have no checksum over everything: there
values may differ, but not the number of rows; in text a flipped character means what it says.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.file_kinds import KINDS, Kind

from calibrant.errors import CalibrantError

__all__ = ["Outcomes", "try_flips"]

GZIP = b"\x1f\x8b"


@dataclass
class Outcomes:
    """How the readings of damaged files ended, and which must not have ended so."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, file: tuple[str, int], seed: int, outcome: str, detail: str) -> None:
        """Note one reading."""
        self.counts[outcome] += 1
        if outcome in ("crash", "foreign", "silent", "rows"):
            self.failures.append(f"{file[0]} number {file[1]} of seed {seed}: {outcome} {detail}")

    def __str__(self) -> str:
        parts = ", ".join(f"{count:,} {name}" for name, count in sorted(self.counts.items()))
        return parts + f"; {len(self.failures)} failures"


def try_flips(names: Sequence[str], flips: int, seed: int = 0) -> dict[str, Outcomes]:
    """Damage each kind of file so many times; each time a fresh copy is read."""
    outcomes = {name: Outcomes() for name in names}
    work = [(name, number) for name in names for number in range(flips)]
    at = 0
    while at < len(work):
        run = [
            sys.executable,
            "-m",
            "tests.fuzz.corruption",
            str(at),
            str(flips),
            str(seed),
            *names,
        ]
        child = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        output, errors = child.communicate()
        for line in output.splitlines():
            at, outcome, detail = json.loads(line)
            outcomes[work[at][0]].add(work[at], seed, outcome, detail)
            at += 1
        if child.returncode == 0:
            break
        detail = f"{child.returncode} {errors[-500:]}"
        outcomes[work[at][0]].add(work[at], seed, "crash", detail)
        at += 1
    return outcomes


def damaged(content: bytes, number: int, seed: int) -> bytes:
    """One flipped bit; of every eight files, one is cut short, one has a stretch of another value or twice.

    Of those with more in them, some have it at the end: another such file, or nothing but NUL.
    """
    rng = np.random.default_rng([seed, number])
    place = int(rng.integers(len(content)))
    length = int(rng.integers(1, 17))
    rest = content[place + length :]
    if number % 8 == 5:
        again = content[place : place + 64 * length]
        at_end = [b"\0" * length, b"PAR1" * length]
        if not content.startswith(GZIP):  # which may be joined: one text follows the other
            at_end.append(content)
        more = [content[:place] + again + content[place:], *(content + end for end in at_end)]
        return more[int(rng.integers(len(more)))]
    if number % 8 == 6:
        return content[:place]
    if number % 8 == 7:
        stretch = bytes([int(rng.choice([0, 255, int(rng.integers(256))]))]) * length
        return (
            content[:place] + (stretch[: len(content) - place] if number % 16 > 8 else b"") + rest
        )
    changed = content[place] ^ (1 << int(rng.integers(8)))
    return content[:place] + bytes([changed]) + content[place + 1 :]


def reading(kind: Kind, path: Path, expected: Any) -> tuple[str, str]:
    """How the reading of one file ended."""
    try:
        found = kind.read(path)
    except CalibrantError:
        return "refused", ""
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"[:300]
    if found == expected:
        return "same", ""
    if kind.checked:
        return "silent", ""
    if kind.counts_rows and row_count(found) != row_count(expected):
        return "rows", f"{row_count(found)} of {row_count(expected)}"
    return "other values", ""


def row_count(sketches: Any) -> int:
    """Rows, those that were left out included."""
    if hasattr(sketches, "num_rows"):
        return int(sketches.num_rows)
    return sum(part.n + sum(part.dropped.values()) for part in sketches.values())


def main(first: int, flips: int, seed: int, names: Sequence[str]) -> None:
    """The child: a line on standard output for each file that was read."""
    for place, name in enumerate(names):
        if (place + 1) * flips <= first:
            continue
        kind = KINDS[name]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            kind.write(path)
            content, expected = path.read_bytes(), kind.read(path)
            for number in range(max(0, first - place * flips), flips):
                path.write_bytes(damaged(content, number, seed))
                found = reading(kind, path, expected)
                print(json.dumps([place * flips + number, *found]), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]), sys.argv[4:])
