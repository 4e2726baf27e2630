"""Scans of files: time against decoding alone, resident memory, CSV against polars, many groups.

python -m bench.scans                 # 200 million rows; three gigabytes of disk
python -m bench.scans --reduced       # a twentieth of that

Every case is measured in a process of its own. `--folder` keeps the files for another time. Exits with 1
when a limit of the project is not kept.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from bench import pages

CHUNK = 1 << 20
CASES = ("parquet", "csv", "csv in polars", "groups")


def write_parquet(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    schema = pa.schema([("p", pa.float64()), ("y", pa.int8())])
    partial = path.with_suffix(".partial")
    with pq.ParquetWriter(partial, schema, use_dictionary=["y"]) as writer:
        for start in range(0, rows, CHUNK):
            p = rng.random(min(CHUNK, rows - start))
            y = (rng.random(p.size) < p).astype(np.int8)
            writer.write_table(pa.table({"p": p, "y": y}, schema=schema), row_group_size=CHUNK)
    partial.rename(path)


def write_csv(path: Path, rows: int) -> None:
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(1)
    partial = path.with_suffix(".partial")
    schema = pa.schema([("model", pa.string()), ("p", pa.float64()), ("y", pa.int64())])
    with csv.CSVWriter(partial, schema) as writer:
        for start in range(0, rows, CHUNK):
            p = rng.random(min(CHUNK, rows - start))
            y = (rng.random(p.size) < p).astype(np.int64)
            names = pa.array(["resnet"]).take(pa.array(np.zeros(p.size, dtype=np.int64)))
            writer.write_table(pa.table({"model": names, "p": p, "y": y}, schema=schema))
    partial.rename(path)


def write_groups(path: Path, rows: int, groups: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(2)
    partial = path.with_suffix(".partial")
    schema = pa.schema([("g", pa.string()), ("p", pa.float64()), ("y", pa.int8())])
    names = pa.array([f"customer-{number:06}" for number in range(groups)])
    with pq.ParquetWriter(partial, schema) as writer:
        for start in range(0, rows, CHUNK):
            p = rng.random(min(CHUNK, rows - start))
            table = {"g": names.take(pa.array(rng.integers(0, groups, p.size))), "p": p}
            table["y"] = (rng.random(p.size) < p).astype(np.int8)
            writer.write_table(pa.table(table, schema=schema), row_group_size=CHUNK)
    partial.rename(path)


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


def polars_group_by(path: str) -> int:
    """Polars' own group-by of the same file into the same cells."""
    import polars as pl

    cell = (pl.col("p") * 65536).floor().cast(pl.Int64)
    offset = (pl.col("p") * 2.0**36).floor().cast(pl.Int64) - cell * 2**20
    frame = pl.scan_csv(path).select(cell=cell, offset=offset, y=pl.col("y"))
    found = frame.group_by("cell", "y").agg(pl.len(), pl.col("offset").sum())
    return found.collect(engine="streaming").height


def timed(work) -> float:
    return timed_twice(work)[0]


def timed_twice(work) -> tuple[float, float]:
    """Seconds by the clock, and seconds of processors, which a busy machine does not lengthen."""
    start, used = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - used


