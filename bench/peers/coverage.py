"""How often a nominal 95% interval holds the population value of what it is an interval for."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import pages
from bench.exact import exact_smooth_ece
from bench.peers.adapters import PEERS
from bench.peers.asking import NoAnswer, ask
from calibrant import datasets

Floats = NDArray[np.float64]
SHAPES = ("calibrated", "overconfident", "sine")
ROWS = 500
COVERS = 0.93
MASS = "binned, equal mass"
INTERVALS_OF = {"probcal": MASS, "uncertainty-calibration": MASS}


def population(name: str, shape: str) -> float:
    """The value on infinitely many rows: predictions on a fine lattice, outcomes by the truth."""
    if shape == "calibrated":
        return 0.0
    truth = datasets.generate(shape, 1).truth
    smooth = PEERS[name].target == "smooth"
    rows = 30_000 if smooth else 300_000
    p = (np.arange(rows) + 0.5) / rows
    return exact_smooth_ece(truth(p), p) if smooth else own_value(name, p, truth(p))


def own_value(peer: str, p: Floats, chance: Floats) -> float:
    """The peer's measure of a population: equally likely predictions in order, and the chance at each."""
    with tempfile.TemporaryDirectory() as folder:
        p_file, y_file = Path(folder, "p.npy"), Path(folder, "y.npy")
        np.save(p_file, p[None])
        np.save(y_file, even_outcomes(chance)[None])
        found = ask(peer, "target of intervals", p=str(p_file), y=str(y_file))
    return float(found["values"][0])


def even_outcomes(chance: Floats) -> NDArray[np.int64]:
    """Outcomes as even as they can be: in any run of rows they miss the chances by less than one.

    Examples
    --------
    >>> even_outcomes(np.full(8, 0.25))
    array([0, 0, 0, 1, 0, 0, 0, 1])
    """
    return np.diff(np.floor(np.cumsum(chance)), prepend=0.0).astype(np.int64)


def study(samples: int) -> dict[str, Any]:
    asked = [name for name, peer in PEERS.items() if peer.interval is not None]
    found: dict[str, Any] = {name: {} for name in asked}
    with tempfile.TemporaryDirectory() as folder:
        p, y = Path(folder, "p.npy"), Path(folder, "y.npy")
        for shape in SHAPES:
            drawn = [datasets.generate(shape, ROWS, random_state=seed) for seed in range(samples)]
            np.save(p, np.stack([one.p for one in drawn]))
            np.save(y, np.stack([one.y.astype(np.int64) for one in drawn]))
            for name in asked:
                print(f"intervals of {name} on {shape}", file=sys.stderr, flush=True)
                found[name][shape] = _covered(name, shape, str(p), str(y))
    return found


def _covered(name: str, shape: str, p: str, y: str) -> dict[str, Any]:
    try:
        truth = population(name, shape)
        answer = ask(name, "intervals", p=p, y=y, limit=1800.0)
    except NoAnswer as error:
        return {"none": str(error)}
    low, high = np.array(answer["intervals"]).T
    return {
        "truth": truth,
        "coverage": float(((low <= truth) & (truth <= high)).mean()),
        "width": float((high - np.maximum(low, 0.0)).mean()),
        "seconds": answer["seconds"],
        "samples": len(low),
    }


def tables(found: dict[str, Any]) -> list[pages.Table]:
    rows = []
    for name, by_shape in found.items():
        for shape, one in by_shape.items():
            if "none" in one:
                rows.append(
                    [
                        name,
                        INTERVALS_OF.get(name, PEERS[name].target),
                        shape,
                        one["none"],
                        "",
                        "",
                        "",
                    ]
                )
                continue
            spread = np.sqrt(max(one["coverage"] * (1 - one["coverage"]), 0.02) / one["samples"])
            rows.append(
                [
                    name,
                    INTERVALS_OF.get(name, PEERS[name].target),
                    shape,
                    f"{one['truth']:.4f}",
                    f"{one['coverage']:.2f} ± {2 * spread:.2f}",
                    f"{one['width']:.3f}",
                    f"{one['seconds']:.3g} s",
                ]
            )
    better = [
        f"{name} on {shape}"
        for name, by_shape in found.items()
        for shape, one in by_shape.items()
        if one.get("coverage", 0.0) >= COVERS
        and one["width"] < found["calibrant"][shape].get("width", 0.0)
    ]
    samples = max(one.get("samples", 0) for by in found.values() for one in by.values())
    return [
        pages.Table(
            "Coverage of nominal 95% intervals",
            ["package", "interval for", "truth", "population value", "coverage", "width", "time"],
            rows,
            [
                f"For each truth, {samples} samples of {ROWS} rows with uniform predictions. Each "
                "package's interval is compared with the population value of its own measure.",
                f"Narrower than calibrant's, and covering in {COVERS:.0%} of the samples or more: "
                f"{', '.join(better) or 'none'}.",
                "Widths count only the part above 0. ± is two standard errors of the study.",
                "relplot: the basic bootstrap of its diagram. uncertainty-calibration: its bootstrap, "
                "whose alpha is in per cent. probcal: its bootstrap with stratify=False, because its "
                "default ignores the error in the event rate.",
            ],
        )
    ]
