"""Binned, isotonic and cumulative diagrams against direct computation."""

from __future__ import annotations

import json

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss

from calibrant import ece
from calibrant.data.sketch import Sketch
from calibrant.plotting.binned import binned_diagram
from calibrant.plotting.cumulative import cumulative_diagram
from calibrant.plotting.isotonic import isotonic_diagram
from calibrant.plotting.smooth import reliability_diagram


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    p = np.round(rng.beta(0.8, 0.8, 900), 3)
    return (rng.random(p.size) < 0.1 + 0.7 * p).astype(int), p


def test_bins_have_the_means_of_their_rows(rows) -> None:
    y, p = rows
    diagram = binned_diagram(y, p, bins=10)
    for k in range(10):
        inside = (p <= (k + 1) / 10) & ((p > k / 10) | (k == 0))
        assert diagram.rows[k] == inside.sum()
        assert diagram.rate[k] == pytest.approx(y[inside].mean())
        assert diagram.prediction[k] == pytest.approx(p[inside].mean())
    share = diagram.rows / p.size
    assert diagram.ece == pytest.approx(np.sum(share * np.abs(diagram.rate - diagram.prediction)))


@pytest.mark.parametrize("read", [dict, Sketch.from_arrays])
def test_rows_without_weight_change_no_construction(read) -> None:
    y, p = (
        np.array([0, 1, 0, 1, 1, 0, 1, 1] * 4),
        np.tile([0.1, 0.9, 0.2, 0.8, 0.5, 0.3, 0.35, 0.7], 4),
    )
    weight = np.tile([0.0, 1.0, 2.0, 1.0, 0.0, 1.0, 1.0, 1.0], 4)
    used = weight > 0

    def drawn(diagram, rows):
        columns = {"y_true": y[rows], "y_prob": p[rows], "sample_weight": weight[rows]}
        given = read(**columns)
        return diagram(given) if isinstance(given, Sketch) else diagram(**given)

    for diagram in (isotonic_diagram, cumulative_diagram, binned_diagram):
        every, some = (drawn(diagram, rows).columns() for rows in (slice(None), used))
        for name, values in every.items():
            np.testing.assert_allclose(values, some[name], atol=1e-9)
    every, some = (drawn(reliability_diagram, rows).values for rows in (slice(None), used))
    assert every.rate == pytest.approx(some.rate)
    assert every.prediction == pytest.approx(some.prediction)
    assert every.rows.tolist() == some.rows.tolist()
    every, some = (drawn(isotonic_diagram, rows) for rows in (slice(None), used))
    assert every.consistency_at == pytest.approx(some.consistency_at)
    assert np.isfinite(every.consistency.low).all()


def test_edges_belong_to_the_bin_on_their_left_and_zero_to_the_first() -> None:
    p = np.array([0.0, 0.1, 0.29, 0.3, 1 - 0.8, 0.7, 1.0])
    diagram = binned_diagram(np.array([0, 1, 0, 1, 0, 1, 1]), p, bins=10)
    assert diagram.rows.astype(int).tolist() == [2, 1, 2, 0, 0, 0, 1, 0, 0, 1]
    assert np.isnan(diagram.rate[4])


@pytest.mark.parametrize("binning", ["width", "mass"])
@pytest.mark.parametrize("bins", [1, 10, 15, 40])
def test_the_error_is_that_of_the_measure(rows, binning, bins) -> None:
    y, p = rows
    diagram = binned_diagram(y, p, bins=bins, binning=binning)
    strategy = {"width": "uniform", "mass": "quantile"}[binning]
    expected = ece(y, p, n_bins=bins, strategy=strategy)
    assert diagram.ece == pytest.approx(expected, abs=1e-14)


def test_equal_mass_bins_do_not_split_ties() -> None:
    p = np.repeat([0.1, 0.2, 0.3, 0.9], [10, 10, 70, 10])
    diagram = binned_diagram(np.arange(100) % 2, p, bins=4, binning="mass")
    assert diagram.rows.sum() == 100
    assert diagram.rows.astype(int).tolist() == [20, 70, 10]
    even = binned_diagram(np.arange(100) % 2, np.arange(100) / 99, bins=4, binning="mass")
    assert even.rows.astype(int).tolist() == [25, 25, 25, 25]


