"""One summary, three faces: what they say, that they agree, and that equal input gives equal bytes."""

from __future__ import annotations

import json
import re
from html import unescape

import numpy as np
import pytest
from tests.refusals import refused

import calibrant as cal
from calibrant.inference.dependence import DependenceWarning
from calibrant.reporting.report import Report


def _rows(n: int = 3000, slope: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < 0.5 + slope * (p - 0.5)).astype(int), p


@pytest.fixture(scope="module")
def overconfident() -> Report:
    return cal.report(*_rows(slope=0.6), title="Overconfident").made_by("calibrant report x.csv")


@pytest.fixture(scope="module")
def several() -> Report:
    y, p = _rows()
    return cal.report(y, {"honest": p, "squared": p**2, "vague": 0.25 + p / 2}, title="Three")


def test_the_verdict_stands_on_top_in_plain_words(overconfident: Report) -> None:
    headline = "Miscalibrated. Overconfident: too near 0 and 1."
    for text in (overconfident.html, overconfident.markdown):
        assert headline in text
        assert "What to do: recalibrate." in text
    assert overconfident.html.index(headline) < overconfident.html.index("<svg")


def test_a_calibrated_model_is_not_accused_and_few_rows_or_events_are_called_so() -> None:
    made = cal.report(*_rows(20_000))
    assert "No miscalibration detected" in made.markdown
    assert not made.to_dict()["groups"][0]["assessment"]["miscalibrated"]
    rare = np.full(2000, 0.004)
    for few in (_rows(40), (np.random.default_rng(0).random(2000) < rare, rare)):
        assert "Too few rows" in cal.report(*few).markdown


def test_groups_with_a_gap_are_named_first_where_all_rows_together_show_none() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 20_000))
    p = rng.uniform(0.2, 0.8, 20_000)
    y = rng.random(20_000) < p + np.where(a == b, 0.1, -0.1)
    table = {"a": a, "b": b, "p": p, "y": y}
    found = cal.find_groups(data=table, y_true="y", y_prob="p", columns=["a", "b"])
    made = cal.report(y, p).with_outcomes(found)
    headline = f"Calibrated on average, but not in groups: {found.verdict}."
    assert unescape(made.html).index(headline) < made.html.index("<svg")
    assert "What to do: nothing" not in made.html
    assert made.to_dict()["verdict"] == headline[0].lower() + headline[1:-1]
    assert 'class="verdict bad"' in made.html
    assert unescape(made._repr_html_()).count(found.verdict) == 1
    wrong = cal.report(y, p**2).with_outcomes(found)
    both = cal.report(y, {"plain": p, "squared": p**2}).with_outcomes(found)
    assert both.to_dict()["verdict"].endswith(f"); in groups: {found.verdict}")
    for text in (wrong.to_dict()["verdict"], wrong.markdown.split("##")[0]):
        assert "iscalibrated" in text
        assert "4 of 8 groups have a gap" in text


def test_regions_add_up_to_the_error(overconfident: Report) -> None:
    group = json.loads(overconfident.json)["groups"][0]
    parts = sum(region["contribution"] for region in group["regions"])
    assert parts == pytest.approx(group["assessment"]["smooth_ece"], rel=0.1)


def test_recalibration_helps_a_miscalibrated_model(overconfident: Report) -> None:
    found = json.loads(overconfident.json)["groups"][0]["recalibration"]
    assert found["after"]["smooth_ece"] < found["before"]["smooth_ece"] / 2
    assert found["after"]["log_loss"] < found["before"]["log_loss"]


def test_recalibration_is_not_sold_to_a_calibrated_model() -> None:
    made = cal.report(*_rows(2000, seed=1))
    assert json.loads(made.json)["groups"][0]["recalibration"]["left_alone"]
    assert "recalibrated |" not in made.markdown


def test_several_models_are_a_sortable_table(several: Report) -> None:
    table = re.search(r'<table class="sortable">.*?</table>', several.html, re.S)
    assert table
    assert re.findall(r'<th scope="row">(\w+)</th>', table[0]) == ["squared", "vague", "honest"]
    bad = table[0].count('<span class="tag bad">miscalibrated</span>')
    assert bad >= 2
    assert f"{bad} of 3 models are miscalibrated" in several.html


