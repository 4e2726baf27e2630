"""Expected errors: argument, row and file as data, and what the message must name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import calibrant as cal
from calibrant.errors import show_value

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
    holds: str | tuple[str, ...] = (),
    kind: type[BaseException] = cal.InputError,
) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an error with these fields; `seen`, `option` and `holds` stand in its text."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    text = str(error)
    if argument is not ANYTHING:
        assert error.argument == argument, text
    if row is not ANYTHING:
        assert error.row == row, text
    if file is not ANYTHING:
        assert os.path.basename(error.file or "") == file, text
    parts = [holds] if isinstance(holds, str) else list(holds)
    parts += [show_value(seen)] if seen is not ANYTHING else []
    parts += [option] if option is not None else []
    parts += [f"line {line}"] if line not in (ANYTHING, None) else []
    parts += [repr(column)] if column not in (ANYTHING, None) else []
    for part in parts:
        assert part in text, (part, text)
    del caught  # its traceback holds this frame: a circle that would keep files and sockets open
