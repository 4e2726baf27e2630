"""The worker that runs inside the peers' environments, asked here about calibrant itself."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from bench.peers import accuracy, robustness
from bench.peers.adapters import PEERS
from bench.peers.asking import NoAnswer, ask

import calibrant
from bench import environments
from calibrant import datasets


@pytest.fixture
def rows(tmp_path):
    drawn = datasets.generate("overconfident", 5000)
    np.save(tmp_path / "p.npy", drawn.p)
    np.save(tmp_path / "y.npy", drawn.y.astype(np.int64))
    return drawn, str(tmp_path / "p.npy"), str(tmp_path / "y.npy")


def test_values_come_back_with_the_version(rows):
    drawn, p, y = rows
    answer = ask("calibrant", "values", files={"drawn": [p, y]})
    assert answer["values"]["drawn"] == calibrant.smooth_ece(drawn.y, drawn.p)
    assert answer["version"] == calibrant.__version__


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_cost_counts_time_and_memory_beside_the_plain_sum(rows):
    _, p, y = rows
    answer = ask("calibrant", "cost", p=p, y=y, repeat=3, budget=5.0)
    assert answer["seconds"] > answer["sum"] > 0
    assert answer["repeats"] == 3
    assert 0 <= answer["megabytes"] < 50


def test_calibrant_refuses_every_input_that_cannot_be_right():
    answers = ask("calibrant", "bad inputs")["answers"]
    assert "number" in answers.pop("clean")
    assert {answer["error"] for answer in answers.values()} == {"InputError"}
    shown, said = robustness.tables(
        {"calibrant": {"clean": {"number": 0.1, "warned": ""}, **answers}}
    )
    assert shown.rows[0][1] == "0.1"
    assert len(said.rows) == len(answers)


def test_intervals_come_back_one_a_sample(tmp_path):
    drawn = [datasets.generate("overconfident", 500, seed=seed) for seed in range(2)]
    np.save(tmp_path / "p.npy", np.stack([one.p for one in drawn]))
    np.save(tmp_path / "y.npy", np.stack([one.y for one in drawn]))
    answer = ask("calibrant", "intervals", p=str(tmp_path / "p.npy"), y=str(tmp_path / "y.npy"))
    for low, high in answer["intervals"]:
        assert 0 <= low < high < 1


def test_a_failure_is_told_and_not_swallowed(rows):
    with pytest.raises(NoAnswer, match="FileNotFoundError"):
        ask("calibrant", "values", files={"drawn": [rows[1], "nowhere.npy"]})


def test_every_peer_has_an_environment_with_its_pinned_version():
    for peer in PEERS.values():
        if peer.environment == environments.OWN:
            continue
        pinned = (environments.REQUIREMENTS / f"{peer.environment}.txt").read_text()
        assert f"{peer.distribution}==" in pinned


def test_exact_values_of_a_target_suit_the_target():
    drawn = datasets.generate("sine", 400)
    folded = accuracy.exact_values("smooth confidence", drawn.p, drawn.y)
    confidence = np.maximum(drawn.p, 1 - drawn.p)
    correct = (drawn.p >= 0.5) == drawn.y
    assert folded[0] == pytest.approx(calibrant.smooth_ece(correct, confidence), abs=1e-6)
    assert len(accuracy.exact_values("binned", drawn.p, drawn.y)) == 2
