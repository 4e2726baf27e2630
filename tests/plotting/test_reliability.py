"""The reliability diagram: numbers, artists on axes of others, and figures of its own."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from tests.refusals import refused

import calibrant as cal
from calibrant.plotting import Theme, register_theme
from calibrant.plotting.themes import THEMES
from calibrant.smoothing.curves import smooth_curves


def axes():
    return Figure().subplots()


# -- numbers ------------------------------------------------------------------------------------


def test_the_number_and_its_interval_are_those_of_assess(dense) -> None:
    diagram, found = cal.reliability_diagram(*dense), cal.assess(*dense)
    assert diagram.smooth_ece.value == pytest.approx(found.smooth_ece, abs=1e-6)
    assert diagram.assessment.interval.low == pytest.approx(found.interval.low, abs=1e-3)
    assert diagram.label.startswith(f"SmoothECE {found.smooth_ece:.3f} (95% CI ")
    assert diagram.verdict.sentence == "Overconfident: too near 0 and 1"
    assert (diagram.n, diagram.widened, diagram.bandwidth) == (3000, 0.0, None)


def test_an_assessment_is_used_as_it_is(dense) -> None:
    sketch = cal.Sketch.from_arrays(*dense)
    found = cal.assess(sketch, confidence=0.9)
    diagram = cal.reliability_diagram(sketch, assessment=found)
    assert diagram.assessment is found
    assert diagram.confidence == 0.9
    with refused("assessment"):
        cal.reliability_diagram(*dense, assessment=found)


@pytest.mark.parametrize("seed", range(4))
def test_the_papers_figure_is_unchanged(seed: int) -> None:
    """At SmoothECE's bandwidth the curve is the smoothed regression of the paper, wherever there are rows."""
    rng = np.random.default_rng(seed)
    p = rng.beta(*[(1, 1), (0.4, 0.4), (5, 5), (0.3, 3)][seed], 2000)
    y = (rng.random(2000) < p**1.2).astype(int)
    diagram = cal.reliability_diagram(y, p, bandwidth="smooth_ece")
    width = diagram.smooth_ece.bandwidth
    exact = smooth_curves(cal.Sketch.from_arrays(y, p), width, points=1 << 13)
    curve = diagram.curve
    shown = curve.density > 1e-3 * curve.density.max()
    assert curve.drawn[shown].all()
    np.testing.assert_allclose(curve.bandwidth[shown], width)
    for mine, theirs in (
        (curve.observed, exact.regression),
        (curve.prediction, exact.smoothed_predictions),
    ):
        there = np.interp(curve.position[shown], exact.position, theirs)
        np.testing.assert_allclose(mine[shown], there, atol=2e-3)
    assert diagram.assessment is not None


def test_a_bandwidth_of_your_own(dense) -> None:
    diagram = cal.reliability_diagram(*dense, bandwidth=0.1)
    assert diagram.smooth_ece.value == pytest.approx(
        cal.smooth_ece(*dense, bandwidth=0.1), abs=1e-6
    )
    assert diagram.area == pytest.approx(diagram.smooth_ece.value, rel=1e-3)
    assert diagram.assessment is None
    assert "at bandwidth 0.1" in diagram.label
    for wrong in ("scott", -1.0, 0, np.nan, [0.1]):
        with refused("bandwidth"):
            cal.reliability_diagram(*dense, bandwidth=wrong)


def test_other_scales(dense) -> None:
    y, p = dense
    diagram = cal.reliability_diagram(y, p.clip(0.01, 0.99), scale="logit")
    shown = diagram.curve.drawn
    assert shown.sum() > 20
    assert (
        np.abs(diagram.curve.observed - (0.5 + 0.7 * (diagram.curve.prediction - 0.5)))[shown].max()
        < 0.15
    )
    assert diagram.smooth_ece.value == pytest.approx(
        cal.smooth_ece(y, p.clip(0.01, 0.99), scale="logit"), rel=1e-4
    )