def test_cross_validation_is_leave_one_out(rows) -> None:
    y, p = rows
    diagram = binned_diagram(y, p)
    for bins in (1, 7, 20):
        place = np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], p)
        loss = 0.0
        for k in range(y.size):
            others = (place == place[k]) & (np.arange(y.size) != k)
            guess = y[others].mean() if others.any() else y.mean()
            loss += (y[k] - guess) ** 2 / y.size
        assert diagram.losses[bins] == pytest.approx(loss, rel=1e-9)
    assert diagram.losses[diagram.rows.size] == min(diagram.losses.values())


def test_more_structure_takes_more_bins() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    flat = binned_diagram(rng.random(p.size) < 0.5, p)
    wavy = binned_diagram(rng.random(p.size) < 0.5 + 0.4 * np.sin(12 * np.pi * p), p)
    assert flat.rows.size < 8 < wavy.rows.size


def test_binned_consistency_holds_calibrated_rates() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(50_000)
    diagram = binned_diagram(rng.random(p.size) < p, p, bins=50)
    inside = (diagram.rate >= diagram.consistency.low) & (diagram.rate <= diagram.consistency.high)
    assert inside.mean() > 0.85
    covers = (diagram.prediction >= diagram.band.low) & (diagram.prediction <= diagram.band.high)
    assert covers.mean() > 0.85


def test_isotonic_fit_and_decomposition(rows) -> None:
    y, p = rows
    diagram = isotonic_diagram(y, p, resamples=50)
    peer = IsotonicRegression(y_min=0, y_max=1).fit(p, y)
    assert np.allclose(diagram.regression, peer.predict(diagram.prediction), atol=1e-12)
    score = brier_score_loss(y, p)
    parts = diagram.miscalibration - diagram.discrimination + diagram.uncertainty
    assert parts == pytest.approx(score)
    assert diagram.miscalibration == pytest.approx(score - np.mean((y - peer.predict(p)) ** 2))


def test_isotonic_band_holds_a_calibrated_model() -> None:
    rng = np.random.default_rng(6)
    p = rng.random(5000)
    diagram = isotonic_diagram(rng.random(p.size) < p, p, resamples=200)
    fit = np.interp(diagram.consistency_at, diagram.prediction, diagram.regression)
    inside = (fit >= diagram.consistency.low) & (fit <= diagram.consistency.high)
    assert inside.mean() > 0.85
    off = isotonic_diagram(rng.random(p.size) < p**2, p, resamples=200)
    fit = np.interp(off.consistency_at, off.prediction, off.regression)
    assert np.mean((fit >= off.consistency.low) & (fit <= off.consistency.high)) < 0.4


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.0, 0.0019), (0.99, 1.0), (0.5, 0.501)])
def test_the_isotonic_band_goes_as_far_as_the_curve(low, high) -> None:
    rng = np.random.default_rng(7)
    p = rng.uniform(low, high, 5000)
    sketch = Sketch.from_arrays(rng.random(p.size) < p, p)
    diagram = isotonic_diagram(sketch, resamples=20)
    assert min(256, sketch.cells.size) <= diagram.consistency_at.size <= 512
    ends = diagram.consistency_at[[0, -1]]
    assert ends == pytest.approx(diagram.prediction[[0, -1]], abs=(high - low) / 100)
    few = np.round(np.linspace(low, high, 9), 6).repeat(3)
    values = isotonic_diagram(np.arange(27) % 2, few, resamples=20).consistency_at
    assert values == pytest.approx(np.unique(few))


