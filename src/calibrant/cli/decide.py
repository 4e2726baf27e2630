"""`calibrant decide`, `certify` and `selective`: acting on predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import typer

import calibrant as cal
from calibrant._format import decimals
from calibrant.cli.errors import LIMIT_NOT_SHOWN, in_command_words
from calibrant.cli.options import Grouping, Measuring, Picture, Reading, as_numbers, verb
from calibrant.cli.output import note, show_json, show_table, show_text, shown, target
from calibrant.cli.plot import PICTURES, save_picture
from calibrant.errors import InputError, TooFewRows

if TYPE_CHECKING:
    from calibrant.cli._inputs import Samples

__all__ = ["certify", "decide", "selective"]

Key = tuple[Any, ...]


@verb("calibrant decide preds.csv --thresholds 0.1,0.2,0.3 -o curve.svg")
def decide(
    files: list[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    picture: Picture,
    thresholds: list[str] | None = None,
    output: str | None = None,
    json: bool = False,
) -> None:
    """Measure what acting on predictions is worth (net benefit).

    Prints net benefit at each threshold with its band, that of always acting, and how much of it is lost
    to miscalibration.

    Output
    ------
    output : FILE
        Draw the curve: .svg, .pdf or .png.
    """
    samples, path = _read(files, reading, grouping, measuring, output)
    settings = {"thresholds": as_numbers(thresholds, "thresholds")}
    curves = _of_groups(samples, cal.decision_curve, settings)
    _show(curves, samples, str, json=json)
    if path is not None:
        named = {shown(key) or "all rows": curve for key, curve in curves.items()}
        save_picture(named, path, picture, "grid")


@verb(
    "calibrant certify answers.jsonl --risk 0.1",
    "calibrant certify preds.parquet --prob p --label y --side both --risk 0.05",
)
def certify(
    files: list[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    risk: str = "0.1",
    side: Literal["above", "below", "both"] = "above",
    json: bool = False,
) -> None:
    """Find a threshold with a guaranteed error rate.

    The guarantee holds over the choice of the threshold, and the predictions need not be calibrated. Exits
    with 4 if nothing can be certified.

    Measurement
    -----------
    risk : SHARE
        Largest share of wrong decisions that is acceptable: a number, or 5%. [0.1]
    side : -
        Act above a threshold, below one, or both, with the band between left to a human. [above]
    """
    shares = as_numbers([risk.removesuffix("%")], "risk")
    share = shares[0] / 100 if risk.endswith("%") else shares[0]
    samples, _ = _read(files, reading, grouping, measuring)
    settings = {"risk": share, "side": side}
    found = _of_groups(samples, cal.certify, settings, abstentions=True)
    _show(found, samples, lambda one: one.sentence, json=json)
    failed = len(samples.groups) - sum(one.certified for one in found.values())
    if failed:
        if samples.by:
            note(f"{failed:,} of {len(samples.groups):,} groups could not be certified.")
        raise typer.Exit(LIMIT_NOT_SHOWN)


@verb(
    "calibrant selective answers.jsonl --by model",
    "calibrant selective preds.parquet -o curve.svg",
)
def selective(
    files: list[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    picture: Picture,
    output: str | None = None,
    json: bool = False,
) -> None:
    """Measure how well confidence ranks answers (AURC, AUGRC).

    Output
    ------
    output : FILE
        Draw the curve: .svg, .pdf or .png.
    """
    samples, path = _read(files, reading, grouping, measuring, output)
    if path is not None and len(samples.groups) > 1:
        raise InputError("`output` draws one group; there are several.")
    found = _of_groups(samples, cal.selective, {}, abstentions=True)
    if json or not samples.by:
        _show(found, samples, str, json=json)
    else:
        by = ", ".join(samples.by)
        numbers: dict[str, Callable[[Any], str]] = {
            "rows": lambda one: f"{one.n:,}",
            "risk": lambda one: decimals(one.risk, places=3),
            "AURC": lambda one: decimals(one.aurc, places=3),
            "excess": lambda one: decimals(one.excess_aurc, places=3),
            "AUGRC": lambda one: decimals(one.augrc, places=3),
        }
        columns = {name: [text(one) for one in found.values()] for name, text in numbers.items()}
        show_table({by: [shown(key) for key in found], **columns}, text=(by,))
    if path is not None:
        from calibrant.plotting import RiskCoverageDiagram

        (only,) = found.values()
        save_picture({"all rows": RiskCoverageDiagram(only)}, path, picture)


def _read(
    files: Sequence[str],
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    output: str | None = None,
) -> tuple[Samples, Any]:
    """The samples of the files, and the path of the picture to write."""
    from calibrant.cli._inputs import Source, read_samples

    source = Source.of(files, reading)
    path = None if output is None else target(output, PICTURES, "a picture", source.all_paths)
    return read_samples(source, grouping, measuring), path


def _of_groups(
    samples: Samples,
    function: Callable[..., Any],
    settings: dict[str, Any],
    *,
    abstentions: bool = False,
) -> dict[Key, Any]:
    """Result for each group; groups with too few rows are left out and named."""
    results = {}
    for key, own in samples.groups.items():
        more = {"abstained": samples.abstained.get(key, 0)} if abstentions else {}
        try:
            results[key] = function(
                **own, **more, **settings, confidence=samples.measuring.confidence
            )
        except TooFewRows as error:
            if not samples.by:
                raise
            note(f"Left out {samples.named(key)}: {in_command_words(str(error))}")
    if not results:
        raise TooFewRows("no group has enough rows.")
    return results


def _show(
    results: dict[Key, Any], samples: Samples, text: Callable[[Any], str], *, json: bool
) -> None:
    """Print each result under its group; as JSON a result, or a list with the name of each group."""
    if not json:
        for key, one in results.items():
            show_text(f"{samples.named(key)}: {text(one)}" if key else text(one))
    elif list(results) == [()]:
        show_json(results[()].to_dict())
    else:
        show_json([{"group": shown(key), **one.to_dict()} for key, one in results.items()])
