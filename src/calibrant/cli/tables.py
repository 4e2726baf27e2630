"""`calibrant audit`, `survival` and `quantiles`: analyses of whole tables."""

from __future__ import annotations

from typing import Any

from calibrant.cli.options import verb
from calibrant.cli.output import show_json, show_text
from calibrant.errors import InputError

__all__ = ["audit", "quantiles", "survival"]


@verb("calibrant audit preds.parquet --column age --column sex --column site")
def audit(
    files: list[str],
    column: list[str],
    label: str = "y",
    prob: str = "p",
    depth: int = 2,
    n_bins: int = 5,
    confidence: float = 0.95,
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
    import calibrant as cal

    found = cal.find_groups(
        data=_table(files),
        y_true=label,
        y_prob=prob,
        columns=column,
        depth=depth,
        n_bins=n_bins,
        confidence=confidence,
    )
    if json:
        show_json(found.to_dict())
    else:
        show_text(found)


@verb(
    "calibrant survival cohort.csv --time weeks --event arrest --risk p --horizon 52",
)
def survival(
    files: list[str],
    time: str,
    event: str,
    risk: str,
    horizon: float,
    cause: int = 1,
    strata: str | None = None,
    confidence: float = 0.95,
    json: bool = False,
) -> None:
    """Assess predicted risks of an event by a horizon, with censored follow-up.

    Columns
    -------
    time : NAME
        Column of follow-up times.
    event : NAME
        Column of events: 0 where the subject was censored, else the cause.
    risk : NAME
        Column of predicted risks.
    strata : NAME
        Column of groups whose censoring differs.

    Analysis
    --------
    horizon : TIME
        In the unit of the times.
    cause : N
        The event that is predicted. [1]
    confidence : SHARE
        Of the intervals. [0.95]
    """
    import calibrant as cal

    columns: dict[str, Any] = {"horizon": horizon, "cause": cause, "strata": strata}
    table = _table(files)
    rows = cal.survival.at_horizon(time, event, risk, data=table, **columns)
    ratio = cal.survival.observed_expected(
        time, event, risk, data=table, confidence=confidence, **columns
    )
    found = cal.assess(rows, confidence=confidence)
    if json:
        show_json({"observed_expected": ratio.to_dict(), "assessment": found.to_dict()})
        return
    show_text(f"Kaplan-Meier against mean risk at {horizon:g}: {ratio}")
    show_text(found)


@verb("calibrant quantiles forecasts.parquet --label y --quantile 0.1=low --quantile 0.9=high")
def quantiles(
    files: list[str],
    quantile: list[str],
    label: str = "y",
    confidence: float = 0.95,
    json: bool = False,
) -> None:
    """Assess quantile forecasts: coverage at each level, one test, pinball losses.

    Columns
    -------
    quantile : LEVEL=NAME
        Level and column of its forecasts; repeat it for several.
    label : NAME
        Column of outcomes. [y]

    Analysis
    --------
    confidence : SHARE
        Of the intervals. [0.95]
    """
    import calibrant as cal

    forecasts = {}
    for pair in quantile:
        level, _, name = pair.partition("=")
        try:
            forecasts[float(level)] = name
        except ValueError as error:
            raise InputError(
                f"`quantile` must be a level and a column, such as 0.9=high; it is {pair!r}.",
                argument="quantile",
            ) from error
    found = cal.quantiles.assess(label, forecasts, data=_table(files), confidence=confidence)
    if json:
        show_json(found.to_dict())
    else:
        show_text(found)


def _table(files: list[str]) -> dict[str, Any]:
    """All columns of the files, as arrays."""
    from calibrant.io.files import find_files
    from calibrant.io.rows import read_table

    table = read_table(find_files(files))
    return {name: table[name].to_numpy() for name in table.column_names}
