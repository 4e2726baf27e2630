"""Cost against rows and groups, and a trillion rows worked out on paper.

python -m bench.scale              # to a billion rows
python -m bench.scale --reduced    # to ten million, for CI
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import matplotlib

from bench import costs, pages
from bench.scale import growth
from calibrant.data.cell_sums import DEFAULT_NODES, FRACTION_BITS

matplotlib.use("Agg")


def picture(grown: growth.Growth, folder: Path) -> str:
    """Seconds against size, both logarithmic, with the line of the physical limit."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    axes.loglog(grown.sizes, grown.seconds, "o-", color="#0b6e99", label="calibrant")
    axes.loglog(grown.sizes, grown.limit, "--", color="#999999", label=grown.limit_is)
    axes.set_xlabel(grown.what)
    axes.set_ylabel("seconds of processor time")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"scale-{grown.what}.svg"
    figure.savefig(folder / name, metadata={"Date": None})
    plt.close(figure)
    return name


def table(grown: growth.Growth) -> pages.Table:
    rows = [
        [
            f"{size:,}",
            costs.seconds(own),
            costs.seconds(own / size),
            costs.seconds(least),
            f"{own / least:,.1f}",
        ]
        for size, own, least in zip(grown.sizes, grown.seconds, grown.limit, strict=True)
    ]
    return pages.Table(
        f"Cost against {grown.what}",
        [grown.what, "calibrant", "each", "physical limit", "times the limit"],
        rows,
        [f"Physical limit: {grown.limit_is}."],
    )


def trillion(measured: growth.Constants) -> list[pages.Table | pages.Text]:
    """10¹² rows in 10⁴ partitions, one sketch each, merged as a tree."""
    total, partitions = 10**12, 10**4
    depth = math.ceil(math.log2(partitions))
    moved = partitions * measured.sketch_bytes
    capacity = 2**63 / (2**FRACTION_BITS / DEFAULT_NODES)
    rows = []
    for cores in (64, 1_000, 10_000):
        fill = total * measured.fill_ns * 1e-9 / cores
        merging = depth * measured.merge_s + partitions / cores * measured.merge_s
        read = 5 * total / cores / 1e9
        rows.append(
            [
                f"{cores:,}",
                costs.seconds(fill),
                costs.seconds(merging),
                costs.seconds(measured.solve_s),
                costs.seconds(fill + merging + measured.solve_s),
                f"{read:,.2f} GB",
            ]
        )
    body = (
        f"Measured here, on one core: a row costs {measured.fill_ns:.2f} ns with every check, adding "
        f"two full sketches takes {costs.seconds(measured.merge_s)}, and the answer from a sketch takes "
        f"{costs.seconds(measured.solve_s)}. A full sketch is {measured.sketch_bytes / 1e6:.2f} MB on "
        f"the wire. A trillion rows of float32 and uint8 are 5 TB. In {partitions:,} partitions they "
        f"leave {partitions:,} sketches, {moved / 1e9:.1f} GB in all, and a tree of {depth} levels adds "
        "them up. They hold integers, so the result is the same to the bit for any tree. One cell "
        f"holds {capacity:.1e} rows before int64 would overflow (calibrant refuses that), so a trillion "
        "rows fit even if every prediction is the same. The times leave out reading; the last column "
        "says how much each core has to read."
    )
    return [
        pages.Text("A trillion rows, extrapolated", body),
        pages.Table(
            "What it takes",
            ["cores", "fill", "merge", "answer", "total", "read per core"],
            rows,
        ),
    ]


def page(grown: list[growth.Growth], measured: growth.Constants, *, reduced: bool) -> pages.Page:
    """Tables and pictures of what was measured."""
    sections: list[pages.Table | pages.Figure | pages.Text] = []
    for one in grown:
        sections.append(table(one))
        drawn = picture(one, pages.place(reduced))
        sections.append(pages.Figure(f"Seconds against {one.what}", drawn))
    return pages.Page(
        "scale",
        "From a thousand rows to a trillion",
        "python -m bench.scale" + (" --reduced" if reduced else ""),
        "Rows are drawn in blocks and are never all in memory. After the pass, no cost depends on how "
        "many there were. Times are processor time, summed over threads.",
        [*sections, *trillion(measured)],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="to ten million rows, for CI")
    reduced = parser.parse_args().reduced
    folder = pages.place(reduced)
    grown = [
        growth.rows([10**k for k in range(3, 8 if reduced else 10)]),
        growth.groups(
            [10**k for k in range(4 if reduced else 6)], 100_000 if reduced else 1_000_000
        ),
    ]
    measured = growth.constants(grown[0])
    pages.save("scale", {"growth": [vars(one) for one in grown], "constants": vars(measured)})
    print(page(grown, measured, reduced=reduced).write(folder).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
