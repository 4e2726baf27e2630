"""Whatever goes wrong, as one readable message and an exit code; the traceback only on request."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from calibrant.cli.output import note, without_spool
from calibrant.errors import CalibrantError, CalibrantWarning

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
    "read_from",
    "rendered",
]

FAULT = 1
INVALID = 2
LIMIT_EXCEEDED = 3
LIMIT_NOT_SHOWN = 4
INTERRUPTED = 130
NO_READER = 141
"""128 + SIGPIPE, as the shell says of other tools whose reader has gone."""

SAME_NAMES = (
    *(
        "apply",
        "attributes",
        "axes",
        "batch",
        "by",
        "checkpoint",
        "climatology",
        "cluster",
        "confidence",
        "correction",
        "coverage",
        "cuts",
    ),
    *(
        "details",
        "dialect",
        "fail_above",
        "filter",
        "form",
        "grades",
        "hosmer_lemeshow",
        "json",
        "kind",
        "layout",
        "level",
        "log",
    ),
    *(
        "margin",
        "max_groups",
        "method",
        "nodes",
        "on",
        "output",
        "picture",
        "profile",
        "require_below",
        "risk",
    ),
    *(
        "scale",
        "score_range",
        "seed",
        "sep",
        "side",
        "sort",
        "state",
        "theme",
        "threads",
        "thresholds",
        "title",
        "words",
    ),
)
OPTIONS = {
    "data": "FILES",
    "path": "FILES",
    "y_true": "--label",
    "y_prob": "--prob",
    "sample_weight": "--weight",
    "probability": "--prob",
    "correct": "--label",
    "question": "--cluster",
    "format": "--log",
    "pos_label": "--pos-label",
    "labels": "--outcomes",
    "from_logits": "--from-logits",
    "from_logprobs": "--from-logprobs",
    "percent": "--percent",
    "on_invalid": "--on-invalid",
    "multiclass": "--multiclass",
    "classes": "--classes",
    "per_file": "--per-file",
    "limit": "--max-groups",
    "matrix": "--method structured-matrix",
    **{name: f"--{name.replace('_', '-')}" for name in SAME_NAMES},
}
"""What each argument of the library is called on the command line."""
FUNCTIONS = {
    "confidence": "--multiclass confidence",
    "scan": "calibrant scan",
    "assess": "calibrant assess",
    "save": "calibrant scan",
    "recalibrate": "calibrant recalibrate",
    "recalibration.TemperatureScaling": "--method temperature",
    "recalibration.StructuredScaling": "--method structured",
    "datasets.names": "calibrant datasets",
    "read.answers.read_answers": "--log jsonl",
}
_columns: dict[str, str] = {}
"""The columns that the arguments are read from, while a verb runs."""
_told: set[str] = set()
"""Warnings that were shown, while a verb runs: each once, however often rows are looked at."""


class Interrupted(Exception):
    """Ctrl-C inside a verb, in a form that typer passes on."""


class NoReader(Exception):
    """Whoever read standard output has seen enough (`| head`), in a form that typer passes on."""


def read_from(columns: Mapping[str, str | None]) -> None:
    """Let messages name these columns instead of the arguments that they were read into."""
    _columns.clear()
    _columns.update({name: column for name, column in columns.items() if column is not None})


def rendered(message: CalibrantError | CalibrantWarning) -> str:
    """A message of the library with the names of the command line."""

    def typed(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if name.removeprefix("calibrant.") in FUNCTIONS and value is None:
            return f"`{FUNCTIONS[name.removeprefix('calibrant.')]}`"
        if value is None and name in _columns:
            return f"column {_columns[name]!r}"
        option = OPTIONS.get(name, name)
        if value is None or value == "True":
            return f"`{option}`"
        given = value.strip("\"'") or "VALUE"
        return f"`{option} {given}`"

    return without_spool(re.sub(r"`([A-Za-z_.]+)(?:=([^`]*))?`", typed, str(message)))


@contextmanager
def presented(*, debug: bool) -> Iterator[None]:
    """Turn exceptions into a message on standard error and an exit code."""
    _columns.clear()
    _told.clear()
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
    except (CalibrantError, OSError, MemoryError) as error:
        _say(f"Error: {_sentence(error)}", debug=debug)
        sys.exit(INVALID)
    except Exception as error:
        _exit_for_foreign(error, debug=debug)


def _exit_for_foreign(error: Exception, *, debug: bool) -> None:
    """Exit for what typer raised over the words of the command, or for a fault of ours."""
    kind = type(error).__name__
    if kind == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        sys.exit(INVALID)
    if kind == "Abort":  # Ctrl-C at a question
        _say("Interrupted; nothing was left half-written.", debug=debug)
        sys.exit(INTERRUPTED)
    if hasattr(error, "ctx"):
        _say(f"Error: {_usage(error)}", debug=debug)
        sys.exit(INVALID)
    _say(
        f"Error: calibrant failed unexpectedly ({kind}: {error}). This is a fault in calibrant, not in "
        "the file; `--debug` shows where.",
        debug=debug,
    )
    sys.exit(FAULT)


def _usage(error: Any) -> str:
    """What is wrong with the words of the command, from what the exception of typer carries."""
    name = getattr(error, "option_name", None)
    parameter = getattr(error, "param", None)
    if hasattr(error, "possibilities"):
        nearest = sorted(error.possibilities or [])
        cure = f" Did you mean `{nearest[0]}`?" if nearest else ""
        said = f"there is no option `{name}`.{cure}"
    elif name is not None:
        parameters = error.ctx.command.params if error.ctx is not None else []
        takes = next((p for p in parameters if name in p.opts), None)
        is_flag = takes is not None and getattr(takes, "is_flag", False)
        said = f"`{name}` takes no value." if is_flag else f"`{name}` needs a value."
    elif parameter is not None:
        typed = next(reversed(parameter.opts), parameter.name)
        is_option = parameter.param_type_name == "option"
        said = f"`{typed if is_option else parameter.metavar or typed}` is missing."
    else:
        said = f"{error.message.rstrip('.')}."
    context = error.ctx
    return f"{said} See `{context.command_path} --help`." if context is not None else said


def _as_note(message: Warning | str, *_: object, **__: object) -> None:
    words = rendered(message) if isinstance(message, CalibrantWarning) else str(message)
    if words not in _told:
        note(f"Note: {words}")
    _told.add(words)


def _sentence(error: BaseException) -> str:
    if isinstance(error, CalibrantError):
        return rendered(error)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this file."
    return str(error)


def _say(message: str, *, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exc()
    note(message)
