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
        from calibrant.cli import measure_options, prepare_options  # noqa: F401  # which join the app
        from calibrant.cli.app import app
        from calibrant.cli.examples import EXAMPLES

        _require_verb(words, list(EXAMPLES))

        options = [word for word in words if word != "--debug"]
        code = app(args=options, prog_name="calibrant", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)


def _require_verb(words: Sequence[str], verbs: Sequence[str]) -> None:
    """Refuse a verb that there is not, with the nearest that there is."""
    import difflib

    from calibrant.errors import InputError

    verb = next((word for word in words if not word.startswith("-")), None)
    if verb is None or verb in verbs:
        return
    near = difflib.get_close_matches(verb, verbs, n=1)
    raise InputError(
        "there is no command {verb}",
        verb=repr(verb),
        cure="Did you mean {near}?" if near else "`calibrant --help` lists all.",
        near=f"`calibrant {near[0]}`" if near else "",
    )
