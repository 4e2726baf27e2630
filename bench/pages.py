"""Tables as dated pages: Markdown for the docs' Evidence section."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
EVIDENCE = ROOT / "docs" / "evidence"
STARTED = time.monotonic()


@dataclass(frozen=True)
class Table:
    """Rows of text under a header, with what a reader must know to read them."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(f"{self.title}: {len(self.header)} columns, a row of {len(row)}")

    def markdown(self) -> str:
        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

        numeric = [all(map(_is_number, column)) for column in zip(*self.rows, strict=True)]
        rule = "|---|" + "".join("---:|" if number else "---|" for number in numeric[1:])
        if not self.rows:
            rule = "|---|" * len(self.header)
        body = "\n".join([line(self.header), rule, *map(line, self.rows)])
        notes = "".join(f"\n- {note}" for note in self.notes)
        return f"## {self.title}\n\n{body}\n" + (f"{notes}\n" if notes else "")


def _is_number(cell: str) -> bool:
    """Whether a cell is a number, perhaps with a unit or an error, or empty; such columns end in line."""
    return not cell or re.match(r"[*<≥~]*[-+−]?[\d.]", cell) is not None


@dataclass(frozen=True)
class Text:
    """A section of prose that a command worked out."""

    title: str
    body: str

    def markdown(self) -> str:
        return f"## {self.title}\n\n{self.body}\n"


@dataclass(frozen=True)
class Page:
    """One page: what was run, when, on what, and what came out."""

    name: str
    title: str
    command: str
    lead: str
    sections: Sequence[Table | Text]
    versions: dict[str, str] = field(default_factory=dict)
    timed: bool = True

    def markdown(self) -> str:
        made = datetime.now(UTC).strftime("%Y-%m-%d")
        took = f" in {_minutes()}" if self.timed else ""
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        head = (
            f"# {self.title}\n\n{self.lead}\n\n"
            f"Made by `{self.command}`{took} on {made} ({machine()}). "
            "No number on this page is typed by hand.\n"
        )
        if versions:
            head += f"\nVersions: {versions}.\n"
        return head + "\n" + "\n".join(section.markdown() for section in self.sections)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.md"
        path.write_text(self.markdown(), encoding="utf-8")
        return path


def _minutes() -> str:
    """Since the command began, by the clock and of all processors together."""
    own, others = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    busy = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    return f"{(time.monotonic() - STARTED) / 60:.1f} minutes ({busy / 60:.1f} of processor time)"


def place(reduced: bool) -> Path:
    """Where a page goes: a reduced run is a rehearsal and never replaces the evidence."""
    return RESULTS if reduced else EVIDENCE


def machine() -> str:
    """Processor, cores and Python, without names of hosts."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        named = re.search(r"model name\s*:\s*(.+)", info.read_text())
        model = named.group(1).strip() if named else model
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def save(name: str, results: Any) -> None:
    """Raw results, for whoever wants to look behind the table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(results, indent=1))
