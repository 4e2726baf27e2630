"""Running the command in this process, on files made here."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

from calibrant.cli import main


@dataclass(frozen=True)
class Finished:
    """Exit code of a command, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON, of a command that did its work."""
        assert self.code in (0, 3, 4), self.err
        return json.loads(self.out)


Command = Callable[..., Finished]


@pytest.fixture
def calibrant(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `calibrant` with these words, perhaps with bytes on standard input."""

    def run(*words: object, stdin: bytes | None = None) -> Finished:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        printed = capsys.readouterr()
        code = ended.value.code if isinstance(ended.value.code, int) else 0
        return Finished(code, printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def rows() -> dict[str, np.ndarray]:
    """Two models on 400 rows: one calibrated, one that halves every probability."""
    draw = np.random.default_rng(7)
    truth = draw.uniform(0.05, 0.95, 400)
    y = (draw.uniform(size=400) < truth).astype(np.int64)
    model = np.array(["good", "halved"])[np.arange(400) % 2]
    return {
        "p": np.where(model == "good", truth, truth / 2),
        "y": y,
        "model": model,
        "day": np.arange(400) // 100,
        "w": draw.uniform(0.5, 2.0, 400),
    }


@pytest.fixture
def parquet(tmp_path: Path, rows: dict[str, np.ndarray]) -> Path:
    path = tmp_path / "preds.parquet"
    pyarrow.parquet.write_table(pyarrow.table(rows), path)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three answers to each of 400 questions, and an abstention."""
    draw = np.random.default_rng(0)
    path = tmp_path / "answers.jsonl"
    lines = []
    for question in range(400):
        for _ in range(3):
            sure = float(draw.choice([0.5, 0.7, 0.9, 0.99]))
            line = {"question_id": question, "model": "ab"[question % 2], "confidence": 100 * sure}
            lines.append(line | {"correct": bool(draw.random() < sure)})
    lines.append({"question_id": 999, "confidence": None, "correct": None})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def write_rows() -> Callable[[pyarrow.Table, Path], None]:
    """Writes a table in the format that the ending of the path names."""

    def write(table: pyarrow.Table, path: Path) -> None:
        if path.suffix == ".parquet":
            pyarrow.parquet.write_table(table, path)
        elif path.suffix == ".csv":
            pyarrow.csv.write_csv(table, path)
        else:
            lines = (json.dumps(row, default=str) + "\n" for row in table.to_pylist())
            path.write_text("".join(lines))

    return write
