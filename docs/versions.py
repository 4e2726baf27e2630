"""Index of the sites of several versions: the list that the selector in their heads reads, and a front page.

    python docs/versions.py public

`public` has a folder for each, such as dev and 0.1.0, built with CALIBRANT_VERSIONS=mike. The newest release
is "latest", and the front page leads to it; without one, to the development version.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

PAGE = '<!doctype html><meta http-equiv="refresh" content="0; url={0}/"><a href="{0}/">{0}</a>\n'


def index(public: Path) -> list[dict[str, object]]:
    """Versions in `public`, the newest release first, written to versions.json and index.html."""
    names = sorted(
        (folder.parent.name for folder in public.glob("*/index.html")),
        key=lambda name: [int(part) for part in re.findall(r"\d+", name)],
        reverse=True,
    )
    versions = [{"version": name, "title": name, "aliases": []} for name in names]
    versions[0]["aliases"] = ["latest"]
    (public / "versions.json").write_text(json.dumps(versions, indent=1) + "\n", encoding="utf-8")
    (public / "index.html").write_text(PAGE.format(names[0]), encoding="utf-8")
    return versions


if __name__ == "__main__":
    print(", ".join(str(one["version"]) for one in index(Path(sys.argv[1]))))
