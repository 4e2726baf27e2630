"""States that somebody edited and sealed again: what they say must be possible, or they are refused.

A checksum tells damage, not intent. Each value of a file in JSON is replaced by others, lists lose an
entry or are doubled, and the file gets the checksum of that. It may be refused, or be used: a map gives
probabilities, a monitor goes on, a sketch is measured.
"""

from __future__ import annotations

import copy
import json
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.fuzz.file_kinds import KINDS, MAPS

import calibrant as cal
from calibrant import _files
from calibrant.errors import CalibrantError

__all__ = ["FORGED", "try_forgeries"]

WRONG = [np.nan, np.inf, -1, 0, 1e300, -1e300, 1e-300, 8.3, 2**70, "x", None, True, [], {}]
LOSES, DOUBLES = object(), object()
FORGED = [name for name, kind in KINDS.items() if kind.checked and name.endswith(".json")]
GRID = np.linspace(0.0, 1.0, 101)
CLASSES = np.stack([GRID / 2, (1 - GRID) / 2, np.full(GRID.size, 0.5)], axis=1)


def try_forgeries(most: int | None = None, seed: int = 0) -> tuple[str, list[str]]:
    """Forge each kind in every way, or at most so often; how it ended, and what must not have happened."""
    counts: Counter[str] = Counter()
    failures = []
    for name in FORGED:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            KINDS[name].write(path)
            document = json.loads(path.read_text())
            del document["checksum"]
            changes = [(place, wrong) for place in places(document) for wrong in changes_of(place)]
            if most is not None and len(changes) > most:
                picks = np.random.default_rng(seed).choice(len(changes), most, replace=False)
                changes = [changes[pick] for pick in picks]
            for place, wrong in changes:
                try:
                    path.write_text(forged(document, place, wrong))
                    with warnings.catch_warnings(action="ignore"):
                        use(name, path)
                    counts["used"] += 1
                except CalibrantError:
                    counts["refused"] += 1
                except Exception as error:
                    said = f"{type(error).__name__}: {error}"[:200]
                    failures.append(f"{name}, {place} made {wrong!r}: {said}")
    total = sum(counts.values()) + len(failures)
    return f"{total:,} forged, {counts['refused']:,} refused; {len(failures)} failures", failures


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a document; of long lists, the first entries and the last."""
    if place:
        yield place
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from places(inside, (*place, key))
    elif isinstance(value, list):
        for k in {0, 1, len(value) - 1} & set(range(len(value))):
            yield from places(value[k], (*place, k))


def changes_of(place: tuple[Any, ...]) -> list[Any]:
    return [] if place[0] in ("format", "version") else [*WRONG, LOSES, DOUBLES]


def forged(document: dict[str, Any], place: tuple[Any, ...], wrong: Any) -> str:
    """The document with another value there, and the checksum of that."""
    changed = copy.deepcopy(document)
    inside: Any = changed
    for key in place[:-1]:
        inside = inside[key]
    if wrong is LOSES:
        del inside[place[-1]]
    elif wrong is DOUBLES:
        value = inside[place[-1]]
        inside[place[-1]] = value * 2 if isinstance(value, list | str) else value
    else:
        inside[place[-1]] = wrong
    return _files.dump_versioned(changed.pop("format"), changed.pop("version"), changed)


def use(name: str, path: Path) -> None:
    """Do with a file what it is for."""
    if name.startswith("map-"):
        loaded = cal.load_recalibrator(path)
        rows = GRID if name.removeprefix("map-").removesuffix(".json") in MAPS else CLASSES
        mapped = np.asarray(loaded.transform(rows))
        assert np.all((mapped >= 0.0) & (mapped <= 1.0)), "what is no probability"
    elif name == "monitor.json":
        look = cal.Monitor.load(path).update([0, 1], [0.2, 0.7])
        assert np.isfinite(look.e_value), "what is no e-value"
        assert 0.0 < look.p_value <= 1.0, "what is no p-value"
    else:
        sketches = cal.load(path)
        for sketch in sketches.values() if isinstance(sketches, cal.Sketches) else [sketches]:
            assert 0.0 <= cal.smooth_ece(sketch) <= 1.0, "what is no error"
