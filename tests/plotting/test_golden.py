"""Pictures as they should look, compared as the eye would: nobody breaks one unseen.

    UPDATE_GOLDEN=1 python -m pytest tests/plotting/test_golden.py

draws them anew; then look at every one that changed.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert
from matplotlib import pyplot as plt
from matplotlib.image import imread
from matplotlib.text import Text
from scipy.ndimage import uniform_filter

import calibrant as cal
import calibrant.plotting.matplotlib
from calibrant.plotting.diagram import Diagram
from calibrant.plotting.forest import forest_plot
from calibrant.plotting.group import Diagrams
from calibrant.plotting.panel import Trail, Words
from calibrant.plotting.smooth import ReliabilityDiagram

FOLDER = Path(__file__).parent.parent / "golden" / "pictures"
MATPLOTLIB, PAINTED_BY = tuple(map(int, version("matplotlib").split(".")[:2])), (3, 11)
# Of pictures in [0, 1], blurred over five pixels: what the eye forgives over all, and at any one place.
OVER_ALL, ANYWHERE = 0.012, 0.35


def _rows(shape: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    n = {"few": 136, "rare": 20_000}.get(shape, 3000)
    p = {
        "saturated": 1 - rng.exponential(0.02, n).clip(0, 0.9),
        "tenths": np.round(rng.beta(1, 1.5, n), 1),
        "few": np.concatenate([rng.beta(0.6, 8, 90), rng.beta(8, 0.6, 46)])[:n],
        "rare": rng.beta(1, 60, n),
        "both ends": 1 / (1 + np.exp(-rng.normal(0, 9, n))),
    }.get(shape, rng.beta(1.2, 1.2, n))
    truth = {
        "over-confident": 0.5 + 0.6 * (p - 0.5),
        "under-confident": np.clip(0.5 + 1.5 * (p - 0.5), 0, 1),
        "too high": np.clip(p - 0.12, 0, 1),
        "local": np.clip(p - 0.25 * np.exp(-0.5 * ((p - 0.7) / 0.05) ** 2), 0, 1),
        "saturated": np.clip(p - 0.06, 0, 1),
        "rare": np.clip(1.7 * p, 0, 1),
        "both ends": p**0.7 / (p**0.7 + (1 - p) ** 0.7),
    }.get(shape, p)
    return (rng.random(n) < truth).astype(int), p


def _smooth(shape: str) -> ReliabilityDiagram:
    return cal.reliability_diagram(*_rows(shape), resamples=80)


def _groups() -> cal.Sketches:
    rng = np.random.default_rng(3)
    p = rng.beta(1.2, 1.2, 4000)
    group = rng.choice(5, p.size)
    y = rng.random(p.size) < np.clip(p + 0.06 * (group - 2), 0, 1)
    return cal.Sketches(
        {f"region {k}": cal.Sketch.from_arrays(y[group == k], p[group == k]) for k in range(5)},
        by="region",
    )


def _forest() -> Diagram:
    return forest_plot(cal.assess_by(_groups()))


def _several() -> Diagrams:
    return cal.reliability_diagrams(_groups(), resamples=80)


def _two() -> Diagrams:
    shapes = {"model A": "over-confident", "model B": "too high"}
    return cal.reliability_diagrams({k: _rows(v) for k, v in shapes.items()}, resamples=80)


def _two_saturated() -> Diagrams:
    """As two classifiers of a few hundred rows often are: hardly a prediction between the ends."""
    rng = np.random.default_rng(5)
    log_odds = rng.normal(0, 14, 600)
    y = rng.random(600) < 1 / (1 + np.exp(-log_odds))
    p = {"model A": 1 / (1 + np.exp(-log_odds)), "model B": 1 / (1 + np.exp(-4 * log_odds))}
    return cal.reliability_diagrams({name: (y, each) for name, each in p.items()}, resamples=80)


DRAWN: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "calibrated": lambda: (_smooth("calibrated"), {}),
    "over-confident": lambda: (_smooth("over-confident"), {"title": "A", "subtitle": "b"}),
    "under-confident dark": lambda: (_smooth("under-confident"), {"theme": "dark"}),
    "too high print": lambda: (_smooth("too high"), {"theme": "print"}),
    "local position": lambda: (_smooth("local"), {"against": "position"}),
    "few rows": lambda: (_smooth("few"), {}),
    "saturated": lambda: (_smooth("saturated"), {}),
    "rare": lambda: (_smooth("rare"), {}),
    "both ends": lambda: (_smooth("both ends"), {}),
    "overlay": lambda: (_two(), {}),
    "overlay saturated": lambda: (_two_saturated(), {}),
    "side by side": lambda: (_two(), {"layout": "grid"}),
    "small multiples": lambda: (_several(), {"layout": "grid", "title": "By region"}),
    "forest": lambda: (_forest(), {}),
    "isotonic with attributes": lambda: (
        cal.plotting.isotonic_diagram(*_rows("over-confident"), resamples=80),
        {"attributes": True},
    ),
}
WRITTEN: dict[str, Callable[[], str]] = {
    "tenths": lambda: _smooth("tenths").to_svg(theme="light"),
    "over-confident dark": lambda: _smooth("over-confident").to_svg(theme="dark"),
    "rare logit": lambda: _smooth("rare").to_svg(theme="light", axes="logit"),
    "few rows": lambda: _smooth("few").to_svg(theme="light"),
    "both ends dark": lambda: _smooth("both ends").to_svg(theme="dark"),
    "split": lambda: _smooth("local").to_svg(theme="light", density="split", ticks=True),
    "binned": lambda: cal.plotting.binned_diagram(*_rows("too high")).to_svg(theme="light"),
    "cumulative": lambda: cal.plotting.cumulative_diagram(*_rows("too high")).to_svg(theme="light"),
    "forest": lambda: _forest().to_svg(theme="light", width=480, height=300),
}
assert len(DRAWN) + len(WRITTEN) == 24


def _differs(new: np.ndarray, old: np.ndarray) -> str:
    """What the eye would see of the difference; empty where it would see none."""
    if np.abs(np.subtract(new.shape, old.shape)).max() > 2:
        return f"the size went from {old.shape} to {new.shape}"
    rows, columns = np.minimum(new.shape[:2], old.shape[:2])
    gap = np.abs(new[:rows, :columns, :3] - old[:rows, :columns, :3]).mean(axis=2)
    blurred = uniform_filter(gap, 5)
    if gap.mean() > OVER_ALL or blurred.max() > ANYWHERE:
        return f"by {gap.mean():.4f} over all, {blurred.max():.2f} at one place"
    return ""


def _raster(svg: str) -> np.ndarray:
    return np.asarray(imread(io.BytesIO(vl_convert.svg_to_png(svg))))


@pytest.mark.skipif(
    MATPLOTLIB < PAINTED_BY, reason="this Matplotlib gives letters another shape and width"
)
@pytest.mark.parametrize("name", DRAWN)
def test_drawn_pictures_look_as_they_did(name: str, tmp_path: Path) -> None:
    picture, look = DRAWN[name]()
    target, golden = tmp_path / "new.png", FOLDER / f"{name}.png"
    picture.save(target, dpi=64, **look)
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_bytes(target.read_bytes())
    assert _differs(imread(target), imread(golden)) == ""


@pytest.mark.parametrize("name", WRITTEN)
def test_written_pictures_look_as_they_did(name: str) -> None:
    golden, svg = FOLDER / f"{name}.svg", WRITTEN[name]()
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(svg, encoding="utf-8")
    assert _differs(_raster(svg), _raster(golden.read_text(encoding="utf-8"))) == ""


def test_the_eye_sees_a_broken_picture(tmp_path: Path) -> None:
    diagram = _smooth("over-confident")
    pictures = []
    for k, look in enumerate(({}, {"band": None}, {"density": None}, {"legend": False})):
        diagram.save(tmp_path / f"{k}.png", dpi=64, **look)
        pictures.append(imread(tmp_path / f"{k}.png"))
    assert all(_differs(other, pictures[0]) for other in pictures[1:])


@pytest.mark.parametrize("name", DRAWN)
def test_no_words_overlap(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a figure that is shown nor in one that is saved."""
    picture, look = DRAWN[name]()
    saved: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(
            calibrant.plotting.matplotlib, "save", lambda drawn, *_, **__: saved.append(drawn)
        )
        picture.save("unused.png", **look)
    look = {key: value for key, value in look.items() if key != "theme"}
    if look.pop("layout", "") == "grid":
        saved.append(next(iter(picture.plot_grid(**look).values())).figure)
    else:
        saved.append(picture.plot(**look).figure)
    for figure in saved:
        _require_words_apart(figure)
        plt.close(figure)


