"""The view of a crowded end: where it is drawn, what it shows, and the skill beside a diagram."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.errors import InputError
from calibrant.plotting.closer_view import CLOSER
from calibrant.plotting.group import Diagrams, reliability_diagrams
from calibrant.plotting.panel import Blank, Line, Panel, Trail, Words


def _sure(n: int = 4000, spread: float = 9.0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    log_odds = rng.normal(0, spread, n)
    y = rng.random(n) < 1 / (1 + np.exp(-0.7 * log_odds))
    return y.astype(int), 1 / (1 + np.exp(-log_odds))


def _views(panel: Panel) -> list[Trail]:
    return [m for m in panel.marks if m.key == CLOSER and isinstance(m, Trail) and m.series]


def test_crowded_ends_are_shown_closer_and_true_to_scale() -> None:
    panel = cal.reliability_diagram(*_sure(), resamples=50).panel()
    views = _views(panel)
    ends = [mark for mark in panel.marks if mark.key == CLOSER and isinstance(mark, Words)]
    assert [end.texts for end in ends] == [("0.9", "1") * 2, ("0", "0.1") * 2]  # across and up
    for view, end in zip(views, ends, strict=True):
        low, high = map(float, end.texts[:2])
        drawn = np.isfinite(view.y)
        shown = view.details["observed"][drawn]
        assert shown.min() >= low - 1e-9
        assert shown.max() <= high + 1e-9
        magnified = np.polyfit(view.details["prediction"], view.x, 1)[0]
        assert magnified > 2
        assert np.allclose(
            view.x, end.x[0] + magnified * (view.details["prediction"] - low), atol=1e-9
        )
        assert np.allclose(np.diff(view.y[drawn]), magnified * np.diff(shown), atol=1e-9)


def test_views_lie_on_empty_paper() -> None:
    panel = cal.reliability_diagram(*_sure(), resamples=50).panel()
    curve = next(mark for mark in panel.marks if mark.key == "curve")
    for frame in (m for m in panel.marks if m.key == CLOSER and isinstance(m, Line) and m.says):
        left, right, bottom, top = (f(a) for a in (frame.x, frame.y) for f in (np.min, np.max))
        inside = (curve.x >= left) & (curve.x <= right) & (curve.y >= bottom) & (curve.y <= top)
        assert not inside.any()


def test_pictures_that_can_be_read_have_no_view() -> None:
    y, p = _sure(spread=1.5)
    assert not _views(cal.reliability_diagram(y, p, resamples=50).panel())
    sure = cal.reliability_diagram(*_sure(), resamples=50)
    assert not _views(sure.panel(axes="probability"))
    assert not _views(sure.panel(against="position"))
    assert not _views(sure.picture(xlim=(0.0, 0.5)))


def test_overlays_show_crowded_ends_closer_too() -> None:
    sure = cal.reliability_diagram(*_sure(), resamples=50)
    both = Diagrams({"a": sure, "b": cal.reliability_diagram(*_sure(2000), resamples=50)})
    assert {view.series for view in _views(both.panel())} == {"a", "b"}
    assert not _views(both.panel(axes="probability"))
    assert not _views(both.panel(against="position"))


def test_a_view_hides_nothing_that_many_rows_speak_for() -> None:
    panel = cal.reliability_diagram(*_sure(600, 15.0), resamples=50).panel()
    curve = next(mark for mark in panel.marks if mark.key == "curve")
    blanks = [mark for mark in panel.marks if isinstance(mark, Blank)]
    assert blanks
    for blank in blanks:
        hidden = (curve.x > blank.x[0]) & (curve.x < blank.x[1])
        hidden &= (curve.y > blank.y[0]) & (curve.y < blank.y[1])
        assert (curve.evidence[hidden] < 0.4).all()


def test_curves_and_bands_of_overlays_fade_with_their_evidence() -> None:
    sure = cal.reliability_diagram(*_sure(300), resamples=50)
    panel = Diagrams({"a": sure, "b": sure}).panel()
    for mark in (m for m in panel.marks if m.key in ("curve", "band")):
        strength = mark.strength()
        middle, ends = np.abs(mark.x - 0.5) < 0.2, np.abs(mark.x - 0.5) > 0.48
        assert strength[middle].max() < 0.7
        assert strength[ends].min() == 1.0


def test_the_weather_profile_writes_its_skill_into_the_picture() -> None:
    y, p = _sure(spread=1.5)
    found = cal.assess(y, p, profile="weather").profile
    panel = cal.reliability_diagram(y, p, resamples=0).panel(attributes=found)
    assert any(f"{found['Brier skill score'].value:.3f}" in note for note in panel.notes)
    assert any(mark.key == "no skill" for mark in panel.marks)
    for wrong in ("yes", 1, cal.assess(y, p, profile="clinical").profile):
        with pytest.raises(InputError) as error:
            cal.reliability_diagram(y, p, resamples=0).panel(attributes=wrong)
        assert error.value.argument == "attributes"


def test_lines_of_skill_need_one_event_rate() -> None:
    y, p = _sure(spread=1.5)
    same = reliability_diagrams({"a": (y, p), "b": (y, p**2)}, resamples=0)
    keys = [mark.key for mark in same.panel(attributes=True).marks]
    assert keys.count("no skill") == keys.count("skill") == 1
    assert keys.count("climatology") == 2
    other = reliability_diagrams({"a": (y, p), "b": (y[:300], p[:300])}, resamples=0)
    with pytest.raises(InputError) as error:
        other.panel(attributes=True)
    assert error.value.argument == "attributes"
    assert error.value.cures
