"""One virtual environment for each group of peers, at pinned versions.

python -m bench.environments            # all of them
python -m bench.environments relplot    # one
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE / ".envs"
REQUIREMENTS = HERE / "peers" / "requirements"
OWN = "calibrant"


def names() -> list[str]:
    return sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def pinned(*packages: str) -> dict[str, str]:
    """The versions of these packages in the environments of the peers."""
    lines = [line for name in names() for line in requirements_of(name)]
    every = dict(line.split("==") for line in lines)
    return {package: every[package] for package in packages}


def requirements_of(name: str) -> list[str]:
    return (REQUIREMENTS / f"{name}.txt").read_text().split()


def python_of(name: str) -> Path:
    """The interpreter of an environment; that of calibrant is the one running this."""
    if name == OWN:
        return Path(sys.executable)
    scripts = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    return FOLDER / name / scripts


def make(name: str) -> Path:
    """Create an environment unless it is there with these very requirements."""
    if name == OWN:
        return python_of(name)
    wanted = (REQUIREMENTS / f"{name}.txt").read_text()
    stamp = FOLDER / name / ".installed"
    if stamp.is_file() and stamp.read_text() == wanted:
        return python_of(name)
    venv.create(FOLDER / name, with_pip=True, clear=True)
    install = [str(python_of(name)), "-m", "pip", "install", "--quiet"]
    subprocess.run([*install, "--upgrade", "pip"], check=True)
    requirements = wanted.split()
    # torch first: what depends on it then accepts the build that is there.
    for pinned in [r for r in requirements if r.startswith("torch==")]:
        subprocess.run([*install, pinned], check=True)
    subprocess.run([*install, *requirements], check=True)
    stamp.write_text(wanted)
    return python_of(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    for name in parser.parse_args().names or names():
        print(f"{name}: {make(name)}")


if __name__ == "__main__":
    main()
