"""The smooth diagram against a direct sum over the rows, and the picture against the number."""

from __future__ import annotations

import json
import pickle
import sys
import time

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.integrate import trapezoid
from scipy.interpolate import CubicSpline
from tests.refusals import refused

from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, MissingDependency
from calibrant.inference.assess import assess
from calibrant.plotting.group import Diagrams
from calibrant.plotting.kernel import KernelMatrix
from calibrant.plotting.smooth import ReliabilityDiagram, reliability_diagram

Rows = tuple[np.ndarray, np.ndarray]


def _rows(shape: str, n: int = 600) -> Rows:
    rng = np.random.default_rng(11)
    p = {
        "uniform": rng.random(n),
        "ends": np.where(rng.random(n) < 0.5, np.round(rng.random(n)), rng.beta(0.4, 0.4, n)),
        "lattice": rng.integers(0, 11, n) / 10,
        "rare": rng.beta(1.0, 60.0, n),
    }[shape]
    return (rng.random(n) < 0.1 + 0.7 * p).astype(int), p


def _direct(y: np.ndarray, p: np.ndarray, t: np.ndarray, sigma: float) -> np.ndarray:
    """Density, events and predictions at t: every row, every reflection that could matter."""
    kernel = np.zeros((t.size, p.size))
    for shift in range(-12, 13):
        for image in (p + 2 * shift, -p + 2 * shift):
            kernel += np.exp(-0.5 * ((t[:, None] - image) / sigma) ** 2)
    kernel /= sigma * np.sqrt(2 * np.pi)
    return np.stack([kernel.mean(1), (kernel * y).mean(1), (kernel * p).mean(1)])


@pytest.mark.parametrize("shape", ["uniform", "ends", "lattice", "rare"])
@pytest.mark.parametrize("sigma", [0.4, 0.1, 0.03, 0.01])
def test_curves_equal_the_direct_sum(shape: str, sigma: float) -> None:
    y, p = _rows(shape)
    diagram = reliability_diagram(y, p, bandwidth=sigma, resamples=0)
    density, events, predictions = _direct(y, p, diagram.grid, sigma)
    assert np.abs(diagram.density - density).max() < 1e-8 * density.max() / min(sigma, 0.1) ** 2
    known = density > 1e-9 * density.max() * (1 + 1e-6)
    dense = density >= 1e-6 * density.max()
    loose = 0.05 / (sigma**3 * 65536**2)
    for found, exact in ((diagram.regression, events), (diagram.smoothed_predictions, predictions)):
        error = np.abs(found[known] - exact[known] / density[known])
        assert np.isfinite(error).all()
        allowed = np.where(dense & (sigma >= 0.1), 1e-8, loose)[known]
        assert (error <= allowed).all()


@pytest.mark.parametrize("shape", ["uniform", "ends", "lattice", "rare"])
@pytest.mark.parametrize("sigma", [0.25, 0.1])
def test_ece_against_the_diagonal_equals_the_direct_sum(shape: str, sigma: float) -> None:
    y, p = _rows(shape, 200)
    t = np.linspace(0, 1, 4097)
    density, events, _ = _direct(y, p, t, sigma)
    gap = CubicSpline(t, events - t * density)
    cuts = np.concatenate([[0], gap.roots(extrapolate=False), [1]])
    exact = np.abs(np.diff(gap.antiderivative()(cuts))).sum()
    assert abs(reliability_diagram(y, p, bandwidth=sigma, resamples=0).ece - exact) < 1e-8


def test_regions_name_where_the_model_errs() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(40_000)
    y = rng.random(p.size) < np.where(p < 0.5, p + 0.1, p - 0.2)
    first, second = reliability_diagram(y, p, bandwidth=0.02, resamples=0).regions[:2]
    assert first.gap == pytest.approx(0.2, abs=0.03)
    assert first.low == pytest.approx(0.5, abs=0.1)
    assert second.gap == pytest.approx(-0.1, abs=0.03)
    assert "too high" in str(first)
    assert "too low" in str(second)
    assert reliability_diagram(y, p, resamples=0).regions == assess(y, p).direction.regions
    assert first.share + second.share == pytest.approx(1.0, abs=0.01)


