"""The options of the verbs that answer a question about predictions."""

from __future__ import annotations

from typing import Annotated, Literal

from calibrant.cli.app import Open, Theme, verb
from calibrant.cli.shared_options import (
    GATES,
    GROUPS,
    MEASURE,
    OUTPUT,
    Files,
    Grouping,
    Json,
    Measuring,
    Profiling,
    Reading,
    option,
)


@verb
def assess(
    files: Files,
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    profiling: Profiling,
    fail_above: Annotated[
        str | None,
        option("Exit with 3 if the error is certainly above this (the whole interval is). A "
               "number, or a share of the event rate such as 20%.", section=GATES,
               metavar="LIMIT"),
    ] = None,
    require_below: Annotated[
        str | None,
        option("Exit with 4 unless the error is certainly below this (the whole interval is).",
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


@verb
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
        option("0 to 1, as far as the predictions go (fit), or log-odds; auto fits rare events. [auto]",
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
    theme: Theme = "light",
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


@verb
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


@verb
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
    theme: Theme = "light",
    output: Annotated[
        str | None,
        option("Draw the curve: .svg, .pdf, .png, or .html for an interactive one.", "--output", "-o",
               section=OUTPUT, metavar="FILE"),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Measure what acting on predictions is worth (net benefit).

    Prints net benefit at each threshold with its band, that of always acting, and how much of it is lost
    to miscalibration.
    """
    from calibrant.cli.decide import run_decide

    run_decide(files, reading, grouping, measuring, thresholds, theme, output, json)


@verb
def compare(
    files: Files,
    reading: Reading,
    grouping: Grouping,
    measuring: Measuring,
    on: Annotated[
        str | None,
        option("Column with the id of the row, to match the rows of the groups of --by.", section=GROUPS,
               metavar="NAME"),
    ] = None,
    json: Json = False,
) -> None:  # fmt: skip
    """Find out which model is better calibrated.

    Models are columns (--prob a --prob b), groups (--by model) or files (--per-file). Comparing models on
    the same rows removes the noise they share. Columns always share rows; for groups, name the row id with
    --on.
    """
    from calibrant.cli.compare import run_compare

    run_compare(files, reading, grouping, measuring, on, json)


@verb
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
    """Find a threshold with a guaranteed error rate.

    The guarantee holds over the choice of the threshold, and the predictions need not be calibrated. Exits
    with 4 if nothing can be certified.
    """
    from calibrant.cli.certify import run_certify

    run_certify(files, reading, grouping, measuring, risk, side, json)


@verb
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
    """Measure how well confidence ranks answers (AURC, AUGRC)."""
    from calibrant.cli.selective import run_selective

    run_selective(files, reading, grouping, measuring, output, json)
