"""Accuracy, speed, memory, coverage and bad input, for calibrant and eleven other packages.

python -m bench.peers              # about half an hour
python -m bench.peers --reduced    # a few minutes, for CI
"""

from __future__ import annotations

import argparse

from bench import costs, pages
from bench.peers import accuracy, coverage, robustness
from bench.peers.adapters import PEERS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="less data, for CI")
    reduced = parser.parse_args().reduced
    sizes = [1_000, 100_000] if reduced else [1_000, 100_000, 10_000_000]
    exactness = accuracy.study(20_000 if reduced else 2_000_000)
    pages.save("peers-accuracy", exactness)
    measured = costs.measure(PEERS, sizes, repeat=5 if reduced else 20)
    pages.save("peers-costs", measured)
    refused = robustness.study()
    pages.save("peers-bad-input", refused)
    covered = coverage.study(2 if reduced else 50)
    pages.save("peers-coverage", covered)
    shown = [sizes[0], sizes[-1]]
    page = pages.Page(
        "peers",
        "calibrant and its peers",
        "python -m bench.peers" + (" --reduced" if reduced else ""),
        "Twelve packages asked the same things in one run, each at its best documented settings in "
        "an environment of its own (those that need torch share one). Where a peer is better, the "
        "tables say so.",
        [
            *accuracy.tables(exactness),
            pages.Table(
                "Time and memory",
                costs.header(shown),
                costs.rows(measured, shown),
                costs.better(measured, shown),
            ),
            *robustness.tables(refused),
            *coverage.tables(covered),
        ],
        costs.versions(measured),
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
