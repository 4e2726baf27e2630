"""Meaning of the columns of predictions: one model, several, or the classes of one.

A batch of rows becomes pieces, each of them plain probabilities and outcomes 0 and 1, with the group that
the columns of predictions add to it: the model, the class, or the class that was predicted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
from calibrant.data.rows import refuse_event
from calibrant.errors import InputError, invalid, show_value
from calibrant.io.batches import LOOP_LABELS, Batch
from calibrant.io.request import Request

MOST_LABELS = 6
WORDS = {**TRUTH, "1": True, "0": False}


@dataclass(frozen=True)
class Piece:
    """Rows of one meaning: probabilities, outcomes, weights, and the group that they add.

    `added` holds one value for all rows, or, with `added_by_row`, values of which each row has the index;
    `raw` the predictions as they are written, where each of them is a row; `rows` the rows of the batch,
    where these are not all.
    """

    p: NDArray[Any]
    y: NDArray[Any]
    w: NDArray[Any] | None
    added: tuple[Any, ...] = ()
    added_by_row: NDArray[np.int64] | None = None
    raw: NDArray[Any] | None = None
    rows: NDArray[np.int64] | None = None


def labels_of(label: NDArray[Any]) -> list[Any]:
    """First few distinct labels, in order."""
    present = label[~is_missing(label)]
    distinct = set(present.tolist()) if label.dtype.kind == "O" else np.unique(present).tolist()
    return sorted(distinct, key=str)[:MOST_LABELS]


def require_two_labels(seen: Iterable[Any], event: Any, *, event_seen: bool) -> None:
    """Refuse a third class, and an event that is not among several labels."""
    others = [label for label in seen if not _same(label, event)]
    if not event_seen:
        refuse_event(event, others)
    if len(others) < 2:
        return
    listed = ", ".join(map(show_value, others[:5]))
    raise InputError(
        f"`y_true` must hold two classes; besides {show_value(event)} it has {listed}.",
        hint="For more than two classes, use `calibrant.confidence` with the class probabilities.",
    )


def _equal(label: NDArray[Any], event: Any) -> NDArray[np.bool_]:
    """Labels that are the event's; a command line has only text, in which 1 and true are written too."""
    if not isinstance(event, str) or label.dtype.kind in "UST":
        return np.asarray(label == event)
    if label.dtype.kind == "O":
        return np.fromiter((_same(value, event) for value in label), np.bool_, label.size)
    if event.lower() in WORDS and label.dtype.kind == "b":
        return np.asarray(label == WORDS[event.lower()])
    try:
        return np.asarray(label == float(event))
    except ValueError:
        raise invalid(
            "pos_label", f"be one of the labels, which are of type {label.dtype.name}", event
        ) from None


def _same(value: Any, event: Any) -> bool:
    """Label and event are equal; the event may be the text of a number or of a truth value."""
    if value == event or not isinstance(event, str) or value is None:
        return bool(value == event)
    if isinstance(value, bool):
        return WORDS.get(event.lower()) is value
    try:
        return float(value) == float(event)
    except ValueError:
        return False


def pieces_of(request: Request, batch: Batch) -> Iterator[Piece]:
    """Rows of a batch by the meaning of its columns of predictions."""
    if request.multiclass is not None:
        yield from _class_pieces(request, batch.probs, batch.label, batch.weight)
        return
    event = request.pos_label
    y = np.ascontiguousarray(batch.label)
    if event is not None:
        y = np.where(is_missing(y), np.nan, _equal(y, event).astype(np.float64))
    if y.dtype in (np.bool_, np.int8):  # a negative label becomes a large one: both are refused
        y = y.view(np.uint8)
    elif y.dtype.name not in LOOP_LABELS:
        y = y.astype(np.float64)
    for place, raw in enumerate(batch.probs):
        added = (request.models[place],) if request.models else ()
        yield Piece(request.probabilities(raw), y, batch.weight, added, raw=raw)


def _class_pieces(
    request: Request, probs: Sequence[NDArray[Any]], label: NDArray[Any], w: NDArray[Any] | None
) -> Iterator[Piece]:
    """Rows with the confidence, or with the probability of each class."""
    name = str(next(iter(request.columns.values())))
    matrix = class_matrix(probs, name, on_invalid=request.on_invalid)
    rows = as_class_probabilities(
        label,
        matrix,
        from_logits=request.form == "logit",
        classes=request.class_names,
        on_invalid=request.on_invalid,
    )
    predicted, top = _checked_top(rows)
    y = np.where(rows.labels == -1, np.nan, np.where(rows.labels == -2, 2.0, 0.0))
    if request.multiclass == "classwise":
        yield from _one_against_rest(rows, w, predicted, top, y)
        return
    y = np.where((predicted == rows.labels) & (predicted >= 0), 1.0, y)
    if request.multiclass == "confidence":
        yield Piece(top, y, w)
    else:
        yield Piece(top, y, w, tuple(rows.classes), np.maximum(predicted, 0))


def _checked_top(rows: ClassProbabilities) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Most likely class and its probability; rows without one have NaN, or 2 out of range."""
    predicted, top = rows.largest()
    broken = np.flatnonzero((predicted < 0) & (rows.labels >= 0))
    missing = np.isnan(rows.raw[broken].astype(np.float64)).any(axis=1)
    top[broken] = np.where(missing, np.nan, 2.0)
    return predicted, top


def _one_against_rest(
    rows: ClassProbabilities,
    w: NDArray[Any] | None,
    predicted: NDArray[np.int64],
    top: NDArray[np.float64],
    invalid: NDArray[np.float64],
) -> Iterator[Piece]:
    """Piece for each class; rows that break a rule count once, in the first."""
    valid = np.flatnonzero(predicted >= 0)
    for place, name in enumerate(rows.classes):
        p = np.minimum(rows.probs[:, place].astype(np.float64), 1.0)
        y = (rows.labels == place).astype(np.float64)
        if place == 0:
            y = np.where(rows.labels < 0, invalid, y)
            yield Piece(np.where(predicted >= 0, p, top), y, w, (name,))
        else:
            yield Piece(p[valid], y[valid], None if w is None else w[valid], (name,), rows=valid)


def is_list_as_text(cell: Any) -> bool:
    """Text is a list in brackets, as Python, NumPy and JSON write it.

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
            f"`multiclass` needs a column per class, or lists; {show_value(name)} holds single numbers.",
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
                "`y_prob` must hold lists of class probabilities, all of one length; row "
                f"{place} has {show_value(str(lists[place]))}.",
                row=place,
                hint='To leave such rows out and count them, pass `on_invalid="drop"`.'
                if sizes
                else "Name the column of lists, or a column for each class.",
            )
    return matrix


def _as_numbers(row: Any) -> NDArray[np.float64] | None:
    """List as numbers, also one that is written as text; None for what is none."""
    if isinstance(row, str):
        row = row.strip()[1:-1].replace(",", " ").split() if is_list_as_text(row) else None
    if row is None:
        return None
    try:
        numbers = np.asarray(row, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if numbers.ndim == 1 else None
