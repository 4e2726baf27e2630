"""`calibrant compare` and `calibrant monitor`."""

from __future__ import annotations

import json
from datetime import date

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

import calibrant as cal


@pytest.fixture
def models(tmp_path):
    """Two models of the same 1,500 cases: as columns, and as groups in another order."""
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


def test_columns_and_groups_lined_up_say_the_same(calibrant, as_golden, models, tmp_path) -> None:
    done = calibrant(
        "compare", tmp_path / "wide.parquet", "--prob", "sharp", "--prob", "timid", "--json"
    )
    assert done.code == 0, done.err
    by_column = json.loads(done.out)
    as_golden("compare", by_column)
    done = calibrant(
        "compare", tmp_path / "long.parquet", "--by", "model", "--on", "case", "--json"
    )
    assert done.code == 0, done.err
    by_group = json.loads(done.out)
    expected = cal.compare(models["y"], {"sharp": models["sharp"], "timid": models["timid"]})
    for found in (by_column, by_group):
        assert found["schema"] == "calibrant.compare/1"
        assert found["paired"] is True
        assert found["verdict"] == expected.verdict == "sharp is better calibrated than timid"
        assert found["differences"][0]["value"] == pytest.approx(expected.differences[0].value)


def test_groups_apart_and_clusters(calibrant, models, tmp_path) -> None:
    done = calibrant("compare", tmp_path / "long.parquet", "--by", "model")
    assert done.code == 0, done.err
    assert "as if on different rows" in done.err
    assert "Verdict: sharp is better calibrated than timid." in done.out
    done = calibrant(
        "compare", tmp_path / "wide.parquet", "--prob", "[st]*", "--cluster", "day", "--json"
    )
    assert json.loads(done.out)["clusters"] == 30


def test_what_cannot_be_compared(calibrant, models, tmp_path) -> None:
    def refused(*words, said: str) -> None:
        done = calibrant("compare", *words)
        assert (done.code, said in done.err) == (2, True), done.err

    wide, long = tmp_path / "wide.parquet", tmp_path / "long.parquet"
    refused(wide, "--prob", "sharp", said="`--prob a`")
    refused(wide, "--prob", "sharp", "--prob", "timid", "--by", "day", said="`--by`")
    refused(wide, "--prob", "sharp", "--on", "day", said="`--by`")
    refused(long, "--by", "model", "--on", "y", said="y")
    refused(long, "--by", "model", "--cluster", "case", said="`--on`")
    refused(long, "--by", "model", "--on", "cases", said="'case'")
    table = pyarrow.parquet.read_table(long)
    wrong = table.set_column(1, "y", pyarrow.array(np.roll(table["y"].to_numpy(), 1)))
    pyarrow.parquet.write_table(wrong, tmp_path / "wrong.parquet")
    refused(tmp_path / "wrong.parquet", "--by", "model", "--on", "case", said="'case'")
    apart = table.set_column(3, "case", pyarrow.array(np.arange(3000)))
    pyarrow.parquet.write_table(apart, tmp_path / "apart.parquet")
    refused(tmp_path / "apart.parquet", "--by", "model", "--on", "case", said="`--on`")


def test_cases_that_one_model_lacks_are_left_out_and_told(calibrant, models, tmp_path) -> None:
    long = pyarrow.parquet.read_table(tmp_path / "long.parquet").slice(10)
    pyarrow.parquet.write_table(long, tmp_path / "short.parquet")
    done = calibrant("compare", tmp_path / "short.parquet", "--by", "model", "--on", "case")
    assert done.code == 0, done.err
    assert "1,490 cases that all have, of 1,500" in done.err


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


def test_days_one_by_one_or_all_at_once(calibrant, as_golden, tmp_path) -> None:
    paths = batches(tmp_path, wrong_from=3)
    state = tmp_path / "state.json"
    for path in paths:
        done = calibrant("monitor", path, "--state", state, "--json", "--fail-on-alarm")
    assert done.code == 3
    assert "ALARM" in done.err
    last = json.loads(done.out)["looks"][-1]
    assert last["look"] == 6
    assert last["alarm"]["direction"] == "over-forecasting"
    together = calibrant("monitor", *paths, "--json")
    assert together.code == 0
    as_golden("monitor", json.loads(together.out))
    assert json.loads(together.out)["looks"][-1]["e_value"] == last["e_value"]
    table = calibrant("monitor", tmp_path / "day*.parquet", "--batch", "day")
    assert table.code == 0, table.err
    assert len(table.out.splitlines()) == 7


def test_a_calm_monitor_and_wrong_ones(calibrant, tmp_path) -> None:
    paths = batches(tmp_path, wrong_from=9)
    state = tmp_path / "state.json"
    done = calibrant("monitor", *paths, "--state", state, "--fail-on-alarm")
    assert (done.code, "No alarm" in done.err) == (0, True)

    def refused(*words, said: str) -> None:
        done = calibrant("monitor", *words)
        assert (done.code, said in done.err) == (2, True), done.err

    refused(paths[0], "--state", state, "--level", "0.01", said="`--level`")
    refused(paths[0], "--level", "2", said="level")
    refused(paths[0], "--weight", "p", said="`--weight`")
    refused(paths[0], "--state", tmp_path / "x.txt", said=".json")
    before = state.read_text()
    (tmp_path / "bad.csv").write_text("p,y\n7,1\n")
    refused(tmp_path / "bad.csv", "--state", state, said="7")
    assert state.read_text() == before
    state.write_text("{}")
    refused(paths[0], "--state", state, said="state.json")


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
@pytest.mark.parametrize(
    "days",
    [
        [12, 2, 10, 1, 11],
        [3, None, 10, 2, None],
        ["b", "a", None, "C", "NA"],
        ["07", "7", None, "2026-01-02", "2025-12-31"],
        ["2026-01-02", None, "2025-12-31", "2026-01-10", "2026-01-03"],
        [2.5, 10.0, None, 0.5, 1.0],
        [True, False, None, True, False],
        [date(2026, 1, 10), date(2026, 1, 2), None, date(2025, 12, 31), date(2026, 1, 3)],
    ],
    ids=str,
)
def test_batches_come_in_the_order_of_their_values(
    calibrant, write_rows, tmp_path, days, ending
) -> None:
    """Rows that are summed as they are read, and rows that are converted first, are grouped alike."""
    draw = np.random.default_rng(4)
    table = pyarrow.table({"p": draw.random(60), "y": draw.integers(0, 2, 60), "day": days * 12})
    path = tmp_path / f"rows{ending}"
    write_rows(table, path)
    scanned, converted = (
        calibrant("monitor", path, "--batch", "day", "--json", *more)
        for more in ([], ["--pos-label", "1"])
    )
    assert scanned.code == 0, scanned.err
    assert converted.out == scanned.out, converted.err


def test_no_file_is_evidence_twice(calibrant, tmp_path) -> None:
    path = batches(tmp_path, wrong_from=9)[0]
    around = tmp_path / ".." / tmp_path.name / path.name
    for others in (path, around, tmp_path, tmp_path / "day*.parquet"):
        done = calibrant("monitor", path, others)
        assert (done.code, path.name in done.err) == (2, True), done.err


def test_a_monitor_watches_one_model(calibrant, parquet) -> None:
    done = calibrant("monitor", parquet, "--prob", "p", "--prob", "y")
    assert (done.code, "`--prob`" in done.err) == (2, True)
