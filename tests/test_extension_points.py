"""A map, a format and a theme from outside the package: one definition, and every door knows it."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.io import columnar, files
from calibrant.plotting import themes
from calibrant.recalibration import learned_map

RNG = np.random.default_rng(0)
P = RNG.random(400)
Y = (RNG.random(400) < P**2).astype(int)


@pytest.fixture(autouse=True)
def registries():
    """What was registered before is all that other tests see."""
    learned_map.registered_maps(), files.formats()
    every = learned_map._KINDS, learned_map._NAMES, files._FORMATS, themes._REGISTERED
    before = [dict(one) for one in every]
    yield
    for one, kept in zip(every, before, strict=True):
        one.clear()
        one.update(kept)


def run(*words) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert ended.value.code in (0, None)


def define_map():
    @learned_map.register("two-bins")
    class TwoBins(learned_map.Recalibrator):
        """Histogram binning with two bins: the observed frequency below and above one half."""

        parts: ClassVar = {"low": float, "high": float}

        def _learn(self, training):
            points = training.points
            below = points.p < 0.5
            low, high = (
                part[:, 1].sum() / part.sum() for part in (points.mass[below], points.mass[~below])
            )
            return {"low": low, "high": high}

        def _apply(self, p, state):
            return np.where(p < 0.5, state["low"], state["high"])

        def _breaks(self, state):
            return np.empty(0), np.array([0.5])

    return TwoBins


def test_a_map_is_fitted_saved_chosen_and_named_on_the_command_line(tmp_path):
    fitted = define_map()().fit(P, Y)
    assert fitted.transform([0.1, 0.9]) == pytest.approx([Y[P < 0.5].mean(), Y[P >= 0.5].mean()])
    fitted.save(tmp_path / "map.json")
    loaded = cal.load_recalibrator(tmp_path / "map.json")
    assert np.array_equal(loaded.transform(P), fitted.transform(P))
    choice = cal.choose_recalibrator(Y, P, candidates={"two-bins": type(fitted)()})
    assert choice.candidates[0].name == "two-bins"
    rows = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"y": Y, "p": P}), rows)
    run("recalibrate", rows, "--method", "two-bins", "-o", tmp_path / "own.json")
    assert cal.load_recalibrator(tmp_path / "own.json").to_dict() == fitted.to_dict()


def test_a_format_is_read_alone_in_a_folder_and_by_the_command_line(tmp_path):
    @files.file_format("npy", ".dat")  # an ending that is refused while no format has it
    class NumpyFile(columnar._ColumnarFile):
        """Structured array: one piece."""

        def open(self):
            with self.file.open() as handle:
                rows = np.load(pa.BufferReader(handle.read()))
            table = pa.table({name: rows[name] for name in rows.dtype.names})
            self.schema = table.schema
            self.pieces = [
                columnar._Piece(rows.size, lambda names, most: table.select(names).to_batches(most))
            ]

    with open(tmp_path / "rows.dat", "wb") as file:
        np.save(file, np.rec.fromarrays([Y, P], names="y,p"))
    expected = cal.Sketch.from_arrays(Y, P)
    for source in (tmp_path / "rows.dat", tmp_path, tmp_path / "*.dat"):
        assert cal.scan(source, y_true="y", y_prob="p") == expected
    run("assess", tmp_path / "rows.dat")


def test_a_theme_colours_a_diagram_a_report_and_a_picture_of_the_command_line(tmp_path):
    themes.register_theme(replace(themes.LIGHT, name="sepia", paper="#f4ecd8"))
    ax = cal.reliability_diagram(Y, P).plot(theme="sepia")
    assert ax.figure.get_facecolor()[:3] == pytest.approx((0xF4 / 255, 0xEC / 255, 0xD8 / 255))
    rows = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"y": Y, "p": P}), rows)
    run("plot", rows, "--theme", "sepia", "-o", tmp_path / "a.svg")
    assert "#f4ecd8" in (tmp_path / "a.svg").read_text()
