"""Whatever goes wrong, as one readable message and an exit code; the traceback only on request."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from calibrant.cli.text import in_command_words, note
from calibrant.cli.usage import is_usage_error, usage_message
from calibrant.errors import CalibrationError

__all__ = [
    "FAULT",
    "INTERRUPTED",
    "INVALID",
    "LIMIT_EXCEEDED",
    "LIMIT_NOT_SHOWN",
    "NO_READER",
    "Interrupted",
    "NoReader",
    "presented",
]

FAULT = 1
INVALID = 2
LIMIT_EXCEEDED = 3
LIMIT_NOT_SHOWN = 4
INTERRUPTED = 130
NO_READER = 141
"""128 + SIGPIPE, as the shell says of other tools whose reader has gone."""


class Interrupted(Exception):
    """Ctrl-C inside a verb, in a form that typer passes on."""


class NoReader(Exception):
    """Whoever read standard output has seen enough (`| head`), in a form that typer passes on."""


@contextmanager
def presented(*, debug: bool) -> Iterator[None]:
    """Turn exceptions into a message on standard error and an exit code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _as_note
            warnings.simplefilter("default", UserWarning)
            yield
    except (KeyboardInterrupt, Interrupted):
        _say("Interrupted; nothing was left half-written.", debug=debug)
        sys.exit(INTERRUPTED)
    except NoReader:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
        sys.exit(NO_READER)
    except SystemExit as ended:
        # Typer found the pipe closed while it printed help, and took that for a failure.
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            sys.exit(NO_READER)
        raise ended
    except (CalibrationError, OSError, MemoryError) as error:
        _say(f"Error: {_sentence(error)}", debug=debug)
        sys.exit(INVALID)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            sys.exit(INVALID)
        if type(error).__name__ == "Abort":  # Ctrl-C at a question
            _say("Interrupted; nothing was left half-written.", debug=debug)
            sys.exit(INTERRUPTED)
        if is_usage_error(error):
            _say(f"Error: {usage_message(error)}", debug=debug)
            sys.exit(INVALID)
        _say(
            f"Error: calibrant failed unexpectedly ({type(error).__name__}: {error}). This is a fault "
            "in calibrant, not in the file; `--debug` shows where.",
            debug=debug,
        )
        sys.exit(FAULT)


def _as_note(message: Warning | str, *_: object, **__: object) -> None:
    note(f"Note: {in_command_words(str(message), {})}")


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and not isinstance(error, CalibrationError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this file."
    return in_command_words(str(error), {})


def _say(message: str, *, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exc()
    note(message)