@pytest.mark.parametrize("shape", ["rare", "saturated", "few", "over-confident", "both ends"])
def test_the_number_covers_neither_curve_nor_band(shape: str) -> None:
    drawn = _smooth(shape).plot(theme="light")
    drawn.figure.draw_without_rendering()
    note = drawn.artists["note"][0].get_window_extent()
    core = drawn.artists["curve"][0]
    paths = [(core.get_path(), core.get_transform(), False)]
    for area in (*drawn.artists["band"], *drawn.artists["consistency"]):
        paths += [(path, area.get_transform(), True) for path in area.get_paths()]
    # What lies beyond the axes is not drawn.
    covered = [
        path.transformed(transform).intersects_bbox(note, filled=filled)
        for path, transform, filled in paths
        if note.overlaps(drawn.ax.bbox)
    ]
    assert not any(covered)
    plt.close(drawn.figure)


def _require_words_apart(figure: Any) -> None:
    figure.draw_without_rendering()
    boxes = {}
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and _shown(text):
            box = text.get_window_extent()
            boxes[f"{text.get_text()!r} at {box.x0:.0f}, {box.y0:.0f}"] = box.padded(-1.0)
    assert len(boxes) > 8
    for (one, a), (other, b) in combinations(boxes.items(), 2):
        assert not a.overlaps(b), f"{one} overlaps {other}"
    for one, box in boxes.items():
        assert box.x0 > 0, one
        assert box.y0 > 0, one
        assert figure.bbox.x1 > box.x1, one
        assert figure.bbox.y1 > box.y1, one


def _shown(text: Text) -> bool:
    """Whether its axes and, of a tick, its label are drawn."""
    axes = text.axes
    if axes is None or not axes.get_visible():
        return axes is None
    hidden = {
        id(label)
        for axis, on in ((axes.xaxis, "labelbottom"), (axes.yaxis, "labelleft"))
        for tick in axis.get_major_ticks()
        for label in (tick.label1, tick.label2)
        if label is tick.label2 or not axis.get_tick_params().get(on, True)
    }
    return id(text) not in hidden


@pytest.mark.parametrize("several", [_two, _several])
def test_labels_name_their_own_curve(several: Callable[[], Diagrams]) -> None:
    panel = several().panel()
    curves = {mark.series: mark for mark in panel.marks if isinstance(mark, Trail)}
    labels = [mark for mark in panel.marks if isinstance(mark, Words)]
    assert len(labels) == (len(curves) if several is _two else 0)  # all of them, or none
    for label in labels:
        gaps = {
            series: np.hypot(curve.x - label.x, curve.y - label.y).min()
            for series, curve in curves.items()
        }
        assert min(gaps, key=gaps.__getitem__) == label.series
