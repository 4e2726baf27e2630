"""False alarms of the monitor over many looks, and how soon it finds what is wrong.

python -m bench.coverage.monitoring    # of many classes, some minutes; writes no page
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.coverage.populations import quantile
from calibrant import Monitor, Sketch, classwise, top_label

Floats = NDArray[np.float64]

CHUNK = 10
ROWS = 50
NODES = 256
CHANGE = 100
TRUTHS: dict[str, Callable[[Floats, int], Floats]] = {
    "calibrated": lambda p, look: p,
    "calibrated, rare events": lambda p, look: p,
    "overconfident, slope .9": lambda p, look: 0.5 + 0.9 * (p - 0.5),
    "too high by .03": lambda p, look: np.clip(p - 0.03, 0.0, 1.0),
    "p^1.5 from look 101 on": lambda p, look: p if look <= CHANGE else p**1.5,
}


@dataclass(frozen=True)
class Watch:
    """Some runs of one truth, each watched for a number of looks."""

    truth: str
    looks: int
    chunk: int
    runs: int = CHUNK


def watch(task: Watch) -> list[tuple[str, int | None, int | None]]:
    """The look of the alarm, and since when it says, of each run."""
    first = task.chunk * task.runs
    return [(task.truth, *_alarm(task, seed)) for seed in range(first, first + task.runs)]


def _alarm(task: Watch, seed: int) -> tuple[int | None, int | None]:
    rng = np.random.default_rng([seed, 77])
    distribution = "rare events" if "rare" in task.truth else "uniform"
    monitor = Monitor(level=0.05)
    for look in range(1, task.looks + 1):
        p = quantile(distribution, rng.random(ROWS))
        y = (rng.random(ROWS) < TRUTHS[task.truth](p, look)).astype(np.uint8)
        alarm = monitor.update(Sketch.from_arrays(y, p, nodes=NODES)).alarm
        if alarm is not None:
            return alarm.look, alarm.since
    return None, None


def summary(outcomes: list[list[Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for truth in TRUTHS:
        alarms = [(look, since) for name, look, since in outcomes if name == truth]
        if not alarms:
            continue
        raised = [look for look, _ in alarms if look is not None]
        began = [since for _, since in alarms if since is not None]
        found[truth] = {
            "runs": len(alarms),
            "alarms": len(raised) / len(alarms),
            "look": float(np.median(raised)) if raised else None,
            "since": float(np.median(began)) if began else None,
        }
    return found


CLASSES, CLASS_LOOKS, CLASS_RUNS, LEVEL = 5, 100, 200, 0.05
VIEWS = {"top_label": top_label, "classwise": classwise}
SHARPNESS = {"calibrated": 1.0, "sharpened by 1.3": 1.3}


def class_alarm(view: str, sharpness: float, seed: int) -> int | None:
    """The look of the alarm of one run; one class in five is likely only from the middle on."""
    rng = np.random.default_rng([seed, 78])
    monitor = Monitor(level=LEVEL)
    for look in range(1, CLASS_LOOKS + 1):
        shape = [1.0] * (CLASSES - 1) + [1.0 if look > CLASS_LOOKS // 2 else 1e-3]
        probs = rng.dirichlet(shape, ROWS)
        labels = (probs.cumsum(axis=1) > rng.random((ROWS, 1))).argmax(axis=1)
        said = probs**sharpness
        said /= said.sum(axis=1, keepdims=True)
        alarm = monitor.update(VIEWS[view](labels, said, nodes=NODES)).alarm
        if alarm is not None:
            return alarm.look
    return None


def main() -> int:
    """Print how many runs raise an alarm; fail where calibrated classes do too often."""
    most = LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / CLASS_RUNS)
    failed = False
    for view in VIEWS:
        for name, sharpness in SHARPNESS.items():
            alarms = [class_alarm(view, sharpness, seed) for seed in range(CLASS_RUNS)]
            raised = [look for look in alarms if look is not None]
            share = len(raised) / CLASS_RUNS
            when = f", at look {np.median(raised):.0f} (median)" if raised else ""
            print(f"{view}, {name}: {share:.3f} of {CLASS_RUNS} runs{when}", flush=True)
            failed |= name == "calibrated" and share > most
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
