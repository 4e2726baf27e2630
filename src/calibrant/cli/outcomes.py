"""`calibrant survival`, `quantiles` and `distributions`: outcomes beyond yes and no."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import calibrant as cal
from calibrant._arguments import CONFIDENCE
from calibrant.cli.options import Picture, Reading, verb
from calibrant.cli.output import open_in_browser, show_json, show_result, show_text, target, write
from calibrant.cli.plot import PICTURES
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.cli._inputs import Source

__all__ = ["distributions", "quantiles", "survival"]

PAGES = (".html", ".md", ".json")


@verb(
    "calibrant survival patients.csv --time days --event died --risk risk5y --horizon 1826",
    "calibrant survival patients.csv --time days --event died --risk risk5y --horizon 1826 -o page.html",
)
def survival(
    files: list[str],
    time: str,
    event: str,
    risk: str,
    horizon: float,
    picture: Picture,
    cause: int = 1,
    strata: str | None = None,
    confidence: float = CONFIDENCE,
    output: str | None = None,
    json: bool = False,
    open: bool = False,
) -> None:
    """Judge predicted risks of an event by a horizon, where some subjects are censored.

    Prints observed risk (Kaplan-Meier, or Aalen-Johansen with several causes) over predicted, and the
    assessment of the rows with inverse-probability-of-censoring weights.

    Columns
    -------
    time : NAME
        Column of the follow-up of each subject.
    event : NAME
        Column of the event: 0 where the subject was censored, otherwise its cause.
    risk : NAME
        Column of the predicted probability of the event by the horizon.
    strata : NAME
        Column of groups whose censoring differs.

    Measurement
    -----------
    horizon : TIME
        In the unit of the times.
    cause : N
        The event that the risk is of, where there are several. [1]
    confidence : SHARE
        Confidence of the intervals. [0.95]

    Output
    ------
    output : FILE
        Reliability diagram (.svg, .pdf, .png) or report (.html, .md, .json).
    """
    names = {"time": time, "event": event, "risk": risk, "strata": strata}
    source, path = _source(files, output)
    table = source.table([*names.values()])
    settings: dict[str, Any] = {**names, "data": table, "horizon": horizon, "cause": cause}
    found = cal.survival.observed_expected(**settings, confidence=confidence)
    rows = cal.survival.at_horizon(**settings)
    assessment = cal.assess(rows, confidence=confidence)
    if json:
        show_json({"observed_expected": found.to_dict(), "assessment": assessment.to_dict()})
    else:
        show_text(f"{found}\n\n{assessment}")
    drawn = partial(cal.reliability_diagram, rows, confidence=confidence)
    page = lambda: cal.report(rows, confidence=confidence).with_outcomes(found)  # noqa: E731
    _write(path, picture, drawn, page, open)


@verb(
    "calibrant quantiles demand.csv --label sold --quantile 0.1=low,0.5=median,0.9=high",
    "calibrant quantiles demand.csv --label sold --quantile 0.9=high -o coverage.svg",
)
def quantiles(
    files: list[str],
    quantile: list[str],
    picture: Picture,
    label: str = "y",
    confidence: float = CONFIDENCE,
    output: str | None = None,
    json: bool = False,
    open: bool = False,
) -> None:
    """Test the coverage of quantile forecasts, at all levels at once.

    Columns
    -------
    label : NAME
        Column of outcomes. [y]
    quantile : LEVEL=NAME
        Level and column of its forecasts; repeat it, or join with commas.

    Measurement
    -----------
    confidence : SHARE
        Confidence of the intervals. [0.95]

    Output
    ------
    output : FILE
        Diagram of the coverage (.svg, .pdf, .png) or report (.html, .md, .json).
    """
    levels = _levels(quantile)
    source, path = _source(files, output)
    table = source.table([label, *levels.values()])
    found = cal.quantiles.assess(label, levels, data=table, confidence=confidence)
    show_result(found, json=json)
    drawn, page = partial(cal.plotting.quantile_diagram, found), partial(cal.report, found)
    _write(path, picture, drawn, page, open)


@verb(
    "calibrant distributions weather.csv --label temperature --mean mu --sd sigma",
    "calibrant distributions weather.csv --label temperature --samples 'member_*' -o pit.svg",
)
def distributions(
    files: list[str],
    picture: Picture,
    label: str = "y",
    mean: str | None = None,
    sd: str | None = None,
    samples: list[str] | None = None,
    confidence: float = CONFIDENCE,
    output: str | None = None,
    json: bool = False,
    open: bool = False,
) -> None:
    """Test predictive distributions (PIT), with CRPS and the coverage of intervals.

    Columns
    -------
    label : NAME
        Column of outcomes. [y]
    mean : NAME
        Column of the means of normal distributions.
    sd : NAME
        Column of their standard deviations.
    samples : NAME
        Columns of the members of an ensemble, without the label: a pattern such as 'member_*', or repeat it.

    Measurement
    -----------
    confidence : SHARE
        Confidence of the intervals. [0.95]

    Output
    ------
    output : FILE
        Histogram of the PIT (.svg, .pdf, .png) or report (.html, .md, .json).
    """
    import numpy as np

    source, path = _source(files, output)
    matched = [] if samples is None else source.predictions(samples, ())
    members = list(dict.fromkeys(name for name in matched if name != label))
    if samples is not None and not members:
        raise InputError(f"`samples` must match columns beside the label; it matches {label!r}.")
    table = source.table([label, mean, sd, *members])
    ensemble = np.column_stack([table[name] for name in members]) if members else None
    found = cal.distributions.assess(
        label, mean=mean, sd=sd, samples=ensemble, data=table, confidence=confidence
    )
    show_result(found, json=json)
    drawn, page = partial(cal.plotting.pit_diagram, found), partial(cal.report, found)
    _write(path, picture, drawn, page, open)


def _levels(texts: Sequence[str]) -> dict[float, str]:
    """Columns by level, from words such as 0.1=low."""
    pairs = [part.partition("=") for text in texts for part in text.split(",")]
    levels: dict[float, str] = {}
    for word, _, name in pairs:
        try:
            level = float(word)
        except ValueError:
            raise InputError(
                f"`quantile` must be such as 0.1=low,0.9=high; got {','.join(texts)!r}."
            ) from None
        if level in levels:
            both = f"{levels[level]!r} and {name!r}"
            raise InputError(f"`quantile` must name each level once; {level:g} has {both}.")
        levels[level] = name
    return levels


def _source(files: Sequence[str], output: str | None) -> tuple[Source, Path | None]:
    """The files of rows, and the path of the picture or page to write, if any."""
    from calibrant.cli._inputs import Source

    source = Source.of(files, Reading())
    if output is None:
        return source, None
    return source, target(output, (*PICTURES, *PAGES), "the result", source.all_paths)


def _write(path: Path | None, picture: Picture, diagram: Any, page: Any, open: bool) -> None:
    """Write the picture or the page, whichever the ending of the file asks for."""
    if path is None:
        return
    if path.suffix.lower() in PICTURES:
        write(path, lambda file: diagram().save(file, **picture.options))
    else:
        write(path, page().save)
    if open:
        open_in_browser(path)
