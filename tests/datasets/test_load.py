from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from tests.refusals import refused

from calibrant import datasets
from calibrant.datasets import cache_folder, catalogue
from calibrant.errors import CalibrantError


def test_what_is_nowhere_names_the_command_that_fetches_it(cache):
    with refused(holds=("bench.originals", str(cache)), kind=CalibrantError):
        datasets.load("fmi_rain_tampere_2003")


def test_unknown_names_are_input_errors_with_a_hint():
    with refused("name", "imagenet_resnet43", holds="'imagenet_resnet34'"):
        datasets.load("imagenet_resnet43")


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
    assert loaded.n == catalogue()[name].rows
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
