"""Errors and warnings as data: the rule, the argument, what was seen, where, and the cures.

An error is made once, where a rule is broken, and rendered for whoever reads it: `str(error)` speaks
Python; the command line renders the same fields with its own names (`render`). No code reads the words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self

__all__ = [
    "PYTHON",
    "Audience",
    "CalibrantWarning",
    "CalibrationError",
    "Code",
    "Cure",
    "Function",
    "InputError",
    "InvalidRows",
    "MergeError",
    "Message",
    "MissingDependency",
    "Option",
    "TooFewRows",
    "TypeName",
    "Where",
    "show_value",
]

NOTHING: Any = type(
    "Nothing", (), {"__repr__": lambda _: "nothing", "__reduce__": lambda _: "NOTHING"}
)()
"""Stands for "no value was seen", as None may be what was seen."""


class TypeName(str):
    """The name of a type that was seen where another was wanted, shown without quotes."""

    @classmethod
    def of(cls, value: Any) -> TypeName:
        """The type of a value.

        Examples
        --------
        >>> show_value(TypeName.of([0.2]))
        'list'
        """
        return cls(type(value).__name__)

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Option:
    """An argument that a message mentions: `name`, `name=value`, or `name=` where the value is `...`."""

    name: str
    value: Any = NOTHING


@dataclass(frozen=True)
class Function:
    """A public function that a message mentions."""

    name: str


@dataclass(frozen=True)
class Code:
    """Python that a message mentions, for whoever can type it."""

    text: str


_NAMES = (Option, Function, Code)


@dataclass(frozen=True)
class Where:
    """The place of what was seen: any of a row (from 0), a line (from 1), a column, a file, a group."""

    row: int | None = None
    line: int | None = None
    column: str | None = None
    file: str | None = None
    group: str | None = None

    def __str__(self) -> str:
        places = [
            f"row {self.row}" if self.row is not None else "",
            f"line {self.line}" if self.line is not None else "",
            f"column {self.column!r}" if self.column is not None else "",
            f"group {self.group}" if self.group is not None else "",
            self.file or "",
        ]
        return " of ".join(place for place in places if place)


@dataclass(frozen=True)
class Audience:
    """Who reads a message: how arguments, options and functions are called there.

    `names` and `functions` map the library's names to what this audience types; an audience with an empty
    table (Python) uses the library's own. `columns` holds the columns that the arguments were read from.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)

    def knows(self, value: Any) -> bool:
        """Whether this audience can act on a value of a cure."""
        if isinstance(value, tuple):
            return all(map(self.knows, value))
        if isinstance(value, Option):
            return not self.names or value.name in self.names
        if isinstance(value, Function):
            return not self.functions or value.name in self.functions
        return not (isinstance(value, Code) and self.names)

    def argument(self, name: str) -> str:
        """An argument as the subject of a sentence."""
        if name in self.columns:
            return f"column {self.columns[name]!r}"
        return f"`{self.names.get(name, name)}`"

    def show(self, value: Any) -> str:
        """A value inside a sentence."""
        if isinstance(value, Option):
            return self._option(value)
        if isinstance(value, Function):
            return f"`{self.functions.get(value.name, f'calibrant.{value.name}')}`"
        if isinstance(value, tuple) and all(isinstance(one, _NAMES) for one in value):
            return ", ".join(map(self.show, value))
        if isinstance(value, Code):
            return f"`{value.text}`"
        if isinstance(value, Message):  # why something failed, inside the sentence that says so
            return value.render(self).rstrip(".")
        return value if isinstance(value, str) else show_value(value)

    def _option(self, option: Option) -> str:
        name, value = option.name, option.value
        if not self.names:
            if value is NOTHING:
                return f"`{name}`"
            return f"`{name}=`" if value is ... else f"`{name}={_quoted(value)}`"
        typed = self.names.get(name, name)
        if value is NOTHING or value is True:
            return f"`{typed}`"
        return f"`{typed} {'VALUE' if value is ... else value}`"


