"""What columns of predictions mean: one model, several, or the classes of one.

A batch of rows becomes pieces, each of them plain probabilities and outcomes 0 and 1, with the group that
the columns of predictions add to it: the model, the class, or the class that was predicted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.data.arrays import is_missing
from calibrant.data.classes import (
    TRUTH,
    ClassProbabilities,
    as_class_probabilities,
)
from calibrant.data.rows import DROP
from calibrant.errors import Cure, Function, InputError, Option, Where, show_value
from calibrant.io.scan_request import Request

__all__ = [
    "LOOP_LABELS",
    "NAMED_LABELS",
    "Outcomes",
    "Piece",
    "class_matrix",
    "is_list_as_text",
    "pieces_of",
]

NAMED_LABELS = Cure(
    "Name the event with {event}. For a column of probabilities for each class, pass {classes}.",
    {"event": Option("pos_label", ...), "classes": Option("multiclass", "confidence")},
)
"""What reads outcomes that are words."""
LOOP_LABELS = ("uint8", "int64", "float64")

MOST_LABELS = 6
WORDS = {**TRUTH, "1": True, "0": False}


@dataclass(frozen=True)
class Piece:
    """Rows of one meaning: probabilities, outcomes, weights, and what they add to the group.

    `added` holds one value for all rows, or, with `added_by_row`, values of which each row says the index.
    """

    p: NDArray[Any]
    y: NDArray[Any]
    w: NDArray[Any] | None
    added: tuple[Any, ...] = ()
    added_by_row: NDArray[np.int64] | None = None
    rows: NDArray[np.int64] | None = None


class Outcomes:
    """Labels as 0 and 1 by the label of the event; remembers which other labels it has seen."""

    def __init__(self, request: Request) -> None:
        self.pos_label = request.pos_label
        self.seen: dict[Any, Where] = {}

    def read(self, label: NDArray[Any]) -> NDArray[Any]:
        """1 where the label is the event's, 0 where it is another, NaN where it is missing."""
        missing = is_missing(label)
        y = np.where(missing, np.nan, _equal(label, self.pos_label).astype(np.float64))
        if len(self.seen) < MOST_LABELS:
            present = label[~missing]
            distinct = set(present.tolist()) if label.dtype.kind == "O" else np.unique(present)
            for value in sorted(distinct, key=str)[:MOST_LABELS]:
                self.seen.setdefault(_plain(value), Where())
        return y

    def require_two(self, event_seen: bool) -> None:
        """Refuse a third class, and an event that is not among several labels."""
        others = [label for label in self.seen if not _same(label, self.pos_label)]
        if not event_seen and len(others) > 1:
            raise InputError(
                "must be one of the labels",
                argument="pos_label",
                seen=self.pos_label,
                saying="{} is not among {classes}",
                classes=", ".join(map(show_value, others[:5])),
                cure="Pass one of them, in the type that they have.",
            )
        if len(others) > 1:
            raise InputError(
                "must hold two classes",
                argument="y_true",
                seen=others[1],
                saying="besides {event} it has {others}",
                event=show_value(self.pos_label),
                others=" and ".join(map(show_value, others[:2])),
                cure="For more than two classes, use {confidence} with the class probabilities.",
                confidence=Function("confidence"),
            )


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _equal(label: NDArray[Any], event: Any) -> NDArray[np.bool_]:
    """Where a label is the event's; a command line has only text, in which 1 and true are written too."""
    if not isinstance(event, str) or label.dtype.kind in "UST":
        return np.asarray(label == event)
    if label.dtype.kind == "O":
        return np.fromiter((_same(value, event) for value in label), np.bool_, label.size)
    if event.lower() in WORDS and label.dtype.kind == "b":
        return np.asarray(label == WORDS[event.lower()])
    try:
        return np.asarray(label == float(event))
    except ValueError:
        raise InputError(
            "must be one of the labels",
            argument="pos_label",
            seen=event,
            saying="the labels are of type {kind}, and {} is none",
            kind=label.dtype.name,
            cure="Pass one of them, in the type that they have.",
        ) from None


def _same(value: Any, event: Any) -> bool:
    """Whether a label is the event, which may be the text of a number or of a truth value."""
    if value == event or not isinstance(event, str) or value is None:
        return bool(value == event)
    if isinstance(value, bool):
        return WORDS.get(event.lower()) is value
    try:
        return float(value) == float(event)
    except ValueError:
        return False


def pieces_of(
    request: Request,
    probs: Sequence[NDArray[Any]],
    label: NDArray[Any],
    w: NDArray[Any] | None,
    outcomes: Outcomes | None,
) -> Iterator[Piece]:
    """The rows of a batch by what its columns of predictions mean."""
    if request.multiclass is not None:
        yield from _class_pieces(request, probs, label, w)
        return
    y = label if outcomes is None else outcomes.read(label)
    for place, raw in enumerate(probs):
        yield Piece(
            request.probabilities(raw),
            _as_outcomes(y),
            w,
            (request.models[place],) if request.models else (),
        )


