"""Run the suite against the installed wheel, with every test requirement that has a wheel for this platform.

    python .ci/test_wheel.py [pytest arguments]

For musl and free-threaded Python, for which not every package has wheels. What is missing is named first. The
tests that need it are skipped, each with the name of the package (tests/absent.py); all others run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
MODULE_OF = {"vl-convert-python": "vl_convert", "scikit-learn": "sklearn"}
NEEDED = ("pytest", "pytest-xdist", "hypothesis")


def requirements(extras: dict[str, list[str]], name: str = "test") -> Iterator[str]:
    """What an extra asks for, with the extras it names."""
    for requirement in extras[name]:
        inner = re.fullmatch(r"calibrant\[(.+)\]", requirement)
        if inner is None:
            yield requirement
            continue
        for part in inner[1].split(","):
            yield from requirements(extras, part)


def has_wheel(requirement: str) -> bool:
    """Install it, without building anything from source."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--only-binary",
        ":all:",
        requirement,
    ]
    return subprocess.run(command).returncode == 0


def main() -> None:
    """Install, say what is missing, and test."""
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    absent = []
    for requirement in dict.fromkeys(requirements(extras)):
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        if has_wheel(requirement):
            continue
        if name in NEEDED:
            sys.exit(f"== no wheel of {name}, without which nothing can be tested")
        absent.append(MODULE_OF.get(name, name.replace("-", "_")))
        print(
            f"== no wheel of {name} for this platform: tests that need it are skipped", flush=True
        )
    if not absent:
        print(
            "== every test requirement has a wheel for this platform: the whole suite runs",
            flush=True,
        )
    environment = os.environ | {"CALIBRANT_ABSENT": " ".join(absent)}
    tests = ["-q", "-n", "auto", "-m", "not heavy", str(PROJECT / "tests"), *sys.argv[1:]]
    sys.exit(subprocess.run([sys.executable, "-m", "pytest", *tests], env=environment).returncode)


if __name__ == "__main__":
    main()
