"""The options that verbs share, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from calibrant.cli.parsing import option
from calibrant.cli.text import quoted
from calibrant.errors import InputError

__all__ = ["By", "Files", "Grouping", "Json", "Measuring", "PerFile", "Reading", "Scale"]

COLUMNS, VALUES, GROUPS = "Columns", "Values", "Groups"
MEASURE, OUTPUT = "Measurement", "Output"

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help="Parquet, CSV, JSON lines, Arrow; folders and globs of these; sketches; logs of language "
        "model evaluations; - for standard input.",
        show_default=False,
    ),
]
Json = Annotated[bool, option("Print JSON, in a schema that stays.", "--json", section=OUTPUT)]
Scale = Annotated[
    str,
    option(
        "probability, logit, logit/4, or relative:RATE for an event of that rate. [probability]",
        section=MEASURE,
        metavar="NAME",
    ),
]
By = Annotated[
    list[str] | None,
    option(
        "Column to group by; repeat it, or join names with commas.", section=GROUPS, metavar="NAME"
    ),
]


PerFile = Annotated[
    bool, option("One group per file instead of all together.", "--per-file", section=GROUPS)
]


@dataclass(frozen=True)
class Reading:
    """Which columns, and how their values are written."""

    prob: Annotated[
        list[str] | None,
        option("Column of predictions; found by its name (p, prob, score, confidence) unless given. "
               "Repeat it for several models.", section=COLUMNS, metavar="NAME"),
    ] = None  # fmt: skip
    label: Annotated[
        str | None,
        option("Column of outcomes; found by its name (y, label, target, correct) unless given.",
               section=COLUMNS, metavar="NAME"),
    ] = None  # fmt: skip
    weight: Annotated[
        str | None, option("Column of weights (importance).", section=COLUMNS, metavar="NAME")
    ] = None
    from_logits: Annotated[
        bool, option("Predictions are log-odds.", "--from-logits", section=VALUES)
    ] = False
    percent: Annotated[
        bool, option("Predictions run from 0 to 100.", "--percent", section=VALUES)
    ] = False
    pos_label: Annotated[
        str | None, option("The label of the event, such as yes.", section=VALUES, metavar="VALUE")
    ] = None
    labels: Annotated[
        Literal["binary", "soft"],
        option("soft: outcomes are shares in [0, 1], as partial credit.", section=VALUES),
    ] = "binary"
    multiclass: Annotated[
        Literal["confidence", "top-label", "classwise"] | None,
        option("Predictions are one column per class (--prob 'p_*') or a column of lists; labels are "
               "class numbers, or names as in the columns.", section=VALUES),
    ] = None  # fmt: skip
    on_invalid: Annotated[
        Literal["raise", "drop"],
        option("drop: leave out rows that break a rule, and count them.", section=VALUES),
    ] = "raise"
    log: Annotated[
        Literal["lm-eval", "inspect", "jsonl"] | None,
        option("Read a log of a language model evaluation of this kind.", section=VALUES),
    ] = None

    filter: Annotated[
        str | None,
        option("Answer filter of an lm-eval log that has several.", section=VALUES, metavar="NAME"),
    ] = None

    @property
    def has_form(self) -> bool:
        """Whether predictions are written in another form than probabilities."""
        return self.from_logits or self.percent

    @property
    def converts(self) -> bool:
        """Whether values must be converted row by row before they can be summed."""
        return bool(self.pos_label is not None or self.labels == "soft" or self.multiclass)


@dataclass(frozen=True)
class Grouping:
    """By what the rows are told apart."""

    by: By = None
    per_file: PerFile = False
    max_groups: Annotated[
        int,
        option("Show this many of the largest groups, the others summed up. [50]", section=GROUPS,
               min=1, metavar="N"),
    ] = 50  # fmt: skip

    @property
    def columns(self) -> list[str]:
        """The names, one by one."""
        names = [name for given in self.by or [] for name in given.split(",")]
        if "" in names:
            raise InputError(f"`--by` must name columns; got {quoted(','.join(self.by or []))}.")
        return names


@dataclass(frozen=True)
class Measuring:
    """How the measurement is made."""

    cluster: Annotated[
        str | None,
        option("Column that says which rows depend on each other (question, patient, match).",
               section=MEASURE, metavar="NAME"),
    ] = None  # fmt: skip
    scale: Scale = "probability"
    confidence: Annotated[
        float, option("Confidence of the intervals. [0.95]", section=MEASURE, metavar="SHARE")
    ] = 0.95
    seed: Annotated[
        int, option("Seed of random draws, 0 or more. [0]", section=MEASURE, min=0, metavar="N")
    ] = 0