def test_bands_hold_the_curve_and_the_calibrated_model() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(4000)
    y = rng.random(p.size) < p
    diagram = reliability_diagram(y, p, bandwidth=0.05, resamples=400)
    inside = (diagram.regression >= diagram.consistency.low) & (
        diagram.regression <= diagram.consistency.high
    )
    assert inside.mean() > 0.7
    for band in (diagram.band, diagram.simultaneous):
        assert ((band.low <= diagram.regression) & (diagram.regression <= band.high)).all()
    assert (diagram.simultaneous.low <= diagram.band.low + 0.005).all()
    # Var of a Nadaraya-Watson curve: μ(1-μ) / (2 √π n σ δ̂).
    middle = diagram.grid.size // 2
    spread = np.sqrt(0.25 / (2 * np.sqrt(np.pi) * p.size * 0.05))
    assert diagram.band.high[middle] - diagram.band.low[middle] == pytest.approx(
        2 * 1.96 * spread, rel=0.15
    )
    assert diagram.consistency.high[middle] - diagram.smoothed_predictions[middle] == pytest.approx(
        1.96 * spread, rel=0.15
    )


@pytest.mark.parametrize("shape", ["uniform", "ends", "lattice", "rare"])
@pytest.mark.parametrize("sigma", [30.0, 0.4, 0.05, 0.004])
def test_the_kernel_matrix_is_the_reflected_kernel(shape: str, sigma: float) -> None:
    sketch = Sketch.from_arrays(*_rows(shape))
    points = np.linspace(0, 1, 300)
    weights = np.random.default_rng(0).random((150, sketch.cells.size, 2))
    found = KernelMatrix(sketch, points, sigma, labels=2)(weights)
    offset = sketch.offsets / np.maximum(sketch.counts, 1) * 2.0**-sketch.offset_bits
    at = (sketch.cells[:, None] + offset) / sketch.nodes
    width = min(sigma, 4.0)  # wider kernels are level
    kernel = np.zeros((*at.shape, points.size))
    for shift in range(-20, 21):
        for image in (at + 2 * shift, -at + 2 * shift):
            kernel += np.exp(-0.5 * ((image[..., None] - points) / width) ** 2)
    exact = np.einsum("rml,mlt->rlt", weights, kernel)
    assert np.allclose(found / found.max(), exact / exact.max(), atol=1e-13)


@pytest.mark.parametrize(
    ("y", "p", "scale"),
    [
        ([0, 1], [0.0, 1.0], None),
        ([0, 1], [0.0, 1.0], "logit"),
        ([0, 0], [0.0, 0.0], "logit"),
        ([0, 1, 1, 0, 1], [0.0, 0.0, 0.0, 1.0, 1.0], "relative"),
        ([0, 1, 1], [0.25, 0.25, 0.75], "unreflected"),
    ],
)
def test_a_narrow_bandwidth_takes_no_time(y: list[int], p: list[float], scale: str | None) -> None:
    reliability_diagram([0, 1], [0.2, 0.7], scale="logit", resamples=1)  # imports
    start = time.process_time()
    diagram = reliability_diagram(y, p, scale=scale)
    assert time.process_time() - start < 3.0  # a busy machine; 0.1 s on an idle one
    if scale is None:
        assert len(diagram.around()) == 9
        assert time.process_time() - start < 4.0


def test_a_scale_too_steep_to_draw_is_refused() -> None:
    with pytest.raises(InputError) as error:
        reliability_diagram([0, 1], [0.2, 0.7], scale="boosting")
    assert error.value.argument == "scale"


def test_a_calibrated_model_looks_calibrated_at_the_ends() -> None:
    rng = np.random.default_rng(2)
    p = rng.random(20_000)
    diagram = reliability_diagram(rng.random(p.size) < p, p, bandwidth=0.04, resamples=200)
    assert diagram.regression[0] > 0.025  # against the diagonal, it would look wrong
    assert diagram.consistency.low[0] <= diagram.regression[0] <= diagram.consistency.high[0]


def test_the_curve_is_whole_between_rows_far_apart() -> None:
    p = np.concatenate([np.full(50, 0.1), np.full(50, 0.9)])
    y = np.concatenate([np.arange(50) < 5, np.arange(50) < 45])
    diagram = reliability_diagram(y, p, bandwidth=0.02, resamples=50)
    assert np.isnan(diagram.regression[np.abs(diagram.grid - 0.5) < 0.1]).all()
    (curve,) = [mark for mark in diagram.panel().marks if mark.key == "curve"]
    assert np.isfinite(curve.y).all()
    # Straight from the one mean to the other, as every mixture of both is.
    assert np.allclose(curve.y, 0.1 + (curve.x - 0.1), atol=1e-6)