def test_cumulative_differences_are_sums_of_sorted_rows(rows) -> None:
    y, p = rows
    diagram = cumulative_diagram(y, p)
    order = np.argsort(p, kind="stable")
    sums = np.cumsum((y - p)[order]) / p.size
    last_of_tie = np.append(np.diff(p[order]) > 0, True)
    assert np.allclose(diagram.difference[1:], sums[last_of_tie])
    assert diagram.difference[0] == 0
    assert diagram.fraction[-1] == 1
    assert diagram.largest == pytest.approx(np.abs(sums[last_of_tie]).max())
    spread = np.sqrt(np.sum(p * (1 - p))) / p.size
    assert diagram.consistency.high[-1] == pytest.approx(1.96 * spread, rel=1e-3)


def test_weights_equal_repetition(rows) -> None:
    y, p = rows
    weight = np.full(y.size, 2.0)
    twice = np.repeat(y, 2), np.repeat(p, 2)
    for build in (
        lambda *a, **k: binned_diagram(*a, bins=8, **k).rate,
        lambda *a, **k: cumulative_diagram(*a, **k).difference,
        lambda *a, **k: isotonic_diagram(*a, resamples=5, **k).regression,
    ):
        assert np.allclose(build(y, p, sample_weight=weight), build(*twice), equal_nan=True)


@pytest.mark.parametrize("build", [binned_diagram, isotonic_diagram, cumulative_diagram])
def test_same_form_for_all(build, rows, tmp_path) -> None:
    y, p = rows
    diagram = build(y, p)
    json.dumps(diagram.to_dict(), allow_nan=False)
    assert diagram.to_frame().shape[0] == len(next(iter(diagram.columns().values())))
    drawn = diagram.plot(ax=Figure().subplots(), name="a model")
    assert "curve" in drawn.artists or "values" in drawn.artists
    assert diagram.to_svg().startswith("<svg")
    assert (
        diagram.save(tmp_path / "a.svg").read_bytes()
        == diagram.save(tmp_path / "b.svg").read_bytes()
    )
    assert diagram.chart().to_json() == build(y, p).chart().to_json()
    sketched = build(Sketch.from_arrays(y, p))
    assert sketched.n == diagram.n
    for tiny in (([1], [0.3]), ([0, 0], [0.0, 0.0]), ([1, 1, 1], [1.0, 1.0, 1.0])):
        build(*tiny).plot(ax=Figure().subplots())


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("binning", ["width", "mass"])
def test_every_row_is_left_out_with_its_own_weight(soft, weighted, binning) -> None:
    rng = np.random.default_rng(6)
    p = np.round(rng.random(20), 1)
    y = rng.random(20) if soft else (rng.random(20) < p).astype(float)
    w = rng.exponential(size=20) if weighted else np.ones(20)
    options = {"sample_weight": w} if weighted else {}
    options |= {"labels": "soft"} if soft else {}
    found = binned_diagram(y, p, binning=binning, **options)
    for bins, loss in found.losses.items():
        edges = binned_diagram(y, p, bins=bins, binning=binning, **options).edges
        place, exact = np.searchsorted(edges[1:-1], p), 0.0
        for k in range(20):
            others = (place == place[k]) & (np.arange(20) != k)
            rate = (
                np.average(y[others], weights=w[others])
                if others.any()
                else np.average(y, weights=w)
            )
            exact += w[k] * (y[k] - rate) ** 2 / w.sum()
        assert loss == pytest.approx(exact)
    if weighted and not soft:  # where rows of a cell have one weight, a sketch tells as much
        spread = 0.9 * p + np.arange(20) * 1e-3
        apart = binned_diagram(Sketch.from_arrays(y, spread, sample_weight=w))
        rows = binned_diagram(y, spread, sample_weight=w)
        assert list(apart.losses.values()) == pytest.approx(list(rows.losses.values()))


def test_no_array_of_a_diagram_can_be_written_to(rows) -> None:
    y, p = rows
    made = [binned_diagram(y, p), isotonic_diagram(y, p, resamples=5), cumulative_diagram(y, p)]
    smooth = reliability_diagram(y, np.round(p, 1), resamples=5)
    seen = 0
    for record in (*made, smooth, smooth.raw, smooth.values, smooth.band):
        for array in vars(record).values():
            if isinstance(array, np.ndarray):
                seen += 1
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 0
    assert seen > 25
