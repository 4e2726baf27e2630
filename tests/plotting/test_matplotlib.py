"""Matplotlib drawings, checked by their artists."""

from __future__ import annotations

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from calibrant.errors import InputError
from calibrant.plotting.axis import Axis
from calibrant.plotting.group import reliability_diagrams
from calibrant.plotting.looks import DARK, LIGHT, PRINT
from calibrant.plotting.matplotlib import draw, new_figure, save
from calibrant.plotting.matplotlib_marks import width_of
from calibrant.plotting.panel import Dots, Line, Panel, Trail


def test_every_mark_comes_back_under_its_key(panel: Panel) -> None:
    ax = Figure().subplots()
    artists = draw(panel, ax)
    assert set(artists) == {mark.key for mark in panel.marks} | {"note"}
    drawn = [artist for group in artists.values() for artist in group]
    assert all(artist.axes is ax for artist in drawn)
    assert ax.get_xlabel() == "x axis"
    assert ax.get_ylim() == (-0.08, 1.08)


def test_trail_width_is_the_weight(panel: Panel) -> None:
    core, trail, _ = draw(panel, Figure().subplots())["trail"]
    assert isinstance(core, Line2D)
    assert isinstance(trail, LineCollection)
    trail_mark = next(mark for mark in panel.marks if isinstance(mark, Trail))
    known = np.isfinite(trail_mark.y)
    widths = np.asarray(trail.get_linewidths())
    assert np.ptp(widths / width_of(trail_mark.weight[known])) < 1e-12
    # Every known point has a stroke of its own, which the missing one does not join.
    strokes = np.array(trail.get_segments())
    assert np.array_equal(strokes[:, 1], np.column_stack([trail_mark.x, trail_mark.y])[known])
    ends = np.abs(strokes[1:, 0] - strokes[:-1, 2]).max(axis=1)
    assert np.count_nonzero(ends > 1e-12) == 1
    assert np.array_equal(core.get_ydata(), trail_mark.y, equal_nan=True)


def test_points_have_whiskers_and_bands_their_bounds(panel: Panel) -> None:
    artists = draw(panel, Figure().subplots())
    dots, whiskers = artists["points"]
    assert np.allclose(dots.get_offsets(), [[0.25, 0.2]])
    assert np.allclose(whiskers.get_segments()[0], [[0.25, 0.1], [0.25, 0.3]])
    (band,) = artists["band"]
    assert len(band.get_paths()) == 2  # broken at the missing point
    (steps,) = artists["steps"]
    assert np.allclose(steps.get_segments(), [[[0.0, 0.2], [0.5, 0.2]]])


def test_strokes_and_hills_keep_to_their_edge(panel: Panel) -> None:
    artists = draw(panel, Figure().subplots())
    (strokes,) = artists["ticks"]
    assert np.nanmin(strokes.get_ydata()) > 0.9
    assert np.array_equal(strokes.get_xdata()[::3], [0.1, 0.7])
    fill, _, hanging, _ = artists["hill"]
    assert fill.get_paths()[0].vertices[:, 1].max() < 0.25
    assert hanging.get_paths()[0].vertices[:, 1].min() > 0.75


def test_later_marks_lie_above(panel: Panel) -> None:
    artists = draw(panel, Figure().subplots())
    assert artists["trail"][0].get_zorder() > artists["band"][0].get_zorder()


def test_nothing_global_changes(panel: Panel) -> None:
    before = dict(mpl.rcParams)
    draw(panel, Figure().subplots())
    _, axes = new_figure(theme=DARK, width=3.3, caller="test")
    draw(panel, axes[0, 0])
    assert dict(mpl.rcParams) == before


def test_theme_follows_the_background(panel: Panel) -> None:
    ax = Figure().subplots()
    ax.set_facecolor("#101010")
    assert draw(panel, ax)["trail"][0].get_color() == DARK.series[0]
    assert draw(panel, Figure().subplots())["trail"][0].get_color() == LIGHT.series[0]
    assert (
        draw(panel, Figure().subplots(), theme="print")["trail"][0].get_color() == (PRINT.series[0])
    )
    coloured = replace(panel, colors={"a": "#123456"})
    assert draw(coloured, Figure().subplots())["trail"][0].get_color() == "#123456"


def test_widths_follow_the_size_of_the_axes(panel: Panel) -> None:
    widths = []
    for inches in (2.5, 10.0):
        _, axes = new_figure(theme=LIGHT, width=inches, caller="test")
        widths.append(draw(panel, axes[0, 0])["line"][0].get_linewidth())
    assert widths[1] > 2 * widths[0]


def test_several_series_differ_by_marker(panel: Panel) -> None:
    several = replace(panel, legend={"a": "A", "b": "B"})
    core, _, dots = draw(several, Figure().subplots())["trail"]
    assert core.get_marker() == dots.get_marker() == "o"
    assert dots.get_markevery()

    edge, paper = dots.get_markeredgecolor(), LIGHT.paper
    assert edge == paper  # else it would vanish in a thick trail


def test_what_tells_series_apart_lies_on_top(panel: Panel) -> None:
    artists = draw(panel, Figure().subplots())
    core, trail, dots = (artist.get_zorder() for artist in artists["trail"])
    assert core < trail < dots  # where a trail fades, no line shows through
    assert artists["points"][0].get_zorder() > artists["points"][1].get_zorder()


