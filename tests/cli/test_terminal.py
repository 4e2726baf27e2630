"""The command in a real (pseudo-)terminal of 80 columns: colours, progress, questions, Ctrl-C."""

from __future__ import annotations

import os
import re
import select
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

pty = pytest.importorskip("pty")
fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

COMMAND = [sys.executable, "-m", "calibrant"]
SGR = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """A process whose three streams are one pseudo-terminal, unless `stdin` says otherwise."""

    def __init__(
        self, command: Sequence[str | Path], *, stdin: int | None = None, **variables: str
    ) -> None:
        self.ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}

        def own_terminal() -> None:
            os.setsid()
            fcntl.ioctl(1, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=theirs if stdin is None else stdin,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=own_terminal,
            env={**environment, "TERM": "xterm-256color", **variables},
        )
        os.close(theirs)
        self.seen = ""

    def read_until(self, text: str | None, seconds: float = 60.0) -> str:
        """Read until the text appears, or, for None, until the process has closed the terminal."""
        end = time.monotonic() + seconds
        while text is None or text not in self.seen:
            if not select.select([self.ours], [], [], max(end - time.monotonic(), 0))[0]:
                raise AssertionError(f"{text!r} did not appear in {self.seen!r}")
            try:
                piece = os.read(self.ours, 65536)
            except OSError:  # Linux says so when the other side is closed
                piece = b""
            if not piece:
                assert text is None, self.seen
                break
            self.seen += piece.decode()
        return self.seen

    def type(self, keys: str) -> None:
        """Press these keys."""
        os.write(self.ours, keys.encode())

    def finish(self) -> tuple[int, str]:
        """The exit code and all that was shown."""
        self.read_until(None)
        os.close(self.ours)
        return self.process.wait(60), self.seen.replace("\r\n", "\n")


QUICK = (
    "import calibrant.io.progress as p; p.QUIET_SECONDS = 1e9; "
    "from calibrant.cli import main; main()"
)
"""The command on a machine so quick that no bar is called for."""


def test_the_table_fits_and_has_colours(parquet) -> None:
    words = [sys.executable, "-c", QUICK, "assess", parquet, "--by", "model"]
    code, shown = Terminal(words).finish()
    assert code == 0, shown
    assert "\x1b[1;31mmiscalibrated" in shown
    assert "floor: noise floor" in shown
    assert "%  " not in shown  # a bar would flash by
    assert max(len(line) for line in SGR.sub("", shown).splitlines()) <= 80


def test_long_names_go_on_below_and_numbers_stay_whole(tmp_path) -> None:
    draw = np.random.default_rng(0)
    names = [f"meta-llama/Llama-3.1-{size}B-Instruct-of-a-long-name" for size in (405, 70, 8)]
    table = {"p": draw.random(90), "y": draw.integers(0, 2, 90), "model": names * 30}
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    words = [*COMMAND, "assess", path, "--by", "model"]
    piped = subprocess.run(list(map(str, words)), capture_output=True, text=True).stdout
    lines = [line.split() for line in piped.splitlines()[1:4]]
    assert {name for name, *_ in lines} == set(names)
    for width in ("60", "100"):
        code, shown = Terminal(words, COLUMNS=width).finish()
        assert code == 0
        assert all(number in shown for line in lines for number in line[1:6])
        plain = SGR.sub("", shown).splitlines()
        below = "".join(
            line[: len(line) - len(line.lstrip())] + line.split("  ")[0] for line in plain
        )
        assert all(name in below for name in names)  # piece by piece


def test_long_and_hostile_names_fit_too(tmp_path) -> None:
    draw = np.random.default_rng(0)
    names = ["a very long name of a model " * 9, "\x1b]0;owned\x07", "\u202eback", "模型" * 30]
    columns = {
        "p": draw.random(80),
        "y": draw.integers(0, 2, 80),
        "\x1b[31mgroup": np.array(names)[np.arange(80) % 4],
    }
    path = tmp_path / "x.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    words = [sys.executable, "-c", QUICK, "assess", path, "--by", "\x1b[31mgroup"]
    code, shown = Terminal(words).finish()
    assert code == 0, shown
    plain = SGR.sub("", shown)
    assert all(c.isprintable() or c == "\n" for c in plain), plain
    assert "\\x1b]0;" in plain


def test_a_bar_on_a_terminal_and_none_in_a_pipe(parquet) -> None:
    at_once = (
        "import calibrant.io.progress as p; p.QUIET_SECONDS = 0.0; "
        "from calibrant.cli import main; main()"
    )
    words = [sys.executable, "-c", at_once, "assess", parquet]
    code, shown = Terminal(words).finish()
    assert code == 0, shown
    assert re.search(r"\[#+\] 100%  400 rows  [\d.]+k? rows/s", shown)
    piped = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
    assert "rows/s" not in piped.stdout + piped.stderr
    assert "\x1b" not in piped.stdout + piped.stderr


def test_an_error_is_one_message_that_fits(tmp_path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("p,y\n40,0\n70,1\n")
    code, shown = Terminal([*COMMAND, "assess", path]).finish()
    assert code == 2
    assert shown.count("Error") == 1
    assert "`--percent`" in shown
    assert "Traceback" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_ctrl_c_leaves_nothing_half_written(tmp_path) -> None:
    reading, writing = os.pipe()
    target, temporary = tmp_path / "sketch.json", tmp_path / "temporary"
    target.write_text("before")
    temporary.mkdir()
    words = [*COMMAND, "scan", "-", "-o", target]
    terminal = Terminal(words, stdin=reading, TMPDIR=str(temporary))
    os.close(reading)
    os.write(writing, b"p,y\n0.5,1\n")
    while not list(temporary.rglob("standard input")):
        time.sleep(0.05)
    terminal.type("\x03")
    code, shown = terminal.finish()
    os.close(writing)
    assert code == 130, shown
    assert "Interrupted" in shown
    assert "Traceback" not in shown
    assert target.read_text() == "before"
    assert sorted(os.listdir(tmp_path)) == ["sketch.json", "temporary"]
    assert os.listdir(temporary) == []


def test_completion_and_the_module(tmp_path) -> None:
    environment = {
        **os.environ,
        "_CALIBRANT_COMPLETE": "complete_bash",
        "COMP_WORDS": "calibrant ass",
    }
    environment["COMP_CWORD"] = "1"
    code = "from calibrant.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == ["assess"]
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("calibrant 0.")


def test_a_reader_that_has_seen_enough(parquet) -> None:
    for words in (
        ["assess", parquet, "--by", "model,day", "--json"],
        ["assess", parquet],
        ["--help"],
    ):
        done = subprocess.Popen(
            list(map(str, [*COMMAND, *words])),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert done.stdout is not None
        done.stdout.close()
        done.stdout = None
        said = done.communicate(timeout=60)[1]
        assert (done.returncode, "Error" in said, "rror:" in said) == (141, False, False), said
