"""Errors and warnings of the library in the words of the command line, and exit codes."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from calibrant.cli.output import STANDARD_INPUT, note
from calibrant.errors import CalibrantError

__all__ = [
    "COLUMN_OF",
    "INTERRUPTED",
    "LIMIT_EXCEEDED",
    "LIMIT_NOT_SHOWN",
    "in_command_words",
    "reported",
]

FAULT, INVALID, LIMIT_EXCEEDED, LIMIT_NOT_SHOWN, INTERRUPTED = 1, 2, 3, 4, 130
NO_READER = 141
"""128 + SIGPIPE, as the shell says of other tools whose reader has gone."""

NAMES = {
    "data": "FILES",
    "path": "FILES",
    "y_true": "--label",
    "correct": "--label",
    "y": "--label",
    "columns": "--column",
    "forecasts": "--quantile",
    "y_prob": "--prob",
    "y_probs": "--prob",
    "probability": "--prob",
    "sample_weight": "--weight",
    "labels": "--outcomes",
    "question": "--cluster",
    "format": "--log",
    "limit": "--max-groups",
    "recalibrator": "--method",
    "matrix": "--method structured-matrix",
    "calibrant.confidence": "--multiclass confidence",
    "calibrant.save": "calibrant scan",
    "calibrant.recalibration.TemperatureScaling": "--method temperature",
    "calibrant.recalibration.StructuredScaling": "--method structured",
    "calibrant.io.answers.read_answers": "--log jsonl",
}
"""Names of arguments and functions on the command line, where they are not those of Python."""
COLUMN_OF: dict[str, str] = {}
"""Columns that arguments were read from, while a verb runs: messages name these."""


def in_command_words(message: str) -> str:
    """A message of the library with the names of the command line in backticks.

    Examples
    --------
    >>> in_command_words("`y_prob` must be between 0 and 1. If these are logits, pass `from_logits=True`.")
    '`--prob` must be between 0 and 1. If these are logits, pass `--from-logits`.'
    """
    import typer

    from calibrant.cli.options import app

    commands = getattr(typer.main.get_command(app), "commands", {}).values()
    known = {one.name: one.opts[0] for command in commands for one in command.params}
    verbs = {f"calibrant.{command.name}": f"calibrant {command.name}" for command in commands}
    names = {**known, **verbs, **NAMES}

    def renamed(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if value is None and name in COLUMN_OF:
            return f"column {COLUMN_OF[name]!r}"
        if name not in names:
            return match[0]
        if value is None or value == "True":
            return f"`{names[name]}`"
        return f"`{names[name]} {value.strip(chr(34) + chr(39)) or 'VALUE'}`"

    for path, name in STANDARD_INPUT.items():
        message = message.replace(path, name)
    return re.sub(r"`([A-Za-z_.]+)(?:\(\)|=([^`]*))?`", renamed, message)


@contextmanager
def reported(*, debug: bool) -> Iterator[None]:
    """Turn exceptions into one message on standard error and an exit code, warnings into notes."""
    COLUMN_OF.clear()
    seen: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = in_command_words(str(message))
        if text not in seen:
            note(f"Note: {text}")
        seen.add(text)

    def stop(message: str, code: int) -> None:
        if debug:
            import traceback

            traceback.print_exc()
        note(message)
        sys.exit(code)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            warnings.simplefilter("default", UserWarning)
            yield
    except SystemExit:
        # Typer meets a pipe that nobody reads any more with this wrapper.
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # for the flush at the end
            sys.exit(NO_READER)
        raise
    except CalibrantError as error:
        stop(f"Error: {in_command_words(str(error))}", INVALID)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        stop(f"Error: {in_command_words(where + (error.strerror or str(error)))}.", INVALID)
    except MemoryError:
        stop("Error: there is not enough memory for this file.", INVALID)
    except BaseException as error:
        kind = type(error).__name__
        if kind in ("Abort", "KeyboardInterrupt"):
            stop("Interrupted; nothing was left half-written.", INTERRUPTED)
        if kind == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
            sys.exit(INVALID)
        if hasattr(error, "format_message"):  # a word of the command that typer refuses
            stop(f"Error: {_usage(error)}", INVALID)
        stop(
            f"Error: calibrant failed unexpectedly ({kind}: {error}). This is a fault in calibrant, not "
            "in the file; `--debug` shows where.",
            FAULT,
        )


MEANT = {
    "alpha": "`--confidence` is 1 minus it.",
    "group": "Did you mean `--by`?",
    "groups": "Did you mean `--by`?",
    "n_bins": "Binned errors are `calibrant.measures.expected_calibration_error` in Python.",
    "bins": "Binned errors are `calibrant.measures.expected_calibration_error` in Python.",
}
"""What to do about options that no verb has, by their names in Python."""


def _option_elsewhere(error: Any) -> str:
    """Place of an option that this verb does not have: a name of its own, or another verb's."""
    from calibrant.cli.options import app

    if not hasattr(error, "possibilities"):  # what else is wrong with an option
        return ""
    option = str(error.option_name)
    name = option.lstrip("-").replace("-", "_")
    if name in MEANT:
        return MEANT[name]
    import typer

    commands = getattr(typer.main.get_command(app), "commands", {}).values()
    verbs = [
        command.name
        for command in commands
        if any(option in parameter.opts for parameter in command.params)
    ]
    return f"It is an option of `{'`, `'.join(verbs)}`." if verbs else ""


def _usage(error: Any) -> str:
    """Fault in the words of the command, on one line."""
    if elsewhere := _option_elsewhere(error):
        return f"No such option: {error.option_name}. {elsewhere}{_help_of(error)}"
    text = re.sub(r"Value error, |, unable to parse.*", "", error.format_message())
    text = " ".join(text.replace("Input should", "it must").split()).rstrip(".?")
    end = "?" if "Did you mean" in text else "."
    return f"{text}{end}{_help_of(error)}"


def _help_of(error: Any) -> str:
    """Place of the help of the verb that was typed."""
    context = getattr(error, "ctx", None)
    return f" See `{context.command_path} --help`." if context else ""
