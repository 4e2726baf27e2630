"""Files give back every bit; a damaged or hostile one is an InputError, never a crash or a wrong sketch."""

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refused

from calibrant import InputError, Sketch, Sketches
from calibrant.data import Scale
from calibrant.data.sketch_file import from_json, load, save, to_json
from calibrant.data.sketches import from_table, to_table
from calibrant.errors import MergeError

GOLDEN = Path(__file__).parents[1] / "golden" / "sketches"


def examples():
    p = [0.0, 0.2, 0.2000001, 0.7, 1.0, 1 - 0.8]
    plain = Sketch.from_arrays([0, 1, 0, 1, 1, 0], p)
    weighted = Sketch.from_arrays([0, 1, 0, 1, 1, 0], p, sample_weight=[1, 0.1, 2, 1e-9, 0, 3.3])
    dropped = Sketch.from_arrays([0, 5, 1], [0.1, 0.2, np.nan], on_invalid="drop", nodes=256)
    return {
        "plain": plain,
        "weighted": weighted,
        "soft": Sketch.from_arrays([0.25, 0.5, 1.0], [0.3, 0.3, 0.9], labels="soft"),
        "dropped": dropped,
        "grouped": Sketches(
            {("vit", 1): plain, ("résnet", 2): plain.rebin(2**16)}, by=["model", "day"]
        ),
        "one_column": Sketches({"a": plain, "b": Sketch.from_arrays([1], [0.5])}, by="model"),
    }


@pytest.mark.parametrize("name", examples())
@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_round_trip(name, suffix, tmp_path):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    sketch = examples()[name]
    path = save(sketch, tmp_path / f"{name}.{suffix}")
    assert load(path) == sketch
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", examples())
def test_files_of_version_1_stay_readable(name):
    """These files were written by version 1 of the format, and are never written again."""
    assert load(GOLDEN / f"v1_{name}.json") == examples()[name]
    if name in ("plain", "weighted", "grouped"):
        pytest.importorskip("pyarrow")
        assert load(GOLDEN / f"v1_{name}.parquet") == examples()[name]


@pytest.mark.parametrize("name", examples())
def test_files_of_version_2_stay_readable_and_are_written_alike(name):
    path = GOLDEN / f"v2_{name}.json"
    assert load(path) == examples()[name]
    assert to_json(examples()[name]) == path.read_text(encoding="utf-8")
    pytest.importorskip("pyarrow")
    assert load(path.with_suffix(".parquet")) == examples()[name]


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 1), st.floats(0, 1), st.floats(1e-3, 1e9)), min_size=1, max_size=20
    )
)
def test_any_sketch_survives_json_and_a_table(rows):
    y, p, w = zip(*rows, strict=True)
    for sketch in (Sketch.from_arrays(y, p), Sketch.from_arrays(y, p, sample_weight=w)):
        assert from_json(to_json(sketch)) == sketch
        assert from_table(to_table(sketch), nodes=sketch.nodes) == sketch


def test_repeated_rows_of_a_table_are_summed():
    sketch = examples()["plain"]
    table = {name: np.concatenate([column, column]) for name, column in to_table(sketch).items()}
    assert from_table(table, nodes=sketch.nodes) == sketch + sketch


def read_or_refuse(read, argument):
    """What was read, or None where it was refused in the proper way."""
    try:
        sketch = read(argument)
    except (InputError, MergeError):  # the latter where sums would overflow
        return None
    assert isinstance(sketch, Sketch | Sketches)
    return sketch


def header(**changes):
    """As of a file of version 1, whose content is not covered by a checksum."""
    content = json.loads((GOLDEN / "v1_plain.json").read_text(encoding="utf-8"))
    return {**content, **changes}


def columns(**changes):
    content = header()
    return {**content, "columns": {**content["columns"], **changes}}


