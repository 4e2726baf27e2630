"""The options that verbs share, and how options are declared, read and shown in the help."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand

from calibrant._arguments import CONFIDENCE, require_choice
from calibrant.cli.errors import Interrupted, NoReader
from calibrant.errors import InputError

__all__ = [
    "FORMS",
    "By",
    "Files",
    "Grouping",
    "Json",
    "Measuring",
    "PerFile",
    "Profiling",
    "Reading",
    "Scale",
    "SectionedCommand",
    "flattened",
    "option",
]

FORMS = ("from_logits", "from_logprobs", "percent")
"""Options that say how predictions are written."""
COLUMNS, VALUES, GROUPS = "Columns", "Values", "Groups"
MEASURE, OUTPUT, GATES = "Measurement", "Output", "Gates"


def option(text: str, *names: str, section: str, **more: Any) -> Any:
    """A typer option in a section of the help."""
    return typer.Option(*names, help=text, rich_help_panel=section, show_default=False, **more)


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILES",
        help="Parquet, CSV, JSON lines, Arrow; folders and globs of these; sketches; logs of language "
        "model evaluations; - for standard input.",
        show_default=False,
    ),
]
Json = Annotated[bool, option("Print JSON (stable schema).", "--json", section=OUTPUT)]
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
        "Column to group by. Repeat it, or join names with commas.", section=GROUPS, metavar="NAME"
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
        option("Column of predictions. Repeat it for several models. [found by its name: p, prob, score, "
               "confidence]", section=COLUMNS, metavar="NAME"),
    ] = None  # fmt: skip
    label: Annotated[
        str | None,
        option("Column of outcomes. [found by its name: y, label, target, correct]",
               section=COLUMNS, metavar="NAME"),
    ] = None  # fmt: skip
    weight: Annotated[
        str | None, option("Column of weights (importance).", section=COLUMNS, metavar="NAME")
    ] = None
    from_logits: Annotated[
        bool, option("Predictions are log-odds.", "--from-logits", section=VALUES)
    ] = False
    from_logprobs: Annotated[
        bool, option("Predictions are log-probabilities.", "--from-logprobs", section=VALUES)
    ] = False
    percent: Annotated[
        bool, option("Predictions run from 0 to 100.", "--percent", section=VALUES)
    ] = False
    pos_label: Annotated[
        str | None, option("The label of the event, such as yes.", section=VALUES, metavar="VALUE")
    ] = None
    outcomes: Annotated[
        Literal["binary", "soft"],
        option("soft: outcomes are shares in [0, 1], such as partial credit.", section=VALUES,
               metavar="binary|soft"),
    ] = "binary"  # fmt: skip
    multiclass: Annotated[
        Literal["confidence", "top-label", "classwise"] | None,
        option("Predictions are one column per class (--prob 'p_*') or a column of lists. Labels are "
               "names as in the columns, or count them from 0.", section=VALUES,
               metavar="confidence|top-label|classwise"),
    ] = None  # fmt: skip
    classes: Annotated[
        str | None,
        option("Names of the classes, in the order of their columns or lists, joined with commas.",
               section=VALUES, metavar="NAMES"),
    ] = None  # fmt: skip
    on_invalid: Annotated[
        Literal["raise", "drop"],
        option("drop: leave out rows that break a rule, and count them.", section=VALUES,
               metavar="raise|drop"),
    ] = "raise"  # fmt: skip
    sep: Annotated[
        str | None,
        option("Separator of the fields of a CSV file. [found in the file]", section=VALUES,
               metavar="CHARACTER"),
    ] = None  # fmt: skip
    log: Annotated[
        Literal["lm-eval", "inspect", "openai-evals", "helm", "jsonl"] | None,
        option("Kind of a language model's evaluation log. [found in the file]", section=VALUES,
               metavar="lm-eval|inspect|openai-evals|helm|jsonl"),
    ] = None  # fmt: skip
    filter: Annotated[
        str | None,
        option("Answer filter of an lm-eval log that has several.", section=VALUES, metavar="NAME"),
    ] = None
    form: Annotated[
        Literal["probability", "percent", "sum", "mean", "token", "choices", "agreement"] | None,
        option("How a log writes confidence: percent (0 to 100); log-probabilities of the answer's tokens "
               "(sum, mean, token) or of its options (choices); sampled answers (agreement).",
               section=VALUES, metavar="NAME"),
    ] = None  # fmt: skip
    words: Annotated[
        str | None,
        option("What a log's words of confidence stand for, such as "
               "'very likely=0.9,likely=0.7'.", section=VALUES, metavar="WORD=SHARE,..."),
    ] = None  # fmt: skip
    score_range: Annotated[
        str | None,
        option("Lowest and highest score that a judge can give, such as 1,5; with --outcomes soft.",
               section=VALUES, metavar="LOW,HIGH"),
    ] = None  # fmt: skip

    @property
    def options(self) -> dict[str, Any]:
        """How rows are read, as the library has it, without what is at its default."""
        given = {
            "sample_weight": self.weight,
            "from_logits": self.from_logits,
            "from_logprobs": self.from_logprobs,
            "percent": self.percent,
            "pos_label": self.pos_label,
            "labels": self.outcomes if self.outcomes != "binary" else None,
            "multiclass": self.multiclass.replace("-", "_") if self.multiclass else None,
            "classes": self.classes.split(",") if self.classes else None,
            "on_invalid": self.on_invalid if self.on_invalid != "raise" else None,
            "sep": self.sep,
        }
        return {name: value for name, value in given.items() if value}

    @property
    def options_of_forms(self) -> dict[str, Any]:
        """How predictions are written, as the library has it."""
        return {name: value for name, value in self.options.items() if name in FORMS}


@dataclass(frozen=True)
class Grouping:
    """How the rows are split into groups."""

    by: By = None
    per_file: PerFile = False
    max_groups: Annotated[
        int,
        option("Show this many of the largest groups and combine the rest. [50]", section=GROUPS,
               min=1, metavar="N"),
    ] = 50  # fmt: skip
    correction: Annotated[
        Literal["holm", "bh", "bonferroni", "none"],
        option("Correction for testing many groups: holm guards against any false finding, bh allows a few. "
               "[holm]",
               section=GROUPS, metavar="NAME"),
    ] = "holm"  # fmt: skip

    @property
    def columns(self) -> list[str]:
        """The names, one by one."""
        names = [name for given in self.by or [] for name in given.split(",")]
        if "" in names:
            raise InputError(
                "must name columns",
                argument="by",
                seen=",".join(self.by or []),
                cure="Pass the names of columns, separated by commas.",
            )
        return names


@dataclass(frozen=True)
class Measuring:
    """How the measurement is made."""

    cluster: Annotated[
        str | None,
        option("Column that marks rows which belong together (question, patient, match).",
               section=MEASURE, metavar="NAME"),
    ] = None  # fmt: skip
    scale: Scale = "probability"
    confidence: Annotated[
        float,
        option(f"Confidence of the intervals. [{CONFIDENCE}]", section=MEASURE, metavar="SHARE"),
    ] = CONFIDENCE
    seed: Annotated[
        int, option("Seed of random draws, 0 or more. [0]", section=MEASURE, min=0, metavar="N")
    ] = 0


@dataclass(frozen=True)
class Profiling:
    """The quantities that a field of use asks for."""

    profile: Annotated[
        Literal["clinical", "credit", "weather", "llm"] | None,
        option("Add what a field asks for: clinical (TRIPOD+AI), credit (grades), weather, llm.",
               section=MEASURE, metavar="clinical|credit|weather|llm"),
    ] = None  # fmt: skip
    thresholds: Annotated[
        list[str] | None,
        option("Probabilities at which you act, for the net benefit of --profile clinical. Repeat it, or "
               "join numbers with commas.", section=MEASURE, metavar="SHARE"),
    ] = None  # fmt: skip
    hosmer_lemeshow: Annotated[
        bool | None,
        option("Add the Hosmer-Lemeshow test to --profile clinical; it is not recommended.",
               "--hosmer-lemeshow", section=MEASURE),
    ] = None  # fmt: skip
    cuts: Annotated[
        list[str] | None,
        option("Predictions at which a new grade of --profile credit begins. Repeat it, or join numbers "
               "with commas.", section=MEASURE, metavar="SHARE"),
    ] = None  # fmt: skip
    grades: Annotated[
        str | None,
        option("Column of grades for --profile credit. [ranges of predictions]", section=COLUMNS,
               metavar="NAME"),
    ] = None  # fmt: skip
    climatology: Annotated[
        str | None,
        option("Column of forecasts to beat for --profile weather. [the event rate]", section=COLUMNS,
               metavar="NAME"),
    ] = None  # fmt: skip


class SectionedCommand(TyperCommand):
    """A command whose help lists its options under the headings that they were given."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections, in the order in which their first options come."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                panel = getattr(parameter, "rich_help_panel", None)
                kind = "Other options"
                if parameter.param_type_name == "argument":
                    kind, record = "Arguments", (parameter.metavar or record[0], record[1])
                sections.setdefault(panel or kind, []).append(record)
        for heading in sorted(sections, key=lambda name: name == "Other options"):
            with formatter.section(heading):
                formatter.write_dl(sections[heading], col_max=26)


