"""Speed and memory against the packages that people use now.

python -m bench.speed              # n = 1,000 and 10,000,000
python -m bench.speed --reduced    # n = 1,000 and 1,000,000
"""

from __future__ import annotations

import argparse

from bench import costs, pages

COMPARED = ("calibrant", "relplot", "scikit-learn", "netcal", "torchmetrics", "probcal", "calibre")


def promises(measured: costs.Costs, small: int, large: int) -> pages.Table:
    """The ratios that calibrant means to keep, and whether this run kept them."""

    def times(peer: str, n: int) -> float:
        theirs, own = measured[peer][n], measured["calibrant"][n]
        if n == small:
            return float(theirs["seconds"] / own["seconds"])
        return costs.ratio_to_sum(theirs) / costs.ratio_to_sum(own)

    own = measured["calibrant"][large]
    kept = [
        ("faster than relplot", f"n = {large:,}", times("relplot", large), 200.0, True),
        ("faster than relplot", f"n = {small:,}", times("relplot", small), 8.0, True),
        (
            "faster than scikit-learn's binned curve",
            f"n = {large:,}",
            times("scikit-learn", large),
            60.0,
            True,
        ),
        ("times the plain sum", f"n = {large:,}", costs.ratio_to_sum(own), 3.0, False),
        ("MB beyond the inputs", f"n = {large:,}", own["megabytes"], 20.0, False),
    ]
    rows = []
    for what, where, found, limit, least in kept:
        ok = found >= limit if least else found <= limit
        bound = f"{'at least' if least else 'at most'} {limit:g}"
        rows.append([what, where, f"{found:,.1f}", bound, "kept" if ok else "**not kept**"])
    return pages.Table(
        "What calibrant means to keep", ["ratio", "at", "this run", "promise", ""], rows
    )


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
            "float64 probabilities and int64 labels; the best of several calls in one process, "
            "taken by turns with the plain sum of both arrays, the least that any measure can cost.",
            "`× calibrant` compares what each package takes in units of the sum measured beside it, "
            "so that a busy machine slows both.",
            "Memory is the highest resident size during the first full call, less that before it.",
            "scikit-learn gives a binned curve and no number; netcal, torchmetrics, probcal and "
            "calibre give the binned ECE with 15 bins; relplot and calibrant give SmoothECE.",
            *costs.better(measured, sizes),
        ],
    )
    page = pages.Page(
        "speed",
        "Speed and memory",
        "python -m bench.speed" + (" --reduced" if reduced else ""),
        "What one number costs, in calibrant and in the packages that people use now.",
        [table, promises(measured, small, large)],
        costs.versions(measured),
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
