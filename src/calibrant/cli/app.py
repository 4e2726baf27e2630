"""The command itself: its help, and how a verb joins it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import typer

from calibrant.cli.examples import EXAMPLES
from calibrant.cli.shared_options import OUTPUT, SectionedCommand, flattened, option

__all__ = ["Open", "Theme", "app", "verb"]

EPILOG = (
    "Exit codes: 0 done; 1 a fault in calibrant; 2 a wrong option or a file that cannot be used; 3 a "
    "limit was exceeded; 4 a limit could not be shown to hold; 130 interrupted; 141 the reader "
    "of the output went away."
)

app = typer.Typer(
    help="Can I trust these probabilities? Measure, show and repair calibration.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,  # rich takes as long to load as all the rest of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


Open = Annotated[bool, option("Open the file when it is done.", "--open", section=OUTPUT)]
Theme = Annotated[
    Literal["light", "dark", "print"],
    option("Colours. [light]", section="Picture", metavar="light|dark|print"),
]


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function a verb: its parameters are the options, its docstring the help."""
    examples = "\n\n".join(EXAMPLES[function.__name__])
    app.command(
        cls=SectionedCommand,
        no_args_is_help=function.__name__ not in ("demo", "datasets"),
        epilog=f"Examples:\n\n{examples}",
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
        bool, typer.Option("--debug", help="Show tracebacks. Works anywhere in the command.")
    ] = False,
) -> None:
    pass
