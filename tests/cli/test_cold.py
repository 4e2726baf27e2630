"""What a cold command must not load: these take longer to import than the work takes to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from calibrant.cli import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    assert not ended.code, ended.code
print("LOADED", *sorted({name for name in sys.modules}), file=sys.stderr)
"""
SLOW = {
    "pandas",
    "polars",
    "duckdb",
    "scipy.stats",
    "matplotlib",
}
SLOW |= {"altair", "sklearn", "torch", "pyarrow.dataset"}


def loaded(*words: str) -> set[str]:
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stderr.partition("LOADED")[2].split())


def test_help_loads_neither_numpy_nor_rich() -> None:
    for words in (["--help"], ["assess", "--help"]):
        assert not loaded(*words) & (SLOW | {"numpy", "rich.console", "pyarrow", "scipy"})


@pytest.mark.parametrize("more", [[], ["--by", "model"], ["--fail-above", "20%"]])
def test_assess_loads_nothing_slow(parquet, more) -> None:
    assert not loaded("assess", str(parquet), *more) & SLOW
