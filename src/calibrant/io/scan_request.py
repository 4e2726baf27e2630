"""What to read from a source, and onto which grid: the one description that every engine is given."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice
from calibrant.data.cell_sums import FRACTION_BITS, require_nodes
from calibrant.data.classes import as_class_names
from calibrant.data.rows import (
    REASONS,
    Classes,
    Form,
    as_probabilities,
    refuse_label_of_soft,
    require_forms_of_classes,
)
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.errors import InputError, Option, TypeName
from calibrant.io.required_columns import LABEL, PROB, WEIGHT, is_constant, refuse_constant

__all__ = [
    "MODEL",
    "FileOptions",
    "Request",
    "make_request",
]

MODEL, FILE = "model", "file"
"""What groups are called that no column of the source tells apart: columns of predictions, files."""

OnInvalid = Literal["raise", "drop"]
CLASS_COLUMN: Mapping[str, tuple[str, ...]] = {
    "confidence": (),
    "top_label": ("predicted",),
    "classwise": ("class",),
}
"""What the groups are called that each reading of class probabilities makes."""


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
        Whether labels are shares in [0, 1].
    pos_label : object
        The label of the event, or None where labels are 0 and 1.
    models : tuple of str
        Names of the models, where there are several columns of predictions.
    multiclass : str, optional
        How columns of class probabilities are read.
    class_names : tuple, optional
        What the columns of class probabilities stand for, where labels are names.
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
        """The predictions as probabilities, whatever form they are written in."""
        return as_probabilities(p, self.form)

    @property
    def prob_aliases(self) -> tuple[str, ...]:
        """What the columns of predictions are called once they have been selected."""
        return tuple(alias for alias in self.columns if alias.startswith(PROB))

    @property
    def named_labels(self) -> bool:
        """Whether labels may be names, which are not 0 and 1."""
        return self.pos_label is not None or self.multiclass is not None

    def unreadable(self, alias: str) -> float:
        """What text in this column is read as, if such rows are to be dropped: out of range."""
        return np.nan if alias.startswith(PROB) and self.form == "logit" else np.inf

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return WEIGHT in self.columns

    @property
    def added(self) -> tuple[str, ...]:
        """Names of the groups that the columns of predictions make: the model, or the class."""
        if self.multiclass is not None:
            return CLASS_COLUMN[self.multiclass]
        return (MODEL,) if self.models else ()

    @property
    def by(self) -> tuple[str, ...]:
        """Names of all groups: what the columns of predictions make, then the grouping columns."""
        return (*self.added, *self.groups)

    @property
    def group_aliases(self) -> tuple[str, ...]:
        """What the grouping columns are called once they have been selected."""
        return tuple(f"__calibrant_group_{place}" for place in range(len(self.groups)))

    @property
    def selection(self) -> dict[str, Any]:
        """All that is read, by the name that it gets."""
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
        """Whether rows can count for other than one whole outcome."""
        return self.weighted or self.soft

    @property
    def on_probability_scale(self) -> bool:
        """Whether cells are plain multiples of the prediction."""
        return self.scale == PROBABILITY

    @property
    def portable(self) -> bool:
        """Whether the sums are a group-by that any engine can compute."""
        plain = self.form == "probability" and not self.named_labels and not self.models
        return plain and self.on_probability_scale and not self.soft

    def of_model(self, place: int) -> Request:
        """The request for one of several columns of predictions."""
        alias = self.prob_aliases[place]
        columns = {PROB: self.columns[alias]} | {
            name: column for name, column in self.columns.items() if not name.startswith(PROB)
        }
        return replace(self, columns=columns, models=())

    def selected(self) -> Request:
        """The request for what `selection` made: every column has the name that it got."""
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
                    "columns of this source are given by name",
                    seen=TypeName.of(value),
                    saying="got {}",
                    cure="Compute the column first, or read the source with an engine that has "
                    "expressions.",
                )

    def require_no_constants(self) -> None:
        """Refuse plain values, which engines would repeat for every row."""
        for value in self.selection.values():
            if is_constant(value):
                refuse_constant(value)


@dataclass(frozen=True)
class FileOptions:
    """What only files have: an account of the work, threads, a bar, a group per file, a separator."""

    checkpoint: str | os.PathLike[str] | None = None
    threads: int | None = None
    progress: bool | None = None
    per_file: bool = False
    sep: str | None = None


def make_request(
    *,
    y_true: Any,
    y_prob: Any,
    sample_weight: Any,
    by: Any,
    cluster: Any,
    nodes: int,
    scale: str | Scale,
    on_invalid: OnInvalid,
    form: Form = "probability",
    labels: Literal["binary", "soft"] = "binary",
    pos_label: Any = None,
    multiclass: Classes | None = None,
    classes: Sequence[Any] | None = None,
) -> Request:
    """The request for these arguments of `scan`, checked."""
    require_choice("labels", labels, ("binary", "soft"))
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    for name, column in (("y_true", y_true), ("y_prob", y_prob)):
        if column is None:
            raise InputError(
                "must name a column",
                argument=name,
                seen=None,
                cure="Pass the name of a column that the data have.",
            )
    several = isinstance(y_prob, list)  # a tuple may name one column of pandas
    probs = list(y_prob) if several else [y_prob]
    _require_readable(probs, form, labels, pos_label, multiclass)
    columns = {PROB: y_prob} if not several else {f"{PROB}_{k}": p for k, p in enumerate(probs)}
    columns[LABEL] = y_true
    if sample_weight is not None:
        columns[WEIGHT] = sample_weight
    groups, clusters = _as_groups(by, "by"), _as_groups(cluster, "cluster")
    for name in groups.keys() & clusters.keys():
        pair = groups[name], clusters[name]
        if pair[0] is not pair[1] and not all(
            isinstance(each, str) and each == name for each in pair
        ):
            raise InputError(
                "must give each column a name of its own",
                argument="cluster",
                seen=name,
                saying="{by} has {} too",
                by=Option("by"),
                cure="Give it another name.",
            )
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
        _as_classes(classes, len(probs), multiclass),
    )


def _as_classes(
    classes: Sequence[Any] | None, columns: int, multiclass: Classes | None
) -> tuple[Any, ...] | None:
    """What the columns of class probabilities, or the entries of their lists, stand for."""
    if classes is None:
        return None
    if multiclass is None:
        raise InputError(
            "names the columns of class probabilities",
            argument="classes",
            cure="Pass {option} beside it.",
            option=Option("multiclass", "confidence"),
        )
    return tuple(as_class_names(classes, None if columns == 1 else columns))


def _require_readable(
    probs: list[Any], form: Form, labels: str, pos_label: Any, multiclass: Classes | None
) -> None:
    """Refuse readings of predictions and labels that exclude each other."""
    if len({str(prob) for prob in probs}) < len(probs) or not probs:
        raise InputError(
            "must name each column of predictions once",
            argument="y_prob",
            seen=probs,
            cure="Name each once.",
        )
    refuse_label_of_soft(labels, pos_label)
    if multiclass is None:
        return
    require_choice("multiclass", multiclass, tuple(CLASS_COLUMN))
    require_forms_of_classes(form, labels, pos_label)


def _as_groups(by: Any, name: str) -> dict[str, Any]:
    if by is None:
        return {}
    if isinstance(by, str):
        return {by: by}
    if isinstance(by, Mapping) and by:
        return dict(by)
    if isinstance(by, Sequence) and by and all(isinstance(item, str) for item in by):
        return {item: item for item in by}
    raise InputError(
        "must be a column's name, a list of names, or a dict from new names to expressions",
        argument=name,
        seen=by,
        cure="Pass the name of a column.",
    )
