"""Looking after every batch must not inflate false alarms, and must find what went wrong."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests import refusals

from calibrant._files import dump_versioned
from calibrant.data.classes import classwise, top_label
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError
from calibrant.inference.monitor import ALTERNATIVES, BETS, INSIDE, Alternative, Monitor, log_gains
from calibrant.inference.projection import project


def chance(bet: Alternative, p: np.ndarray) -> np.ndarray:
    """The alternative that a bet is on, written anew."""
    logit = np.log(p / (1 - p))
    shape = {"shift": np.ones_like(p), "tilt": np.tanh(logit / 2)}
    shape |= {f"wave {k}": np.cos(np.pi * k * p) for k in range(1, 5)}
    return 1 / (1 + np.exp(-logit - bet.size * shape[bet.shape]))


def wealth(state: dict) -> dict:
    """What the only class of a state has won."""
    return state["wealth"][0]


def _batch(
    rng: np.random.Generator, n: int = 50, power: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    p = rng.random(n)
    return (rng.random(n) < p**power).astype(int), p


def test_no_bet_gains_on_average_when_calibrated() -> None:
    """E[exp(log gain)] ≤ 1 for every bet, exactly: enumerate all outcomes of a few rows."""
    p = np.array([0.0, 0.003, 0.31, 0.311, 0.5, 0.97, 1.0])
    mean = np.zeros(BETS)
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
        float(np.sum(np.log1p((chance(bet, p) - p) / (p * (1 - p)) * (y - p))))
        for bet in ALTERNATIVES
    ]
    assert fine == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("nodes", [2, 8, 32])
def test_a_sketch_never_says_that_a_bet_won_more_than_it_did(nodes: int) -> None:
    y, p = _batch(np.random.default_rng(1), 400)
    low = np.floor(p * nodes) / nodes
    high = low + 1 / nodes
    middle = (low + high) / 2
    for bet, said in zip(
        ALTERNATIVES, log_gains(Sketch.from_arrays(y, p, nodes=nodes)), strict=True
    ):
        stake = (chance(bet, middle) - middle) / (middle * (1 - middle))
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


def _class_batch(
    rng: np.random.Generator, n: int = 60, *, sure: float = 1.0, few: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Classes whose probabilities are right where `sure` is 1; `few`: the last class is never likely."""
    probs = rng.dirichlet([1.0, 2.0, 1.0, 0.001 if few else 0.7], n)
    labels = (probs.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    said = probs**sure
    return labels, said / said.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("sketches", [top_label, classwise])
def test_few_false_alarms_of_classes_that_come_when_they_will(sketches: Callable) -> None:
    """In expectation nothing is won, so that alarms at 1/10 are false in at most a tenth of the runs."""
    alarms, won = 0, []
    for seed in range(15):
        rng = np.random.default_rng([seed, 8])
        monitor = Monitor(level=0.1)
        for day in range(20):
            look = monitor.update(sketches(*_class_batch(rng, few=day < 9), nodes=256))
        assert len(look.groups) == 4
        alarms += look.alarm is not None
        won.append(look.e_value)
    assert alarms <= 4
    assert np.mean(won) < 2.0


def test_the_coming_of_a_class_wins_nothing_and_loses_nothing() -> None:
    rng = np.random.default_rng(12)
    monitor = Monitor()
    for _ in range(5):
        before = monitor.update(*_class_batch(rng, sure=2.0, few=True), multiclass="top_label")
    assert len(before.groups) == 3
    # A row of which nothing can be won: what was said came true, as it had to.
    look = monitor.update([3], [[0.0, 0.0, 0.0, 1.0]], multiclass="top_label")
    assert len(look.groups) == 4
    late = next(one for one in look.groups if one.name == 3)
    share = before.e_value / 4
    assert look.e_value == pytest.approx(before.e_value + share * (late.e_value - 1), rel=1e-12)


def test_an_alarm_names_the_class() -> None:
    rng = np.random.default_rng(13)
    monitor = Monitor()
    for day in range(1, 41):
        labels, probs = _class_batch(rng, 200)
        wrong = (probs.argmax(axis=1) == 1) & (rng.random(200) < 0.3) & (day > 15)
        look = monitor.update(np.where(wrong, 0, labels), probs, multiclass="top_label")
    assert look.alarm is not None
    assert look.alarm.group == look.groups[0].name == 1
    assert look.alarm.direction == "over-forecasting"
    assert abs(look.alarm.since - 16) <= 4
    assert "group 1" in str(look.alarm)
    assert {one.name for one in look.groups if one.e_value > 20} == {1}


def test_the_state_of_classes_survives_a_file_and_keeps_names(tmp_path: Path) -> None:
    rng = np.random.default_rng(14)
    for names in (["a", "b", "c", "d"], [3, 1, 2, 0], [True, False, "x", 0.5]):
        first, named = Monitor(), {"multiclass": "classwise", "classes": names}
        for day in range(3):
            labels, probs = _class_batch(rng, sure=3.0)
            first.update(np.array(names, dtype=object)[labels], probs, batch=f"{day}", **named)  # type: ignore[arg-type]
        first.save(tmp_path / "state.json")
        with Monitor.shared(tmp_path / "state.json") as second:
            assert second.last == first.last == pickle.loads(pickle.dumps(first)).last
            known = second.update(np.array(names, dtype=object)[labels], probs, batch="2", **named)  # type: ignore[arg-type]
            assert known == first.last
            with refusals.refused("batch", "2"):
                second.update(
                    np.array(names, dtype=object)[labels[::-1]], probs, batch="2", **named
                )  # type: ignore[arg-type]
        assert first.last.alarm is not None
        assert Monitor.load(tmp_path / "state.json").last == first.last
        os.remove(tmp_path / "state.json")


def test_batches_of_another_kind_are_refused() -> None:
    labels, probs = _class_batch(np.random.default_rng(15))
    kinds = [{}, {"multiclass": "top_label"}, {"multiclass": "classwise"}]
    for kind in kinds:
        monitor = Monitor()
        monitor.update(labels, probs, **kind)  # type: ignore[arg-type]
        for other in kinds:
            if other != kind:
                with refusals.refused("multiclass"):
                    monitor.update(labels, probs, **other)  # type: ignore[arg-type]
        assert monitor.n == 60
    part = Sketch.from_arrays([0, 1], [0.2, 0.7])
    with refusals.refused("by", holds="day, site"):
        Monitor().update(Sketches({("monday", "a"): part}, by=("day", "site")))
    with refusals.refused("multiclass", 1001):
        Monitor().update(Sketches(dict.fromkeys(range(1001), part), by="class"))
    with refusals.refused("classes", None):
        Monitor().update(Sketches({None: part}, by="class"))


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


@pytest.mark.parametrize(
    "change",
    [
        lambda state: wealth(state).pop("errors"),
        lambda state: state.pop("version"),
        lambda state: state.update(version=2),
        lambda state: state.update(version=4),
        lambda state: wealth(state)["log_wealth"].pop(),
        lambda state: state.update(looks="many"),
        lambda state: state.update(looks=0),
        lambda state: state.update(by="class"),
        lambda state: state.update(classes=["cat"]),
        lambda state: state.update(stakes=[float("inf")]),
        lambda state: state.update(stakes=[]),
        lambda state: state.update(alarm={"look": 1}),
        lambda state: state.update(level=3),
        lambda state: state.update(highest=float("nan")),
        lambda state: wealth(state).update(past=None),
        lambda state: state.update(batches=[["a", 3]]),
        lambda state: state.update(batches=3),
    ],
)
def test_a_state_of_another_form_is_refused(change: Callable[[dict], object]) -> None:
    """With the checksum that it had, and with one that was made anew."""
    monitor = Monitor()
    monitor.update(*_batch(np.random.default_rng(0)))
    state = json.loads(monitor.to_json())
    change(state)
    with pytest.raises(InputError):
        Monitor.from_json(json.dumps(state))
    content = {k: v for k, v in state.items() if k not in ("format", "version", "checksum")}
    with pytest.raises(InputError):
        Monitor.from_json(dump_versioned(state["format"], state.get("version"), content))  # type: ignore[arg-type]


def test_the_state_does_not_grow_with_the_number_of_looks() -> None:
    rng = np.random.default_rng(9)
    y, p = _batch(rng, 40)
    monitor = Monitor()
    for look in range(1300):
        if look % 2:
            y, p = _batch(rng, 40)
        monitor.update(Sketch.from_arrays(y, p, nodes=64), batch=f"{look}")
        if look == 1050:
            before = len(monitor.to_json())
    assert len(monitor.to_json()) < before + 500


def test_a_batch_that_is_tried_again_counts_once() -> None:
    rng = np.random.default_rng(10)
    once, twice = Monitor(), Monitor()
    for day in range(5):
        y, p = _batch(rng, 40, 1.4)
        look = once.update(y, p)
        assert twice.update(y, p, batch=f"day {day}") == look
        twice = Monitor.from_json(twice.to_json())
        assert twice.update(y, p, batch=f"day {day}") == look
    with refusals.refused("batch", "day 4"):
        twice.update(*_batch(rng), batch="day 4")
    for wrong in ("", 3, ["a"], "x" * 201):
        with refusals.refused("batch"):
            twice.update(y, p, batch=wrong)  # type: ignore[arg-type]


SHARING = """
import sys
import numpy as np
import calibrant as cal
rng = np.random.default_rng(int(sys.argv[2]))
for _ in range(10):
    p = rng.random(30)
    with cal.Monitor.shared(sys.argv[1]) as watch:
        watch.update(rng.random(30) < p, p)
"""


def test_no_look_is_lost_between_processes(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    run = [sys.executable, "-c", SHARING, str(path)]
    processes = [subprocess.Popen([*run, str(seed)]) for seed in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert Monitor.load(path).last.look == 30
    assert Monitor.load(path).n == 900


def test_a_block_that_fails_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    with Monitor.shared(path) as watch:
        watch.update([0, 1], [0.2, 0.7])
    before = path.read_bytes()
    with pytest.raises(InputError), Monitor.shared(path) as watch:
        watch.update([watch.update([0, 1], [0.2, 0.7]).look], [7.0])
    with pytest.raises(InputError) as refused, Monitor.shared(path, level=0.01):
        pass
    assert refused.value.argument == "level"
    assert path.read_bytes() == before


GOLDEN = Path(__file__).parents[1] / "golden" / "monitors"


def test_states_of_version_3_are_read_and_go_on() -> None:
    """Files that an earlier release wrote: of one sample with an alarm and a batch that waits; of groups."""
    one = Monitor.load(GOLDEN / "v3_one_sample.json")
    assert (one.level, one.last.look, one.n) == (0.1, 8, 320)
    assert one.last.e_value == pytest.approx(9274489314.77176, rel=1e-9)
    assert one.last.alarm is not None
    assert (one.last.alarm.since, one.last.alarm.direction) == (5, "over-forecasting")
    assert one.expected is not None
    assert one.expected.accuracy.value == pytest.approx(0.799840, abs=1e-5)
    groups = Monitor.load(GOLDEN / "v3_groups.json")
    assert [(each.name, each.n) for each in groups.last.groups] == [
        ("b", 109),
        ("c", 37),
        ("a", 94),
    ]
    assert groups.last.miscalibrated == ("b",)
    assert groups.last.e_value == pytest.approx(51.371017065810484, rel=1e-9)
    later = groups.update([0, 1, 1, 0], [0.2, 0.7, 0.6, 0.3], by=["a", "b", "c", "d"])
    assert later.e_value == pytest.approx(35.49109419636842, rel=1e-9)
    assert [each.name for each in later.groups] == ["b", "c", "d", "a"]


def test_reset_forgets() -> None:
    rng = np.random.default_rng(6)
    monitor = Monitor()
    monitor.update(*_batch(rng))
    monitor.reset()
    y, p = _batch(rng)
    assert monitor.update(y, p) == Monitor().update(y, p)
    assert "no batch yet" in repr(Monitor())


def test_bad_input(tmp_path: Path) -> None:
    with refusals.refused("level", 5):
        Monitor(level=5)
    with refusals.refused(holds="Monitor.update"):
        _ = Monitor().last
    with refusals.refused(option="sample_weight"):
        Monitor().update([0, 1], [0.2, 0.7], sample_weight=[1.0, 2.0])
    with refusals.refused(holds="logit"):
        Monitor().update(Sketch.from_arrays([0, 1], [0.2, 0.7], scale="logit"))
    for text in ("[]", "{", 5):
        with refusals.refused(holds="the state of a monitor"):
            Monitor.from_json(text)  # type: ignore[arg-type]
    (tmp_path / "x.json").write_bytes(bytes(range(256)))
    with refusals.refused(file="x.json", holds="the state of a monitor"):
        Monitor.load(tmp_path / "x.json")


def test_groups_are_found_with_few_false_discoveries() -> None:
    """e-BH over 20 groups of which 5 are miscalibrated; a batch of each in every look."""
    rng = np.random.default_rng(0)
    wrong, false, right = {f"g{k}" for k in range(5)}, 0.0, 0
    for _ in range(20):
        monitor = Monitor(level=0.2)
        for _ in range(3):
            group = np.array([f"g{k}" for k in range(20)])[rng.integers(0, 20, 4000)]
            p = rng.random(4000)
            truth = np.where(np.isin(group, [*wrong]), 0.5 + 0.6 * (p - 0.5), p)
            found = monitor.update(rng.random(4000) < truth, p, by=group)
        shown = set(found.miscalibrated)
        false += len(shown - wrong) / max(len(shown), 1) / 20
        right += len(shown & wrong)
    assert false <= 0.1
    assert right >= 80
    assert found.groups[0].name in wrong
    assert "miscalibrated" in found.to_dict()
    with refusals.refused("by"):
        monitor.update([0, 1], [0.2, 0.7])


def test_predictions_are_registered_and_scored_when_labels_come(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    monitor, p = Monitor(), rng.beta(2, 3, (3, 1000))
    assert monitor.expected is None
    monitor.update(rng.random(1000) < p[0], p[0])
    for name, q in (("monday", p[1]), ("tuesday", p[2])):
        monitor.register(q, batch=name)
    expected = monitor.expected
    assert expected is not None
    assert expected.n == 2000
    assert expected.rate.low < p[1:].mean() < expected.rate.high
    assert expected.drift_p_value is not None
    assert expected.drift_p_value > 0.001
    monitor.save(tmp_path / "monitor.json")
    monitor = Monitor.load(tmp_path / "monitor.json")
    with refusals.refused("y_prob"):
        monitor.update(rng.random(1000) < p[1], p[0], batch="monday")
    monitor.update(rng.random(1000) < p[1], p[1], batch="monday")
    assert monitor.expected is not None
    assert monitor.expected.n == 1000
    with refusals.refused("batch"):
        monitor.register(p[1], batch="monday")
    with refusals.refused("y_prob", "q"):
        monitor.register("q", data={"p": p[1]}, batch="friday")
    with refusals.refused("batch"):
        monitor.register(p[1], batch=None)  # type: ignore[arg-type]


def test_registered_predictions_of_rare_events_are_told_apart() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3, 5000) * 1e-3
    monitor = Monitor()
    monitor.register(p, batch="monday")
    assert monitor.expected is not None
    auc = project(None, p).auc.value
    assert monitor.expected.auc.value == pytest.approx(auc, abs=0.005)
    later = Monitor.from_json(monitor.to_json())
    for wrong in (p * 3, p[0] * p / p.mean(), np.full(5000, 1e-3)):
        with refusals.refused("y_prob"):
            later.update(np.zeros(5000), wrong, batch="monday")
    tiny = np.full(5000, 1e-7)
    later.register(tiny, batch="tuesday")
    with refusals.refused("y_prob"):
        later.update(np.zeros(5000), 30 * tiny, batch="tuesday")
    assert later.update(np.zeros(5000), p.astype(np.float32), batch="monday").n == 5000
