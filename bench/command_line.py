"""What the command costs when nothing is warm, beside the imports it is measured against.

python -m bench.command_line
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from bench import pages

ROUNDS = 9
ROWS = 1_000_000

NEEDED = "import numpy, pyarrow.parquet, typer; typer.run(lambda: None)"


def predictions(folder: Path) -> Path:
    """A million overconfident predictions, as a Parquet file."""
    draw = np.random.default_rng(0)
    p = draw.random(ROWS)
    y = (draw.random(ROWS) < p**1.2).astype(np.int64)
    path = folder / "predictions.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"p": p, "y": y}), path)
    return path


def timed(words: list[str]) -> tuple[float, float]:
    """Seconds of wall clock and of processor time of one fresh process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def table(path: str) -> pages.Table:
    cases = (
        ("calibrant assess, 1M rows", ["assess", path], NEEDED, 2.5),
        ("calibrant --help", ["--help"], "import typer", 2.0),
    )
    rows = []
    for name, words, imports, limit in cases:
        runs = [(timed(["-m", "calibrant", *words]), timed(["-c", imports])) for _ in range(ROUNDS)]
        ours, theirs = (
            [min(run[k][clock] for run in runs) for clock in range(2)] for k in range(2)
        )
        ratio = ours[0] / theirs[0]
        rows.append(
            [
                f"`{name}`",
                f"{ours[0]:.3f} s",
                f"`{imports}`",
                f"{theirs[0]:.3f} s",
                f"{ratio:.2f}",
                f"{ours[1] / theirs[1]:.2f}",
                f"{limit:g}",
                "kept" if ratio <= limit else "**not kept**",
            ]
        )
    return pages.Table(
        "The command, cold",
        ["command", "seconds", "beside", "seconds", "ratio", "processor", "at most", ""],
        rows,
        [
            f"The best of {ROUNDS} fresh processes of each, taken in turn.",
            "`assess` is beside an empty command of typer that imports what reads the file: since it "
            "checks arguments with pydantic, typer imports more when it runs than when it is imported.",
            "An editable install, as here, checks the build at every start; a plain one does not.",
        ],
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        page = pages.Page(
            "command_line",
            "The cost of the command line",
            "python -m bench.command_line",
            "How long a fresh process takes to answer, beside the imports that it cannot do without.",
            [table(str(predictions(Path(folder))))],
        )
    print(page.write(pages.EVIDENCE).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
