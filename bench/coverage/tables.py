"""What the study found, as tables, and whether it is what was promised."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom

from bench import pages
from bench.coverage import power
from bench.coverage.breaking import CONFIDENCES
from bench.coverage.differences import STUDIES
from bench.coverage.populations import DISTRIBUTIONS
from bench.coverage.simulation import NODES, TOLERANCE

COVERAGE = 0.95
SIZE = 0.05
FALSE_ALARMS = 0.05
CHANCE = 0.001
"""A cell fails if what it shows has no more than this chance where the promise is kept."""

MEANS = {
    "coverage", "missed_low", "missed_high", "width", "rejected", "ecce", "coverage_by_row",
    "width_by_row",
}  # fmt: skip

LISTS = {"held", "shares"}

Found = list[dict[str, Any]]


def merged(parts: list[tuple[str, dict[str, Any]]]) -> Found:
    """The runs of each cell together."""
    cells: dict[str, dict[str, Any]] = {}
    for name, part in parts:
        one = cells.setdefault(name, {**part, "name": name})
        if one.get("chunk") != part["chunk"]:
            _add(one, part)
    return list(cells.values())


def by_peer(answers: Found) -> dict[str, dict[str, dict[str, Any]]]:
    """Coverage and width by peer and cell."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for part in answers:
        cells = found.setdefault(part["peer"], {})
        if part["cell"] in cells:
            _add(cells[part["cell"]], part)
        else:
            cells[part["cell"]] = dict(part)
    return found


def _add(one: dict[str, Any], part: dict[str, Any]) -> None:
    runs = one["runs"] + part["runs"]
    for name in MEANS & part.keys():
        one[name] = (one[name] * one["runs"] + part[name] * part["runs"]) / runs
    for name in LISTS & part.keys():
        both = zip(one[name], part[name], strict=True)
        one[name] = [(a * one["runs"] + b * part["runs"]) / runs for a, b in both]
    if "contradictions" in part:
        one["contradictions"] += part["contradictions"]
    one["runs"] = runs


def failures(
    found: Found, tried: Found, contrasted: Found, searched: Found, watched: dict[str, Any]
) -> list[str]:
    """Cells that fall short of the promise, by a binomial test at the level `CHANCE`."""
    missed = []
    for cell in found + tried:
        if _is_below(cell["coverage"], COVERAGE, cell["runs"]):
            missed.append(f"{cell['name']}: coverage {cell['coverage']:.3f}")
        if cell["truth"] == 0.0 and _is_above(cell["rejected"], SIZE, cell["runs"]):
            missed.append(f"{cell['name']}: size {cell['rejected']:.3f}")
        if cell["contradictions"]:
            missed.append(f"{cell['name']}: {cell['contradictions']} contradictions")
    for cell in contrasted:
        study, shares, runs = STUDIES[cell["study"]], cell["shares"], cell["runs"]
        for k in study.covers:
            if _is_below(shares[k], COVERAGE, runs):
                missed.append(f"{cell['name']}: {study.columns[k]} {shares[k]:.3f}")
        for k in study.sizes(cell["population"]):
            if _is_above(shares[k], SIZE, runs):
                missed.append(f"{cell['name']}: {study.columns[k]} {shares[k]:.3f}")
    for name, n, share, runs in power.sizes(searched):
        if _is_above(share, SIZE, runs):
            missed.append(f"{name}, {n}: size {share:.4f}")
    for truth, one in watched.items():
        if truth.startswith("calibrated") and _is_above(one["alarms"], FALSE_ALARMS, one["runs"]):
            missed.append(f"monitor, {truth}: {one['alarms']:.3f} false alarms")
    return missed


def _is_below(share: float, promised: float, runs: int) -> bool:
    return bool(binom.cdf(round(share * runs), runs, promised) < CHANCE)


def _is_above(share: float, promised: float, runs: int) -> bool:
    return bool(binom.sf(round(share * runs) - 1, runs, promised) < CHANCE)