def measure(case: str, folder: Path, repeats: int) -> dict[str, float]:
    import calibrant as cal

    if case == "parquet":
        path = str(folder / "rows.parquet")
        scans, decodings, peak = [], [], 0.0
        for _ in range(repeats):
            scans.append(
                timed_twice(lambda: cal.scan(path, y_true="y", y_prob="p", progress=False))
            )
            peak = peak or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            decodings.append(timed_twice(lambda: decode(path)))
        (scan, scan_cpu), (alone, alone_cpu) = (
            [min(column) for column in zip(*runs, strict=True)] for runs in (scans, decodings)
        )
        return {
            "seconds": scan,
            "decoding": alone,
            "ratio": scan / alone,
            "processor ratio": scan_cpu / alone_cpu,
            "MB": peak,
        }
    if case == "groups":
        path = str(folder / "groups.parquet")
        seconds = timed(lambda: cal.scan(path, y_true="y", y_prob="p", by="g", progress=False))
        return {"seconds": seconds, "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    path = str(folder / "rows.csv")
    if case == "csv":
        work = lambda: cal.scan(path, y_true="y", y_prob="p", progress=False)  # noqa: E731
    else:
        work = lambda: polars_group_by(path)  # noqa: E731
    seconds = min(timed(work) for _ in range(repeats))
    return {"seconds": seconds, "MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def table(found: dict[str, dict[str, float]], rows: dict[str, int], groups: int) -> pages.Table:
    parquet, csv, polars = (found[case] for case in ("parquet", "csv", "csv in polars"))
    measured = [
        ("Parquet: multiple of decoding", rows["parquet"], f"{parquet['seconds']:.1f} s", 1.6,
         parquet["ratio"]),
        ("Parquet: peak MB", rows["parquet"], "", 300, parquet["MB"]),
        ("CSV: multiple of polars' own group-by", rows["csv"], f"{csv['seconds']:.1f} s", 1.3,
         csv["seconds"] / polars["seconds"]),
        (f"{groups:,} groups: peak MB", rows["groups"], f"{found['groups']['seconds']:.1f} s",
         2000, found["groups"]["MB"]),
    ]  # fmt: skip
    return pages.Table(
        "Scans of files",
        ["what", "rows", "scan", "measured", "at most", ""],
        [
            [
                what,
                f"{n:,}",
                took,
                f"{value:,.2f}" if value < 100 else f"{value:,.0f}",
                f"{limit:g}",
                "kept" if value <= limit else "**not kept**",
            ]
            for what, n, took, limit, value in measured
        ],
        [
            "Decoding: the same reader reads the same columns with as many threads and drops them. In "
            f"processor time, the scan takes {parquet['processor ratio']:.2f} times as long.",
            "polars' streaming engine groups the same CSV file into the same cells in "
            f"{polars['seconds']:.1f} s, with {polars['MB']:,.0f} MB; the scan needs {csv['MB']:,.0f} "
            "MB.",
            "Peak MB: resident memory of the whole process, libraries included.",
        ],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="a twentieth of the rows")
    parser.add_argument("--folder", type=Path, help="where the files are, or are written to stay")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=CASES, help="measure one case, print it as JSON")
    options = parser.parse_args()
    if options.only:
        print(json.dumps(measure(options.only, options.folder, options.repeats)))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        return study(options.folder or Path(temporary), options.repeats, options.reduced)


def study(folder: Path, repeats: int, reduced: bool) -> int:
    share = 20 if reduced else 1
    rows = {"parquet": 200_000_000 // share, "csv": 20_000_000 // share, "groups": 10_000_000}
    groups = 100_000
    folder.mkdir(parents=True, exist_ok=True)
    for name, write in (
        ("rows.parquet", lambda path: write_parquet(path, rows["parquet"])),
        ("rows.csv", lambda path: write_csv(path, rows["csv"])),
        ("groups.parquet", lambda path: write_groups(path, rows["groups"], groups)),
    ):
        if not (folder / name).exists():
            print(f"writing {name}", file=sys.stderr, flush=True)
            write(folder / name)
    found = {}
    for case in CASES:
        print(case, file=sys.stderr, flush=True)
        command = [sys.executable, "-m", "bench.scans", "--only", case, "--folder", str(folder)]
        command += ["--repeats", str(repeats)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        found[case] = json.loads(done.stdout)
    pages.save("scans", found)
    measured = table(found, rows, groups)
    page = pages.Page(
        "scans",
        "Scanning files",
        "python -m bench.scans" + (" --reduced" if reduced else ""),
        "Files are read once, in row groups, on all cores; the rows are never all in memory.",
        [measured],
        {name: importlib.metadata.version(name) for name in ("pyarrow", "polars")},
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))
    return 1 if any(row[-1] != "kept" for row in measured.rows) else 0


if __name__ == "__main__":
    sys.exit(main())
