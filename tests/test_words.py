"""What messages say, and that no other test depends on it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from tests.other_words import OTHER, reword, reworded

import calibrant as cal
from calibrant.errors import Audience, CalibrationError, InputError, InvalidRows, Message, Option

P, Y = np.array([0.2, 0.9, 0.4, 0.7]), np.array([0, 1, 0, 1])


def _caught(call: Callable[[], object]) -> Message:
    with pytest.raises(CalibrationError) as caught:
        call()
    return caught.value


MISTAKES = {
    "range": lambda: cal.assess(Y, np.array([0.2, 0.9, 1.5, 0.7])),
    "missing": lambda: cal.assess(Y, np.array([0.2, 0.9, np.nan, 0.7])),
    "labels": lambda: cal.assess(Y + 1, P),
    "seed": lambda: cal.assess(Y, P, seed=-1),
    "lengths": lambda: cal.assess(Y[:3], P),
    "choice": lambda: cal.assess(Y, P, on_invalid="dorp"),
}
SAID = {
    "range": "`y_prob` must lie in [0, 1]; row 2 has 1.5. If these are logits, pass "
    '`from_logits=True`. To leave such rows out and count them, pass `on_invalid="drop"`.',
    "missing": "`y_prob` must not hold missing values; row 2 is missing. To leave such rows out and "
    'count them, pass `on_invalid="drop"`.',
    "labels": "`y_true` must hold 0 and 1; row 1 has 2. Its values are 1, 2. Name the event with "
    "`pos_label=`.",
}


@pytest.mark.words
@pytest.mark.parametrize("mistake", SAID)
def test_says_what_is_wrong_where_and_what_to_do(mistake):
    assert str(_caught(MISTAKES[mistake])) == SAID[mistake]


def test_other_words_leave_the_data():
    assert reworded("must be {choices}, or {other}") == f"{OTHER} {{choices}} {OTHER} {{other}}"
    assert reworded(reworded("a {b} c.")) == reworded("a {b} c.")


@pytest.mark.words
@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_switch_changes_every_word_and_no_field(mistake, monkeypatch):
    before = _caught(MISTAKES[mistake])
    words, cures = str(before), [cure.render() for cure in before.cures]
    reword(monkeypatch.setattr)
    after = _caught(MISTAKES[mistake])
    assert str(after) != words
    assert after.rule != before.rule
    assert OTHER in str(after)
    assert (after.argument, after.where) == (before.argument, before.where)
    assert after.seen is before.seen or after.seen == before.seen
    assert [dict(cure.values) for cure in after.cures] == [dict(c.values) for c in before.cures]
    assert not {cure.render() for cure in after.cures} & {*cures}


def test_tests_about_words_fail_with_other_words():
    environment = {**os.environ, "CALIBRANT_OTHER_WORDS": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        __file__,
        "-m",
        "words",
    ]
    ended = subprocess.run(
        [*command, "-k", "says_what"], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1, ended.stdout
    assert f"{len(SAID)} failed" in ended.stdout
    assert "passed" not in ended.stdout


def test_a_message_inside_a_message_is_rendered_for_the_same_reader():
    inner = InputError("{limit}", limit=Option("seed", 3))
    outer = InputError("{reason}", reason=inner)
    line = Audience(names={"seed": "--seed"})
    assert (outer.render(), outer.render(line)) == ("`seed=3`.", "`--seed 3`.")


def test_every_error_carries_data_and_pickles():
    error = InputError("x", argument="level", seen=2, cure="{option}", option=Option("level", 0.9))
    rows = InvalidRows.after(error, {"invalid label": 2}, 10)
    for one in (error, rows, CalibrationError("y", seen=1)):
        again = pickle.loads(pickle.dumps(one))
        assert type(again) is type(one)
        assert again.fields == one.fields