def test_a_curve_fades_with_its_evidence() -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.beta(2, 8, 2000), rng.uniform(0.8, 1.0, 6)])
    diagram = reliability_diagram(rng.random(p.size) < p, p, bandwidth=0.03, resamples=60)
    (curve,) = [mark for mark in diagram.panel().marks if mark.key == "curve"]
    strength = curve.strength()
    dense, sparse = np.abs(curve.x - 0.2) < 0.05, np.abs(curve.x - 0.8) < 0.05
    assert (strength[dense] == 1.0).all()
    assert (strength[sparse] < 0.7).all()
    assert strength.min() >= 0.3
    band = diagram.band.high - diagram.band.low
    assert np.nanmean(band[diagram.grid > 0.7]) > 3 * np.nanmean(band[diagram.grid < 0.3])
    density, _, _ = _direct(np.zeros(p.size), p, diagram.grid[40:-40], 0.03)
    kernel = np.exp(-0.5 * ((diagram.grid[40:-40, None] - p) / 0.03) ** 2)
    exact = kernel.sum(axis=1) ** 2 / np.square(kernel).sum(axis=1)
    inner = (density > 1e-3 * density.max()) & (np.abs(diagram.grid[40:-40] - 0.5) < 0.35)
    assert diagram.effective_rows[40:-40][inner] == pytest.approx(exact[inner], rel=0.02)


def test_few_values_are_named_and_shown_as_points() -> None:
    y, p = _rows("lattice")
    diagram = reliability_diagram(y, p, resamples=20)
    assert diagram.values is not None
    assert np.allclose(diagram.values.prediction, np.arange(11) / 10, atol=1e-9)
    assert np.allclose(diagram.values.rate[3], y[p == 0.3].mean())
    assert "11 distinct predictions" in repr(diagram)
    assert any("11 distinct" in note for note in diagram.panel().notes)
    assert reliability_diagram(*_rows("uniform"), resamples=0).values is None


def test_values_too_far_apart_for_a_curve_are_points() -> None:
    diagram = reliability_diagram([0, 1], [0.0, 1.0], resamples=20)
    assert diagram.values is not None
    assert diagram.values.prediction.tolist() == pytest.approx([0.0, 1.0], abs=1e-6)
    assert "2 distinct predictions" in repr(diagram)
    one = reliability_diagram([1], [0.3], resamples=20)
    assert repr(one).endswith("1 distinct prediction)")
    assert reliability_diagram([0, 1, 1], [0.2, 0.5, 0.9], resamples=20).values is None


def test_float_residue_does_not_split_a_value() -> None:
    p = np.tile([0.2, 1 - 0.8, 0.5, np.nextafter(0.5, 0)], 20)
    diagram = reliability_diagram(np.arange(80) % 2, p, resamples=0)
    assert diagram.values is not None
    assert diagram.values.rows.tolist() == [40, 40]


def test_sketch_and_arrays_give_the_same_bytes() -> None:
    y, p = _rows("ends")
    one = reliability_diagram(y, p, resamples=50, curves=3)
    two = reliability_diagram(Sketch.from_arrays(y, p), resamples=50, curves=3)
    assert json.dumps(one.to_dict()) == json.dumps(two.to_dict())
    assert one.resampled.tobytes() == two.resampled.tobytes()
    assert one.raw.prediction.tobytes() == two.raw.prediction.tobytes()
    other = reliability_diagram(y, p, resamples=50, seed=1)
    assert not np.array_equal(one.consistency.low, other.consistency.low, equal_nan=True)
    assert np.array_equal(one.band.low, other.band.low, equal_nan=True)


def test_weights_count_as_rows_for_the_curve() -> None:
    y, p = _rows("uniform")
    weight = np.random.default_rng(3).integers(1, 4, y.size)
    weighted = reliability_diagram(y, p, sample_weight=weight, bandwidth=0.1, resamples=40)
    repeated = reliability_diagram(np.repeat(y, weight), np.repeat(p, weight), bandwidth=0.1)
    assert np.allclose(weighted.regression, repeated.regression, atol=1e-7)
    assert weighted.n == y.size


