"""`calibrant recalibrate`: learn a map on one file, apply it to another."""

from __future__ import annotations

import shlex

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

import calibrant as cal

METHODS = ["adaptive", "smooth", "platt", "beta", "temperature", "offset"]


@pytest.fixture
def overconfident(tmp_path):
    draw = np.random.default_rng(5)
    path = tmp_path / "day1.parquet"
    p = draw.random(2000)
    y = (draw.random(2000) < 0.25 + p / 2).astype(int)
    pyarrow.parquet.write_table(pyarrow.table({"p": p, "y": y}), path)
    return path


@pytest.mark.parametrize("method", [*METHODS, "isotonic", "venn-abers", "spline", "randomized"])
def test_a_map_is_learned_and_applied(calibrant, overconfident, tmp_path, method) -> None:
    target = tmp_path / "map.json"
    done = calibrant("recalibrate", overconfident, "--method", method, "-o", target)
    assert done.code == 0, done.err
    better = tmp_path / "better.parquet"
    done = calibrant("recalibrate", overconfident, "--apply", target, "-o", better)
    assert done.code == 0, done.err
    assert "outcomes" not in done.err
    table = pyarrow.parquet.read_table(better)
    assert table.column_names == ["p", "y", "p_recalibrated"]
    expected = cal.load_recalibrator(target).transform(table["p"].to_numpy())
    np.testing.assert_array_equal(table["p_recalibrated"].to_numpy(), expected)
    if method == "smooth":
        after = cal.smooth_ece(table["y"].to_numpy(), expected)
        assert after < cal.smooth_ece(table["y"].to_numpy(), table["p"].to_numpy()) / 2


def test_the_best_map_is_chosen_and_judged_on_held_out_rows(calibrant, overconfident, tmp_path):
    picture = tmp_path / "map.svg"
    target, said = _learned(calibrant, overconfident, tmp_path, "choose", "--picture", str(picture))
    assert picture.stat().st_size > 2000
    rows = pyarrow.parquet.read_table(overconfident)
    p, y = rows["p"].to_numpy(), rows["y"].to_numpy()
    chosen = cal.load_recalibrator(target)
    assert cal.smooth_ece(y, chosen.transform(p)) < 0.3 * cal.smooth_ece(y, p)
    assert f"{chosen.kind} map" in said
    assert "held-out rows" in said


def _learned(calibrant, rows, folder, method, *more):
    target = folder / "map.json"
    done = calibrant("recalibrate", rows, "--method", method, "-o", target, *more)
    assert done.code == 0, done.err
    return target, done.err


def test_from_a_sketch_and_to_csv(calibrant, overconfident, tmp_path) -> None:
    sketch, target, out = tmp_path / "s.json", tmp_path / "map.json", tmp_path / "out.csv"
    assert calibrant("scan", overconfident, "-o", sketch).code == 0
    assert calibrant("recalibrate", sketch, "-o", target).code == 0
    assert calibrant("recalibrate", overconfident, "--apply", target, "-o", out).code == 0
    assert pyarrow.csv.read_csv(out).num_rows == 2000


def test_a_map_as_sql(calibrant, overconfident, tmp_path) -> None:
    duckdb = pytest.importorskip("duckdb")
    target = tmp_path / "map.json"
    assert calibrant("recalibrate", overconfident, "-o", target).code == 0
    text = calibrant("sql", "preds", "--apply", target, "--prob", "q").out
    ((value,),) = duckdb.sql(f"SELECT {text} FROM (SELECT 0.75 AS q)").fetchall()
    assert value == pytest.approx(cal.load_recalibrator(target).transform([0.75])[0], abs=1e-5)


