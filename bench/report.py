"""What a report costs beyond the scan: time, peak memory and size of the page.

python -m bench.report [rows per model] [models]
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cal


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
    rows, models = (int(a) for a in (*sys.argv[1:], "1000000", "10")[:2])
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "predictions.parquet"
        small = Path(folder) / "small.parquet"
        for path, number in ((source, rows), (small, 1000)):
            # In a process of its own: its memory is not the report's.
            writing = multiprocessing.Process(target=write_predictions, args=(path, number, models))
            writing.start()
            writing.join()
        for _ in range(2):  # the first time loads the libraries
            began = time.perf_counter()
            few = cal.scan(str(small), y_true="y", y_prob="p", by="model")
            cal.report(few).save(Path(folder) / "small.html")
            fixed = time.perf_counter() - began
        began = time.perf_counter()
        groups = cal.scan(str(source), y_true="y", y_prob="p", by="model")
        scanned = time.perf_counter() - began
        page = cal.report(groups, title="Ten models").save(Path(folder) / "report.html")
        whole = time.perf_counter() - began
        print(f"rows                 {rows:,} x {models}")
        print(f"scan                 {scanned:.2f} s")
        print(f"scan and report      {whole:.2f} s")
        print(f"fixed part           {fixed:.2f} s (the same with 1,000 rows each)")
        print(f"(whole - fixed)/scan {(whole - fixed) / scanned:.2f} (at most 3)")
        print(f"peak memory          {megabytes():.0f} MB (under 1,000)")
        print(f"page                 {page.stat().st_size / 1e6:.2f} MB (under 3)")


if __name__ == "__main__":
    main()
