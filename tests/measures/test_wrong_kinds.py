"""Arguments of every wrong kind are an InputError or a TypeError with a short message, never another."""

import inspect
from datetime import date

import numpy as np
import pytest

import calibrant as cal
from calibrant import measures
from calibrant.data.rows import as_rows


class WithoutRepr:
    def __repr__(self):
        raise RuntimeError("no repr")


class WithoutEquality:
    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("no comparison")


WRONG = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3.5,
    -0.5,
    float("nan"),
    float("inf"),
    10**400,
    10**19,
    "",
    "x",
    "percent",
    "a" * 30_000,
    "\ud800",
    b"x",
    1j,
    ...,
    NotImplemented,
    len,
    int,
    [],
    [1],
    [1, 2],
    [[1, 2], [3, 4]],
    [None, None],
    ["a", "b"],
    (1, 2),
    {},
    {"a": 1},
    set(),
    range(2),
    iter([1, 2]),
    slice(3),
    date(2020, 1, 1),
    object(),
    WithoutRepr(),
    WithoutEquality(),
    np.array(1.0),
    np.array([]),
    np.zeros((2, 2)),
    np.zeros((2, 3)),
    np.zeros((0, 2)),
    np.array([1, 0]),
    np.array([-1.0, -2.0]),
    np.array([1e-300, 1e-300]),
    np.array([1e-300, 1e100]),
    np.array(["a", "b"]),
    np.array([1 + 2j, 0]),
    np.array(["2020", "2021"], "M8[Y]"),
    np.ma.array([1, 0], mask=[1, 0]),
    np.float16(1),
    np.uint64(2**63),
    np.full(2, np.nan),
    np.full(2, np.inf),
    np.array([WithoutRepr(), WithoutRepr()], object),
    np.array([WithoutEquality(), 1], object),
]
OPTIONS = as_rows.__kwdefaults__
GIVEN = {
    "y_true": [0, 1],
    "y_prob": [0.2, 0.7],
    "p": [0.1, 0.2],
    "n": [3, 4],
    "events": [1, 2],
    "cells": [1],
    "counts": [1],
    "offsets": [0],
}
CLASSES = ("confidence", "top_label", "classwise", "multiclass_error")
CALLS = {
    name: getattr(measures, name)
    for name in measures.__all__
    if not inspect.isclass(getattr(measures, name))
}
CALLS |= {name: getattr(cal, name) for name in ("smooth_ece", *CLASSES[:3])}
CALLS |= {f"Sketch.{name}": getattr(cal.Sketch, f"from_{name}") for name in ("arrays", "counts")}
CALLS |= {"Sketch.columns": cal.Sketch.from_columns, "as_rows": as_rows}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_the_wrong_kind_are_refused_in_short(name):
    parameters = inspect.signature(CALLS[name]).parameters
    given = {key: value for key, value in GIVEN.items() if key in parameters}
    if name in CLASSES:
        given["y_prob"] = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
    if name == "Sketch.columns":
        given["labels"] = [1]
    if "time_limit" in parameters:
        given["time_limit"] = 1.0
    messages = []
    arguments = [key for key in parameters if key not in ("options", "unknown")]
    arguments += OPTIONS if "options" in parameters else []
    for argument in arguments:
        for value in WRONG:
            try:
                CALLS[name](**{**given, argument: value})
            except (cal.CalibrantError, TypeError) as error:
                messages.append(str(error))
    assert messages
    assert max(map(len, messages)) < 600
