"""Which columns are meant: by name where that is obvious, otherwise the user is asked."""

from __future__ import annotations

import difflib
import fnmatch
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.cli.options import Grouping, Measuring, Reading
from calibrant.cli.text import note, printable, quoted
from calibrant.errors import InputError

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
MODEL_NAMES = frozenset(("model", "llm", "classifier", "forecaster", "system", "method"))
# fmt: on
LISTED = 30


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
                f"All rows are taken together; column {quoted(models[0])} may tell models apart: "
                f"`--by {printable(models[0])}` gives a line for each."
            )

    @property
    def groups(self) -> list[str]:
        """The columns that say the group, and nothing else."""
        values = {*self.prob, self.label, self.weight, self.cluster}
        return [name for name in self.by if name not in values]

    @property
    def spoken(self) -> dict[str, str | None]:
        """What the library calls these columns, for its messages."""
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
    label = reading.label or _obvious("outcomes", "--label", LABEL_NAMES, free, present, where)
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
        *((name, "--prob") for name in chosen.prob),
        (chosen.label, "--label"),
        (chosen.weight, "--weight"),
        (chosen.cluster, "--cluster"),
        *((name, "--by") for name in chosen.by),
    ]
    first: dict[str, str] = {}
    for name, option in purposes:
        if name is not None and name in first:
            raise InputError(
                f"column {quoted(name)} stands for both `{first[name]}` and `{option}`; each needs "
                "a column of its own."
                if first[name] != option
                else f"column {quoted(name)} stands twice after `{option}`; name it once."
            )
        if name is not None:
            first[name] = option


def choose_predictions(
    present: Sequence[str], where: str, reading: Reading, free: Sequence[str]
) -> tuple[str, ...]:
    """The columns of predictions: those that were named, or the one that is obvious among `free`."""
    if reading.prob:
        return tuple(name for given in reading.prob for name in _matching(given, present, where))
    return (_obvious("predictions", "--prob", PROBABILITY_NAMES, free, present, where),)


def require_column(name: str, present: Sequence[str], where: str) -> None:
    """Refuse a name that is not among the columns, with the nearest that is."""
    if name in present:
        return
    near = difflib.get_close_matches(name, present, n=1, cutoff=0.5)
    hint = f" Did you mean {quoted(near[0])}?" if near else ""
    raise InputError(
        f"{printable(where, 200)} must have a column {quoted(name)}; it has {_listed(present)}.{hint}"
    )


def _matching(pattern: str, present: Sequence[str], where: str) -> list[str]:
    if pattern in present or not set(pattern) & set("*?["):
        require_column(pattern, present, where)
        return [pattern]
    found = [name for name in present if fnmatch.fnmatchcase(name, pattern)]
    if not found:
        raise InputError(
            f"no column of {printable(where, 200)} matches {quoted(pattern)}; it has "
            f"{_listed(present)}."
        )
    return found


def _obvious(
    what: str,
    option: str,
    names: frozenset[str],
    free: Sequence[str],
    present: Sequence[str],
    where: str,
) -> str:
    found = [name for name in free if name.strip().lower() in names]
    if len(found) == 1:
        return found[0]
    if sys.stdin.isatty() and sys.stderr.isatty() and where != "-":
        return _asked(what, found or free, present, where)
    seen = "several could hold them" if found else "no name says so"
    raise InputError(
        f"which column of {printable(where, 200)} holds the {what}? {seen.capitalize()}: "
        f"{_listed(found or free)}. Name it with `{option} NAME`."
    )


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
