"""What to read from a source, and onto which grid: the one description that every engine is given."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from numbers import Number
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from calibrant.data.cell_sums import FRACTION_BITS
from calibrant.data.pairs import REASONS, Form, Pairs
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.data.sketch import require_nodes
from calibrant.errors import InputError

__all__ = ["LABEL", "PROB", "WEIGHT", "Request", "make_request"]

PROB, LABEL, WEIGHT = "__calibrant_prob", "__calibrant_label", "__calibrant_weight"
"""What the columns are called once they have been selected, whatever they were called before."""

OnInvalid = Literal["raise", "drop"]


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
    """

    columns: Mapping[str, Any]
    groups: Mapping[str, Any]
    nodes: int
    scale: Scale
    on_invalid: OnInvalid
    form: Form = "probability"
    soft: bool = False

    def probabilities(self, p: NDArray[Any]) -> NDArray[Any]:
        """The predictions as probabilities, whatever form they are written in."""
        if self.form == "probability":
            return p
        return Pairs(p, np.empty(0), form=self.form).probabilities(slice(None))

    def unreadable(self, alias: str) -> float:
        """What text in this column is read as, if such rows are to be dropped: out of range."""
        return np.nan if alias == PROB and self.form == "logit" else np.inf

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return WEIGHT in self.columns

    @property
    def by(self) -> tuple[str, ...]:
        """Names of the grouping columns."""
        return tuple(self.groups)

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
        return self.on_probability_scale and not self.soft

    def selected(self) -> Request:
        """The request for what `selection` made: every column has the name that it got."""
        groups = dict(zip(self.by, self.group_aliases, strict=True))
        return replace(self, columns={alias: alias for alias in self.columns}, groups=groups)

    def names(self) -> list[str]:
        """Columns of the source that are read by name."""
        return [value for value in self.selection.values() if isinstance(value, str)]

    def require_names(self) -> None:
        """Refuse expressions, for sources that have none."""
        for value in self.selection.values():
            if not isinstance(value, str):
                raise InputError(
                    f"columns of this source are given by name; got {type(value).__name__}. Compute "
                    "the column first, or read the source with an engine that has expressions."
                )

    def require_no_constants(self) -> None:
        """Refuse plain values, which engines would repeat for every row."""
        for value in self.selection.values():
            if is_constant(value):
                refuse_constant(value)


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
) -> Request:
    """The request for these arguments of `scan`, checked."""
    if labels not in ("binary", "soft"):
        raise InputError(f'`labels` must be "binary" or "soft"; got {labels!r}.')
    if on_invalid not in ("raise", "drop"):
        raise InputError(f'`on_invalid` must be "raise" or "drop"; got {on_invalid!r}.')
    columns = {PROB: y_prob, LABEL: y_true}
    if sample_weight is not None:
        columns[WEIGHT] = sample_weight
    for name, column in (("y_true", y_true), ("y_prob", y_prob)):
        if column is None:
            raise InputError(f"`{name}` must name a column; got None.")
    groups, clusters = _as_groups(by, "by"), _as_groups(cluster, "cluster")
    for name in groups.keys() & clusters.keys():
        pair = groups[name], clusters[name]
        if pair[0] is not pair[1] and not all(
            isinstance(each, str) and each == name for each in pair
        ):
            raise InputError(
                f"`by` and `cluster` must give each column a name of its own; both have {name!r}."
            )
    groups |= clusters
    soft = labels == "soft"
    return Request(columns, groups, require_nodes(nodes), as_scale(scale), on_invalid, form, soft)


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
        f"`{name}` must be a column's name, a list of names, or a dict from new names to "
        f"expressions; got {by!r}."
    )


def is_constant(column: Any) -> bool:
    """Whether this is a plain value, which is no expression of any engine."""
    return column is None or isinstance(
        column, Number | bytes | tuple | date | time | timedelta | np.generic
    )


def refuse_constant(column: Any) -> NoReturn:
    """Raise the InputError for a column that is given as a plain value."""
    raise InputError(
        f"a column is given by its name, or as an expression of the engine; got {column!r}, which "
        "would be the same for every row."
    )


def require_columns(wanted: Iterable[Any], present: Iterable[Any], where: str) -> None:
    """Refuse names that are not among the columns, with the nearest that are, or stand for several."""
    present = list(present)
    own = [name for name in present if not str(name).startswith("__calibrant_")]
    spoken = {str(name): name for name in own}  # pandas has names that are no text
    for name in wanted:
        if present.count(name) > 1:
            refuse_repeated(name, present.count(name), where)
        if name in present:
            continue
        near = difflib.get_close_matches(str(name), spoken, n=1, cutoff=0.5)
        cure = f"Did you mean {spoken[near[0]]!r}?" if near else ""
        listed = ", ".join(map(repr, own[:10])) + (", ..." if len(own) > 10 else "")
        raise InputError(
            f"{where} must have a column {name!r}; it has {listed or 'none'}. {cure}".rstrip()
        )


def refuse_repeated(name: str, times: int, where: str) -> NoReturn:
    """Raise the InputError for a name that several columns have."""
    raise InputError(
        f"{where} must have one column {name!r}; it has {times} of that name. Rename or leave out the "
        "others."
    )


def refuse_nested(name: str, kind: Any) -> NoReturn:
    """Raise the InputError for a group that is a list, a struct or a map."""
    raise InputError(
        f"a group must be a plain value; column {name!r} holds {kind}. Group by a part of it."
    )
