"""The options of the verbs that prepare, repair and watch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from calibrant.cli.app import verb
from calibrant.cli.shared_options import (
    COLUMNS,
    GATES,
    GROUPS,
    MEASURE,
    OUTPUT,
    By,
    Files,
    Grouping,
    Json,
    PerFile,
    Reading,
    Scale,
    option,
)
from calibrant.errors import InputError, Option


@verb
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


@verb
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
    """Add up sketches from several days, shards or machines."""
    from calibrant.cli.scan import run_merge

    run_merge(files, by, output)


@verb
def recalibrate(
    files: Files,
    reading: Reading,
    output: Annotated[
        str,
        option("Map to write (.json); with --apply, rows to write (.parquet, .csv).", "--output", "-o",
               section=OUTPUT, metavar="FILE"),
    ],
    method: Annotated[
        Literal["adaptive", "smooth", "isotonic", "platt", "beta", "temperature", "venn-abers", "spline",
                "offset", "randomized", "structured", "structured-matrix", "vector", "one-vs-rest",
                "choose"] | None,
        option("Kind of map, or `choose` to compare them all on held-out rows. With --multiclass: "
               "temperature, structured, structured-matrix, vector, one-vs-rest. [adaptive; choose]",
               section="Repair", metavar="NAME"),
    ] = None,
    cluster: Annotated[
        str | None,
        option("Column that marks rows which belong together; they are held out together.",
               section="Repair", metavar="NAME"),
    ] = None,
    apply: Annotated[
        str | None,
        option("Apply this map instead of learning one; labels are not needed.", section="Repair",
               metavar="MAP"),
    ] = None,
    picture: Annotated[
        str | None,
        option("Draw the map and its uncertainty, too (.svg, .pdf, .png).", section=OUTPUT,
               metavar="FILE"),
    ] = None,
) -> None:  # fmt: skip
    """Learn a map that repairs predictions, or apply one."""
    from calibrant.cli.recalibrate import run_apply, run_fit
    from calibrant.cli.recalibrate_classes import (
        is_map_of_classes,
        require_map_of_one_event,
        run_apply_classes,
        run_fit_classes,
    )

    if picture is not None and (apply is not None or reading.multiclass is not None):
        raise InputError(
            "is of a map of one event that is learned",
            argument="picture",
            cure="Leave out {option}.",
            option=Option("multiclass" if apply is None else "apply"),
        )
    if apply is None and reading.multiclass is not None:
        run_fit_classes(files, reading, method, output, cluster)
    elif apply is None:
        require_map_of_one_event(method)
        run_fit(files, reading, method or "adaptive", output, picture, cluster)
    elif method is not None or cluster is not None:
        raise InputError(
            "takes a map that was learned",
            argument="apply",
            cure="Leave out {option}.",
            option=Option("cluster" if method is None else "method"),
        )
    elif reading.multiclass is not None or is_map_of_classes(apply):
        run_apply_classes(files, reading, apply, output)
    else:
        run_apply(files, reading, apply, output)


@verb
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


@verb
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

    Save its result as Parquet or CSV: `calibrant assess` and the other commands read it.
    """
    if apply is not None:
        if by or weight or label != "y":
            raise InputError(
                "is an expression of the predictions alone",
                argument="apply",
                cure="Leave out the other columns.",
            )
        from calibrant.recalibration.learned_map import load_recalibrator

        learned: Any = load_recalibrator(apply)
        typer.echo(learned.to_sql(prob, dialect).text)
        return
    from calibrant.io.sql import query

    typer.echo(query(table, prob, label, Grouping(by=by).columns, dialect, weight=weight))


@verb
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


@verb
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
