"""Recalibration maps: estimators from p to p' with a file that is no pickle, and the registry of all of them.

To add a map, write one module in this package with a class under `@register`, and its line in `__init__.pyi`;
files, names such as "platt", the command line and the export as text find it there.
"""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import nearest, require_choice, require_count, require_flag
from calibrant._files import dump_versioned, load_versioned, read_bytes, write_whole
from calibrant._format import percent
from calibrant._optional import require
from calibrant.data.arrays import as_array, as_column
from calibrant.data.points import Points
from calibrant.data.rows import DROP, FORMS, Rows, as_rows
from calibrant.data.scales import Scale, as_scale, name_for_file
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import is_summed
from calibrant.errors import CalibrantError, InputError, TooFewRows, invalid, show_value

if TYPE_CHECKING:
    from calibrant.io.sql import Expression

Floats = NDArray[np.float64]
State = dict[str, Any]
Parts = Mapping[str, type]
AnyMap = TypeVar("AnyMap", bound="type[LearnedMap]")

FORMAT, VERSION, OLDEST = "calibrant.recalibrator", 3, 2
WHAT = "a recalibrator"
_RENAMED = {"seed": "random_state", "folds": "cv", "knots": "n_knots"}
"""Parameters under the names that files of version 2 have."""


class FitOptions(TypedDict, total=False):
    """Keywords by which `fit` reads outcomes and invalid rows; see `calibrant.data.InputOptions`."""

    pos_label: Any
    labels: Literal["binary", "soft"]
    on_invalid: Literal["raise", "drop"]


# -- the registry ------------------------------------------------------------------------------

_KINDS: dict[str, type[LearnedMap]] = {}
_NAMES: dict[tuple[bool, str], tuple[type[LearnedMap], dict[str, Any]]] = {}


def register(kind: str, *aliases: str, **names: Mapping[str, Any]) -> Callable[[AnyMap], AnyMap]:
    """Class decorator that adds a map: its kind in files, and the names that stand for it.

    Parameters
    ----------
    kind : str
        Name in files, and by default the name that users pass.
    *aliases : str
        Other names of the same map.
    **names : mapping
        In place of the kind: names with the parameters that each of them means; `_` is read as `-`.
    """

    def add(cls: AnyMap) -> AnyMap:
        cls.kind = kind
        _KINDS[kind] = cls
        binary = issubclass(cls, Recalibrator)
        called = {} if cls.takes_table else names or {key: {} for key in (kind, *aliases)}
        for name, parameters in called.items():
            _NAMES[binary, name.replace("_", "-")] = (cls, dict(parameters))
        return cls

    return add


def registered_maps() -> dict[str, type[LearnedMap]]:
    """Classes of all maps by their kind in files, from every module of this package."""
    package = sys.modules["calibrant.recalibration"]
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    return dict(_KINDS)


def map_names(n_classes: int = 2) -> list[str]:
    """Names that `make_map` knows for so many classes.

    Examples
    --------
    >>> "platt" in map_names(), map_names(n_classes=3)
    (True, ['none', 'one-vs-rest', 'structured', 'structured-matrix', 'temperature', 'vector'])
    """
    require_count("n_classes", n_classes, least=2)
    registered_maps()
    return sorted(name for binary, name in _NAMES if binary == (n_classes == 2))


def make_map(recalibrator: str | LearnedMap, n_classes: int = 2) -> Any:
    """New map of this name, or a copy of a map, for predictions of so many classes.

    With more than two classes, a map of two takes each class against the rest.

    Examples
    --------
    >>> make_map("sigmoid"), make_map("structured-matrix", n_classes=3)
    (PlattRecalibrator(), StructuredScaling(from_logits=False, matrix=True))
    """
    known = map_names(n_classes)
    if isinstance(recalibrator, LearnedMap if n_classes > 2 else Recalibrator):
        made: LearnedMap = deepcopy(recalibrator)
    else:
        if n_classes > 2:
            known = sorted({*known, *map_names()})
        if not isinstance(recalibrator, str) or recalibrator not in known:
            raise invalid(
                "recalibrator",
                f"be one of {', '.join(known)}, or a map for {n_classes} classes",
                recalibrator,
                nearest(recalibrator, known),
            )
        binary = n_classes == 2 or (False, recalibrator) not in _NAMES
        cls, parameters = _NAMES[binary, recalibrator]
        made = cls(**parameters)
    if n_classes > 2 and isinstance(made, Recalibrator):
        return _KINDS["one-vs-rest"](made)  # type: ignore[call-arg]
    if getattr(made, "from_logits", False):
        raise invalid(
            "recalibrator",
            "take class probabilities",
            made,
            hint="Make it with `from_logits=False`.",
        )
    return made