def test_the_same_from_rows_and_from_a_sketch(rare) -> None:
    one = cal.reliability_diagram(*rare)
    other = cal.reliability_diagram(cal.Sketch.from_arrays(*rare))
    np.testing.assert_array_equal(one.curve.observed, other.curve.observed)


def test_data_goes_on(dense) -> None:
    diagram = cal.reliability_diagram(*dense)
    frame = diagram.to_frame("pandas")
    assert list(frame.columns)[:2] == ["prediction", "observed"]
    document = json.loads(json.dumps(diagram.to_dict()))
    assert document["n"] == 3000
    assert document["drawn_wider"] == diagram.widened
    assert document["area"] == pytest.approx(document["smooth_ece"]["value"], rel=1e-2)
    again = pickle.loads(pickle.dumps(diagram))
    np.testing.assert_array_equal(again.curve.observed, diagram.curve.observed)
    with refused("backend"):
        diagram.to_frame("numpy")
    assert "3000" in repr(diagram)


# -- on axes of others --------------------------------------------------------------------------


def test_a_guest_leaves_title_legend_and_layout_alone(dense) -> None:
    figure, ax = plt.subplots(layout="constrained")
    ax.set_title("mine")
    ax.set_xlabel("my label")
    box = ax.get_position().bounds
    plot = cal.reliability_diagram(*dense).plot(ax)
    assert (plot.ax, plot.figure) == (ax, figure)
    assert ax.get_legend() is None
    assert not figure.legends
    assert not figure.texts
    assert ax.get_title() == "mine"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("my label", "Observed frequency")
    assert ax.get_aspect() == "auto"
    assert ax.get_position().bounds == box
    low, high = ax.get_xlim()
    assert (low, high) == (pytest.approx(-0.02), pytest.approx(1.02))


@pytest.mark.parametrize("rare_first", [False, True])
def test_shared_axes_take_in_all_diagrams(dense, rare_first: bool) -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 99, 20_000)
    rare = cal.reliability_diagram((rng.random(p.size) < p).astype(int), p)
    alone = rare.plot(axes()).ax
    order = [cal.reliability_diagram(*dense), rare][:: -1 if rare_first else 1]
    several = Figure().subplots(1, 2, sharey=True)
    for ax, diagram in zip(several, order, strict=True):
        diagram.plot(ax)
        assert ax.get_ylim()[1] == several[0].get_ylim()[1]
    assert several[0].get_ylim()[1] == pytest.approx(1.02)
    assert several[int(not rare_first)].get_xlim() == alone.get_xlim()
    assert several[int(not rare_first)].get_xlabel() == alone.get_xlabel()
    assert "axis ends" in alone.get_xlabel()
    both = Figure().subplots(2, sharex=True)
    for ax, diagram in zip(both, order, strict=True):
        diagram.plot(ax)
    assert [ax.get_xlim()[1] for ax in both] == pytest.approx([1.02, 1.02])
    assert [ax.get_xlabel() for ax in both] == ["Predicted probability"] * 2


def test_looks_work_as_in_matplotlib(dense) -> None:
    ax = axes()
    plot = cal.reliability_diagram(*dense).plot(
        ax, color="C3", label="mine", linewidth=2.5, alpha=0.5, linestyle="--"
    )
    (curve,) = plot.artists["curve"]
    assert isinstance(curve, LineCollection)
    red = matplotlib.colors.to_rgba("C3", 0.5)
    assert tuple(curve.get_color()[0]) == pytest.approx(red)
    assert list(curve.get_linewidth()) == [2.5]
    assert curve.get_linestyle()[0][1] is not None
    assert [text.get_text() for text in ax.legend().get_texts()] == ["mine"]
    (band,) = plot.artists["confidence_band"]
    assert isinstance(band, PolyCollection)
    assert tuple(band.get_facecolor()[0][:3]) == pytest.approx(red[:3])
    curve.set_color("C1")
    assert tuple(curve.get_color()[0][:3]) == matplotlib.colors.to_rgb("C1")


