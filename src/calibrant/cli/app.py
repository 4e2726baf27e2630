"""The verbs and their options. What a verb does stands in a module that is loaded when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import typer

from calibrant.cli.options import (
    COLUMNS,
    GATES,
    GROUPS,
    MEASURE,
    OUTPUT,
    By,
    Files,
    Grouping,
    Json,
    Measuring,
    PerFile,
    Profiling,
    Reading,
    Scale,
    SectionedCommand,
    flattened,
    option,
)
from calibrant.errors import InputError, Option

__all__ = ["app"]

EPILOG = (
    "Exit codes: 0 done; 1 a fault in calibrant; 2 a wrong option or a file that cannot be used; 3 a "
    "limit was exceeded; 4 a limit could not be shown to hold; 130 interrupted; 141 nobody reads the output."
)

app = typer.Typer(
    help="Can I trust these probabilities? Measure, show and repair calibration.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,  # rich takes as long to load as all the rest of --help
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
)


Open = Annotated[bool, option("Open it when it is written.", "--open", section=OUTPUT)]
EXAMPLES = {
    "assess": [
        "calibrant assess preds.csv",
        "calibrant assess preds.parquet --prob p --label y --by model --fail-above 0.05",
        "calibrant assess answers.jsonl --log jsonl --by model",
        "calibrant assess preds.csv --profile clinical --thresholds 0.1,0.2",
    ],
    "plot": [
        "calibrant plot preds.csv -o diagram.svg",
        "calibrant plot preds.parquet --by model --layout grid -o models.png",
    ],
    "report": [
        "calibrant report preds.parquet --by model -o report.html --open",
        "calibrant report preds.csv -o report.md",
    ],
    "decide": ["calibrant decide preds.csv --thresholds 0.1,0.2,0.3 -o curve.svg"],
    "compare": [
        "calibrant compare preds.csv --prob model_a --prob model_b",
        "calibrant compare preds.parquet --by model --on question_id",
    ],
    "certify": [
        "calibrant certify answers.jsonl --log jsonl --risk 0.1",
        "calibrant certify preds.parquet --prob p --label y --side both --risk 0.05",
    ],
    "selective": [
        "calibrant selective answers.jsonl --log jsonl --by model",
        "calibrant selective preds.parquet -o curve.svg",
    ],
    "scan": [
        "calibrant scan 'logs/*.parquet' --by model -o today.parquet",
        "calibrant scan big/ -o big.parquet --checkpoint big.progress",
    ],
    "merge": ["calibrant merge monday.parquet tuesday.parquet -o week.parquet"],
    "recalibrate": [
        "calibrant recalibrate train.csv -o map.json",
        "calibrant recalibrate new.csv --apply map.json -o better.csv",
    ],
    "monitor": ["calibrant monitor today.parquet --state watch.json --fail-on-alarm"],
    "sql": ["calibrant sql analytics.predictions --by model --dialect bigquery"],
    "demo": ["calibrant demo"],
    "datasets": ["calibrant datasets", "calibrant datasets imagenet_resnet34 -o resnet.parquet"],
}


def _verb(function: Callable[..., None]) -> Callable[..., None]:
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
        bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere in the command.")
    ] = False,
) -> None:
    pass


@_verb
def assess(
    files: Files,
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    profiling: Profiling,
    fail_above: Annotated[
        str | None,
        option("Exit with 3 if the error is above this for certain (the interval lies above it). A "
               "number, or a share of the event rate such as 20%.", section=GATES,
               metavar="LIMIT"),
    ] = None,
    require_below: Annotated[
        str | None,
        option("Exit with 4 unless the error is below this for certain (the interval lies below it).",
               section=GATES, metavar="LIMIT"),
    ] = None,
    sort: Annotated[
        Literal["worst", "given", "rows"],
        option("Order of the groups: the worst first, by name, or the largest first. [worst]",
               section=OUTPUT, metavar="worst|given|rows"),
    ] = "worst",
    details: Annotated[
        bool, option("Print everything about each group.", "--details", section=OUTPUT)
    ] = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Measure calibration, one line per model or group.

    Prints SmoothECE with its interval, the noise floor of a calibrated model, the p-value of calibration,
    observed over expected events, and a verdict.
    """
    from calibrant.cli.assess import run_assess

    run_assess(
        files, reading, grouping, measuring, fail_above, require_below, sort, details, json, profiling
    )  # fmt: skip


