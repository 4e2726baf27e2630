"""Running the command in this process, on files made here."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.refusals import data_of

from calibrant.cli import errors, main
from calibrant.errors import Message
from calibrant.inference.assessment import FINDINGS
from calibrant.inference.groups import TOO_FEW

rendered = errors.rendered
GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Finished:
    """What a command printed, its exit code, and the fields of the message that it showed last."""

    code: int
    out: str
    err: str
    refusal: Message | None = None

    @property
    def data(self) -> str:
        """All that the message carries as data, without its words."""
        return "" if self.refusal is None else data_of(self.refusal)


Command = Callable[..., Finished]


@pytest.fixture
def calibrant(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `calibrant` with these words, perhaps with bytes on standard input."""

    def run(*words: str | Path, stdin: bytes | None = None) -> Finished:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        shown: list[Message] = []
        with pytest.MonkeyPatch.context() as watching:
            watching.setattr(errors, "rendered", lambda one: (shown.append(one), rendered(one))[1])
            with pytest.raises(SystemExit) as ended:
                main([str(word) for word in words])
        printed = capsys.readouterr()
        code = ended.value.code if isinstance(ended.value.code, int) else 0
        return Finished(code, printed.out, printed.err, shown[-1] if shown else None)

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


# What is simulated, or rests on what is, agrees within this much: libraries draw and round differently.
ESTIMATES = {"interval", "noise_floor", "p_value", "corrected_p_value", "certificate", "e_value"}
ESTIMATES |= {"value", "low", "high", "adjusted_p_value", "mean_error"}
TOLERANCE = {"rel": 0.02, "abs": 0.002}
WORDS = {
    "finding": re.compile("|".join(map(re.escape, [*FINDINGS, TOO_FEW]))),
    "direction": re.compile(
        "no clear direction|(over|under)-(confident|forecasting)"
        "|(over|under)-confident and (over|under)-forecasting"
    ),
    "verdict": re.compile(
        r"(miscalibrated|slightly off|no evidence of miscalibration|inconclusive): "
        r"0\.\d+, noise floor 0\.\d+, p [=<] [01]\.\d+( \(corrected\))?(; [a-z -]+)?"
        r"|\w+ is better calibrated than \w+"
    ),
}


def same(found: object, golden: object, path: str = "") -> None:
    """Keys and texts to the letter, numbers to nine digits (libraries round differently)."""
    names = path.split("/")
    if isinstance(golden, dict):
        assert isinstance(found, dict)
        assert list(found) == list(golden), path
        for key in golden:
            same(found[key], golden[key], f"{path}/{key}")
    elif isinstance(golden, list):
        assert isinstance(found, list)
        assert len(found) == len(golden), path
        for place, (one, other) in enumerate(zip(found, golden, strict=True)):
            same(one, other, f"{path}/{place}")
    elif isinstance(golden, float) and ESTIMATES.intersection(names):
        assert found == pytest.approx(golden, **TOLERANCE), path
    elif isinstance(golden, float):
        assert found == pytest.approx(golden, rel=1e-9, abs=1e-12), path
    elif names[-1] in WORDS:
        for text in (found, golden):
            assert isinstance(text, str), path
            assert WORDS[names[-1]].fullmatch(text), f"{path}: {text!r}"
    else:
        assert found == golden, path


@pytest.fixture
def as_golden() -> Callable[[str, object], None]:
    """Compare JSON with a file that was read by a person when it was kept."""

    def compare(name: str, found: object) -> None:
        golden = GOLDEN / f"{name}.json"
        if os.environ.get("CALIBRANT_WRITE_GOLDEN"):  # then read what was written
            golden.write_text(json.dumps(found, indent=2) + "\n")
        assert golden.exists(), f"write it after reading it: {json.dumps(found, indent=2)}"
        same(found, json.loads(golden.read_text()))

    return compare


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
