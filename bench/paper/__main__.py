"""The paper's figures and numbers, reproduced.

python -m bench.paper              # all figures and the table
python -m bench.paper --reduced    # without the figures, for CI
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import calibrant
from bench import pages
from bench.exact import exact_smooth_ece
from bench.paper.experiments import EXPERIMENTS, Experiment
from bench.peers.asking import NoAnswer, ask


def study() -> dict[str, dict[str, Any]]:
    """The number of every figure, four times."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for experiment in EXPERIMENTS:
            p, y = experiment.rows()
            files[experiment.name] = [str(Path(folder, f"{experiment.name}-{k}.npy")) for k in "py"]
            np.save(files[experiment.name][0], p)
            np.save(files[experiment.name][1], y)
            result = calibrant.smooth_ece_result(y, p)
            found[experiment.name] = {
                "exact": exact_smooth_ece(y, p),
                "calibrant": result.value,
                "certificate": result.certificate.total,
                "n": len(p),
            }
            print(f"{experiment.name}: {result}", file=sys.stderr, flush=True)
        try:
            answer = ask("relplot", "values", files=files)
        except NoAnswer as error:
            answer = {"values": {}, "version": str(error)}
    for name, one in found.items():
        one["relplot"] = answer["values"].get(name)
        one["relplot version"] = answer["version"]
    return found


def agrees(value: float | None, printed: float, digits: int) -> bool:
    """Whether a value rounds to what is printed, or lies within half a unit of its last digit."""
    return value is not None and abs(value - printed) <= 0.5 * 10.0**-digits + 1e-9


def note(experiment: Experiment, found: dict[str, dict[str, Any]]) -> str:
    """Where the numbers differ, and why, found by comparing them."""
    one, printed, digits = found[experiment.name], experiment.printed, experiment.digits
    if abs(one["calibrant"] - one["exact"]) > one["certificate"] + 1e-12:
        return "**calibrant is further from the exact value than its certificate**"
    if printed is None:
        return "not printed"
    if agrees(one["exact"], printed, digits):
        return "agrees to the printed digits"
    if agrees(one["relplot"], printed, digits):
        return (
            "the printed number is relplot's value: its reflection at the ends and its grid of "
            "bandwidths differ"
        )
    for other in EXPERIMENTS:
        theirs = found[other.name]["relplot"]
        if other.variant_of == experiment.name and agrees(theirs, printed, digits):
            return f"the printed number is relplot's ({theirs:.4f}) for: {other.title}"
    return f"the exact value is {abs(one['exact'] - printed):.4f} away from the printed one"


def table(found: dict[str, dict[str, Any]]) -> pages.Table:
    rows = []
    for experiment in EXPERIMENTS:
        one, printed = found[experiment.name], experiment.printed
        shown = "" if printed is None else f"{printed:.{experiment.digits}f}".lstrip("0")
        if experiment.margin is not None:
            shown += f" ± {experiment.margin:.3f}".replace("± 0", "± ")
        relplot = "none" if one["relplot"] is None else f"{one['relplot']:.6f}"
        rows.append(
            [
                experiment.title,
                f"{one['n']:,}",
                shown,
                relplot,
                f"{one['exact']:.9f}",
                f"{one['calibrant']:.9f}",
                f"{one['certificate']:.0e}",
                note(experiment, found),
            ]
        )
    return pages.Table(
        "Every number, four ways",
        ["figure", "rows", "printed", "relplot", "exact", "calibrant", "its certificate", "note"],
        rows,
        [
            "Printed: the number in the paper's figure or, for the first figure, in the authors' "
            "notebook. The margins are the paper's own (bootstrap).",
            "Exact: computed without a grid by `bench/exact.py`. The certificate is calibrant's proven "
            "bound on its own error.",
            "The eight rows are ours: the paper does not print the rows of its illustration.",
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="numbers without figures, for CI")
    reduced = parser.parse_args().reduced
    found = study()
    pages.save("paper", found)
    folder = pages.place(reduced)
    drawn = []
    if not reduced:
        from bench.paper.figures import method, side_by_side

        for experiment in EXPERIMENTS:
            draw = method if experiment.name == "eight" else side_by_side
            drawn.append(pages.Figure(experiment.title, draw(experiment, folder)))
    versions = {"calibrant": calibrant.__version__}
    versions["relplot"] = next(iter(found.values()))["relplot version"]
    page = pages.Page(
        "paper",
        "The paper, reproduced",
        "python -m bench.paper" + (" --reduced" if reduced else ""),
        "The figures of Błasiok and Nakkiran, *Smooth ECE: Principled Reliability Diagrams via Kernel "
        "Smoothing* (arXiv:2309.12236), redrawn from the same data.",
        [table(found), *drawn],
        versions,
    )
    print(page.write(folder).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
