from __future__ import annotations

import pytest
from bench.paper import EXPERIMENTS

import calibrant

BY_NAME = {experiment.name: experiment for experiment in EXPERIMENTS}


@pytest.mark.parametrize("name", ["synthetic", "eight"])
def test_rows_that_need_no_download_are_valid(name):
    p, y = BY_NAME[name].rows()
    assert 0.0 < calibrant.smooth_ece(y, p) < 0.2


def test_the_first_figure_is_the_authors():
    p, y = BY_NAME["hero"].rows()
    assert len(p) == len(y) == 400
    assert calibrant.smooth_ece(y, p) == pytest.approx(0.1339, abs=5e-4)
