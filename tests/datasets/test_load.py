from __future__ import annotations

import io
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.refusals import refused

from calibrant import datasets
from calibrant.datasets.catalogue import CATALOGUE, Source
from calibrant.datasets.convert import fingerprint
from calibrant.datasets.fetch import cache_folder, download
from calibrant.errors import CalibrantError

TEXT = b"true_label,pred_label,confidence\n1,1,0.25\n0,1,0.5\n3,3,1.0\n"
ROWS = {"p": np.array([0.25, 0.5, 1.0]), "y": np.array([1, 0, 1])}


@pytest.fixture
def small(monkeypatch, mirror):
    source = Source(
        "small", "Three rows", "owner/repo", "0abc", ("folder/of rows.csv",), "confidences", 3,
        fingerprint(ROWS), "CC0", ("Nobody (2020).",),
    )  # fmt: skip
    monkeypatch.setitem(CATALOGUE, "small", source)
    path = "/owner/repo/0abc/folder/of%20rows.csv"
    mirror.files[path] = TEXT
    return path


def leftovers(folder: Path) -> list[Path]:
    return list(folder.rglob("*")) if folder.exists() else []


def test_a_download_is_converted_checked_cached_and_credited(small, mirror, cache, capsys):
    loaded = datasets.load("small", mirror=mirror.address)
    assert loaded.p.tolist() == [0.25, 0.5, 1.0]
    assert loaded.y.tolist() == [1, 0, 1]
    assert loaded["pred_label"].tolist() == [1, 1, 3]
    said = capsys.readouterr().err
    assert "CC0" in said
    assert "Nobody (2020)." in said
    assert [path.name for path in leftovers(cache)] == ["small.npz"]

    again = datasets.load("small", mirror=mirror.address)
    assert mirror.requests == [small]
    assert again.p.tolist() == loaded.p.tolist()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("fault", ["interrupted", "corrupted", "no length"])
def test_what_arrives_damaged_is_an_error_and_is_never_cached(small, mirror, cache, fault):
    mirror.faults[small] = fault
    with pytest.raises(datasets.DownloadError):
        datasets.load("small", mirror=mirror.address)
    assert leftovers(cache) == []
    del mirror.faults[small]
    assert datasets.load("small", mirror=mirror.address).n == 3


def test_an_interrupted_download_says_how_much_came(mirror, tmp_path):
    mirror.files["/a"] = b"x" * 100
    mirror.faults["/a"] = "interrupted"
    with refused(file="a", kind=datasets.DownloadError):
        download(f"{mirror.address}/a", tmp_path / "a")
    assert leftovers(tmp_path) == []


def test_a_download_is_never_resumed(mirror, tmp_path):
    mirror.files["/a"] = b"whole"
    (tmp_path / "a").write_bytes(b"wh")
    download(f"{mirror.address}/a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_missing_files_and_servers_are_download_errors(small, mirror, cache):
    mirror.files.clear()
    with refused(holds=("404", "CALIBRANT_DATA"), kind=datasets.DownloadError):
        datasets.load("small", mirror=mirror.address)
    with refused(holds="127.0.0.1:9", kind=datasets.DownloadError):
        datasets.load("small", mirror="http://127.0.0.1:9")
    assert leftovers(cache) == []


@pytest.mark.parametrize(
    "body",
    [b"", b"true_label,pred_label\n1,1\n", TEXT + b"1,1\n", TEXT.replace(b"0.5", b"half")],
    ids=["empty", "no column", "short row", "not a number"],
)
def test_another_layout_is_a_download_error(small, mirror, cache, body):
    mirror.files[small] = body
    with refused(holds=("small", mirror.address), kind=datasets.DownloadError):
        datasets.load("small", mirror=mirror.address)
    assert leftovers(cache) == []


def test_a_damaged_cache_is_an_error_that_names_the_file(small, mirror, cache):
    datasets.load("small", mirror=mirror.address)
    np.savez(cache / "small.npz", p=ROWS["p"] / 2, y=ROWS["y"])
    with refused(file="small.npz", kind=datasets.DownloadError):
        datasets.load("small", mirror=mirror.address)


def test_a_bar_is_drawn_on_a_terminal_only(mirror, tmp_path):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    mirror.files["/rows.csv"] = b"x" * 200_000
    terminal, pipe = Terminal(), io.StringIO()
    download(f"{mirror.address}/rows.csv", tmp_path / "a", stream=terminal)
    download(f"{mirror.address}/rows.csv", tmp_path / "a", stream=pipe)
    assert "[########################] 0.2 MB of 0.2 MB" in terminal.getvalue()
    assert pipe.getvalue() == ""


def test_unknown_names_are_input_errors_with_a_hint():
    with refused("name", "imagenet_resnet43", holds="'imagenet_resnet34'"):
        datasets.load("imagenet_resnet43")
    assert issubclass(datasets.DownloadError, CalibrantError)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_cache_is_where_the_system_keeps_caches(platform, monkeypatch, tmp_path):
    monkeypatch.delenv("CALIBRANT_CACHE", raising=False)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", platform)
    assert cache_folder().name == "calibrant"
    assert cache_folder().is_relative_to(tmp_path)


@pytest.mark.parametrize("name", datasets.names())
def test_every_converted_file_has_the_rows_on_record(name, converted):
    loaded = datasets.load(name)
    assert loaded.n == CATALOGUE[name].rows
    assert not any(values.flags.writeable for values in loaded.columns.values())
    assert loaded.to_dict()["licence"]
    assert name in repr(loaded)
    assert name in loaded._repr_html_()


@pytest.mark.parametrize("name", datasets.names())
def test_every_set_is_addressed_by_commit_over_https(name):
    for address in datasets.describe(name).addresses():
        parts = urlsplit(address)
        assert parts.scheme == "https"
        commit = parts.path.split("/")[3]
        assert len(commit) >= 10
        assert set(commit) <= set("0123456789abcdef")
