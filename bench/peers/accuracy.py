"""How far each package's number is from the exact value of what it says it computes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import pages
from bench.exact import exact_binned_ece, exact_smooth_ece
from bench.peers.adapters import BINS, PEERS
from bench.peers.asking import NoAnswer, ask
from calibrant import datasets

DIRTY = frozenset(
    {
        "solar_flares_all_models_with_nan",
        "fmi_rain_raw_sentinels",
        "verification_prob_frcs_percent",
        "nfl_elo_1920_with_ties",
    }
)
Rows = tuple[NDArray[Any], NDArray[Any]]


def data(largest: int) -> dict[str, Rows]:
    """(p, y) of every clean binary set of at most `largest` rows, and the paper's sample."""
    drawn = datasets.generate("paper_sine")
    found: dict[str, Rows] = {"paper_sine": (drawn.p, drawn.y.astype(np.int64))}
    for name in datasets.names():
        if name in DIRTY or datasets.describe(name).rows > largest:
            continue
        loaded = datasets.load(name)
        if "p" in loaded.columns:
            found[name] = (loaded.p, loaded.y.astype(np.int64))
    return found


def exact_values(target: str, p: NDArray[Any], y: NDArray[Any]) -> tuple[float, ...]:
    """Every value that counts as exact for a target: two where a rule about bin edges is free."""
    if target == "smooth":
        return (exact_smooth_ece(y, p),)
    if target == "smooth confidence":
        predicted = (p >= 0.5).astype(np.int64)
        confidence = np.where(p >= 0.5, p, 1.0 - p)
        return (exact_smooth_ece((predicted == y).astype(np.float64), confidence),)
    return exact_binned_ece(y, p, BINS, span="range" if target == "binned range" else "unit")


def study(largest: int) -> dict[str, Any]:
    """Values of every peer on every set, with the exact values of its target."""
    rows = data(largest)
    targets = {peer.target for peer in PEERS.values() if peer.target}
    exact = {
        target: {name: exact_values(target, p, y) for name, (p, y) in rows.items()}
        for target in targets
    }
    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for name, (p, y) in rows.items():
            files[name] = [str(Path(folder, f"{name}-{part}.npy")) for part in ("p", "y")]
            np.save(files[name][0], p)
            np.save(files[name][1], y)
        for name, peer in PEERS.items():
            if not peer.target:
                continue
            print(f"values of {name}", file=sys.stderr, flush=True)
            try:
                answers[name] = ask(name, "values", files=files, limit=900.0)
            except NoAnswer as error:
                answers[name] = {"values": {}, "none": str(error)}
    return {"exact": exact, "answers": answers}


def versions(found: dict[str, Any]) -> dict[str, str]:
    """Versions of the packages that answered."""
    return {name: one["version"] for name, one in found["answers"].items() if "version" in one}


def _relative_error(value: float, exact: tuple[float, ...]) -> float:
    return min(abs(value - one) / one for one in exact)


def _percent(error: float) -> str:
    return f"{100 * error:.1f}%" if error >= 5e-4 else f"{error:.0e}"


def tables(found: dict[str, Any]) -> list[pages.Table]:
    smooth = [name for name, peer in PEERS.items() if peer.target == "smooth"]
    rows = []
    for name, (exact,) in found["exact"]["smooth"].items():
        row = [name, f"{exact:.7f}"]
        for peer in smooth:
            value = found["answers"][peer]["values"].get(name)
            error = None if value is None else _relative_error(value, (exact,))
            row.append("none" if error is None else f"{value:.7f} ({_percent(error)})")
        rows.append(row)
    by_set = pages.Table(
        "SmoothECE on real predictions",
        ["data", "exact", *smooth],
        rows,
        [
            "Relative errors are in brackets. `bench/exact.py` computes the exact value without a grid "
            "and shares no code with calibrant.",
            "relplot, which probmetrics calls, halves the mass at the ends when it reflects, and its "
            "bandwidth is a multiple of 1/1024.",
        ],
    )
    worst = []
    for name, answer in found["answers"].items():
        target = PEERS[name].target
        errors = {
            key: _relative_error(value, tuple(found["exact"][target][key]))
            for key, value in answer["values"].items()
        }
        if not errors:
            worst.append([name, f"`{PEERS[name].asked}`", target, answer["none"], "", ""])
            continue
        where = max(errors, key=lambda key: errors[key])
        middle = float(np.median(list(errors.values())))
        worst.append(
            [
                name,
                f"`{PEERS[name].asked}`",
                target,
                _percent(middle),
                _percent(errors[where]),
                where,
            ]
        )
    summary = pages.Table(
        "Error against the exact value of what each package computes",
        ["package", "call", "exact value of", "median", "worst", "worst on"],
        worst,
        [
            f"Binned: {BINS} bins of equal width on [0, 1]. Where predictions lie on an edge, we use "
            "the edge rule that suits the package. `binned range`: bins from the lowest prediction to "
            "the highest.",
            "`smooth confidence`: torch-uncertainty measures the confidence in the predicted class, "
            "max(p, 1 - p), in float32. We compare it with the exact value of the same quantity.",
            "mapie puts predictions of exactly 0 in a bin of their own.",
            "An exact binned ECE is still a binned ECE: it depends on the bins.",
        ],
    )
    return [by_set, summary]
