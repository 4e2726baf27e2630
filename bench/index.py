"""The front page of the Evidence section, made from the pages that are there.

python -m bench.index
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from bench import pages

ORDER = (
    "paper",
    "peers",
    "measures",
    "coverage",
    "profiles",
    "certify",
    "groups",
    "speed",
    "scans",
    "repair",
    "maps",
)


def entry(path: Path) -> str:
    """Title, lead and date, as the page itself gives them."""
    title, lead, made = path.read_text(encoding="utf-8").split("\n\n")[:3]
    day = re.search(r"on (\d{4}-\d{2}-\d{2})", made)
    return f"- [{title.lstrip('# ')}]({path.name}): {lead} ({day.group(1) if day else 'undated'})"


def minutes(path: Path) -> float:
    """How long the command of a page took; none is given where it went on from a run before."""
    took = re.search(r"` in ([\d.]+) minutes ", path.read_text(encoding="utf-8"))
    return float(took.group(1)) if took else math.nan


def main() -> None:
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


if __name__ == "__main__":
    main()
