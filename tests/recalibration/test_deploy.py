"""A fitted recalibrator as SQL agrees with its own `transform`."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.exceptions import NotFittedError
from tests.refusals import refused

import calibrant as cal
from calibrant.errors import InputError
from calibrant.io import sql
from calibrant.recalibration import (
    AdaptiveRecalibrator,
    BetaRecalibrator,
    IsotonicRecalibrator,
    OneVsRestRecalibrator,
    PlattRecalibrator,
    RandomizedRecalibrator,
    SmoothRecalibrator,
    StructuredScaling,
    TemperatureRecalibrator,
    TemperatureScaling,
    VectorScaling,
)


def rows(n=3000):
    rng = np.random.default_rng(2)
    p = rng.beta(0.5, 0.5, n)
    p[:50], p[50:100] = 0.0, 1.0
    p[100:200] = np.logspace(-9, -1, 100)
    p[200:300] = 1 - p[100:200]
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
    expected = recalibrator.transform(given)
    np.testing.assert_allclose(repaired, expected, atol=2e-5)
    from_ends = np.minimum(expected, 1 - expected)
    assert np.all(np.abs(repaired - expected) <= 2e-3 * from_ends + 1e-11)
    assert len(expression.text) < 500_000


def test_predictions_next_to_the_ends_are_mapped_as_they_are():
    """As naive Bayes makes them. The default map takes 1e-12 and 1e-300 for 0, and jumps beyond."""
    rng = np.random.default_rng(3)
    p = 1.0 / (1.0 + np.exp(-12.0 * rng.standard_normal(2000)))
    p[:200] = 10.0 ** -rng.uniform(9, 300, 200)
    recalibrator = AdaptiveRecalibrator().fit(p, (rng.random(2000) < 0.05 + 0.9 * p).astype(int))
    places = np.concatenate(
        [p, 10.0 ** -np.arange(8, 17, 0.25), 1 - 10.0 ** -np.arange(8, 16, 0.25)]
    )
    exported: dict[str, Any] = {}
    exec(recalibrator.to_python(), exported)
    got = [exported["recalibrate"](float(place)) for place in places]
    np.testing.assert_allclose(got, recalibrator.transform(places), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_what_is_no_prediction_stays_none(dialect):
    duckdb = pytest.importorskip("duckdb")
    connection = (duckdb if dialect == "duckdb" else sqlite3).connect(":memory:")
    run = connection.execute
    run("CREATE TABLE t (p DOUBLE PRECISION, y INTEGER)")
    invalid = [None, float("nan"), -1.0, -1e-300, 7.0, 1 + 2**-52, float("inf"), float("-inf")]
    for value in [0.25, *invalid]:
        run("INSERT INTO t VALUES (?, 1)", (value,))
    repair = PlattRecalibrator().fit(*rows()).to_sql("p", dialect)
    got = [value for (value,) in run(f"SELECT {repair.text} FROM t").fetchall()]
    nan_as_none = [None if value is None or value != value else value for value in (got[1:])]
    assert nan_as_none == [None, None, *invalid[2:]]
    found = sql.read(run(sql.query("t", repair, "y", dialect=dialect)))
    connection.close()
    assert found.n == 1
    assert found.dropped == {"missing prediction": 2, "prediction out of range": 6}


def test_what_has_no_expression_is_refused():
    p, y = rows()
    with refused(holds="randomized"):
        RandomizedRecalibrator().fit(p, y).to_sql("p")
    with refused("tolerance", 0):
        PlattRecalibrator().fit(p, y).to_sql("p", tolerance=0)
    with pytest.raises(NotFittedError):
        PlattRecalibrator().to_sql("p")


@pytest.mark.parametrize(
    "made",
    [
        cal.recalibration.AdaptiveRecalibrator(),
        cal.recalibration.PlattRecalibrator(),
        cal.recalibration.TemperatureRecalibrator(),
        cal.recalibration.BetaRecalibrator(),
        cal.recalibration.OffsetRecalibrator(),
        cal.recalibration.PriorShift(to_rate=0.1),
        cal.recalibration.IsotonicRecalibrator(),
        cal.recalibration.VennAbersRecalibrator(),
        cal.recalibration.CrossVennAbersRecalibrator(cv=3),
        cal.recalibration.SmoothRecalibrator(),
    ],
    ids=lambda made: made.kind,
)
def test_the_map_as_python_is_the_map(made):
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(300), [0.0, 1.0]])
    made.fit(p, rng.random(302) < 0.2 + 0.5 * p)
    module = {}
    exec(made.to_python("mapped"), module)
    at = np.concatenate([p, np.linspace(0, 1, 101)])
    ours = np.array([module["mapped"](float(value)) for value in at])
    tolerance = (
        1e-12 if made.kind in ("platt", "temperature", "beta", "offset", "prior-shift") else 1e-5
    )
    assert np.abs(ours - made.transform(at)).max() <= tolerance
    with pytest.raises(ValueError, match="must lie"):
        module["mapped"](1.5)
    assert "calibrant" not in {name.split(".")[0] for name in module}


@pytest.mark.parametrize("name", ["class", "2p", "", 3])
def test_the_function_has_a_name_that_python_accepts(name):
    fitted = cal.recalibration.PlattRecalibrator().fit([0.2, 0.4, 0.6], [0, 1, 1])
    with refused("name"):
        fitted.to_python(name)


@pytest.mark.parametrize("from_logits", [True, False])
@pytest.mark.parametrize(
    "made",
    [TemperatureScaling, VectorScaling, StructuredScaling, partial(StructuredScaling, matrix=True)],
)
def test_a_scaling_as_python_needs_nothing_else(made, from_logits):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 400)
    rows = 2 * rng.normal(size=(400, 4)) + 2 * np.eye(4)[y]
    if not from_logits:
        rows = softmax(rows, axis=1)
        rows[0] = [1.0, 0.0, 0.0, 0.0]
    learned = made(from_logits=from_logits).fit(rows, y)
    module = {}
    exec(learned.to_python("better"), module)
    expected = learned.transform(rows[:20])
    np.testing.assert_allclose(
        [module["better"](row.tolist()) for row in rows[:20]], expected, atol=1e-12
    )
    assert learned.explain().endswith(".")
    with pytest.raises(ValueError, match="4"):
        module["better"]([0.5, 0.5])


def test_each_class_against_the_rest_as_python():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 500)
    probs = softmax(2 * (rng.normal(size=(500, 3)) + np.eye(3)[y]), axis=1)
    for made in (AdaptiveRecalibrator(), PlattRecalibrator()):
        learned = OneVsRestRecalibrator(made).fit(probs, y)
        module = {}
        exec(learned.to_python(), module)
        mapped = [module["recalibrate"](row) for row in probs[:50].tolist()]
        np.testing.assert_allclose(mapped, learned.transform(probs[:50]), atol=1e-4)
    assert "3 of 3" in learned.explain()
    for name in ("not a name", "_mapped", "MAPS", "sum"):
        with refused("name"):
            learned.to_python(name)


OF_LOGITS = [[1.0, 2.0], [np.nan, 0.0, 1.0], [np.inf, 0.0, 1.0], [-np.inf] * 3, [1.0] * 4]
OF_PROBS = [[0.5, 0.5], [50.0, 30.0, 20.0], [0.5, 0.3, 0.1], [np.nan, 0.5, 0.5], [-0.1, 0.6, 0.5]]


@pytest.mark.parametrize(
    ("made", "bad"),
    [
        (TemperatureScaling(), OF_LOGITS),
        (VectorScaling(), OF_LOGITS),
        (StructuredScaling(), OF_LOGITS),
        (TemperatureScaling(from_logits=False), OF_PROBS),
        (StructuredScaling(from_logits=False), OF_PROBS),
        (OneVsRestRecalibrator(PlattRecalibrator()), OF_PROBS),
    ],
    ids=lambda made: getattr(made, "kind", ""),
)
def test_an_exported_map_of_classes_refuses_what_transform_refuses(made, bad):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    logits = rng.normal(size=(200, 3)) + np.eye(3)[y]
    given = logits if made.from_logits else softmax(logits, axis=1)
    module: dict[str, Any] = {}
    exec(made.fit(given, y).to_python("better"), module)
    for row in bad:
        with pytest.raises(InputError):
            made.transform([row])
        with pytest.raises(ValueError, match="must"):
            module["better"](row)
    if made.from_logits:
        masked = [0.3, -np.inf, 1.2]
        assert module["better"](masked) == pytest.approx(made.transform([masked])[0], abs=1e-12)
