"""The map of the house is true: its paths exist, and no room is left out."""

import inspect
import re
from pathlib import Path

import calibrant as cal

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_every_module_of_the_walk_exists():
    walk = TEXT.split("## One number")[1]
    named = re.findall(r"`((?:cli|io|data|inference|measures)/[\w.]+)`", walk)
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


def test_no_verb_has_more_than_ten_arguments():
    """Besides those that say what is read: `data`, `scale` and the reading options in `**options`."""
    many = {}
    for name in cal.__all__:
        value = getattr(cal, name)
        if not callable(value):
            continue
        parameters = inspect.signature(value).parameters
        own = [
            key
            for key, one in parameters.items()
            if one.kind is not one.VAR_KEYWORD and key not in ("data", "scale")
        ]
        if len(own) > 10:
            many[name] = own
    assert many == {}