def test_legend_and_notes_are_text_as_it_is_written(panel: Panel, tmp_path) -> None:
    names = {"a": "$a^2 _x", "b": "_hidden \\alpha $"}
    odd = replace(panel, legend=names, notes=("costs $5",), title="a $ and a $$")
    figure, axes = new_figure(theme=LIGHT, width=3.3, caller="test")
    artists = draw(odd, axes[0, 0])
    assert [text.get_text() for text in artists["legend"][0].get_texts()] == list(names.values())
    written = save(figure, tmp_path / "names.svg").read_text(encoding="utf-8")
    for text in (*names.values(), *odd.notes, odd.title):
        assert f">{text}</text>" in written


@pytest.mark.parametrize("bend", [1.0, 6.0, 1 / 6])
@pytest.mark.parametrize("width", [3.3, 6.0])
def test_the_legend_covers_no_curve(bend: float, width: float) -> None:
    x = np.linspace(0, 1, 200)
    flat = np.full_like(x, 0.5)
    curves = (0.5 + (x - 0.5) * 0.9, x**bend, 1 - x if bend == 1.0 else flat)
    marks = tuple(
        Trail(key="curve", series=str(k), x=x, y=y, weight=flat) for k, y in enumerate(curves)
    )
    name = "a model with a long name"
    legend = {mark.series: f"{name} {mark.series} · error 0.012 (0.009 to 0.015)" for mark in marks}
    picture = Panel(marks, Axis("x", -0.02, 1.02), Axis("y", -0.08, 1.08), legend=legend)
    figure, axes = new_figure(theme=LIGHT, width=width, caller="test")
    (drawn,) = draw(picture, axes[0, 0], legend_outside=True)["legend"]
    figure.draw_without_rendering()
    box = drawn.get_window_extent()
    assert figure.bbox.contains(*box.min)
    assert figure.bbox.contains(*box.max)
    for mark in marks:
        places = axes[0, 0].transData.transform(np.column_stack([mark.x, mark.y]))
        assert not box.count_contains(places)


def test_note_goes_to_the_emptier_corner() -> None:
    x = np.linspace(0, 1, 50)
    above = Line(key="curve", series="a", x=x, y=0.9 + 0.1 * x)
    axes = Axis("x", 0, 1), Axis("y", 0, 1)
    (note,) = draw(Panel((above,), *axes, ("some words",)), Figure().subplots())["note"]
    assert note.get_position()[0] > 0.5
    below = replace(above, y=0.3 * x)
    (note,) = draw(Panel((below,), *axes, ("some words",)), Figure().subplots())["note"]
    assert note.get_position()[0] < 0.5


def test_logit_axes_have_plain_labels() -> None:
    x = np.array([0.0, 0.002, 0.01, 0.1, 1.0])
    line = Line(key="curve", series="a", x=x, y=x)
    dot = Dots(key="dots", series="a", x=x[1:2], y=x[1:2], low=x[1:2], high=x[2:3], weight=x[1:2])
    ax = Figure().subplots()
    axis = Axis("x", 0.001, 0.5, "logit")
    draw(Panel((line, dot), axis, axis), ax)
    ax.figure.draw_without_rendering()
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.001", "0.01", "0.1", "0.5"]


@pytest.mark.parametrize("projection", ["polar", "3d"])
def test_other_projections_are_refused(panel: Panel, projection: str) -> None:
    ax = Figure().add_subplot(projection=projection)
    with pytest.raises(InputError) as error:
        draw(panel, ax)
    assert (error.value.argument, error.value.seen) == ("ax", ax.name)


def test_what_is_no_axes_is_refused(panel: Panel) -> None:
    with pytest.raises(InputError) as error:
        draw(panel, Figure())
    assert (error.value.argument, error.value.seen) == ("ax", "Figure")
    with pytest.raises(InputError) as error:
        draw(panel, Figure().subplots(1, 2))
    assert error.value.cures


def test_unknown_theme_and_ending_are_refused(panel: Panel, tmp_path) -> None:
    with pytest.raises(InputError) as error:
        draw(panel, Figure().subplots(), theme="neon")
    assert (error.value.argument, error.value.seen) == ("theme", "neon")
    with pytest.raises(InputError) as error:
        save(Figure(), tmp_path / "picture.tiff")
    assert (error.value.argument, error.value.seen) == ("path", "picture.tiff")


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_saved_bytes_repeat_and_text_stays_text(panel: Panel, tmp_path, kind: str) -> None:
    written = []
    for name in ("one", "two"):
        figure, axes = new_figure(theme=LIGHT, width=3.3, caller="test")
        draw(panel, axes[0, 0])
        written.append(save(figure, tmp_path / f"{name}.{kind}").read_bytes())
    assert written[0] == written[1]
    if kind == "svg":
        assert b">a note</text>" in written[0]


@pytest.mark.parametrize("name", ["漢字", "bell \a, null \0", "🙂", "$\\frac{$", "a" * 300])
def test_names_that_no_font_has_are_drawn_without_a_warning(name: str) -> None:
    """Warnings are errors here; also where the figure is drawn later, as a notebook does it."""
    rng = np.random.default_rng(0)
    p = rng.random(200)
    models = {name: (rng.random(200) < p, p), "other": (rng.random(200) < p, p)}
    several = reliability_diagrams(models, resamples=0)
    figures = [
        several[name].plot(name=name, title=name, subtitle=name).figure,
        several.plot(title=name).figure,
        next(iter(several.plot_grid(title=name).values())).figure,
    ]
    for figure in figures:
        figure.canvas.draw()
        plt.close(figure)