def lead(found: Found, tried: Found, contrasted: Found, failures: list[str], *, whole: bool) -> str:
    cells = found + tried
    lowest = min(cells, key=lambda cell: cell["coverage"])
    nulls = [cell["rejected"] for cell in cells if cell["truth"] == 0.0]
    cases = sum(cell["runs"] for cell in cells)
    often = sum(cell["runs"] >= 1_000 for cell in cells)
    short = "none falls" if not failures else f"{len(failures)} fall"
    text = (
        "We draw samples from populations whose SmoothECE is known and count how often the nominal 95% "
        f"interval contains it, in {len(cells)} cells of {min(cell['runs'] for cell in cells):,} to "
        f"{max(cell['runs'] for cell in cells):,} samples ({often} cells have 1,000 or more). Mean "
        f"coverage is {np.mean([cell['coverage'] for cell in cells]):.3f}; the lowest is "
        f"{lowest['coverage']:.3f} ({lowest['name']}). The test of calibration at level .05 rejects "
        f"calibrated predictions in {min(nulls):.3f} to {max(nulls):.3f} of the samples. Test and "
        f"interval contradict each other in {sum(cell['contradictions'] for cell in cells)} of "
        f"{cases:,} cases. Of these cells and {len(contrasted)} more for comparisons, groups and bands, "
        f"{short} significantly short of the promise, by a binomial test at level "
        f"{CHANCE:g}{': ' + '; '.join(failures) if failures else ''}."
    )
    return text if whole else text + _NOT_WHOLE


_NOT_WHOLE = " The study was stopped early with `--minutes`; `--resume` continues it."


def sections(
    found: Found, beside: dict[str, Any], tried: Found, watched: dict[str, Any]
) -> list[pages.Table]:
    every = [
        *([_summary(found, beside)] if beside else []),
        _tried(tried),
        *(_intervals(found, beside, name) for name in DISTRIBUTIONS),
        _clusters(found),
        _weights(found),
        _monitor(watched),
    ]
    return [table for table in every if table.rows]


def _summary(found: Found, beside: dict[str, Any]) -> pages.Table:
    """Calibrant and its peers on the cells that all were asked about."""
    every = {"calibrant": {cell["name"]: cell for cell in found}, **beside}
    header = ["truth", "cells"]
    for name in every:
        header += [name, "width"]
    shared = [cell for cell in found if all(cell["name"] in cells for cells in beside.values())]
    rows = []
    for truth in sorted({cell["truth"] for cell in shared}):
        names = [cell["name"] for cell in shared if cell["truth"] == truth]
        row = [f"{truth:g}", str(len(names))]
        for cells in every.values():
            for what, digits in (("coverage", 3), ("width", 4)):
                row.append(f"{np.mean([cells[name][what] for name in names]):.{digits}f}")
        rows.append(row)
    return pages.Table(
        "Compared with the peers: mean coverage and width",
        header,
        rows,
        [
            "Means over the cells below with n ≤ 10,000. The peers saw fewer samples of each.",
            "A narrower interval is better only if it covers. Look at the cells below: in some, a "
            "peer's interval may be narrower and still contain the truth.",
        ],
    )


def _intervals(found: Found, beside: dict[str, Any], distribution: str) -> pages.Table:
    header = ["shape", "truth", "n", "samples", "coverage", "misses below", "misses above", "width"]
    for name in beside:
        header += [name, "width"]
    header += ["rejected", "ECCE-R"]
    rows, asked = [], 0
    for cell in found:
        if cell["kind"] != "interval" or cell["distribution"] != distribution:
            continue
        row = [cell["shape"], f"{cell['truth']:g}", f"{cell['n']:,}", f"{cell['runs']:,}"]
        row.append(f"{cell['coverage']:.3f}")
        row += [f"{cell['missed_high']:.3f}", f"{cell['missed_low']:.3f}", f"{cell['width']:.4f}"]
        for by_cell in beside.values():
            one = by_cell.get(cell["name"])
            row += ["", ""] if one is None else [f"{one['coverage']:.2f}", f"{one['width']:.4f}"]
            asked = asked if one is None else max(asked, one["runs"])
        row += [f"{cell['rejected']:.3f}", f"{cell['ecce']:.3f}"]
        rows.append(row)
    notes = [
        "Misses below: the whole interval lies below the truth. Misses above: the whole interval lies "
        "above it.",
        "Rejected and ECCE-R: how often our test of calibration and the ECCE-R test reject at level "
        ".05. This is their size where the truth is 0 and their power elsewhere. Rare events happen in "
        "0.2% of the rows.",
        f"The study runs the parts of `assess` on a grid of {NODES:,} nodes and computes SmoothECE to "
        f"within {TOLERANCE:g}.",
    ]
    if beside:
        notes.append(
            "We check relplot's interval for SmoothECE, and probcal's (stratify=False) for its error "
            "over bins of equal mass, against the population value of their own measures, on up to "
            f"{asked} samples per cell with n ≤ 10,000. Samples for which a package gives no interval, "
            "such as those without an event, are left out."
        )
    return pages.Table(f"Intervals: {distribution}", header, rows, notes)


