"""Recalibration maps of peers beside ours, where the definition is the same.

python -m bench.peers.maps      # makes the environment "maps" first, if it is not there
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit, softmax

from bench import environments, pages
from calibrant.recalibration import (
    BetaRecalibrator,
    CrossVennAbersRecalibrator,
    PlattRecalibrator,
    StructuredScaling,
    TemperatureRecalibrator,
    TemperatureScaling,
    VennAbersRecalibrator,
)
from calibrant.recalibration.effect import log_losses


class Row(NamedTuple):
    name: str
    as_it_comes: float
    finished: float
    excess: float | None


WORKER = Path(__file__).with_name("maps_worker.py")
SAME = 1e-6
FOLDS = 5


def drawn() -> dict[str, np.ndarray]:
    """500 predictions of an event that are too sure and too low, and 2,000 of four classes."""
    rng = np.random.default_rng(0)
    z = rng.normal(0.0, 2.0, 500)
    logits = rng.normal(0.0, 1.5, (2000, 4))
    mixed = logits @ (np.eye(4) + 0.2 * rng.normal(size=(4, 4))) + np.linspace(-0.5, 0.5, 4)
    chance = softmax(mixed, axis=1)
    return {
        "p": expit(z),
        "y": (rng.random(500) < expit(0.5 * z + 0.3)).astype(int),
        "new": np.linspace(0.01, 0.99, 60),
        "probs": softmax(2.0 * logits, axis=1),
        "classes": (chance.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1),
        "fold": np.random.default_rng(0).permutation(500) % FOLDS,
    }


def ours(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What each map of ours makes of the new predictions, or of the class probabilities."""
    p, y, new, probs, classes, _ = data.values()
    venn = VennAbersRecalibrator().fit(p, y)
    low, high = venn.interval(new)

    def plain(made: type) -> np.ndarray:
        return np.asarray(made(platt_targets=False).fit(p, y).transform(new))

    def scaled(made: object) -> np.ndarray:
        return np.asarray(made.fit(probs, classes).transform(probs))  # type: ignore[attr-defined]

    return {
        "venn-abers": venn.transform(new),
        "venn-abers, lower": low,
        "venn-abers, upper": high,
        "venn-abers, cross": CrossVennAbersRecalibrator(FOLDS).fit(p, y).transform(new),
        "betacal": plain(BetaRecalibrator),
        "netcal beta": plain(BetaRecalibrator),
        "netcal logistic": plain(PlattRecalibrator),
        "netcal temperature": plain(TemperatureRecalibrator),
        "probmetrics temperature": scaled(TemperatureScaling(from_logits=False)),
        "probmetrics SVS": scaled(StructuredScaling(from_logits=False)),
        "probmetrics SMS": scaled(StructuredScaling(from_logits=False, matrix=True)),
    }


def learned(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the maps of ours with a likelihood make of the rows they were learned from."""
    p, y = data["p"], data["y"]
    made = {
        "betacal": BetaRecalibrator,
        "netcal beta": BetaRecalibrator,
        "netcal logistic": PlattRecalibrator,
        "netcal temperature": TemperatureRecalibrator,
    }
    return {name: one(platt_targets=False).fit(p, y).transform(p) for name, one in made.items()}


def theirs(data: dict[str, np.ndarray], python: Path) -> dict[str, np.ndarray]:
    """The same of the peers, in their environment: as they come, and with optimisers run to the end."""
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder, "question.npz"), Path(folder, "answer.npz")
        np.savez(question, **data)
        subprocess.run([python, WORKER, question, answer], check=True)
        with np.load(answer) as found:
            return dict(found)


def compared(data: dict[str, np.ndarray], peers: dict[str, np.ndarray]) -> list[Row]:
    """Every map: how far theirs is from ours, and whose loss on the learned rows is smaller."""
    at_rows, y = learned(data), data["y"]
    rows = []
    for name, values in ours(data).items():
        finished = peers.get(f"{name}, finished", peers[name])
        excess = None
        if name in at_rows:
            theirs_there = log_losses(y, np.float64(peers[f"{name}, learned"])).mean()
            excess = float(theirs_there - log_losses(y, at_rows[name]).mean())
        rows.append(
            Row(
                name,
                float(np.abs(peers[name] - values).max()),
                float(np.abs(finished - values).max()),
                excess,
            )
        )
    return rows


def table(rows: list[Row]) -> pages.Table:
    """The rows as text."""
    lines = [
        [
            row.name,
            f"{row.as_it_comes:.1e}",
            f"{row.finished:.1e}",
            "" if row.excess is None else f"{row.excess:+.1e}",
        ]
        for row in rows
    ]
    notes = [
        "Largest difference between their probabilities and ours on 60 new predictions, after fitting "
        "to 500 rows of two classes or 2,000 rows of four.",
        "Fully optimised: we minimise the peer's own loss further. For betacal with scikit-learn and "
        "tol=1e-12; for netcal with Nelder–Mead, since it gives its optimiser no gradient; for "
        "probmetrics with L-BFGS in double precision. venn-abers has nothing to optimise.",
        "Their loss minus ours: mean log loss on the fitted rows, with the peer's default settings. "
        "Where it is positive beyond rounding (about 1e-16), the peer stops before the optimum of its "
        "own definition.",
    ]
    header = ["map", "with default settings", "fully optimised", "their loss minus ours"]
    return pages.Table("Their maps and ours", header, lines, notes)


def main() -> None:
    data = drawn()
    rows = compared(data, theirs(data, environments.make("maps")))
    page = pages.Page(
        "maps",
        "Recalibration maps of other packages",
        "python -m bench.peers.maps",
        "Their maps compared with ours, where both use the same definition.",
        [table(rows)],
        environments.pinned("venn-abers", "betacal", "netcal", "probmetrics"),
    )
    print(page.write(pages.EVIDENCE).read_text(encoding="utf-8"))
    if any(row.finished > SAME for row in rows):
        raise SystemExit("a map differs from its reference")


if __name__ == "__main__":
    main()
