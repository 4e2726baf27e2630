"""The study of the profiles' intervals knows its truths, and counts what it should."""

from __future__ import annotations

import pytest
from bench.coverage import profiles


def test_the_population_has_the_truths_that_it_was_made_with() -> None:
    values, _ = profiles.truths("over-confident")
    made = profiles.POPULATIONS["over-confident"]
    assert values["calibration slope"] == pytest.approx(made.slope, abs=1e-6)
    assert values["intercept given slope"] == pytest.approx(made.intercept, abs=1e-6)
    calibrated, _ = profiles.truths("calibrated")
    assert calibrated["calibration intercept"] == pytest.approx(0.0, abs=1e-6)
    assert calibrated["observed / expected"] == pytest.approx(1.0, abs=1e-6)


def test_every_interval_is_counted_once_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "CHUNK", 1)
    held = profiles.perform(("over-confident", 200, False), 0)
    assert {row[1] for name, row in held.items() if name != "Brier score"} == {1.0}
    assert {"calibration slope", "E90", "lost to miscalibration, whole curve"} <= set(held)