@contextmanager
def hints_of_maps(*, drop: bool = True) -> Iterator[None]:
    """Errors whose hint names what maps take: no form of predictions, and `on_invalid` in `fit` alone."""
    try:
        yield
    except InputError as error:
        hint = (error.hint or "").replace(
            "leave out `from_logits=True`", "make the map with `from_logits=False`"
        )
        hint = re.sub(r"(pass )?`(\w+)=True`", "convert them to probabilities first", hint)
        error.hint = (hint if drop else hint.replace(DROP, "Leave such rows out first.")) or None
        raise


# -- what every map is -------------------------------------------------------------------------


class LearnedMap(ABC):
    """Estimator whose parameters are stored by the constructor and whose fitted attributes end in `_`.

    It follows scikit-learn's rules for estimators and does not import it.
    """

    kind: ClassVar[str]
    parts: ClassVar[Parts] = {}
    """Fitted attributes, without the underscore, and their type."""
    takes_table: ClassVar[bool] = False
    """True if it takes groups beside predictions: such a map has no name for `make_map`."""
    n_features_in_: int
    classes_: list[str] | None = None  # names of the columns, where they are known

    @abstractmethod
    def transform(self, y_prob: Any) -> Any:
        """Recalibrated predictions, in the order given and, unless `set_output` says so, in its container."""

    @abstractmethod
    def mapped(self, y_prob: Any) -> Floats:
        """Recalibrated predictions as an array."""

    def set_output(
        self, *, transform: Literal["default", "pandas", "polars"] | None = None
    ) -> Self:
        """Choose the frames that `transform` gives; "default" is the container of what it takes."""
        require_choice("transform", transform, ("default", "pandas", "polars", None))
        if transform is not None:
            self._sklearn_output_config = {
                "transform": transform
            }  # where scikit-learn's clone finds it
        return self

    def _contained(self, mapped: Floats, given: Any, name: Any = None) -> Any:
        """Mapped predictions in the container that was chosen, or a Series or frame where one was given.

        A Series has this name, by default that of the predictions.
        """
        chosen = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        library, index, columns = _container(given)
        if library is None and chosen == "default":
            return mapped
        if columns is None:
            columns = list(self.get_feature_names_out())
        elif mapped.ndim == 1:
            columns = [columns[0] if name is None else name]
        if chosen != "default":
            library = require(chosen, caller="set_output")
            mapped = mapped.reshape(mapped.shape[0], -1)
        if library.__name__ == "polars":
            if mapped.ndim == 1:
                return library.Series(str(columns[0]), mapped)
            return library.DataFrame(mapped, schema=list(map(str, columns)))
        if mapped.ndim == 1:
            return library.Series(mapped, index=index, name=columns[0])
        return library.DataFrame(mapped, index=index, columns=columns)

    @abstractmethod
    def fit(self, y_prob: Any, y_true: Any = None, sample_weight: Any = None) -> Self:
        """Learn the map from predictions and outcomes."""

    def fit_transform(self, y_prob: Any, y_true: Any = None, sample_weight: Any = None) -> Any:
        """Fit, then transform the same predictions: for a look, not for a fair estimate."""
        return self.fit(y_prob, y_true, sample_weight).transform(y_prob)

    def score(self, y_prob: Any, y_true: Any, sample_weight: Any = None) -> float:
        """Minus the mean log loss of the recalibrated predictions: larger is better."""
        from calibrant.recalibration.effect import evaluate

        return -evaluate(self, y_true, y_prob, sample_weight=sample_weight).after.log_loss

    @abstractmethod
    def _try_out(self) -> None:
        """Apply a map that was read from a file, so that a forged state shows now."""

    @property
    def state(self) -> State:
        """Fitted attributes by name; an error before `fit`."""
        if "n_features_in_" not in vars(self):
            message = (
                f"This {type(self).__name__} is not fitted yet. Call `fit(y_prob, y_true)` first."
            )
            if sys.modules.get("sklearn") is not None:
                from sklearn.exceptions import NotFittedError

                raise NotFittedError(message)
            raise CalibrantError(message)
        return {name: getattr(self, f"{name}_") for name in self.parts}

    def _set_state(self, state: Mapping[str, Any], columns: int) -> None:
        for name, value in state.items():
            setattr(self, f"{name}_", value)
        self.n_features_in_ = columns

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns that `transform` gives: those passed, or the classes, or x0, x1, …"""
        _ = self.state  # an error before `fit`
        names = self.classes_ if input_features is None else input_features
        if names is None:
            names = [f"x{k}" for k in range(self.n_features_in_)]
        names = as_column(names, "input_features")
        if len(names) != self.n_features_in_:
            raise InputError(
                f"`input_features` should have length equal to the number of columns of the fit, "
                f"{self.n_features_in_}; it has {len(names)}.",
                argument="input_features",
            )
        return names.astype(object)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        parameters = inspect.signature(cls).parameters.values()
        return [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the constructor; with `deep`, also those of a map inside, as `name__parameter`."""
        parameters = {name: getattr(self, name) for name in self._parameter_names()}
        if require_flag("deep", deep):
            for name, value in list(parameters.items()):
                if isinstance(value, LearnedMap):
                    inner = value.get_params()
                    parameters |= {f"{name}__{key}": inner[key] for key in inner}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters by name, also those of a map inside."""
        for name, value in parameters.items():
            own, _, inner = name.partition("__")
            if own not in self._parameter_names():
                raise InputError(
                    f"`{own}` is not a parameter of {type(self).__name__}; it has "
                    f"{', '.join(self._parameter_names()) or 'none'}.",
                    argument=own,
                )
            if inner:
                getattr(self, own).set_params(**{inner: value})
            else:
                setattr(self, own, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = (
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if repr(value) != repr(defaults[name].default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        one = isinstance(self, Recalibrator)
        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(one_d_array=one, two_d_array=not one),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters and fitted attributes as JSON; `load_recalibrator` reads it."""
        write_whole(path, dump_versioned(FORMAT, VERSION, self.to_dict()))

    def to_dict(self) -> State:
        """Kind, parameters and fitted attributes as plain values."""
        state = {name: _plain(value) for name, value in self.state.items()}
        document = {**_settings(self), "state": state}
        if not isinstance(self, Recalibrator):
            document["columns"] = self.n_features_in_
        return document | ({"classes": self.classes_} if self.classes_ else {})

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> LearnedMap:
        """Inverse of `to_dict`."""
        kinds = registered_maps()
        kind = document.get("kind") if isinstance(document, Mapping) else document
        if not isinstance(kind, str) or kind not in kinds:
            raise InputError(
                f"The kind of a recalibrator must be one of {', '.join(sorted(kinds))}; got "
                f"{show_value(kind)}.",
                hint="The file was written by another version, or by hand: fit the map again.",
            )
        try:
            settings = {
                _RENAMED.get(name, name): _array(value)
                for name, value in document["settings"].items()
            }
            made = kinds[kind](**settings)
            if "plan" not in document:
                state = {name: _array(value) for name, value in document["state"].items()}
                _require_parts(state, made.parts)
                made._set_state(state, document.get("columns", 1))
                made.classes_ = document.get("classes")
                made._try_out()
        except Exception as error:  # a forged state may raise anything
            reason = error if isinstance(error, CalibrantError) else repr(error)
            raise InputError(
                f"The {kind} recalibrator in the file is damaged: {reason}.",
                hint="Fit the map again, or use a copy of the file.",
            ) from error
        return made


