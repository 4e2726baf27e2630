"""Skip by name what needs a package without a wheel for this platform (.ci/test_wheel.py finds these)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from typing import Any

import pytest

ABSENT = frozenset(os.environ.get("CALIBRANT_ABSENT", "").split())
_PACKAGES = {"vl_convert": "vl-convert-python", "sklearn": "scikit-learn"}
_NAMES = "|".join(re.escape(_PACKAGES.get(name, name)) for name in sorted(ABSENT))
_SAID = re.compile(rf"ImportError: ({_NAMES})\b")
"""What altair says of a package whose version it looks for without importing it."""
_ASKED: set[str] = set()


class _Asked:
    """Notes which of them the test at hand asks for; finds nothing."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> None:
        _ASKED.update({name.partition(".")[0]} & ABSENT)


if ABSENT:
    sys.meta_path.insert(0, _Asked)


def reason(text: str) -> str | None:
    """Why a test that failed with this text could not run; None if it failed for another reason."""
    said = _SAID.search(text) if ABSENT else None
    names = re.findall(r"No module named '(\w+)|needs (\w+), which is not installed", text)
    asked = _ASKED | ({name for pair in names for name in pair} & ABSENT)
    name = said[1] if said else min(asked, default=None)
    return None if name is None else f"needs {name}, which has no wheel for this platform"


def _skip(report: Any, path: str, line: int) -> None:
    why = reason(f"{report.longreprtext}\n{report.capstdout}\n{report.capstderr}")
    if why is not None:
        report.outcome, report.longrepr = "skipped", (path, line, f"Skipped: {why}")


def pytest_runtest_setup() -> None:
    """Every test starts anew."""
    _ASKED.clear()


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
