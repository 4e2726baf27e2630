"""Many classes on the command line: compared, repaired, and the repair applied."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import calibrant as cal
from calibrant.inference import compare_by
from calibrant.recalibration import TemperatureScaling

NAMES = ["cat", "dog", "owl"]
RNG = np.random.default_rng(3)
PROBS = RNG.dirichlet([1.0, 2.0, 0.7], 500)
LABELS = (PROBS.cumsum(axis=1) > RNG.random((500, 1))).argmax(axis=1)
SURE = PROBS**2 / (PROBS**2).sum(axis=1, keepdims=True)
SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    columns = {"y": np.array(NAMES)[LABELS], "probs": SURE.tolist()}
    columns["day"] = np.where(SURE.argmax(axis=1) == 0, 10, np.arange(500) % 2 * 8 + 2)
    columns |= {f"p_{name}": PROBS[:, k] for k, name in enumerate(NAMES)}
    columns |= {f"q_{name}": SURE[:, k] for k, name in enumerate(NAMES)}
    pyarrow.parquet.write_table(pa.table(columns), folder / "rows.parquet")
    return folder / "rows.parquet"


def test_each_prob_is_a_model(calibrant, rows):
    words = ("compare", rows, "--prob", "p_*", "--prob", "q_*", "--label", "y", "--json")
    done = calibrant(*words, "--multiclass", "confidence")
    found = json.loads(done.out)
    expected = cal.compare(LABELS, {"p": PROBS, "q": SURE})
    assert found["models"] == list(expected.assessments)
    assert found["differences"][0]["p_value"] == expected.differences[0].p_value
    done = calibrant(*words, "--multiclass", "classwise")
    found = json.loads(done.out)
    jsonschema.validate(found, json.loads((SCHEMAS / "compare.json").read_text()))
    each = compare_by(LABELS, {"p": PROBS, "q": SURE})
    assert found["verdict"] == each.verdict
    assert [line["class"] for line in found["differences"]] == [NAMES[k] for k in each]
    shown = calibrant(*words[:-1], "--multiclass", "classwise")
    assert each.verdict in shown.out.replace("\n", " ")


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    """The same models below each other, the cases of the second in another order."""
    path = tmp_path_factory.mktemp("long") / "long.parquet"
    order = np.random.default_rng(0).permutation(500)
    columns = {"case": np.concatenate([np.arange(500), order]), "model": ["p"] * 500 + ["q"] * 500}
    columns["y"] = np.array(NAMES)[np.concatenate([LABELS, LABELS[order]])]
    columns["day"] = columns["case"] // 5
    both = np.concatenate([PROBS, SURE[order]])
    columns |= {f"p_{name}": both[:, k] for k, name in enumerate(NAMES)}
    pyarrow.parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("kind", ["confidence", "classwise"])
@pytest.mark.parametrize("more", [(), ("--cluster", "day")])
def test_groups_that_are_lined_up_are_the_same_as_columns(calibrant, rows, long, kind, more):
    reading = ("--label", "y", "--multiclass", kind, "--json")
    done = calibrant(
        "compare", long, "--prob", "p_*", "--by", "model", "--on", "case", *reading, *more
    )
    assert done.code == 0, done.err
    models, cluster = {"p": PROBS, "q": SURE}, np.arange(500) // 5 if more else None
    found = json.loads(done.out)
    if kind == "confidence":
        expected = [cal.compare(LABELS, models, cluster=cluster)]
    else:
        expected = list(compare_by(LABELS, models, cluster=cluster).values())
    assert found["paired"]
    assert [line["low"] for line in found["differences"]] == [
        pair.low for one in expected for pair in one.differences
    ]


@pytest.mark.parametrize("kind", ["classwise", "top-label"])
def test_a_class_is_never_compared_with_a_class(calibrant, long, rows, kind):
    words = ("--prob", "p_*", "--label", "y", "--multiclass", kind)
    done = calibrant("compare", long, *words, "--by", "model", "--json")
    found = json.loads(done.out)
    assert found["models"] == ["p", "q"]
    assert sorted(line["class"] for line in found["differences"]) == NAMES
    assert not found["paired"]
    view = kind.replace("-", "_")
    sketches = {"p": getattr(cal, view)(LABELS, PROBS), "q": getattr(cal, view)(LABELS, SURE)}
    assert found["verdict"] == compare_by(sketches).verdict
    done = calibrant("compare", rows, *words)
    assert done.code == 2, done.out
    assert "--by" in done.err


def test_what_lines_up_groups_of_classes_is_there_and_has_groups(calibrant, long):
    words = ("compare", long, "--prob", "p_*", "--label", "y", "--multiclass", "confidence")
    assert calibrant(*words, "--by", "model", "--on", "nosuch").code == 2
    assert calibrant(*words, "--on", "case").code == 2
    assert calibrant(*words, "--by", "model", "--on", "day").code == 2


@pytest.mark.parametrize("method", ["choose", "temperature", "one-vs-rest", "vector"])
def test_a_map_of_classes_is_learned_judged_and_applied(calibrant, rows, tmp_path, method):
    words = ("recalibrate", rows, "--prob", "q_*", "--multiclass", "confidence")
    done = calibrant(*words, "--label", "y", "--method", method, "-o", tmp_path / "map.json")
    assert done.code == 0, done.err
    assert "held-out rows" in done.err
    done = calibrant(*words, "--apply", tmp_path / "map.json", "-o", tmp_path / "better.parquet")
    assert done.code == 0, done.err
    better = pyarrow.parquet.read_table(tmp_path / "better.parquet")
    mapped = np.column_stack([better[f"q_{name}_recalibrated"] for name in NAMES])
    expected = cal.load_recalibrator(tmp_path / "map.json").transform(SURE)
    assert np.array_equal(mapped, expected)
    assert cal.smooth_ece(LABELS, mapped) < cal.smooth_ece(LABELS, SURE)


def test_columns_before_and_after_a_repair_are_told_apart(calibrant, rows, tmp_path):
    words = ("recalibrate", rows, "--prob", "q_*", "--multiclass", "confidence", "--label", "y")
    calibrant(*words, "--method", "temperature", "-o", tmp_path / "map.json")
    better = tmp_path / "better.csv"
    done = calibrant("recalibrate", rows, "--prob", "q_*", "--apply", tmp_path / "map.json", "-o",
                     tmp_path / "better.parquet")  # fmt: skip
    assert done.code == 0, done.err
    table = pyarrow.parquet.read_table(tmp_path / "better.parquet").drop_columns(["probs"])
    pyarrow.csv.write_csv(table, better)
    for ending, probs in (("", SURE), ("_recalibrated", None)):
        if probs is None:
            probs = cal.load_recalibrator(tmp_path / "map.json").transform(SURE)
        done = calibrant("assess", better, "--prob", f"q_*{ending}", "--label", "y", "--json",
                         "--multiclass", "confidence")  # fmt: skip
        assert done.code == 0, done.err
        found = json.loads(done.out)["results"][0]["smooth_ece"]
        assert found == pytest.approx(cal.smooth_ece(LABELS, probs), abs=1e-6)


def test_a_column_of_lists_is_repaired_too(calibrant, rows, tmp_path):
    words = ("recalibrate", rows, "--prob", "probs", "--multiclass", "confidence")
    done = calibrant(*words, "--label", "y", "--classes", ",".join(NAMES), "--method", "temperature",
                     "-o", tmp_path / "map.json")  # fmt: skip
    assert done.code == 0, done.err
    done = calibrant(*words, "--apply", tmp_path / "map.json", "-o", tmp_path / "better.parquet")
    assert done.code == 0, done.err
    better = pyarrow.parquet.read_table(tmp_path / "better.parquet")["probs_recalibrated"]
    expected = cal.load_recalibrator(tmp_path / "map.json").transform(SURE)
    assert np.allclose(better.to_pylist(), expected)


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
@pytest.mark.parametrize("written", [json.dumps, str, lambda row: str(np.array(row)), tuple])
def test_lists_may_be_text(calibrant, tmp_path, ending, written):
    path = tmp_path / f"rows{ending}"
    lines = [(NAMES[k], str(written(row))) for k, row in zip(LABELS, SURE.tolist(), strict=True)]
    if ending == ".csv":
        path.write_text("y,probs\n" + "".join(f'{y},"{text}"\n' for y, text in lines))
    else:
        path.write_text("".join(json.dumps({"y": y, "probs": p}) + "\n" for y, p in lines))
    words = ("--prob", "probs", "--classes", ",".join(NAMES))
    more = ("--label", "y", "--multiclass", "confidence")
    done = calibrant("assess", path, *words, *more, "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)["results"][0]["smooth_ece"]
    assert found == pytest.approx(cal.smooth_ece(LABELS, SURE), abs=1e-4)
    target, better = tmp_path / "map.json", tmp_path / "better.csv"
    done = calibrant("recalibrate", path, *words, *more, "--method", "temperature", "-o", target)
    assert done.code == 0, done.err
    done = calibrant("recalibrate", path, *words, "--apply", target, "-o", better)
    assert done.code == 0, done.err
    done = calibrant("assess", better, "--prob", "probs_recalibrated", *words[2:], *more, "--json")
    found = json.loads(done.out)["results"][0]["smooth_ece"]
    mapped = cal.load_recalibrator(target).transform(SURE)
    assert found == pytest.approx(cal.smooth_ece(LABELS, mapped), abs=1e-4)


def test_text_that_is_no_list_is_refused_with_its_line(calibrant, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('y,probs\n0,"[0.5, 0.5]"\n1,"[0.5; 0.5]"\n1,"[0.1, 0.9]"\n')
    words = ("--prob", "probs", "--multiclass", "confidence", "--label", "y")
    for verb in (("assess", path), ("recalibrate", path, "-o", tmp_path / "map.json")):
        done = calibrant(*verb, *words)
        assert done.code == 2
        assert done.refusal.where.line == 3
        assert "--on-invalid" in done.err
    path.write_text("y,probs\n0,low\n1,high\n")
    assert calibrant("assess", path, *words).code == 2


def test_lists_are_written_to_csv(calibrant, rows, tmp_path):
    words = ("recalibrate", rows, "--prob", "probs", "--classes", ",".join(NAMES))
    done = calibrant(*words, "--multiclass", "confidence", "--label", "y", "--method", "temperature",
                     "-o", tmp_path / "map.json")  # fmt: skip
    assert done.code == 0, done.err
    done = calibrant(*words, "--apply", tmp_path / "map.json", "-o", tmp_path / "better.csv")
    assert done.code == 0, done.err
    table = pyarrow.csv.read_csv(tmp_path / "better.csv")
    found = np.array([json.loads(text) for text in table["probs_recalibrated"].to_pylist()])
    assert np.allclose(found, cal.load_recalibrator(tmp_path / "map.json").transform(SURE))


def _file(path, probs, labels):
    columns = {"y": np.array(NAMES)[labels]}
    columns |= {f"p_{name}": probs[:, k] for k, name in enumerate(NAMES)}
    pyarrow.csv.write_csv(pa.table(columns), path)
    return path


def test_the_command_that_is_printed_works_for_logits(calibrant, tmp_path):
    path = _file(tmp_path / "rows.csv", np.log(SURE), LABELS)
    words = ("--prob", "p_*", "--multiclass", "confidence", "--label", "y", "--from-logits")
    done = calibrant("recalibrate", path, *words, "-o", tmp_path / "map.json")
    assert done.code == 0, done.err
    command = shlex.split(done.err.replace("\n", " ").split("`calibrant ")[1].split("`")[0])
    better = tmp_path / "better.csv"
    done = calibrant(*({"NEW.csv": path, "BETTER.csv": better}.get(word, word) for word in command))
    assert done.code == 0, done.err
    table = pyarrow.csv.read_csv(better)
    found = np.column_stack([table[f"p_{name}_recalibrated"] for name in NAMES])
    assert np.allclose(found, cal.load_recalibrator(tmp_path / "map.json").transform(SURE))


def test_bad_rows_are_named_by_their_line_and_can_be_dropped(calibrant, tmp_path):
    probs = SURE.copy()
    probs[7, 0] += 0.2
    path = _file(tmp_path / "rows.csv", probs, LABELS)
    words = ("recalibrate", path, "--prob", "p_*", "--multiclass", "confidence", "--label", "y",
             "--method", "temperature", "-o", tmp_path / "map.json")  # fmt: skip
    done = calibrant(*words)
    assert done.code == 2
    assert (done.refusal.where.line, Path(done.refusal.file).name) == (9, "rows.csv")
    done = calibrant(*words, "--on-invalid", "drop")
    assert done.code == 0, done.err
    others = np.arange(500) != 7
    expected = TemperatureScaling(from_logits=False).fit(SURE[others], LABELS[others])
    learned = cal.load_recalibrator(tmp_path / "map.json")
    assert np.allclose(learned.transform(SURE), expected.transform(SURE), atol=1e-6)
    assert "499 rows" in " ".join(done.err.split())


def test_a_map_of_classes_explains_itself_beside_the_others(calibrant, rows, tmp_path):
    words = ("recalibrate", rows, "--prob", "q_*", "--multiclass", "confidence", "--label", "y")
    done = calibrant(*words, "--cluster", "day", "-o", tmp_path / "map.json")
    assert done.code == 0, done.err  # there are three days, and so three folds
    days = pyarrow.parquet.read_table(rows).append_column("week", pa.array(np.arange(500) // 10))
    pyarrow.parquet.write_table(days, tmp_path / "weeks.parquet")
    done = calibrant("recalibrate", tmp_path / "weeks.parquet", *words[2:], "--cluster", "week",
                     "-o", tmp_path / "map.json")  # fmt: skip
    assert done.code == 0, done.err
    said = " ".join(done.err.split())
    assert cal.load_recalibrator(tmp_path / "map.json").explain() in said
    for line in str(cal.choose_recalibrator(LABELS, SURE, cluster=np.arange(500) // 10)).split(
        "\n"
    ):
        assert " ".join(line.split()) in said
    unseen = _file(tmp_path / "few.csv", SURE[LABELS > 0], LABELS[LABELS > 0])
    done = calibrant("recalibrate", unseen, *words[2:3], "p_*", *words[4:], "--method", "vector",
                     "-o", tmp_path / "map.json")  # fmt: skip
    assert done.code == 2
    assert "--method temperature" in done.err


@pytest.mark.parametrize("more", ["--percent", "--from-logprobs", "--pos-label cat", "--outcomes soft",
                                  "--words sure=1"])  # fmt: skip
def test_what_does_not_apply_to_classes_is_refused(calibrant, rows, tmp_path, more):
    words = ("recalibrate", rows, "--prob", "q_*", "--multiclass", "confidence", "--label", "y")
    done = calibrant(*words, *more.split(), "-o", tmp_path / "map.json")
    assert done.code == 2
    assert more.split()[0] in done.err
    assert not (tmp_path / "map.json").exists()


def test_mistakes_with_maps_of_classes(calibrant, rows, tmp_path):
    words = ("recalibrate", rows, "--prob", "q_*", "--multiclass", "confidence", "--label", "y")
    done = calibrant(*words, "--method", "platt", "-o", tmp_path / "map.json")
    assert done.code == 2
    assert "temperature" in done.err
    done = calibrant(*words[:3], "q_cat", *words[4:], "-o", tmp_path / "map.json")
    assert done.code == 2
    assert not (tmp_path / "map.json").exists()


def test_a_report_on_classes_follows_its_schema(calibrant, rows, tmp_path):
    done = calibrant("report", rows, "--prob", "q_*", "--label", "y", "--multiclass", "confidence",
                     "-o", tmp_path / "page.json")  # fmt: skip
    assert done.code == 0, done.err
    page = json.loads((tmp_path / "page.json").read_text())
    jsonschema.validate(page, json.loads((SCHEMAS / "report.json").read_text()))
    assert page["classes"]["number"] == 3


def test_a_monitor_watches_the_confidence_or_each_class(calibrant, rows, tmp_path):
    words = ("monitor", rows, "--prob", "p_*", "--label", "y", "--json", "--multiclass")
    found = json.loads(calibrant(*words, "confidence").out)
    assert found["looks"][0]["e_value"] == cal.Monitor().update(LABELS, PROBS).e_value
    for view in ("top_label", "classwise"):
        state, word = tmp_path / f"{view}.json", view.replace("_", "-")
        done = calibrant(*words, word, "--state", state)
        found = json.loads(done.out)
        jsonschema.validate(found, json.loads((SCHEMAS / "monitor.json").read_text()))
        look = cal.Monitor().update(np.array(NAMES)[LABELS], PROBS, classes=NAMES, multiclass=view)
        assert found["looks"][0] == {"batch": rows.name, **look.to_dict()}
        assert "not counted again" in calibrant(*words, word, "--state", state).err
        assert calibrant(*words, "confidence", "--state", state).code == 2
    days = json.loads(calibrant(*words, "top-label", "--batch", "day").out)
    assert [look["batch"] for look in days["looks"]] == [
        "2",
        "10",
    ]  # of the first class only day 10
    assert [len(look["classes"]) for look in days["looks"]] == [2, 3]
    assert "mean error" in calibrant(*words[:-2], "--multiclass", "top-label").out


def test_columns_in_another_order_are_told_by_their_names(calibrant, rows, tmp_path):
    plan, turned, better = (tmp_path / name for name in ("map.json", "turned.csv", "better.csv"))
    words = ("recalibrate", "--multiclass", "confidence", "--prob")
    done = calibrant(*words, "q_*", rows, "--label", "y", "--method", "vector", "-o", plan)
    assert done.code == 0, done.err
    order = [2, 0, 1]
    pyarrow.csv.write_csv(pa.table({f"s_{NAMES[k]}": SURE[:, k] for k in order}), turned)
    done = calibrant(*words, "s_*", turned, "--apply", plan, "-o", better)
    assert done.code == 0, done.err
    found = pyarrow.csv.read_csv(better)
    expected = cal.load_recalibrator(plan).transform(SURE)
    for k, name in enumerate(NAMES):
        assert np.allclose(found[f"s_{name}_recalibrated"], expected[:, k])
    pyarrow.csv.write_csv(pa.table({f"s_{k}": SURE[:, k] for k in order}), turned)
    done = calibrant(*words, "s_*", turned, "--apply", plan, "-o", better)
    assert (done.code, "--classes cat,dog,owl" in done.err) == (2, True)
    named = ("--classes", "owl,cat,dog")
    done = calibrant(*words, "s_*", turned, *named, "--apply", plan, "-o", better)
    assert done.code == 0, done.err
    assert np.allclose(pyarrow.csv.read_csv(better)["s_0_recalibrated"], expected[:, 0])


def test_classes_that_are_numbers_have_names_too(calibrant, tmp_path):
    path = tmp_path / "numbers.csv"
    columns = {"y": np.array([9, 2, 5])[LABELS]} | {f"p{k}": PROBS[:, k] for k in range(3)}
    pyarrow.csv.write_csv(pa.table(columns), path)
    words = ("assess", path, "--prob", "p*", "--label", "y", "--multiclass", "classwise", "--json")
    done = calibrant(*words, "--classes", "9,2,5")
    assert done.code == 0, done.err
    found = {one["group"]["class"]: one["smooth_ece"] for one in json.loads(done.out)["results"]}
    for k, name in enumerate(["9", "2", "5"]):
        assert found[name] == pytest.approx(cal.smooth_ece(k == LABELS, PROBS[:, k]), abs=1e-6)
