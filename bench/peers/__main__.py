"""Accuracy, speed, memory, coverage and bad input, for calibrant and eleven other packages.

python -m bench.peers              # about half an hour
python -m bench.peers --reduced    # a few minutes, for CI
"""

from __future__ import annotations

import argparse
from typing import Any

from bench import costs, pages
from bench.peers import accuracy, coverage, robustness
from bench.peers.adapters import PEERS

PARTS = ("accuracy", "costs", "bad-input", "coverage")


def measured(part: str, sizes: list[int], *, reduced: bool) -> Any:
    if part == "accuracy":
        return accuracy.study(20_000 if reduced else 2_000_000)
    if part == "costs":
        return costs.measure(
            PEERS, sizes, repeat=5 if reduced else 20, budget=3.0 if reduced else 10.0
        )
    if part == "bad-input":
        return robustness.study()
    return coverage.study(2 if reduced else 50)


def page(found: dict[str, Any], sizes: list[int], *, reduced: bool) -> pages.Page:
    """Tables of what was measured, the smallest and the largest n."""
    spent = found["costs"]
    shown = [sizes[0], sizes[-1]]
    return pages.Page(
        "peers",
        "calibrant and its peers",
        "python -m bench.peers" + (" --reduced" if reduced else ""),
        "Twelve packages answer the same questions. Each uses its best documented settings and has its "
        "own environment (those that need torch share one). Where a peer is better, the tables say so.",
        [
            *accuracy.tables(found["accuracy"]),
            pages.Table(
                "Time and memory",
                costs.header(shown),
                costs.rows(spent, shown),
                [*costs.NOTES, *costs.better(spent, shown)],
            ),
            *robustness.tables(found["bad-input"]),
            *coverage.tables(found["coverage"]),
        ],
        costs.versions(spent),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="less data, for CI")
    reduced = parser.parse_args().reduced
    sizes = [1_000, 100_000] if reduced else [1_000, 100_000, 10_000_000]
    found = {part: measured(part, sizes, reduced=reduced) for part in PARTS}
    pages.save("peers", found)
    written = page(found, sizes, reduced=reduced).write(pages.place(reduced))
    print(written.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
