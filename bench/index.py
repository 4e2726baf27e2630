"""The front page of the Evidence section, made from the pages that are there.

python -m bench.index
"""

from __future__ import annotations

import re
from pathlib import Path

from bench import pages

ORDER = (
    "paper", "peers", "coverage", "speed", "scale", "scans", "gpu", "multiclass", "diagrams", "report",
    "command_line", "measures", "repair", "data",
)  # fmt: skip


def entry(path: Path) -> str:
    """Title, lead and date, as the page itself gives them."""
    title, lead, made = path.read_text(encoding="utf-8").split("\n\n")[:3]
    day = re.search(r"on (\d{4}-\d{2}-\d{2})", made)
    return f"- [{title.lstrip('# ')}]({path.name}): {lead} ({day.group(1) if day else 'undated'})"


def main() -> None:
    there = [pages.EVIDENCE / f"{name}.md" for name in ORDER]
    entries = "\n".join(entry(path) for path in there if path.is_file())
    page = pages.Page(
        "index",
        "Evidence",
        "make evidence",
        "Claims that anyone can rerun: each page was written by a command in the repository.",
        [pages.Text("Pages", entries)],
    )
    print(page.write(pages.EVIDENCE).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
