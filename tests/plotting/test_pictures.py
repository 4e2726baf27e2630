"""Pictures of diagrams: looks, overlays, grids, charts, files, and what is refused."""

from __future__ import annotations

import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from tests.refusals import refused

from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError
from calibrant.plotting.binned import binned_diagram
from calibrant.plotting.cumulative import cumulative_diagram
from calibrant.plotting.group import Diagrams, reliability_diagrams
from calibrant.plotting.isotonic import isotonic_diagram
from calibrant.plotting.matplotlib_marks import width_of
from calibrant.plotting.smooth import ReliabilityDiagram, reliability_diagram
from calibrant.reporting.report import report


def _rows(n: int = 1500, seed: int = 0, slope: float = 0.7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.beta(1.5, 0.8, n)
    return (rng.random(n) < 0.1 + slope * p).astype(int), p


@pytest.fixture(scope="module")
def diagram() -> ReliabilityDiagram:
    return reliability_diagram(*_rows(), resamples=100, curves=10)


@pytest.fixture(autouse=True)
def _no_open_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("against", ["prediction", "position"])
def test_width_of_the_curve_is_the_density(diagram, against) -> None:
    core, trail = diagram.plot(ax=Figure().subplots(), against=against).artists["curve"]
    assert isinstance(trail, LineCollection)
    widths = np.asarray(trail.get_linewidths()) / width_of(diagram.density / diagram.density.max())
    assert np.ptp(widths) < 1e-9
    across = diagram.smoothed_predictions if against == "prediction" else diagram.grid
    assert np.allclose(core.get_xydata(), np.column_stack([across, diagram.regression]), atol=1e-9)


def test_looks_change_the_artists_and_no_number(diagram) -> None:
    before = diagram.to_dict()
    plain = diagram.plot(
        ax=Figure().subplots(),
        curve="line",
        reference="diagonal",
        band=None,
        density=None,
        legend=False,
    )
    assert set(plain.artists) == {"diagonal", "resampled", "curve", "note"}
    split = diagram.plot(ax=Figure().subplots(), density="split", band="simultaneous", ticks=True)
    assert len(split.artists["predictions"]) == 2
    assert len(split.artists["outcomes"]) == 2
    paper = diagram.plot(ax=Figure().subplots(), against="position").artists
    assert {"density", "reference", "consistency"} <= set(paper)
    true = diagram.plot(ax=Figure().subplots(), truth=lambda t: 0.1 + 0.7 * t, color="#ff0000")
    assert np.allclose(true.artists["truth"][0].get_ydata(), 0.1 + 0.7 * diagram.grid)
    assert true.artists["curve"][0].get_color() == "#ff0000"
    skill = diagram.plot(ax=Figure().subplots(), attributes=True).artists
    (line,) = skill["no skill"]
    assert np.allclose(line.get_ydata(), (line.get_xdata() + diagram.event_rate) / 2)
    assert diagram.to_dict() == before


def test_the_legend_says_what_every_mark_is(diagram) -> None:
    said = {entry.text for entry in diagram.picture(name="ours").entries()}
    assert {mark.key for mark in diagram.picture().marks} == {
        entry.mark.key for entry in diagram.picture().entries()
    }
    assert any("ours" in text for text in said)
    assert any("95 of 100" in text for text in said)
    assert not diagram.picture(legend=False).entries()
    svg = diagram.to_svg()
    spec = diagram.chart(slider=False).to_json()
    drawn = diagram.plot().artists["legend"][0]
    for entry in diagram.picture().entries():
        assert entry.text in svg
        assert entry.text in spec
        assert entry.text in [text.get_text() for text in drawn.get_texts()]


def test_title_limits_and_size_are_as_asked(diagram) -> None:
    drawn = diagram.plot(
        title="A $ title", subtitle="below it", xlim=(0.2, 0.8), ylim=[0.1, 0.9], figsize=(3, 5)
    )
    assert drawn.ax.get_title(loc="left") == "A $ title\nbelow it"
    assert (drawn.ax.get_xlim(), drawn.ax.get_ylim()) == ((0.2, 0.8), (0.1, 0.9))
    assert drawn.figure.get_size_inches().tolist() == [3.0, 5.0]
    drawn.figure.draw_without_rendering()
    assert "A $ title" in diagram.to_svg(title="A $ title")


@pytest.mark.parametrize(
    ("look", "argument"),
    [
        ({"xlim": (1, 0)}, "xlim"),
        ({"ylim": 3}, "ylim"),
        ({"ylim": (0, np.nan)}, "ylim"),
        ({"xlim": (0.0, 1.0), "axes": "logit"}, "xlim"),
        ({"legend": "right"}, "legend"),
        ({"figsize": (0, 4)}, "figsize"),
        ({"figsize": "large"}, "figsize"),
        ({"rare": 2}, "rare"),
    ],
)
def test_impossible_frames_are_refused(diagram, look, argument) -> None:
    with pytest.raises(InputError) as error:
        diagram.plot(**look)
    assert error.value.argument == argument


@pytest.mark.parametrize(
    ("asked", "meant"), [("colour", "color"), ("titel", "title"), ("referense", "reference")]
)
def test_an_unknown_look_is_named_with_the_one_that_was_meant(diagram, asked, meant) -> None:
    both = Diagrams({"a": diagram, "b": diagram})
    for draw in (
        diagram.plot,
        diagram.chart,
        diagram.to_svg,
        both.plot,
        both.plot_grid,
        both.chart,
    ):
        with pytest.raises(InputError) as error:
            draw(**{asked: 1})
        assert error.value.argument == asked
        assert error.value.cures[0].values["option"].name == meant


def test_axes_fit_rare_events_and_say_so() -> None:
    rng = np.random.default_rng(5)
    p = rng.beta(1, 60, 5000)
    y = rng.random(p.size) < p
    rare = reliability_diagram(y, p, resamples=0)
    axis = rare.panel().x
    assert axis.high < 0.25
    assert f"{axis.shown[1]:g}" in axis.caption
    assert rare.panel(rare=0.01).x.shown is None
    assert rare.panel(axes="probability").x.shown is None
    sure = reliability_diagram(~y, 1 - p, resamples=0).panel().x
    assert sure.shown[0] == pytest.approx(1 - axis.shown[1])
    assert rare.panel(axes="logit").x.scale == "logit"
    # Together with a model that uses the whole range, all of it is shown.
    both = Diagrams({"rare": rare, "all": reliability_diagram(*_rows(), resamples=0)})
    assert both.panel().x.shown is None


def test_label_is_written_with_the_name(diagram) -> None:
    drawn = diagram.plot(ax=Figure().subplots(), name="ResNet")
    text = drawn.artists["note"][0].get_text()
    assert text.startswith("ResNet\naverage error 0.105")


def test_plot_makes_its_own_figure_or_respects_ax(diagram) -> None:
    drawn = diagram.plot()
    assert drawn.figure is plt.gcf()
    _, (left, right) = plt.subplots(1, 2)
    assert diagram.plot(ax=right).ax is right
    assert not left.has_data()
    assert len(plt.get_fignums()) == 2


def test_settings_and_random_state_of_others_stay(diagram) -> None:
    with mpl.rc_context({"font.size": 17, "axes.grid": True}):
        before = dict(mpl.rcParams)
        state = np.random.get_state()[1].copy()  # noqa: NPY002
        diagram.plot()
        diagram.to_svg()
        assert dict(mpl.rcParams) == before
        assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_logit_axes_for_rare_events(tmp_path) -> None:
    rng = np.random.default_rng(1)
    p = np.exp(rng.normal(-6, 1, 20_000)).clip(0, 0.5)
    diagram = reliability_diagram(rng.random(p.size) < p, p, resamples=50)
    drawn = diagram.plot(ax=Figure().subplots(), axes="logit")
    assert drawn.ax.get_xscale() == "logit"
    assert drawn.ax.get_xlim()[0] > 0
    diagram.save(tmp_path / "rare.svg", axes="logit")
    diagram.chart(axes="logit", slider=False)
    assert "nan" not in diagram.to_svg(axes="logit")


def test_same_input_and_seed_give_the_same_bytes(tmp_path) -> None:
    files, charts = [], []
    for name in ("one", "two"):
        again = reliability_diagram(*_rows(), resamples=60)
        files.append(
            [again.save(tmp_path / f"{name}.{kind}").read_bytes() for kind in ("svg", "pdf")]
        )
        charts.append(again.chart().to_json())
    assert files[0] == files[1]
    assert charts[0] == charts[1]
    assert b"average error 0.1" in files[0][0]


def test_chart_has_a_slider_with_its_own_bandwidth_marked(diagram) -> None:
    spec = diagram.chart().to_dict()
    (slider,) = [p for p in spec["params"] if p["name"].startswith("frame")]
    assert (slider["bind"]["min"], slider["bind"]["max"], slider["value"]) == (-4, 4, 0)
    notes = next(rows for rows in spec["datasets"].values() if "text" in rows[0])
    texts = {row["frame"]: row["text"] for row in notes if "frame" in row}
    assert "bandwidth: σ* = " in texts[0]
    assert "σ* × 4 = " in texts[4]
    tooltip = spec["layer"][-1]["encoding"]["tooltip"]["value"]["expr"]
    assert re.search(r'"rows": [^,]*"rows"\], \',d\'', tooltip)
    assert re.findall(r'"([a-z ]+)": ', tooltip) == [
        "prediction",
        "observed",
        "low",
        "high",
        "rows",
    ]


def test_overlay_shows_every_model_with_its_number() -> None:
    models = reliability_diagrams(
        {"good": _rows(slope=0.85), "bad": Sketch.from_arrays(*_rows(slope=0.5))}, resamples=40
    )
    drawn = models.plot(ax=Figure().subplots())
    texts = [text.get_text() for text in drawn.artists["legend"][0].get_texts()]
    texts = [" ".join(text.split()) for text in texts]
    assert [text.split(":")[0] for text in texts[:2]] == ["good", "bad"]
    for text, model in zip(texts[:2], models.values(), strict=True):
        assert model.short_verdict in text
        assert model.label in text
    assert len(drawn.artists["curve"]) == 6  # a line, a trail and markers of each
    cores = drawn.artists["curve"][::3]
    assert len({core.get_color() for core in cores}) == 2
    assert len({core.get_marker() for core in cores}) == 2
    assert len(drawn.artists["diagonal"]) == 1
    paper = models.plot(ax=Figure().subplots(), reference="band", against="position")
    assert len(paper.artists["reference"]) == 2
    spec = models.chart().to_dict()
    assert any(p.get("bind") == "legend" for p in spec["params"])
    assert models._repr_html_().count("<svg") == 2


def test_a_second_diagram_on_the_same_axes_is_told_apart(diagram) -> None:
    ax = Figure().subplots()
    other = reliability_diagram(*_rows(slope=0.4), resamples=9)
    first, second = diagram.plot(ax, name="LogReg"), other.plot(ax, name="a $ b")
    third = binned_diagram(*_rows()).plot(ax)
    lines = [drawn.artists["curve"][0] for drawn in (first, second)]
    labels = ax.get_legend_handles_labels()[1]
    bins = "average error of the bins 0.104 (ECE)"
    assert labels == [f"LogReg · {diagram.label}", f"a \\$ b · {other.label}", bins]
    notes = [drawn.artists["note"][0] for drawn in (first, second, third)]
    ax.figure.draw_without_rendering()
    boxes = [note.get_window_extent() for note in notes]
    assert boxes[0].y0 > boxes[1].y1
    assert boxes[1].y0 > boxes[2].y1
    colors = [line.get_color() for line in lines]
    assert colors == [note.get_color() for note in notes[:2]]
    assert len({*colors, notes[2].get_color()}) == 3
    ax.cla()
    assert diagram.plot(ax).artists["curve"][0].get_color() == colors[0]


def test_no_two_of_many_models_share_colour_and_marker(diagram) -> None:
    many = Diagrams({f"model {k}": diagram for k in range(12)})
    cores = many.plot(ax=Figure().subplots()).artists["curve"][::3]
    assert len({(core.get_color(), core.get_marker()) for core in cores}) == 12


def test_a_legend_stays_inside_the_axes_that_were_given(diagram) -> None:
    many = Diagrams({f"model {k}": diagram.at(0.01 * (k + 1), resamples=5) for k in range(6)})
    ax = Figure(figsize=(9, 9), layout="constrained").subplots(2, 2)[1, 0]
    (legend,) = many.plot(ax).artists["legend"]
    ax.figure.draw_without_rendering()
    inside, box = ax.get_window_extent(), legend.get_window_extent()
    assert inside.x0 <= box.x0 < box.x1 <= inside.x1
    assert inside.y0 <= box.y0 < box.y1 <= inside.y1


def test_axes_of_another_scale_are_set(diagram) -> None:
    ax = Figure().subplots()
    ax.set_xscale("log")
    ax.set_yscale("log")
    diagram.plot(ax)
    ax.figure.draw_without_rendering()
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "linear")