def test_the_verdict_on_many_accounts_for_their_number() -> None:
    """Of forty calibrated groups some are rejected by themselves, and none after correction."""
    groups = {f"g{k}": cal.Sketch.from_arrays(*_rows(120, seed=k)) for k in range(40)}
    made = cal.report(groups, limit=40)
    found = [group["assessment"] for group in made.to_dict()["groups"]]
    assert min(one["p_value"] for one in found) < min(one["p_value_adjusted"] for one in found)
    assert not any(one["miscalibrated"] for one in found)
    assert made.summary.finding.sentences[0] in made.markdown


@pytest.mark.parametrize("events", [0, 3])
def test_numbers_that_are_not_finite_are_words(events: int) -> None:
    one = cal.report(np.arange(50) < events, np.zeros(50))
    assert "none expected" in one.markdown
    assert not re.search(r"\b(nan|inf)\b", one.markdown)
    assert "NaN" not in one.json


def test_sketches_by_group_give_the_page_of_their_rows() -> None:
    y, p = _rows()
    halves = np.arange(y.size) % 2
    groups = cal.Sketches(
        {g: cal.Sketch.from_arrays(y[halves == g], p[halves == g]) for g in (0, 1)}, by="half"
    )
    made = cal.report(groups)
    assert {group["name"] for group in made.to_dict()["groups"]} == {"0", "1"}
    assert "| half |" in made.markdown


def test_rows_of_one_cluster_are_on_one_side_of_the_fit() -> None:
    """Every event is forecast fifty times: a map that has seen it knows how it ended."""
    events = np.random.default_rng(0)
    p = np.repeat(0.5 + 0.001 * np.arange(200), 50)
    y, who = np.repeat(events.random(200) < 0.6, 50), np.repeat(np.arange(200), 50)
    honest = cal.report(y, p, cluster=who)
    with pytest.warns(DependenceWarning):
        leaked = cal.report(y, p)
    gains = []
    for made in (honest, leaked):
        found = made.summary.groups[0].recalibration
        assert found is not None
        gains.append(found.before.log_loss - found.after.log_loss)
    assert gains[0] < 0.1 * gains[1]
    found = cal.assess(y, p, cluster=who)
    made = cal.report(cal.Sketch.from_arrays(y, p), assessment=found)
    assert made.summary.groups[0].recalibration is None
    assert "What recalibration would gain is not known" in made.markdown


