"""What was refused, by its fields: tests of behaviour do not read the words of a message."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import calibrant as cal

ANYTHING: Any = object()


@contextmanager
def refused(
    argument: Any = ANYTHING,
    seen: Any = ANYTHING,
    *,
    row: Any = ANYTHING,
    line: Any = ANYTHING,
    column: Any = ANYTHING,
    file: Any = ANYTHING,
    option: str | None = None,
) -> Iterator[None]:
    """Expect an InputError with these fields; `option` is one that a cure names."""
    with pytest.raises(cal.InputError) as caught:
        yield
    error = caught.value
    where = error.where
    name = os.path.basename(where.file) if where.file else None
    wanted = {"argument": argument, "seen": seen, "row": row, "line": line, "column": column}
    wanted |= {"file": file}
    present = {"argument": error.argument, "seen": error.seen, "row": where.row, "line": where.line}
    present |= {"column": where.column, "file": name}
    for field, value in wanted.items():
        assert value is ANYTHING or present[field] == value, (field, present[field], str(error))
    if option is not None:
        named = [value for cure in error.cures for value in cure.values.values()]
        assert option in [getattr(value, "name", None) for value in named], str(error)
