"""Wrong kinds of arguments: every public function with every bad value in place of every argument.

A call may work, or raise an error of calibrant or a TypeError, whose text can be read.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import decimal
import faulthandler
import fractions
import inspect
import io
import os
import pathlib
import random
import signal
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import calibrant as cal
from calibrant.errors import CalibrantError

__all__ = ["BAD", "Case", "cases", "error_of", "try_arguments", "try_case"]

N = 24
P = np.linspace(0.03, 0.97, N)
Y = (np.arange(N) * 0.618 % 1 < P).astype(int)
LONGEST_TEXT = 3_000
SECONDS = 20
"""Of processor time, for a call."""
HOPELESS = 600
"""Seconds on the clock after which a call will not come back."""


class Hostile:
    """Object whose comparison, text, length and truth all fail."""

    def __eq__(self, _: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __str__ = __repr__

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


class Endless:
    """Sequence of integers without an end, that says it has none."""

    def __getitem__(self, place: int) -> int:
        if place > N:
            raise OverflowError("too far")
        return place

    def __len__(self) -> int:
        return 0


def _recursive() -> list[Any]:
    inner: list[Any] = []
    inner.append(inner)
    return inner


BAD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "1": lambda: 1,
    "-1": lambda: -1,
    "2.5": lambda: 2.5,
    "1e-300": lambda: 1e-300,
    "1e300": lambda: 1e300,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "10**400": lambda: 10**400,
    "-10**400": lambda: -(10**400),
    "complex": lambda: 1 + 2j,
    "Fraction": lambda: fractions.Fraction(1, 3),
    "Decimal": lambda: decimal.Decimal("0.5"),
    "numpy float": lambda: np.float64(0.5),
    "numpy int": lambda: np.int64(-3),
    "numpy bool": lambda: np.bool_(True),
    "numpy string": lambda: np.str_("smooth"),
    "0-d array": lambda: np.array(0.5),
    "empty string": lambda: "",
    "word": lambda: "nonsense",
    "long string": lambda: "x" * 100_000,
    "surrogate": lambda: "\ud800",
    "control characters": lambda: "\x1b[31m\n\0",
    "number as text": lambda: "0.5",
    "bytes": lambda: b"abc",
    "bytearray": lambda: bytearray(b"abc"),
    "path": lambda: pathlib.Path("/nonexistent/file"),
    "date": lambda: datetime.date(2026, 1, 2),
    "timedelta": lambda: datetime.timedelta(days=1),
    "numpy datetime": lambda: np.datetime64("2026-01-01"),
    "empty list": list,
    "list": lambda: [0.1, 0.2],
    "list of words": lambda: ["a"] * N,
    "list of None": lambda: [None] * N,
    "ragged list": lambda: [[1], [1, 2]],
    "nested list": lambda: [[[0.5]]],
    "list in itself": _recursive,
    "tuple": lambda: (0.1, 0.2),
    "set": lambda: {0.1, 0.2},
    "empty dict": dict,
    "dict": lambda: {"a": 1},
    "dict of hostiles": lambda: {"a": Hostile()},
    "range": lambda: range(3),
    "generator": lambda: (k for k in range(3)),
    "array": lambda: np.linspace(0, 1, N),
    "array of integers": lambda: np.arange(N),
    "negative array": lambda: -np.ones(N),
    "huge array": lambda: np.full(N, 1e300),
    "NaN array": lambda: np.full(N, np.nan),
    "empty array": lambda: np.empty(0),
    "matrix": lambda: np.ones((N, 3)),
    "object array": lambda: np.array([Hostile()] * N, dtype=object),
    "array of words": lambda: np.array(["nan"] * N),
    "complex array": lambda: np.ones(N, dtype=complex),
    "structured array": lambda: np.zeros(N, dtype=[("a", float), ("b", int)]),
    "dates": lambda: np.full(N, np.datetime64("2026-01-01")),
    "hostile": Hostile,
    "endless": Endless,
    "function": lambda: len,
    "class": lambda: int,
    "module": lambda: np,
    "exception": lambda: ValueError("x"),
}
"""Values by name, made afresh for every call."""

ROOMS = ("measures", "plotting", "recalibration", "decisions", "inference", "profiles", "data",
         "datasets", "survival", "quantiles", "distributions")  # fmt: skip
OPTIONS = ("sample_weight", "pos_label", "from_logits", "from_logprobs", "percent", "labels", "on_invalid",
           "multiclass", "classes")  # fmt: skip
"""Arguments behind `**options`."""
GOOD: dict[str, Callable[[], Any]] = {
    "y_true": Y.copy,
    "y_prob": P.copy,
    "y_probs": lambda: {"a": P, "b": P**2},
    "models": lambda: {"a": (Y, P), "b": (Y, P**2)},
    "by": lambda: np.array(["u", "v"] * (N // 2)),
    "sketch": lambda: cal.scan({"y": Y, "p": P}, y_true="y", y_prob="p"),
    "margin": lambda: 0.1,
    "recalibrator": lambda: cal.recalibration.PlattRecalibrator().fit(P, Y),
    "base_rate": lambda: 0.01,
    "forward": lambda: np.log1p,
    "inverse": lambda: np.expm1,
    "shape": lambda: "sine",
    "n": lambda: 10,
    "n_classes": lambda: 2,
    "from_rate": lambda: 0.5,
    "to_rate": lambda: 0.1,
    "columns": lambda: {"p": P, "y": Y},
    "nodes": lambda: 16,
    "p": P.copy,
    "path": lambda: os.path.join(tempfile.gettempdir(), "calibrant-fuzz.json"),
}
"""Values of arguments that a function cannot do without."""
BY = np.array(["u", "v"] * (N // 2))
TABLE = {
    "y": np.tile(Y, 50),
    "p": np.tile(P, 50),
    "age": np.arange(50 * N) % 71,
    "sex": np.tile(BY, 50),
}
FOLLOWED = {"time": 1.0 + np.arange(N) % 7, "event": Y, "risk": P, "horizon": 5.0}
MODELS = {"a": P, "b": P**2}
PICTURE = {"path": os.path.join(tempfile.gettempdir(), "calibrant-fuzz.svg")}
GOOD_FOR: dict[str, dict[str, Any]] = {
    "scan": {"data": {"y": Y, "p": P}, "y_true": "y", "y_prob": "p"},
    "assess_by": {"by": BY},
    "compare": {"y_prob": MODELS},
    "compare_by": {"y_prob": MODELS, "by": BY},
    "reliability_diagrams": {"y_true": None, "y_prob": None},
    "loss_scale": {"loss": np.square, "inverse": np.sqrt},
    "bias_by": {"feature": np.arange(N)},
    "find_groups": {"data": TABLE, "y_true": "y", "y_prob": "p", "columns": ["age", "sex"]},
    "project": {"reference": (Y, P), "current": P**2},
    "judged_rate": {"judged": Y, "human": Y[:12], "judged_of_human": Y[:12]},
    "judged_mean": {"judged": P, "human": Y[:12], "judged_of_human": P[:12]},
    "validation_size": {"prevalence": 0.1},
    "at_horizon": FOLLOWED,
    "observed_expected": FOLLOWED,
    "quantiles.assess": {"y": P, "forecasts": {0.1: P - 1.0, 0.5: P, 0.9: P + 1.0}},
    "decompose": {"outcome": P, "forecast": P**2, "level": 0.5},
    "isotonic_quantile": {"outcome": P, "forecast": P**2, "level": 0.5},
    "distributions.assess": {"y": P, "mean": P**2, "sd": np.ones(N)},
    "ReliabilityDiagram.save": PICTURE,
    "ReliabilityDiagrams.save": PICTURE,
    "DecisionCurve.save": PICTURE,
    "GroupAssessments.difference": {"first": "u", "second": "v"},
    "to_python": {"name": "mapped"},
}
"""Arguments by function, where they are not those of `GOOD`; None leaves one out."""
OF_MATRICES = ("confidence", "top_label", "classwise", "multiclass_error")
LEFT_OUT = ("load", "cache_folder", "datasets.load", "profile", "evaluate")
"""Functions that reach out to disk or network, or whose arguments are functions."""
BIG = 40
SOURCE = {"y": np.tile(Y, BIG), "p": np.tile(P, BIG)}
OBJECTS: dict[str, Callable[[], Any]] = {
    "Sketch": lambda: cal.Sketch.from_arrays(Y, P),
    "Sketches": lambda: cal.Sketches({"u": cal.Sketch.from_arrays(Y, P)}, by="g"),
    "Monitor": cal.Monitor,
    "PlattRecalibrator": lambda: cal.recalibration.PlattRecalibrator().fit(P, Y),
    "TemperatureScaling": lambda: cal.recalibration.TemperatureScaling(from_logits=False).fit(
        np.column_stack([1 - P, P]), Y
    ),
    "SmoothECE": cache(lambda: cal.smooth_ece_result(Y, P)),
    "Measures": cache(lambda: cal.measure_all(Y, P)),
    "Assessment": cache(lambda: cal.assess(Y, P)),
    "GroupAssessments": cache(lambda: cal.assess_by(Y, P, by=BY)),
    "Comparison": cache(lambda: cal.compare(Y, MODELS)),
    "ReliabilityDiagram": cache(lambda: cal.reliability_diagram(Y, P)),
    "ReliabilityDiagrams": cache(lambda: cal.reliability_diagrams(Y, MODELS)),
    "DecisionCurve": cache(lambda: cal.decision_curve(SOURCE["y"], SOURCE["p"])),
    "Report": cache(lambda: cal.report(Y, P)),
}
"""Objects by their classes, whose public methods are called; those that change are made afresh."""
OF_ROWS = ("update", "from_arrays", "fit")
"""Methods whose `**options` say how rows are read."""
OWN = (
    *("from_rows", "from_stacked", "with_classes", "with_outcomes", "artists", "select"),
    *("shared", "register", "load", "get"),
)
"""Methods that take objects of other parts or functions, keep files open, or are of every mapping."""


@dataclass(frozen=True)
class Case:
    """A call with one bad argument."""

    room: str
    function: str
    argument: str
    value: str

    def __str__(self) -> str:
        return f"{self.room}.{self.function}({self.argument}={self.value})"


def _functions() -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Public functions, and the classes of maps and of the monitor, by room and name."""
    for room in ("", *ROOMS):
        module: Any = getattr(cal, room) if room else cal
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            is_map = (
                inspect.isclass(value) and hasattr(value, "fit") and not inspect.isabstract(value)
            )
            if (isinstance(value, types.FunctionType) or is_map) and name not in LEFT_OUT:
                yield room or "calibrant", name, value
    for room, made in OBJECTS.items():
        one = made()
        for name in dir(type(one)):
            if callable(getattr(type(one), name)) and name[0] != "_" and name not in OWN:
                yield room, name, getattr(one, name)
    yield (
        "calibrant",
        "Monitor",
        lambda level=0.05, y_true=Y, y_prob=P: cal.Monitor(level=level).update(y_true, y_prob),
    )


