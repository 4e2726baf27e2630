"""Accuracy, coverage and bad input, for calibrant and eleven other packages; `bench.speed` has their speed.

python -m bench.peers              # some minutes
python -m bench.peers --reduced    # for CI
"""

from __future__ import annotations

import argparse

from bench import pages
from bench.peers import accuracy, coverage, robustness


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="less data, for CI")
    reduced = parser.parse_args().reduced
    values = accuracy.study(20_000 if reduced else 2_000_000)
    written = pages.Page(
        "peers",
        "calibrant and its peers",
        "python -m bench.peers" + (" --reduced" if reduced else ""),
        "Twelve packages answer the same questions. Each uses its best documented settings and has its "
        "own environment (those that need torch share one). Where a peer is better, the tables say so.",
        [
            *accuracy.tables(values),
            *robustness.tables(robustness.study()),
            *coverage.tables(coverage.study(2 if reduced else 50)),
        ],
        accuracy.versions(values),
    ).write(pages.place(reduced))
    print(written.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
