"""Files and memory: scans beside decoding alone, rows without end, evaluation logs of a gigabyte.

python -m bench.scans                 # 200 million rows; four gigabytes of disk
python -m bench.scans --reduced       # a twentieth of that

Every case runs in a process of its own. `--folder` keeps the files for another time. Exits with 1 when a
limit of the project is not kept.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

import calibrant as cal
from bench import pages

CHUNK = 1 << 20
GROUPS = 100_000
LINE, SAMPLES = 4_000, 5
"""Bytes of a line of a log, and answers to each question."""


def write_rows(path: Path, rows: int, columns: dict[str, pa.DataType], seed: int) -> None:
    """Calibrated predictions, a row group at a time: columns `p`, `y`, perhaps `g` or `model`."""
    rng = np.random.default_rng(seed)
    schema = pa.schema(columns)
    customers = pa.array([f"customer-{number:06}" for number in range(GROUPS)])
    writer = csv.CSVWriter if path.suffix == ".csv" else pq.ParquetWriter
    with writer(path, schema) as file:
        for start in range(0, rows, CHUNK):
            p = rng.random(min(CHUNK, rows - start))
            table = {"p": p, "y": (rng.random(p.size) < p).astype(np.int8)}
            if "g" in columns:
                table["g"] = customers.take(pa.array(rng.integers(0, GROUPS, p.size)))
            if "model" in columns:
                table["model"] = pa.array(["resnet"] * p.size)
            file.write_table(pa.table(table, schema=schema))


def write_log(path: Path, size: int) -> None:
    """About `size` bytes of answers of two models, five to each question."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="ascii") as file:
        for number in range(size // LINE):
            sure = round(0.5 + 0.5 * rng.random(), 4)
            line = json.dumps(
                {
                    "question_id": f"benchmark-{number // SAMPLES:09d}",
                    "model": f"acme/model-{'ab'[number % 2]}",
                    "confidence": sure,
                    "correct": int(rng.random() < sure**2),
                }
            )
            file.write(f'{line[:-1]}, "response": "{"x" * (LINE - len(line) - 18)}"}}\n')


def decode(path: str) -> None:
    """Read what a scan reads, with the same reader and threads, and drop it."""
    from calibrant.io.files import find_files, jobs_of
    from calibrant.io.request import make_request

    request = make_request(y_true="y", y_prob="p")

    def read(job):
        for _ in job.read():
            pass

    threads = os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque = deque()
        for job in jobs_of(find_files(path), request):
            waiting.append(pool.submit(read, job))
            if len(waiting) > threads + 1:
                waiting.popleft().result()
        for future in waiting:
            future.result()


def polars_group_by(path: str) -> None:
    """Group a CSV file by polars into the cells of a sketch."""
    cell = (pl.col("p") * 65536).floor().cast(pl.Int64)
    offset = (pl.col("p") * 2.0**36).floor().cast(pl.Int64) - cell * 2**20
    frame = pl.scan_csv(path).select(cell=cell, offset=offset, y=pl.col("y"))
    found = frame.group_by("cell", "y").agg(pl.len(), pl.col("offset").sum())
    found.collect(engine="streaming")


def stream(rows: int) -> dict[str, float]:
    """Rows drawn in blocks and added to a sketch, then SmoothECE; the plain sums of the same blocks."""
    rng = np.random.default_rng(0)
    sketch = cal.Sketch.empty()
    spent = {"sketch": 0.0, "sum": 0.0}
    for start in range(0, rows, 4 * CHUNK):
        p = rng.random(min(4 * CHUNK, rows - start))
        y = (rng.random(p.size) < 0.5 + 0.7 * (p - 0.5)).astype(np.int64)
        began = time.process_time()
        sketch.update(y, p)
        spent["sketch"] += (after := time.process_time()) - began
        _ = p.sum(), y.sum()
        spent["sum"] += time.process_time() - after
    began = time.process_time()
    cal.smooth_ece(sketch)
    spent["sketch"] += time.process_time() - began
    return spent


def measure(case: str, path: str) -> dict[str, float]:
    """Least seconds of three turns of each work of a case."""
    options = {"y_true": "y", "y_prob": "p", "progress": False}
    works: dict[str, dict[str, Callable[[], object]]] = {
        "parquet": {"scan": lambda: cal.scan(path, **options), "decoding": lambda: decode(path)},
        "csv": {"scan": lambda: cal.scan(path, **options)},
        "polars": {"scan": lambda: polars_group_by(path)},
        "groups": {"scan": lambda: cal.scan(path, by="g", **options)},
    }
    found = dict.fromkeys(works[case], np.inf)
    for _ in range(1 if case == "groups" else 3):
        for name, work in works[case].items():
            start = time.perf_counter()
            work()
            found[name] = min(found[name], time.perf_counter() - start)
    return found


APART = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=sys.stderr)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
"""
"""A small process between ours and the one measured, whose peak memory begins with its parent's."""


def apart(command: list[str]) -> tuple[str, float, float]:
    """What a command writes, its processor seconds and its peak megabytes."""
    launched = [sys.executable, "-c", APART, *command]
    done = subprocess.run(launched, check=True, capture_output=True, text=True)
    status, seconds, megabytes = map(float, done.stdout.split())
    if status not in (0, 4):  # 4: nothing can be certified
        raise RuntimeError(f"{command} ended with {status:.0f}: {done.stderr[-500:]}")
    return done.stderr, seconds, megabytes


