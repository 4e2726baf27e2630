"""A mistake in every argument of every command: one message, in the words of the command line."""

from __future__ import annotations

import re
import shlex

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import calibrant as cal

LIBRARY_WORDS = re.compile(
    r"y_true|y_prob|sample_weight|roll_up|rebin|relative_scale|Scale\(|`scan`|numpy"
    r"|codec|fit\("
    r"|calibrant\.\w+\(|Value error|Input should|True|Traceback|unexpectedly"
)

MISTAKES = r"""
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
assess rows.parquet --thresholds 0.1  # --thresholds
assess rows.parquet --profile clinical --thresholds 1.5  # --thresholds
assess rows.parquet --profile clinical --thresholds a  # --thresholds
assess rows.parquet --profile weather --grades day  # --grades
assess rows.parquet --profile credit --hosmer-lemeshow  # --hosmer-lemeshow
assess rows.parquet --profile dentist  # --profile
assess rows.parquet --profile clinic  # Did you mean "clinical"?
assess rows.parquet --correction holms  # Did you mean "holm"?
recalibrate rows.parquet -o x.json --method isotnic  # Did you mean "isotonic"?
audit rows.parquet --column nope  # 'nope'
audit rows.parquet --column day --weight q  # weights
audit rows.parquet --column day --prob p --prob q  # one column
assess answers.jsonl --pos-label yes  # `--pos-label`
assess answers.jsonl --by modell  # Did you mean "model"
assess answers.jsonl --prob a --prob b  # `--prob`
assess answers.jsonl --words likely  # `--words`
assess answers.jsonl --words likely=x  # `--words`
assess answers.jsonl --score-range 1  # `--score-range`
assess part.jsonl --log jsonl  # `--outcomes soft`
certify one.jsonl  # --cluster
decide rows.parquet --thresholds 0  # --thresholds
decide rows.parquet --thresholds a  # --thresholds
selective rows.parquet --by day -o x.svg  # `--output`
compare rows.parquet --prob p  # `--prob a --prob b`
compare rows.parquet --prob p --prob q --by one  # `--by`
compare rows.parquet --prob p --on id  # `--by`
compare rows.parquet --by day --on y  # `--on`
compare rows.parquet --by day --cluster id  # `--on`
compare rows.parquet --by day --on ids  # 'id'
monitor rows.parquet --prob p --prob y  # `--prob`
monitor rows.parquet rows.parquet  # rows.parquet
monitor rows.parquet ./rows.parquet  # rows.parquet
monitor rows.parquet 'row*.parquet'  # rows.parquet
scan ab.csv -o -  # --prob NAME
scan p,score,y.csv -o -  # 'p', 'score'
scan p,b.csv -o -  # --label NAME
scan p_a,p_b,p_c,y.csv -o -  # --prob 'p_*' --multiclass confidence
scan percent.csv -o -  # `--percent`
scan logits.csv -o -  # `--from-logits`
scan words.csv -o -  # --pos-label
scan soft.csv -o -  # `--outcomes soft`
scan missing.csv -o -  # --on-invalid
scan empty.csv -o -  # `FILES`
scan nothing.csv -o -  # `FILES`
scan cut.parquet -o -  # cut.parquet
scan rows.parquet rows.parquet -o -  # twice
scan sketch.json -o - --percent  # sketch
scan sketch.json rows.parquet -o -  # rows and sketch
merge sketch.json rows.parquet -o -  # rows and sketch
merge sketch.json models.json -o -  # by day and by model
merge models.json both.json -o -  # by day, model
merge sketch.json scaled.json -o -  # scale
merge sketch.json -o x.txt  # x.txt
assess sketch.json --by model  # `--by`
assess sketch.json --cluster model  # `--cluster`
recalibrate rows.parquet -o x.pkl  # x.pkl
recalibrate rows.parquet -o x.json --words sure=1  # `--words`
recalibrate rows.parquet -o x.json --picture x.txt  # x.txt
recalibrate alike.csv -o x.json  # 1
recalibrate rows.parquet -o x.csv --apply nope.json  # No such file
recalibrate rows.parquet -o x.csv --apply rows.parquet  # rows.parquet
recalibrate rows.parquet -o x.csv --apply map.json --picture x.svg  # --picture
recalibrate rows.parquet -o x.xlsx --apply map.json  # x.xlsx
recalibrate better.parquet --prob p -o x.csv --apply map.json  # p_recalibrated
recalibrate classes.parquet --prob 's_*' --multiclass confidence -o x.json --method magic  # temperature
recalibrate classes.parquet --prob 's_*' --multiclass confidence -o x.json --percent  # --percent
recalibrate classes.parquet --prob 's_*' --multiclass confidence -o x.json --pos-label a  # --pos-label
recalibrate classes.parquet --prob 's_*' --multiclass confidence -o x.json --picture x.svg  # --picture
frobnicate
asses rows.parquet
--frobnicate
"""