@_verb
def plot(
    files: Files,
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    kind: Annotated[
        Literal["smooth", "binned", "isotonic", "cumulative", "forest"],
        option("How the curve is made; forest: each group's error and interval. [smooth]",
               section="Picture", metavar="smooth|binned|isotonic|cumulative|forest"),
    ] = "smooth",
    axes: Annotated[
        Literal["auto", "probability", "fit", "logit"],
        option("From 0 to 1, as far as the rows go, or in log-odds; auto fits rare events. [auto]",
               section="Picture", metavar="auto|probability|fit|logit"),
    ] = "auto",
    attributes: Annotated[
        bool,
        option("Add the lines of weather forecasters: climatology, no skill, and the Brier skill score.",
               section="Picture"),
    ] = False,
    layout: Annotated[
        Literal["overlay", "grid"] | None,
        option("Several groups on one axis or side by side. [overlay up to 4]", section="Picture",
               metavar="overlay|grid"),
    ] = None,
    theme: Annotated[
        Literal["light", "dark", "print"],
        option("Colours. [light]", section="Picture", metavar="light|dark|print"),
    ] = "light",
    output: Annotated[
        str,
        option(".svg, .pdf, .png, or .html for an interactive one. [diagram.svg]",
               "--output", "-o", section=OUTPUT, metavar="FILE"),
    ] = "diagram.svg",
    open: Open = False,
) -> None:  # fmt: skip
    """Draw the reliability diagram."""
    from calibrant.cli.plot import run_plot

    run_plot(
        files, reading, grouping, measuring, kind, layout, theme, output, open, axes, attributes
    )


@_verb
def report(
    files: Files,
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    profiling: Profiling,
    title: Annotated[
        str | None, option("Title of the page.", section=OUTPUT, metavar="TEXT")
    ] = None,
    output: Annotated[
        str,
        option(
            ".html, .md or .json. [report.html]", "--output", "-o", section=OUTPUT, metavar="FILE"
        ),
    ] = "report.html",
    open: Open = False,
) -> None:
    """Write one page with everything.

    The page is a single file. It opens offline, and you can mail it.
    """
    import shlex
    import sys

    from calibrant.cli.report import run_report

    command = shlex.join(["calibrant", *sys.argv[1:]])
    run_report(files, reading, grouping, measuring, title, output, command, open, profiling)


