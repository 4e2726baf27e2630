"""Logs of evaluations of a gigabyte: peak memory and time of the commands that read them.

python -m bench.logs              # some minutes, a gigabyte of disk
python -m bench.logs --reduced    # 20 MB
python -m bench.logs --clusters   # instead, rows in half a million clusters; writes no page
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import pages

SIZE, REDUCED_SIZE = 1_000_000_000, 40_000_000
BLOCK = 1_000  # small, since a process starts with the memory of the one that started it
SAMPLES = 5
COMMANDS = {
    "assess --profile llm": ("assess", "--profile", "llm"),
    "certify": ("certify",),
    "selective": ("selective",),
}


@dataclass(frozen=True)
class Log:
    """A log whose lines are about so long, with five answers of two models to each question."""

    line: int

    def write(self, path: Path, size: int) -> int:
        """Write about `size` bytes; the number of lines."""
        rng = np.random.default_rng(self.line)
        lines = written = 0
        with path.open("w", encoding="ascii") as file:
            while written < size:
                sure = np.round(0.5 + 0.5 * rng.random(BLOCK), 4)
                right = rng.random(BLOCK) < sure**2
                text = "".join(map(self._line, range(lines, lines + BLOCK), sure, right))
                written += file.write(text)
                lines += BLOCK
        return lines

    def _line(self, number: int, sure: float, right: bool) -> str:
        question = number // SAMPLES
        line = (
            f'{{"question_id": "benchmark-{question:09d}", "model": "acme/model-{"ab"[number % 2]}", '
            f'"subject": "subject {question % 57}", "confidence": {sure}, "correct": {int(right)}, '
            '"response": "'
        )
        return f'{line}{"x" * (self.line - len(line) - 3)}"}}\n'


@dataclass(frozen=True)
class Cost:
    """Peak memory in MB and processor time in seconds of a process."""

    memory: float
    seconds: float


def cost(command: list[str]) -> Cost:
    """What a command takes, by the account of the operating system."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **quiet)  # type: ignore[call-overload]
    _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 4):  # 4: nothing can be certified
        raise RuntimeError(f"{command} ended with {code}")
    return Cost(usage.ru_maxrss / 1e3, usage.ru_utime + usage.ru_stime)


def study(size: int) -> pages.Table:
    """The table of all commands on logs with short and with long lines."""
    rows = []
    start = cost([sys.executable, "-m", "calibrant", "assess", "--help"])
    for log in (Log(4_000),):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "answers.jsonl"
            lines = log.write(path, size)
            rows.append(
                _row("json.loads of each line", log, lines, path, cost(_decoding(path)), start)
            )
            for name, words in COMMANDS.items():
                command = [sys.executable, "-m", "calibrant", words[0], str(path), *words[1:]]
                rows.append(_row(f"calibrant {name}", log, lines, path, cost(command), start))
                print(*rows[-1], file=sys.stderr, flush=True)
    header = [
        "command",
        "bytes per line",
        "answers",
        "MB of log",
        "peak MB",
        "bytes per answer",
        "seconds",
    ]
    return pages.Table(
        "Memory and time",
        header,
        rows,
        [
            "Peak MB: peak resident memory of the process. Bytes per answer: how much of that exceeds "
            "`calibrant assess --help`, divided by the number of answers. Seconds: processor time.",
            "Each question has five answers, which form a cluster.",
        ],
    )


def clusters(number: int) -> str:
    """What `certify` takes for a file of rows in so many clusters of three."""
    rng = np.random.default_rng(0)
    sure = np.round(rng.random(3 * number), 4)
    right = (rng.random(sure.size) < sure).astype(int)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        with path.open("w", encoding="ascii") as file:
            file.write("question,p,y\n")
            lines = zip(range(sure.size), sure.tolist(), right.tolist(), strict=True)
            file.writelines(f"q{row % number},{p},{y}\n" for row, p, y in lines)
        words = [sys.executable, "-m", "calibrant", "certify", str(path)]
        apart, own = cost(words), cost([*words, "--cluster", "question"])
    each = (own.memory - apart.memory) * 1e6 / number
    return (
        f"{number:,} clusters of 3 rows: peak {own.memory:,.0f} MB, {each:,.0f} bytes a cluster more than "
        f"the rows alone, {own.seconds:.0f} s of one processor"
    )


def _decoding(path: Path) -> list[str]:
    code = "import json, sys\nfor line in open(sys.argv[1], 'rb'): json.loads(line)"
    return [sys.executable, "-c", code, str(path)]


def _row(name: str, log: Log, lines: int, path: Path, own: Cost, start: Cost) -> list[str]:
    size = path.stat().st_size / 1e6
    beyond = max(own.memory - start.memory, 0.0) * 1e6 / lines
    return [
        name,
        f"{log.line:,}",
        f"{lines:,}",
        f"{size:,.0f}",
        f"{own.memory:,.0f}",
        f"{beyond:.0f}",
        f"{own.seconds:.0f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reduced", action="store_true", help="a small log, for CI")
    parser.add_argument("--clusters", action="store_true", help="rows in many clusters instead")
    asked = parser.parse_args()
    reduced = asked.reduced
    if asked.clusters:
        print(clusters(5_000 if reduced else 500_000))
        return
    page = pages.Page(
        "logs",
        "Evaluation logs",
        "python -m bench.logs",
        "What it costs to read a one-gigabyte log. Each answer is kept as a few numbers, not as text.",
        [study(REDUCED_SIZE if reduced else SIZE)],
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
