"""Command line: every module here that registers a verb with `verb` is part of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the `calibrant` command, which exits with its code.

    Exit codes: 0 done; 1 a fault in calibrant; 2 a wrong option or a file that cannot be used; 3 a limit
    was exceeded (`--fail-above`, `--fail-on-alarm`); 4 a limit could not be shown to hold
    (`--require-below`); 130 interrupted; 141 nobody reads the output any more.
    """
    from calibrant.cli.errors import INTERRUPTED, reported

    words = list(sys.argv[1:] if arguments is None else arguments)
    with reported(debug="--debug" in words):
        from calibrant._optional import require

        require("typer", caller="the calibrant command")
        from calibrant.cli.options import app, load_verbs

        load_verbs()
        options = [word for word in words if word != "--debug"]
        code = app(args=options, prog_name="calibrant", standalone_mode=False)
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