def test_files_that_cannot_be_written_are_refused(diagram, tmp_path) -> None:
    for path in (None, 3):
        with refused("path"):
            diagram.save(path)
    with refused("path", holds="missing"):
        diagram.save(tmp_path / "missing" / "a.svg")
    saved = diagram.save(tmp_path / "a.svg", name="日本語")
    assert "日本語" in saved.read_text(encoding="utf-8")


def test_predictions_at_one_place_have_a_small_picture() -> None:
    y, p = _rows(200)
    assert "nan" not in isotonic_diagram(y, p * 1e-300, resamples=5)._repr_html_()


def test_small_multiples_share_their_axes(diagram) -> None:
    y, p = _rows()
    every = Diagrams(
        {
            "binned": binned_diagram(y, p),
            "smooth": diagram,
            "isotonic": isotonic_diagram(y, p, resamples=50),
            ("a", 4): diagram,
        }
    )
    drawn = every.plot_grid()
    axes = [each.ax for each in drawn.values()]
    assert len({ax.get_xlim() for ax in axes}) == 1
    assert axes[3].get_title("left").startswith("a, 4\n")
    assert axes[0].get_ylabel()
    assert not axes[1].get_ylabel()
    three = Diagrams(dict.fromkeys(("a", "b", "c"), diagram)).plot_grid(columns=2)
    hidden = [ax for ax in three["a"].figure.axes if not ax.get_visible()]
    assert len(hidden) == 1