ROWS = len(header()["columns"]["cell"])
HOSTILE = [
    "",
    "null",
    "[]",
    "{}",
    '{"columns": 3}',
    "[" * 100_000,
    '{"a":' * 100_000,
    "{'cell': __import__('os')}",
    json.dumps(header(format="other")),
    json.dumps(header(version=2)),
    json.dumps(header(version=3)),
    json.dumps(header(checksum="0" * 64)),
    json.dumps(header(version="1")),
    json.dumps(header(nodes=1000)),
    json.dumps(header(nodes=2**60)),
    json.dumps(header(nodes=None)),
    json.dumps(header(scale="celsius")),
    json.dumps(header(scale=None)),
    json.dumps(header(by="model")),
    json.dumps(header(by=["model"])),
    json.dumps(header(by=["cell"])),
    json.dumps(header(columns={})),
    json.dumps(header(columns={"cell": [1]})),
    json.dumps(columns(cell=[-99] * ROWS)),
    json.dumps(columns(cell=[2**16 + 1] * ROWS)),
    json.dumps(columns(cell=[1.5] * ROWS)),
    json.dumps(columns(cell=["1"] * ROWS)),
    json.dumps(columns(cell=[[1]] * ROWS)),
    json.dumps(columns(cell=[10**400] * ROWS)),
    json.dumps(columns(cell=[1])),
    json.dumps(columns(label=[2] * ROWS)),
    json.dumps(columns(count=[-1] * ROWS)),
    json.dumps(columns(count=[2**62] * ROWS)),
    json.dumps(columns(count=[float("nan")] * ROWS)),
    json.dumps(columns(offset=[2**40] * ROWS)),
    json.dumps(columns(weight=[1.0] * ROWS)),
    json.dumps(
        columns(weight=[float("inf")] * ROWS, squared_weight=[1] * ROWS, weighted_offset=[0] * ROWS)
    ),
    json.dumps(
        columns(weight=[1] * ROWS, squared_weight=[1] * ROWS, weighted_offset=[1e30] * ROWS)
    ),
    json.dumps(columns(weight=[-1] * ROWS, squared_weight=[1] * ROWS, weighted_offset=[0] * ROWS)),
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:40])
def test_hostile_json_is_refused(text):
    assert read_or_refuse(from_json, text) is None


def test_files_that_are_no_sketches_are_refused(tmp_path):
    for name, content in {
        "a.json": b"\xff\xfe\x00",
        "b.parquet": b"PAR1 is not enough PAR1",
        "c.parquet": b"",
        "d.json": b"",
        "e.csv": b"cell,label",
        "f": b"",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError) as unreadable:
            load(tmp_path / name)
        assert name in str(unreadable.value) or Path(unreadable.value.file or "").name == name
    with pytest.raises(InputError) as missing:
        load(tmp_path / "missing.json")
    assert missing.value.file == str(tmp_path / "missing.json")
    with refused(seen="sketch.pkl"):
        save(examples()["plain"], tmp_path / "sketch.pkl")


def test_a_group_column_must_not_hide_a_column_of_the_table(tmp_path):
    with refused(seen="cell"):
        to_json(Sketches({1: examples()["plain"]}, by="cell"))


def test_sketches_on_different_grids_are_not_saved_as_one():
    """A file has one grid in its header: groups on two would be read back wrong."""
    plain = examples()["plain"]
    with refused(holds=(".rebin", "256 nodes"), kind=MergeError):
        to_json(Sketches({"a": plain, "b": plain.rebin(256)}, by="model"))


@pytest.mark.parametrize("suffix", ["json", "parquet"])
class TestWhatCannotBeReadAgainIsNotWritten:
    def test_a_scale_of_ones_own(self, suffix, tmp_path):
        cube = Scale(lambda p: p**3, np.cbrt, name="cube")
        with refused("scale", "cube"):
            save(Sketch.from_arrays([0, 1], [0.2, 0.7], scale=cube), tmp_path / f"a.{suffix}")
        assert not list(tmp_path.iterdir())

    def test_groups_that_the_format_does_not_hold(self, suffix, tmp_path):
        one = Sketch.from_arrays([0, 1], [0.2, 0.7])
        keys = {"json": [date(2026, 1, 1)], "parquet": [1, "a"]}[suffix]
        for wrong in (keys, [(1, 2)]):
            with refused(column="g" if wrong == [(1, 2)] else None):
                save(Sketches(dict.fromkeys(wrong, one), by="g"), tmp_path / f"a.{suffix}")

    def test_what_is_no_sketch(self, suffix, tmp_path):
        with refused("sketch"):
            save([0.2], tmp_path / f"a.{suffix}")
        with refused("path", holds="none"):
            save(Sketch.empty(), tmp_path / "none" / f"a.{suffix}")

    def test_a_group_without_a_value_stays_one_group(self, suffix, tmp_path):
        groups = Sketches({float("nan"): Sketch.from_arrays([0, 1], [0.2, 0.7])}, by="g")
        (sketch,) = load(save(groups, tmp_path / f"a.{suffix}")).values()
        assert sketch.n == 2


def test_no_file_holds_a_sketch_on_a_scale_without_a_grid():
    with refused(seen="boosting"):
        from_json(json.dumps(header(scale="boosting")))
