"""`calibrant scan`, `merge` and `sql`: sketches of rows, of sketches and of tables in a warehouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

import calibrant as cal
from calibrant.cli.options import Grouping, Measuring, Reading, verb
from calibrant.cli.output import LONGEST_PATH, count, note, printable, target
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.cli._inputs import Samples, Source

__all__ = ["merge", "scan", "sql"]


@verb(
    "calibrant scan 'logs/*.parquet' --by model -o today.parquet",
    "calibrant scan big/ -o big.parquet --checkpoint big.progress",
)
def scan(
    files: list[str],
    reading: Reading,
    output: str,
    by: list[str] | None = None,
    per_file: bool = False,
    scale: str = "probability",
    checkpoint: str | None = None,
) -> None:
    """Read files once and save their sketch.

    A sketch is small, you can add sketches up, and every other command reads them.

    Output
    ------
    output : FILE
        Sketch to write: .parquet, .json, or - for JSON on standard output.
    checkpoint : FILE
        Save progress in this file, and go on from there after an interruption.
    """
    from calibrant.cli._inputs import Arrays, Source, read_samples

    source = Source.of(files, reading)
    _require_target(output, source)
    if checkpoint is not None:
        target(checkpoint, (), "a checkpoint", [*source.all_paths, output])
    samples = read_samples(
        source,
        Grouping(by, per_file),
        Measuring(scale=scale),
        checkpoint=checkpoint,
        keep_empty=True,
    )
    content: Any = samples.content
    if isinstance(content, Arrays):
        content = _with_abstentions(samples, content.scanned(samples.by, scale, samples.cluster))
    _write(content, output, checkpoint)


@verb("calibrant merge monday.parquet tuesday.parquet -o week.parquet")
def merge(files: list[str], output: str, by: list[str] | None = None) -> None:
    """Add up sketches from several days, shards or machines.

    Inputs
    ------
    files : SKETCHES
        Sketch files.

    Output
    ------
    output : FILE
        Sketch to write: .parquet, .json, or - for JSON on standard output.
    """
    from calibrant.cli._inputs import Source, read_samples

    source = Source.of(files, Reading())
    _require_target(output, source)
    if source.kind != "sketch":
        raise InputError(
            f"`calibrant merge` adds sketches, and {printable(files[0], LONGEST_PATH)} is none.",
            hint="Make one with `calibrant scan`.",
        )
    _write(read_samples(source, Grouping(by=by), keep_empty=True).content, output)


@verb(
    "calibrant sql analytics.predictions --by model --dialect bigquery",
    "calibrant sql analytics.predictions --apply map.json --dialect bigquery",
)
def sql(
    table: str,
    prob: str = "p",
    label: str = "y",
    weight: str | None = None,
    by: list[str] | None = None,
    dialect: str = "duckdb",
    apply: str | None = None,
) -> None:
    """Print a query that makes a sketch in a warehouse.

    Save its result as Parquet or CSV: `calibrant assess` and the other commands read it.

    Inputs
    ------
    table : TABLE
        Table; dots separate schema and name.

    Columns
    -------
    prob : NAME
        Column of predictions. [p]
    label : NAME
        Column of outcomes. [y]
    weight : NAME
        Column of weights.

    Output
    ------
    dialect : -
        SQL dialect of the warehouse, such as bigquery; the error for an unknown one lists them. [duckdb]
    apply : MAP
        Print this map of `recalibrate` as an expression of the predictions instead.
    """
    if apply is None:
        from calibrant.io.sql import query

        typer.echo(query(table, prob, label, Grouping(by=by).columns, dialect, weight=weight))
        return
    if by or weight or label != "y":
        raise InputError("`apply` takes the column of predictions alone.")
    learned: Any = cal.load_recalibrator(apply)
    typer.echo(learned.to_sql(prob, dialect).text)


def _require_target(output: str, source: Source) -> None:
    if output != "-":
        target(output, (".parquet", ".json"), "a sketch", source.all_paths)


def _with_abstentions(samples: Samples, sketches: Any) -> Any:
    """Sketches of a log; the first of each group counts what the group declined to answer."""
    from calibrant.data.rows import ABSTAINED
    from calibrant.data.sketch import Sketch
    from calibrant.data.sketches import Sketches

    left = dict(samples.abstained)

    def counting(key: tuple[Any, ...], sketch: Sketch) -> Sketch:
        declined = left.pop(key, 0)
        dropped = {**sketch.dropped, ABSTAINED: declined} if declined else sketch.dropped
        return Sketch(sketch.sums, nodes=sketch.nodes, scale=sketch.scale, dropped=dropped)

    if not sketches.by:
        return counting((), sketches.total())
    counted = {}
    for key, sketch in sketches.items():
        values = key if isinstance(key, tuple) else (key,)
        counted[key] = counting(values[: len(samples.by)], sketch)
    return Sketches(counted, by=sketches.by)


def _write(result: Any, output: str, checkpoint: str | None = None) -> None:
    import os

    from calibrant.data.rows import ABSTAINED

    sketches = list(result.groups.values())
    where = "standard output"
    if output == "-":
        from calibrant.data.sketch_file import to_json

        print(to_json(result))
        if checkpoint is not None and os.path.exists(checkpoint):
            os.remove(checkpoint)
    else:
        cal.save(result, output, checkpoint=checkpoint)
        where = f"{printable(output, LONGEST_PATH)} ({os.path.getsize(output):,} bytes)"
    abstained = sum(one.dropped.get(ABSTAINED, 0) for one in sketches)
    dropped = sum(sum(one.dropped.values()) for one in sketches) - abstained
    parts = [count(sum(one.n for one in sketches), "row")]
    parts[0] += f" in {count(len(sketches), 'group')}" if result.by else ""
    parts += [f"{count(dropped, 'row')} dropped"] if dropped else []
    parts += [count(abstained, "abstention")] if abstained else []
    note(f"Wrote {where}: {', '.join(parts)}.")
