"""Promises of the search for groups, of projections, judges and comparisons, counted.

python -m bench.groups    # about half an hour on one core
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import calibrant as cal
from bench import pages
from calibrant.inference.judge import judged_mean, judged_rate

Floats = NDArray[np.float64]
Check = tuple[str, str, str, bool]
"""What was asked, what was found, what is promised, and if it was kept."""

RUNS, REDUCED_RUNS = {"samples": 400, "null": 500, "pairs": 10_000, "rows": 1_000_000}, {
    "samples": 20, "null": 20, "pairs": 50, "rows": 20_000,
}  # fmt: skip
LEVELS = (0.01, 0.05, 0.2)


def table_of(rng: np.random.Generator, n: int, columns: int) -> dict[str, Any]:
    """Columns that depend on each other, numbers and categories in turn, so that groups overlap."""
    common = rng.normal(size=n)
    data: dict[str, Any] = {}
    for k in range(columns):
        own = 0.7 * common + 0.7 * rng.normal(size=n)
        data[f"c{k}"] = np.floor(2.0 * own).clip(-2, 2).astype(int) if k % 2 else own
    return data


def search(data: dict[str, Any], p: Floats, y: Any, depth: int = 2) -> Any:
    return cal.find_groups(
        data={**data, "p": p, "y": y}, y_true="y", y_prob="p", columns=list(data), depth=depth
    )


def false_findings(runs: int) -> list[Check]:
    """Family-wise error in calibrated samples, of common and of rare events."""
    found = []
    for name, shape in {
        "Beta(2, 3)": (2, 3),
        "Beta(1, 30)": (1, 30),
        "Beta(30, 1)": (30, 1),
    }.items():
        false = 0
        for seed in range(runs):
            rng = np.random.default_rng([seed, 1])
            p = rng.beta(*shape, 2000)
            false += search(table_of(rng, 2000, 4), p, rng.random(2000) < p).miscalibrated
        share, error = false / runs, np.sqrt(0.05 * 0.95 / runs)
        asked = f"family-wise error, {runs} calibrated samples of 2,000 rows, 4 columns, {name}"
        found.append((asked, f"{share:.3f}", "≤ .05", share <= 0.05 + 2 * error))
    return found


def power(runs: int) -> list[Check]:
    """A pair of cells with 5% of 20,000 rows whose events are .15 more frequent."""
    named = 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 2])
        data = table_of(rng, 20_000, 4) | {"a": rng.integers(0, 4, 20_000)}
        data["b"] = rng.integers(0, 5, 20_000)
        p = rng.uniform(0.2, 0.8, 20_000)
        planted = (data["a"] == 1) & (data["b"] == 2)
        shown = search(data, p, rng.random(20_000) < p + 0.15 * planted).shown
        named += any(one.conditions == {"a": "1", "b": "2"} for one in shown)
    asked = f"planted pair (5% of 20,000 rows, gap .15) found by name, {runs} samples, 6 columns"
    return [(asked, f"{named / runs:.3f}", "≥ .9", named >= 0.9 * runs)]


def exclusive_or() -> list[Check]:
    """20,000 rows, error ±.1 by a == b."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 20_000))
    p = rng.uniform(0.2, 0.8, 20_000)
    y = rng.random(20_000) < p + np.where(a == b, 0.1, -0.1)
    one, two = (search({"a": a, "b": b}, p, y, depth) for depth in (1, 2))
    pairs = sum(set(group.conditions) == {"a", "b"} for group in two.shown)
    return [
        ("XOR, cells alone", f"{len(one.shown)} groups, p = {one.p_value:.2g}", "none", not one.shown),
        ("XOR, pairs of cells", f"{pairs} groups with both columns named, p = {two.p_value:.1g}", "4",
         pairs == len(two.shown) == 4),
    ]  # fmt: skip