def cases() -> list[Case]:
    """Every public function with every bad value in place of every argument."""
    made = []
    for room, name, function in _functions():
        rows = room not in OBJECTS or name in OF_ROWS
        for argument in _arguments(function, OPTIONS if rows else ()):
            made += [Case(room, name, argument, value) for value in BAD]
    return made


def _arguments(function: Callable[..., Any], options: Sequence[str]) -> list[str]:
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            names += options
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            names.append(parameter.name)
    return names


def _call(case: Case) -> Any:
    function = next(f for room, name, f in FUNCTIONS if (room, name) == (case.room, case.function))
    if case.room in OBJECTS:
        function = getattr(OBJECTS[case.room](), case.function)
    parameters = inspect.signature(function).parameters.values()
    arguments = {
        one.name: GOOD[one.name]()
        for one in parameters
        if one.name in GOOD
        and (one.default is one.empty or one.name in ("y_true", "y_prob", "y_probs"))
        and one.kind is not one.VAR_KEYWORD
    }
    if case.function in OF_MATRICES and "y_prob" in arguments:
        arguments["y_prob"] = np.column_stack([1 - P, P])
    if case.function == "save":
        arguments["path"] = os.path.join(tempfile.gettempdir(), "calibrant-fuzz.json")
    own = GOOD_FOR.get(f"{case.room}.{case.function}", GOOD_FOR.get(case.function, {}))
    arguments = copy.deepcopy({k: v for k, v in {**arguments, **own}.items() if v is not None})
    made = function(**{**arguments, case.argument: BAD[case.value]()})
    if hasattr(made, "fit") and case.room == "recalibration" and inspect.isclass(function):
        classes = issubclass(function, cal.recalibration.ClassRecalibrator)
        rows = np.column_stack([1 - P, P]) if classes else P
        rows = np.log(rows) if getattr(made, "from_logits", False) is True else rows
        made.fit(rows, Y).transform(rows)
    return made


