"""Which columns are meant: by name where that is obvious, otherwise the user is asked."""

from __future__ import annotations

import difflib
import fnmatch
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from calibrant._format import common_start
from calibrant.cli.output import note, printable, quoted
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.errors import InputError, Option

__all__ = ["Chosen", "choose", "choose_predictions", "require_column"]

# fmt: off
PROBABILITY_NAMES = frozenset((
    "p", "prob", "probs", "proba", "probability", "y_prob", "y_proba", "y_score", "y_hat", "p_hat",
    "phat", "pred_prob", "pred_proba", "predicted_prob", "predicted_probability", "score", "confidence",
    "conf",
))
LABEL_NAMES = frozenset((
    "y", "y_true", "label", "labels", "target", "correct", "is_correct", "outcome", "truth",
    "ground_truth", "actual", "observed",
))
QUESTION_NAMES = frozenset(("question", "question_id", "qid", "doc_id", "sample_id"))
"""Columns that say which rows answer one question."""
MODEL_NAMES = frozenset(("model", "llm", "classifier", "forecaster", "system", "method"))
# fmt: on
LISTED = 30
RECALIBRATED = "_recalibrated"
"""What the name of a column ends in that `recalibrate --apply` adds."""


@dataclass(frozen=True)
class Chosen:
    """The columns that are read."""

    prob: tuple[str, ...]
    label: str
    weight: str | None
    by: tuple[str, ...]
    cluster: str | None
    unused: tuple[str, ...] = ()

    def hint(self) -> None:
        """Say so where rows of several models are about to be taken together."""
        models = [name for name in self.unused if name.strip().lower() in MODEL_NAMES]
        if models and not self.by and len(self.prob) == 1:
            note(
                f"All rows are taken together. Column {quoted(models[0])} may tell models apart: "
                f"`--by {printable(models[0])}` gives a line for each."
            )

        questions = [name for name in self.unused if name.strip().lower() in QUESTION_NAMES]
        if questions and self.cluster is None:
            note(
                f"Rows are taken as independent. If several answer one question, say so: `--cluster "
                f"{printable(questions[0])}`."
            )

    @property
    def spoken(self) -> dict[str, str | None]:
        """What messages call the arguments that were read from these columns."""
        prob = self.prob[0] if len(self.prob) == 1 else None
        return {"y_prob": prob, "y_true": self.label, "sample_weight": self.weight}


def choose(
    present: Sequence[str], where: str, reading: Reading, grouping: Grouping, measuring: Measuring
) -> Chosen:
    """The columns to read from a file that has the columns `present`."""
    taken = {reading.weight, measuring.cluster, *grouping.columns}
    free = [name for name in present if name not in taken]
    prob = choose_predictions(present, where, reading, free)
    free = [name for name in free if name not in prob]
    label = reading.label or _obvious("outcomes", "y_true", LABEL_NAMES, free, present, where)
    used = {*prob, label, *taken}
    chosen = Chosen(
        prob,
        label,
        reading.weight,
        tuple(grouping.columns),
        measuring.cluster,
        tuple(name for name in present if name not in used),
    )
    for name in (label, reading.weight, measuring.cluster, *grouping.columns):
        if name is not None:
            require_column(name, present, where)
    _require_distinct(chosen)
    if not reading.prob or not reading.label:
        note(f"Reading predictions from {_columns(prob)} and outcomes from {quoted(label)}.")
    return chosen


def _require_distinct(chosen: Chosen) -> None:
    """Refuse a column that is to serve two purposes: one of them is a slip of the pen."""
    purposes = [
        *((name, "y_prob") for name in chosen.prob),
        (chosen.label, "y_true"),
        (chosen.weight, "sample_weight"),
        (chosen.cluster, "cluster"),
        *((name, "by") for name in chosen.by),
    ]
    first: dict[str, str] = {}
    for name, argument in purposes:
        if name is None:
            continue
        if name in first:
            twice = first[name] == argument
            raise InputError(
                "column {name} is named twice with {first}"
                if twice
                else "column {name} is named for both {first} and {second}",
                name=quoted(name),
                first=Option(first[name]),
                second=Option(argument),
                cure="Name it once." if twice else "Each needs a column of its own.",
            )
        first[name] = argument


