"""Checks of arguments, and bad arguments of every public function."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from tests.fuzz.arguments import OBJECTS, cases, error_of, try_case
from tests.refusals import refused

import calibrant as cal
from calibrant import _arguments
from calibrant._arguments import generator


@pytest.mark.parametrize("seed", [-1, None, "a", 1.5, True, np.nan, [1]])
def test_what_is_no_seed_is_refused(seed: object) -> None:
    with refused():
        generator(seed)


def test_streams_of_one_seed_differ_and_repeat() -> None:
    assert generator(np.int64(3), 1).random() == generator(3, 1).random()
    assert generator(3, 1).random() != generator(3, 2).random()
    assert generator(2**70).random() == np.random.default_rng(2**70).random()


CHECKS = {
    "choice": lambda value: _arguments.require_choice("kind", value, ("smooth", "binned", None)),
    "number": lambda value: _arguments.require_number("level", value, 0.0, 1.0),
    "confidence": _arguments.require_confidence,
    "count": lambda value: _arguments.require_count("n_bins", value),
}


def test_a_check_names_the_nearest_choice_and_the_percentage() -> None:
    with pytest.raises(cal.InputError, match='Did you mean "smooth"'):
        CHECKS["choice"]("smoth")
    with pytest.raises(cal.InputError, match=r"Pass 0.95 for 95%"):
        CHECKS["confidence"](95)
    with pytest.warns(cal.errors.CalibrantWarning, match=r"pass `confidence=0.95`"):
        CHECKS["confidence"](0.05)
    assert CHECKS["number"](np.float32(0.5)) == 0.5
    assert CHECKS["count"](np.int64(15)) == 15


CASES = random.Random(0).sample(cases(), 2_000)  # `python -m tests.fuzz arguments` tries all


@pytest.mark.parametrize("room", sorted({case.room for case in CASES}))
def test_bad_arguments_are_an_input_error_or_a_type_error(
    room: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a word is a file, too
    wrong = [found for case in CASES if case.room == room and (found := try_case(case))]
    assert not wrong, "\n".join(wrong)


NO_ARGUMENTS = ("module", "word", "nan", "-1", "-inf")
"""Bad values that are neither a column, a number in any range, nor a choice."""
TEXTS = {"title", "name", "checkpoint"}
FLAGS = {"matrix", "monotone", "attributes", "progress"}
USED_LATER = {"estimator", "recalibrator", "cv"}
"""Parameters of a classifier, checked by `fit`, as scikit-learn wants it."""
UNUSED = {"by", "names", "limit", "data", "classes"}
"""Of no use, or refused by another name, where one array of predictions is given."""
CONSTANTS = {"climatology", "mean"}
"""Where one number stands for a column."""


@pytest.mark.parametrize("room", sorted({case.room for case in cases()} - OBJECTS.keys()))
def test_what_no_argument_takes_is_refused_by_its_name(room: str) -> None:
    wrong = []
    for case in cases():
        taken = case.argument in TEXTS | FLAGS | USED_LATER | UNUSED | CONSTANTS
        by_column = case.function in ("scan", "reliability_diagrams", "quantile_diagram")
        if case.room != room or case.value not in NO_ARGUMENTS or taken or by_column:
            continue
        error = error_of(case)
        named = getattr(error, "argument", None) == case.argument
        if not named and not re.search(rf"\b{case.argument}\b", str(error)):
            wrong.append(f"{case}: {error!r}"[:300])
    assert not wrong, "\n".join(wrong)