@dataclass(frozen=True)
class _Parameter:
    """One option: what typer is told (text, texts or a flag), and what is made of it."""

    name: str
    kind: Any
    default: Any
    declared: Any

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it may be, where these are counted."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def is_text(self) -> bool:
        """Whether typer hands it over as text that is read here."""
        return bool(self.choices) or self.kind in (int, float)

    def for_typer(self) -> inspect.Parameter:
        """The same as text: typer checks no values, so that every message about one is ours."""
        kind = str | None if self.is_text else self.kind
        least = getattr(self.declared, "min", None)
        if least is not None:
            self.declared.min = None
            self.declared.least = least
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None
            if self.is_text and self.default is not inspect.Parameter.empty
            else self.default,
            annotation=Annotated[kind, self.declared],
        )

    def read(self, text: Any) -> Any:
        """The value that was typed, or the default."""
        if not self.is_text:
            return text
        if text is None:
            return self.default
        if self.choices:
            require_choice(self.name, text, self.choices)
            return text
        return self._number(text)

    def _number(self, text: str) -> float:
        least = getattr(self.declared, "least", None)
        rule = "must be a whole number" if self.kind is int else "must be a number"
        if least is not None:
            rule += f", {least} or more"
        try:
            number: float = self.kind(text)
        except ValueError:
            raise InputError(rule, argument=self.name, seen=text) from None
        if least is not None and number < least:
            raise InputError(rule, argument=self.name, seen=number)
        return number


