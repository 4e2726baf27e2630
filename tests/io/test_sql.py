"""The SQL text, run for real where an engine can be had, and parsed where none can.

Groups and weights: `tests/durability/test_every_way_in.py` has them of every engine.
"""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest
from tests.fuzz.engines import SERVERS, postgres
from tests.fuzz.ways import ClosedAtTheEnd
from tests.refusals import refused

import calibrant as cal
from calibrant.io import sql
from calibrant.io.sql import DIALECTS

NASTY = '"; drop table preds; -- `\\'
EDGES = [0.0, -0.0, 1.0, 1e-300, 0.5, 1 - 2**-53, 2**-36, 2**-37]
TROUBLE = [None, float("nan"), float("inf"), float("-inf"), 1 + 2**-52, -1e-300, -999.0]


def dirty_rows(n=3000):
    rng = np.random.default_rng(7)
    p = rng.beta(0.4, 0.4, n).tolist()
    y = (rng.random(n) < 0.5).astype(float).tolist()
    w = rng.exponential(size=n).tolist()
    columns = ((p, EDGES), (p, TROUBLE), (y, [None, 2.0, 0.5, float("nan")]), (w, [None, -1.0]))
    for column, values in columns:
        for row in rng.choice(n, n // 10, replace=False):
            column[row] = values[rng.integers(len(values))]
    m = [["a", "b"][k] for k in rng.integers(0, 2, n)]
    return list(zip(m, p, y, w, strict=True))


def expected(rows):
    _, p, y, _ = zip(*rows, strict=True)
    return cal.Sketch.from_arrays(list(y), list(p), on_invalid="drop")


def quoted(dialect, name):
    return DIALECTS[dialect].quote(name)


def duckdb_run():
    connection = pytest.importorskip("duckdb").connect()
    return lambda text, rows=None: (
        connection.executemany(text, rows) if rows else connection.execute(text)
    )


def sqlite_run():
    connection = sqlite3.connect(":memory:", factory=ClosedAtTheEnd)
    return lambda text, rows=None: (
        connection.executemany(text, rows) if rows else connection.execute(text)
    )


def postgres_run():
    pytest.importorskip(
        "psycopg", reason="PostgreSQL could not be started: psycopg is not installed"
    )
    if not SERVERS:
        pytest.skip("PostgreSQL could not be started: no server under /usr/lib/postgresql")

    def run(text, rows=None):
        cursor = postgres().cursor()
        if rows:
            cursor.executemany(text.replace("?", "%s"), rows)
        else:
            cursor.execute(text)
        return cursor

    return run


RUNS = {"duckdb": duckdb_run, "sqlite": sqlite_run, "postgres": postgres_run}
ENGINES = [
    "duckdb",
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.heavy),
]


@pytest.fixture(params=ENGINES, scope="module")
def warehouse(request):
    """(dialect, run) with a table `preds` whose columns have nasty names."""
    run = RUNS[request.param]()
    names = [quoted(request.param, name) for name in ("model", NASTY, "y", "w")]
    real = DIALECTS[request.param].float_type
    kinds = ["TEXT", real, real, real]
    run(f"CREATE TABLE preds ({', '.join(f'{n} {k}' for n, k in zip(names, kinds, strict=True))})")
    run("INSERT INTO preds VALUES (?, ?, ?, ?)", dirty_rows())
    return request.param, run


def test_the_query_gives_the_bits_of_numpy(warehouse):
    dialect, run = warehouse
    found = sql.read(run(sql.query("preds", NASTY, "y", dialect=dialect)))
    assert found == expected(dirty_rows())


def test_boolean_labels_and_expressions(warehouse):
    dialect, run = warehouse
    run("CREATE TABLE flags AS SELECT 25 AS score, (1 = 1) AS hit")
    quarter = sql.Expression("score / 100.0")
    found = sql.read(run(sql.query("flags", quarter, "hit", dialect=dialect)))
    assert found == cal.Sketch.from_arrays([1], [0.25])


