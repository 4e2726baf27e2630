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
    rows = []
    for peer, n, least in (
        ("relplot", large, 200),
        ("relplot", small, 8),
        ("scikit-learn", large, 60),
    ):
        theirs, own = measured[peer][n], measured["calibrant"][n]
        if "none" in theirs:
            found = None
        elif n == small:
            found = theirs["seconds"] / own["seconds"]
        else:
            found = costs.ratio_to_sum(theirs) / costs.ratio_to_sum(own)
        rows.append([f"times faster than {peer}", f"{n:,}", *_kept(found, least, at_least=True)])
    own = measured["calibrant"][large]
    rows.append(["times the plain sum", f"{large:,}", *_kept(costs.ratio_to_sum(own), 3)])
    rows.append(["MB beyond the inputs", f"{large:,}", *_kept(own["megabytes"], 20)])
    return pages.Table(
        "What calibrant means to keep", ["what", "n", "this run", "promise", ""], rows
    )


def _kept(found: float | None, limit: float, *, at_least: bool = False) -> list[str]:
    promise = f"{'at least' if at_least else 'at most'} {limit:g}"
    if found is None:
        return ["not measured", promise, ""]
    kept = found >= limit if at_least else found <= limit
    return [f"{found:,.1f}", promise, "kept" if kept else "**not kept**"]


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
        "What one number costs, in calibrant and in the packages that people use now.",
        [table, promises(measured, small, large)],
        costs.versions(measured),
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
