"""Speed and memory: calibrant beside the packages that people use now, in one run.

python -m bench.speed              # to 10,000,000 rows
python -m bench.speed --reduced    # to 1,000,000 rows, for CI
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.calibration import calibration_curve

import calibrant
from bench import pages
from bench.peers.adapters import PEERS
from bench.peers.asking import NoAnswer, ask
from calibrant import Sketch, datasets
from calibrant.measures import multiclass_error

COMPARED = ("calibrant", "relplot", "scikit-learn", "netcal", "torchmetrics", "probcal", "calibre")


COMPARISON = ["what", "compared with", "ratio", "at most", ""]
LIMITS = {100: 0.3, 1_000: 0.5, 10_000: 0.4, 100_000: 0.2, 1_000_000: 0.09}
"""The most that `smooth_ece` may cost, in calibration curves of the same rows."""
RARE_LIMIT = 0.7
SECONDS_EACH = 0.4


def compared(what: str, own: float, other: str, theirs: float | None, most: float) -> list[str]:
    """A row of a comparison: what, with what, the ratio of processor times and the most it may be."""
    if theirs is None:
        return [what, other, "not measured", f"{most:g}", ""]
    verdict = "kept" if own <= most * theirs else "**not kept**"
    return [what, other, f"{own / theirs:.2g}", f"{most:g}", verdict]


def shapes(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows of each kind that has been slow somewhere."""
    rng = np.random.default_rng(0)
    u = rng.random(n)
    tenths = np.round(10 * u) / 10
    ends = np.where(rng.random(n) < 0.5, np.round(u), u)
    rare = 0.02 * u**2
    outcomes = {
        "overconfident": (u, 0.5 + 0.7 * (u - 0.5)),
        "calibrated": (u, u),
        "tenths": (tenths, 0.5 + 0.8 * (tenths - 0.5)),
        "saturated": (ends, 0.02 + 0.9 * ends),
        "rare and calibrated": (rare, rare),
    }
    return {
        name: ((rng.random(n) < truth).astype(np.int64), p) for name, (p, truth) in outcomes.items()
    }


def by_turns(*calls: Callable[[], object]) -> list[float]:
    """The shortest processor time of each call, taken by turns, so that a busy machine slows all alike."""
    best = [np.inf] * len(calls)
    times = []
    for call in calls:
        call()  # the first imports what it needs
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    repeats = [max(1, min(500, int(0.01 / max(seconds, 1e-6)))) for seconds in times]
    until = time.perf_counter() + SECONDS_EACH * len(calls)
    while time.perf_counter() < until or not np.all(np.isfinite(best)):
        for i, call in enumerate(calls):
            start = time.process_time()
            for _ in range(repeats[i]):
                call()
            best[i] = min(best[i], (time.process_time() - start) / repeats[i])
    return best


def values(sizes: list[int]) -> pages.Table:
    """SmoothECE from arrays and of sketches, and the making of these, beside scikit-learn's curve."""
    rows = []
    for n in sizes:
        for name, (y, p) in shapes(n).items():
            own, curve = by_turns(
                lambda y=y, p=p: calibrant.smooth_ece(y, p),
                lambda y=y, p=p: calibration_curve(y, p, n_bins=15),
            )
            limit = LIMITS.get(n, min(LIMITS.values()))
            limit = max(limit, RARE_LIMIT) if name.startswith("rare") else limit
            what = f"`smooth_ece`, {n:,} rows, {name}"
            rows.append(compared(what, own, "curve of these", curve, limit))
    few_y, few = shapes(1_000)["overconfident"]
    for n, most in ((11, 0.5), (10_000, 0.5), (1_000_000, 4.0)):
        y, p = shapes(n)["overconfident"]
        sketch = Sketch.from_arrays(y, p)
        making, own, curve, of_few = by_turns(
            lambda y=y, p=p: Sketch.from_arrays(y, p),
            lambda sketch=sketch: calibrant.smooth_ece(sketch),
            lambda y=y, p=p: calibration_curve(y, p, n_bins=15),
            lambda: calibration_curve(few_y, few, n_bins=15),
        )
        if n > 1_000:
            what = f"`Sketch.from_arrays`, {n:,} rows"
            rows.append(compared(what, making, "curve of these", curve, 0.25))
        what = f"`smooth_ece` of a sketch with {sketch.cells.size:,} cells"
        rows.append(compared(what, own, "curve of 1,000 rows", of_few, most))
    note = (
        "Processor time, the least of many calls, by turns in one process. float64 predictions and int64 "
        "labels. The curve is `calibration_curve(n_bins=15)` of scikit-learn."
    )
    return pages.Table("SmoothECE and sketches", COMPARISON, rows, [note])


