"""Recalibration maps of peers beside ours, where the definition is the same.

python -m bench.peers.maps      # makes the environment "maps" first, if it is not there
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from scipy.special import expit, softmax

from bench import environments
from calibrant.recalibration import (
    BetaRecalibrator,
    PlattRecalibrator,
    StructuredScaling,
    TemperatureRecalibrator,
    TemperatureScaling,
    VennAbersRecalibrator,
)

WORKER = Path(__file__).with_name("maps_worker.py")
SAME = 1e-6


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
    }


def ours(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What each map of ours makes of the new predictions, or of the class probabilities."""
    p, y, new, probs, classes = data.values()
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
        "betacal": plain(BetaRecalibrator),
        "netcal beta": plain(BetaRecalibrator),
        "netcal logistic": plain(PlattRecalibrator),
        "netcal temperature": plain(TemperatureRecalibrator),
        "probmetrics temperature": scaled(TemperatureScaling(from_logits=False)),
        "probmetrics SVS": scaled(StructuredScaling(from_logits=False)),
        "probmetrics SMS": scaled(StructuredScaling(from_logits=False, matrix=True)),
    }


def theirs(data: dict[str, np.ndarray], python: Path) -> dict[str, np.ndarray]:
    """The same of the peers, in their environment: as they come, and with optimisers run to the end."""
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder, "question.npz"), Path(folder, "answer.npz")
        np.savez(question, **data)
        subprocess.run([python, WORKER, question, answer], check=True)
        with np.load(answer) as found:
            return dict(found)


def main() -> None:
    data = drawn()
    peers = theirs(data, environments.make("maps"))
    print(f"{'map':<26}{'as it comes':>14}{'run to the end':>16}")
    for name, values in ours(data).items():
        as_it_comes = np.abs(peers[name] - values).max()
        finished = np.abs(peers.get(f"{name}, finished", peers[name]) - values).max()
        print(
            f"{name:<26}{as_it_comes:>14.1e}{finished:>16.1e}{'' if finished <= SAME else '  DIFFERS'}"
        )


if __name__ == "__main__":
    main()