def test_different_quantities_do_not_share_axes(diagram) -> None:
    y, p = _rows()
    mixed = Diagrams({"smooth": diagram, "sums": cumulative_diagram(y, p)})
    with refused(option="layout"):
        mixed.plot(ax=Figure().subplots())
    drawn = mixed.plot_grid()
    limits = [each.ax.get_ylim() for each in drawn.values()]
    assert limits[0] == (-0.12, 1.04)
    assert limits[1][1] < 0.5
    assert all(each.ax.get_ylabel() for each in drawn.values())


def test_groups_of_sketches(tmp_path) -> None:
    groups = Sketches(
        {
            ("x", 1): Sketch.from_arrays(*_rows(300)),
            ("y", 2): Sketch.from_arrays(*_rows(300, seed=1)),
        },
        by=["model", "day"],
    )
    diagrams = reliability_diagrams(groups, resamples=20)
    assert list(diagrams) == ["x, 1", "y, 2"]
    for layout in ("overlay", "grid"):
        assert diagrams.save(tmp_path / f"{layout}.svg", layout=layout).stat().st_size > 1000
    assert set(diagrams.to_dict()) == {"x, 1", "y, 2"}


def test_polar_axes_are_refused(diagram) -> None:
    ax = Figure().add_subplot(projection="polar")
    for each in (diagram, Diagrams({"a": diagram}), cumulative_diagram(*_rows(50))):
        for other in (ax, "x", Figure().subplots(1, 2)):
            with pytest.raises(InputError) as error:
                each.plot(ax=other)
            assert error.value.argument == "ax"