def costs(peer: str, sizes: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Least times and memory of a package at each number of rows, or why there are none."""
    found: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            p, y = str(Path(folder, "p.npy")), str(Path(folder, "y.npy"))
            drawn = datasets.generate("overconfident", n)
            np.save(p, drawn.p)
            np.save(y, drawn.y.astype(np.int64))
            repeat = 200 if n <= 10_000 else 40
            try:
                found[n] = ask(peer, "cost", limit=300.0, p=p, y=y, repeat=repeat, budget=10.0)
            except NoAnswer as error:
                found[n] = {"none": str(error)}
    return found


def beside_peers(small: int, large: int) -> tuple[pages.Table, dict[str, str]]:
    """Time and memory of each package as multiples, and the versions of these packages."""
    found = {peer: costs(peer, (small, large)) for peer in COMPARED}
    header, rows = ["package", "call"], []
    for n in (small, large):
        header += [f"n = {n:,}: × calibrant", "× plain sum", "MB"]
    for peer, by_n in found.items():
        rows.append([peer, f"`{PEERS[peer].asked}`"])
        for n, cost in by_n.items():
            if "none" in cost:
                rows[-1] += [cost["none"], "", ""]
                continue
            ratio, to_sum = (
                cost["cpu"] / found["calibrant"][n]["cpu"],
                cost["cpu"] / cost["sum cpu"],
            )
            rows[-1] += [f"{ratio:,.3g}", f"{to_sum:,.3g}", f"{cost['megabytes']:,.1f}"]
    notes = [
        "float64 probabilities, int64 labels. scikit-learn gives a binned curve and no number; netcal, "
        "torchmetrics, probcal and calibre give the binned ECE with 15 bins; relplot and calibrant give "
        "SmoothECE.",
        "Processor time, summed over threads: the least of three or more calls in one process, by turns "
        "with a plain sum of both arrays, which is the least any measure can cost.",
        "MB: growth of resident memory during the first full call. A thousand rows are too few to show.",
    ]
    versions = {
        peer: one[small]["version"] for peer, one in found.items() if "version" in one[small]
    }
    return pages.Table("Time and memory", header, rows, notes), versions


def assessments(powers: range) -> pages.Table:
    """Assessments of rows, beside SmoothECE alone and relplot's bare number."""
    bare = costs("relplot", [1_000])[1_000].get("cpu")
    rows = []
    for power in powers:
        drawn = datasets.generate("overconfident", 10**power)
        number, whole = by_turns(
            lambda d=drawn: calibrant.smooth_ece(d.y, d.p),
            lambda d=drawn: calibrant.assess(d.y, d.p),
        )
        what = f"`assess`, {10**power:,} rows"
        if power == 3:
            rows.append(compared(what, whole, "relplot's SmoothECE alone", bare, 2.0))
        beyond = max(whole - 3 * number, 0.0)
        rows.append(
            compared(
                f"{what}, beyond 3 × `smooth_ece`", beyond, "three tenths of a second", 0.3, 1.0
            )
        )
    note = (
        "Processor time. Interval, noise floor, test and scores come from the sketch, so their cost stops "
        "growing once the sketch is full."
    )
    return pages.Table("Assessments", COMPARISON, rows, [note])


def grouped_rows(groups: int, bad: float, each: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, predictions and groups, of which a share `bad` is over-confident by half."""
    rng = np.random.default_rng(1)
    group = np.repeat(np.arange(groups), each)
    p = rng.random(group.size)
    worse = group % 100 < 100 * bad
    y = rng.random(group.size) < np.where(worse, 0.5 + 0.5 * (p - 0.5), p)
    return y.astype(np.int64), p, group


def groups(*, reduced: bool) -> list[pages.Table]:
    """Assessments and sketches by group, beside relplot's number of a group and pandas' sums."""
    bare = costs("relplot", [300])[300].get("cpu")
    rows = []
    for what, bad in (("calibrated", 0.0), ("a quarter over-confident", 0.25)):
        y, p, group = grouped_rows(1_000, bad, 300)
        (own,) = by_turns(lambda y=y, p=p, g=group: calibrant.assess_by(y, p, by=g))
        what = f"`assess_by`, a group of 1,000 with 300 rows, {what}"
        rows.append(compared(what, own / 1_000, "relplot's SmoothECE alone", bare, 1.0))
    y, p, group = grouped_rows(1_000, 0.0, 300)
    names = np.array([f"group {k}" for k in range(1_000)])
    group = np.random.default_rng(0).permutation(group)
    for what, column in (("whole numbers", group), ("text", names[group])):
        frame = pd.DataFrame({"y": y, "p": p, "g": column})
        own, sums = by_turns(
            lambda f=frame: calibrant.scan(f, y_true="y", y_prob="p", by="g"),
            lambda f=frame: f.groupby("g")[["y", "p"]].sum(),
        )
        rows.append(
            compared(f"`scan(by=)`, 1,000 groups, {what}", own, "pandas' sum by group", sums, 8.0)
        )
    growth = []
    for count in (100, 300, 1_000) if reduced else (100, 1_000, 10_000):
        y, p, group = grouped_rows(count, 0.25, 100)
        seconds, more = apart(_assess_groups, y, p, group)
        growth.append(
            [f"{count:,}", f"{seconds / count / bare:.2g}" if bare else "", f"{more:.0f}"]
        )
    return [
        pages.Table("Groups", COMPARISON, rows, ["Processor time."]),
        pages.Table(
            "Cost by number of groups",
            [
                "groups",
                "`assess_by`, per group, in relplot's SmoothECE of 300 rows",
                "MB beyond the inputs",
            ],
            growth,
            ["100 rows per group, in a process of their own."],
        ),
    ]


def _assess_groups(y: np.ndarray, p: np.ndarray, group: np.ndarray) -> object:
    return calibrant.assess_by(y, p, by=group)


def apart(call: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Processor seconds and peak megabytes beyond the inputs of a call in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found: tuple[float, float] = pool.apply(_spent, (call, *arguments))
    return found


def _spent(call: Callable[..., object], *arguments: object) -> tuple[float, float]:
    """Of the second call: the first loads libraries. Its memory is that of both."""
    before = _most_megabytes()
    call(*arguments)
    start = time.process_time()
    call(*arguments)
    return time.process_time() - start, _most_megabytes() - before


def _most_megabytes() -> float:
    """Peak resident memory of this process, which getrusage would mix with that of its parent."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def classes() -> pages.Table:
    """SmoothECE of the confidence of 1,000 classes beside one argmax, and of every class."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(1_000, 0.01), 20_000).astype(np.float32)
    labels = rng.integers(0, 1_000, len(probs))
    top, argmax = by_turns(
        lambda: calibrant.smooth_ece(labels, probs), lambda: probs.argmax(axis=1)
    )
    every, _ = by_turns(
        lambda: multiclass_error(labels, probs, view="classwise_mean"),
        lambda: probs.argmax(axis=1),
    )
    rows = [
        compared("SmoothECE of the confidence", top, "one argmax", argmax, 3.0),
        compared("mean SmoothECE of the classes", every, "one argmax", argmax, 500.0),
    ]
    return pages.Table(
        "20,000 rows of 1,000 classes, float32", COMPARISON, rows, ["Processor time."]
    )


def diagrams(powers: range) -> pages.Table:
    """Reliability diagrams with their bands, beside relplot's, and from rows of every number."""
    y, p = _diagram_rows(50_000)
    (own,) = by_turns(lambda: _drawn(y, p))
    with tempfile.TemporaryDirectory() as folder:
        files = {name: str(Path(folder) / f"{name}.npy") for name in ("y", "p")}
        np.save(files["y"], y[None])
        np.save(files["p"], p[None])
        try:
            theirs = ask("relplot", "intervals", **files)["seconds"]
        except NoAnswer:
            theirs = None
    rows = [compared("50,000 rows, drawn", own, "relplot's, without band or drawing", theirs, 0.1)]
    for power in powers:
        y, p = _diagram_rows(10**power)
        sketch, drawn = by_turns(
            lambda y=y, p=p: Sketch.from_arrays(y, p),
            lambda y=y, p=p: _drawn(y, p),
        )
        limit = "a fifth of a second"
        rows.append(
            compared(
                f"{10**power:,} rows, drawn, beyond the sketch", drawn - sketch, limit, 0.2, 1.0
            )
        )
    return pages.Table("Reliability diagrams", COMPARISON, rows, ["Processor time."])


def _drawn(y: np.ndarray, p: np.ndarray) -> None:
    calibrant.reliability_diagram(y, p).plot()
    plt.close("all")


def _diagram_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.beta(2.0, 0.9, n)
    return (rng.random(n) < 0.12 + 0.72 * p).astype(np.int64), p


def report() -> pages.Table:
    """The report of ten models beside its scan."""
    with tempfile.TemporaryDirectory() as name:
        models, page = Path(name, "models.parquet"), Path(name, "report.html")
        write_models(models, 1_000_000, 10)
        scanned, _ = apart(_scan, str(models))
        whole, peak = apart(_report, str(models), str(page))
        size = page.stat().st_size / 1e6
    rows = [compared("report of 10 × 1,000,000 rows", whole, "its scan alone", scanned, 4.0)]
    note = f"The page: {size:.2f} MB, made with {peak:,.0f} MB of memory. Processor time."
    return pages.Table("Report", COMPARISON, rows, [note])


def write_models(path: Path, rows: int, models: int) -> None:
    """Models of growing over-confidence, one row group each."""
    rng = np.random.default_rng(0)
    schema = pa.schema([("p", pa.float64()), ("y", pa.int8()), ("model", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for k in range(models):
            p = rng.random(rows)
            y = (rng.random(rows) < 0.5 + (1 - 0.03 * k) * (p - 0.5)).astype(np.int8)
            table = {"p": p, "y": y, "model": pa.array([f"model {k}"] * rows)}
            writer.write_table(pa.table(table, schema=schema))


def _scan(source: str) -> object:
    return calibrant.scan(source, y_true="y", y_prob="p", by="model")


def _report(source: str, page: str) -> object:
    return calibrant.report(_scan(source), title="Ten models").save(page)


def main() -> None:
    plt.switch_backend("agg")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="a million rows, for CI")
    reduced = parser.parse_args().reduced
    small, large = 1_000, 1_000_000 if reduced else 10_000_000
    powers = range(3, 6 if reduced else 8)
    table, versions = beside_peers(small, large)
    page = pages.Page(
        "speed",
        "Speed and memory",
        "python -m bench.speed" + (" --reduced" if reduced else ""),
        "What calibrant costs, as a multiple of what people use today or of a physical limit, in the same "
        f"run. Load of the machine ({os.cpu_count()} cores): {os.getloadavg()[2]:.1f}.",
        [
            table,
            values([10**power for power in range(2, powers.stop)]),
            assessments(powers),
            *groups(reduced=reduced),
            classes(),
            diagrams(powers),
            report(),
        ],
        versions,
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