def test_colours_follow_the_cycle_of_the_axes(dense) -> None:
    ax = axes()
    ax.plot([0, 1], [1, 0])
    ax.set_prop_cycle(color=["#112233", "#445566"])
    diagram = cal.reliability_diagram(*dense)
    colors = [diagram.plot(ax).artists["curve"][0].get_color()[0] for _ in range(2)]
    assert [matplotlib.colors.to_hex(color) for color in colors] == ["#112233", "#445566"]
    kinds = [artist.get_gid() for artist in ax.get_children()]
    assert kinds.count("calibrant-shared") == 1  # the diagonal


def test_the_line_is_as_wide_as_its_evidence(rare) -> None:
    plot = cal.reliability_diagram(*rare).plot(axes())
    (curve,) = plot.artists["curve"]
    widths = np.asarray(curve.get_linewidth())
    assert 0.8 <= widths.min() < 1.0
    assert widths.max() == pytest.approx(2.5)
    xs = [path.vertices[:, 0].mean() for path in curve.get_paths()]
    assert xs[int(np.argmax(widths))] < 0.05  # nearly all rows are near 0


def test_vertices_are_those_of_the_curve(dense) -> None:
    diagram = cal.reliability_diagram(*dense)
    (curve,) = diagram.plot(axes(), linewidth=1.0).artists["curve"]
    (path,) = curve.get_paths()
    x, y = path.vertices.T
    of = diagram.curve
    curve = np.interp(x, of.prediction[of.drawn], of.observed[of.drawn])
    np.testing.assert_allclose(y, curve, atol=1e-9)


def test_bands_are_only_where_the_curve_is() -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.05, 0.3, 500), rng.uniform(0.7, 0.95, 500)])
    plot = cal.reliability_diagram((rng.random(1000) < p).astype(int), p).plot(axes())
    for key in ("confidence_band", "consistency_band"):
        (band,) = plot.artists[key]
        xs = np.concatenate([path.vertices[:, 0] for path in band.get_paths()])
        assert len(band.get_paths()) == 2
        assert not ((xs > 0.32) & (xs < 0.65)).any()


def test_without_bands(dense) -> None:
    plot = cal.reliability_diagram(*dense, bands=False).plot(axes())
    assert not {"confidence_band", "consistency_band"} & set(plot.artists)


def test_points_have_their_intervals() -> None:
    p = np.repeat([0.2, 0.6], 100)
    y = np.concatenate([np.arange(100) < 30, np.arange(100) < 60]).astype(int)
    diagram = cal.reliability_diagram(y, p)
    dots, bars = diagram.plot(axes(), label="two").artists["points"]
    assert isinstance(dots, PathCollection)
    assert dots.get_label() == "two"
    np.testing.assert_allclose(dots.get_offsets(), [[0.2, 0.3], [0.6, 0.6]], atol=1e-6)
    ends = np.array([path.vertices[:, 1] for path in bars.get_paths()])
    np.testing.assert_allclose(ends[:, 0], diagram.points.low)
    np.testing.assert_allclose(ends[:, 1], diagram.points.high)


@pytest.mark.parametrize(
    ("key", "near"),
    [("colour", "color"), ("lable", "label"), ("line_width", "linewidth"), ("aplha", "alpha")],
)
def test_unknown_keywords_name_the_nearest(dense, key: str, near: str) -> None:
    with refused(key, holds=f"`{near}`"):
        cal.reliability_diagram(*dense).plot(axes(), **{key: 1})


def test_bins_are_those_of_the_binned_diagram(dense) -> None:
    with pytest.raises(TypeError, match=r"plotting\.binned_diagram"):
        cal.reliability_diagram(*dense, n_bins=10)
    assert len(cal.plotting.binned_diagram(*dense, n_bins=4).columns()["observed"]) == 4


