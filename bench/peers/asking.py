"""Ask a peer something in its own environment."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from bench.environments import make
from bench.peers.adapters import PEERS

WORKER = Path(__file__).with_name("worker.py")


class NoAnswer(Exception):
    """The peer failed or took too long; the message says which."""


def ask(peer: str, task: str, *, limit: float = 600.0, **question: Any) -> dict[str, Any]:
    """The peer's answer; one process a question, so that its memory is its own."""
    try:
        python = make(PEERS[peer].environment)
    except (subprocess.CalledProcessError, OSError):
        raise NoAnswer("its environment could not be made") from None
    try:
        done = subprocess.run(
            [str(python), str(WORKER)],
            input=json.dumps({"peer": peer, "task": task, **question}),
            capture_output=True,
            text=True,
            timeout=limit,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"no answer in {limit:.0f} s") from None
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise NoAnswer(last[:160])
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
