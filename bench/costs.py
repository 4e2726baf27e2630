"""Time and memory of each package on the same rows, asked by turns with the plain sum."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.peers.adapters import PEERS
from bench.peers.asking import NoAnswer, ask
from calibrant import datasets

Costs = dict[str, dict[int, dict[str, Any]]]

SEEN_IN_MEMORY = 100_000


def measure(
    peers: Iterable[str], sizes: Sequence[int], *, repeat: int = 40, budget: float = 10.0
) -> Costs:
    """Cost by peer and by n; a peer whose last time says it would need over a minute is not asked."""
    costs: Costs = {peer: {} for peer in peers}
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            p, y = str(Path(folder, "p.npy")), str(Path(folder, "y.npy"))
            drawn = datasets.generate("overconfident", n)
            np.save(p, drawn.p)
            np.save(y, drawn.y.astype(np.int64))
            for peer, found in costs.items():
                print(f"cost of {peer} at n = {n:,}", file=sys.stderr, flush=True)
                found[n] = _one(peer, n, found, p=p, y=y, repeat=repeat, budget=budget)
    return costs


def _one(peer: str, n: int, found: dict[int, dict[str, Any]], **question: Any) -> dict[str, Any]:
    answered = [m for m in found if "seconds" in found[m]]
    if found and not answered:
        return {"none": found[min(found)]["none"]}
    if answered:
        largest = max(answered)
        expected = found[largest]["seconds"] * n / largest
        if largest >= 100_000 and expected > 60.0:
            return {"none": f"about {expected:,.0f} s, by its time at n = {largest:,}"}
    small = n <= 10_000
    if small:
        question["repeat"] = 200
    try:
        return ask(peer, "cost", limit=300.0, **question)
    except NoAnswer as error:
        return {"none": str(error)}


def versions(costs: Costs) -> dict[str, str]:
    found = {}
    for peer, by_n in costs.items():
        for cost in by_n.values():
            if "version" in cost:
                found[peer] = cost["version"]
    return found


def header(sizes: Sequence[int]) -> list[str]:
    columns = ["package", "call"]
    for n in sizes:
        columns += [f"n = {n:,}", "processor", "× calibrant", "× plain sum", "MB"]
    return columns


NOTES = (
    "The first time is wall-clock time; the second is processor time, summed over threads. Each is the "
    "best of three or more calls in one process, alternating with a plain sum of both arrays, which is "
    "the least any measure can cost. The ratios use processor time, which a busy machine disturbs "
    "least.",
    "MB: how much resident memory grew during the first full call. A thousand rows are too few to show.",
)


def rows(costs: Costs, sizes: Sequence[int]) -> list[list[str]]:
    """One row a package; seconds, how many times calibrant's and the sum's, memory."""
    table = []
    for peer, by_n in costs.items():
        row = [peer, f"`{PEERS[peer].asked}`"]
        for n in sizes:
            row += _cells(by_n[n], costs["calibrant"][n])
        table.append(row)
    limit = ["(physical limit)", "sum of both arrays"]
    for n in sizes:
        answered = [by_n[n] for by_n in costs.values() if "sum" in by_n[n]]
        wall = min(cost["sum"] for cost in answered)
        limit += [seconds(wall), seconds(min(cost["sum cpu"] for cost in answered)), "", "1", ""]
    return [*table, limit]


def better(costs: Costs, sizes: Sequence[int]) -> list[str]:
    """Where a peer is faster or leaner than calibrant, in words."""
    found = []
    for n in sizes:
        own = costs["calibrant"][n]
        others = {
            peer: by_n[n]
            for peer, by_n in costs.items()
            if "seconds" in by_n[n] and not peer.startswith("calibrant")
        }
        faster = [peer for peer, cost in others.items() if cost["cpu"] < own["cpu"]]
        found.append(f"Faster than calibrant at n = {n:,}: {', '.join(faster) or 'none'}.")
        if n >= SEEN_IN_MEMORY:
            least = own["megabytes"] - 1
            leaner = [peer for peer, cost in others.items() if cost["megabytes"] < least]
            found.append(f"Less memory than calibrant at n = {n:,}: {', '.join(leaner) or 'none'}.")
    return found


def _cells(cost: dict[str, Any], own: dict[str, Any]) -> list[str]:
    if "none" in cost:
        return [cost["none"], "", "", "", ""]
    ratio, to_sum = cost["cpu"] / own["cpu"], cost["cpu"] / cost["sum cpu"]
    return [
        seconds(cost["seconds"]),
        seconds(cost["cpu"]),
        f"{ratio:,.2g}" if ratio < 10 else f"{ratio:,.0f}",
        f"{to_sum:,.1f}" if to_sum < 100 else f"{to_sum:,.0f}",
        f"{cost['megabytes']:,.1f}",
    ]


def seconds(value: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1.0:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
