"""The torch metrics on a real GPU: what `update` and `compute` cost, against torch.bincount and torchmetrics.

Run on a machine with a CUDA device, torch and torchmetrics, from the repository's root:

    python3 -m bench.gpu

Nothing compiled of calibrant is needed there. It writes a page of evidence and exits with 1 when a limit of
the project is not kept. On a machine without a GPU, `--cpu` runs the checks (not the limits) on small data.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import statistics
import sys
import time

import torch

from bench import pages
from calibrant.integrations.torch import tables
from calibrant.integrations.torch.metrics import BinarySmoothECE, MulticlassSmoothECE
from calibrant.integrations.torch.solve import smooth_ece_of_tables

FAILURES: list[str] = []
SHAPES = ("uniform", "half at 1", "lattice")


def check(ok: bool, what: str) -> None:
    print(("ok    " if ok else "FAIL  ") + what, flush=True)
    if not ok:
        FAILURES.append(what)


def seconds(work, device: str, repeats: int = 15) -> float:
    """Median time of a call, from events on the device."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        if device == "cpu":
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
            continue
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def data(n: int, device: str, shape: str) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator(device=device).manual_seed(0)
    p = torch.rand(n, device=device, generator=generator)
    if shape == "half at 1":
        p = torch.where(torch.rand(n, device=device, generator=generator) < 0.5, 1.0, p)
    if shape == "lattice":
        p = torch.round(p * 10) / 10
    y = (torch.rand(n, device=device, generator=generator) < p).to(torch.uint8)
    return p, y