def _large(rows: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    data, p = table_of(rng, rows, 12), rng.beta(2, 3, rows)
    y = rng.random(rows) < p
    start = time.monotonic()
    search(data, p, y)
    return time.monotonic() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def cost(rows: int) -> list[Check]:
    """Time and peak memory of a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds, memory = pool.apply(_large, (rows,))
    asked = f"{rows:,} rows, 12 columns, depth 2"
    found = f"{seconds:.1f} s, {memory:.2f} GiB in all"
    return [(asked, found, "≤ 20 s, 2 GiB", seconds <= 20.0 and memory <= 2.0)]


def scores_of(mu: Floats, f: Floats) -> dict[str, float]:
    """Expected scores at threshold .5, where events have the chances mu."""
    f, mu = f[order := np.argsort(f)], mu[order]
    below = np.cumsum(1.0 - mu) - 0.5 * (1.0 - mu)
    called = f >= 0.5
    return {
        "rate": float(mu.mean()),
        "brier": float((mu * (1.0 - f) ** 2 + (1.0 - mu) * f**2).mean()),
        "accuracy": float(np.where(called, mu, 1.0 - mu).mean()),
        "auc": float(mu @ below / (mu.sum() * (1.0 - mu).sum())),
        "net_benefit": float(np.where(called, 2.0 * mu - 1.0, 0.0).mean()),
    }


CURVES = {
    "calibrated": lambda p: p,
    "too high by a third": lambda p: p / 1.3,
    "over-confident": lambda p: 0.5 + 0.6 * (p - 0.5),
    "bent": lambda p: np.clip(p + 0.1 * np.sin(2 * np.pi * p), 0, 1),
}


def projections(runs: int) -> list[Check]:
    """Coverage of every projected score by curves that hold, and the identity where nothing is wrong."""
    current = np.random.default_rng(0).beta(2, 3, 1000)
    exact = cal.Sketch.from_counts([0.125, 0.5, 0.75], [80, 40, 80], [10, 20, 60])
    expected = np.maximum(current, 1.0 - current).mean()
    off = max(abs(cal.project(one, current).accuracy.value - expected) for one in (None, exact))
    found = [
        (
            "E[accuracy] less mean(max(p, 1 - p)), calibrated reference",
            f"{off:.0e}",
            "0",
            off < 1e-12,
        )
    ]
    for name, curve in CURVES.items():
        truth, inside = (
            scores_of(curve(current), current),
            dict.fromkeys(scores_of(current, current), 0),
        )
        for seed in range(runs):
            rng = np.random.default_rng([seed, 3])
            p = rng.beta(1.5, 2, 1500)
            projected = cal.project((rng.random(p.size) < curve(p), p), current).metrics
            for score, one in projected.items():
                inside[score] += one.low <= truth[score] <= one.high
        least = min(inside, key=lambda score: inside[score])
        asked = f"least coverage of five scores, {runs} references of 1,500 rows, {name}"
        share = inside[least] / runs
        found.append((asked, f"{share:.3f} ({least})", "≥ .93", share >= 0.93))
    return found


def judges(runs: int) -> list[Check]:
    """Coverage over specificities and sensitivities from .7 to .95, and of a graded mean."""
    shares = {}
    rates = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
    for q0, q1, rate in ((q0, q1, rate) for q0 in rates for q1 in rates for rate in (0.1, 0.3)):
        rng, inside = np.random.default_rng(int(1e4 * q0 + 1e2 * q1 + 10 * rate)), 0
        human = np.arange(200) < 100
        for _ in range(runs):
            truth = rng.random(1000) < rate
            judged = np.where(truth, rng.random(1000) < q1, rng.random(1000) > q0)
            seen = np.where(human, rng.random(200) < q1, rng.random(200) > q0)
            one = judged_rate(judged, human=human, judged_of_human=seen)
            inside += one.low <= rate <= one.high
        shares[q0, q1, rate] = inside / runs
    inside = 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 4])
        truth = rng.gamma(2.0, 1.0, 1000)
        judge = truth + rng.normal(0.5, 0.5, 1000)
        mean = judged_mean(judge[60:], human=truth[:60], judged_of_human=judge[:60])
        inside += mean.low <= 2.0 <= mean.high
    least = min(shares, key=lambda key: shares[key])
    where = f"{shares[least]:.3f} (q0 = {least[0]}, q1 = {least[1]}, rate {least[2]})"
    cells = f"{len(shares)} cells with q0, q1 in [.7, .95], rates .1 and .3, {runs} samples each"
    return [
        (f"judged rate, least coverage of {cells}", where, "≥ .93", shares[least] >= 0.93),
        ("judged rate, mean coverage of these", f"{np.mean([*shares.values()]):.3f}", "≥ .93",
         np.mean([*shares.values()]) >= 0.93),
        (f"graded mean, 60 human labels, {runs} samples", f"{inside / runs:.3f}", "≥ .93",
         inside >= 0.93 * runs),
    ]  # fmt: skip


def contradictions(runs: int) -> list[Check]:
    """Comparisons whose interval leaves 0 and whose p-value does not say so, or the other way round."""
    wrong = dict.fromkeys(LEVELS, 0)
    for seed in range(runs):
        rng, level = np.random.default_rng([seed, 5]), LEVELS[seed % len(LEVELS)]
        p = rng.beta(1, 1 + seed % 4, 150)
        models = {"a": p, "b": p ** (1.0 + 0.1 * (seed % 13))}
        (pair,) = cal.compare(rng.random(150) < p, models, confidence=1.0 - level).differences
        leaves = pair.low > 0.0 or pair.high < 0.0
        wrong[level] += leaves != (pair.adjusted_p_value <= level + 1e-12)
    asked = f"compare, interval against p-value at level .01, .05 or .2 in turn, {runs:,} samples of 150 rows"
    found = ", ".join(str(wrong[level]) for level in LEVELS)
    return [(asked, found, "0", not any(wrong.values()))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true", help="fewer samples, for CI")
    reduced = parser.parse_args().reduced
    runs = REDUCED_RUNS if reduced else RUNS
    sections = {
        "Search for groups": [
            *false_findings(runs["null"]), *power(runs["samples"] // 4), *exclusive_or(), *cost(runs["rows"]),
        ],
        "Expected before labels come, if the curve holds": projections(runs["samples"]),
        "Labels of a judge": judges(runs["samples"]),
        "Comparison of two models": contradictions(runs["pairs"]),
    }  # fmt: skip
    header = ["asked", "found", "promised"]
    page = pages.Page(
        "groups",
        "Groups, late labels and judges",
        "python -m bench.groups",
        "Samples whose truth is known, for the search for groups, projections, judges and comparisons.",
        [pages.Table(title, header, [row[:3] for row in rows]) for title, rows in sections.items()],
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))
    broken = [asked for rows in sections.values() for asked, *_, kept in rows if not kept]
    for asked in broken:
        print(f"NOT KEPT: {asked}", file=sys.stderr)
    return 1 if broken and not reduced else 0


if __name__ == "__main__":
    sys.exit(main())