def _parameters(name: str, hint: Any, default: Any) -> list[_Parameter]:
    """The options of a parameter of a verb: itself, or the fields of a group of options."""
    if is_dataclass(hint):
        hints = get_type_hints(hint, include_extras=True)
        return [one for f in fields(hint) for one in _parameters(f.name, hints[f.name], f.default)]
    kind, declared = get_args(hint)[:2]
    if get_origin(kind) in (Union, UnionType) and kind != list[str] | None:
        kind = next(part for part in get_args(kind) if part is not NoneType)
        kind = str | None if kind is str else kind
    return [_Parameter(name, kind, default, declared)]


def flattened(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb with each parameter that is a dataclass of options spread into those options."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {n: hint for n, hint in hints.items() if is_dataclass(hint)}
    parameters = [
        one
        for parameter in inspect.signature(verb).parameters.values()
        for one in _parameters(parameter.name, hints[parameter.name], parameter.default)
    ]

    def call(**typed: Any) -> None:
        values = {one.name: one.read(typed[one.name]) for one in parameters}
        for name, options in groups.items():
            values[name] = options(**{f.name: values.pop(f.name) for f in fields(options)})
        try:
            try:
                verb(**values)
            finally:
                sys.stdout.flush()
        except KeyboardInterrupt as error:
            raise Interrupted from error
        except BrokenPipeError as error:
            raise NoReader from error

    signature = inspect.Signature([one.for_typer() for one in parameters])
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    return call
