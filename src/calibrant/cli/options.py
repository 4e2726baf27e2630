"""Options that verbs share, how a verb declares its own, and the registry of verbs.

A verb is a function under `verb`. Its parameters are the options, and its docstring is the help: a section
of it, such as `Output`, lists options with their metavar and text. A parameter whose type is a dataclass
stands for the options that are its fields, which the docstring of the dataclass describes.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, cast, get_type_hints

import typer
from typer.core import TyperCommand

from calibrant._arguments import CONFIDENCE, require_count
from calibrant.errors import InputError

__all__ = [
    "FORMS",
    "Grouping",
    "Measuring",
    "Picture",
    "Profiling",
    "Reading",
    "Testing",
    "app",
    "as_numbers",
    "load_verbs",
    "verb",
]

FORMS = ("from_logits", "from_logprobs", "percent")
"""Options that say how predictions are written."""
SHORT = {
    "prob": "--y-prob",
    "label": "--y-true",
    "weight": "--sample-weight",
    "outcomes": "--labels",
    "max_groups": "--limit",
    "column": "--columns",
    "log": "--format",
    "output": "-o",
}
"""Second names of options: those of Python, and of one letter."""

app = typer.Typer(
    help="Can I trust these probabilities? Measure, show and improve calibration.",
    epilog="Exit codes: 0 done; 1 a fault in calibrant; 2 a wrong option or a file that cannot be used; "
    "3 a limit was exceeded; 4 a limit could not be shown to hold; 130 interrupted; 141 the reader of the "
    "output went away.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich takes as long to load as all the rest of --help
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["--help", "-h"],
        "max_content_width": 100,
        "token_normalize_func": lambda word: word.replace("_", "-"),  # as in Python
    },
)


def verb(*examples: str, needs_arguments: bool = True) -> Callable[[Any], Any]:
    """Decorator that registers a function as a verb of the command line."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        app.command(
            cls=SectionedCommand,
            no_args_is_help=needs_arguments,
            epilog="Examples:\n\n" + "\n\n".join(examples),
        )(_flattened(function))
        return function

    return register


def load_verbs() -> None:
    """Import every module of the command line but private ones: each registers its verbs."""
    package = importlib.import_module("calibrant.cli")
    for module in pkgutil.iter_modules(package.__path__):
        if not module.name.startswith("_"):  # verbs load NumPy and files when they run
            importlib.import_module(f"calibrant.cli.{module.name}")