def load_recalibrator(path: str | os.PathLike[str]) -> LearnedMap:
    """Recalibrator of any kind from a file that `save` wrote.

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.recalibration import PlattRecalibrator
    >>> platt = PlattRecalibrator().fit([0.2, 0.3, 0.8, 0.9], [0, 1, 0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     platt.save(folder + "/platt.json")
    ...     again = load_recalibrator(folder + "/platt.json")
    >>> bool(again.transform([0.5]) == platt.transform([0.5]))
    True
    """
    content = read_bytes(path, WHAT)
    try:
        return LearnedMap.from_dict(load_versioned(content, FORMAT, VERSION, WHAT, oldest=OLDEST))
    except InputError as error:
        raise error.at(file=os.fspath(path)) from error.__cause__


def _require_parts(state: Mapping[str, Any], parts: Parts) -> None:
    """Refuse a state whose names, types or numbers a fit could not have left behind."""
    if state.keys() != parts.keys():
        raise InputError(f"its state must hold {', '.join(parts) or 'nothing'}")
    for name, kind in parts.items():
        value: Any = state[name]
        numbers = kind in (float, np.ndarray)
        allowed: Any = int | float if kind is float else kind
        if not isinstance(value, allowed) or (numbers and not np.isfinite(value).all()):
            raise InputError(
                f"{name!r} must be {'finite, ' if numbers else ''}of type {kind.__name__}"
            )


