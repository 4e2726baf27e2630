"""The sentence above a picture: every branch of its rule, and its agreement with the assessment."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import calibrant as cal
from calibrant.inference.direction import Region
from calibrant.plotting.group import Diagrams
from calibrant.plotting.verdict import verdict_of

EVENLY = np.linspace(0.05, 0.95, 10)


def _region(low: float, high: float, gap: float, share: float) -> Region:
    return Region(low, high, gap, share, share * 0.1)


def _weights(rate: np.ndarray, rows: float = 100.0) -> np.ndarray:
    return rows * np.stack([1 - rate, rate], axis=1)


def _said(*regions: Region, rate: np.ndarray, p: np.ndarray = EVENLY) -> str:
    return verdict_of("miscalibrated", regions, p, _weights(rate)).sentence


def test_without_clear_error_no_direction_is_named() -> None:
    region = _region(0.05, 0.95, 0.1, 1.0)
    weights = _weights(EVENLY)
    assert verdict_of("no evidence", [region], EVENLY, weights).sentence == "No clear error"
    assert (
        verdict_of("inconclusive", [region], EVENLY, weights).sentence
        == "May be chance (too few rows)"
    )


@pytest.mark.parametrize(("gap", "side"), [(0.0437, "high by 0.04"), (-0.0123, "low by 0.012")])
def test_an_error_to_one_side_is_an_average(gap: float, side: str) -> None:
    regions = _region(0.05, 0.85, gap, 0.92), _region(0.9, 0.95, -gap, 0.06)
    expected = f"Predictions are too {side} on average"
    assert _said(*regions, rate=EVENLY - gap) == expected
    slightly = verdict_of("slightly off", regions, EVENLY, _weights(EVENLY - gap)).sentence
    assert slightly == f"Slightly off: predictions are too {side} on average"


@pytest.mark.parametrize(
    ("factor", "times"), [(1.93, "1.9"), (0.5, "0.5"), (1.04, "1.04"), (12.3, "12")]
)
def test_rare_events_are_a_ratio(factor: float, times: str) -> None:
    p = EVENLY / 25
    region = _region(p[0], p[-1], float(p.mean() * (1 - factor)), 1.0)
    expected = f"Events come {times} times as often as predicted"
    assert _said(region, rate=factor * p, p=p) == expected


def test_rare_events_that_never_came_or_nearly_as_often_are_no_ratio() -> None:
    p = EVENLY / 25
    never = _said(_region(p[0], p[-1], 0.02, 1.0), rate=0 * p, p=p)
    assert never == "Predictions are too high by 0.02 on average"
    hardly = _said(_region(p[0], p[-1], -2e-5, 1.0), rate=1.001 * p, p=p)
    assert hardly == "Predictions are too low by 0.000020 on average"


@pytest.mark.parametrize(
    ("sign", "words"),
    [
        (1, "Low predictions are too low, high ones too high (over-confident)"),
        (-1, "Low predictions are too high, high ones too low (under-confident)"),
    ],
)
def test_two_opposite_regions_are_a_matter_of_confidence(sign: int, words: str) -> None:
    regions = _region(0.55, 0.95, sign * 0.1, 0.6), _region(0.05, 0.45, sign * -0.1, 0.4)
    rate = EVENLY - sign * 0.1 * np.sign(EVENLY - 0.5)
    assert _said(*regions, rate=rate) == words
    assert _said(*reversed(regions), rate=rate) == words


def test_confidence_is_not_named_on_one_side_of_a_half() -> None:
    p = EVENLY / 3
    regions = _region(p[0], p[4], -0.03, 0.5), _region(p[5], p[-1], 0.03, 0.5)
    rate = p - 0.03 * np.where(np.arange(10) < 5, -0.3, 1.0)
    assert _said(*regions, rate=rate, p=p) == "Low predictions are too low, high ones too high"


def test_one_narrow_region_is_named() -> None:
    rate = EVENLY.copy()
    rate[6:8] -= 0.19
    large, small = _region(0.65, 0.75, 0.19, 0.8), _region(0.05, 0.15, -0.01, 0.1)
    assert _said(large, small, rate=rate) == "Predictions from 0.65 to 0.75 are too high by 0.19"
    one = _region(0.65, 0.65, 0.19, 0.8)
    assert _said(one, small, rate=rate) == "Predictions of 0.65 are too high by 0.19"
    here = (EVENLY > 0.6) & (EVENLY < 0.8)
    weights = _weights(rate) * np.where(here, 50.0, 1.0)[:, None]
    said = verdict_of("miscalibrated", [large], EVENLY, weights).sentence
    assert said == "Predictions are too high by 0.18 on average"  # nearly all rows are there


def test_errors_up_and_down_are_said_as_such() -> None:
    regions = [_region(k / 4, k / 4 + 0.25, 0.1 * (-1) ** k, 0.24) for k in range(4)]
    said = _said(*regions, rate=EVENLY)
    assert said == "Predictions are too high in some ranges, too low in others"


@pytest.mark.parametrize("n", [60, 400, 4000, 40_000])
@pytest.mark.parametrize("slope", [1.0, 0.97, 0.6])
def test_the_sentence_agrees_with_the_assessment(n: int, slope: float) -> None:
    rng = np.random.default_rng(n)
    p = rng.random(n)
    y = rng.random(n) < 0.5 + slope * (p - 0.5)
    sketch = cal.Sketch.from_arrays(y, p)
    found = cal.assess(sketch)
    said = cal.reliability_diagram(sketch, assessment=found, resamples=0).verdict
    assert said == cal.reliability_diagram(y, p, resamples=0).verdict
    finding = {
        "No clear error": "no evidence",
        "May be chance (too few rows)": "inconclusive",
    }.get(said, "slightly off" if said.startswith("Slightly off") else "miscalibrated")
    assert finding == found.finding


@pytest.fixture(scope="module")
def diagram() -> cal.ReliabilityDiagram:
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    return cal.reliability_diagram(rng.random(p.size) < 0.9 * p, p, resamples=20)


def test_the_sentence_stands_above_a_single_picture(diagram: cal.ReliabilityDiagram) -> None:
    said = diagram.verdict
    assert said == "Predictions are too high by 0.06 on average"
    drawn = diagram.plot()
    assert drawn.ax.get_title() == said
    assert said in diagram.to_svg()
    for slider in (True, False):
        assert said in str(diagram.chart(slider=slider).to_dict()["title"])
    assert said in diagram.picture().in_words()
    drawn.ax.set_title("mine")  # takes its place
    assert [drawn.ax.get_title(loc) for loc in ("left", "center", "right")] == ["", "mine", ""]


def test_the_sentence_gives_way(diagram: cal.ReliabilityDiagram) -> None:
    said = diagram.verdict
    for off in ("", False):
        picture = diagram.picture(subtitle=off)
        assert (picture.subtitle, said in picture.notes) == ("", False)
    own = diagram.picture(subtitle="mine")
    assert own.subtitle == "mine"
    assert " ".join(own.notes).startswith(said)
    both = Diagrams({"a": diagram, "b": diagram})
    assert both.panel().subtitle == ""
    assert said not in both._repr_html_().split("</title>", 1)[1].split("<title>")[0]
    titles = {drawn.ax.get_title("left") for drawn in both.plot_grid().values()}
    assert titles == {"a\nPredicts too high by 0.06", "b\nPredicts too high by 0.06"}
    assert both.panel().legend["a"].startswith("a: predicts too high by 0.06\naverage error 0.0")
    assert diagram.at(0.2).verdict == ""


def test_the_sentence_leaves_titles_of_others_and_axes_of_several(
    diagram: cal.ReliabilityDiagram,
) -> None:
    ax = Figure().subplots()
    ax.set_title("theirs")
    drawn = diagram.plot(ax)
    assert ax.get_title() == "theirs"
    note = drawn.artists["note"][0].get_text().replace("\n", " ")
    assert note.startswith(diagram.verdict)
    ax = Figure().subplots()
    diagram.plot(ax, name="a")
    assert ax.get_title() == diagram.verdict
    diagram.plot(ax, name="b")
    assert ax.get_title() == ""
