"""What the command costs when nothing is warm: `python -m bench.command_line`.

Every line is the best of several fresh processes, taken in turn, beside the imports that it is
measured against. A plain install (not an editable one, which checks the build at every start) gives
the figures that users see; the ratios are close to each other.
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

ROUNDS = 9
ROWS = 1_000_000


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


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(predictions(Path(folder)))
        cases = (
            ("calibrant assess, 1M rows", ["assess", path], "import numpy, pyarrow.parquet", 4.0),
            ("calibrant --help", ["--help"], "import typer", 2.0),
        )
        print(f"{'':32}{'wall':>8}{'CPU':>8}{'limit':>8}")
        for name, words, imports, limit in cases:
            command = ["-m", "calibrant", *words]
            runs = [(timed(command), timed(["-c", imports])) for _ in range(ROUNDS)]
            ours = [min(run[0][k] for run in runs) for k in range(2)]
            theirs = [min(run[1][k] for run in runs) for k in range(2)]
            print(f"{name:32}{ours[0]:7.3f}s{ours[1]:7.3f}s")
            print(f"  {imports:30}{theirs[0]:7.3f}s{theirs[1]:7.3f}s")
            print(f"  {'ratio':30}{ours[0] / theirs[0]:8.2f}{ours[1] / theirs[1]:8.2f}{limit:8.1f}")


if __name__ == "__main__":
    main()
