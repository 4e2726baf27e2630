"""What `scan` takes, and what it refuses at once."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest
from tests.refusals import refused

import calibrant as cal


def scan(source, **options):
    return cal.scan(source, y_true="y", y_prob="p", **options)


def test_what_is_no_source_is_refused(tmp_path):
    frame = pd.DataFrame({"p": [0.5], "y": [1], "g": ["a"]})
    given = ("an iterator must give", "must be a frame, with columns")
    for source, said in (
        ([frame, "a.parquet"], given[0]),
        (iter([tmp_path / "a.parquet", frame]), given[0]),
        (pl.DataFrame(frame).group_by("g"), given[0]),
        (frame.groupby("g"), given[0]),
        (frame["p"], given[1]),
        ([None], given[0]),
    ):
        with pytest.raises(cal.InputError, match=said):
            scan(source)


def test_groups_are_given_one_way():
    batch = {"p": [0.5] * 5, "y": [1] * 5, "g": "abcde"}
    with refused(seen="abcde"):
        scan([batch], by="g")
    with refused("by"):
        scan(batch, by={})
    with refused("cluster", "x"):
        scan(batch, by={"x": "p"}, cluster={"x": "y"})
