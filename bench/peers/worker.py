"""One question to one peer, asked and answered as JSON: runs inside the peer's environment.

python worker.py < question.json > answer.json
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import logging
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from adapters import PEERS, Peer

FEWEST = 3
HIGHEST = "VmHWM"
RESIDENT = "VmRSS"


def _kilobytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no {field}")


def _peak_from_here() -> int:
    """Forget the highest size so far, where the system allows it, and give the present one."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _kilobytes(HIGHEST)
    return _kilobytes(RESIDENT)


def _sum_both(y: Any, p: Any) -> float:
    return float(p.sum()) + float(y.sum())


def _seconds(call: Any, *arguments: Any) -> tuple[float, float]:
    """By the clock, and of the processor (all threads together)."""
    wall, processor = time.perf_counter(), time.process_time()
    call(*arguments)
    return time.perf_counter() - wall, time.process_time() - processor


def cost(peer: Peer, question: dict[str, Any]) -> dict[str, Any]:
    """Best time, the time of the plain sum taken by turns with it, and memory beyond the inputs."""
    p, y = np.load(question["p"]), np.load(question["y"])
    peer.measure(*peer.prepare(y[:1000], p[:1000]))
    prepared = peer.prepare(y, p)
    before = _peak_from_here()
    times, sums = [_seconds(peer.measure, *prepared)], [_seconds(_sum_both, y, p)]
    memory = max(0, _kilobytes(HIGHEST) - before) / 1024
    until = time.perf_counter() + question["budget"]
    while len(times) < FEWEST or (len(times) < question["repeat"] and time.perf_counter() < until):
        sums.append(_seconds(_sum_both, y, p))
        times.append(_seconds(peer.measure, *prepared))
    (seconds, cpu), (plain, plain_cpu) = np.min(times, axis=0), np.min(sums, axis=0)
    return {
        "seconds": seconds,
        "cpu": cpu,
        "sum": plain,
        "sum cpu": plain_cpu,
        "megabytes": memory,
        "repeats": len(times),
    }


def values(peer: Peer, question: dict[str, Any]) -> dict[str, Any]:
    """The peer's number on each data set."""
    found = {}
    for name, (p, y) in question["files"].items():
        found[name] = peer.measure(*peer.prepare(np.load(y), np.load(p)))
    return {"values": found}


def intervals(peer: Peer, question: dict[str, Any]) -> dict[str, Any]:
    """The peer's 95% interval on each drawn sample, NaN where it gives an error, and processor time."""
    if peer.interval is None:
        raise ValueError(f"{peer.name} gives no interval")
    p, y = np.load(question["p"]), np.load(question["y"])
    np.random.seed(0)  # noqa: NPY002  the peers draw from the global generator
    start = time.process_time()
    drawn = []
    for outcomes, predictions in zip(y, p, strict=True):
        try:
            drawn.append(peer.interval(outcomes, predictions))
        except Exception:  # of whatever kind the peer gives, such as for a single class
            drawn.append((math.nan, math.nan))
    seconds = (time.process_time() - start) / len(p)
    return {"intervals": [[float(a), float(b)] for a, b in drawn], "seconds": seconds}


def target_of_intervals(peer: Peer, question: dict[str, Any]) -> dict[str, Any]:
    """The number that the peer's interval is for, on each population."""
    p, y = np.load(question["p"]), np.load(question["y"])
    asked = peer.interval_of or peer.measure
    return {"values": [float(asked(outcomes, f)) for outcomes, f in zip(y, p, strict=True)]}


def _bad_inputs() -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(np.int64)
    missing, sentinel = p.copy(), p.copy()
    missing[7], sentinel[7] = np.nan, -999.0
    return {
        "clean": (y, p),
        "NaN": (y, missing),
        "sentinel -999": (y, sentinel),
        "per cent": (y, 100 * p),
        "labels -1, 1": (2 * y - 1, p),
        "tie 0.5": (np.where(np.arange(1000) == 7, 0.5, y), p),
        "swapped": (p, y.astype(np.float64)),
        "empty": (y[:0], p[:0]),
    }


class _Logged(logging.Handler):
    """Keeps what a package logs instead of warning."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def bad_inputs(peer: Peer, _: dict[str, Any]) -> dict[str, Any]:
    """What happens: an error, a warning with a number, a number without a word, or a NaN.

    Warnings that the package also gives for clean rows are not about the bad ones.
    """
    answers: dict[str, Any] = {}
    usual: set[str] = set()
    logged = _Logged(logging.WARNING)
    logging.getLogger().addHandler(logged)
    for case, (y, p) in _bad_inputs().items():
        logged.said.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                number = float(peer.measure(*peer.prepare(y, p)))
            except Exception as error:
                first = str(error).strip().splitlines() or [""]
                answers[case] = {"error": type(error).__name__, "says": first[0][:200]}
                continue
        said = [*(str(w.message) for w in caught), *logged.said]
        said = [text for text in said if text not in usual]
        if case == "clean":
            usual, said = set(said), []
        answers[case] = {
            "number": None if math.isnan(number) else number,
            "warned": said[0][:200] if said else "",
        }
    return {"answers": answers}


TASKS = {
    "cost": cost,
    "values": values,
    "intervals": intervals,
    "target of intervals": target_of_intervals,
    "bad inputs": bad_inputs,
}


def main() -> None:
    question = json.load(sys.stdin)
    peer = PEERS[question["peer"]]
    with contextlib.redirect_stdout(sys.stderr):
        answer = TASKS[question["task"]](peer, question)
        answer["version"] = importlib.metadata.version(peer.distribution)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