FUNCTIONS = list(_functions())


def error_of(case: Case) -> BaseException | None:
    """How the call fails, if it does."""
    try:
        with warnings.catch_warnings(action="ignore"):
            _call(case)
    except Exception as error:
        return error
    return None


def try_case(case: Case) -> str | None:
    """What is wrong with how the call ends, or None."""

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s of processor time")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            _call(case)
    except (CalibrantError, TypeError) as error:
        try:
            text = str(error)
        except Exception as foreign:
            return f"{case}: the text of its error raises {foreign!r}"
        return f"{case}: {len(text):,} characters" if len(text) > LONGEST_TEXT else None
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        place = _place(error)
        return f"{case}: {type(error).__name__} at {place}: {str(error)[:80]!r}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return None


def _place(error: BaseException) -> str:
    """Last line of calibrant in a traceback."""
    trace, place = error.__traceback__, "?"
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if "calibrant" in path and "fuzz" not in path:
            place = f"{path.rpartition('calibrant/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def try_arguments(number: int | None = None, seed: int = 0) -> tuple[str, list[str]]:
    """All cases, or so many that are drawn: their number, and those that end badly."""
    chosen = cases()
    if number is not None:
        chosen = random.Random(seed).sample(chosen, min(number, len(chosen)))
    wrong = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for case in chosen:
            # A compiled loop without an end hears no signal: this ends the run, and says where it was.
            faulthandler.dump_traceback_later(HOPELESS, exit=True)
            wrong += filter(None, [try_case(case)])
    faulthandler.cancel_dump_traceback_later()
    return f"{len(chosen):,} calls, {len(wrong)} end badly", wrong
