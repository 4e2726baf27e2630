"""The distances and kernel measures against their linear programs, double sums and one plain sort.

python -m bench.measures              # n = 1,000,000
python -m bench.measures --reduced    # n = 100,000
"""

from __future__ import annotations

import argparse

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from bench import pages
from bench.peers import agreement
from bench.speed import by_turns
from calibrant.data.scales import as_scale
from calibrant.measures.catalogue import measure_all
from calibrant.measures.distance import distance_to_calibration
from calibrant.measures.kernel import kernel_calibration_error, squared_kernel_calibration_error
from calibrant.measures.weak_error import weak_calibration_error

LIMITS = {"wCE": 3, "wCE, logit": 3, "kCE": 5}
"""Stable argsorts of the same predictions that a measure may cost."""
SCALES = ("probability", "logit", "logit/4", "boosting")


def sample(n: int, power: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p**power).astype(float), p


def worst_difference_from_programs(inputs: int = 1000) -> float:
    """wCE against HiGHS on inputs with ties, ends, weights and four scales."""
    worst = 0.0
    for seed in range(inputs):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 40))
        lattice = rng.choice([0.0, 1.0, 0.25, 0.5, 1e-9, 1 - 1e-9], n)
        p = [rng.random(n), rng.integers(0, 11, n) / 10, lattice, rng.beta(0.1, 0.1, n)][seed % 4]
        y, w = (rng.random(n) < 0.5).astype(float), rng.exponential(size=n)
        scale = SCALES[seed // 4 % 4]
        got = weak_calibration_error(y, p, sample_weight=w, scale=scale)
        worst = max(worst, abs(got - _by_program(y, p, w, scale)))
    return worst


def _by_program(y: np.ndarray, p: np.ndarray, w: np.ndarray, scale: str) -> float:
    at, index = np.unique(p, return_inverse=True)
    r = np.bincount(index, w * (p - y)) / w.sum()
    if at.size == 1:
        return float(abs(r[0]))
    gap = np.minimum(np.diff(as_scale(scale).z(at)), 2.0)
    d = sp.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(at.size - 1, at.size))
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    rows, limit = sp.vstack([d, -d]), np.concatenate([gap, gap])
    return float(-linprog(-r, A_ub=rows, b_ub=limit, bounds=(-1, 1), options=tight).fun)


def distances() -> list[list[str]]:
    """The two definitions of the distance beside each other."""
    rows = []
    for name, power in (("calibrated", 1.0), ("overconfident", 1.5)):
        y, p = sample(20_000, power)
        one, other = (distance_to_calibration(y, p, flips=f) for f in ("forbidden", "allowed"))
        what = f"dCE, difference of the definitions, {name}"
        rows.append([what, f"{abs(one - other):.1e}", "< 1e-9"])
    return rows


def sorted_measures(n: int) -> list[list[str]]:
    """What a measure costs in stable argsorts of the same predictions, public call and all."""
    y, p = sample(n)
    sort, *costs = by_turns(
        lambda: np.argsort(p, kind="stable"),
        lambda: weak_calibration_error(y, p),
        lambda: weak_calibration_error(y, p, scale="logit"),
        lambda: kernel_calibration_error(y, p),
    )
    return [
        [f"{name} at n = {n:,}, in stable argsorts", f"{cost / sort:.2f}", f"< {most}"]
        for (name, most), cost in zip(LIMITS.items(), costs, strict=True)
    ]


def kernel_difference() -> float:
    """Laplace kCE² against the sum over all pairs."""
    y, p = sample(3000, 1.3)
    worst = 0.0
    for bandwidth in (1.0, 0.2, 0.01):
        r = p - y
        pairs = r @ np.exp(-np.abs(p[:, None] - p[None]) / bandwidth) @ r / p.size**2
        worst = max(worst, abs(squared_kernel_calibration_error(y, p, bandwidth=bandwidth) - pairs))
    return float(worst)


def every_measure(n: int) -> pages.Table:
    """The table that `measure_all` gives, as it is."""
    y, p = sample(n, 1.3)
    rows = [
        [m.name, f"{m.value:.6g}", f"{1e3 * m.seconds:.1f} ms", m.misses]
        for m in measure_all(y, p, which="all")
    ]
    title = f"All measures on {n:,} overconfident predictions"
    return pages.Table(title, ["measure", "value", "cost after the sort", "misses"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true")
    reduced = parser.parse_args().reduced
    n = 100_000 if reduced else 1_000_000
    rows = [
        [
            "wCE, largest difference from HiGHS on 1,000 inputs",
            f"{worst_difference_from_programs():.1e}",
            "< 1e-7",
        ],
        [
            "Laplace kCE², largest difference from the double sum",
            f"{kernel_difference():.1e}",
            "< 1e-10",
        ],
        *sorted_measures(n),
        *distances(),
    ]
    page = pages.Page(
        "measures",
        "Measures",
        "python -m bench.measures",
        "How closely the distances and kernel measures match their definitions, and what they cost.",
        [
            pages.Table("Exactness and cost", ["what", "measured", "target"], rows),
            agreement.table(),
            every_measure(n),
        ],
        agreement.versions(),
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
