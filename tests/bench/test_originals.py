"""Originals are fetched whole, converted to the rows on record, or refused; each layout is read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench.originals import CONVERTERS, fetch
from tests.refusals import refused

from calibrant.datasets import Source, fingerprint
from calibrant.errors import CalibrantError

TEXT = b"true_label,pred_label,confidence\n1,1,0.25\n0,1,0.5\n3,3,1.0\n"
ROWS = {"p": np.array([0.25, 0.5, 1.0]), "y": np.array([1, 0, 1])}
SMALL = Source(
    name="small",
    title="Three rows",
    repository="owner/repo",
    commit="0abc",
    paths=("folder/of rows.csv",),
    converter="confidences",
    rows=3,
    fingerprint=fingerprint(ROWS),
    licence="CC0",
    citations=("Nobody (2020).",),
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("CALIBRANT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def published(folder: Path, source: Source, path: str, content: bytes) -> None:
    file = folder / source.repository / source.commit / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def test_an_original_is_converted_checked_and_cached(cache, tmp_path):
    published(tmp_path, SMALL, SMALL.paths[0], TEXT)
    found = fetch(SMALL, tmp_path.as_uri())
    assert found.p.tolist() == [0.25, 0.5, 1.0]
    assert found.y.tolist() == [1, 0, 1]
    assert found["pred_label"].tolist() == [1, 1, 3]
    assert [path.name for path in cache.iterdir()] == ["small.npz"]


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"",
        b"true_label,pred_label\n1,1\n",
        TEXT + b"1,1\n",
        TEXT.replace(b"0.5", b"half"),
        TEXT.replace(b"0.25", b"0.26"),
    ],
    ids=["missing", "empty", "no column", "short row", "not a number", "another value"],
)
def test_what_is_not_the_original_is_an_error_and_is_never_cached(cache, tmp_path, body):
    if body is not None:
        published(tmp_path, SMALL, SMALL.paths[0], body)
    with refused(holds=tmp_path.as_uri(), kind=CalibrantError):
        fetch(SMALL, tmp_path.as_uri())
    assert not cache.exists()


def test_several_projects_are_joined_and_unknown_outcomes_left_out(tmp_path):
    (tmp_path / "games.csv").write_text(
        "season,date,prob1,prob1_outcome\n2020,2020-01-02,0.25,1\n2020,2020-01-03,0.5,0.5\n"
    )
    (tmp_path / "votes.csv").write_text("probwin,probwin_outcome,other\n0.75,0,7\n,1,7\n")
    columns = CONVERTERS["checked_forecasts"]([tmp_path / "games.csv", tmp_path / "votes.csv"])
    assert columns["p"].tolist() == [0.25, 0.75]
    assert columns["y"].tolist() == [1, 0]
    assert columns["project"].tolist() == ["games", "votes"]
    assert columns["date"].tolist() == ["2020-01-02", ""]


def test_a_pickle_that_names_anything_but_arrays_is_refused(tmp_path):
    path = tmp_path / "hostile.p"
    path.write_bytes(b"cos\nsystem\n(S'echo hostile'\ntR.")
    with refused(holds="os.system"):
        CONVERTERS["pickled_logits"]([path])


def test_the_fingerprint_ignores_order_and_last_bits_but_no_row():
    p, y = np.array([0.3, 0.1, np.nan]), np.array([1, 0, 1])
    same = fingerprint({"p": p, "y": y})
    assert fingerprint({"p": p[::-1], "y": y[::-1]}) == same
    assert fingerprint({"p": np.nextafter(p, 1), "y": y}) == same
    assert fingerprint({"p": p + 1e-8, "y": y}) != same
    assert fingerprint({"p": p, "y": 1 - y}) != same
    assert fingerprint({"p": p[:2], "y": y[:2]}) != same
