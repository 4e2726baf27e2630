"""Looking after every batch must not inflate false alarms, and must find what went wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from calibrant.data.sketch import Sketch
from calibrant.errors import InputError
from calibrant.inference.bets import BETS, INSIDE, log_gains
from calibrant.inference.monitor import Monitor


def _batch(
    rng: np.random.Generator, n: int = 50, power: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    p = rng.random(n)
    return (rng.random(n) < p**power).astype(int), p


def test_no_bet_gains_on_average_when_calibrated() -> None:
    """E[exp(log gain)] ≤ 1 for every bet, exactly: enumerate all outcomes of a few rows."""
    p = np.array([0.0, 0.003, 0.31, 0.311, 0.5, 0.97, 1.0])
    mean = np.zeros(len(BETS) + 1)
    learnt = np.linspace(0.3, -0.3, 9)
    for code in range(1 << p.size):
        y = (code >> np.arange(p.size)) & 1
        chance = float(np.prod(np.where(y == 1, p, 1 - p)))
        if chance > 0:
            batch = Sketch.from_arrays(y, p, nodes=64)
            mean += chance * np.exp(log_gains(batch, learnt))
    assert np.all(mean <= 1.0 + 1e-12)
    assert np.all(mean > 0.9)


def test_cells_never_make_a_bet_win() -> None:
    rng = np.random.default_rng(0)
    y, p = _batch(rng, 400)
    fine = log_gains(Sketch.from_arrays(y, p))
    exact = [
        float(np.sum(np.log1p((bet.alternative(p) - p) / (p * (1 - p)) * (y - p)))) for bet in BETS
    ]
    assert fine == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("nodes", [2, 8, 32])
def test_a_sketch_never_says_that_a_bet_won_more_than_it_did(nodes: int) -> None:
    y, p = _batch(np.random.default_rng(1), 400)
    low = np.floor(p * nodes) / nodes
    high = low + 1 / nodes
    middle = (low + high) / 2
    for bet, said in zip(BETS, log_gains(Sketch.from_arrays(y, p, nodes=nodes)), strict=True):
        stake = (bet.alternative(middle) - middle) / (middle * (1 - middle))
        stake = np.clip(stake, -INSIDE / (1 - low), INSIDE / high)
        won = float(np.sum(np.log1p(stake * (y - p))))
        assert said <= won + 1e-12


def test_few_false_alarms() -> None:
    alarms = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        monitor = Monitor(level=0.1)
        for _ in range(40):
            y, p = _batch(rng, 40)
            look = monitor.update(Sketch.from_arrays(y, p, nodes=256))
        alarms += look.alarm is not None
    assert alarms <= 4


def test_finds_a_change_and_says_since_when_and_which_way() -> None:
    rng = np.random.default_rng(1)
    monitor = Monitor()
    for day in range(1, 61):
        look = monitor.update(*_batch(rng, 100, power=1.0 if day <= 30 else 1.6))
        if look.alarm:
            break
    assert look.alarm is not None
    assert 30 < look.alarm.look <= 45
    assert abs(look.alarm.since - 31) <= 3
    assert look.alarm.direction == "over-forecasting"
    assert look.alarm.mean_error > 0.05
    assert look.p_value <= 0.05
    assert "miscalibrated since about look" in repr(monitor)


def test_overconfidence_is_named() -> None:
    rng = np.random.default_rng(2)
    monitor = Monitor()
    for _ in range(10):
        p = rng.random(300)
        look = monitor.update(rng.random(300) < 0.5 + 0.6 * (p - 0.5), p)
    assert look.alarm is not None
    assert look.alarm.direction == "over-confident"


def test_the_p_value_never_rises_again_and_the_alarm_stays() -> None:
    rng = np.random.default_rng(3)
    monitor = Monitor()
    looks = [monitor.update(*_batch(rng, 100, 1.5 if day < 20 else 1.0)) for day in range(40)]
    p_values = [look.p_value for look in looks]
    assert p_values == sorted(p_values, reverse=True)
    assert looks[-1].alarm == next(look.alarm for look in looks if look.alarm)


def test_sketches_and_arrays_give_the_same() -> None:
    rng = np.random.default_rng(4)
    y, p = _batch(rng)
    assert Monitor().update(y, p) == Monitor().update(Sketch.from_arrays(y, p))


def test_state_survives_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    first = Monitor(level=0.01)
    for _ in range(5):
        first.update(*_batch(rng, power=1.3))
    first.save(tmp_path / "state.json")
    second = Monitor.load(tmp_path / "state.json")
    y, p = _batch(rng)
    assert second.last == first.last
    assert second.update(y, p) == first.update(y, p)
    assert Monitor.from_json(Monitor().to_json()).n == 0


def test_batches_on_different_grids_mix() -> None:
    """Each is bet on with its own cells; and a coarser past bets no worse than chance allows."""
    rng = np.random.default_rng(8)
    mixed, fine = Monitor(), Monitor()
    for day in range(12):
        y, p = _batch(rng, 100, 1.6)
        coarse = Sketch.from_arrays(y, p, nodes=256)
        look = mixed.update(coarse) if day % 2 else mixed.update(y, p)
        expected = fine.update(y, p)
    assert look.n == expected.n == 1200
    assert np.log(look.e_value) == pytest.approx(np.log(expected.e_value), rel=0.1)
    assert Monitor.from_json(mixed.to_json()).update(y, p).n == 1300


def test_the_p_value_is_never_zero() -> None:
    monitor = Monitor()
    for _ in range(3):
        look = monitor.update(np.zeros(4000, int), np.full(4000, 0.9))
    assert 0.0 < look.p_value < 1e-300
    assert np.isfinite(look.e_value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("sums"), "lacks 'sums'"),
        (lambda state: state.pop("version"), "in version None of the monitor's format"),
        (lambda state: state.update(version=2), "in version 2 of .* reads version 1"),
        (lambda state: state["log_wealth"].pop(), "48, 49 and 49 bets in place of 49"),
        (lambda state: state.update(looks="many"), "is damaged: .*'many'"),
        (lambda state: state.update(alarm={"look": 1}), "is damaged: .*'since'"),
        (lambda state: state.update(level=3), "`level` must lie between 0 and 1; got 3"),
    ],
)
def test_a_damaged_state_is_refused(change: Callable[[dict], object], message: str) -> None:
    monitor = Monitor()
    monitor.update(*_batch(np.random.default_rng(0)))
    state = json.loads(monitor.to_json())
    change(state)
    with pytest.raises(InputError, match=message):
        Monitor.from_json(json.dumps(state))


def test_reset_forgets() -> None:
    rng = np.random.default_rng(6)
    monitor = Monitor()
    monitor.update(*_batch(rng))
    monitor.reset()
    y, p = _batch(rng)
    assert monitor.update(y, p) == Monitor().update(y, p)
    assert "no batch yet" in repr(Monitor())


def test_certain_and_wrong_ends_it() -> None:
    monitor = Monitor()
    for _ in range(6):
        look = monitor.update([0, 1, 0, 1], [1.0, 1.0, 1.0, 0.0])
    assert look.alarm is not None


def test_bad_input() -> None:
    with pytest.raises(InputError, match="`level` must lie between 0 and 1"):
        Monitor(level=5)
    with pytest.raises(InputError, match="no batch yet"):
        _ = Monitor().last
    with pytest.raises(InputError, match="unweighted rows"):
        Monitor().update([0, 1], [0.2, 0.7], sample_weight=[1.0, 2.0])
    with pytest.raises(InputError, match="probability scale"):
        Monitor().update(Sketch.from_arrays([0, 1], [0.2, 0.7], scale="logit"))
    with pytest.raises(InputError, match="not the state of a monitor"):
        Monitor.from_json("[]")
    with pytest.raises(InputError, match="not the state of a monitor"):
        Monitor.from_json("{")


def test_what_is_no_text_is_no_state(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="not the state of a monitor"):
        Monitor.load(tmp_path / "x.json")
    with pytest.raises(InputError, match="not the state of a monitor"):
        Monitor.from_json(5)  # type: ignore[arg-type]
