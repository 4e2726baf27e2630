"""What the study found, as tables, and whether it is what was promised."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom

from bench import pages
from bench.coverage.breaking import CONFIDENCES
from bench.coverage.populations import DISTRIBUTIONS
from bench.coverage.simulation import NODES, TOLERANCE

COVERAGE = 0.95
SIZE = 0.05
FALSE_ALARMS = 0.05
CHANCE = 0.001
"""A cell fails if what it shows has no more than this chance where the promise is kept."""

MEANS = {
    "coverage", "missed_low", "missed_high", "width", "rejected", "ecce", "coverage_by_row",
    "width_by_row", "told_apart", "wrongly",
}  # fmt: skip

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
    if "held" in part:
        both = zip(one["held"], part["held"], strict=True)
        one["held"] = [(a * one["runs"] + b * part["runs"]) / runs for a, b in both]
        one["contradictions"] += part["contradictions"]
    one["runs"] = runs


def failures(found: Found, fought: Found, tried: Found, watched: dict[str, Any]) -> list[str]:
    """Cells that fall short of the promise, by a binomial test at the level `CHANCE`."""
    missed = []
    for cell in found + fought + tried:
        if _is_below(cell["coverage"], COVERAGE, cell["runs"]):
            missed.append(f"{cell['name']}: coverage {cell['coverage']:.3f}")
    for null in null_cells(found):
        if _is_above(null["rejected"], SIZE, null["runs"]):
            missed.append(f"{null['distribution']}, {null['n']}: size {null['rejected']:.3f}")
    for cell in found + tried:
        is_null = cell["kind"] != "interval" and cell["truth"] == 0.0
        if is_null and _is_above(cell["rejected"], SIZE, cell["runs"]):
            missed.append(f"{cell['name']}: size {cell['rejected']:.3f}")
    for cell in tried:
        if cell["contradictions"]:
            missed.append(f"{cell['name']}: {cell['contradictions']} contradictions")
    for truth, one in watched.items():
        if truth.startswith("calibrated") and _is_above(one["alarms"], FALSE_ALARMS, one["runs"]):
            missed.append(f"monitor, {truth}: {one['alarms']:.3f} false alarms")
    return missed


def _is_below(share: float, promised: float, runs: int) -> bool:
    return bool(binom.cdf(round(share * runs), runs, promised) < CHANCE)


def _is_above(share: float, promised: float, runs: int) -> bool:
    return bool(binom.sf(round(share * runs) - 1, runs, promised) < CHANCE)


def null_cells(found: Found) -> Found:
    """Calibrated predictions, of which both shapes are the same."""
    together: dict[tuple[str, int], dict[str, Any]] = {}
    for cell in found:
        if cell["kind"] == "interval" and cell["truth"] == 0.0:
            key = (cell["distribution"], cell["n"])
            if key in together:
                _add(together[key], cell)
            else:
                together[key] = dict(cell)
    return list(together.values())


def lead(found: Found, tried: Found, *, whole: bool) -> str:
    intervals = [cell for cell in found if cell["kind"] == "interval"]
    lowest = min(intervals, key=lambda cell: cell["coverage"])
    sizes = [cell["rejected"] for cell in null_cells(found)]
    everything = intervals + tried
    below = sum(_is_below(cell["coverage"], COVERAGE, cell["runs"]) for cell in everything)
    lowest_tried = min(tried, key=lambda cell: cell["coverage"])
    runs = min(cell["runs"] for cell in intervals)
    return (
        f"Samples are drawn from populations whose SmoothECE is known, at least {runs} in each of "
        f"{len(intervals)} cells, and the nominal 95% interval is asked whether it holds the "
        f"population's value. The mean coverage is "
        f"{np.mean([cell['coverage'] for cell in intervals]):.3f}; the lowest, "
        f"{lowest['coverage']:.3f}, is that of {lowest['distribution']}, {lowest['shape']}, truth "
        f"{lowest['truth']:g}, n = {lowest['n']:,}. Of {len(tried)} cells that were chosen to break "
        f"the interval ({min(cell['runs'] for cell in tried)} samples or more in each), the lowest is "
        f"{lowest_tried['coverage']:.3f} ({lowest_tried['kind']}: {lowest_tried['population']}, n = "
        f"{lowest_tried['n']:,}). Of all {len(everything)} cells, {below} fall short of .95 by a binomial "
        f"test at {CHANCE:g}. The test of calibration at level .05 rejects calibrated predictions in "
        f"{min(sizes):.3f} to {max(sizes):.3f} of the samples. Test and interval contradict each other "
        f"in {sum(cell['contradictions'] for cell in tried)} of "
        f"{len(CONFIDENCES) * sum(cell['runs'] for cell in tried):,} cases."
    ) + ("" if whole else _NOT_WHOLE)


_NOT_WHOLE = " The study was ended early with `--minutes`; `--resume` goes on with it."


def sections(
    found: Found, beside: dict[str, Any], fought: Found, tried: Found, watched: dict[str, Any]
) -> list[pages.Table]:
    return [
        *([_summary(found, beside)] if beside else []),
        _tried(tried),
        *(_intervals(found, beside, name) for name in DISTRIBUTIONS),
        _sizes(found),
        _clusters(found),
        _weights(found),
        _contests(fought),
        _monitor(watched),
    ]


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
        "Beside the peers: mean coverage and width",
        header,
        rows,
        [
            "Over the cells below with n ≤ 10,000; a peer was asked about fewer samples of each.",
            "A narrower interval is better where it covers: for that look at the cells, where a peer's "
            "can be narrower and hold the truth.",
        ],
    )


def _intervals(found: Found, beside: dict[str, Any], distribution: str) -> pages.Table:
    header = ["shape", "truth", "n", "samples", "coverage", "misses below", "misses above", "width"]
    for name in beside:
        header += [name, "width"]
    header += ["power", "ECCE-R"]
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
        null = cell["truth"] == 0.0
        row += ["", ""] if null else [f"{cell['rejected']:.2f}", f"{cell['ecce']:.2f}"]
        rows.append(row)
    notes = [
        "Misses below: the interval ends below the truth; above: it begins above it.",
        "Power: how often the test of calibration, and ECCE-R's, reject at level .05.",
        f"What is `assess` outside the study is here its parts on a grid of {NODES:,} nodes, with "
        f"SmoothECE to {TOLERANCE:g}.",
    ]
    if beside:
        notes.append(
            f"relplot's interval for SmoothECE, and probcal's (stratify=False) for its error over bins of "
            f"equal mass, each against the population value of its own measure, from up to {asked} "
            "samples a cell with n ≤ 10,000. Where a package gives no interval, such as for samples "
            "without an event, the sample is left out."
        )
    return pages.Table(f"Intervals: {distribution}", header, rows, notes)


def _sizes(found: Found) -> pages.Table:
    rows = [
        [
            cell["distribution"],
            f"{cell['n']:,}",
            f"{cell['rejected']:.4f}",
            f"{cell['ecce']:.4f}",
            f"{cell['runs']:,}",
        ]
        for cell in null_cells(found)
    ]
    return pages.Table(
        "Size of the test at level .05, on calibrated predictions",
        ["predictions", "n", "calibrant", "ECCE-R", "samples"],
        rows,
        ["Rare events happen in 0.2% of the rows: of 100 rows, in most samples none is an event."],
    )


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
        "Repeated forecasts: ten rows for every event",
        [
            "predictions",
            "truth",
            "rows",
            "samples",
            "rejected",
            "by cluster",
            "width",
            "as if independent",
            "width",
        ],
        rows,
        [
            "Ten forecasts of every event: with `cluster=` the interval covers; by row it does not.",
            "Rejected: how often the test of calibration, by cluster, rejects at level .05. Where "
            "events are few it is cautious.",
        ],
    )


def _weights(found: Found) -> pages.Table:
    rows = [_assessed(cell) for cell in found if cell["kind"] == "weights"]
    return pages.Table(
        "Weighted rows",
        ["predictions", "truth", "rows, about", "samples", "rejected", "coverage", "width"],
        rows,
        [
            "Of four times as many rows, each is kept with probability .1 + .3p and weighted by its "
            "inverse, so that the weights differ by up to a factor of four.",
        ],
    )


def _contests(fought: Found) -> pages.Table:
    rows = [
        [
            one["rival"],
            f"{one['truth']:g}",
            f"{one['difference']:.4f}",
            f"{one['n']:,}",
            f"{one['runs']:,}",
            f"{one['coverage']:.3f}",
            f"{one['width']:.4f}",
            f"{one['told_apart']:.3f}",
            f"{one['wrongly']:.3f}",
        ]
        for one in fought
    ]
    return pages.Table(
        "Two models on the same rows",
        [
            "rival",
            "truth",
            "difference",
            "n",
            "samples",
            "coverage",
            "width",
            "told apart",
            "wrongly",
        ],
        rows,
        [
            "Uniform predictions of an overconfident model whose SmoothECE is the truth in the second "
            "column, and a rival that sees the same rows and errs in another way, or not at all.",
            "Told apart: the p-value of the difference is at most .05; wrongly: the model named worse "
            "is not. The comparison is cautious: near the noise floor it finds a difference late.",
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
        ["truth", "runs", "alarms", "median look of the alarm", "median look it says since"],
        rows,
        ["Sketches of 256 cells. For calibrated forecasts every alarm is false."],
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
        "Populations that break intervals",
        [
            "kind", "population", "truth", "n", "samples", *levels, "misses below", "above", "width",
            "rejected", "contradictions",
        ],
        rows,
        [
            "Coverage at five levels of confidence; misses, width and rejections at 95%. A contradiction is "
            "a p-value of at most 1 - confidence beside an interval that holds 0, or the other way round.",
            "Scale: on log-odds. Weights: of the rows without the event one in ten was kept, with weight 10. "
            "Clusters: rows of a cluster share a quarter of the variance of what decides the outcome.",
        ],
    )  # fmt: skip
