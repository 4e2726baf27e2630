"""The map of the house is true: its paths exist, and no room is left out."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_every_path_of_the_table_exists():
    table = TEXT.split("## To change this, open that")[1]
    paths = re.findall(r"^\|[^|]+\| `([^`]+)` \|$", table, flags=re.MULTILINE)
    assert len(paths) >= 25
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_every_module_of_the_walk_exists():
    walk = TEXT.split("## One number")[1].split("## To change")[0]
    named = re.findall(r"`((?:cli|read|data|inference|measures)/[\w.]+)`", walk)
    assert named
    missing = [
        name
        for name in named
        if not any(
            (ROOT / "src/calibrant" / f"{name}{end}").exists() for end in ("", ".py", ".pyx")
        )
    ]
    assert missing == []


def test_every_room_is_on_the_map():
    rooms = [path.parent.name for path in (ROOT / "src/calibrant").glob("*/__init__.py")]
    assert [room for room in rooms if f"`{room}/`" not in TEXT] == []
