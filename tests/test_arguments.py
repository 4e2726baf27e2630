"""Checks of arguments, and bad arguments of every public function."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.fuzz.arguments import cases, try_case
from tests.refusals import refused

import calibrant as cal
from calibrant import _arguments, datasets
from calibrant._arguments import generator
from calibrant.measures.binned import t_cal

P = np.linspace(0.02, 0.98, 60)
Y = (np.arange(60) * 0.618 % 1 < P).astype(int)
SKETCH = cal.Sketch.from_arrays(Y, P)
DRAWING = {
    "isotonic_diagram": lambda seed: cal.plotting.isotonic_diagram(Y, P, random_state=seed),
    "compare": lambda seed: cal.compare(Y, {"a": P, "b": P**2}, random_state=seed),
    "compare sketches": lambda seed: cal.compare({"a": SKETCH, "b": SKETCH}, random_state=seed),
    "required_n": lambda seed: cal.required_n(0.1, random_state=seed),
    "t_cal": lambda seed: t_cal(Y, P, random_state=seed),
    "choose_recalibrator": lambda seed: cal.choose_recalibrator(Y, P, random_state=seed),
    "randomized": lambda seed: cal.recalibration.RandomizedRecalibrator(random_state=seed).fit(
        P, Y
    ),
    "generate": lambda seed: datasets.generate("sine", 10, random_state=seed),
    "paper_sine": lambda seed: datasets.generate("paper_sine", 10, random_state=seed),
}


@pytest.mark.parametrize("seed", [-1, None, "a", 1.5, True, np.nan, [1]])
@pytest.mark.parametrize("name", DRAWING)
def test_what_is_no_seed_is_refused_by_all_that_draw(name: str, seed: object) -> None:
    with refused():  # of `seed` or `random_state`
        DRAWING[name](seed)


def test_streams_of_one_seed_differ_and_repeat() -> None:
    assert generator(np.int64(3), 1).random() == generator(3, 1).random()
    assert generator(3, 1).random() != generator(3, 2).random()
    assert generator(2**70).random() == np.random.default_rng(2**70).random()


CHECKS = {
    "choice": lambda value: _arguments.require_choice("kind", value, ("smooth", "binned", None)),
    "number": lambda value: _arguments.require_number("level", value, 0.0, 1.0),
    "positive": lambda value: _arguments.require_positive("bandwidth", value),
    "confidence": _arguments.require_confidence,
    "count": lambda value: _arguments.require_count("n_bins", value),
    "flag": lambda value: _arguments.require_flag("percent", value),
    "seed": _arguments.require_seed,
}


def test_a_check_names_the_nearest_choice_and_the_percentage() -> None:
    with pytest.raises(cal.InputError, match='Did you mean "smooth"'):
        CHECKS["choice"]("smoth")
    with pytest.raises(cal.InputError, match=r"Pass 0.95 for 95%"):
        CHECKS["confidence"](95)
    assert CHECKS["number"](np.float32(0.5)) == 0.5
    assert CHECKS["count"](np.int64(15)) == 15


CASES = random.Random(0).sample(cases(), 2_000)  # `python -m tests.fuzz arguments` tries all


@pytest.mark.parametrize("room", sorted({case.room for case in CASES}))
def test_bad_arguments_are_an_input_error_or_a_type_error(room: str) -> None:
    wrong = [found for case in CASES if case.room == room and (found := try_case(case))]
    assert not wrong, "\n".join(wrong)