PYTHON = Audience()
"""The reader of `str(error)`."""


@dataclass(frozen=True, eq=False)
class Cure:
    """What to do about it: a sentence with `{name}` for each value, some of them options."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def render(self, audience: Audience = PYTHON) -> str:
        """The sentence, or nothing where this audience cannot follow it."""
        if not all(audience.knows(value) for value in self.values.values()):
            return ""
        return _filled(self.text, self.values, audience)


class Message(Exception):
    """The fields of an error or a warning, and its words for an audience.

    Parameters
    ----------
    rule : str
        What must hold ("must lie in [0, 1]"), or a whole sentence where no argument is its subject.
    argument : str, optional
        The argument that breaks it, as the library calls it.
    seen : object, optional
        What was seen instead.
    where : Where, optional
        Where it was seen.
    saying : str, optional
        How to say what was seen, with `{}` for it and `{where}` for its place: "its shape is {}".
    cure : str, Cure or several of them, optional
        What to do, as whole sentences.
    **values
        What stands for `{name}` in the rule, `saying` and cures given as text: data, or a name such as
        `Option`, `Function` or `Code`.

    Examples
    --------
    >>> error = InputError(
    ...     "must lie in [0, 1]", argument="y_prob", seen=1.0003, where=Where(row=812),
    ...     cure="If these are logits, pass {option}.", option=Option("from_logits", True),
    ... )
    >>> print(error)
    `y_prob` must lie in [0, 1]; row 812 has 1.0003. If these are logits, pass `from_logits=True`.
    >>> error.where.row, error.seen
    (812, 1.0003)
    """

    def __init__(
        self,
        rule: str,
        *,
        argument: str | None = None,
        seen: Any = NOTHING,
        where: Where | None = None,
        saying: str | None = None,
        cure: str | Cure | Iterable[str | Cure] = (),
        **values: Any,
    ) -> None:
        super().__init__(rule)
        cures = [cure] if isinstance(cure, str | Cure) else list(cure)
        self.rule = rule
        self.argument = argument
        self.seen = seen
        self.where = where or Where()
        self.saying = saying
        self.values = values
        self.cures = tuple(
            Cure(one, _mentioned(one, values)) if isinstance(one, str) else one for one in cures
        )

    @property
    def fields(self) -> dict[str, Any]:
        """What the message is made of, as data."""
        return {
            "rule": self.rule,
            "argument": self.argument,
            "seen": None if self.seen is NOTHING else self.seen,
            "where": {k: value for k, value in asdict(self.where).items() if value is not None},
            "cures": [{"text": cure.text, **cure.values} for cure in self.cures],
        }

    def at(self, **place: Any) -> Self:
        """The same message at a place that is known better by now: a file, a line, a group."""
        return self.but(where=replace(self.where, **place))

    def but(self, **changed: Any) -> Self:
        """The same message with other fields."""
        other = type(self).__new__(type(self), *self.args)
        other.__dict__.update(self.__dict__, **changed)
        return other

    def instead(self, cures: Mapping[str, str]) -> Self:
        """The same message with other cures for those that name these options, which are not at hand."""

        def replaced(cure: Cure) -> Cure:
            named = [value.name for value in cure.values.values() if isinstance(value, Option)]
            return next((Cure(cures[name]) for name in named if name in cures), cure)

        return self.but(cures=tuple(dict.fromkeys(map(replaced, self.cures))))

    def render(self, audience: Audience = PYTHON) -> str:
        """The words for an audience."""
        rule = _filled(self.rule, self.values, audience)
        if self.argument is not None:
            rule = f"{audience.argument(self.argument)} {rule}"
        said = self._said(audience)
        sentence = f"{rule}; {said}" if said else rule
        if not sentence.endswith((".", "?", "!")):
            sentence += "."
        cures = (cure.render(audience) for cure in self.cures)
        return " ".join([sentence, *(cure for cure in cures if cure)])

    def _said(self, audience: Audience) -> str:
        place = str(self.where)
        if self.saying is not None:
            values = {**self.values, "seen": show_value(self.seen), "where": place}
            said = _filled(self.saying.replace("{}", "{seen}"), values, audience)
            return said if not place or "{where}" in self.saying else f"{said} ({place})"
        if self.seen is NOTHING:
            return _filled("see {place}", {"place": place}, audience) if place else ""
        values = {"seen": show_value(self.seen), "place": place}
        return _filled("{place} has {seen}" if place else "got {seen}", values, audience)

    def __str__(self) -> str:
        return self.render()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


class CalibrationError(Message):
    """The parent of every error that calibrant raises on purpose: catch this one to catch them all.

    Examples
    --------
    >>> issubclass(InputError, CalibrationError)
    True
    """


class InputError(CalibrationError, ValueError):
    """A value that the caller gave breaks a rule; its fields say which, what was seen, where, the cures.

    Examples
    --------
    >>> import calibrant as cal
    >>> try:
    ...     cal.smooth_ece([0, 1], [0.2, 1.5])
    ... except cal.CalibrationError as error:  # an InputError
    ...     print(error.argument, error.seen, error.where.row)
    y_prob 1.5 1
    """


class TooFewRows(InputError):
    """There are fewer rows, or clusters of rows, than the answer needs; other groups may have enough.

    `dropped` counts by reason the rows that were left out, where that is why.
    """

    def __init__(self, rule: str, dropped: Mapping[str, int] | None = None, **fields: Any) -> None:
        super().__init__(rule, **fields)
        self.dropped = dict(dropped or {})


class InvalidRows(InputError):
    """Rows of a source break rules: the fields are those of the first, `counts` has all by reason."""

    counts: Mapping[str, int]
    rows: int

    @classmethod
    def after(cls, first: InputError, counts: Mapping[str, int], rows: int) -> InvalidRows:
        """The error of the first such row, with how many there are among how many."""
        error = cls.__new__(cls, *first.args)
        error.__dict__.update(first.__dict__, counts=dict(counts), rows=rows)
        return error

    def render(self, audience: Audience = PYTHON) -> str:
        """The words for an audience, with the count of all such rows."""
        values = {
            "broken": f"{sum(self.counts.values()):,}",
            "rows": f"{self.rows:,}",
            "reasons": ", ".join(f"{reason}: {count:,}" for reason, count in self.counts.items()),
        }
        total = "In all, {broken} of {rows} rows break a rule ({reasons})."
        return f"{super().render(audience)} {_filled(total, values, audience)}"


class MergeError(CalibrationError, ValueError):
    """Two sketches cannot be added because they do not describe the same grid."""


class MissingDependency(CalibrationError, ImportError):
    """An optional package is needed and is not installed; the cure names the command."""


class CalibrantWarning(Message, UserWarning):
    """Something is probably not what the caller meant, though it can be computed."""


def show_value(value: Any) -> str:
    """A value as a person would write it.

    Examples
    --------
    >>> show_value(0.1 + 0.2), show_value(1.0000000000000002), show_value("yes")
    ('0.3', '1.0000000000000002', "'yes'")
    """
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if not isinstance(value, float):
        return repr(value)
    short = f"{value:.10g}"
    # Not so short that what is wrong with it cannot be seen: 1.0000000000000002 is not 1.
    return repr(value) if float(short).is_integer() and not value.is_integer() else short


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else show_value(value)


def _mentioned(text: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if f"{{{name}}}" in text}


def _filled(text: str, values: Mapping[str, Any], audience: Audience) -> str:
    """The text with each `{name}` filled in, in one pass: a value is never a template itself."""

    def shown(match: re.Match[str]) -> str:
        return audience.show(values[match[1]]) if match[1] in values else match[0]

    return re.sub(r"\{(\w+)\}", shown, text)


def _rebuilt(kind: type[Any], arguments: tuple[Any, ...], state: Mapping[str, Any]) -> Any:
    message = kind.__new__(kind, *arguments)
    message.__dict__.update(state)
    return message
