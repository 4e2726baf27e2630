"""The verbs and their options. What a verb does stands in a module that is loaded when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from calibrant.cli.options import (
    OUTPUT,
    By,
    Files,
    Grouping,
    Json,
    Reading,
    Scale,
)
from calibrant.cli.parsing import SectionedCommand, flattened, option

__all__ = ["app"]

EPILOG = (
    "Exit codes: 0 done; 1 a fault in calibrant; 2 a wrong option or a file that cannot be used; 3 a "
    "limit was exceeded; 4 a limit could not be shown to hold; 130 interrupted."
)

app = typer.Typer(
    help="Can I trust these probabilities? Measure, show and repair calibration.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,  # rich takes as long to load as all the rest of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


def _verb(function: Callable[..., None]) -> Callable[..., None]:
    app.command(
        cls=SectionedCommand, no_args_is_help=function.__name__ not in ("demo", "datasets")
    )(flattened(function))
    return function


def _version(wanted: bool) -> None:
    if wanted:
        from calibrant import __version__

        typer.echo(f"calibrant {__version__}")
        raise typer.Exit


@app.callback()
def _calibrant(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere in the command.")
    ] = False,
) -> None:
    pass


@_verb
def scan(
    files: Files,
    reading: Reading,
    grouping: Grouping,
    output: Annotated[
        str,
        option("Sketch to write: .parquet, .json, or - for JSON on standard output.", "--output", "-o",
               section=OUTPUT, metavar="FILE"),
    ],
    scale: Scale = "probability",
    checkpoint: Annotated[
        str | None,
        option("Note progress in this file, and go on from it after an interruption.", section=OUTPUT,
               metavar="FILE"),
    ] = None,
) -> None:  # fmt: skip
    """Read files once and keep their sketch: small, mergeable, enough for everything else."""
    from calibrant.cli.sketching import run_scan

    run_scan(files, reading, grouping, scale, output, checkpoint)


@_verb
def merge(
    files: Annotated[
        list[str], typer.Argument(metavar="SKETCHES", help="Sketch files.", show_default=False)
    ],
    output: Annotated[
        str,
        option("Sketch to write: .parquet, .json, or - for JSON on standard output.", "--output", "-o",
               section=OUTPUT, metavar="FILE"),
    ],
    by: By = None,
) -> None:  # fmt: skip
    """Add up sketches of other days, shards or machines."""
    from calibrant.cli.sketching import run_merge

    run_merge(files, by, output)


@_verb
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="Describe this data set.", show_default=False)
    ] = None,
    output: Annotated[
        str | None,
        option("Fetch it and write it as .parquet or .csv.", "--output", "-o", section=OUTPUT,
               metavar="FILE"),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """List real data sets, or fetch one."""
    from calibrant.cli.collection import run_datasets

    run_datasets(name, output, json)