TEXTS = {
    "p_a,p_b,p_c,y.csv": "p_a,p_b,p_c,y\n1,1,1,1\n",
    "ab.csv": "a,b\n1,1\n",
    "p,score,y.csv": "p,score,y\n1,1,1\n",
    "p,b.csv": "p,b\n1,1\n",
    "percent.csv": "p,y\n40,0\n70,1\n",
    "logits.csv": "p,y\n-3.2,0\n2.5,1\n0.1,0\n",
    "words.csv": "p,y\n0.5,no\n0.7,yes\n",
    "soft.csv": "p,y\n0.5,0.5\n0.7,1\n0.7,0\n",
    "missing.csv": "p,y\n,0\n0.7,1\n",
    "alike.csv": "p,y\n0.5,1\n0.6,1\n",
    "empty.csv": "p,y\n",
    "answers.jsonl": '{"question_id": 1, "model": "a", "confidence": 0.9, "correct": 1}\n' * 20,
    "one.jsonl": '{"question_id": 1, "confidence": 0.9, "correct": true}\n' * 40,
    "part.jsonl": '{"confidence": 0.5, "correct": 0.5}\n{"confidence": 0.5, "correct": 1}\n',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("mistakes")
    draw = np.random.default_rng(5)
    p = draw.random(60)
    y = draw.integers(0, 2, 60)
    table = {
        "p": p,
        "y": y,
        "q": draw.random(60),
        "day": np.arange(60) % 5 - 2,
        "id": np.arange(60),
        "one": ["same"] * 60,
        "logit": np.log(p / (1 - p)) * 5,
    }
    names = np.array(["a", "b", "c"])[np.arange(60) % 3]
    classes = {f"s_{name}": draw.dirichlet([1, 1, 1], 60)[:, 0] / 3 for name in "abc"}
    classes["s_c"] = 1 - classes["s_a"] - classes["s_b"]
    for name, columns in {
        "rows": table,
        "better": {"p": p, "p_recalibrated": p},
        "classes": {**classes, "y": names},
    }.items():
        pyarrow.parquet.write_table(pyarrow.table(columns), here / f"{name}.parquet")
    (here / "cut.parquet").write_bytes((here / "rows.parquet").read_bytes()[:500])
    for name, by, scale in (
        ("sketch", "day", "probability"),
        ("models", "model", "probability"),
        ("both", ["day", "model"], "probability"),
        ("scaled", "day", "logit"),
    ):
        sketches = cal.scan({**table, "model": names}, y_true="y", y_prob="p", by=by, scale=scale)
        cal.save(sketches, here / f"{name}.json")
    cal.recalibration.PlattRecalibrator().fit(p, y).save(here / "map.json")
    for name, text in TEXTS.items():
        (here / name).write_text(text)
    return here


@pytest.mark.parametrize("line", MISTAKES.strip().splitlines())
def test_a_mistake_is_told_once_in_command_words(calibrant, folder, monkeypatch, line) -> None:
    """What follows two spaces and # stands in the message."""
    monkeypatch.chdir(folder)
    before = {path.name for path in folder.glob("[!.]*")}
    words, _, named = line.partition("  # ")
    done = calibrant(*shlex.split(words))
    assert (done.code, done.out, done.err.count("Error")) == (2, "", 1), done.err
    said = done.err.splitlines()[-1]  # what was read is told before
    assert said.startswith("Error: ")
    assert named in said
    assert not LIBRARY_WORDS.search(done.err), done.err
    assert "?." not in said
    assert {path.name for path in folder.glob("[!.]*")} == before


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


@pytest.mark.parametrize(
    ("words", "cure"),
    [
        ("assess rows.parquet --alpha 0.1", "`--confidence`"),
        ("assess rows.parquet --group day", "`--by`"),
        ("assess rows.parquet --n-bins 5", "expected_calibration_error"),
        ("assess rows.parquet --title mine", "option of `plot`"),
        ("certify rows.parquet --correction bh", "option of `assess`, `compare`, `plot`, `report`"),
        ("assess rows.parquet --confidense 0.9", "--confidence"),
        ("assess rows.parquet --prob", "requires an argument"),
        ("certify rows.parquet --prob p --label y --risk x", "`--risk` must be numbers"),
    ],
)
def test_an_option_of_another_name_or_verb_is_refused_with_its_place(calibrant, words, cure):
    finished = calibrant(*words.split())
    assert finished.code == 2
    assert cure in finished.err


def test_risks_may_be_percentages_and_words_are_spelled_as_in_python(calibrant, parquet):
    given = ("certify", parquet, "--prob", "p", "--label", "y", "--json", "--risk")
    assert calibrant(*given, "20%").json == calibrant(*given, "0.2").json
    refused = calibrant("assess", parquet, "--prob", "p", "--multiclass", "top_label")
    assert "column per class" in refused.err
