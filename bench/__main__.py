"""Every page of evidence, one command after the other.

python -m bench              # under three hours
python -m bench --reduced    # the reduced forms, for CI: under ten minutes
python -m bench --index      # the front page alone

A promise that a page finds broken does not keep the others from being made; it is named at the end.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
import sys
from pathlib import Path

from bench import pages

WHOLE = (
    "environments",
    "paper",
    "peers",
    "measures",
    "coverage",
    "coverage.profiles",
    "bands",
    "certify",
    "groups",
    "speed",
    "scans",
    "repair",
    "peers.maps",
    "peers.group_maps",
)
REDUCED = (
    "paper",
    "peers",
    "measures",
    "coverage",
    "bands",
    "certify",
    "groups",
    "speed",
    "scans",
    "repair",
)

ORDER = ("paper", "peers", "measures", "coverage", "profiles", "bands", "certify", "groups", "speed", "scans",
         "repair", "maps", "group-maps")  # fmt: skip
"""Pages on the front page."""


def entry(path: Path) -> str:
    """Title, lead and date, as the page itself gives them."""
    title, lead, made = path.read_text(encoding="utf-8").split("\n\n")[:3]
    day = re.search(r"on (\d{4}-\d{2}-\d{2})", made)
    return f"- [{title.lstrip('# ')}]({path.name}): {lead} ({day.group(1) if day else 'undated'})"


def minutes(path: Path) -> float:
    """How long the command of a page took; none is given where it went on from a run before."""
    took = re.search(r"` in ([\d.]+) minutes ", path.read_text(encoding="utf-8"))
    return float(took.group(1)) if took else math.nan


def index() -> None:
    """The front page, from the pages that are there."""
    paths = [pages.EVIDENCE / f"{name}.md" for name in ORDER]
    there = [path for path in paths if path.is_file()]
    entries = "\n".join(map(entry, there))
    told = [took for took in map(minutes, there) if not math.isnan(took)]
    page = pages.Page(
        "index",
        "Evidence",
        "make evidence",
        f"Each page was written by a command in the repository that anyone can rerun. The {len(told)} "
        f"pages that report a time took {sum(told):.0f} minutes in all.",
        [pages.Text("Pages", entries)],
        timed=False,
    )
    print(page.write(pages.EVIDENCE).read_text(encoding="utf-8"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="the reduced forms, for CI")
    parser.add_argument("--index", action="store_true", help="the front page alone")
    given = parser.parse_args()
    reduced, broken = given.reduced, []
    for page in () if given.index else REDUCED if reduced else WHOLE:
        command = [sys.executable, "-m", f"bench.{page}", *(["--reduced"] if reduced else [])]
        print(f"== {' '.join(command[1:])}", flush=True)
        if subprocess.run(command, check=False).returncode:
            broken.append(page)
    if not reduced:
        index()
    for page in broken:
        print(f"NOT KEPT: see what python -m bench.{page} says", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
