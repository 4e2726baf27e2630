"""Skip by name what needs a package without a wheel for this platform (.ci/test_wheel.py finds these)."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from typing import Any

import pytest

ABSENT = frozenset(os.environ.get("CALIBRANT_ABSENT", "").split())
_NAMES = "|".join(map(re.escape, sorted(ABSENT)))
_SAID = re.compile(rf"No module named '({_NAMES})\b|needs ({_NAMES}), which is not installed")


def reason(text: str) -> str | None:
    """Why a test that failed with this text could not run; None if it failed for another reason."""
    said = _SAID.search(text) if ABSENT else None
    return (
        None
        if said is None
        else f"needs {said[1] or said[2]}, which has no wheel for this platform"
    )


def _skip(report: Any, path: str, line: int) -> None:
    why = reason(f"{report.longreprtext}\n{report.capstdout}\n{report.capstderr}")
    if why is not None:
        report.outcome, report.longrepr = "skipped", (path, line, f"Skipped: {why}")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: Any) -> Generator[None, Any, Any]:
    """A module that cannot be imported without the package."""
    report = yield
    if ABSENT and report.failed:
        _skip(report, str(collector.path), 0)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, Any, Any]:
    """A test that came upon it."""
    report = yield
    if ABSENT and report.failed:
        _skip(report, str(item.path), item.location[1] or 0)
    return report
