from __future__ import annotations

import numpy as np
import pytest
from tests.refusals import refused

from calibrant import datasets


@pytest.mark.parametrize("shape", datasets.SHAPES)
def test_outcomes_follow_the_true_curve(shape):
    drawn = datasets.generate(shape, 200_000)
    truth = drawn.truth(drawn.p)
    assert ((truth >= 0) & (truth <= 1)).all()
    independent = 8 if shape == "clustered" else 1
    for part in np.array_split(np.argsort(drawn.p, kind="stable"), 10):
        spread = np.sqrt((truth[part] * (1 - truth[part])).sum() * independent)
        assert abs((drawn.y[part] - truth[part]).sum()) <= 4.5 * spread + 1e-9


@pytest.mark.parametrize("shape", datasets.SHAPES)
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(shape):
    one, two = (datasets.generate(shape, 500, random_state=3) for _ in range(2))
    assert one.p.tobytes() == two.p.tobytes()
    assert one.y.tobytes() == two.y.tobytes()
    assert datasets.generate(shape, 500, random_state=4).p.tobytes() != one.p.tobytes()
    assert not one.p.flags.writeable
    assert one.to_dict()["n"] == 500
    assert shape in repr(one)


def test_the_shapes_are_what_their_names_say():
    assert len(np.unique(datasets.generate("lattice", 10_000).p.round(9))) == 11
    assert len(np.unique(datasets.generate("lattice", 10_000).p)) > 11
    assert (datasets.generate("end_heavy", 10_000).p == 1.0).mean() == pytest.approx(0.5, abs=0.05)
    assert datasets.generate("rare_events", 100_000).y.mean() == pytest.approx(0.002, abs=0.001)
    assert datasets.generate("calibrated").calibration_gap() == 0.0
    clustered = datasets.generate("clustered", 800)
    for group in range(100):
        assert len(set(clustered.y[clustered.cluster == group])) == 1


def test_the_paper_sample_is_the_paper_sample(converted):
    pandas = pytest.importorskip("pandas")
    paper = pandas.read_parquet(converted / "synthetic_toy.parquet")
    drawn = datasets.generate("paper_sine", 1000)
    assert drawn.p.tolist() == paper["p"].tolist()
    assert drawn.y.tolist() == paper["y"].tolist()
    assert drawn.truth(drawn.p) == pytest.approx(paper["true_prob"].to_numpy(), abs=1e-15)


def test_unknown_shapes_and_empty_samples_are_input_errors():
    with refused("shape", "cosine", holds="paper_sine"):
        datasets.generate("cosine")
    with refused("n", 0):
        datasets.generate("sine", 0)
