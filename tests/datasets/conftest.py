"""An empty cache, and the folder of converted files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CONVERTED = Path(os.environ.get("CALIBRANT_DATA", "converted")).resolve()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no folder of converted files."""
    monkeypatch.delenv("CALIBRANT_DATA", raising=False)
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of converted files, named as a user would name it."""
    if not CONVERTED.is_dir():
        pytest.skip("CALIBRANT_DATA names no folder of converted files")
    monkeypatch.setenv("CALIBRANT_DATA", str(CONVERTED))
    return CONVERTED