def choose_predictions(
    present: Sequence[str], where: str, reading: Reading, free: Sequence[str]
) -> tuple[str, ...]:
    """The columns of predictions: those that were named, or the one that is obvious among `free`."""
    if reading.prob:
        return tuple(name for given in reading.prob for name in _matching(given, present, where))
    prob = _obvious("predictions", "y_prob", PROBABILITY_NAMES, free, present, where)
    repaired = f"{prob}{RECALIBRATED}"
    if repaired in present:
        raise InputError(
            "which predictions are meant? {file} has {prob} and its recalibrated form {repaired}",
            file=printable(where, 200),
            prob=quoted(prob),
            repaired=quoted(repaired),
            cure="Name the column with {option}.",
            option=Option("y_prob", repaired),
        )
    return (prob,)


def require_column(name: str, present: Sequence[str], where: str) -> None:
    """Refuse a name that is not among the columns, with the nearest that is."""
    if name in present:
        return
    near = difflib.get_close_matches(name, present, n=1, cutoff=0.5)
    raise InputError(
        "{file} must have a column {name}",
        seen=list(present),
        saying="it has {columns}",
        file=printable(where, 200),
        name=quoted(name),
        columns=_listed(present),
        cure="Did you mean {near}?" if near else (),
        near=quoted(near[0]) if near else "",
    )


def _matching(pattern: str, present: Sequence[str], where: str) -> list[str]:
    if pattern in present or not set(pattern) & set("*?["):
        require_column(pattern, present, where)
        return [pattern]
    names = [name for name in present if fnmatch.fnmatchcase(name, pattern)]
    if not pattern.endswith(RECALIBRATED):
        # What `recalibrate --apply` added stands beside the columns it was made from.
        names = [name for name in names if not _is_recalibrated(name, present)]
    if not names:
        raise InputError(
            "no column of {file} matches {pattern}",
            seen=list(present),
            saying="it has {columns}",
            file=printable(where, 200),
            pattern=quoted(pattern),
            columns=_listed(present),
            cure="Check the pattern, or name the columns one by one.",
        )
    return names


def _is_recalibrated(name: str, present: Sequence[str]) -> bool:
    return name.endswith(RECALIBRATED) and name.removesuffix(RECALIBRATED) in present


def _obvious(
    what: str,
    argument: str,
    names: frozenset[str],
    free: Sequence[str],
    present: Sequence[str],
    where: str,
) -> str:
    fitting = [name for name in free if name.strip().lower() in names]
    if len(fitting) == 1:
        return fitting[0]
    if sys.stdin.isatty() and sys.stderr.isatty() and where != "-":
        return _asked(what, fitting or free, present, where)
    classes = class_columns(free) if what == "predictions" else []
    cures = ["Name it with {option}."]
    if classes and not fitting:
        cures.append("Columns such as {classes} look like class probabilities: pass {multiclass}.")
    raise InputError(
        "cannot tell which column of {file} holds the {what}. {why}: {columns}",
        file=printable(where, 200),
        what=what,
        columns=_listed(fitting or free),
        why="Candidates" if fitting else "Columns",
        cure=cures,
        option=Option(argument, "NAME"),
        classes=_listed(classes[:3]),
        multiclass=f"`--prob '{classes[0][: common_start(classes)] if classes else ''}*' "
        "--multiclass confidence`",
    )


def class_columns(names: Sequence[str]) -> list[str]:
    """Columns that look like the probabilities of classes: several that begin alike.

    Examples
    --------
    >>> class_columns(["id", "p_dog", "p_cat", "p_deer"]), class_columns(["a", "b"])
    (['p_dog', 'p_cat', 'p_deer'], [])
    """
    starts: dict[str, list[str]] = {}
    for name in names:
        start = re.match(
            r"(p|prob|proba|probability|class|logit)s?[_.\- ]?(?=.)", name, re.IGNORECASE
        )
        if start:
            starts.setdefault(start[0].lower(), []).append(name)
    longest = max(starts.values(), key=len, default=[])
    return longest if len(longest) >= 3 else []


def _asked(what: str, offered: Sequence[str], present: Sequence[str], where: str) -> str:
    import typer

    note(f"{printable(where, 200)} has the columns {_listed(present)}.")
    default = offered[0] if len(offered) == 1 else None
    while True:
        answer = str(typer.prompt(f"Which one holds the {what}?", default=default, err=True))
        if answer in present:
            return answer
        near = difflib.get_close_matches(answer, present, n=1, cutoff=0.5)
        note(f"There is no column {quoted(answer)}." + (f" {printable(near[0])}?" if near else ""))


def _columns(names: Sequence[str]) -> str:
    word = "column" if len(names) == 1 else "columns"
    return f"{word} {_listed(names)}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(quoted(name) for name in names[:LISTED])
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return (shown or "none") + more