def _assessed(cell: dict[str, Any]) -> list[str]:
    """What `assess` found of a cell whose rows are dependent or weighted."""
    return [
        cell["distribution"],
        f"{cell['truth']:g}",
        f"{cell['n']:,}",
        f"{cell['runs']:,}",
        f"{cell['rejected']:.3f}",
        f"{cell['coverage']:.3f}",
        f"{cell['width']:.4f}",
    ]


def _clusters(found: Found) -> pages.Table:
    rows = [
        [*_assessed(cell), f"{cell['coverage_by_row']:.3f}", f"{cell['width_by_row']:.4f}"]
        for cell in found
        if cell["kind"] == "clusters"
    ]
    return pages.Table(
        "Repeated forecasts: ten rows per event",
        [
            "predictions",
            "truth",
            "rows",
            "samples",
            "rejected",
            "coverage, by cluster",
            "width",
            "coverage, as if independent",
            "width",
        ],
        rows,
        [
            "Ten forecasts of each event. With `cluster=` the interval covers. If you treat the rows "
            "as independent, it does not.",
            "Rejected: how often the test of calibration, by cluster, rejects at level .05. With few "
            "events it is cautious.",
        ],
    )


def _weights(found: Found) -> pages.Table:
    rows = [_assessed(cell) for cell in found if cell["kind"] == "weights"]
    return pages.Table(
        "Weighted rows",
        ["predictions", "truth", "rows (about)", "samples", "rejected", "coverage", "width"],
        rows,
        [
            "Out of four times as many rows, each is kept with probability .1 + .3p and weighted by "
            "the inverse of that probability, so the weights differ by up to a factor of four.",
        ],
    )


def _monitor(watched: dict[str, Any]) -> pages.Table:
    rows = [
        [
            truth,
            f"{one['runs']}",
            f"{one['alarms']:.3f}",
            "" if one["look"] is None else f"{one['look']:.0f}",
            "" if one["since"] is None else f"{one['since']:.0f}",
        ]
        for truth, one in watched.items()
    ]
    return pages.Table(
        "Monitor at level .05, up to 1,000 looks of 50 rows",
        [
            "truth",
            "runs",
            "alarms",
            "median look at the alarm",
            "median look reported as the start",
        ],
        rows,
        ["Sketches of 256 cells. For calibrated forecasts, every alarm is false."],
    )


def _tried(tried: Found) -> pages.Table:
    rows = []
    for cell in tried:
        rows.append(
            [
                cell["kind"], cell["population"], f"{cell['truth']:.4f}", f"{cell['n']:,}",
                f"{cell['runs']:,}", *(f"{share:.3f}" for share in cell["held"]),
                f"{cell['missed_low']:.3f}", f"{cell['missed_high']:.3f}", f"{cell['width']:.4f}",
                f"{cell['rejected']:.3f}", f"{cell['contradictions']}",
            ]
        )  # fmt: skip
    levels = [f"{100 * confidence:g}%" for confidence in CONFIDENCES]
    return pages.Table(
        "Populations chosen to break intervals",
        [
            "kind", "population", "truth", "n", "samples", *levels, "misses below", "misses above", "width",
            "rejected", "contradictions",
        ],
        rows,
        [
            "Coverage at five confidence levels; misses, width and rejections at 95%. A contradiction "
            "is a p-value of at most .05 with an interval that contains 0, or the other way round.",
            "Scale: on log-odds. Sketch: a sketch of 4,096 cells. Classes: the top label of five "
            "classes. Weights: one in ten of the rows without the event is kept, with weight 10, or, "
            "where they are uneven, each row of either outcome with a chance of its own besides; of the "
            "wrong calls one in ten; or each row with a chance of 1 - .95|p - y|; or one in ten of those "
            "without the event and a prediction from .5 to .7; by chance: every other one without the "
            "event one time in 25; the "
            "logarithms of log-normal weights have a standard deviation of 1.5; few of 100: one row in "
            "a hundred weighs 100, whatever its outcome. Clusters: the rows of a cluster share a "
            "quarter of the variance of the hidden variable that decides the outcome.",
        ],
    )  # fmt: skip