@_verb
def decide(
    files: Files,
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    thresholds: Annotated[
        list[str] | None,
        option("Probabilities at which you act. Repeat it, or join numbers with commas. [0.01 to 0.99]",
               section=MEASURE, metavar="SHARE"),
    ] = None,
    theme: Annotated[
        Literal["light", "dark", "print"],
        option("Colours. [light]", section="Picture", metavar="light|dark|print"),
    ] = "light",
    output: Annotated[
        str | None,
        option("Draw the curve: .svg, .pdf, .png, or .html for an interactive one.", "--output", "-o",
               section=OUTPUT, metavar="FILE"),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Measure what predictions are worth to someone who acts on them.

    Prints net benefit against the threshold, with bands, beside acting always; and how much of it is lost
    to miscalibration.
    """
    from calibrant.cli.decide import run_decide

    run_decide(files, reading, grouping, measuring, thresholds, theme, output, json)


@_verb
def compare(
    files: Files,
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    on: Annotated[
        str | None,
        option("Column that names the case, to line up the groups of --by.", section=GROUPS,
               metavar="NAME"),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Compare models: which is better calibrated, and how sure is that?

    Models are columns (--prob a --prob b), groups (--by model) or files (--per-file). Comparing models on
    the same rows removes the noise they share. Columns always share rows; for groups, name the row id with
    --on.
    """
    from calibrant.cli.compare import run_compare

    run_compare(files, reading, grouping, measuring, on, json)


@_verb
def certify(
    files: Files,
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    risk: Annotated[
        float,
        option("Largest share of wrong decisions that is acceptable. [0.1]", section=MEASURE,
               metavar="SHARE"),
    ] = 0.1,
    side: Annotated[
        Literal["above", "below", "both"],
        option("Act above a threshold, below one, or both, with the band between left to a human. "
               "[above]", section=MEASURE, metavar="above|below|both"),
    ] = "above",
    json: Json = False,
) -> None:  # fmt: skip
    """Find the threshold beyond which at most --risk are wrong, with a guarantee.

    The guarantee holds over the choice of the threshold, and the predictions need not be calibrated. Exits
    with 4 where nothing can be certified.
    """
    from calibrant.cli.certify import run_certify

    run_certify(files, reading, grouping, measuring, risk, side, json)


@_verb
def selective(
    files: Files,
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    output: Annotated[
        str | None,
        option("Draw the curve: .svg, .pdf or .png.", "--output", "-o", section=OUTPUT, metavar="FILE"),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Measure what confidence is worth: risk by coverage, AURC, excess AURC, AUGRC."""
    from calibrant.cli.selective import run_selective

    run_selective(files, reading, grouping, measuring, output, json)


@_verb
def scan(
    files: Files,
    reading: Reading,
    output: Annotated[
        str,
        option("Sketch to write: .parquet, .json, or - for JSON on standard output.", "--output", "-o",
               section=OUTPUT, metavar="FILE"),
    ],
    by: By = None,
    per_file: PerFile = False,
    scale: Scale = "probability",
    checkpoint: Annotated[
        str | None,
        option("Save progress in this file, and go on from there after an interruption.", section=OUTPUT,
               metavar="FILE"),
    ] = None,
) -> None:  # fmt: skip
    """Read files once and save their sketch.

    A sketch is small, you can add sketches up, and every other command reads them.
    """
    from calibrant.cli.scan import run_scan

    run_scan(files, reading, Grouping(by, per_file), scale, output, checkpoint)


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
    from calibrant.cli.scan import run_merge

    run_merge(files, by, output)


@_verb
def recalibrate(
    files: Files,
    reading: Reading,
    output: Annotated[
        str,
        option("Map to write (.json); with --apply, rows to write (.parquet, .csv).", "--output", "-o",
               section=OUTPUT, metavar="FILE"),
    ],
    method: Annotated[
        Literal["adaptive", "smooth", "isotonic", "platt", "beta", "temperature", "venn-abers", "offset",
                "randomized", "choose"] | None,
        option("Kind of map, or `choose` to compare them all on held-out rows. [adaptive]",
               section="Repair", metavar="NAME"),
    ] = None,
    apply: Annotated[
        str | None,
        option("Apply this map instead of learning one; labels are not needed.", section="Repair",
               metavar="MAP"),
    ] = None,
) -> None:  # fmt: skip
    """Learn a map that repairs predictions, or apply one."""
    from calibrant.cli.recalibrate import run_apply, run_fit

    if apply is None:
        run_fit(files, reading, method or "adaptive", output)
    elif method is not None:
        raise InputError(
            "takes a map that was learned",
            argument="apply",
            cure="Leave out {option}.",
            option=Option("method"),
        )
    else:
        run_apply(files, reading, apply, output)


@_verb
def monitor(
    files: Files,
    reading: Reading,
    batch: Annotated[
        str | None,
        option("Column whose values, in order, are the batches. [each file is one]", section=GROUPS,
               metavar="NAME"),
    ] = None,
    level: Annotated[
        float,
        option("Chance of a false alarm, however often you check. [0.05]", section=MEASURE,
               metavar="SHARE"),
    ] = 0.05,
    state: Annotated[
        str | None,
        option("Continue from this file if it exists, and update it (.json).", section=OUTPUT,
               metavar="FILE"),
    ] = None,
    fail_on_alarm: Annotated[
        bool, option("Exit with 3 on an alarm.", "--fail-on-alarm", section=GATES)
    ] = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Monitor calibration batch by batch.

    Check as often as you like: false alarms stay below 5%.
    """
    from calibrant.cli.monitor import run_monitor

    run_monitor(files, reading, batch, level, state, fail_on_alarm, json)


@_verb
def sql(
    table: Annotated[
        str, typer.Argument(help="Table; dots separate schema and name.", show_default=False)
    ],
    prob: Annotated[
        str, option("Column of predictions. [p]", section=COLUMNS, metavar="NAME")
    ] = "p",
    label: Annotated[str, option("Column of outcomes. [y]", section=COLUMNS, metavar="NAME")] = "y",
    weight: Annotated[
        str | None, option("Column of weights.", section=COLUMNS, metavar="NAME")
    ] = None,
    by: By = None,
    dialect: Annotated[
        Literal["duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite"],
        option("SQL dialect of the warehouse. [duckdb]", section=OUTPUT, metavar="NAME"),
    ] = "duckdb",
    apply: Annotated[
        str | None,
        option("Print this map of `recalibrate` as an expression of the predictions instead.",
               section=OUTPUT, metavar="MAP"),
    ] = None,
) -> None:  # fmt: skip
    """Print a query that makes a sketch in a warehouse.

    Save its result as Parquet or CSV: `calibrant assess` and the others read it.
    """
    if apply is not None:
        if by or weight or label != "y":
            raise InputError(
                "is an expression of the predictions alone",
                argument="apply",
                cure="Leave out the other columns.",
            )
        from calibrant.recalibration.interface import Recalibrator

        typer.echo(Recalibrator.load(apply).to_sql(prob, dialect).text)
        return
    from calibrant.read.sql import query

    typer.echo(query(table, prob, label, Grouping(by=by).columns, dialect, weight=weight))


@_verb
def demo(
    output: Annotated[
        str,
        option("Folder to write into. [demo]", "--output", "-o", section=OUTPUT, metavar="FOLDER"),
    ] = "demo",
) -> None:
    """Assess, draw and report two real classifiers.

    Trains a naive Bayes and a logistic regression on data that ships with scikit-learn.
    """
    from calibrant.cli.demo import run_demo

    run_demo(output)


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
    from calibrant.cli.datasets import run_datasets

    run_datasets(name, output, json)
