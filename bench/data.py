"""The data behind the evidence: where each set comes from, under which licence, whom to cite.

python -m bench.data
"""

from __future__ import annotations

import numpy as np

from bench import pages
from calibrant import datasets


def row(name: str) -> list[str]:
    source = datasets.describe(name)
    columns = datasets.load(name).columns
    rate = ""
    if "p" in columns:
        y = np.asarray(columns["y"], dtype=np.float64)
        rate = f"{np.nanmean(y):.4f}"
    where = f"[{source.repository}](https://github.com/{source.repository}/tree/{source.commit})"
    return [f"`{name}`", source.title, f"{source.rows:,}", rate, where, source.licence]


def main() -> None:
    names = datasets.names()
    table = pages.Table(
        "Public predictions",
        ["name", "what", "rows", "event rate", "original", "licence stated there"],
        [row(name) for name in names],
        [
            "`python -m bench.originals` fetches the originals at their commits and converts them; "
            "`calibrant.datasets.load(name)` checks the rows against a fingerprint. None of the data "
            "ships with the package.",
        ],
    )
    drawn = pages.Table(
        "Synthetic shapes with a known truth",
        ["shape", "event rate at n = 100,000", "true ECE"],
        [
            [f"`{shape}`", f"{one.y.mean():.4f}", f"{one.calibration_gap():.4f}"]
            for shape in datasets.SHAPES
            for one in [datasets.generate(shape, 100_000)]
        ],
        [
            "`calibrant.datasets.generate(shape, n, random_state=0)` returns p, y and the true curve."
        ],
    )
    cited = sorted({one for name in names for one in datasets.describe(name).citations})
    credits = pages.Text("What to cite", "\n".join(f"- {one}" for one in cited))
    page = pages.Page(
        "data",
        "The data",
        "python -m bench.data",
        "The public predictions and synthetic shapes that the other pages use.",
        [table, drawn, credits],
    )
    print(page.write(pages.EVIDENCE).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