@pytest.mark.parametrize("key", ["title", "subtitle", "xlabel", "xlim", "legend"])
def test_texts_are_for_new_figures(dense, key: str) -> None:
    value = (0, 1) if key == "xlim" else False if key == "legend" else "text"
    with refused(key):
        cal.reliability_diagram(*dense).plot(axes(), **{key: value})
    with refused("figsize"):
        cal.reliability_diagram(*dense).plot(axes(), figsize=(4, 4))


def test_axes_of_another_kind_are_refused(dense) -> None:
    diagram = cal.reliability_diagram(*dense)
    for projection in ("polar", "3d"):
        with refused("ax", holds=projection):
            diagram.plot(Figure().add_subplot(projection=projection))
    with refused("ax", holds="ax[0]"):
        diagram.plot(Figure().subplots(2))
    with refused("ax"):
        diagram.plot(Figure())
    gone = axes()
    gone.remove()
    with refused("ax", holds="removed"):
        diagram.plot(gone)


def test_a_closed_figure_can_be_drawn_on(dense) -> None:
    figure, ax = plt.subplots()
    plt.close(figure)
    assert cal.reliability_diagram(*dense).plot(ax).figure is figure


def test_dark_axes_get_dark_colours(dense) -> None:
    ax = axes()
    ax.set_facecolor("#101010")
    (line,) = cal.reliability_diagram(*dense).plot(ax).artists["diagonal"]
    assert line.get_color() == THEMES["dark"].reference


# -- figures of its own -------------------------------------------------------------------------


def texts_of(figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def test_title_number_labels_and_legend(dense) -> None:
    diagram = cal.reliability_diagram(*dense)
    plot = diagram.plot()
    assert texts_of(plot.figure) == [diagram.verdict.sentence, f"{diagram.label}, n = 3,000"]
    (legend,) = plot.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "This model, 95% confidence band (pointwise)",
        "Perfect calibration, 95% consistency band (whole curve)",
        "Distribution of predictions",
    ]
    assert plot.ax.get_legend() is None
    plot.figure.canvas.draw()
    inside = plot.ax.get_window_extent()
    assert not inside.overlaps(legend.get_window_extent())
    for text in plot.figure.texts:
        assert not inside.overlaps(text.get_window_extent())
    assert (plot.ax.get_xlabel(), plot.ax.get_ylabel()) == (
        "Predicted probability",
        "Observed frequency",
    )


def test_texts_and_limits_that_were_asked_for(dense) -> None:
    plot = cal.reliability_diagram(*dense).plot(
        title="Mine", subtitle="", xlabel="x", ylabel="y", xlim=(0.1, 0.5), legend=False, label="a"
    )
    assert texts_of(plot.figure) == ["Mine"]
    assert (plot.ax.get_xlabel(), plot.ax.get_ylabel(), plot.ax.get_xlim()) == (
        "x",
        "y",
        (0.1, 0.5),
    )
    assert not plot.figure.legends


def test_the_legend_has_the_label(dense) -> None:
    plot = cal.reliability_diagram(*dense).plot(label="naive Bayes")
    first = plot.figure.legends[0].get_texts()[0].get_text()
    assert first == "naive Bayes, 95% confidence band (pointwise)"


@pytest.mark.parametrize("size", [(3.0, 3.4), (6.0, 6.5), (9.0, 4.0)])
def test_figures_of_a_size(dense, size) -> None:
    plot = cal.reliability_diagram(*dense).plot(figsize=size)
    assert tuple(plot.figure.get_size_inches()) == size
    with refused("figsize"):
        cal.reliability_diagram(*dense).plot(figsize=(0.1, 3000))


def test_short_axes_for_rare_events() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 999, 20_000)
    plot = cal.reliability_diagram((rng.random(p.size) < p).astype(int), p).plot()
    assert plot.ax.get_xlim()[1] < 0.02
    assert f"axis ends at {plot.ax.get_xlim()[1] / 1.02:g}" in plot.ax.get_xlabel()
    mirrored = cal.reliability_diagram((rng.random(p.size) < 1 - p).astype(int), 1 - p).plot()
    assert mirrored.ax.get_xlim()[0] > 0.97
    assert "axis starts at" in mirrored.ax.get_xlabel()