def test_what_is_said_of_wrong_rows_can_be_done(calibrant, overconfident, tmp_path) -> None:
    rows = pyarrow.parquet.read_table(overconfident)
    p, y = rows["p"].to_numpy(), rows["y"].to_numpy()
    wrong, target = tmp_path / "wrong.parquet", tmp_path / "map.json"
    learn = ("--method", "platt", "-o", target)
    for given in (8 * p - 4, 100 * p):
        pyarrow.parquet.write_table(pyarrow.table({"p": given, "y": y}), wrong)
        done = calibrant("recalibrate", wrong, *learn)
        assert done.code != 0
        option = "--percent" if given.max() > 50 else "--from-logits"
        assert option in done.err
        assert calibrant("recalibrate", wrong, option, *learn).code == 0
    assert calibrant("recalibrate", overconfident, *learn).code == 0
    pyarrow.parquet.write_table(pyarrow.table({"p": [0.1, np.nan]}), wrong)
    done = calibrant("recalibrate", wrong, "--apply", target, "-o", tmp_path / "out.csv")
    assert done.code != 0
    assert "--on-invalid" not in done.err


@pytest.mark.parametrize(
    ("option", "written"),
    [
        ("--percent", lambda p: 100 * p),
        ("--from-logits", lambda p: np.log(p / (1 - p))),
        ("--from-logprobs", np.log),
    ],
)
def test_predictions_in_any_form_are_learned_from_and_repaired(
    calibrant, overconfident, tmp_path, option, written
):
    rows = pyarrow.parquet.read_table(overconfident)
    p, y = rows["p"].to_numpy(), rows["y"].to_numpy()
    other = tmp_path / "other.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"p": written(p), "y": y}), other)
    _, said = _learned(calibrant, other, tmp_path, "platt", option)
    expected = cal.recalibration.PlattRecalibrator().fit(p, y).transform(p)
    command = shlex.split(said.replace("\n", " ").split("`calibrant ")[1].split("`")[0])
    better = tmp_path / "better.parquet"
    files = {"NEW.parquet": other, "BETTER.parquet": better}
    done = calibrant(*(files.get(word, word) for word in command))
    assert done.code == 0, done.err
    mapped = pyarrow.parquet.read_table(better)["p_recalibrated"].to_numpy()
    np.testing.assert_allclose(mapped, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("method", "more"),
    [("choose", "--weight w --cluster day"), ("platt", "--weight w"), ("platt", "--cluster day")],
)
def test_clusters_and_weights_judge_a_map_as_in_python(
    calibrant, overconfident, tmp_path, method, more
):
    more = more.split()
    rows = pyarrow.parquet.read_table(overconfident)
    p, y = rows["p"].to_numpy(), rows["y"].to_numpy()
    day, w = np.arange(2000) // 20, 0.5 + np.arange(2000) % 3
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"p": p, "y": y, "day": day, "w": w}), path)
    target, said = _learned(calibrant, path, tmp_path, method, *more)
    options = {
        "cluster": day if "day" in more else None,
        "sample_weight": w if "w" in more else None,
    }
    chosen = cal.choose_recalibrator(y, p, **options).recalibrator
    learned = chosen if method == "choose" else cal.recalibration.PlattRecalibrator()
    effect = cal.recalibration.evaluate(learned, y, p, **options, cv=5)
    assert f"{effect.low:+.4f} to {effect.high:+.4f}" in said.replace("\n", " ")
    if method == "choose":
        assert type(cal.load_recalibrator(target)) is type(chosen)
    done = calibrant("recalibrate", path, "--apply", target, "-o", tmp_path / "x.csv", *more[:2])
    assert done.code == 2


def test_rows_that_are_dropped_are_counted(calibrant, overconfident, tmp_path):
    rows = pyarrow.parquet.read_table(overconfident)
    p, y = rows["p"].to_numpy().copy(), rows["y"].to_numpy()
    p[:3], p[3] = 1.5, np.nan
    path = tmp_path / "rows.parquet"
    table = {"p": p, "y": y, "w": np.ones(2000)}
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    for more in ([], ["--weight", "w"]):
        _, said = _learned(calibrant, path, tmp_path, "platt", "--on-invalid", "drop", *more)
        assert "1,996 rows" in said
        assert "3 rows" in said


