"""Columns to read from a source, and the grid: the one description that every engine is given."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from itertools import chain, count
from numbers import Number
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant.data.arrays import SEVERAL_MODELS
from calibrant.data.cell_sums import FRACTION_BITS, require_nodes
from calibrant.data.classes import as_class_names
from calibrant.data.rows import (
    REASONS,
    Classes,
    Form,
    as_probabilities,
    require_forms_of_classes,
    require_label,
)
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.errors import InputError, invalid, show_value

PROB, LABEL, WEIGHT = "__calibrant_prob", "__calibrant_label", "__calibrant_weight"
"""Names of the columns once they have been selected, whatever they were called before."""
MODEL, FILE = "model", "file"
"""Names of groups that no column of the source tells apart: columns of predictions, files."""
PREDICTION = "prediction"
"""Name of groups of predictions where a grouping column has theirs."""
MOST_DECIMALS = 15
"""Digits after the point with which a decimal is the same float on every engine."""

OnInvalid = Literal["raise", "drop"]
CLASS_COLUMN: Mapping[str, tuple[str, ...]] = {
    "confidence": (),
    "top_label": ("predicted",),
    "classwise": ("class",),
}
"""Names of the groups that each reading of class probabilities makes."""


def name_of_predictions(name: str, groups: Iterable[str]) -> str:
    """Name of the groups that columns of predictions make, which no grouping column has.

    Examples
    --------
    >>> name_of_predictions("model", ["day"]), name_of_predictions("model", ["model", "day"])
    ('model', 'prediction')
    """
    taken = set(groups)
    others = (f"{PREDICTION}_{place}" for place in count(2))
    return next(one for one in chain((name, PREDICTION), others) if one not in taken)


@dataclass(frozen=True)
class Request:
    """Columns of the source, and the grid of the sketch.

    Attributes
    ----------
    columns : mapping
        PROB, LABEL and perhaps WEIGHT, each to a name in the source or to an expression.
    groups : mapping
        Names of the grouping columns, each to a name in the source or to an expression; a cluster
        column comes last.
    form : {"probability", "logit", "percent"}
        How the predictions of files are written.
    soft : bool
        Labels are shares in [0, 1].
    pos_label : object
        The label of the event, or None where labels are 0 and 1.
    models : tuple of str
        Names of the models, where there are several columns of predictions.
    multiclass : str, optional
        How columns of class probabilities are read.
    class_names : tuple, optional
        Classes of the columns of class probabilities, where labels are names.
    """

    columns: Mapping[str, Any]
    groups: Mapping[str, Any]
    nodes: int
    scale: Scale
    on_invalid: OnInvalid
    form: Form = "probability"
    soft: bool = False
    pos_label: Any = None
    models: tuple[str, ...] = ()
    multiclass: Classes | None = None
    class_names: tuple[Any, ...] | None = None

    def probabilities(self, p: NDArray[Any]) -> NDArray[Any]:
        """Predictions as probabilities, whatever form they are written in."""
        return as_probabilities(p, self.form)

    @property
    def prob_aliases(self) -> tuple[str, ...]:
        """Aliases of the columns of predictions."""
        return tuple(alias for alias in self.columns if alias.startswith(PROB))

    @property
    def named_labels(self) -> bool:
        """Labels may be names, which are not 0 and 1."""
        return self.pos_label is not None or self.multiclass is not None

    def unreadable(self, alias: str) -> float:
        """Number that stands for text in this column, if such rows are to be dropped: out of range."""
        return np.nan if alias.startswith(PROB) and self.form == "logit" else np.inf

    @property
    def weighted(self) -> bool:
        """Rows have weights."""
        return WEIGHT in self.columns

    @property
    def added(self) -> tuple[str, ...]:
        """Names of the groups that the columns of predictions make: the model, or the class."""
        names = CLASS_COLUMN[self.multiclass] if self.multiclass else (MODEL,) * bool(self.models)
        return tuple(name_of_predictions(name, self.groups) for name in names)

    @property
    def by(self) -> tuple[str, ...]:
        """Names of all groups: those that the columns of predictions make, then the grouping columns."""
        return (*self.added, *self.groups)

    @property
    def group_aliases(self) -> tuple[str, ...]:
        """Aliases of the grouping columns."""
        return tuple(f"__calibrant_group_{place}" for place in range(len(self.groups)))

    @property
    def selection(self) -> dict[str, Any]:
        """All columns that are read, by alias."""
        return {**self.columns, **dict(zip(self.group_aliases, self.groups.values(), strict=True))}

    @property
    def offset_bits(self) -> int:
        """Bits of a fixed-point position that lie inside a cell."""
        return FRACTION_BITS - self.log2_nodes

    @property
    def log2_nodes(self) -> int:
        """Bits of a fixed-point position that name its cell."""
        return self.nodes.bit_length() - 1

    @property
    def cell_slots(self) -> int:
        """Slots for rows: cell c and label y stand at 2 c + y."""
        return 2 * (self.nodes + 1)

    @property
    def slots(self) -> int:
        """All slots of a group: after those for rows, one for each reason to refuse a row."""
        return self.cell_slots + len(REASONS)

    @property
    def fractional(self) -> bool:
        """Rows can count for other than one whole outcome."""
        return self.weighted or self.soft

    @property
    def on_probability_scale(self) -> bool:
        """Cells are plain multiples of the prediction."""
        return self.scale == PROBABILITY

    @property
    def portable(self) -> bool:
        """The sums are a group-by that any engine can compute."""
        plain = self.form == "probability" and not self.named_labels
        return plain and self.on_probability_scale and not self.soft

    def each_model(self) -> Iterator[tuple[tuple[str, ...], Request]]:
        """Groups that a column of predictions adds, and the request for it alone."""
        for place, alias in enumerate(self.prob_aliases):
            columns = {PROB: self.columns[alias]} | {
                name: column for name, column in self.columns.items() if not name.startswith(PROB)
            }
            yield self.models[place : place + 1], replace(self, columns=columns, models=())

    def selected(self) -> Request:
        """Request for what `selection` made: every column has its alias as its name."""
        groups = dict(zip(self.groups, self.group_aliases, strict=True))
        return replace(self, columns={alias: alias for alias in self.columns}, groups=groups)

    def names(self) -> list[str]:
        """Columns of the source that are read by name."""
        return [value for value in self.selection.values() if isinstance(value, str)]

    def require_names(self) -> None:
        """Refuse expressions, for sources that have none."""
        for value in self.selection.values():
            if not isinstance(value, str):
                raise InputError(
                    f"Columns of this source are given by name; got a {type(value).__name__}."
                )


def make_request(
    *,
    y_true: Any,
    y_prob: Any,
    sample_weight: Any = None,
    by: Any = None,
    cluster: Any = None,
    nodes: int = 1 << 16,
    scale: str | Scale = PROBABILITY,
    on_invalid: OnInvalid = "raise",
    form: Form = "probability",
    labels: Literal["binary", "soft"] = "binary",
    pos_label: Any = None,
    multiclass: Classes | None = None,
    classes: Sequence[Any] | None = None,
) -> Request:
    """Request for these arguments of `scan`, checked."""
    require_choice("labels", labels, ("binary", "soft"))
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    for name, column in (("y_true", y_true), ("y_prob", y_prob)):
        if column is None:
            raise InputError(f"`{name}` must name a column of the data; got None.", argument=name)
    if isinstance(y_prob, Mapping):
        raise invalid("y_prob", "be a column, or a list of columns", y_prob, SEVERAL_MODELS)
    several = isinstance(y_prob, list)  # a tuple may name one column of pandas
    probs = list(y_prob) if several else [y_prob]
    if len({show_value(prob) for prob in probs}) < len(probs) or not probs:
        raise invalid("y_prob", "name each column of predictions once", probs)
    if pos_label is not None:
        require_label(labels, pos_label)
    if multiclass is not None:
        require_choice("multiclass", multiclass, tuple(CLASS_COLUMN))
        require_forms_of_classes(form, labels, pos_label)
    elif classes is not None:
        raise InputError("`classes` needs `multiclass` beside it.")
    columns = {PROB: y_prob} if not several else {f"{PROB}_{k}": p for k, p in enumerate(probs)}
    columns[LABEL] = y_true
    if sample_weight is not None:
        columns[WEIGHT] = sample_weight
    groups, clusters = _as_groups(by, "by"), _as_groups(cluster, "cluster")
    for name in groups.keys() & clusters.keys():
        one, other = groups[name], clusters[name]
        if one is not other and not (isinstance(one, str) and one == name == other):
            raise InputError(
                f"`cluster` must give each column a name of its own; `by` has {name!r} too.",
            )
    named = None
    if classes is not None:
        named = tuple(as_class_names(classes, None if len(probs) == 1 else len(probs)))
    return Request(
        columns,
        groups | clusters,
        require_nodes(nodes),
        as_scale(scale),
        on_invalid,
        form,
        labels == "soft",
        pos_label,
        tuple(map(str, probs)) if several and multiclass is None else (),
        multiclass,
        named,
    )


def _as_groups(by: Any, name: str) -> dict[str, Any]:
    if by is None:
        return {}
    if isinstance(by, str):
        return {by: by}
    if isinstance(by, Mapping) and by:
        return dict(by)
    if isinstance(by, Sequence) and by and all(isinstance(item, str) for item in by):
        return {item: item for item in by}
    raise invalid(
        name, "be a column's name, a list of names, or a dict from new names to expressions", by
    )


# -- rules on columns --------------------------------------------------------------------------


def argument_of(alias: str) -> str:
    """Name of the argument of a column, by its alias."""
    return {LABEL: "y_true", WEIGHT: "sample_weight"}.get(alias, "y_prob")


def is_constant(column: Any) -> bool:
    """Plain value, which is no expression of any engine."""
    return column is None or isinstance(
        column, Number | bytes | tuple | date | time | timedelta | np.generic
    )


def refuse_constant(column: Any) -> NoReturn:
    """Raise the InputError for a column that is given as a plain value."""
    raise InputError(
        f"A column is given by its name, or as an expression of the engine; {show_value(column)} would be "
        "the same for every row."
    )


def require_columns(wanted: Iterable[Any], present: Iterable[Any], where: str) -> None:
    """Refuse names that are not among the columns, with the nearest that are, or stand for several."""
    present = list(present)
    own = [name for name in present if not str(name).startswith("__calibrant_")]
    known = {str(name): name for name in own}  # pandas has names that are no text
    for name in wanted:
        if present.count(name) > 1:
            refuse_repeated(name, present.count(name), where)
        if name in present:
            continue
        near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
        listed = ", ".join(map(show_value, own[:10])) + (", ..." if len(own) > 10 else "")
        raise InputError(
            f"{where} must have a column {show_value(name)}; it has {listed or 'none'}.",
            hint=f"Did you mean {show_value(known[near[0]])}?" if near else None,
        )


def refuse_repeated(name: str, times: int, where: str) -> NoReturn:
    """Raise the InputError for a name that several columns have."""
    raise InputError(
        f"{where} must have one column {show_value(name)}; it has {times} of that name.",
        hint="Rename or leave out the others.",
    )


def require_kinds(kinds: Mapping[str, Any], request: Request) -> None:
    """Refuse types of columns, by alias: text where numbers are meant, lists as groups, long decimals.

    With up to 15 digits after the point, both the digits and the power of ten are whole floats, and
    their quotient is rounded once, on every engine. More digits are rounded twice on some.
    """
    for alias, name in zip(request.group_aliases, request.groups, strict=True):
        if alias in kinds and kinds[alias].is_nested():
            kind = show_value(str(kinds[alias]))
            raise InputError(f"A group must be a plain value; column {name!r} holds {kind}.")
    of_classes = request.multiclass is not None
    for alias in (alias for alias in request.columns if alias in kinds):
        kind, text = kinds[alias], type(kinds[alias]).__name__
        is_lone = of_classes and len(request.prob_aliases) == 1
        may_be_other = (
            (alias == LABEL and request.named_labels)
            or (of_classes and kind.is_nested())
            or (is_lone and text == "String")  # lists may be written as text
        )
        is_number = kind.is_numeric() or kind.is_boolean() or text in ("Object", "Unknown")
        if not (may_be_other or is_number):
            nested = kind.is_nested()
            raise numberless(alias, request.columns[alias], f"is of type {kind}", nested=nested)
        if text == "Decimal" and getattr(kind, "scale", 0) > MOST_DECIMALS:
            name = argument_of(alias)
            raise InputError(
                f"`{name}` must have at most {MOST_DECIMALS} digits after the point; its type is {kind}.",
                argument=name,
                hint="Convert the column to floats first.",
            )


def numberless(
    alias: str,
    column: Any,
    problem: str,
    *,
    nested: bool = False,
    text: str = "",
    row: int | None = None,
) -> InputError:
    """Error for a column, or the text of a cell, that is no number, with the option that reads it."""
    name, hint = argument_of(alias), "Convert it to numbers first."
    if alias == LABEL:
        hint = (
            "Name the event with `pos_label=`. For a column of probabilities for each class, pass "
            '`multiclass="confidence"`.'
        )
    elif alias.startswith(PROB) and nested:
        hint = 'Lists of class probabilities are read with `multiclass="confidence"`.'
    elif alias.startswith(PROB) and text.rstrip().endswith("%"):
        hint = "If these are percentages, pass `percent=True`."
    elif text:
        hint = 'To leave such rows out and count them, pass `on_invalid="drop"`.'
    message = f"`{name}` must hold numbers; column {show_value(column)} {problem}."
    return InputError(message, argument=name, row=row, hint=hint)


def no_rows() -> InputError:
    """Error for a source without rows."""
    return InputError(
        "`data` must hold rows; the source has none.",
        hint="Check the path, and the condition that chose the rows.",
    )
