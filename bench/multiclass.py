"""Class probabilities: confidence against one argmax, all classes in one pass, and a temperature.

python -m bench.multiclass
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

import calibrant as cal
from bench import pages
from calibrant.measures import multiclass_error
from calibrant.recalibration import TemperatureScaling

ROWS, CLASSES, REPEATS = 50_000, 1_000, 9
MOST_PASSES, MOST_SECONDS, MOST_MEGABYTES = 8, 5, 1_000


def best(work: Callable[[], object]) -> float:
    """The shortest of several times of the processor, in seconds."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


@contextmanager
def counted_exp() -> Iterator[list[int]]:
    """How many numbers `numpy.exp` was taken of."""
    plain, sizes = np.exp, []

    def counting(x, *arguments, **keywords):
        sizes.append(np.size(x))
        return plain(x, *arguments, **keywords)

    np.exp = counting
    try:
        yield sizes
    finally:
        np.exp = plain


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def spent(work: Callable[[], object]) -> tuple[float, float, object]:
    """Seconds of the processor, megabytes beyond those before, and what came of it."""
    before, start = megabytes(), time.process_time()
    found = work()
    return time.process_time() - start, megabytes() - before, found


def kept(value: float, most: float) -> str:
    return "kept" if value <= most else "**not kept**"


def made() -> tuple[np.ndarray, np.ndarray]:
    """Logits of a network that is too sure by a factor of two: classes are drawn from half of each."""
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((ROWS, CLASSES), dtype=np.float32)
    logits *= 1.2
    logits[np.arange(ROWS), rng.integers(0, CLASSES, ROWS)] += 8.0
    labels = np.empty(ROWS, dtype=np.int64)
    for rows in np.array_split(np.arange(ROWS), 50):  # the largest with Gumbel noise is such a draw
        labels[rows] = (logits[rows] + rng.gumbel(size=(rows.size, CLASSES))).argmax(axis=1)
    logits *= 2.0
    return logits, labels


def scaling(logits: np.ndarray, labels: np.ndarray) -> list[list[str]]:
    with counted_exp() as sizes:
        seconds, more, scaled = spent(lambda: TemperatureScaling().fit(logits, labels))
    passes = sum(sizes) / logits.size
    rows = [
        ["temperature scaling: passes of `exp`", f"{passes:.2f}", f"{MOST_PASSES}",
         kept(passes, MOST_PASSES)],
        ["temperature scaling: processor seconds", f"{seconds:.1f}", "", ""],
        ["temperature scaling: MB beyond the inputs", f"{more:.0f}", f"{MOST_MEGABYTES:,}",
         kept(more, MOST_MEGABYTES)],
    ]  # fmt: skip
    np.multiply(logits, np.float32(1.0 / scaled.temperature), out=logits)
    return rows


def classwise(logits: np.ndarray, labels: np.ndarray) -> list[list[str]]:
    """What it takes to say of every class how far it is off, and how sure that is."""
    error = spent(lambda: multiclass_error(labels, logits, view="classwise_mean", from_logits=True))
    whole = spent(lambda: cal.assess_by(cal.classwise(labels, logits, from_logits=True)))
    return [
        ["SmoothECE of every class: processor seconds", f"{error[0]:.1f}", f"{MOST_SECONDS}",
         kept(error[0], MOST_SECONDS)],
        ["SmoothECE of every class: MB beyond the inputs", f"{error[1]:.0f}", f"{MOST_MEGABYTES:,}",
         kept(error[1], MOST_MEGABYTES)],
        ["interval, floor and test of every class, from logits: processor seconds", f"{whole[0]:.1f}",
         f"{MOST_SECONDS}", kept(whole[0], MOST_SECONDS)],
        ["interval, floor and test of every class, from logits: MB beyond the inputs", f"{whole[1]:.0f}",
         f"{MOST_MEGABYTES:,}", kept(whole[1], MOST_MEGABYTES)],
    ]  # fmt: skip


def one_pass(probs: np.ndarray, labels: np.ndarray) -> pages.Table:
    argmax = best(lambda: probs.argmax(axis=1))
    whole = best(lambda: cal.smooth_ece(labels, probs))
    seconds, more, _ = spent(lambda: cal.classwise(labels, probs))
    return pages.Table(
        f"{ROWS:,} rows of {CLASSES:,} classes, float32",
        ["what", "took", "measured", "at most", ""],
        [
            ["confidence and `smooth_ece`: multiple of one argmax", f"{whole * 1e3:.1f} ms",
             f"{whole / argmax:.2f}", "3", kept(whole, 3 * argmax)],
            ["`classwise`: MB beyond the inputs", f"{seconds:.2f} s", f"{more:.0f}", "1,000",
             kept(more, MOST_MEGABYTES)],
        ],
        [f"argmax alone: {argmax * 1e3:.1f} ms. Best of {REPEATS}."],
    )  # fmt: skip


def main() -> None:
    logits, labels = made()
    rows = [*scaling(logits, labels), *classwise(logits, labels)]
    from_logits = pages.Table(
        f"Logits of {ROWS:,} rows and {CLASSES:,} classes, float32",
        ["what", "measured", "at most", ""],
        rows,
        ["Classes are measured after the logits are divided by the fitted temperature. What is said of "
         "every class includes the pass over the logits. From the sketches on, the cost does not depend on "
         "the number of rows."],
    )  # fmt: skip
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    page = pages.Page(
        "multiclass",
        "The cost of many classes",
        "python -m bench.multiclass",
        "Each row of class probabilities is read once, in the loop that finds the largest.",
        [one_pass(logits, labels), from_logits],
    )
    print(page.write(pages.EVIDENCE).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