def test_ticks_are_a_sample_of_the_rows() -> None:
    y, p = _rows("uniform", 5000)
    raw = reliability_diagram(y, p, resamples=0).raw
    assert raw.prediction.size == 200
    nearest = np.abs(raw.prediction[:, None] - p).argmin(axis=1)
    assert (y[nearest] == raw.outcome).all()
    few = reliability_diagram(y[:7], p[:7], resamples=0).raw
    assert np.allclose(few.prediction, np.sort(p[:7]), atol=2e-5)


def test_other_bandwidth_of_the_same_rows() -> None:
    diagram = reliability_diagram(*_rows("uniform"), resamples=20)
    wide = diagram.at(0.3)
    assert wide.bandwidth == 0.3
    assert wide.label.endswith("at bandwidth 0.3")
    assert diagram.at_fixed_point
    assert len(diagram.around()) == 9


def test_frames_dictionaries_and_copies() -> None:
    diagram = reliability_diagram(*_rows("uniform"), resamples=20)
    assert pickle.loads(pickle.dumps(diagram)).to_dict() == diagram.to_dict()
    kept = reliability_diagram(*_rows("uniform"), resamples=20, curves=3).to_dict()
    assert len(kept["resampled"]) == 3
    assert len(kept["raw"]["prediction"]) == len(kept["raw"]["outcome"]) == 200
    frame = diagram.to_frame()
    assert list(frame.columns)[:3] == ["prediction", "regression", "smoothed_prediction"]
    assert diagram.to_frame("polars").height == diagram.grid.size
    json.dumps(diagram.to_dict(), allow_nan=False)
    with refused("backend", 3):
        diagram.to_frame(3)
    with refused("backend", "no_such_frame"):
        diagram.to_frame("no_such_frame")
    with refused(holds="cudf", kind=MissingDependency):
        diagram.to_frame("cudf")
    assert diagram._repr_html_().count("<svg") == 1


@pytest.mark.parametrize(
    ("missing", "found"),
    [((), "pandas"), (("pandas",), "polars"), (("pandas", "polars"), "pyarrow")],
)
def test_frames_are_of_a_library_that_is_there(monkeypatch, missing, found) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    frame = reliability_diagram(*_rows("uniform"), resamples=2).to_frame()
    assert type(frame).__module__.split(".")[0] == found


def test_smallest_inputs_give_a_picture() -> None:
    for y, p in (([1], [0.3]), ([1, 1], [1.0, 1.0]), ([0] * 9, [0.25] * 9)):
        diagram = reliability_diagram(y, p, resamples=30)
        assert isinstance(diagram, ReliabilityDiagram)
        diagram.plot(ax=Figure().subplots())
        assert "<svg" in diagram._repr_html_()


def _rare(n: int = 4000) -> Rows:
    rng = np.random.default_rng(8)
    z = rng.normal(-5, 1.2, n)
    return (rng.random(n) < 1 / (1 + np.exp(-0.8 * z - 0.6))).astype(int), 1 / (1 + np.exp(-z))


@pytest.mark.parametrize("scale", ["logit", "relative", "unreflected"])
def test_curves_on_other_scales_equal_the_direct_sum(scale: str) -> None:
    y, p = _rare(800)
    bandwidth = {"logit": 0.5, "relative": 0.008, "unreflected": 0.02}[scale]
    diagram = reliability_diagram(y, p, scale=scale, bandwidth=bandwidth, resamples=30)
    used = diagram.sketch.scale
    at, z = used.z(diagram.grid[1:-1]), used.z(p)
    kernel = np.exp(-0.5 * ((at[:, None] - z) / bandwidth) ** 2)
    inside = (diagram.rows[1:-1] > 0) & (kernel.sum(axis=1) > 1e-3)
    exact = (kernel @ y / kernel.sum(axis=1))[inside]
    assert np.abs(diagram.regression[1:-1][inside] - exact).max() < 1e-6
    exact = (kernel @ p / kernel.sum(axis=1))[inside]
    assert np.abs(diagram.smoothed_predictions[1:-1][inside] - exact).max() < 1e-6
    low, high = diagram.band.low, diagram.band.high
    densest = int(np.argmax(diagram.density))
    assert low[densest] <= diagram.regression[densest] <= high[densest]


