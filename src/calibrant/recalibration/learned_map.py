"""What every recalibrator is: a map from p to p', learned from data, kept in a file that is no pickle."""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._files import dump_versioned, load_versioned, read_bytes, write_whole
from calibrant._format import percent
from calibrant.data.arrays import as_column
from calibrant.data.rows import as_rows
from calibrant.data.scales import Scale, as_scale, name_for_file
from calibrant.errors import CalibrantError, Code, Function, InputError, TypeName, Where
from calibrant.recalibration.cures import TO_APPLY, TO_LEARN, only_cures
from calibrant.recalibration.enough_rows import require_parameters
from calibrant.recalibration.ranking import in_words, order_of_map
from calibrant.recalibration.state_checks import Part, Parts, number_of_classes
from calibrant.recalibration.training import FitOptions, Training

if TYPE_CHECKING:
    from calibrant.io.sql import Expression

__all__ = ["LearnedMap", "Recalibrator", "load_recalibrator", "require_map"]

Floats = NDArray[np.float64]
State = dict[str, Any]

MODULES = (
    "recalibration.adaptive",
    "recalibration.isotonic",
    "recalibration.multiclass",
    "recalibration.parametric",
    "recalibration.scaling",
    "recalibration.smooth",
    "recalibration.spline",
    "recalibration.venn_abers",
    "repair.class_choice",
    "repair.randomized",
)
"""Where the maps are that a file can hold."""
FORMAT, VERSION, WHAT = "calibrant.recalibrator", 2, "a recalibrator"


