"""The SVG that needs no library, the Altair charts, and the axes they share."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import vl_convert

from calibrant.errors import InputError
from calibrant.plotting.altair import Slider, chart
from calibrant.plotting.altair_marks import rows_of
from calibrant.plotting.axis import Axis
from calibrant.plotting.layout import fitted
from calibrant.plotting.panel import Band, Line, Panel, Steps
from calibrant.plotting.svg import render


def test_svg_is_well_formed_and_complete(panel: Panel) -> None:
    root = ElementTree.fromstring(render(panel))
    groups = [g.get("class") for g in root.iter("{http://www.w3.org/2000/svg}g")]
    assert [name for name in groups if name] == [mark.key for mark in panel.marks]
    words = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"x axis", "y axis", "a note", "0.2"} <= set(words)
    assert "nan" not in render(panel)


def test_svg_escapes_names(panel: Panel) -> None:
    hostile = replace(panel, notes=("<script>alert(1)</script> & co",))
    text = render(hostile)
    assert "<script>" not in text
    ElementTree.fromstring(text)


def test_svg_reads_on_any_page(panel: Panel) -> None:
    assert 'fill="currentColor"' in render(panel)
    assert 'fill="currentColor"' not in render(panel, theme="dark")


def test_svg_needs_no_plotting_library() -> None:
    code = (
        "import sys; import calibrant.plotting.smooth as s; "
        "s.reliability_diagram([0, 1, 1], [.2, .5, .9])._repr_html_(); "
        "print([m for m in ('matplotlib', 'altair', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_chart_compiles_with_the_values_of_the_marks(panel: Panel) -> None:
    drawn = chart([panel])
    assert vl_convert.vegalite_to_svg(drawn.to_dict()).startswith("<svg")
    (rows,) = [v for v in drawn.to_dict()["datasets"].values() if "value" in v[0]]
    assert [row["run"] for row in rows] == [0] * 5 + [1] * 5  # broken at the missing point
    assert rows[-1] == {"series": "a", "run": 1, "x": 1, "y": 1, "size": 7, "value": 1}


def test_same_panel_same_json_also_after_other_charts(panel: Panel) -> None:
    first = chart([panel]).to_json()
    chart([replace(panel, notes=("another",))])
    assert chart([panel]).to_json() == first


def test_slider_filters_and_fixed_marks_stay(panel: Panel) -> None:
    moved = replace(
        panel,
        marks=tuple(
            replace(mark, y=mark.y + 0.1) if mark.key == "trail" else mark for mark in panel.marks
        ),
        notes=("moved",),
    )
    spec = chart([panel, moved], slider=Slider("step", 0)).to_dict()
    (slider,) = [p for p in spec["params"] if p["name"].startswith("frame")]
    assert (slider["bind"]["min"], slider["bind"]["max"]) == (0, 1)
    framed = [layer for layer in spec["layer"] if "transform" in layer]
    assert len(framed) == 5  # trail, note, and the three of the hover
    assert vl_convert.vegalite_to_svg(spec).startswith("<svg")


def test_legend_toggles_and_charts_compose(panel: Panel) -> None:
    named = replace(panel, legend={"a": "model A", "b": "model B"})
    one, other = chart([named]), chart([replace(named, title="other")], width=300)
    spec = (one | other).to_dict()
    names = [p["name"] for p in spec["params"]]
    assert len(set(names)) == len(names)
    shown = [p for p in spec["params"] if p["name"].startswith("shown")]
    assert all(p["bind"] == "legend" for p in shown)
    assert shown[0]["value"] == [{"series": "a"}, {"series": "b"}]
    assert "model A" in vl_convert.vegalite_to_svg(spec)
    assert vl_convert.vegalite_to_svg((one & other).to_dict()).startswith("<svg")


def test_a_chart_stands_beside_itself(panel: Panel) -> None:
    named = replace(panel, legend={"a": "model A", "b": "model B"})
    for both in (chart([named]) | chart([named]), chart([named]) & chart([panel]) & chart([named])):
        spec = both.to_dict()
        names = [p["name"] for p in spec["params"]]
        assert len(set(names)) == len(names) >= 4
        assert vl_convert.vegalite_to_svg(spec).startswith("<svg")
    assert pickle.loads(pickle.dumps(chart([named]))).to_json() == chart([named]).to_json()


def test_names_that_look_like_parameters_stay_apart(panel: Panel) -> None:
    names = {"a": "run_0123456789n1", "b": "run_0123456789n2"}
    marks = tuple(replace(mark, series=names.get(mark.series, mark.series)) for mark in panel.marks)
    named = replace(panel, marks=marks, legend={name: name for name in names.values()}, colors={})
    spec = chart([named]).to_dict()
    (shown,) = [p for p in spec["params"] if p["name"].startswith("shown")]
    assert [each["series"] for each in shown["value"]] == list(names.values())
    assert chart([named]).to_json() == chart([named]).to_json()


def test_panels_without_a_slider_are_refused(panel: Panel) -> None:
    with pytest.raises(InputError) as error:
        chart([panel, panel])
    assert error.value.seen == 2


def test_thinning_keeps_the_ends(panel: Panel) -> None:
    x = np.linspace(0, 1, 1001)
    line = Line(key="curve", x=x, y=x, details={"value": x})
    (thin,) = replace(panel, marks=(line,)).thinned(100).marks
    assert isinstance(thin, Line)
    assert thin.x[0] == 0
    assert thin.x[-1] == 1
    assert 90 <= thin.x.size <= 110
    assert thin.details["value"].size == thin.x.size


def test_thinning_is_even_along_a_logit_axis(panel: Panel) -> None:
    x = np.linspace(0, 1, 4097)
    axis = Axis("x", 0.0005, 0.5, "logit")
    (thin,) = replace(panel, x=axis, marks=(Line(key="curve", x=x, y=x),)).thinned(100).marks
    assert isinstance(thin, Line)
    assert thin.x[1] == x[1]  # the first points of the curve are far apart here
    assert thin.x.size < 110


def test_rows_are_short_numbers(panel: Panel) -> None:
    line = Line(key="curve", x=np.array([1 / 3]), y=np.array([2 / 3]))
    assert rows_of(line, panel) == [{"run": 0, "x": 0.33333, "y": 0.66667}]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.02, 1.02, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (-0.06, 0.06, ["-0.06", "-0.04", "-0.02", "0", "0.02", "0.04", "0.06"]),
    ],
)
def test_ticks_are_round(low: float, high: float, expected: list[str]) -> None:
    assert [label for _, label in Axis("x", low, high).ticks()] == expected


def test_logit_ticks_stay_inside() -> None:
    axis = Axis("x", 0.004, 0.9, "logit")
    values = [value for value, _ in axis.ticks()]
    assert min(values) >= 0.004
    assert max(values) <= 0.9
    assert np.allclose(axis.fraction(np.array([0.004, 0.9])), [0, 1])
    assert np.isnan(axis.fraction(np.array([0.0, 1.0]))).all()


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (low, high)
        for low in (1e-6, 0.0003, 0.004, 0.2, 0.48)
        for high in (0.02, 0.05, 0.52, 0.9, 0.9999)
        if low < high
    ],
)
def test_logit_ticks_leave_room_for_their_labels(low: float, high: float) -> None:
    axis = Axis("x", low, high, "logit")
    places = axis.fraction(np.array([value for value, _ in axis.ticks()]))
    assert 1 <= places.size <= 6
    assert (np.diff(places) > 0.1).all()


def test_a_logit_axis_shows_what_ends_at_zero_or_one() -> None:
    axis = Axis("x", 0.001, 0.2, "logit")
    edges = np.array([0.0, 0.01, 1.0])
    steps = Steps(key="steps", left=edges[:-1], right=edges[1:], y=np.array([0.004, 1.0]))
    band = Band(key="band", x=edges, low=np.zeros(3), high=np.full(3, 0.05))
    panel = Panel((steps, band), axis, axis)
    root = ElementTree.fromstring(render(panel))
    (cut,) = root.findall("{*}g")  # off what lies beyond the axes
    assert cut.get("clip-path") == f"url(#{root.find('{*}clipPath').get('id')})"
    assert len(cut.findall("{*}g")) == 2
    assert "nan" not in render(panel)
    assert len(rows_of(fitted(panel).marks[0], panel)) == 2
    assert all(
        layer["mark"].get("clip", layer["mark"]["type"] == "text")
        for layer in chart([panel]).to_dict()["layer"]
    )


@pytest.mark.parametrize(
    ("low", "high", "scale"),
    [(0, 1, "logit"), (1, 0, "linear"), (0, 1, "log"), (0, np.inf, "linear")],
)
def test_impossible_axes_are_refused(low: float, high: float, scale: str) -> None:
    with pytest.raises(InputError):
        Axis("x", low, high, scale)  # type: ignore[arg-type]


def test_colours_stay_apart_for_colour_blind_readers() -> None:
    """Simulated deuteranopia, protanopia and tritanopia: no two series look alike."""
    from calibrant.plotting.looks import DARK, LIGHT

    machado = {
        "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    }
    for theme in (LIGHT, DARK):
        rgb = np.array([[int(c[k : k + 2], 16) / 255 for k in (1, 3, 5)] for c in theme.series])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        for matrix in machado.values():
            seen = np.clip(linear @ np.array(matrix).T, 0, 1) ** (1 / 2.2)
            gaps = np.linalg.norm(seen[:, None] - seen, axis=-1)[np.triu_indices(len(seen), 1)]
            assert gaps.min() > 0.2


def test_text_has_contrast() -> None:
    from calibrant.plotting.looks import DARK, LIGHT, PRINT

    def luminance(color: str) -> float:
        rgb = np.array([int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for theme in (LIGHT, DARK, PRINT):
        assert re.fullmatch("#[0-9a-f]{6}", theme.ink)
        pairs = [(theme.ink, 7.0), (theme.series[0], 4.5), (theme.neutral, 3.0)]
        for color, least in pairs:
            high, low = sorted([luminance(color), luminance(theme.paper)], reverse=True)
            assert (high + 0.05) / (low + 0.05) >= least


def test_characters_that_xml_does_not_hold_are_replaced():
    panel = Panel(
        (), Axis("x", 0, 1), Axis("y", 0, 1), title="bell \a, null \0, half \ud800, \uffff"
    )
    text = render(panel)
    ElementTree.fromstring(text)
    assert "bell \ufffd, null \ufffd, half \ufffd, \ufffd" in text