@pytest.mark.parametrize("bandwidth", [0, -0.1, np.nan, np.inf, "wide"])
def test_impossible_bandwidths_are_refused(bandwidth) -> None:
    with refused("bandwidth"):
        reliability_diagram([0, 1], [0.2, 0.7], bandwidth=bandwidth)


@pytest.mark.parametrize(
    "options",
    [
        {"confidence": 1.0},
        {"confidence": np.nan},
        {"resamples": -1},
        {"resamples": 2.5},
        {"curves": 3, "resamples": 2},
    ],
)
def test_impossible_settings_are_refused(options) -> None:
    with refused(next(iter(options))):
        reliability_diagram([0, 1], [0.2, 0.7], **options)


@pytest.mark.parametrize(
    "look",
    [
        {"reference": "up"},
        {"curve": "dots"},
        {"band": "wide"},
        {"density": True},
        {"axes": "log"},
        {"truth": ([0, 1], [0])},
        {"truth": 3},
        {"truth": "diagonal"},
        {"truth": lambda t: None},
        {"color": "nocolor"},
        {"color": "none"},
        {"color": (1, 0)},
        {"color": (2, 0, 0)},
        {"color": 3},
    ],
)
def test_unknown_looks_are_refused(diagram, look) -> None:
    with pytest.raises(InputError) as error:
        diagram.plot(ax=Figure().subplots(), **look)
    assert error.value.argument == next(iter(look))


