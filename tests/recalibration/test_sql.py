"""A fitted recalibrator as SQL agrees with its own `transform`."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibration import (
    BetaRecalibrator,
    IsotonicRecalibrator,
    PlattRecalibrator,
    RandomizedRecalibrator,
    SmoothRecalibrator,
    TemperatureRecalibrator,
)


def rows(n=3000):
    rng = np.random.default_rng(2)
    p = rng.beta(0.5, 0.5, n)
    p[:50], p[50:100] = 0.0, 1.0
    return p, (rng.random(n) < 0.1 + 0.7 * p**2).astype(int)


@pytest.mark.parametrize(
    "recalibrator",
    [
        SmoothRecalibrator(),
        SmoothRecalibrator(monotone=True),
        PlattRecalibrator(),
        BetaRecalibrator(),
        TemperatureRecalibrator(),
        IsotonicRecalibrator(),
    ],
    ids=repr,
)
def test_the_expression_is_the_map(recalibrator):
    p, y = rows()
    recalibrator.fit(p, y)
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE t ("p;" REAL)')
    connection.executemany("INSERT INTO t VALUES (?)", [(float(value),) for value in p])
    expression = recalibrator.to_sql("p;", "sqlite")
    got = connection.execute(f'SELECT "p;", {expression.text} FROM t').fetchall()
    connection.close()
    given, repaired = np.array(got).T
    np.testing.assert_allclose(repaired, recalibrator.transform(given), atol=2e-5)
    assert len(expression.text) < 500_000


def test_what_has_no_expression_is_refused():
    p, y = rows()
    with pytest.raises(cal.InputError, match="randomised"):
        RandomizedRecalibrator().fit(p, y).to_sql("p")
    with pytest.raises(cal.InputError, match="tolerance"):
        PlattRecalibrator().fit(p, y).to_sql("p", tolerance=0)
    with pytest.raises(cal.CalibrationError, match="not been fitted"):
        PlattRecalibrator().to_sql("p")
