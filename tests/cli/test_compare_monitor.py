"""`calibrant compare` and `calibrant monitor`."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import calibrant as cal
from calibrant.inference import compare_by
from calibrant.measures.result_record import plain

NAMES = ["cat", "dog", "owl"]


def as_json(result):
    return json.loads(json.dumps(plain(result.to_dict())))


@pytest.fixture
def models(tmp_path):
    """Two models of the same 1,500 rows: as columns, and as groups in another order."""
    draw = np.random.default_rng(3)
    truth = draw.random(1500)
    y = (draw.random(1500) < truth).astype(int)
    wide = {"y": y, "sharp": truth, "timid": 0.3 + 0.4 * truth, "day": np.arange(1500) // 50}
    pyarrow.parquet.write_table(pyarrow.table(wide), tmp_path / "wide.parquet")
    shuffled = draw.permutation(1500)
    long = {
        "p": np.concatenate([wide["sharp"], wide["timid"][shuffled]]),
        "y": np.concatenate([y, y[shuffled]]),
        "model": ["sharp"] * 1500 + ["timid"] * 1500,
        "case": np.concatenate([np.arange(1500), shuffled]),
    }
    pyarrow.parquet.write_table(pyarrow.table(long), tmp_path / "long.parquet")
    return wide


def test_columns_and_matched_groups_are_the_librarys_comparison(calibrant, models, tmp_path):
    expected = cal.compare(models["y"], {name: models[name] for name in ("sharp", "timid")})
    wide, long = tmp_path / "wide.parquet", tmp_path / "long.parquet"
    by_column = calibrant("compare", wide, "--prob", "sharp", "--prob", "timid", "--json").json
    by_group = calibrant("compare", long, "--by", "model", "--on", "case", "--json").json
    assert by_column == by_group == as_json(expected)
    done = calibrant("compare", wide, "--prob", "[st]*", "--cluster", "day", "--json")
    assert done.json["clusters"] == 30


def test_groups_on_different_rows(calibrant, models, tmp_path) -> None:
    done = calibrant("compare", tmp_path / "long.parquet", "--by", "model")
    assert (done.code, "sharp is better calibrated than timid" in done.out) == (0, True)
    found = calibrant("compare", tmp_path / "long.parquet", "--by", "model", "--json").json
    assert found["paired"] is False


def test_comparisons_that_cannot_be(calibrant, models, tmp_path) -> None:
    long = tmp_path / "long.parquet"
    table = pyarrow.parquet.read_table(long)
    wrong = table.set_column(1, "y", pyarrow.array(np.roll(table["y"].to_numpy(), 1)))
    pyarrow.parquet.write_table(wrong, tmp_path / "wrong.parquet")
    apart = table.set_column(3, "case", pyarrow.array(np.arange(3000)))
    pyarrow.parquet.write_table(apart, tmp_path / "apart.parquet")
    for words, text in [
        ((long, "--by", "case"), "--max-groups 50"),
        ((tmp_path / "wrong.parquet", "--by", "model", "--on", "case"), "outcomes"),
        ((tmp_path / "apart.parquet", "--by", "model", "--on", "case"), "'case'"),
    ]:
        done = calibrant("compare", *words)
        assert (done.code, text in done.err) == (2, True), done.err


def test_rows_that_one_model_lacks_are_left_out(calibrant, models, tmp_path) -> None:
    long = pyarrow.parquet.read_table(tmp_path / "long.parquet").slice(10)
    pyarrow.parquet.write_table(long, tmp_path / "short.parquet")
    done = calibrant("compare", tmp_path / "short.parquet", "--by", "model", "--on", "case")
    assert (done.code, "1,490 rows that all groups have, of 1,500" in done.err) == (0, True)


RNG = np.random.default_rng(3)
PROBS = RNG.dirichlet([1.0, 2.0, 0.7], 500)
LABELS = (PROBS.cumsum(axis=1) > RNG.random((500, 1))).argmax(axis=1)
SURE = PROBS**2 / (PROBS**2).sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def classes(tmp_path_factory):
    """Two models of three classes: as columns of one table, and below each other in another."""
    folder = tmp_path_factory.mktemp("classes")
    columns = {"y": np.array(NAMES)[LABELS], "day": np.arange(500) % 2}
    for model, probs in (("p", PROBS), ("q", SURE)):
        columns |= {f"{model}_{name}": probs[:, k] for k, name in enumerate(NAMES)}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "wide.parquet")
    order = np.random.default_rng(0).permutation(500)
    both = np.concatenate([PROBS, SURE[order]])
    long = {"case": np.concatenate([np.arange(500), order]), "model": ["p"] * 500 + ["q"] * 500}
    long["y"] = np.array(NAMES)[np.concatenate([LABELS, LABELS[order]])]
    long |= {f"p_{name}": both[:, k] for k, name in enumerate(NAMES)}
    pyarrow.parquet.write_table(pyarrow.table(long), folder / "long.parquet")
    return folder


def test_each_prob_is_a_model_of_many_classes(calibrant, classes) -> None:
    words = ("--label", "y", "--json", "--multiclass")
    columns = (classes / "wide.parquet", "--prob", "p_*", "--prob", "q_*")
    matched = (classes / "long.parquet", "--prob", "p_*", "--by", "model", "--on", "case")
    models = {"p": PROBS, "q": SURE}
    whole, each = cal.compare(LABELS, models), compare_by(LABELS, models)
    for files in (columns, matched):
        found = calibrant("compare", *files, *words, "confidence").json
        assert found["verdict"] == whole.verdict
        assert found["differences"] == as_json(whole)["differences"]
        found = calibrant("compare", *files, *words, "classwise").json
        assert found["verdict"] == each.verdict
    assert calibrant("compare", *matched[:-1], "nosuch", *words, "confidence").code == 2


@pytest.mark.parametrize("kind", ["classwise", "top-label"])
def test_a_class_is_never_compared_with_a_class(calibrant, classes, kind) -> None:
    words = ("--prob", "p_*", "--label", "y", "--multiclass", kind)
    found = calibrant("compare", classes / "long.parquet", *words, "--by", "model", "--json").json
    view = getattr(cal, kind.replace("-", "_"))
    sketches = {"p": view(LABELS, PROBS), "q": view(LABELS, SURE)}
    assert found["verdict"] == compare_by(sketches).verdict
    done = calibrant("compare", classes / "wide.parquet", *words)
    assert (done.code, "--by" in done.err) == (2, True)


@pytest.mark.parametrize("kind", ["confidence", "top-label"])
def test_scores_of_the_confidence_are_named(calibrant, classes, kind) -> None:
    words = ("--prob", "p_*", "--label", "y", "--multiclass", kind, "--by", "model", "--details")
    shown = calibrant("assess", classes / "long.parquet", *words).out
    assert "confidence: log loss" in shown
    assert "\nlog loss" not in shown


# --- monitor ---


def batches(folder, *, wrong_from: int) -> list:
    draw = np.random.default_rng(9)
    paths = []
    for day in range(6):
        p = draw.random(400)
        truth = p if day < wrong_from else p**2.5
        path = folder / f"day{day}.parquet"
        table = {"p": p, "y": (draw.random(400) < truth).astype(int), "day": [day] * 400}
        pyarrow.parquet.write_table(pyarrow.table(table), path)
        paths.append(path)
    return paths


def test_days_one_by_one_or_all_at_once(calibrant, tmp_path) -> None:
    paths = batches(tmp_path, wrong_from=3)
    state = tmp_path / "state.json"
    for path in paths:
        done = calibrant("monitor", path, "--state", state, "--json", "--fail-on-alarm")
    assert (done.code, "ALARM" in done.err) == (3, True)
    together = calibrant("monitor", *paths, "--json")
    assert together.code == 0
    assert together.json[-1] == done.json[-1]
    monitor = cal.Monitor()
    for path in paths:
        rows = cal.scan(path, y_true="y", y_prob="p")
        look = monitor.update(rows)
    assert together.json[-1] == {"batch": paths[-1].name, **as_json(look)}
    table = calibrant("monitor", tmp_path / "day*.parquet", "--batch", "day")
    assert (table.code, len(table.out.splitlines())) == (0, 7)
    assert "not counted again" in calibrant("monitor", paths[0], "--state", state).err


def test_a_calm_monitor_and_mistakes(calibrant, tmp_path) -> None:
    paths = batches(tmp_path, wrong_from=9)
    state = tmp_path / "state.json"
    done = calibrant("monitor", *paths, "--state", state, "--fail-on-alarm")
    assert (done.code, "No alarm" in done.err) == (0, True)
    before = state.read_text()
    (tmp_path / "bad.csv").write_text("p,y\n7,1\n")
    around = tmp_path / ".." / tmp_path.name / paths[0].name
    for words, text in [
        ((paths[0], "--state", state, "--level", "0.01"), "`--level`"),
        ((tmp_path / "bad.csv", "--state", state), "7"),
        ((paths[0], around), "day0.parquet"),
    ]:
        done = calibrant("monitor", *words)
        assert (done.code, text in done.err) == (2, True), done.err
    assert state.read_text() == before


@pytest.mark.parametrize(
    "days",
    [
        [12, 2, 10, 1, 11],
        ["b", "a", None, "C", "NA"],
        [2.5, 10.0, None, 0.5, 1.0],
        [date(2026, 1, 10), date(2026, 1, 2), None, date(2025, 12, 31), date(2026, 1, 3)],
    ],
    ids=str,
)
def test_batches_come_in_the_order_of_their_values(calibrant, write_rows, tmp_path, days) -> None:
    draw = np.random.default_rng(4)
    table = pyarrow.table({"p": draw.random(60), "y": draw.integers(0, 2, 60), "day": days * 12})
    path = tmp_path / "rows.parquet"
    write_rows(table, path)
    found = [one["batch"] for one in calibrant("monitor", path, "--batch", "day", "--json").json]
    known = sorted(day for day in days if day is not None)
    expected = [f"{day:g}" if isinstance(day, float) else str(day) for day in known]
    assert found == expected + ["(missing)"] * (None in days)


def test_a_monitor_watches_the_confidence_or_each_class(calibrant, classes, tmp_path) -> None:
    rows = classes / "wide.parquet"
    words = ("monitor", rows, "--prob", "p_*", "--label", "y", "--multiclass")
    found = calibrant(*words, "confidence", "--json").json
    assert found[0]["e_value"] == pytest.approx(cal.Monitor().update(LABELS, PROBS).e_value)
    state = tmp_path / "state.json"
    found = calibrant(*words, "classwise", "--json", "--state", state).json
    look = cal.Monitor().update(
        np.array(NAMES)[LABELS], PROBS, classes=NAMES, multiclass="classwise"
    )
    assert found[0]["e_value"] == pytest.approx(look.e_value)
    assert len(found[0]["groups"]) == 3
    assert calibrant(*words, "confidence", "--state", state).code == 2
    days = calibrant(*words, "top-label", "--batch", "day", "--json").json
    assert [look["batch"] for look in days] == ["0", "1"]
    assert "mean error" in calibrant(*words, "top-label").out
