"""Each promise of the policy page names tests, and these are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_promise_names_tests_that_exist():
    page = (ROOT / "docs" / "policy.md").read_text()
    promises = re.findall(r"^\| \*(.+?)\* .+ \| (.+) \|$", page, re.MULTILINE)
    assert len(promises) >= 5
    for promise, tried_by in promises:
        paths = re.findall(r"`(tests/[\w/]+\.py)`", tried_by)
        assert paths, promise
        text = "".join((ROOT / path).read_text() for path in paths)
        for name in re.findall(r"`(test_\w+)`", tried_by):
            assert f"def {name}(" in text, name