def _settings(made: LearnedMap) -> State:
    settings = {name: _plain(value) for name, value in made.get_params(deep=False).items()}
    return {"kind": made.kind, "settings": settings}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, Scale):
        return name_for_file(value, WHAT, "Pickle it, or fit it on another scale.")
    if isinstance(value, LearnedMap):
        fitted = "n_features_in_" in vars(value)
        return {"recalibrator": value.to_dict() if fitted else {**_settings(value), "plan": True}}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _array(value: Any) -> Any:
    if isinstance(value, dict) and "array" in value:
        return np.asarray(value["array"], dtype=np.float64)
    if isinstance(value, dict) and "recalibrator" in value:
        return LearnedMap.from_dict(value["recalibrator"])
    return [_array(item) for item in value] if isinstance(value, list) else value


# -- maps of one event -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Training:
    """Rows that a recalibrator is fitted to: arrays, or a sketch of them."""

    rows: Rows | Sketch

    @classmethod
    def of(cls, y_prob: Any, y_true: Any, sample_weight: Any, options: FitOptions) -> Training:
        """Check `(y_prob, y_true)`, or take a Sketch alone."""
        for name in FORMS.keys() & options.keys():
            raise InputError(
                f"`{name}` is not an option of `fit`: a map takes probabilities.",
                argument=name,
                hint="Convert the predictions to probabilities first.",
            )
        if is_summed(y_prob):
            if y_true is not None:
                raise InputError(
                    "`y_true` must be left out with a Sketch, which holds outcomes.",
                    argument="y_true",
                )
            return cls(as_sketch(y_prob, sample_weight=sample_weight, **options))
        require_outcomes(y_true)
        return cls(as_rows(y_true, event_column(y_prob), sample_weight=sample_weight, **options))

    @cached_property
    def points(self) -> Points:
        """Distinct predictions with the weight of each outcome."""
        return Points.of(self.rows)

    def sketch(self, scale: str | Scale) -> Sketch:
        """Sums on the grid of a scale; a sketch must have been made on it."""
        if isinstance(self.rows, Sketch):
            return as_sketch(self.rows, scale=as_scale(scale))
        return Sketch.from_rows(self.rows, scale=as_scale(scale, base_rate=self.points.base_rate))


