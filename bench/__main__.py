"""Every page of evidence, one command after the other.

python -m bench              # under three hours
python -m bench --reduced    # the reduced forms, for CI: under ten minutes

A promise that a page finds broken does not keep the others from being made; it is named at the end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

WHOLE = (
    "environments",
    "paper",
    "peers",
    "measures",
    "coverage",
    "coverage.profiles",
    "certify",
    "groups",
    "speed",
    "scans",
    "repair",
    "peers.maps",
    "index",
)
REDUCED = (
    "paper",
    "peers",
    "measures",
    "coverage",
    "certify",
    "groups",
    "speed",
    "scans",
    "repair",
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="the reduced forms, for CI")
    reduced = parser.parse_args().reduced
    broken = []
    for page in REDUCED if reduced else WHOLE:
        command = [sys.executable, "-m", f"bench.{page}", *(["--reduced"] if reduced else [])]
        print(f"== {' '.join(command[1:])}", flush=True)
        if subprocess.run(command, check=False).returncode:
            broken.append(page)
    for page in broken:
        print(f"NOT KEPT: see what python -m bench.{page} says", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