class SectionedCommand(TyperCommand):
    """Command whose help lists the options in sections."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the sections, in the order in which their first options come."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                section = getattr(parameter, "rich_help_panel", None) or "Other options"
                sections.setdefault(section, []).append(record)
        for section in sorted(sections, key=lambda name: name == "Other options"):
            with formatter.section(section):
                formatter.write_dl(sections[section], col_max=26)


def _documented(docstring: str | None) -> tuple[str, dict[str, tuple[str, str, str]]]:
    """Text before the sections of a docstring, and (section, metavar, text) of each option.

    Examples
    --------
    >>> _documented(Picture.__doc__)[1]["title"]
    ('Picture', 'TEXT', 'Title.')
    """
    head, *sections = re.split(r"^(\w+)\n-+\n", inspect.cleandoc(docstring or ""), flags=re.M)
    options = {}
    for section, body in zip(sections[::2], sections[1::2], strict=True):
        entries = re.split(r"^(\w+) : (\S*)\n", body, flags=re.M)[1:]
        for name, metavar, text in zip(entries[::3], entries[1::3], entries[2::3], strict=True):
            options[name] = (section, metavar, " ".join(text.split()))
    return head, options


def _option(name: str, kind: Any, documented: dict[str, tuple[str, str, str]]) -> Any:
    """Annotation by which typer knows an option, or an argument where there is no text for it."""
    section, metavar, text = documented[name]
    shared: dict[str, Any] = {"help": text, "rich_help_panel": section, "show_default": False}
    if metavar.isupper():
        shared["metavar"] = metavar
    if section == "Inputs":
        return Annotated[kind, typer.Argument(**shared)]
    names = [f"--{name.replace('_', '-')}", *filter(None, [SHORT.get(name)])]
    return Annotated[kind, typer.Option(*names, **shared)]


def _flattened(function: Callable[..., None]) -> Callable[..., None]:
    """The verb as typer takes it: options one by one, each with its text."""
    hints = get_type_hints(function)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    text, own = _documented(function.__doc__)
    parameters = []
    for parameter in inspect.signature(function).parameters.values():
        name, kind = parameter.name, inspect.Parameter.KEYWORD_ONLY
        if name in groups:
            types, documented = get_type_hints(groups[name]), _documented(groups[name].__doc__)[1]
            for item in fields(groups[name]):
                option = _option(item.name, types[item.name], documented)
                parameters.append(
                    inspect.Parameter(item.name, kind, default=item.default, annotation=option)
                )
        else:
            option = _option(name, hints[name], SHARED | own)
            parameters.append(parameter.replace(kind=kind, annotation=option))

    def call(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{item.name: values.pop(item.name) for item in fields(group)})
        function(**values)
        sys.stdout.flush()  # here, where a reader that went away is noticed

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    call.__name__, call.__doc__ = function.__name__, text
    return call


def _version(wanted: bool) -> None:
    if wanted:
        from calibrant import __version__

        typer.echo(f"calibrant {__version__}")
        raise typer.Exit


@app.callback()
def _calibrant(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks. Works anywhere in the command.")
    ] = False,
) -> None:
    pass


class Shared:
    """Options of several verbs that are in no group.

    Inputs
    ------
    files : FILES
        Parquet, CSV, JSON lines, Arrow; folders and globs of these; sketches; logs of language model
        evaluations; - for standard input.

    Measurement
    -----------
    scale : NAME
        probability, logit, logit/4, or relative:RATE for an event of that rate. [probability]
    thresholds : SHARE
        Probabilities at which you act. Repeat it, or join numbers with commas.

    Groups
    ------
    by : NAME
        Column to group by. Repeat it, or join names with commas.
    per_file : -
        One group per file instead of all together.

    Output
    ------
    json : -
        Print JSON, as `to_dict()` in Python.
    open : -
        Open the file when it is done.
    """


SHARED = _documented(Shared.__doc__)[1]


@dataclass(frozen=True)
class Reading:
    """Columns, and how their values are written.

    Columns
    -------
    prob : NAME
        Column of predictions. Several models or classes: repeat it, join names with commas, or write a
        pattern such as 'p_*'. [found by its name: p, prob, score, confidence]
    label : NAME
        Column of outcomes. [found by its name: y, label, target, correct]
    weight : NAME
        Column of weights (importance).

    Values
    ------
    from_logits : -
        Predictions are log-odds.
    from_logprobs : -
        Predictions are log-probabilities.
    percent : -
        Predictions run from 0 to 100.
    pos_label : VALUE
        The label of the event, such as yes.
    outcomes : -
        soft: outcomes are shares in [0, 1], such as partial credit.
    multiclass : -
        Predictions are one column per class (--prob 'p_*') or a column of lists. Labels are names as in the
        columns, or count them from 0.
    classes : NAMES
        Names of the classes, in the order of their columns or lists, joined with commas.
    on_invalid : -
        drop: leave out rows that break a rule, and count them.
    sep : CHARACTER
        Separator of the fields of a CSV file. [found in the file]
    log : NAME
        Kind of a language model's evaluation log: lm-eval, inspect, openai-evals, helm or jsonl. [found in
        the file]
    filter : NAME
        Answer filter of an lm-eval log that has several.
    form : NAME
        How a log writes confidence: percent (0 to 100); log-probabilities of the answer's tokens (sum,
        mean, token) or of its options (choices); sampled answers (agreement).
    words : WORD=SHARE,...
        Probabilities of a log's words, such as 'very likely=0.9,likely=0.7'.
    score_range : LOW,HIGH
        Lowest and highest score that a judge can give, such as 1,5; with --outcomes soft.
    """

    prob: list[str] | None = None
    label: str | None = None
    weight: str | None = None
    from_logits: bool = False
    from_logprobs: bool = False
    percent: bool = False
    pos_label: str | None = None
    outcomes: Literal["binary", "soft"] = "binary"
    multiclass: Literal["confidence", "top-label", "classwise"] | None = None
    classes: str | None = None
    on_invalid: Literal["raise", "drop"] = "raise"
    sep: str | None = None
    log: str | None = None
    filter: str | None = None
    form: (
        Literal["probability", "percent", "sum", "mean", "token", "choices", "agreement"] | None
    ) = None
    words: str | None = None
    score_range: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Keywords of the library that say how values are written, without defaults."""
        given = {
            **self.forms,
            "pos_label": self.pos_label,
            "labels": self.outcomes,
            "multiclass": self.multiclass and self.multiclass.replace("-", "_"),
            "classes": self.class_names,
            "on_invalid": self.on_invalid,
        }
        return {k: one for k, one in given.items() if one not in (None, "binary", "raise")}

    def event(self, labels: Any) -> dict[str, Any]:
        """The label of the event, as a number where the column holds numbers."""
        if self.pos_label is None or labels.dtype.kind not in "biuf":
            return {} if self.pos_label is None else {"pos_label": self.pos_label}
        return {"pos_label": as_numbers([self.pos_label], "pos_label")[0]}

    @property
    def forms(self) -> dict[str, Any]:
        """Forms in which predictions are written: the options of `FORMS` that are set."""
        return {name: True for name in FORMS if getattr(self, name)}

    @property
    def class_names(self) -> list[str] | None:
        """Names of the classes, one by one."""
        return [name.strip() for name in self.classes.split(",")] if self.classes else None


