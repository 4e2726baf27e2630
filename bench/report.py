"""What a report costs beyond the scan: time, peak memory and size of the page.

python -m bench.report
"""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal
from bench import pages

ROWS, FEWER, MODELS = 1_000_000, 100_000, 10


def write_predictions(path: Path, rows: int, models: int) -> None:
    """Models of growing overconfidence, one row group each."""
    rng = np.random.default_rng(0)
    writer = None
    for k in range(models):
        p = rng.random(rows)
        y = (rng.random(rows) < 0.5 + (1 - 0.03 * k) * (p - 0.5)).astype(np.int8)
        table = pa.table({"p": p, "y": y, "model": pa.array([f"model {k}"] * rows)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def megabytes() -> float:
    """The highest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "predictions.parquet"
        small = Path(folder) / "small.parquet"
        for path, number in ((source, ROWS), (small, FEWER)):
            # In a process of its own: its memory is not the report's.
            writing = multiprocessing.Process(target=write_predictions, args=(path, number, MODELS))
            writing.start()
            writing.join()
        for _ in range(2):  # the first time loads the libraries
            began = time.perf_counter()
            few = cal.scan(str(small), y_true="y", y_prob="p", by="model")
            read = time.perf_counter() - began
            cal.report(few).save(Path(folder) / "small.html")
            fixed = time.perf_counter() - began - read
        began = time.perf_counter()
        groups = cal.scan(str(source), y_true="y", y_prob="p", by="model")
        scanned = time.perf_counter() - began
        page = cal.report(groups, title="Ten models").save(Path(folder) / "report.html")
        whole = time.perf_counter() - began
        peak, size = megabytes(), page.stat().st_size / 1e6
    ratio = (whole - fixed) / scanned
    measured = [
        (
            "scan and report without the fixed part: multiple of the scan",
            f"{ratio:.2f}",
            "3",
            ratio <= 3,
        ),
        ("peak memory, MB", f"{peak:.0f}", "1,000", peak < 1000),
        ("page, MB", f"{size:.2f}", "3", size < 3),
    ]
    table = pages.Table(
        f"A report on {MODELS} models of {ROWS:,} rows",
        ["what", "measured", "at most", ""],
        [
            [what, value, most, "kept" if kept else "**not kept**"]
            for what, value, most, kept in measured
        ],
        [
            f"Scan: {scanned:.2f} s. Scan and report: {whole:.2f} s. The fixed part is what a report on "
            f"{FEWER:,} rows per model, with sketches just as full, costs beyond its scan: {fixed:.2f} "
            "s.",
        ],
    )
    written = pages.Page(
        "report",
        "The cost of a report",
        "python -m bench.report",
        "The report is made from sketches, so its cost beyond the scan hardly depends on the number of "
        "rows.",
        [table],
    ).write(pages.EVIDENCE)
    print(written.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