def test_relative_scale_from_arrays_and_rows_at_infinity() -> None:
    y, p = _rare()
    diagram = reliability_diagram(y, p, scale="relative", resamples=50)
    assert diagram.smooth_ece.scale.startswith("relative:")
    assert diagram.at(0.01, resamples=0).smooth_ece.scale == diagram.smooth_ece.scale
    p = p.copy()
    p[:50] = 0.0
    ends = reliability_diagram(y, p, scale="logit", bandwidth=0.5, resamples=20)
    assert ends.n == y.size
    assert ends.grid[0] > 0


@pytest.mark.parametrize("sigma", [None, 1e-4, 5e-5])
def test_a_narrow_bandwidth_is_drawn_as_it_is(sigma: float | None) -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 3000, 200_000)
    diagram = reliability_diagram(rng.random(p.size) < p, p, bandwidth=sigma, resamples=5)
    assert diagram.bandwidth == diagram.smooth_ece.bandwidth < 1.2e-4
    gap = np.nan_to_num(diagram.regression - diagram.smoothed_predictions) * diagram.density
    area = trapezoid(np.abs(gap), diagram.grid)
    assert area == pytest.approx(diagram.smooth_ece.value, rel=0.01)
    parts = sum(region.contribution for region in diagram.regions)
    assert 0.7 * diagram.smooth_ece.value < parts <= diagram.smooth_ece.value
    assert not any("0.00 " in str(region) for region in diagram.regions)
    at = diagram.grid[:60:6, None]
    kernel = sum(np.exp(-0.5 * ((at - q) / diagram.bandwidth) ** 2) for q in (p, -p))
    exact = kernel.mean(axis=1) / (diagram.bandwidth * np.sqrt(2 * np.pi))
    assert diagram.density[:60:6] == pytest.approx(exact, rel=0.01)


def test_a_bandwidth_too_narrow_to_draw_is_drawn_wider_and_says_so() -> None:
    diagram = reliability_diagram(*_rows("uniform"), bandwidth=1e-5, resamples=0)
    assert diagram.bandwidth == 2 / 65536
    assert diagram.drawn_wider
    assert diagram.label.endswith("at bandwidth 1e-05")
    assert diagram.panel().notes[-1] == "drawn at bandwidth 3.05e-05"
    both = Diagrams({"a": diagram, "b": reliability_diagram(*_rows("rare"), resamples=0)}).panel()
    assert both.legend["a"].endswith("drawn at bandwidth 3.05e-05")
    rows = [row for rows in diagram.chart().to_dict()["datasets"].values() for row in rows]
    texts = {row["frame"]: row["text"] for row in rows if "text" in row and "frame" in row}
    assert "bandwidth: own × 3.1 = 3.05e-05" in texts[0]


def test_a_perfect_predictor_has_no_digits_that_are_not_known() -> None:
    y = np.arange(5000) % 2
    assert reliability_diagram(y, y.astype(float), resamples=0).label.startswith(
        "average error < 0.00002"
    )


@pytest.mark.parametrize("scale", ["probability", "unreflected", "logit", "relative"])
def test_rows_calibrated_to_the_last_one_are_drawn_on_every_scale(scale) -> None:
    y, p = np.tile([0, 0, 0, 1, 0, 1, 1, 1], 20), np.tile(np.repeat([0.25, 0.75], 4), 20)
    diagram = reliability_diagram(y, p, scale=scale, resamples=0)
    assert diagram.interval.low == 0.0 < diagram.interval.high
    assert diagram.smooth_ece.value <= diagram.smooth_ece.certificate.total
    if scale == "probability":
        assert "bandwidth: own × 1.4 = " in diagram.chart().to_json(ensure_ascii=False)


def test_predictions_that_differ_within_a_cell_are_not_called_distinct_values() -> None:
    rng = np.random.default_rng(4)
    p = rng.random(20_000) * 1e-4
    for y in (rng.random(p.size) < 0.3, np.zeros(p.size)):
        assert reliability_diagram(y, p, resamples=0).values is None
        found = reliability_diagram(y, np.round(p * 1e5) / 20, resamples=0).values
        assert found is not None
        assert found.rows.size == 11
