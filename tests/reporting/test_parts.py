"""The parts of a summary: dealing rows into halves, and notes on the data."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.recalibration.halves import halves
from calibrant.reporting.summary import Recalibration, notes_on, recalibration_of


def _repaired(sketch: cal.Sketch) -> Recalibration | None:
    return recalibration_of(sketch, cal.assess(sketch))


def test_halves_are_random_and_add_up_to_the_whole() -> None:
    """Were the halves alike, a map fitted on one would look too good on the other."""
    whole = cal.Sketch.from_counts([0.5], [1000], [500])
    parts = [halves(whole, seed=seed) for seed in range(200)]
    assert all(first + second == whole for first, second in parts)
    events = [int(first.counts[0, 1]) for first, _ in parts]
    assert np.std(events) == pytest.approx(np.sqrt(500 / 4), rel=0.2)


def test_a_calibrated_lattice_gains_nothing() -> None:
    rng = np.random.default_rng(0)
    p = rng.choice(np.linspace(0, 1, 11), 2000)
    found = _repaired(cal.Sketch.from_arrays(rng.random(2000) < p, p))
    assert found is not None
    assert found.left_alone
    assert found.after.brier >= found.before.brier


def test_repair_needs_rows_of_both_outcomes() -> None:
    assert _repaired(cal.Sketch.from_arrays(np.zeros(50), np.full(50, 0.1))) is None
    weighted = cal.Sketch.from_arrays([0, 0, 0], [0.1, 0.4, 0.9], sample_weight=[1, 2, 3])
    assert _repaired(weighted) is None


def test_weighted_and_soft_rows_are_repaired_too() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    y = (rng.random(4000) < p**2).astype(float)
    plain = _repaired(cal.Sketch.from_arrays(y, p))
    ones = _repaired(cal.Sketch.from_arrays(y, p, sample_weight=np.ones(4000)))
    heavy = cal.Sketch.from_arrays(y, p, sample_weight=np.where(p > 0.5, 3.0, 1.0))
    soft = cal.Sketch.from_arrays(0.2 + 0.6 * y, p, labels="soft")
    first, second = halves(heavy, seed=0)
    np.testing.assert_allclose((first + second).weights, heavy.weights)
    assert plain is not None
    assert ones is not None
    assert ones.before.smooth_ece == pytest.approx(plain.before.smooth_ece, abs=1e-3)
    assert ones.after.log_loss == pytest.approx(plain.after.log_loss, abs=5e-3)
    for sketch in (heavy, soft):
        found = _repaired(sketch)
        assert found is not None
        assert found.before.smooth_ece == pytest.approx(cal.smooth_ece(sketch), abs=1e-3)
        assert found.after.smooth_ece < 0.4 * found.before.smooth_ece
        assert found.diagram.sketch.total_weight == pytest.approx(sketch.total_weight)
    assert "would bring SmoothECE" in cal.report({"m": heavy}).markdown


def test_notes_say_what_was_dropped() -> None:
    sketch = cal.Sketch.from_arrays([0, 1, None], [0.1, 0.9, 0.5], on_invalid="drop")
    assert "1 row was dropped: 1 for missing label." in notes_on(sketch)[0]


def test_notes_tell_soft_outcomes_from_weights() -> None:
    rng = np.random.default_rng(0)
    p, soft = rng.random(300), rng.choice([0.0, 0.5, 1.0], 300)
    plain = notes_on(cal.Sketch.from_arrays(soft, p, labels="soft"))
    assert plain[0].startswith("300 rows with soft outcomes.")
    assert not any("effective" in note for note in plain)
    weighed = notes_on(cal.Sketch.from_arrays(soft, p, labels="soft", sample_weight=p / p.mean()))
    assert any("effective" in note for note in weighed)


def test_notes_warn_of_few_events() -> None:
    sketch = cal.Sketch.from_arrays(np.arange(1000) < 5, np.linspace(0, 0.01, 1000))
    assert any("only 5 events" in note for note in notes_on(sketch))


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.975, 0.99, 0.999, 0.9999])
def test_a_confidence_is_written_as_it_was_asked_for(confidence: float) -> None:
    made = cal.report(np.arange(200) % 2, np.full(200, 0.5), confidence=confidence)
    written = f"{100 * confidence:g}%"
    assert f"{written} interval" in made.markdown
    assert f"with {written} confidence" in made.markdown


def test_notes_count_clusters() -> None:
    sketch = cal.Sketch.from_counts([0.5], [1000], [500])
    assert any("300 clusters" in note for note in notes_on(sketch, clusters=300))
    assert not any("clusters" in note for note in notes_on(sketch))


def test_predictions_next_to_an_end_are_not_taken_for_one_value() -> None:
    """They share a cell of the sketch, as those of naive Bayes do, and differ all the same."""
    rng = np.random.default_rng(0)
    p = np.concatenate([1.0 - 10.0 ** -rng.uniform(6, 12, 300), rng.random(30)])
    notes = " ".join(notes_on(cal.Sketch.from_arrays(np.ones(p.size, int), p)))
    assert "share one prediction" not in notes
    exact = np.concatenate([np.ones(300), rng.random(30)])
    assert "share one prediction, 1." in " ".join(
        notes_on(cal.Sketch.from_arrays(np.ones(p.size, int), exact))
    )
