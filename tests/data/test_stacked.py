"""Sketches in one table are the sketches that went in."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.sketches import Sketches, Stacked


def sketches(weighted):
    rng = np.random.default_rng(0)
    made = []
    for rows in (5, 1, 40, 3):
        weight = rng.random(rows) if weighted else None
        made.append(
            cal.Sketch.from_arrays(
                np.append(rng.integers(0, 2, rows), 2),
                rng.random(rows + 1),
                sample_weight=None if weight is None else np.append(weight, 1.0),
                on_invalid="drop",
            )
        )
    return [*made, cal.Sketch.empty()]


@pytest.mark.parametrize("weighted", [False, True])
def test_stacked_sketches_come_back_and_add_up(weighted):
    parts = sketches(weighted)
    stacked = Stacked.of(parts)
    alike = [0 + part for part in parts]
    if weighted:  # the empty one is stacked with weights too
        alike[-1] = stacked[4]
    assert list(stacked) == alike
    assert stacked[-1].n == 0
    assert stacked.rows.tolist() == [part.n for part in parts]
    assert stacked.total() == Sketches(dict(enumerate(parts)), by="part").total()
    assert list(stacked.with_weight()) == alike[:4]
    order = np.array([3, 0, 4, 2])
    assert list(stacked.taken(order)) == [alike[place] for place in order]


def test_a_packed_group_that_was_asked_for_can_be_updated():
    parts = sketches(weighted=False)
    groups = Sketches.from_stacked("abcde", Stacked.of(parts), by="letter")
    assert groups == Sketches(dict(zip("abcde", parts, strict=True)), by="letter")
    copied = groups.roll_up("letter")
    groups["a"].update([1, 0], [0.5, 0.4])
    assert groups["a"].n == copied["a"].n + 2 == parts[0].n + 2
    assert groups.total().n == copied.total().n + 2
    assert pickle.loads(pickle.dumps(groups)) == groups
