"""The command line: parse, call, print. The verbs are the library's, and no number is made here."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the `calibrant` command and exit with its code.

    Exit codes: 0 done; 1 a fault in calibrant; 2 a wrong option or a file that cannot be used, with the
    cure; 3 a limit was exceeded (`--fail-above`, `--fail-on-alarm`); 4 a limit could not be shown to
    hold (`--require-below`); 130 interrupted; 141 nobody reads the output any more.
    """
    from calibrant.cli.errors import presented

    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    with presented(debug=debug):
        from calibrant._optional import require

        require("typer", caller="the calibrant command")
        from calibrant.cli.app import app

        options = [word for word in words if word != "--debug"]
        code = app(args=options, prog_name="calibrant", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
