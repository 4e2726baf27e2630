"""Where a peer cannot be installed, every study goes on and says so."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from bench.peers import accuracy, agreement, asking, coverage, robustness
from bench.peers.adapters import PEERS

from bench import costs, environments, speed
from calibrant import datasets


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def make(name):
        if name != environments.OWN:
            raise subprocess.CalledProcessError(1, "pip")
        return environments.python_of(name)

    for module in (asking, agreement):
        monkeypatch.setattr(module, "make", make)
    few = {name: PEERS[name] for name in ("calibrant", "relplot")}
    for module in (accuracy, coverage, robustness):
        monkeypatch.setattr(module, "PEERS", few)


def test_accuracy_has_a_row_without_a_number(monkeypatch):
    drawn = datasets.generate("sine", 300)
    monkeypatch.setattr(accuracy, "data", lambda largest: {"sine": (drawn.p, drawn.y)})
    by_set, summary = accuracy.tables(accuracy.study(1000))
    assert by_set.rows[0][-1] == "none"
    assert summary.rows[1][3] == "its environment could not be made"


def test_costs_promise_nothing_that_was_not_measured():
    measured = costs.measure(["calibrant", "relplot"], [1000], repeat=2, budget=1.0)
    assert costs.rows(measured, [1000])[1][2] == "its environment could not be made"
    measured["scikit-learn"] = measured["relplot"]
    assert speed.promises(measured, 1000, 1000).rows[0][2] == "not measured"


def test_bad_input_and_coverage_go_on(monkeypatch):
    monkeypatch.setattr(coverage, "SHAPES", ("sine",))
    assert (
        robustness.tables(robustness.study())[0].rows[1][1] == "its environment could not be made"
    )
    assert coverage.tables(coverage.study(1))[0].rows[1][3] == "its environment could not be made"


def test_companions_without_their_packages_say_so():
    assert {row[-1] for row in agreement.table().rows} == {"no answer"}


def test_make_makes_the_environment_of_the_peers_that_maps_are_compared_with():
    """Or the test of equality with them would be skipped everywhere."""
    rules = (Path(__file__).parents[2] / "Makefile").read_text()
    (needed,) = re.findall(r"^test-all: (.+)$", rules, flags=re.MULTILINE)
    assert "$(PEERS_OF_MAPS)" in needed
    stamp = environments.python_of("maps").parents[1] / ".installed"
    assert f"PEERS_OF_MAPS := {stamp.relative_to(Path(__file__).parents[2])}" in rules
    assert environments.requirements_of("maps")[0] == "torch==2.13.0"
