"""What `scan` takes, and what it refuses at once."""

from __future__ import annotations

import pandas as pd
import polars as pl
from tests.refusals import refused

import calibrant as cal


def scan(source, **options):
    return cal.scan(source, y_true="y", y_prob="p", **options)


def test_what_is_no_source_is_refused(tmp_path):
    frame = pd.DataFrame({"p": [0.5], "y": [1], "g": ["a"]})
    for source in (
        [frame, "a.parquet"],
        iter([tmp_path / "a.parquet", frame]),
        pl.DataFrame(frame).group_by("g"),
        frame.groupby("g"),
        frame["p"],
        [None],
    ):
        with refused("data"):
            scan(source)


def test_groups_are_given_one_way():
    batch = {"p": [0.5] * 5, "y": [1] * 5, "g": "abcde"}
    with refused(seen="abcde"):
        scan([batch], by="g")
    with refused("by"):
        scan(batch, by={})
    with refused("cluster", "x"):
        scan(batch, by={"x": "p"}, cluster={"x": "y"})