class Recalibrator(LearnedMap):
    """Map from the predicted probability of an event to a better calibrated one.

    Examples
    --------
    >>> from calibrant.recalibration import PlattRecalibrator
    >>> platt = PlattRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> isinstance(platt, Recalibrator), platt.transform([0.2, 0.8]).shape
    (True, (2,))
    """

    n_parameters: int = 0
    """Numbers that are learned, where that is known before; refused where there are fewer rows."""
    exportable: ClassVar[bool] = True
    """False if the map draws random numbers."""

    @hints_of_maps()
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
            Importance of each row. Only the ratios of weights matter: for what depends on the number of
            rows, weights count as Kish's effective sample size, (Σw)² / Σw².
        **options
            Keywords that read the arrays (see `FitOptions`).
        """
        return self._fit(Training.of(y_prob, y_true, sample_weight, options))

    def _fit(self, training: Training) -> Self:
        points = training.points
        seen = points.mass.sum(axis=0) > 0
        if not seen.all():
            raise InputError(
                f"`y_true` must hold rows with the event and rows without it for a {type(self).__name__}; "
                f"all {points.n} rows have outcome {int(seen[1])} (one class).",
                argument="y_true",
            )
        require_rows(points.n, self.n_parameters)
        self._set_state(self._learn(training), 1)
        return self

    def transform(self, y_prob: Any) -> Any:
        """Recalibrated predictions in the order of `y_prob`.

        Of a Series, or a frame with one column, of pandas or polars they are a Series of its name, with the
        index of pandas. Of everything else they are an array; `set_output` chooses frames.
        """
        return self._contained(self.mapped(y_prob), y_prob)

    def mapped(self, y_prob: Any) -> Floats:
        """Recalibrated predictions as an array."""
        state = self.state
        return self._apply(checked_probabilities(y_prob), state)

    def to_sql(
        self, prob: str | Expression, dialect: str = "duckdb", *, tolerance: float = 1e-5
    ) -> Expression:
        """SQL expression of the map of a column; `str` gives the text.

        It is straight between as few points as keep it close to `transform`, and needs no function that a
        warehouse may lack. What is no probability (NULL, NaN, below 0, above 1) is left as it is.

        Parameters
        ----------
        prob : str or Expression
            The column of the predictions.
        dialect : {"duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite"}
            The warehouse.
        tolerance : float
            The largest distance from `transform`; a larger one gives a shorter text. Near 0 and 1 the map
            is also kept within 100 times this share of its distance from them, down to 1e-9.

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
        from calibrant.recalibration.export import to_sql

        return to_sql(self, prob, dialect, tolerance)

    def to_python(self, name: str = "recalibrate", *, tolerance: float = 1e-5) -> str:
        """Text of a Python module with the map as a function; it needs nothing else, not even calibrant.

        A map with a formula is written as its formula; others are straight between as few points as keep
        them close to `transform`.

        Parameters
        ----------
        name : str
            Name of the function. It takes one probability and returns one.
        tolerance : float
            As for `to_sql`.

        Examples
        --------
        >>> from calibrant.recalibration import PlattRecalibrator
        >>> platt = PlattRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
        >>> module = {}
        >>> exec(platt.to_python("better"), module)
        >>> bool(abs(module["better"](0.9) - platt.transform([0.9])[0]) < 1e-15)
        True
        """
        from calibrant.recalibration.export import to_python

        return to_python(self, name, tolerance)

    @property
    def keeps_order(self) -> bool:
        """True if predictions stay apart and in order; those within 1e-4 of 0 or 1 may become equal."""
        from calibrant.recalibration.export import monotonicity_of_map

        return monotonicity_of_map(self) == "increasing"

    def explain(self, y_prob: Any = (0.1, 0.5, 0.9)) -> str:
        """Sentence on what the map does to these predictions."""
        from calibrant.recalibration.export import monotonicity_of_map

        before = as_column(y_prob, "y_prob")
        after = self.mapped(before)
        if np.array_equal(before, after) and np.array_equal(self.mapped([0.0, 1.0]), [0.0, 1.0]):
            return f"This {self.kind} map leaves predictions as they are."
        moves = [f"{percent(p)} into {percent(q)}" for p, q in zip(before, after, strict=True)]
        listed = " and ".join(filter(None, [", ".join(moves[:-1]), moves[-1]]))
        effect = {
            "increasing": "keeps their order",
            "non-decreasing": "makes some of them equal",
            "not monotone": "changes the order of some",
        }
        return f"This {self.kind} map turns {listed}, and {effect[monotonicity_of_map(self)]}."

    def _try_out(self) -> None:
        places = np.concatenate([np.linspace(0.0, 1.0, 33), *self._breaks(self.state)])
        mapped = self._apply(np.clip(places, 0.0, 1.0), self.state)
        if mapped.shape != places.shape or not np.all((mapped >= 0.0) & (mapped <= 1.0)):
            raise InputError("it does not give probabilities")

    @abstractmethod
    def _learn(self, training: Training) -> State:
        """Fitted attributes from rows."""

    @abstractmethod
    def _apply(self, p: Floats, state: State) -> Floats:
        """Mapped predictions, of checked ones."""

    def _formula(self, state: State) -> str | None:
        """Python text of the log-odds of the map, from `low` = log p and `high` = log(1 - p)."""
        return None

    def _breaks(self, state: State) -> tuple[Floats, Floats]:
        """Places where the map bends, and where it jumps."""
        return np.empty(0), np.empty(0)