def test_axes_show_all_of_the_error(rare) -> None:
    y, p = rare
    y = np.where(p > 0.5, 0, y)
    plot = cal.reliability_diagram(y, p).plot()
    assert plot.ax.get_xlim()[1] == pytest.approx(1.02)


@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_files(dense, tmp_path, ending: str, theme: str) -> None:
    diagram = cal.reliability_diagram(*dense)
    one = diagram.save(tmp_path / f"a.{ending}", theme=theme).read_bytes()
    assert one == diagram.save(tmp_path / f"b.{ending}", theme=theme).read_bytes()
    assert one.startswith({"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[ending])
    if ending == "svg":
        assert THEMES[theme].series[0].encode() in one
        assert b"Observed frequency</text>" in one
        assert len(one) < 120_000


def test_what_cannot_be_written(dense, tmp_path) -> None:
    diagram = cal.reliability_diagram(*dense)
    for path in ("a.jpg", "a", 3):
        with refused("path"):
            diagram.save(path)
    with refused("dpi"):
        diagram.save(tmp_path / "a.png", dpi=0)
    with refused("width"):
        diagram.save(tmp_path / "a.png", width=1000)
    with refused("theme"):
        diagram.save(tmp_path / "a.png", theme="sepia")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["a\x00b\x1b[31m", "lone \ud800\ufffe", "$x^2$ \\frac", "<b>&\"'", "", "n" * 300]
)
def test_hostile_names(dense, tmp_path, name: str) -> None:
    from xml.etree import ElementTree

    diagram = cal.reliability_diagram(*dense)
    for text in (
        diagram.to_svg(label=name, title=name, xlabel=name),
        cal.plotting.Diagrams({name: diagram, "other": diagram}).to_svg(),
        cal.plotting.forest_plot({name: diagram.assessment}).to_svg(),
    ):
        ElementTree.fromstring(text)
    diagram.save(tmp_path / "a.pdf", title=name)
    ax = axes()
    diagram.plot(ax, label=name)
    ax.figure.canvas.draw()


def test_a_theme_of_your_own(dense) -> None:
    from dataclasses import replace

    register_theme(replace(THEMES["light"], name="rose", series=("#aa1155",)))
    assert "#aa1155" in cal.reliability_diagram(*dense).to_svg(theme="rose")
    assert "#aa1155" in cal.reliability_diagram(*dense).to_svg(theme=THEMES["rose"])
    with refused("theme"):
        register_theme(replace(THEMES["light"], paper="no colour"))
    assert isinstance(THEMES["rose"], Theme)


def test_notebooks_show_the_picture(dense) -> None:
    html = cal.reliability_diagram(*dense)._repr_html_()
    assert html.startswith("<div><svg")
    assert 'id="figure' not in html
    assert "<metadata" not in html


@pytest.mark.parametrize(
    ("y", "p"),
    [
        ([1], [0.5]), ([0], [0.0]), ([1], [0.0]), ([0, 1], [0.3, 0.3]), ([0] * 50, [0.0] * 50),
        ([0, 1] * 25, [0.0, 1.0] * 25), ([1, 0] * 25, [0.0, 1.0] * 25), ([1] * 40, [0.4] * 40),
        ([0, 1, 1], [0.2, 0.9, 0.4]), ([0] * 100, [1e-300] * 100),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:All predictions are 0 or 1")
def test_odd_samples_are_drawn(y, p) -> None:
    diagram = cal.reliability_diagram(y, p)
    diagram.plot().figure.canvas.draw()
    shown = diagram.curve.drawn.any() or diagram.points.prediction.size
    assert shown
    cal.reliability_diagram(y, p, bandwidth="smooth_ece").to_svg()


# -- other diagrams ------------------------------------------------------------------------------


def test_a_map_is_drawn_over_the_diagonal(dense) -> None:
    y, p = dense
    platt = cal.recalibration.PlattRecalibrator()
    diagram = cal.plotting.map_diagram(y, p, recalibrator=platt, resamples=40)
    fitted = cal.recalibration.PlattRecalibrator().fit(p, y)
    np.testing.assert_allclose(diagram.recalibrated, fitted.transform(diagram.prediction))
    assert ((diagram.low <= diagram.recalibrated) & (diagram.recalibrated <= diagram.high)).all()
    assert diagram.to_dict()["map"] == "platt"
    assert {"diagonal", "histogram", "confidence_band", "curve"} == set(diagram.plot().artists)
    alone = cal.plotting.map_diagram(fitted)
    assert alone.n is None
    assert {"diagonal", "curve"} == set(alone.plot(axes()).artists)
    with refused("y_prob"):
        cal.plotting.map_diagram(fitted, p)
    with refused("recalibrator"):
        cal.plotting.map_diagram(y, p, recalibrator=cal.recalibration.RandomizedRecalibrator())


@pytest.mark.parametrize("layout", ["overlay", "grid", None])
def test_diagrams_of_other_kinds_stand_together(dense, layout) -> None:
    plotting = cal.plotting
    several = plotting.Diagrams(
        {
            "bins": plotting.binned_diagram(*dense),
            "isotonic": plotting.isotonic_diagram(*dense, resamples=20),
        }
    )
    plots = several.plot(layout=layout)
    assert len({id(plot.ax) for plot in plots.values()}) == (1 if layout == "overlay" else 2)
    (legend,) = next(iter(plots.values())).figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == (2 if layout == "overlay" else 3)
    with refused("assessments"):
        several.to_svg(layout="forest")


@pytest.mark.parametrize(
    "look",
    [
        {"color": 3},
        {"color": "no colour"},
        {"title": 3},
        {"xlabel": b"p"},
        {"xlim": 1},
        {"ylim": (0, np.nan)},
        {"ylim": (0.5, 0.5)},
    ],
)
def test_looks_of_another_type_are_refused(dense, look) -> None:
    (key,) = look
    diagram = cal.reliability_diagram(*dense)
    with refused(key, *look.values(), holds="must be"):
        diagram.plot(**look)
    with refused(key, *look.values(), holds="must be"):
        cal.plotting.Diagrams({"a": diagram, "b": diagram}).plot(**look)
    if key == "color":
        with refused(key, *look.values()):
            cal.plotting.Diagrams({"a": diagram}).plot(color={"a": look[key]})
    with pytest.raises(ValueError, match="alpha"):
        diagram.plot(axes(), alpha=2)


def test_axes_around_a_short_range_say_where_they_are() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.42, 0.55, 3000)
    ax = cal.reliability_diagram((rng.random(p.size) < p).astype(int), p).plot().ax
    low, high = ax.get_xlim()
    assert 0.3 < low < 0.42
    assert 0.55 < high < 0.7
    assert "(axis from 0." in ax.get_xlabel()


@pytest.mark.parametrize("n", [200, 4000])
def test_short_stretches_are_points_and_long_ones_lines(n: int) -> None:
    rng = np.random.default_rng(0)
    for width, artist in ((0.1, "points"), (0.4, "curve")):
        p = np.concatenate([rng.uniform(0.0, width, n // 2), rng.uniform(1.0 - width, 1.0, n // 2)])
        drawn = cal.reliability_diagram((rng.random(n) < p).astype(int), p).plot(axes()).artists
        assert artist in drawn
        assert ("curve" in drawn) == (artist == "curve")


def test_a_single_row_is_seen_in_the_histogram() -> None:
    rng = np.random.default_rng(0)
    p = np.append(rng.uniform(0.0, 0.5, 10_000), 0.91)
    bars, rug = cal.reliability_diagram(p < 0.3, p).plot(axes()).artists["histogram"]
    heights, edges, bottom = bars.get_data()
    assert heights[np.searchsorted(edges, 0.91) - 1] == bottom < heights[0]
    assert [line[0, 0] for line in rug.get_segments()] == pytest.approx([0.91])


def test_tall_bars_have_their_share_beside_them() -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.0, 0.01, 900), rng.uniform(0.1, 0.9, 100)])
    *_, text = cal.reliability_diagram(p < 0.3, p).plot(axes()).artists["histogram"]
    assert text.get_text() == "90% of rows"
    thirds = np.repeat([0.2, 0.5, 0.7], 100)  # no room between these bars
    assert len(cal.reliability_diagram(thirds < 0.3, thirds).plot(axes()).artists["histogram"]) == 1


def test_single_rows_beside_two_crowds_are_no_values_of_their_own() -> None:
    p = np.concatenate([np.zeros(50), np.linspace(0.1, 0.9, 15), np.ones(50)])
    found = cal.reliability_diagram((p > 0.5).astype(int), p).points
    assert (found.rows >= 5).all()
    assert found.rows[[0, -1]].min() >= 50


# -- several ------------------------------------------------------------------------------------


def test_findings_of_classes_are_corrected_for_their_number() -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(26, 0.3), 3000)
    labels = (rng.random((3000, 1)) > probs.cumsum(axis=1)).sum(axis=1)
    several = cal.reliability_diagrams(labels, probs, multiclass="classwise")
    alone = sum(one.assessment.miscalibrated for one in several.values())
    plots = several.plot()
    texts = texts_of(plots["forest"].figure)
    assert alone > 0
    assert texts[0] == "0 of 26 classes miscalibrated; the worst in detail"
    assert len(plots) == 2
    assert texts[1] == "all classes"
    assert texts[2].startswith("class ")
    assert [t.get_text() for t in plots["forest"].ax.get_yticklabels()][-1] == texts[2]


def test_pieces_of_a_curve_beside_points_are_points() -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate(
        [rng.uniform(0, 0.25, 800), rng.uniform(0.45, 0.55, 15), rng.uniform(0.75, 1, 800)]
    )
    y = rng.random(p.size) < p
    assert set(cal.reliability_diagram(y, p).plot(axes()).artists) >= {"points", "histogram"}
    assert not cal.reliability_diagram(y, p).curve.drawn.any()
    ends = np.abs(p - 0.5) > 0.2
    assert "points" not in cal.reliability_diagram(y[ends], p[ends]).plot(axes()).artists


def test_one_kind_of_finding_is_said_once(dense) -> None:
    y, p = dense
    off, other = cal.assess(y, p), cal.assess(y, 1.0 - p)
    assert off.miscalibrated
    assert other.miscalibrated
    same = cal.plotting.forest_plot({"a": off, "b": off})
    assert same.label == f"2 of 2 miscalibrated, all {same.verdicts[0]}"
    assert "verdicts" not in same.plot().artists
    mixed = cal.plotting.forest_plot({"a": off, "b": other, "c": cal.assess(y[:50], p[:50])})
    assert "all" not in mixed.label
    assert "verdicts" in mixed.plot().artists


def test_findings_of_a_forest_are_read_whole_in_narrow_figures() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, 20_000)
    y = rng.random(p.size) < p
    waves = {
        "random forest, 300 trees, all hospitals of 2024": 0.02 * np.sin(20 * p),
        "logistic regression": 0.03 * np.sin(9 * p),
    }
    off = {name: cal.assess(y, np.clip(p + wave, 0, 1)) for name, wave in waves.items()}
    forest = cal.plotting.forest_plot(off | {"own": cal.assess(y, p)})
    assert max(map(len, forest.verdicts)) > 40
    for width in (4.0, 4.4, 8.0):
        plot = forest.plot(figsize=(width, None))
        texts = plot.artists["verdicts"]
        assert plot.ax.bbox.width > 0.3 * plot.figure.bbox.width
        assert tuple(" ".join(text.get_text().split()) for text in texts) == forest.verdicts
        boxes = [text.get_window_extent() for text in texts]
        assert max(box.x1 for box in boxes) < plot.figure.bbox.x1
        assert all(upper.y0 > lower.y1 for upper, lower in pairwise(boxes))
        plt.close(plot.figure)


