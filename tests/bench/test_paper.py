from __future__ import annotations

import pytest
from bench.paper.__main__ import agrees, note, table
from bench.paper.experiments import EXPERIMENTS

import calibrant

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}


def found(**changes):
    one = {"exact": 0.0785, "calibrant": 0.0785, "certificate": 1e-9, "n": 10, "relplot": 0.0777}
    return {
        experiment.name: {**one, **changes.get(experiment.name, {})} for experiment in EXPERIMENTS
    }


def test_printed_digits_decide_what_agrees():
    assert agrees(0.0784, 0.078, 3)
    assert not agrees(0.0786, 0.078, 3)
    assert not agrees(None, 0.078, 3)


def test_notes_say_where_numbers_differ_and_why():
    assert note(
        BY_NAME["imagenet"], found(imagenet={"exact": 0.078, "calibrant": 0.078})
    ).startswith("agrees")
    off = {"exact": 0.079, "calibrant": 0.079}
    assert "relplot's value:" in note(BY_NAME["imagenet"], found(imagenet=off))
    rain = {"rain": {"exact": 0.1338, "calibrant": 0.1338, "relplot": 0.1444}}
    assert "48 hours" in note(BY_NAME["rain"], found(**rain, **{"rain-48": {"relplot": 0.1318}}))
    assert "0.0018 away" in note(BY_NAME["rain"], found(**rain))
    wrong = {"calibrant": 0.0790}
    assert "**" in note(BY_NAME["imagenet"], found(imagenet=wrong))
    assert len(table(found()).rows) == len(EXPERIMENTS)


@pytest.mark.parametrize("name", ["synthetic", "eight"])
def test_rows_that_need_no_download_are_valid(name):
    p, y = BY_NAME[name].rows()
    assert 0.0 < calibrant.smooth_ece(y, p) < 0.2


def test_the_first_figure_is_the_authors():
    p, y = BY_NAME["hero"].rows()
    assert len(p) == len(y) == 400
    assert calibrant.smooth_ece(y, p) == pytest.approx(0.1339, abs=5e-4)