@pytest.mark.parametrize("theme", ["neon", ["dark"], 3])
def test_unknown_themes_are_refused(diagram, theme) -> None:
    with pytest.raises(InputError) as error:
        diagram.plot(ax=Figure().subplots(), theme=theme)
    assert error.value.argument == "theme"


@pytest.mark.parametrize("color", ["red", "#f00", "#ff0000", (1, 0, 0), np.array([1.0, 0, 0]), "r"])
def test_a_colour_is_the_same_for_all_renderers(diagram, color) -> None:
    drawn = diagram.plot(ax=Figure().subplots(), color=color).artists["curve"][0]
    assert mpl.colors.to_rgb(drawn.get_color()) == (1, 0, 0)
    shown = diagram.panel(color=color).colors["model"]
    assert shown in diagram.to_svg(color=color)
    assert shown in diagram.chart(color=color, slider=False).to_json()
    both = Diagrams({"a": diagram, "b": diagram})
    drawn = both.plot(ax=Figure().subplots(), color={"b": color}).artists["curve"][3]
    assert mpl.colors.to_rgb(drawn.get_color()) == (1, 0, 0)
    with pytest.raises(InputError) as error:
        both.plot(ax=Figure().subplots(), color=color)
    assert error.value.argument == "color"


@pytest.mark.parametrize("size", [0, -5, np.nan, np.inf, "wide", None, True, 10**6])
def test_impossible_sizes_are_refused(diagram, size, tmp_path) -> None:
    several = Diagrams({"a": diagram, "b": diagram})
    for each in (diagram, several):
        for name in ("width", "dpi"):
            if size is None and name == "width":
                continue  # its default
            with refused(name):
                each.save(tmp_path / "a.png", **{name: size})
        for name in ("width", "height"):
            with refused(name):
                each.chart(**{name: size})
    with refused("width"):
        diagram.to_svg(width=size)
    with refused("width", 4.0):
        several.save(tmp_path / "a.png", layout="grid", width=4.0)


def test_the_smallest_and_largest_pictures_are_drawn(diagram, tmp_path) -> None:
    for width in (2.5, 12.0):
        diagram.save(tmp_path / "a.png", width=width, dpi=100)
    many = Diagrams({str(k): diagram for k in range(4)})
    many.save(tmp_path / "b.png", layout="grid", width=5.0, dpi=100)
    assert diagram.to_svg(width=100, height=100).startswith("<svg")