@dataclass(frozen=True)
class Grouping:
    """Options of the split of rows into groups.

    Groups
    ------
    by : NAME
        Column to group by. Repeat it, or join names with commas.
    per_file : -
        One group per file instead of all together.
    """

    by: list[str] | None = None
    per_file: bool = False

    @property
    def columns(self) -> list[str]:
        """Names of the columns of `--by`, one by one."""
        names = [name for given in self.by or [] for name in given.split(",")]
        if "" in names:
            raise InputError("`by` must be names of columns, joined with commas.")
        return names


@dataclass(frozen=True)
class Testing:
    """Options of the tests of many groups.

    Groups
    ------
    max_groups : N
        Show this many of the largest groups and combine the rest. [50]
    correction : NAME
        Correction for testing many groups: holm and bonferroni guard against any false finding, bh allows a
        few; none. [holm]
    """

    max_groups: int = 50
    correction: str = "holm"

    def __post_init__(self) -> None:
        from calibrant.inference.correction import require_correction

        require_count("max_groups", self.max_groups)
        require_correction(cast(Any, self.correction))


@dataclass(frozen=True)
class Measuring:
    """Options of the measurement.

    Measurement
    -----------
    cluster : NAME
        Column that marks rows which belong together (question, patient, match).
    scale : NAME
        probability, logit, logit/4, or relative:RATE for an event of that rate. [probability]
    confidence : SHARE
        Confidence of the intervals. [0.95]
    """

    cluster: str | None = None
    scale: str = "probability"
    confidence: float = CONFIDENCE


@dataclass(frozen=True)
class Profiling:
    """Quantities that a field of use asks for.

    Measurement
    -----------
    profile : NAME
        Add what a field asks for: clinical (TRIPOD+AI), credit (grades), weather, llm.
    thresholds : SHARE
        Probabilities at which you act, for the net benefit of --profile clinical. Repeat it, or join
        numbers with commas.
    hosmer_lemeshow : -
        Add the Hosmer-Lemeshow test to --profile clinical; it is not recommended.
    cuts : SHARE
        Predictions at which a new grade of --profile credit begins. Repeat it, or join numbers with commas.

    Columns
    -------
    grades : NAME
        Column of grades for --profile credit. [ranges of predictions]
    climatology : NAME
        Column of forecasts to beat for --profile weather. [the event rate]
    """

    profile: str | None = None
    thresholds: list[str] | None = None
    hosmer_lemeshow: bool = False
    cuts: list[str] | None = None
    grades: str | None = None
    climatology: str | None = None


@dataclass(frozen=True)
class Picture:
    """Options of the look of a picture.

    Picture
    -------
    theme : NAME
        Colours: light, dark or print. [light]
    title : TEXT
        Title.
    width : INCHES
        Width in inches: 3.3 for a column of a paper. [4.2]
    dpi : N
        Resolution of a .png. [200]
    """

    theme: str = "light"
    title: str | None = None
    width: float | None = None
    dpi: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Keywords of a diagram's `save`, without defaults."""
        return {name: value for name, value in vars(self).items() if value is not None}


def as_numbers(texts: Sequence[str] | None, argument: str) -> Any:
    """Numbers of an option that was repeated, or whose values are joined with commas."""
    if texts is None:
        return None
    try:
        return [float(text) for given in texts for text in given.split(",")]
    except ValueError:
        got = ",".join(texts)
        raise InputError(f"`{argument}` must be numbers; got {got!r}.") from None
