"""Speed and memory against the packages that people use now.

python -m bench.speed              # n = 1,000 and 10,000,000
python -m bench.speed --reduced    # n = 1,000 and 1,000,000
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import calibrant
from bench import costs, pages
from calibrant import datasets

COMPARED = ("calibrant", "relplot", "scikit-learn", "netcal", "torchmetrics", "probcal", "calibre")


def promises(measured: costs.Costs, small: int, large: int) -> pages.Table:
    """The ratios that calibrant means to keep, and whether this run kept them."""
    rows = []
    for peer, n, least in (
        ("relplot", large, 200),
        ("relplot", small, 60),
        ("scikit-learn", large, 60),
    ):
        theirs, own = measured[peer][n], measured["calibrant"][n]
        found = (
            None
            if "none" in theirs
            else (_ratio(theirs, own, "seconds"), _ratio(theirs, own, "cpu"))
        )
        rows.append([f"times faster than {peer}", f"{n:,}", *_kept(found, least, at_least=True)])
    own = measured["calibrant"][large]
    to_sum = (own["seconds"] / own["sum"], own["cpu"] / own["sum cpu"])
    rows.append(["times the plain sum", f"{large:,}", *_kept(to_sum, 2.2)])
    rows.append(["MB beyond the inputs", f"{large:,}", *_kept((own["megabytes"],) * 2, 20)])
    return pages.Table(
        "What calibrant promises",
        ["what", "n", "wall clock", "processor time", "promise", ""],
        rows,
        [
            "The promises are about wall-clock time on an otherwise idle machine. Processor time "
            "counts both of calibrant's threads; the others use one.",
            f"Machine load over the five minutes before this was written: {os.getloadavg()[1]:.1f}.",
        ],
    )


def _ratio(theirs: dict[str, float], own: dict[str, float], clock: str) -> float:
    return theirs[clock] / own[clock]


def _kept(found: tuple[float, float] | None, limit: float, *, at_least: bool = False) -> list[str]:
    promise = f"{'at least' if at_least else 'at most'} {limit:g}"
    if found is None:
        return ["not measured", "", promise, ""]
    kept = found[0] >= limit if at_least else found[0] <= limit
    verdict = "kept" if kept else "**not kept**"
    return [f"{found[0]:,.1f}", f"{found[1]:,.1f}", promise, verdict]


def assessments(sizes: range) -> pages.Table:
    """What `assess` costs beyond three times `smooth_ece`."""
    rows = []
    for power in sizes:
        drawn = datasets.generate("overconfident", 10**power)
        pair = (drawn.y, drawn.p)
        number = _fastest(lambda pair=pair: calibrant.smooth_ece(*pair))
        whole = _fastest(lambda pair=pair: calibrant.assess(*pair))
        beyond = [1000 * (total - 3 * part) for total, part in zip(whole, number, strict=True)]
        rows.append(
            [
                f"{10**power:,}",
                *(f"{1000 * value:.1f} ms" for value in (*number, *whole)),
                *(f"{max(value, 0.0):.0f} ms" for value in beyond),
            ]
        )
    return pages.Table(
        "What an assessment costs",
        [
            "n",
            "`smooth_ece`",
            "processor",
            "`assess`",
            "processor",
            "beyond 3 × `smooth_ece`",
            "processor",
        ],
        rows,
        [
            "Interval, noise floor, test with 4,000 draws, direction and scores come from the sketch, "
            "so their cost stops growing once the sketch is full.",
            "Best of five, by wall clock and by processor time. The promise: at a million rows, at "
            "most three times `smooth_ece` plus 300 ms.",
        ],
    )


def _fastest(call: Callable[[], object]) -> tuple[float, float]:
    """The shortest of five, by the clock and by processor time."""
    wall, processor = [], []
    for _ in range(5):
        start = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    return min(wall), min(processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="a million rows, for CI")
    reduced = parser.parse_args().reduced
    small, large = 1_000, 1_000_000 if reduced else 10_000_000
    sizes = [small, large]
    measured = costs.measure(COMPARED, sizes)
    pages.save("speed", measured)
    table = pages.Table(
        "Time and memory",
        costs.header(sizes),
        costs.rows(measured, sizes),
        [
            "float64 probabilities and int64 labels.",
            *costs.NOTES,
            "scikit-learn gives a binned curve and no number; netcal, torchmetrics, probcal and "
            "calibre give the binned ECE with 15 bins; relplot and calibrant give SmoothECE.",
            *costs.better(measured, sizes),
        ],
    )
    page = pages.Page(
        "speed",
        "Speed and memory",
        "python -m bench.speed" + (" --reduced" if reduced else ""),
        "What one number costs in calibrant and in the packages people use today.",
        [table, promises(measured, small, large), assessments(range(3, 7 if reduced else 8))],
        costs.versions(measured),
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