class LearnedMap(ABC):
    """Settings, what was learned with them, and a file that holds both.

    Subclasses are dataclasses whose fields are the settings; what they learn is plain numbers.
    """

    kind: ClassVar[str]
    parts: ClassVar[Parts | None] = None
    """The names in the state and their types, which a file must have; None where any will do."""
    _kinds: ClassVar[dict[str, type[LearnedMap]]] = {}
    _state: State | None = None
    classes: list[str] | None = None  # what columns are called, where that is known
    columns: int | None = None  # of a map of several classes, where that is known

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in cls.__dict__:
            LearnedMap._kinds[cls.kind] = cls

    @abstractmethod
    def transform(self, y_prob: Any) -> Floats:
        """Recalibrated predictions, in the order given."""

    def _columns(self, state: State) -> int | None:
        """Of a map of several classes, how many columns there must be; None for any number."""
        return None

    @property
    def state(self) -> State:
        """What was learned; an error before `fit`."""
        if self._state is None:
            raise CalibrantError(
                "this {kind} has not been fitted",
                seen=self.kind,
                saying="",
                cure="Call {fit} first.",
                kind=type(self).__name__,
                fit=Code("fit(y_prob, y_true)"),
            )
        return self._state

    @property
    def settings(self) -> State:
        """The constructor's arguments."""
        return {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write settings and what was learned as JSON; `load_recalibrator` reads it."""
        write_whole(path, dump_versioned(FORMAT, VERSION, self.to_dict()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a recalibrator of this kind from a file."""
        loaded = load_recalibrator(path)
        if not isinstance(loaded, cls):
            raise InputError(
                "the file must hold a {wanted}", wanted=cls.__name__,
                seen=TypeName.of(loaded), where=Where(file=os.fspath(path)),
                cure="Read it with {load}, or with {any}.",
                load=Code(f"{type(loaded).__name__}.load"), any=Function("load_recalibrator"))  # fmt: skip
        return loaded

    def to_dict(self) -> State:
        """Kind, settings and what was learned, as plain values."""
        learned = {"state": {name: _plain(value) for name, value in self.state.items()}}
        known = {"classes": self.classes, "columns": self.columns}
        return _plan(self) | learned | {name: value for name, value in known.items() if value}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> LearnedMap:
        """The inverse of `to_dict`."""
        for module in MODULES:  # each registers its kinds
            importlib.import_module(f"calibrant.{module}")
        kind = document.get("kind")
        if not isinstance(kind, str) or kind not in LearnedMap._kinds:
            raise InputError(
                "the kind of a recalibrator must be one of {kinds}",
                seen=kind,
                saying="the file has {}",
                cure="It was written by another version, or by hand: fit the map again.",
                kinds=", ".join(sorted(LearnedMap._kinds)),
            )
        try:
            settings = {name: _array(value) for name, value in document["settings"].items()}
            made = LearnedMap._kinds[kind](**settings)
            if "plan" not in document:
                made._state = {name: _array(value) for name, value in document["state"].items()}
                _require_whole(made._state, made.parts)
                made.classes, made.columns = document.get("classes"), document.get("columns")
                _try_out(made)
        except Exception as error:  # a state that was forged may raise anything
            raise InputError(
                "the {kind} recalibrator in the file is damaged: {reason}",
                cure="Fit the map again, or use a copy of the file.",
                kind=kind,
                reason=error if isinstance(error, CalibrantError) else repr(error),
            ) from error
        return made


class Recalibrator(LearnedMap):
    """A map from predictions to better calibrated predictions.

    Examples
    --------
    >>> from calibrant.recalibration import PlattRecalibrator
    >>> repair = PlattRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> isinstance(repair, Recalibrator), repair.transform([0.2, 0.8]).shape
    (True, (2,))
    """

    def fit(
        self,
        y_prob: Any,
        y_true: Any = None,
        sample_weight: Any = None,
        **options: Unpack[FitOptions],
    ) -> Self:
        """Learn the map from predictions and outcomes, or from a Sketch alone.

        Parameters
        ----------
        y_prob : array or Sketch
            Predictions first, as in scikit-learn's `fit(X, y)`.
        y_true : array
            Outcomes, 0 or 1.
        sample_weight : array
            Importance of each row.
        **options
            How to read the arrays (see `FitOptions`).
        """
        with only_cures(TO_LEARN):
            return self.fit_training(Training.of(y_prob, y_true, sample_weight, options))

    def fit_training(self, training: Training) -> Self:
        """Learn the map from rows that were checked before."""
        training.require_both_outcomes(type(self).__name__)
        require_parameters(training.atoms.n, self.parameters)
        self._state = self._learn(training)
        return self

    def transform(self, y_prob: Any) -> Floats:
        """Recalibrated predictions, in the order of `y_prob`."""
        state = self.state
        given = as_column(y_prob, "y_prob")
        with only_cures(TO_APPLY):
            p = as_rows(np.zeros(given.size), given).p
        return self._apply(p, state)

    def fit_transform(self, y_prob: Any, y_true: Any, sample_weight: Any = None) -> Floats:
        """Fit, then transform the same predictions: for a look, not for a fair estimate."""
        return self.fit(y_prob, y_true, sample_weight).transform(y_prob)

    def to_sql(
        self, prob: str | Expression, dialect: str = "duckdb", *, tolerance: float = 1e-5
    ) -> Expression:
        """The map as an SQL expression of a column; `str` gives the text.

        It is straight between as few points as keep it close to `transform`, and needs no function that a
        warehouse may lack. What is no probability (NULL, NaN, below 0, above 1) is left as it is.

        Parameters
        ----------
        prob : str or Expression
            The column of the predictions.
        dialect : {"duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite"}
            The warehouse.
        tolerance : float
            The largest distance from `transform`. A larger one gives a shorter text.

        Examples
        --------
        >>> import sqlite3
        >>> from calibrant.recalibration import PlattRecalibrator
        >>> platt = PlattRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> query = f"SELECT {platt.to_sql('p', 'sqlite')} FROM (SELECT 0.9 AS p)"
        >>> answer = sqlite3.connect(":memory:").execute(query).fetchone()[0]
        >>> bool(abs(answer - platt.transform([0.9])[0]) < 1e-5)
        True
        """
        from calibrant.recalibration.deploy import to_sql

        return to_sql(self, prob, dialect, tolerance=tolerance)

    def to_python(self, name: str = "recalibrate", *, tolerance: float = 1e-5) -> str:
        """The map as the text of a Python module that needs nothing else, not even calibrant.

        A map with a formula is written as its formula; others are straight between as few points as keep
        them close to `transform`.

        Parameters
        ----------
        name : str
            Name of the function. It takes one probability and returns one.
        tolerance : float
            The largest distance from `transform`. A larger one gives a shorter text.

        Examples
        --------
        >>> from calibrant.recalibration import PlattRecalibrator
        >>> platt = PlattRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> module = {}
        >>> exec(platt.to_python("better"), module)
        >>> bool(abs(module["better"](0.9) - platt.transform([0.9])[0]) < 1e-15)
        True
        """
        from calibrant.recalibration.deploy import to_python

        return to_python(self, name, tolerance=tolerance)

    @property
    def parameters(self) -> int:
        """How many numbers the map is made of, where that is known before; otherwise 0."""
        return 0

    @property
    def keeps_order(self) -> bool:
        """Whether predictions stay apart and in order; those within 1e-4 of 0 or 1 may become equal."""
        return order_of_map(self) == "kept"

    def explain(self, y_prob: Any = (0.1, 0.5, 0.9)) -> str:
        """What the map does to these predictions, in one sentence."""
        before = as_column(y_prob, "y_prob")
        after = self.transform(before)
        if np.array_equal(before, after) and np.array_equal(self.transform([0.0, 1.0]), [0.0, 1.0]):
            return f"This {self.kind} map leaves predictions as they are."
        moves = [f"{percent(p)} into {percent(q)}" for p, q in zip(before, after, strict=True)]
        listed = " and ".join(filter(None, [", ".join(moves[:-1]), moves[-1]]))
        return f"This {self.kind} map turns {listed}, and {in_words(self)}."

    @abstractmethod
    def _learn(self, training: Training) -> State:
        """Plain numbers and arrays from rows."""

    @abstractmethod
    def _apply(self, p: Floats, state: State) -> Floats:
        """The map itself, on checked predictions."""


def require_map(value: Any, argument: str, name: str | None = None) -> None:
    """Refuse what is no map of one event, such as its name, its class or a map of classes."""
    if not isinstance(value, Recalibrator):
        raise InputError(
            "must be a Recalibrator" if name is None else "must hold Recalibrators",
            argument=argument,
            seen=TypeName(value.__name__) if isinstance(value, type) else value,
            saying=None if name is None else "{name} is {}",
            cure="Pass a map such as {example}.",
            name=repr(name),
            example=Code("PlattRecalibrator()"),
        )


def load_recalibrator(path: str | os.PathLike[str]) -> LearnedMap:
    """Read a recalibrator of any kind from a file that `save` wrote.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.recalibration.parametric import PlattRecalibrator
    >>> platt = PlattRecalibrator().fit([0.2, 0.3, 0.8, 0.9], [0, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     platt.save(folder + "/platt.json")
    ...     again = load_recalibrator(folder + "/platt.json")
    >>> bool(again.transform([0.5]) == platt.transform([0.5]))
    True
    """
    content = read_bytes(path, WHAT)
    try:
        return LearnedMap.from_dict(load_versioned(content, FORMAT, VERSION, WHAT))
    except InputError as error:
        raise error.at(file=os.fspath(path)) from error.__cause__


def _try_out(made: LearnedMap) -> None:
    """Apply a map that was read, once: what makes no sense shows now, and not when it is in use."""
    if isinstance(made, Recalibrator):
        mapped = made._apply(np.linspace(0.0, 1.0, 33), made.state)
    else:
        k = number_of_classes(made._columns(made.state), made.columns, made.classes)
        even = 0.0 if getattr(made, "from_logits", False) else 1.0 / k
        mapped = made.transform(np.full((1, k), even))
    if not np.all((mapped >= 0.0) & (mapped <= 1.0)):
        raise InputError("it must map predictions to probabilities, and does not")


def _require_whole(state: State, parts: Parts | None) -> None:
    """Refuse a state that lacks a part, or has one that is not of its type, finite and full."""
    if parts is None:
        return
    if set(state) != set(parts):
        wanted, present = (", ".join(sorted(names)) or "nothing" for names in (parts, state))
        says: State = {"saying": "it holds {present}", "present": present, "wanted": wanted}
        raise InputError("its state must hold {wanted}", seen=sorted(state), **says)
    for name, rule in parts.items():
        value, part = state[name], rule if isinstance(rule, Part) else Part(rule)
        fits = isinstance(value, int | float if part.kind is float else part.kind)
        if not fits or isinstance(value, bool):
            kind, seen = part.kind.__name__, TypeName.of(value)
            raise InputError(
                "{name} of its state must be a {kind}", seen=seen, name=repr(name), kind=kind
            )
        if part.kind in (float, np.ndarray) and not part.holds(value):
            raise InputError("{name} of its state must {part}", name=repr(name), part=str(part))
        if part.kind is list and not (
            value and all(item is None or isinstance(item, Recalibrator) for item in value)
        ):
            raise InputError("{name} of its state must hold recalibrators", name=repr(name))
    sizes = {name: value.shape for name, value in state.items() if isinstance(value, np.ndarray)}
    if len(set(sizes.values())) > 1 or any(len(shape) != 1 for shape in sizes.values()):
        raise InputError(
            "{names} of its state must be rows of one length",
            seen=[*sizes.values()],
            saying="their shapes are {}",
            names=" and ".join(sizes),
        )
    if "scale" in parts:
        as_scale(state["scale"])


def _plan(made: LearnedMap) -> State:
    """Kind and settings, for a map that need not have learned anything."""
    settings = {name: _plain(value) for name, value in made.settings.items()}
    return {"kind": made.kind, "settings": settings}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, Scale):
        return name_for_file(value, "a recalibrator", "Pickle it, or fit it on another scale.")
    if isinstance(value, LearnedMap):
        learned = value._state is not None
        return {"recalibrator": value.to_dict() if learned else {**_plan(value), "plan": True}}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _array(value: Any) -> Any:
    if isinstance(value, dict) and "array" in value:
        return np.asarray(value["array"], dtype=np.float64)
    if isinstance(value, dict) and "recalibrator" in value:
        return LearnedMap.from_dict(value["recalibrator"])
    if isinstance(value, list):
        return [_array(item) for item in value]
    return value
