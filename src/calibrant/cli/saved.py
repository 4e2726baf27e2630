"""Sketches that were saved: read, rolled up to the groups that are wanted, and added up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.parts import FILE, Given, Key, groups_of, short_paths, sketch_parts
from calibrant.cli.text import printable
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.data.wire import load
from calibrant.errors import InputError, MergeError

__all__ = ["given_sketches"]


def given_sketches(
    paths: list[str], reading: Reading, grouping: Grouping, measuring: Measuring
) -> Given:
    """The parts of files that hold sketches, added up group by group."""
    if reading != Reading() or measuring.cluster is not None:
        raise InputError(
            "a sketch already holds predictions, outcomes and weights; leave out the options that "
            "say how to read rows."
        )
    found: dict[Key, Sketch] = {}
    groupings: dict[tuple[str, ...], str] = {}
    for path, name in zip(paths, short_paths(paths), strict=True):
        sketches = _rolled_up(load(path), path, grouping.columns)
        groupings.setdefault(sketches.by if isinstance(sketches, Sketches) else (), path)
        if len(groupings) > 1:
            raise _different_groups(groupings)
        for group, sketch in groups_of(sketches).items():
            key = ((FILE, name), *group) if grouping.per_file else group
            try:
                found[key] = found[key] + sketch if key in found else sketch
            except MergeError as error:
                raise InputError(
                    f"sketches add up on one scale and one grid; {printable(path, 200)} has another "
                    "than those before it. Scan the rows again with the same `--scale`."
                ) from error
    return Given(sketch_parts(found), short_paths(paths))


def _rolled_up(sketches: Sketch | Sketches, path: str, columns: Sequence[str]) -> Sketch | Sketches:
    """The sketches by these columns alone, or as they are."""
    if not columns:
        return sketches
    kept = sketches.by if isinstance(sketches, Sketches) else ()
    if not set(columns) <= set(kept):
        groups = f"grouped by {', '.join(map(printable, kept))}" if kept else "without groups"
        raise InputError(
            f"`--by` chooses among the columns that a sketch is grouped by; {printable(path, 200)} is "
            f"{groups}. Scan the rows again with `--by {','.join(map(printable, columns))}`."
        )
    assert isinstance(sketches, Sketches)
    return sketches.roll_up(*columns)


def _different_groups(groupings: Mapping[tuple[str, ...], str]) -> InputError:
    """What to say of sketches whose groups do not mean the same."""
    each = "; ".join(
        f"{printable(path, 200)} is "
        + (f"grouped by {', '.join(map(printable, by))}" if by else "without groups")
        for by, path in groupings.items()
    )
    common = [name for name in next(iter(groupings)) if all(name in by for by in groupings)]
    cure = (
        f"`--by {','.join(map(printable, common))}` keeps what they have in common"
        if common
        else "Scan the rows again with the same `--by`"
    )
    return InputError(
        f"sketches add up where they are grouped by the same columns; {each}. {cure}."
    )
