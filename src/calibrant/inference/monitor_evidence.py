"""What a monitor has won so far, of one sample or of many classes, and which batches it has seen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from calibrant._arguments import is_number
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, Option
from calibrant.inference.monitor_look import DIRECTIONS, Alarm, ClassLook, e_and_p
from calibrant.inference.monitor_wealth import Wealth, errors_of

__all__ = ["Evidence", "is_class_name"]

Rows = Mapping[Any, Sketch]
REMEMBERED = 1000
"""Batches that are known again by their names."""
MOST_CLASSES = 1000
"""Classes of a state: it must not grow without a limit."""
NODES = 1 << 12
NODES_OF_CLASS = 1 << 8
"""Cells of the grid on which past batches are added up: many for the learnt bet, few for a file."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """The wealth of every class, what was staked on it, and the alarm.

    One sample is one class without a name. All classes together have won the sum of their e-values, each
    times its stake: their mean, where all were there from the first batch. A class that comes later is
    given an equal share of what there is at that moment, and the others give it up in proportion, so
    that nothing is won or lost by its coming. A sum of supermartingales is one, however they depend on
    each other: a row may count for several classes.

    Attributes
    ----------
    by : str or None
        What the classes are: "predicted" (a row counts for the class that was said), "class" (for each),
        or None of one sample.
    looks : int
        Batches so far.
    highest : float
        The largest logarithm of the e-value so far, at least 0.
    parts : mapping
        The wealth of each class, which plays in the batches that have rows of it.
    log_stakes : mapping
        The logarithm of the stake on each class.
    alarm : Alarm or None
        The first one.
    batches : tuple of (str, str)
        Names of the latest batches that had one, and digests of their rows.
    """

    by: str | None = None
    looks: int = 0
    highest: float = 0.0
    parts: Mapping[Any, Wealth] = field(default_factory=dict)
    log_stakes: Mapping[Any, float] = field(default_factory=dict)
    alarm: Alarm | None = None
    batches: tuple[tuple[str, str], ...] = ()

    @property
    def n(self) -> int:
        """Rows so far."""
        rows = [part.n for part in self.parts.values()]
        return max(rows, default=0) if self.by == "class" else sum(rows)

    @property
    def log_e_value(self) -> float:
        """Log of what all classes have won together."""
        return float(np.logaddexp.reduce(list(self._log_won().values()))) if self.parts else 0.0

    def _log_won(self) -> dict[Any, float]:
        return {name: self.log_stakes[name] + part.log_e_value for name, part in self.parts.items()}

    def classes(self) -> tuple[ClassLook, ...]:
        """Each class by itself, the one with the most evidence first."""
        if self.by is None:
            return ()
        found = []
        for name, part in self.parts.items():
            error, rows, _ = errors_of(part.past)
            pair = e_and_p(part.log_e_value, part.highest)
            found.append(ClassLook(name, part.n, *pair, float(error / rows)))
        return tuple(sorted(found, key=lambda one: -one.e_value))

    def knows(self, rows: Rows, name: str | None) -> bool:
        """Whether a batch of this name was taken before; refuses one that had other rows then."""
        counted = dict(self.batches).get(name) if name is not None else None
        if counted is not None and counted != _digest(rows):
            raise InputError(
                "must name one batch; the one of this name had other rows",
                argument="batch",
                seen=name,
                cure="Give each batch a name of its own.",
            )
        return counted is not None

    def after(
        self, rows: Rows, level: float, name: str | None = None, by: str | None = None
    ) -> Evidence:
        """The evidence when this batch has been bet on: the rows of each class that it has."""
        look, nodes = self.looks + 1, NODES if by is None else NODES_OF_CLASS
        played = {
            key: self.parts.get(key, Wealth.none()).after(sketch, look, nodes)
            for key, sketch in rows.items()
        }
        later = replace(
            self,
            by=by,
            looks=look,
            parts={**self.parts, **played},
            log_stakes=self._stakes([key for key in rows if key not in self.parts]),
        )
        later = replace(later, highest=max(self.highest, later.log_e_value))
        if name is not None:
            batches = (*self.batches, (name, _digest(rows)))[-REMEMBERED:]
            later = replace(later, batches=batches)
        if later.alarm is None and later.highest >= -np.log(level):
            won = later._log_won()
            most = max(won, key=lambda key: won[key])
            alarm = Alarm(look, *later.parts[most].explained(), group=most)
            later = replace(later, alarm=alarm)
        return later

    def _stakes(self, new: list[Any]) -> dict[Any, float]:
        """The stakes when these classes have come: what there is by then is divided anew."""
        before, now = len(self.parts), len(self.parts) + len(new)
        if now > MOST_CLASSES:
            raise InputError(
                "is watched for at most {most} classes, each of which the state holds",
                argument="multiclass",
                seen=now,
                saying="there are {}",
                most=MOST_CLASSES,
                cure="Watch the confidence with {confidence}.",
                confidence=Option("multiclass", "confidence"),
            )
        if not new:
            return dict(self.log_stakes)
        kept = np.log(before / now) if before else 0.0
        share = self.log_e_value - np.log(now)
        stakes = {name: float(stake + kept) for name, stake in self.log_stakes.items()}
        return stakes | {name: float(share) for name in new}

    def to_dict(self) -> dict[str, Any]:
        """Plain values, from which `from_dict` makes the same, to the bit."""
        return {
            "by": self.by,
            "looks": self.looks,
            "highest": self.highest,
            "classes": list(self.parts),
            "stakes": list(self.log_stakes.values()),
            "wealth": [part.to_dict() for part in self.parts.values()],
            "alarm": None if self.alarm is None else asdict(self.alarm),
            "batches": [list(batch) for batch in self.batches],
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any], level: float) -> Evidence:
        """The inverse of `to_dict`; what cannot be true of a monitor at this level is refused."""
        names, looks = state["classes"], state["looks"]
        if type(looks) is not int or looks < 0 or len(set(names)) < len(names):
            raise ValueError("the number of looks must be whole, and classes named once")
        parts = [Wealth.from_dict(part, looks) for part in state["wealth"]]
        evidence = cls(
            by=state["by"],
            looks=looks,
            highest=float(state["highest"]),
            parts=dict(zip(names, parts, strict=True)),
            log_stakes=dict(zip(names, map(float, state["stakes"]), strict=True)),
            alarm=None if state["alarm"] is None else Alarm(**state["alarm"]),
            batches=tuple((name, digest) for name, digest in state["batches"]),
        )
        for rule, holds in evidence._rules(level):
            if not holds:
                raise ValueError(rule)
        return evidence

    def _rules(self, level: float) -> list[tuple[str, bool]]:
        """What is true of every state that batches can lead to."""
        texts = [text for batch in self.batches for text in batch]
        names = list(self.parts)
        one = names in ([None], []) and all(p.looks == self.looks for p in self.parts.values())
        many = 0 < len(names) <= MOST_CLASSES and all(map(is_class_name, names))
        alarm = self.alarm
        return [
            ("batches must have names", all(isinstance(text, str) for text in texts)),
            ("it remembers too many batches", len(self.batches) <= REMEMBERED),
            ("classes must be such as it can have", one if self.by is None else many),
            ("it must say what classes are", self.by in (None, "predicted", "class")),
            ("looks must have rows", bool(self.parts) == (self.looks > 0)),
            ("stakes must be numbers", bool(np.isfinite(list(self.log_stakes.values())).all())),
            ("the e-value is at most the highest", self.log_e_value <= self.highest + 1e-9),
            ("the highest e-value is at least 1", 0.0 <= self.highest < np.inf),
            (
                "the alarm goes with the e-value",
                (alarm is not None) == (self.highest >= -np.log(level)),
            ),
            ("the alarm is at a look", alarm is None or self._is_sound(alarm)),
        ]

    def _is_sound(self, alarm: Alarm) -> bool:
        whole = all(type(look) is int for look in (alarm.look, alarm.since))
        return (
            whole
            and 1 <= alarm.since <= alarm.look <= self.looks
            and alarm.direction in DIRECTIONS
            and is_number(alarm.mean_error)
            and abs(alarm.mean_error) <= 1.0
            and alarm.group in self.parts
        )


def is_class_name(name: Any) -> bool:
    """Whether a file can hold this name of a class."""
    return isinstance(name, str | bool) or (is_number(name) and bool(np.isfinite(name)))


def _digest(rows: Rows) -> str:
    """Of the rows of a batch, as far as their sketches tell them apart."""
    digest = hashlib.sha256()
    for name, part in sorted(rows.items(), key=lambda item: repr(item[0])):
        digest.update(b"" if name is None else repr(name).encode())
        for column in (np.array([part.nodes]), part.cells, part.counts, part.offsets):
            digest.update(column.astype("<i8").tobytes())
    return digest.hexdigest()[:32]