def test_names_are_text_whatever_they_are(diagram) -> None:
    assert diagram.panel(name=5).notes[0] == "5"
    assert list(Diagrams({None: diagram, ("a", 2016.0): diagram})) == ["(missing)", "a, 2016"]
    assert diagram.panel(name=None).notes[0].startswith("average error")
    for drawn in Diagrams({"$x$": diagram, "_y": diagram}).plot_grid().values():
        drawn.figure.draw_without_rendering()
    long = {f"{'long ' * 30}{k}": diagram for k in range(9)}
    several = Diagrams(long)
    for figure in (several.plot().figure, several.plot_grid()[next(iter(long))].figure):
        figure.draw_without_rendering()
    texts = several.panel().legend.values()
    assert len(set(texts)) == 9
    assert max(map(len, texts)) < 72
    for clash in ({1: diagram, "1": diagram}, {("a", 1): diagram, "a, 1": diagram}):
        with pytest.raises(InputError) as error:
            Diagrams(clash)
        assert error.value.argument == "diagrams"


def test_looks_that_one_kind_has_leave_the_others_alone(diagram, tmp_path) -> None:
    y, p = _rows(300)
    kinds = {"binned": binned_diagram(y, p), "isotonic": isotonic_diagram(y, p, resamples=9)}
    both = Diagrams({**kinds, "smooth": diagram})
    for look in ({"curve": "line"}, {"band": None}, {"density": "split"}, {"ticks": False}):
        both.plot(ax=Figure().subplots(), **look)
        both.plot_grid(**look)
        both.save(tmp_path / "grid.svg", layout="grid", **look)
        both.chart(**look)
    assert all("consistency" in drawn.artists for drawn in both.plot_grid().values())
    plainly = Diagrams({**both, "sums": cumulative_diagram(y, p)}).plot_grid(reference="diagonal")
    assert "consistency" not in plainly["binned"].artists


def test_what_is_no_pair_of_rows_is_refused() -> None:
    y, p = _rows(20)
    for rows in ((y, p, p), (y,), 3, {"y": y}, p):
        with pytest.raises(InputError) as error:
            reliability_diagrams({"a": rows})
        assert (error.value.argument, error.value.where.group) == ("data", "'a'")
    assert len(reliability_diagrams({"a": [y, p]}, resamples=5)) == 1


def test_empty_groups_are_named() -> None:
    with pytest.raises(InputError) as error:
        reliability_diagrams({"a": Sketch.from_arrays([0, 1], [0.1, 0.9]), "b": Sketch.empty()})
    assert error.value.where.group == "'b'"
    for data in ({}, [Sketch.empty()]):
        with pytest.raises(InputError):
            reliability_diagrams(data)
    with pytest.raises(InputError) as error:
        Diagrams({"a": 3})
    assert error.value.seen == "int"


@pytest.mark.parametrize("bins", [0, -3, 2.5, "many", True, 10**9])
def test_impossible_bins_are_refused(bins) -> None:
    with refused("bins"):
        binned_diagram([0, 1], [0.2, 0.7], bins=bins)


def test_one_class_only_is_a_picture(tmp_path) -> None:
    p = np.linspace(0.1, 0.9, 40)
    for outcome in (0, 1):
        diagram = reliability_diagram(np.full(40, outcome), p, resamples=30)
        diagram.save(tmp_path / "one.svg", density="split")
        assert np.allclose(diagram.regression, outcome)


def test_a_model_has_the_same_colour_on_every_surface() -> None:
    rows = {name: _rows(slope=slope) for name, slope in (("good", 1.0), ("bad", 0.4))}
    models = reliability_diagrams(rows, resamples=0)
    overlay = models.plot(ax=Figure().subplots()).artists["curve"][::3]
    expected = dict(zip(models, (curve.get_color() for curve in overlay), strict=True))
    assert len(set(expected.values())) == 2
    grid = models.plot_grid()
    assert list(grid) == ["bad", "good"]  # the worst first
    assert {name: each.artists["curve"][0].get_color() for name, each in grid.items()} == expected
    sketches = {name: Sketch.from_arrays(*each) for name, each in rows.items()}
    page = report(Sketches(sketches, by="model")).html
    legend = re.findall(
        r'value="(\w+)"><span class="swatch solid" style="--series: var\(--c-(\w+)\)', page
    )
    assert {name: f"#{color}" for name, color in legend} == expected