def _as_outcomes(y: NDArray[Any]) -> NDArray[Any]:
    """Labels of a type that the compiled loop reads."""
    y = np.ascontiguousarray(y)
    if y.dtype in (np.bool_, np.int8):  # a negative label becomes a large one: both are refused
        return y.view(np.uint8)
    return y if y.dtype.name in LOOP_LABELS else y.astype(np.float64)


def _class_pieces(
    request: Request, probs: Sequence[NDArray[Any]], label: NDArray[Any], w: NDArray[Any] | None
) -> Iterator[Piece]:
    name = str(next(iter(request.columns.values())))
    matrix = class_matrix(probs, name, on_invalid=request.on_invalid)
    rows = as_class_probabilities(
        label,
        matrix,
        from_logits=request.form == "logit",
        classes=request.class_names,
        on_invalid=request.on_invalid,
    )
    if request.multiclass == "classwise":
        yield from _one_against_rest(rows, w)
        return
    predicted, top = _checked_top(rows)
    y = np.where(rows.labels == -1, np.nan, np.where(rows.labels == -2, 2.0, 0.0))
    y = np.where((predicted == rows.labels) & (predicted >= 0), 1.0, y)
    if request.multiclass == "confidence":
        yield Piece(top, y, w)
        return
    names = tuple(rows.classes)
    yield Piece(top, y, w, names, np.maximum(predicted, 0))


def _checked_top(rows: ClassProbabilities) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The most likely class and its probability; rows without one have NaN, or 2 out of range."""
    predicted, top = np.empty(rows.n, np.int64), np.empty(rows.n)
    for block, _, most_likely, largest in rows.checked_blocks():
        predicted[block], top[block] = most_likely, largest
    broken = np.flatnonzero((predicted < 0) & (rows.labels >= 0))
    missing = np.isnan(rows.raw[broken].astype(np.float64)).any(axis=1)
    top[broken] = np.where(missing, np.nan, 2.0)
    return predicted, top


def _one_against_rest(rows: ClassProbabilities, w: NDArray[Any] | None) -> Iterator[Piece]:
    """A piece for each class; rows that break a rule count once, in the first."""
    predicted, top = _checked_top(rows)
    valid = np.flatnonzero(predicted >= 0)
    matrix = np.concatenate([block for _, block in rows.blocks()]) if rows.n else rows.raw
    for place, name in enumerate(rows.classes):
        p = np.minimum(matrix[:, place].astype(np.float64), 1.0)
        y = (rows.labels == place).astype(np.float64)
        if place == 0:
            p = np.where(predicted >= 0, p, top)
            y = np.where(rows.labels == -1, np.nan, np.where(rows.labels == -2, 2.0, y))
            yield Piece(p, y, w, (name,))
        else:
            yield Piece(p[valid], y[valid], None if w is None else w[valid], (name,), rows=valid)


def is_list_as_text(cell: Any) -> bool:
    """Whether text is a list in brackets, as Python, NumPy and JSON write it.

    Examples
    --------
    >>> is_list_as_text("[0.1, 0.7, 0.2]"), is_list_as_text("[0.1 0.9]"), is_list_as_text("0.1")
    (True, True, False)
    """
    text = cell.strip() if isinstance(cell, str) else ""
    return text[:1] + text[-1:] in ("[]", "()")


def class_matrix(
    probs: Sequence[NDArray[Any]], name: str, *, on_invalid: Literal["raise", "drop"]
) -> NDArray[Any]:
    """Class probabilities as a matrix: a column per class, or one column of lists."""
    if len(probs) > 1:
        return np.column_stack(probs)
    lists = probs[0].astype(object) if probs[0].dtype.kind in "UT" else probs[0]
    if lists.dtype != object:
        raise InputError(
            "needs one column per class, or a column of lists",
            argument="multiclass",
            seen=name,
            saying="column {} holds single numbers",
            cure="Name several columns, or a pattern.",
        )
    rows = [_as_numbers(row) for row in lists]
    sizes = Counter(row.size for row in rows if row is not None)
    size = max(sizes, key=lambda size: (sizes[size], size), default=0)
    matrix = np.full((len(rows), max(size, 1)), np.nan)
    for place, row in enumerate(rows):
        if row is not None and row.size == size:
            matrix[place] = row
        elif on_invalid == "raise":
            raise InputError(
                "must hold lists of class probabilities, all of one length",
                argument="y_prob",
                seen=str(lists[place])[:60],
                where=Where(row=place),
                cure=DROP if sizes else "Name the column of lists, or a column for each class.",
            )
    return matrix


def _as_numbers(row: Any) -> NDArray[np.float64] | None:
    """A list as numbers, also one that is written as text; None for what is none."""
    if isinstance(row, str):
        text = row.strip()
        row = text[1:-1].replace(",", " ").split() if is_list_as_text(text) else None
    if row is None:
        return None
    try:
        numbers = np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.ndim == 1 else None
