"""Clusters whose workers die in the middle: the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]

ROWS = 160_000


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A folder of Parquet files, and the sketch of its rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("lake")
    rng = np.random.default_rng(0)
    p = rng.random(ROWS)
    y = (rng.random(ROWS) < p).astype(np.int64)
    for part, rows in enumerate(np.array_split(np.arange(ROWS), 8)):
        pq.write_table(pa.table({"p": p[rows], "y": y[rows]}), folder / f"{part:02}.parquet")
    return folder, cal.Sketch.from_arrays(y, p)


def processes_with(text: str) -> list[int]:
    """Processes whose command line holds the text."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (
                    (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
            except OSError:
                continue
            if text in command:
                found.append(int(entry.name))
    return found


SPARK = """
import sys
import calibrant as cal
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]")
    .config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4")
    .config("spark.sql.files.maxPartitionBytes", "1m")
    .getOrCreate()
)
# One row in fifty sleeps for a moment, so that there is a middle in which to kill.
slow = "p < 0.98 OR java_method('java.lang.Thread', 'sleep', 4L) IS NULL OR true"
frame = spark.read.parquet(sys.argv[1]).filter(slow)
print("ready", flush=True)
cal.save(cal.scan(frame, y_true="y", y_prob="p"), sys.argv[2])
spark.stop()
"""


def test_a_spark_executor_killed_in_the_middle(lake, tmp_path):
    pytest.importorskip("pyspark", reason="Spark could not be started: pyspark is not installed")
    folder, expected = lake
    script = tmp_path / "job.py"
    script.write_text(SPARK)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(script), str(folder), str(tmp_path / "out.parquet")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as job:
        said: list[str] = []
        reader = threading.Thread(target=lambda: said.extend(job.stderr))
        reader.start()
        assert job.stdout.readline() == "ready\n", "".join(said)
        executors: list[int] = []
        while len(executors) < 2 and job.poll() is None:
            time.sleep(0.2)
            running = processes_with("CoarseGrainedExecutorBackend")
            executors = [pid for pid in running if is_descendant(pid, job.pid)]
        time.sleep(3.0)
        assert job.poll() is None
        os.kill(executors[0], signal.SIGKILL)
        assert job.wait(timeout=180) == 0, "".join(said)[-3000:]
        reader.join()
    assert cal.load(tmp_path / "out.parquet") == expected


def is_descendant(pid: int, ancestor: int) -> bool:
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int((Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


def test_a_dask_worker_killed_in_the_middle(lake, tmp_path):
    pytest.importorskip("dask.distributed", reason="Dask could not be started: it is not installed")
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal, sys, threading, time
            import calibrant as cal
            import dask.dataframe as dd
            from dask.distributed import Client, LocalCluster

            def pause(part):
                time.sleep(0.3)
                return part

            if __name__ == "__main__":
                cluster = LocalCluster(
                    n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
                )
                client = Client(cluster)
                victim = next(iter(cluster.workers.values())).pid
                threading.Timer(1.5, os.kill, (victim, signal.SIGKILL)).start()
                frame = dd.read_parquet(sys.argv[1]).map_partitions(pause)
                cal.save(cal.scan(frame, y_true="y", y_prob="p"), sys.argv[2])
                print("workers", victim, [w.pid for w in cluster.workers.values()])
                client.close(); cluster.close()
            """
        )
    )
    folder, expected = lake
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(folder), str(tmp_path / "out.parquet")],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert cal.load(tmp_path / "out.parquet") == expected


def test_a_ray_worker_killed_in_the_middle(lake, tmp_path):
    pytest.importorskip("ray", reason="Ray could not be started: it is not installed")
    script = tmp_path / "job.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, signal, sys, time
            import calibrant as cal
            import ray

            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
            ray.data.DataContext.get_current().enable_progress_bars = False
            flag = sys.argv[2] + ".killed"

            def pause(batch):
                time.sleep(0.1)
                if not os.path.exists(flag):
                    open(flag, "w").close()
                    os.kill(os.getpid(), signal.SIGKILL)
                return batch

            frame = ray.data.read_parquet(sys.argv[1]).map_batches(pause, batch_format="pyarrow")
            cal.save(cal.scan(frame, y_true="y", y_prob="p"), sys.argv[2])
            assert os.path.exists(flag)
            ray.shutdown()
            """
        )
    )
    folder, expected = lake
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), str(folder), str(tmp_path / "out.parquet")],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert cal.load(tmp_path / "out.parquet") == expected