def files(folder: Path, share: int) -> pages.Table:
    """Scans of Parquet and CSV beside decoding alone and polars, and by a hundred thousand groups."""
    plain = {"p": pa.float64(), "y": pa.int8()}
    rows = {
        "rows.parquet": (200_000_000 // share, plain),
        "rows.csv": (20_000_000 // share, {"model": pa.string(), **plain}),
        "groups.parquet": (10_000_000, {"g": pa.string(), **plain}),
    }
    for seed, (name, (count, columns)) in enumerate(rows.items()):
        if not (folder / name).exists():
            write_rows(folder / name, count, columns, seed)
    found = {}
    for case, name in (
        ("parquet", "rows.parquet"),
        ("csv", "rows.csv"),
        ("polars", "rows.csv"),
        ("groups", "groups.parquet"),
    ):
        command = [
            sys.executable,
            "-m",
            "bench.scans",
            "--only",
            case,
            "--folder",
            str(folder / name),
        ]
        said, _, megabytes = apart(command)
        found[case] = {**json.loads(said.splitlines()[-1]), "MB": megabytes}
    parquet, text, polars, grouped = (
        found[case] for case in ("parquet", "csv", "polars", "groups")
    )
    measured = [
        (
            "Parquet: multiple of decoding",
            "rows.parquet",
            parquet["scan"] / parquet["decoding"],
            1.6,
        ),
        ("Parquet: peak MB", "rows.parquet", parquet["MB"], 300),
        ("CSV: multiple of polars' own group-by", "rows.csv", text["scan"] / polars["scan"], 1.3),
        (f"{GROUPS:,} groups: peak MB", "groups.parquet", grouped["MB"], 2000),
    ]
    return pages.Table(
        "Scans of files",
        ["what", "rows", "measured", "at most", ""],
        [
            [
                what,
                f"{rows[name][0]:,}",
                f"{value:,.3g}",
                f"{most:g}",
                "kept" if value <= most else NOT_KEPT,
            ]
            for what, name, value, most in measured
        ],
        [
            f"The scan of Parquet takes {parquet['scan']:.2f} s, of CSV {text['scan']:.2f} s, by group "
            f"{grouped['scan']:.2f} s. Decoding: the same reader reads the same columns with as many "
            "threads and drops them. Polars' streaming engine groups the CSV file into the same cells with "
            f"{polars['MB']:,.0f} MB; the scan needs {text['MB']:,.0f} MB.",
            "Peak MB: resident memory of the whole process, libraries included.",
        ],
    )


NOT_KEPT = "**not kept**"


def rows_without_end(powers: range) -> pages.Table:
    """Cost against rows that are never all in memory, beside the plain sum."""
    stream(1)  # imports what it needs
    rows = []
    for power in powers:
        spent = stream(10**power)
        own, least = spent["sketch"], spent["sum"]
        rows.append(
            [
                f"{10**power:,}",
                f"{own / least:,.1f}",
            ]
        )
    return pages.Table(
        "Cost against rows",
        ["rows", "multiple of the plain sum of both arrays"],
        rows,
        ["Processor time of a sketch filled in blocks, and of SmoothECE from it."],
    )


def logs(folder: Path, size: int) -> pages.Table:
    """Peak memory and processor time of the commands that read a log of a language model."""
    path = str(folder / "answers.jsonl")
    if not Path(path).exists():
        write_log(Path(path), size)
    plain = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"
    calibrant = [sys.executable, "-m", "calibrant"]
    commands = {
        "`json.loads` of each line": [sys.executable, "-c", plain, path],
        "`calibrant assess --profile llm`": [*calibrant, "assess", path, "--profile", "llm"],
        "`calibrant certify`": [*calibrant, "certify", path],
        "`calibrant selective`": [*calibrant, "selective", path],
    }
    rows = []
    for name, command in commands.items():
        _, seconds, megabytes = apart(command)
        rows.append([name, f"{megabytes:,.0f}", f"{seconds:.1f}"])
    title = f"Logs of language models: {size / 1e6:,.0f} MB, {size // LINE:,} answers"
    notes = [
        "Of each answer a few numbers are kept, not its text. Five answers to a question are a cluster."
    ]
    return pages.Table(title, ["command", "peak MB", "seconds of processor time"], rows, notes)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--folder", type=Path, help="where the files are, or are written to stay")
    parser.add_argument("--only", help="measure one case of one file, print it as JSON")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, str(options.folder))))
        return 0
    reduced = options.reduced
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        measured = files(folder, 20 if reduced else 1)
        log = logs(folder, 50_000_000 if reduced else 1_000_000_000)
    page = pages.Page(
        "scans",
        "Files and memory",
        "python -m bench.scans" + (" --reduced" if reduced else ""),
        "Files are read once, in row groups, on all cores; the rows are never all in memory. After the pass, "
        "no cost depends on how many there were.",
        [measured, rows_without_end(range(3, 8 if reduced else 10)), log],
        {name: importlib.metadata.version(name) for name in ("pyarrow", "polars")},
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))
    return 1 if any(row[-1] == NOT_KEPT for row in measured.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
