"""What was refused, by its fields: tests of behaviour do not read the words of a message."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import calibrant as cal
from calibrant.errors import NOTHING, PYTHON, Message, show_value

ANYTHING: Any = object()


def data_of(message: Message) -> str:
    """All that a message carries as data, without its words: argument, what was seen, where, values."""
    seen = [] if message.seen is NOTHING else [show_value(message.seen)]
    of_cures = (value for cure in message.cures for value in cure.values.values())
    values = map(PYTHON.show, [*message.values.values(), *of_cures])
    return " | ".join([message.argument or "", *seen, str(message.where), *values])


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
    holds: str | tuple[str, ...] = (),
    kind: type[Message] = cal.InputError,
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an error with these fields; `option` is one that a cure names, `holds` is in its data."""
    wanted = {"argument": argument, "seen": seen, "row": row, "line": line, "column": column}
    wanted |= {"file": file}
    with pytest.raises(kind) as caught:
        yield caught
    _check(caught.value, wanted, option, (holds,) if isinstance(holds, str) else holds)
    del caught  # its traceback holds this frame: a circle that would keep files and sockets open


def _check(error: Any, wanted: dict[str, Any], option: str | None, holds: tuple[str, ...]) -> None:
    where = error.where
    name = os.path.basename(where.file) if where.file else None
    present = {"argument": error.argument, "seen": error.seen, "row": where.row, "line": where.line}
    present |= {"column": where.column, "file": name}
    for field, value in wanted.items():
        assert value is ANYTHING or present[field] == value, (field, present[field], str(error))
    if option is not None:
        named = [value for cure in error.cures for value in cure.values.values()]
        assert option in [getattr(value, "name", None) for value in named], str(error)
    for part in holds:
        assert part in data_of(error), (part, data_of(error), str(error))