def test_a_repair_runs_where_the_data_is(warehouse):
    dialect, run = warehouse
    x, y = np.linspace(0.05, 0.95, 9), np.linspace(0.1, 0.9, 9) ** 2
    repaired = sql.piecewise_linear(NASTY, x, y, dialect)
    column = quoted(dialect, NASTY)
    pairs = run(f"SELECT {column}, {repaired.text} FROM preds").fetchall()
    given = np.array([np.nan if p is None else p for p, _ in pairs])
    got = np.array([np.nan if q is None else q for _, q in pairs])
    usable = np.isfinite(given)
    np.testing.assert_allclose(got[usable], np.interp(given[usable], x, y), rtol=1e-12)
    assert np.isnan(got[[p is None for p, _ in pairs]]).all()


def test_rows_that_break_a_rule_can_be_an_error(warehouse):
    dialect, run = warehouse
    with pytest.raises(cal.InputError) as error:
        sql.read(run(sql.query("preds", NASTY, "y", dialect=dialect)), on_invalid="raise")
    assert error.value.counts["missing prediction"]


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@pytest.mark.parametrize("weight", [None, "w"])
def test_every_dialect_parses_and_names_stay_names(dialect, weight):
    sqlglot = pytest.importorskip("sqlglot")
    text = sql.query(["shop", NASTY], NASTY, NASTY, [NASTY, "g"], dialect, weight=weight)
    statements = sqlglot.parse(text, dialect=dialect)
    assert len(statements) == 1
    tables = [t for t in statements[0].find_all(sqlglot.exp.Table) if t.db]
    assert [(t.db, t.name) for t in tables] == [("shop", NASTY)]
    columns = {column.name for column in statements[0].find_all(sqlglot.exp.Column)}
    assert NASTY in columns
    repaired = sql.piecewise_linear(NASTY, [0, 1], [0, 1], dialect)
    assert sqlglot.parse_one(repaired.text, dialect=dialect) is not None


def test_what_cannot_be_a_query_is_refused():
    with refused("dialect"):
        sql.query("t", "p", "y", dialect="oracle")
    with refused("by", holds="count"):
        sql.query("t", "p", "y", by="count")
    with refused(seen="p\0"):
        sql.query("t", "p\0", "y")
    with refused("x", [0.0, 0.0]):
        sql.piecewise_linear("p", [0, 0], [0, 1])
    with refused("beyond", "null"):
        sql.piecewise_linear("p", [0, 1], [0, 1], beyond="null")
    for table in (3, (), None):
        with refused("table", table):
            sql.query(table, "p", "y")
    for by in ([1], 1, [None]):
        with refused("by"):
            sql.query("t", "p", "y", by=by)
    for table in ([1], "", "shop."):
        with refused(seen=1 if table == [1] else ""):
            sql.query(table, "p", "y")
    assert sql.query("t", "p", "y", by=None) == sql.query("t", "p", "y")


def test_what_cannot_be_a_result_is_refused():
    with refused(holds="offset"):
        sql.read({"cell": [1], "label": [0], "count": [1], "nodes": [16]})
    with refused("result"):
        sql.read({"cell": [], "label": [], "count": [], "offset": [], "nodes": []})
    with refused("result", [16, 32], holds="nodes"):
        sql.read(
            {"cell": [1, 1], "label": [0, 0], "count": [1, 1], "offset": [0, 0], "nodes": [16, 32]}
        )
    for missing in ("nodes", "count"):
        columns = {"cell": [1], "label": [0], "count": [1], "offset": [0], "nodes": [16]}
        with refused("result", 1, column=missing):
            sql.read(columns | {missing: [None]})
    connection = sqlite3.connect(":memory:")
    with refused("result"):
        sql.read(connection.execute("CREATE TABLE t (p REAL)"))
    connection.close()


def test_text_that_is_a_number_is_one_in_sqlite():
    run = sqlite_run()
    run("CREATE TABLE texts (p TEXT, y TEXT)")
    given = [("0.5", "1"), ("0.25", "0"), ("5e-1", "1"), (" 0.5", "1"), ("0.5x", "1"), ("", "1")]
    run("INSERT INTO texts VALUES (?, ?)", given)
    found = sql.read(run(sql.query("texts", "p", "y", dialect="sqlite")))
    kept = cal.Sketch.from_arrays([1, 0, 1, 1], [0.5, 0.25, 0.5, 0.5])
    assert all(map(np.array_equal, found.sums, kept.sums))
    assert found.dropped == {"missing prediction": 2}
