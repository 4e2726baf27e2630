"""One suite, every engine: the sketch that an engine gives is the sketch that NumPy gives."""

from __future__ import annotations

import inspect
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import narwhals as nw
import numpy as np
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant.io import sums

# Engines warn about themselves: deprecations inside, operations that they do not accelerate.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

EDGES = [0.0, -0.0, 1.0, 5e-324, 1e-300, 0.5, 1 - 2**-53, 1 - 2**-36, 2**-36, 2**-37, 1 / 3]
BAD_PREDICTIONS = [None, float("nan"), float("inf"), float("-inf"), 1 + 2**-52, -5e-324, -999.0]
BAD_LABELS = [None, float("nan"), 2.0, -1.0, 0.5, float("inf")]
BAD_WEIGHTS = [None, float("nan"), -1.0, float("inf"), -5e-324]


def dirty_columns(n=4000, seed=0):
    """Columns with every kind of edge and of trouble, alone and together."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.4, 0.4, n).tolist()
    y = (rng.random(n) < 0.5).astype(float).tolist()
    w = rng.exponential(size=n).tolist()
    for column, share, values in (
        (p, 0.3, EDGES),
        (p, 0.1, BAD_PREDICTIONS),
        (y, 0.1, BAD_LABELS),
        (w, 0.1, BAD_WEIGHTS),
    ):
        for row in np.flatnonzero(rng.random(n) < share):
            column[row] = values[rng.integers(len(values))]
    g = [["a", "b", None, "ü \"'`;"][k] for k in rng.integers(0, 4, n)]
    h = rng.integers(0, 3, n).tolist()
    return {"p": p, "y": y, "w": w, "g": g, "h": h}


def numpy_sketch(columns, rows=None, **options):
    rows = range(len(columns["p"])) if rows is None else rows
    p, y = ([columns[name][row] for row in rows] for name in "py")
    if options.pop("weighted", False):
        options["sample_weight"] = [columns["w"][row] for row in rows]
    return cal.Sketch.from_arrays(y, p, on_invalid="drop", **options)


def assert_same(found, expected, *, exact=True):
    assert found.nodes == expected.nodes
    assert found.dropped == expected.dropped
    assert np.array_equal(found.cells, expected.cells)
    assert np.array_equal(found.counts, expected.counts)
    assert np.array_equal(found.offsets, expected.offsets)
    if exact:
        assert found == expected
    for name in ("weights", "squared_weights", "weighted_offsets"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_other_scales(engine, weighted):
    columns = dirty_columns(600)
    weight = {"sample_weight": "w"} if weighted else {}
    options = {"scale": "logit", "nodes": 1 << 14}
    found = cal.scan(
        engine(columns), y_true="y", y_prob="p", by="h", on_invalid="drop", **options, **weight
    )
    expected = numpy_sketch(columns, weighted=weighted, **options)
    assert_same(found.total(), expected, exact=False)
    whole = cal.smooth_ece_result(expected)
    assert cal.smooth_ece(found.total()) == pytest.approx(whole.value, abs=whole.certificate.total)


@pytest.mark.parametrize("weighted", [False, True])
def test_soft_labels(engine, weighted):
    columns = dirty_columns(800)
    rng = np.random.default_rng(2)
    for row in np.flatnonzero(rng.random(800) < 0.6):
        columns["y"][row] = [0.5, 0.25, float(rng.random())][rng.integers(3)]
    options = {"sample_weight": "w"} if weighted else {}
    options |= {"y_true": "y", "y_prob": "p", "labels": "soft", "on_invalid": "drop"}
    expected = numpy_sketch(columns, weighted=weighted, labels="soft")
    assert_same(cal.scan(engine(columns), **options), expected, exact=False)
    found = cal.scan(engine(columns), by="h", **options)
    for key in range(3):
        rows = [row for row, other in enumerate(columns["h"]) if other == key]
        expected = numpy_sketch(columns, rows, weighted=weighted, labels="soft")
        assert_same(found[key], expected, exact=False)


@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_several_models_are_groups(engine, scale):
    rng = np.random.default_rng(4)
    columns = {name: rng.random(200).tolist() for name in "pq"}
    columns["y"] = rng.integers(0, 2, 200).tolist()
    found = cal.scan(engine(columns), y_true="y", y_prob=["q", "p"], scale=scale)
    assert list(found) == ["q", "p"]
    for name, sketch in found.items():
        assert_same(sketch, cal.Sketch.from_arrays(columns["y"], columns[name], scale=scale))


@pytest.mark.parametrize("scale", ["probability", "logit"])
@pytest.mark.parametrize("options", [{}, {"sample_weight": "w"}, {"labels": "soft"}], ids=str)
def test_many_rows_fill_a_table_with_the_sums_of_few(monkeypatch, options, scale):
    """Few rows are sorted by cell, many are added to a table of all cells."""
    options = {"y_true": "y", "y_prob": "p", "scale": scale, "on_invalid": "drop", **options}
    columns = dirty_columns()
    few = cal.scan(columns, **options)
    monkeypatch.setattr(sums, "TABLE_ROWS", 1)
    halves = [{name: own[part] for name, own in columns.items()} for part in HALVES]
    assert_same(cal.scan(columns, **options), few, exact=False)
    assert_same(cal.scan(halves, **options), few, exact=False)


HALVES = (slice(0, 2000), slice(2000, None))
WITHOUT_EXPRESSIONS = {
    *("arrow reader", "dict of arrays", "parquet folder", "csv"),
    *("json lines", "arrow file", "ray", "ray of pandas"),
}


def test_expressions_of_the_engine(engine, request):
    rng = np.random.default_rng(3)
    columns = {"assign": rng.random(300).tolist(), "y": rng.integers(0, 2, 300).tolist()}
    source = engine(columns)  # a column named like a method of the frame
    if request.node.callspec.params["engine"] in WITHOUT_EXPRESSIONS:
        with refused(holds="Expr"):
            cal.scan(source, y_true="y", y_prob=nw.col("assign") / 2)
        return
    found = cal.scan(source, y_true="y", y_prob=half_of(source, "assign"), by={"event": "y"})
    assert found.by == ("event",)
    expected = cal.Sketch.from_arrays(columns["y"], np.array(columns["assign"]) / 2)
    assert_same(found.total(), expected)


def half_of(source, name):
    """Half of a column, as an expression of the engine that holds it."""
    library = type(source).__module__.split(".")[0]
    if library == "polars":
        return sys.modules["polars"].col(name) / 2
    if library == "pyspark":
        from pyspark.sql import functions

        return functions.col(name) / 2
    if library in ("pandas", "modin", "dask", "ibis"):
        return source[name] / 2
    if "duckdb" in library:
        duckdb = sys.modules["duckdb"]
        return duckdb.ColumnExpression(name) / duckdb.ConstantExpression(2)
    assert library in ("pyarrow", "builtins")
    return pytest.importorskip("pyarrow.compute").field(name) / 2


@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_expressions_of_narwhals(engine, scale):
    """Every frame takes them; what is no frame says so."""
    rng = np.random.default_rng(3)
    columns = {"p": rng.random(300).tolist(), "y": rng.integers(0, 2, 300).tolist()}
    source = engine(columns)
    held = nw.from_native(source, pass_through=True)
    frames = inspect.isgenerator(source) or isinstance(held, nw.DataFrame | nw.LazyFrame)
    asked = {
        "y_true": nw.col("y") == 1,
        "y_prob": nw.col("p") / 2,
        "by": {"high": nw.col("p") > 0.5},
        "scale": scale,
    }
    if not frames:
        with refused():
            cal.scan(source, **asked)
        return
    found = cal.scan(source, **asked)
    assert list(found) == [False, True]
    expected = cal.Sketch.from_arrays(columns["y"], np.array(columns["p"]) / 2, scale=scale)
    assert np.array_equal(found.total().counts, expected.counts)


def test_labels_beyond_what_floats_hold_are_refused_rows(engine):
    columns = {"p": [0.5, 0.25], "y": [1, (1 << 53) + 1], "g": ["a", "b"]}
    found = cal.scan(engine(columns), y_true="y", y_prob="p", by="g", on_invalid="drop")
    assert found["a"].n == 1
    assert dict(found["b"].dropped) == {"invalid label": 1}


def test_refused_rows_raise_with_the_same_words(engine):
    columns = dirty_columns(300)
    with pytest.raises(cal.InputError) as caught:
        cal.scan(engine(columns), y_true="y", y_prob="p")
    dropped = numpy_sketch(columns).dropped
    assert {**caught.value.counts} == {**dropped}
    assert 'on_invalid="drop"' in str(caught.value)


def test_a_missing_column_is_named_with_its_neighbour(engine):
    columns = {"p": [0.5], "outcome": [1.0]}
    with refused(holds=("'outcom'", "'outcome'")):
        cal.scan(engine(columns), y_true="outcom", y_prob="p")


def test_text_where_numbers_are_meant_is_refused(engine):
    columns = {"p": ["high", "low"], "y": [1.0, 0.0]}
    with refused("y_prob"):
        cal.scan(engine(columns), y_true="y", y_prob="p")


GROUPS = {
    "dates": [date(2026, 1, 31), date(1999, 12, 1)],
    "instants": [datetime(2026, 1, 31, 12, 0, 0, 7, UTC), datetime(1999, 12, 1, tzinfo=UTC)],
    "bytes": [b"a", b"\xff\x01"],
    "decimals": [Decimal("0.10"), Decimal("12.25")],
    "booleans": [True, False],
    "large integers": [(1 << 62) + 1, (1 << 62) + 2],
}


@pytest.mark.parametrize("values", GROUPS.values(), ids=GROUPS)
def test_groups_are_the_same_values_everywhere(typed_engine, values):
    columns = {"p": [0.5, 0.25, 0.75], "y": [1, 0, 1], "g": [values[0], values[1], values[0]]}
    found = cal.scan(typed_engine(columns), y_true="y", y_prob="p", by="g")
    assert {key: part.n for key, part in found.items()} == {values[0]: 2, values[1]: 1}
    kind = type(values[0])
    assert [type(key) for key in found] == [kind, kind]


@pytest.mark.parametrize("values", [[[1, 2], [3]], [{"a": 1}, {"a": 2}]], ids=["list", "struct"])
@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_lists_and_structs_are_no_groups(typed_engine, values, scale):
    columns = {"p": [0.5, 0.25], "y": [1, 0], "g": values}
    with refused() as caught:
        cal.scan(typed_engine(columns), y_true="y", y_prob="p", by="g", scale=scale)
    assert caught.value.argument == "by" or "'g'" in str(caught.value)


@pytest.mark.parametrize("by", [None, "y"])
@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_an_empty_result_is_an_error(engine, by, scale):
    source = emptied(engine)
    with refused():
        cal.scan(source, y_true="y", y_prob="p", by=by, scale=scale)


def emptied(engine):
    """A source whose rows were filtered out or, where the engine cannot filter, never were."""
    source = engine({"p": [0.5] * 4, "y": [1.0] * 4})
    if type(source).__module__.startswith("ray"):
        return source.filter(lambda row: row["p"] > 2)
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return nw.to_native(frame.filter(nw.col("p") > 2))
    return engine({"p": [], "y": []})
