"""`calibrant audit`: groups that nobody named."""

from __future__ import annotations

import calibrant as cal
from calibrant._arguments import CONFIDENCE
from calibrant.cli.options import Grouping, Measuring, Reading, verb
from calibrant.cli.output import show_result
from calibrant.errors import InputError

__all__ = ["audit"]


@verb("calibrant audit preds.parquet --column age --column sex --column site")
def audit(
    files: list[str],
    reading: Reading,
    column: list[str],
    depth: int = 2,
    n_bins: int = 5,
    confidence: float = CONFIDENCE,
    json: bool = False,
) -> None:
    """Find groups that nobody named, whose predictions are wrong on average.

    Columns
    -------
    column : NAME
        A column that may define groups; repeat it, or join names with commas.

    Search
    ------
    depth : N
        1 for cells of a column, 2 for pairs of cells too. [2]
    n_bins : N
        Cells of a numeric column. [5]
    confidence : SHARE
        Of the simultaneous intervals. [0.95]
    """
    from calibrant.cli._inputs import Columns, Source

    source = Source.of(files, reading)
    source.require_rows("a search for groups")
    columns = Columns.of(source, Grouping(by=column), Measuring())
    if reading.weight or len(columns.prob) > 1 or reading.multiclass:
        raise InputError("a search for groups takes one column of predictions, without weights.")
    table = source.table(())
    found = cal.find_groups(
        data=table,
        y_true=columns.label,
        y_prob=columns.prob[0],
        columns=columns.by,
        depth=depth,
        n_bins=n_bins,
        confidence=confidence,
        **{**reading.options, **reading.event(table[columns.label].to_numpy())},
    )
    show_result(found, json=json)