def test_labels_of_small_multiples_stand_at_the_edge(dense) -> None:
    models = dict.fromkeys("abcde", dense)
    panels = [plot.ax for plot in cal.reliability_diagrams(models).plot().values()]
    assert [bool(ax.get_ylabel()) for ax in panels] == [True, False, False, True, False]
    assert [bool(ax.get_xlabel()) for ax in panels] == [False, False, True, True, True]


def test_models_with_points_stand_side_by_side(dense) -> None:
    y, p = dense
    tenths = np.round(p, 1)
    for models, alone in (({"a": dense, "b": (y, p**2)}, 1), ({"a": dense, "b": (y, tenths)}, 2)):
        plots = cal.reliability_diagrams(models).plot()
        assert len({id(plot.ax) for plot in plots.values()}) == alone
    legend = plots["a"].figure.legends[0].get_texts()[0].get_text()
    assert legend == "This model, 95% confidence band and intervals (pointwise)"


@pytest.mark.parametrize(
    ("off", "sentence"),
    [
        (lambda p: 0.1 * ((p > 0.35) & (p < 0.65)), "Predictions clearly too low from 0.3 to 0."),
        (lambda p: 0.1 * (p < 0.25) - 0.1 * (p > 0.65), "too high above 0.6, too low below 0.3"),
        (lambda p: -0.2 * p * (1.2 - p), "Predictions clearly too high everywhere"),
    ],
)
def test_titles_name_the_ranges_where_the_curve_leaves_its_band(off, sentence: str) -> None:
    from dataclasses import replace

    from calibrant.inference.direction import Direction

    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = rng.random(p.size) < p + off(p)
    found = cal.assess(y, p)
    none = Direction("no clear direction", 0.0, 0.0, (), 0.8, False)
    exact = replace(found, direction=none, mean_prediction=found.event_rate)
    diagram = cal.reliability_diagram(cal.Sketch.from_arrays(y, p), assessment=exact)
    assert sentence in diagram.verdict.sentence
    calibrated = cal.Sketch.from_arrays(rng.random(p.size) < p, p)
    nowhere = cal.reliability_diagram(calibrated, assessment=exact).verdict.sentence
    assert nowhere == "Miscalibrated overall, at no single place clearly"
    weak = replace(diagram, given=replace(exact, p_value=0.034))
    assert weak.verdict.sentence == f"Weak evidence overall: {diagram.verdict.short} (p = 0.034)"


@pytest.mark.parametrize(
    ("regions", "words"),
    [
        ([(0.1, 0.3, 0.05), (0.6, 0.8, -0.02)], "mostly too high by 0.05 from 0.10 to 0.30"),
        ([(0.1, 0.3, -0.05), (0.1, 0.3, -0.05)], "too low by 0.05 from 0.10 to 0.30"),
        ([], "miscalibrated"),
    ],
)  # fmt: skip
def test_lines_of_a_forest_name_the_ranges(dense, regions, words: str) -> None:
    from dataclasses import replace

    from calibrant.inference.direction import Direction, Region

    found = cal.assess(*dense)
    shares = [0.6, 0.3]
    parts = tuple(
        Region(low, high, gap, share, 0.05 * share)
        for (low, high, gap), share in zip(regions, shares, strict=False)
    )
    direction = Direction("no clear direction", 0.0, 0.0, parts, 0.8, False)
    exact = replace(found, direction=direction, mean_prediction=found.event_rate)
    assert cal.plotting.forest_plot({"a": exact}).verdicts == (words,)