def reference(p: torch.Tensor, y: torch.Tensor, nodes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts and offsets by the simplest tensor operations, on the CPU, in float64."""
    fixed = torch.floor(p.double().cpu() * 2.0**36).to(torch.int64)
    bits = 36 - (nodes.bit_length() - 1)
    slot = 2 * (fixed >> bits) + y.cpu().to(torch.int64)
    size = 2 * (nodes + 1)
    counts = torch.bincount(slot, minlength=size)
    offsets = torch.zeros(size, dtype=torch.int64)
    return counts, offsets.index_add_(0, slot, fixed & ((1 << bits) - 1))


def check_bits(device: str, n: int) -> None:
    for shape in SHAPES:
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            p, y = data(n, device, shape)
            p = p.to(dtype)
            metric = BinarySmoothECE().to(device)
            metric.update(p, y)
            counts, offsets = reference(p, y, metric.nodes)
            same = torch.equal(metric.counts[0].cpu(), counts)
            same &= torch.equal(metric.offsets[0].cpu(), offsets)
            same &= int(metric.refused.sum()) == 0
            check(same, f"same bits as plain sums: {n} rows, {shape}, {dtype}")


def check_refusals(device: str) -> None:
    nan, inf = float("nan"), float("inf")
    p = torch.tensor([0.5, nan, inf, -0.1, 0.5, 0.5, 0.5, -0.0], device=device)
    for y, expected in (
        ([1, 1, 1, 1, 2, 9, -1, 0], [1, 2, 0, 2, 0, 0, 1]),
        ([1.0, 1, 1, 1, nan, 9, 0.5, 0], [1, 2, 1, 1, 0, 0, 1]),
    ):
        metric = BinarySmoothECE(ignore_index=9).to(device)
        metric.update(p, torch.tensor(y, device=device))
        check(metric.refused.tolist() == expected, f"refusals {metric.refused.tolist()}")
        check(int(metric.counts.sum()) == 2, "the others are counted")


def check_classes(device: str) -> None:
    generator = torch.Generator(device=device).manual_seed(1)
    logits = torch.randn(5000, 100, device=device, generator=generator) * 4
    logits[:50, 0] = 200.0  # probabilities of exactly 1 and 0
    labels = torch.randint(0, 100, (5000,), device=device, generator=generator)
    for kind in ("confidence", "top_label", "classwise"):
        metric = MulticlassSmoothECE(100, kind, from_logits=True, ignore_index=7).to(device)
        metric.update(logits, labels)
        plain = MulticlassSmoothECE(100, kind, from_logits=True, ignore_index=7).to(device)
        fast, tables.add_rows = tables.add_rows, tables._add
        import calibrant.integrations.torch.metrics as metrics

        metrics.add_rows = tables._add
        plain.update(logits, labels)
        tables.add_rows = metrics.add_rows = fast
        same = torch.equal(metric.counts, plain.counts) and torch.equal(
            metric.offsets, plain.offsets
        )
        same &= torch.equal(metric.refused, plain.refused)
        check(same, f"{kind}: the fused kernel gives the bits of plain tensor operations")


def check_no_synchronisation(device: str) -> None:
    """Torch itself reports every wait for the device."""
    p, y = data(100_000, device, "uniform")
    metrics = [BinarySmoothECE(ignore_index=9).to(device)]
    metrics += [
        MulticlassSmoothECE(4, kind).to(device) for kind in ("confidence", "top_label", "classwise")
    ]
    probs = torch.softmax(torch.randn(25_000, 4, device=device), 1)
    labels = torch.randint(0, 4, (25_000,), device=device)
    for mode in ("warn up", "error"):
        torch.cuda.set_sync_debug_mode("error" if mode == "error" else "default")
        try:
            metrics[0].update(p, y)
            for metric in metrics[1:]:
                metric.update(probs, labels)
        except RuntimeError as error:
            check(False, f"`update` waits for the device: {error}")
        finally:
            torch.cuda.set_sync_debug_mode("default")
    check(True, "`update` never waits for the device")


def check_values(device: str, n: int) -> None:
    """The value is that on the processor, which the tests compare with the compiled solver's."""
    for shape in SHAPES:
        p, y = data(n, device, shape)
        metric = BinarySmoothECE().to(device)
        metric.update(p, y)
        tables_of_cpu = metric.counts.cpu(), metric.offsets.cpu(), metric.nodes
        away = abs(metric.compute().item() - smooth_ece_of_tables(*tables_of_cpu)[0].item())
        check(away <= 1e-12, f"`compute` on the device, {shape}: {away:.1e} from the processor's")


def check_class_values(device: str) -> None:
    probs = torch.softmax(torch.randn(20_000, 50, device=device) * 2, 1)
    labels = torch.multinomial(probs, 1).squeeze(1)
    metric = MulticlassSmoothECE(50, "classwise", average="none").to(device)
    metric.update(probs, labels)
    plain = smooth_ece_of_tables(metric.counts.cpu(), metric.offsets.cpu(), metric.nodes)[0]
    away = (metric.compute().cpu() - plain).abs().max().item()
    check(away <= 1e-8, f"`compute` on the device, 50 classes: {away:.1e} from the processor's")


def milliseconds(work, repeats: int = 15) -> float:
    """Median time by the clock of a call and of all that it asks of the device."""
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def time_updates(device: str, sizes: list[int]) -> list[dict[str, object]]:
    rows = []
    for n in sizes:
        for shape in SHAPES:
            p, y = data(n, device, shape)
            metric = BinarySmoothECE().to(device)
            slots = (p.double() * 65536).to(torch.int64) * 2 + y
            bins = metric.counts.numel()
            update = seconds(lambda m=metric, p=p, y=y: m.update(p, y), device)
            plain = seconds(
                lambda m=metric, p=p, y=y: tables._add(
                    m.counts, m.offsets, m.refused, tables.Rows(p, y), m.nodes
                ),
                device,
            )
            bincount = seconds(lambda s=slots, b=bins: torch.bincount(s, minlength=b), device)
            total = seconds(lambda p=p, y=y: (p.sum(), y.sum()), device)
            rows.append(
                {
                    "rows": n,
                    "shape": shape,
                    "update_ps": update / n * 1e12,
                    "plain_tensor_operations_ps": plain / n * 1e12,
                    "bincount_ps": bincount / n * 1e12,
                    "sum_ps": total / n * 1e12,
                    "update_over_bincount": update / bincount,
                }
            )
            print(
                f"{n:>11,} rows  {shape:<10} update {update / n * 1e12:6.1f} ps/row   "
                f"plain {plain / n * 1e12:6.1f}   bincount {bincount / n * 1e12:6.1f}   "
                f"sum {total / n * 1e12:5.1f}   update/bincount {update / bincount:5.2f}",
                flush=True,
            )
    return rows


def check_updates(rows: list[dict[str, object]]) -> None:
    for row in rows:
        what = f"{row['rows']:,} rows, {row['shape']}: update"
        if row["rows"] >= 10_000_000:
            check(row["update_over_bincount"] <= 3, f"{what} within 3 times of bincount")
        uniform = next(r for r in rows if (r["rows"], r["shape"]) == (row["rows"], "uniform"))
        ratio = row["update_ps"] / uniform["update_ps"]
        check(ratio <= 2, f"{what} within 2 times of uniform predictions: {ratio:.2f}")


def time_against_torchmetrics(device: str, sizes: list[int]) -> list[dict[str, float]]:
    """Milliseconds of one update, and of the `compute` after it, in both packages."""
    from torchmetrics.classification import BinaryCalibrationError

    ours = BinarySmoothECE().to(device)
    theirs = BinaryCalibrationError(n_bins=15, norm="l1", validate_args=False).to(device)

    def epoch(metric: torch.nn.Module, p: torch.Tensor, y: torch.Tensor) -> None:
        metric.reset()
        metric.update(p, y)
        metric.compute()

    def compute() -> torch.Tensor:
        ours._computed = None  # torchmetrics keeps the last value
        return ours.compute()

    found = []
    for n in sizes:
        p, y = data(n, device, "uniform")
        row = {
            "rows": n,
            "update": milliseconds(lambda p=p, y=y: ours.update(p, y)),
            "compute": milliseconds(compute),
            "epoch": milliseconds(lambda p=p, y=y: epoch(ours, p, y)),
            "torchmetrics": milliseconds(lambda p=p, y=y: epoch(theirs, p, y)),
        }
        found.append(row)
        print(", ".join(f"{name} {value:,.2f}" for name, value in row.items()), flush=True)
    return found


def megabytes(metric: torch.nn.Module) -> float:
    states = (metric.counts, metric.offsets, metric.refused)
    return sum(state.numel() * state.element_size() for state in states) / 1e6


def time_classes(device: str) -> dict[str, tuple[float, float]]:
    """Milliseconds of one `update` with 1,000 classes, and of one `compute`."""
    found = {}
    probs = torch.softmax(torch.randn(20_000, 1000, device=device) * 3, 1)
    labels = torch.multinomial(probs, 1).squeeze(1)
    for kind in ("confidence", "top_label", "classwise"):
        metric = MulticlassSmoothECE(1000, kind).to(device)
        update = milliseconds(lambda m=metric: m.update(probs, labels))

        def compute(metric: MulticlassSmoothECE = metric) -> torch.Tensor:
            metric._computed = None
            return metric.compute()

        found[kind] = update, milliseconds(compute)
        print(f"1000 classes, 20,000 rows, {kind:<10} {found[kind]} ms", flush=True)
    return found


def page(
    updates: list[dict[str, object]],
    epochs: list[dict[str, float]],
    classes: dict[str, tuple[float, float]],
) -> pages.Page:
    shown = ("update_ps", "plain_tensor_operations_ps", "bincount_ps", "sum_ps")
    rows = [
        [
            f"{row['rows']:,}",
            str(row["shape"]),
            *(f"{row[name]:.1f}" for name in shown),
            f"{row['update_over_bincount']:.2f}",
        ]
        for row in updates
    ]
    binary = pages.Table(
        "`BinarySmoothECE.update`, picoseconds per row",
        [
            "rows",
            "predictions",
            "`update`",
            "without Triton",
            "`torch.bincount`",
            "sum",
            "× bincount",
        ],
        rows,
        [
            "float32 predictions and uint8 targets. Median of 15 calls, timed by events on the device.",
            "`torch.bincount`: the same number of bins, with the bin indices given. Sum: the sum of "
            "both tensors.",
            f"The state takes {megabytes(BinarySmoothECE()):.1f} MB for any number of rows. The run "
            "also checks that `update` never waits for the device and gives the same bits as plain "
            "sums.",
        ],
    )
    beside = pages.Table(
        "Compared with torchmetrics' `BinaryCalibrationError`, milliseconds",
        [
            "rows",
            "`update`",
            "`compute`",
            "`reset`, `update`, `compute`",
            "torchmetrics, all three",
            "× ours",
        ],
        [
            [
                f"{row['rows']:,.0f}",
                *(f"{row[name]:.2f}" for name in ("update", "compute", "epoch", "torchmetrics")),
                f"{row['torchmetrics'] / row['epoch']:.1f}",
            ]
            for row in epochs
        ],
        [
            "Wall-clock time until the device has finished, median of 15 calls. `update` is what each "
            "batch costs. `compute` solves for SmoothECE on the device, in about the same time for any "
            "number of rows, and copies no table to the host. torchmetrics keeps the rows and bins "
            "them in `compute`.",
        ],
    )
    many = pages.Table(
        "`MulticlassSmoothECE`, 20,000 rows of 1,000 classes, milliseconds",
        ["kind", "`update`", "`compute`"],
        [[f"`{kind}`", *(f"{each:.2f}" for each in both)] for kind, both in classes.items()],
        [
            f"With `classwise`, the state takes {megabytes(MulticlassSmoothECE(1000, 'classwise')):.0f} MB."
        ],
    )
    name = f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    lead = (
        "Everything runs on the device: one pass over each batch, then the number at the end. "
        f"Measured on {name}."
    )
    versions = {name: importlib.metadata.version(name) for name in ("torch", "torchmetrics")}
    return pages.Page(
        "gpu", "On a GPU", "python -m bench.gpu", lead, [binary, beside, many], versions
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", action="store_true", help="run the checks on small data")
    options = parser.parse_args()
    device = "cpu" if options.cpu else "cuda"
    print("torch", torch.__version__, torch.cuda.get_device_name() if device == "cuda" else "CPU")
    check("calibrant.data._fill" not in sys.modules, "no compiled part of calibrant is loaded")
    check_bits(device, 100_003 if device == "cpu" else 10_000_019)
    check_refusals(device)
    check_classes(device)
    check_values(device, 100_003)
    check_class_values(device)
    check(megabytes(BinarySmoothECE()) < 20, f"binary state {megabytes(BinarySmoothECE()):.1f} MB")
    classwise = megabytes(MulticlassSmoothECE(1000, "classwise"))
    check(classwise < 200, f"state of 1,000 classes {classwise:.0f} MB")
    if device == "cuda":
        check_no_synchronisation(device)
        rows = time_updates(device, [1_000_000, 10_000_000, 100_000_000])
        check_updates(rows)
        epochs = time_against_torchmetrics(device, [100_000, 1_000_000, 10_000_000, 100_000_000])
        for row in epochs:
            what = f"`compute` after {row['rows']:,} rows within 1 ms: {row['compute']:.2f}"
            check(row["compute"] <= 1.0, what)
            ratio = row["torchmetrics"] / row["epoch"]
            if row["rows"] >= 1_000_000:
                check(
                    ratio > 1, f"{row['rows']:,} rows: {ratio:.1f} times faster than torchmetrics"
                )
        classes = time_classes(device)
        check(
            classes["classwise"][1] <= 20,
            f"1,000 classes within 20 ms: {classes['classwise'][1]:.1f}",
        )
        written = page(rows, epochs, classes).write(pages.EVIDENCE)
        print(written.read_text(encoding="utf-8"))
    print(f"{len(FAILURES)} failures")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
