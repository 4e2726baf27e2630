"""A mistake in every argument of every command: one message, in the words of the command line."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

LIBRARY_WORDS = re.compile(
    r"y_true|y_prob|sample_weight|roll_up|rebin|relative_scale|Scale\(|datasets\.names|`scan`|numpy"
    r"|codec|fit\("
    r"|calibrant\.\w+\(|Value error|Input should|True|Traceback|unexpectedly"
)

MISTAKES = """
assess nope.csv
assess rows.parquet --prob pp
assess rows.parquet --seed -1
assess rows.parquet --seed many
assess rows.parquet --confidence 95
assess rows.parquet --confidence high
assess rows.parquet --scale relative
assess rows.parquet --scale relative:7
assess rows.parquet --scale cubic
assess rows.parquet --max-groups 0
assess rows.parquet --by dya
assess rows.parquet --by ,
assess rows.parquet --cluster nope
assess rows.parquet --cluster one
assess rows.parquet --weight nope
assess rows.parquet --weight day
assess rows.parquet --pos-label yes
assess rows.parquet --label day
assess rows.parquet --prob y --label q
assess rows.parquet --prob logit
assess rows.parquet --multiclass confidence
assess rows.parquet --multiclass some
assess rows.parquet --from-logits --percent
assess rows.parquet --outcomes soft --pos-label 1
assess rows.parquet --log jsonl
assess rows.parquet --log lm-eval
assess rows.parquet --fail-above -1
assess rows.parquet --require-below x
assess rows.parquet --unknown
assess rows.parquet --prob
assess rows.parquet rows.parquet
assess rows.parquet sketch.json
assess sketch.json --by nope
assess sketch.json --scale logit
assess sketch.json --prob p
plot rows.parquet -o x.gif
plot rows.parquet -o nowhere/x.svg
plot rows.parquet --kind round
plot rows.parquet --theme blue
plot rows.parquet --layout grid -o x.html
report rows.parquet -o x.pdf
compare rows.parquet
compare rows.parquet --by day --on id
compare rows.parquet --prob p --prob q --on id
compare rows.parquet --prob p --prob q --by day
compare sketch.json --on id
scan rows.parquet -o x.txt
scan rows.parquet
scan rows.parquet -o x.json --checkpoint nowhere/c
scan rows.parquet -o x.json --filter strict
scan rows.parquet -o x.json --max-groups 2
merge rows.parquet -o x.json
merge nope.json -o x.json
merge sketch.json -o x.json --by q
recalibrate rows.parquet -o x.csv
recalibrate rows.parquet -o nowhere/x.json
recalibrate rows.parquet -o x.json --multiclass confidence --prob p --prob q
recalibrate rows.parquet -o x.json --method magic
recalibrate rows.parquet -o x.json --percent --from-logits
recalibrate rows.parquet -o x.json --cluster nope
recalibrate rows.parquet -o x.json --classes a,b
recalibrate rows.parquet -o x.csv --apply nope.json
recalibrate rows.parquet -o x.csv --apply sketch.json
recalibrate rows.parquet -o x.csv --apply sketch.json --method beta
recalibrate rows.parquet -o x.csv --apply sketch.json --label y
monitor rows.parquet --batch nope
monitor rows.parquet --level 2
monitor rows.parquet --state x.txt
monitor rows.parquet --state sketch.json
monitor rows.parquet --weight q
sql t --dialect oracle
sql t --apply nope.json
sql t --apply sketch.json --by g
demo -o rows.parquet
datasets nope
datasets -o x.csv
datasets solar_flares_daffs_c1 -o x.xlsx
frobnicate
asses rows.parquet
--frobnicate
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("mistakes")
    draw = np.random.default_rng(5)
    p = draw.random(60)
    table = {
        "p": p,
        "y": draw.integers(0, 2, 60),
        "q": draw.random(60),
        "day": np.arange(60) % 5 - 2,
        "id": np.arange(60),
        "one": ["same"] * 60,
        "logit": np.log(p / (1 - p)) * 5,
    }
    pyarrow.parquet.write_table(pyarrow.table(table), here / "rows.parquet")
    import calibrant as cal

    cal.save(cal.scan(table, y_true="y", y_prob="p", by="day"), here / "sketch.json")
    return here


@pytest.mark.parametrize("words", MISTAKES.strip().splitlines())
def test_a_mistake_is_told_once_in_command_words(calibrant, folder, monkeypatch, words) -> None:
    monkeypatch.chdir(folder)
    done = calibrant(*shlex.split(words))
    said = [line for line in done.err.splitlines() if not line.startswith("Reading predictions")]
    assert (done.code, done.out) == (2, ""), done.err
    assert len(said) == 1, done.err
    assert said[0].startswith("Error: ")
    assert not LIBRARY_WORDS.search(said[0]), said[0]
    assert "?." not in said[0]
    left = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert left == {"rows.parquet", "sketch.json"}


@pytest.mark.parametrize(
    "words",
    [
        "scan rows.parquet -o rows.parquet",
        "scan rows.parquet -o link.parquet",
        "scan rows.parquet -o x.json --checkpoint rows.parquet",
        "scan '*.parquet' -o ./rows.parquet",
        "scan . -o rows.parquet",
        "merge sketch.json -o sketch.json",
        "recalibrate rows.parquet --apply sketch.json -o rows.parquet",
        "monitor sketch.json --state sketch.json",
        "scan rows.parquet -o locked.json",
    ],
)
def test_what_is_read_is_never_overwritten(calibrant, folder, monkeypatch, tmp_path, words) -> None:
    monkeypatch.chdir(tmp_path)
    before = {name: (folder / name).read_bytes() for name in ("rows.parquet", "sketch.json")}
    for name, contents in before.items():
        (tmp_path / name).write_bytes(contents)
    (tmp_path / "link.parquet").symlink_to("rows.parquet")
    (tmp_path / "locked.json").touch(mode=0o444)
    done = calibrant(*shlex.split(words))
    assert (done.code, len(done.err.splitlines())) == (2, 1), done.err
    assert any(name in done.err for name in ("rows.parquet", "link", "sketch.json", "locked.json"))
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


def test_what_lies_in_a_folder_and_is_not_read_may_be_written_again(
    calibrant, folder, monkeypatch, tmp_path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.parquet").write_bytes((folder / "rows.parquet").read_bytes())
    for _ in range(2):
        assert calibrant("scan", ".", "-o", "sketch.json").code == 0