def require_outcomes(y_true: Any) -> None:
    """Refuse a fit without outcomes, in words that scikit-learn's checks of estimators look for."""
    if y_true is None:
        raise InputError(
            "`y_true` is missing: this map requires y to be passed, but the target y is None.",
            argument="y_true",
        )


def require_rows(rows: int, parameters: int) -> None:
    """Refuse fewer rows than a map has parameters."""
    if rows < parameters:
        raise TooFewRows(
            f"`y_true` must have at least as many rows as the map has parameters; it has {rows} for "
            f"{parameters}.",
            argument="y_true",
            hint="Use a map with fewer parameters, such as a temperature, or more rows.",
        )


def shape_of(y_prob: Any) -> tuple[int, ...]:
    """Shape of predictions of any library."""
    own = getattr(y_prob, "shape", None)
    return own if isinstance(own, tuple) else as_array(y_prob, "y_prob").shape


def event_column(y_prob: Any) -> Any:
    """Predictions of one event: the column of a table that has no other; class probabilities are refused."""
    if y_prob is None:  # Rows have them
        return None
    shape = shape_of(y_prob)
    if len(shape) == 2 and shape[1] > 2:
        raise InputError(
            f"`y_prob` must be the probability of one event for this map; its shape is {shape}.",
            argument="y_prob",
            hint="Pass one column, or use a map of classes such as `TemperatureScaling(from_logits=False)`.",
        )
    return as_array(y_prob, "y_prob")[:, 0] if shape[1:] == (1,) else y_prob


@hints_of_maps(drop=False)
def checked_probabilities(y_prob: Any) -> Floats:
    """Predictions that `transform` takes: probabilities of one event, none of them missing."""
    column = as_column(event_column(y_prob), "y_prob")
    return as_rows(np.zeros(column.size), column).p


def _container(given: Any) -> tuple[Any, Any, list[Any] | None]:
    """Library, index and columns of a Series or frame of pandas or polars; of all else None."""
    if isinstance(given, np.ndarray | list | tuple | Mapping):
        return None, None, None
    from narwhals import dependencies as known
    from narwhals import get_native_namespace

    pandas = known.is_pandas_like_series(given) or known.is_pandas_like_dataframe(given)
    if not (pandas or known.is_polars_series(given) or known.is_polars_dataframe(given)):
        return None, None, None
    columns = [given.name] if known.is_into_series(given) else list(given.columns)
    return get_native_namespace(given), given.index if pandas else None, columns


def require_map(value: Any, argument: str) -> None:
    """Refuse what is no map of one event, such as its name, its class or a map of classes."""
    if not isinstance(value, Recalibrator):
        raise invalid(
            argument, "be a Recalibrator", value, "Pass a map such as `PlattRecalibrator()`."
        )
