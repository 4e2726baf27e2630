"""What the command costs when nothing is warm, beside the imports it is measured against.

python -m bench.command_line
"""

from __future__ import annotations

import importlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

import calibrant
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


def plain_install(folder: Path) -> str:
    """A Python with calibrant as a wheel installs it, and all other packages from here.

    An editable install, as a checkout has it, would look at its build at every start.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    python = folder / "bin" / "python"
    ask = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    site = Path(subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip())
    (site / "others.pth").write_text("\n".join(path for path in sys.path if "-packages" in path))
    source = Path(calibrant.__file__).parent
    shutil.copytree(source, site / "calibrant", ignore=shutil.ignore_patterns("__pycache__"))
    compiled = [path.relative_to(source).with_suffix("") for path in source.rglob("*.pyx")]
    for module in (Path("_cython"), *compiled):
        built = importlib.import_module(".".join(("calibrant", *module.parts))).__file__
        shutil.copy(built, site / "calibrant" / module.parent)
    subprocess.run([python, "-m", "compileall", "-q", site / "calibrant"], check=True)
    return str(python)


def timed(python: str, words: list[str]) -> tuple[float, float]:
    """Seconds of wall clock and of processor time of one fresh process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([python, *words], check=True, capture_output=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def table(python: str, path: str) -> pages.Table:
    cases = (
        ("calibrant assess, 1M rows", ["assess", path], NEEDED, 2.5),
        ("calibrant --help", ["--help"], "import typer", 2.0),
    )
    rows = []
    for name, words, imports, limit in cases:
        runs = [
            (timed(python, ["-m", "calibrant", *words]), timed(python, ["-c", imports]))
            for _ in range(ROUNDS)
        ]
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
        "Cold starts",
        [
            "command",
            "seconds",
            "compared with",
            "seconds",
            "ratio",
            "ratio of processor time",
            "at most",
            "",
        ],
        rows,
        [
            f"Best of {ROUNDS} fresh processes of each, run in turn.",
            "We compare `assess` with an empty typer command that imports what reading the file needs. "
            "The command has to run: typer imports more when it runs a command than when it is "
            "imported.",
            "Measured in an ordinary install. An editable install checks its build at every start.",
        ],
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = plain_install(folder / "plain")
        page = pages.Page(
            "command_line",
            "The cost of the command line",
            "python -m bench.command_line",
            "How long a fresh process takes to answer, compared with the imports it cannot avoid.",
            [table(python, str(predictions(folder)))],
        )
    print(page.write(pages.EVIDENCE).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