@pytest.mark.parametrize("distinct", [5, 4000])
def test_pictures_of_clusters_have_no_bounds_of_independent_rows(distinct: int) -> None:
    y, p = _rows(4000)
    p = np.floor(p * distinct) / distinct
    models = {"a": p, "b": p**2}
    for which in ({"a": p}, models):
        made = cal.report(y, which, cluster=np.arange(4000) // 20)
        for group in made.summary.groups:
            assert not group.diagram.bands
            assert not {"confidence_band", "consistency_band"} & set(group.diagram.plot().artists)
        assert "consistency band</text>" not in made.html
    assert "The clusters were split into two halves" in made.html


def test_the_same_input_gives_the_same_bytes(overconfident: Report) -> None:
    again = cal.report(*_rows(slope=0.6), title="Overconfident").made_by("calibrant report x.csv")
    assert again.html == overconfident.html
    assert again.markdown == overconfident.markdown
    assert again.json == overconfident.json


def test_the_page_is_small_and_needs_nothing_else(several: Report) -> None:
    assert len(several.html.encode()) < 1_000_000
    outside_scripts = re.sub(r"<script>.*?</script>", "", several.html, flags=re.S)
    assert not re.search(r"(?:src|href)=[\"']?(?!#)\w", outside_scripts)
    assert "default-src 'none'" in unescape(several.html[:1000])


@pytest.mark.parametrize(("ending", "start"), [("html", "<!doctype"), ("md", "# "), ("json", "{")])
def test_save_chooses_the_form_by_the_ending(overconfident, tmp_path, ending, start) -> None:
    path = overconfident.save(tmp_path / f"report.{ending}")
    assert path.read_text(encoding="utf-8").startswith(start)
    assert list(tmp_path.iterdir()) == [path]


def test_save_refuses_another_ending(overconfident: Report, tmp_path) -> None:
    with refused("path"):
        overconfident.save(tmp_path / "report.docx")


def test_edges_are_reported_not_crashed() -> None:
    everywhere_one = cal.report(np.ones(50), np.full(50, 0.7))
    assert "All outcomes are 1" in everywhere_one.markdown
    lattice = cal.Sketch.from_counts(p=[0, 0.5, 1], n=[100, 50, 200], events=[0, 21, 200])
    assert "57% of the rows share one prediction, 1." in cal.report(lattice).markdown
    y, p = _rows(300)
    assert "effective" in cal.report(y, p, sample_weight=np.linspace(1, 3, 300)).markdown


def test_nothing_to_report_is_an_error() -> None:
    with pytest.raises(cal.errors.TooFewRows):
        cal.report({"a": cal.Sketch.empty()})
    with refused(holds=("tuple", "group 'a'")):
        cal.report({"a": _rows(50)})
    sketch = cal.Sketch.from_arrays([0, 1], [0.1, 0.9])
    for groups in ({"a": sketch}, cal.assess_by(cal.Sketches({"a": sketch}, by="g"))):
        with refused("y_prob"):
            cal.report(groups, [0.5])
    with refused("limit"):
        cal.report({"a": sketch, "b": sketch}, limit=0)


def test_a_report_says_what_miscalibration_costs_decisions(overconfident: Report) -> None:
    group = overconfident.summary.groups[0]
    assert group.decisions is not None
    benefit = group.decisions.benefit
    lost = float(benefit.lost[benefit.lost_low > 0].max())
    assert (
        json.loads(overconfident.json)["groups"][0]["decisions"]["label"] == group.decisions.label
    )
    assert f"{lost:.4f}" in group.decisions.label
    for form in (overconfident.html, overconfident.markdown):
        assert "If you act on these predictions" in form


@pytest.mark.parametrize("profile", ["weather", "llm"])
def test_the_picture_of_a_profile_has_a_legend(profile: str) -> None:
    made = cal.report(*_rows(800, seed=2), profile=profile)
    diagram = made.summary.groups[0].profile_diagram
    assert diagram is not None
    for text in diagram.frame().legend.values():
        assert text in unescape(made.html)


def test_the_curve_of_answers_to_the_same_questions_has_no_limits() -> None:
    # A sketch does not say which answers belong together: limits that take them apart are too narrow.
    y, p = _rows(800, seed=2)
    question = np.arange(800) // 2
    assessment = cal.assess(y, p, cluster=question, profile=cal.profiles.llm(abstained=200))
    made = cal.report(cal.Sketch.from_arrays(y, p), assessment=assessment)
    diagram = made.summary.groups[0].profile_diagram
    assert diagram is not None
    artists = diagram.plot().artists
    assert "confidence_band" not in artists
    assert artists["curve"][0].get_xdata()[-1] == pytest.approx(0.8)


@pytest.mark.parametrize("read", ["arrays", "data"])
def test_scores_of_classes_say_whether_they_are_of_the_confidence(read: str) -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([0.5, 0.5, 0.5], 3000)
    flat = np.sqrt(probs) / np.sqrt(probs).sum(axis=1, keepdims=True)
    labels = (rng.random((3000, 1)) > probs.cumsum(axis=1)).sum(axis=1).clip(max=2)
    if read == "arrays":
        text = cal.report(labels, flat).markdown
    else:
        table = {"y": labels, **{str(k): column for k, column in enumerate(flat.T)}}
        text = cal.report(
            "y", ["0", "1", "2"], data=table, multiclass="confidence", classes=[0, 1, 2]
        ).markdown
    scores = [
        line for line in text.splitlines() if re.match(r"\|.*(brier score|log loss) \|", line, re.I)
    ]
    assert len(scores) >= 4
    assert all(re.match(r"\| (all classes|confidence): ", line) for line in scores)
