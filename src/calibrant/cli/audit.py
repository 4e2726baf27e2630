"""`calibrant audit`: groups that nobody named."""

from __future__ import annotations

import calibrant as cal
from calibrant._arguments import CONFIDENCE
from calibrant.cli.options import verb
from calibrant.cli.output import show_result

__all__ = ["audit"]


@verb("calibrant audit preds.parquet --column age --column sex --column site")
def audit(
    files: list[str],
    column: list[str],
    label: str = "y",
    prob: str = "p",
    depth: int = 2,
    n_bins: int = 5,
    confidence: float = CONFIDENCE,
    json: bool = False,
) -> None:
    """Find groups that nobody named, whose predictions are wrong on average.

    Columns
    -------
    column : NAME
        A column that may define groups; repeat it for several.
    label : NAME
        Column of outcomes, 0 or 1. [y]
    prob : NAME
        Column of predictions. [p]

    Search
    ------
    depth : N
        1 for cells of a column, 2 for pairs of cells too. [2]
    n_bins : N
        Cells of a numeric column. [5]
    confidence : SHARE
        Of the simultaneous intervals. [0.95]
    """
    from calibrant.cli._inputs import read_columns

    found = cal.find_groups(
        data=read_columns(files)[1],
        y_true=label,
        y_prob=prob,
        columns=column,
        depth=depth,
        n_bins=n_bins,
        confidence=confidence,
    )
    show_result(found, json=json)