NAMES = ["cat", "dog", "owl"]
RNG = np.random.default_rng(3)
PROBS = RNG.dirichlet([1.0, 2.0, 0.7], 500)
LABELS = (PROBS.cumsum(axis=1) > RNG.random((500, 1))).argmax(axis=1)
SURE = PROBS**2 / (PROBS**2).sum(axis=1, keepdims=True)
CLASSES = ("--prob", "q_*", "--multiclass", "confidence")


@pytest.fixture
def classes(tmp_path):
    columns = {"y": np.array(NAMES)[LABELS], "probs": SURE.tolist(), "day": np.arange(500) // 10}
    columns |= {f"q_{name}": SURE[:, k] for k, name in enumerate(NAMES)}
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.mark.parametrize("method", ["choose", "temperature", "one-vs-rest", "vector"])
def test_a_map_of_classes_is_learned_judged_and_applied(calibrant, classes, tmp_path, method):
    target, better = tmp_path / "map.json", tmp_path / "better.parquet"
    more = ("--cluster", "day") if method == "choose" else ()
    words = ("recalibrate", classes, *CLASSES)
    done = calibrant(*words, "--label", "y", "--method", method, *more, "-o", target)
    assert done.code == 0, done.err
    assert "held-out rows" in done.err
    done = calibrant(*words, "--apply", target, "-o", better)
    assert done.code == 0, done.err
    table = pyarrow.parquet.read_table(better)
    mapped = np.column_stack([table[f"q_{name}_recalibrated"] for name in NAMES])
    np.testing.assert_allclose(mapped, cal.load_recalibrator(target).transform(SURE))
    assert cal.smooth_ece(LABELS, mapped) < cal.smooth_ece(LABELS, SURE)
    again = calibrant("assess", better, *CLASSES, "--label", "y", "--json").json
    assert again["smooth_ece"] == pytest.approx(cal.smooth_ece(LABELS, SURE), abs=1e-6)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_column_of_lists_is_recalibrated_too(calibrant, classes, tmp_path, ending) -> None:
    target, better = tmp_path / "map.json", tmp_path / f"better{ending}"
    words = ("recalibrate", classes, "--prob", "probs", "--classes", ",".join(NAMES))
    more = ("--multiclass", "confidence", "--label", "y", "--method", "temperature")
    assert calibrant(*words, *more, "-o", target).code == 0
    done = calibrant(*words, "--apply", target, "-o", better)
    assert done.code == 0, done.err
    words = ("--prob", "probs_recalibrated", "--classes", ",".join(NAMES), *more[:4])
    found = calibrant("assess", better, *words, "--json").json
    mapped = cal.load_recalibrator(target).transform(SURE)
    assert found["smooth_ece"] == pytest.approx(cal.smooth_ece(LABELS, mapped), abs=1e-4)


def test_columns_in_another_order_are_taken_by_name(calibrant, classes, tmp_path) -> None:
    target, turned, better = (tmp_path / name for name in ("map.json", "turned.csv", "better.csv"))
    words = ("recalibrate", classes, *CLASSES, "--label", "y", "--method", "vector")
    assert calibrant(*words, "-o", target).code == 0
    order = [2, 0, 1]
    pyarrow.csv.write_csv(pyarrow.table({f"s_{NAMES[k]}": SURE[:, k] for k in order}), turned)
    done = calibrant("recalibrate", turned, "--prob", "s_*", "--apply", target, "-o", better)
    assert done.code == 0, done.err
    expected = cal.load_recalibrator(target).transform(SURE)
    for k, name in enumerate(NAMES):
        np.testing.assert_allclose(
            pyarrow.csv.read_csv(better)[f"s_{name}_recalibrated"], expected[:, k]
        )
    pyarrow.csv.write_csv(pyarrow.table({f"s_{k}": SURE[:, k] for k in order}), turned)
    done = calibrant("recalibrate", turned, "--prob", "s_*", "--apply", target, "-o", better)
    assert (done.code, "--classes" in done.err) == (2, True), done.err
