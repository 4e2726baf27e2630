"""The statistics of the curve: identity with SmoothECE, widening, gaps, points and bands."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cal
from calibrant.data.points import as_points
from calibrant.plotting.neighborhoods import (
    beta_quantiles,
    neighborhoods,
    simultaneous_quantile,
    wilson,
)


def both(y, p, *, width=None, weight=None, labels="binary", **options):
    return neighborhoods(
        as_points(y, p, sample_weight=weight, labels=labels),
        cal.smooth_ece(y, p) if width is None else width,
        **{"widen": True, "confidence": 0.95, **options},
    )


def curve(y, p, **options):
    return both(y, p, **options)[0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("slope", "widen"), [(0.2, True), (0.6, True), (0.4, False), (1.0, False)])
def test_the_area_is_smooth_ece_where_nothing_was_widened(seed: int, slope: float, widen) -> None:
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, 4000)
    y = (rng.random(p.size) < 0.5 + slope * (p - 0.5)).astype(int)
    found = curve(y, p, widen=widen)
    assert found.widened == 0.0
    assert found.area == pytest.approx(cal.smooth_ece(y, p), rel=1e-3)


def test_the_curve_is_that_of_the_kernel_sums() -> None:
    rng = np.random.default_rng(5)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    width = 0.08
    found = curve(y, p, width=width, widen=False)
    t = found.position[:, None]
    images = [sign * p + 2 * turn for turn in (-1, 0, 1) for sign in (1, -1)]
    kernel = sum(np.exp(-0.5 * ((t - image) / width) ** 2) for image in images)
    total = kernel.sum(axis=1)
    np.testing.assert_allclose(found.prediction, kernel @ p / total, atol=2e-4)
    np.testing.assert_allclose(found.observed, kernel @ y / total, atol=2e-3)
    np.testing.assert_allclose(found.effective_rows, total**2 / (kernel**2).sum(axis=1), rtol=5e-3)


def test_neighbourhoods_hold_enough_rows_or_are_as_wide_as_is_sensible(rare) -> None:
    found = curve(*rare)
    shown = found.drawn & (found.weight > 0.0)
    assert (found.effective_rows[shown] >= 0.4 * 40 - 1e-9).all()
    assert found.bandwidth[shown].max() <= 0.12 + 1e-9
    assert 0.0 < found.widened < 0.2
    few = shown & (found.bandwidth < 0.1) & (found.bandwidth > 1.2 * cal.smooth_ece(*rare))
    assert np.median(found.effective_rows[few]) > 35


@pytest.mark.parametrize("n", [300, 3000, 30_000])
def test_noise_is_no_slope(n: int) -> None:
    """The curve of a calibrated sample rises; at SmoothECE's own bandwidth it goes up and down."""
    falls = []
    for seed in range(10):
        rng = np.random.default_rng([seed, n])
        p = rng.random(n)
        y = (rng.random(n) < p).astype(int)
        for widen in (True, False):
            found = curve(y, p, widen=widen)
            falls.append(np.mean(np.diff(found.observed[found.drawn]) < -1e-12))
    assert np.mean(falls[::2]) < 0.01
    assert np.mean(falls[1::2]) > 0.02


def test_the_curve_rises_along_the_axis(rare, dense) -> None:
    for sample in (rare, dense):
        found = curve(*sample)
        assert (np.diff(found.prediction[found.drawn]) >= 0).all()


def test_the_line_ends_with_the_rows() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.42, 0.55, 3000)
    found = curve((rng.random(3000) < 0.5).astype(int), p)
    shown = found.position[found.drawn]
    assert p.min() <= shown.min() < 0.43
    assert 0.54 < shown.max() <= p.max() + 1e-6
    assert (~found.drawn & np.isfinite(found.observed)).any()


def test_errors_on_short_axes_are_as_small_a_share_of_them_as_on_long_ones() -> None:
    rng = np.random.default_rng(0)
    p = rng.beta(1, 999, 50_000)
    found = curve((rng.random(p.size) < p).astype(int), p)
    assert found.drawn.any()
    f = found.prediction[found.drawn]
    error = np.sqrt(f * (1 - f) / found.effective_rows[found.drawn])
    assert error.max() <= 0.125 * np.quantile(p, 0.999) * 1.05


def test_rows_without_a_curve_are_points_with_intervals() -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.0, 0.2, 2000), np.full(12, 0.6) + rng.normal(0, 0.005, 12)])
    y = (rng.random(p.size) < p).astype(int)
    _, clumps = both(y, p)
    assert clumps.prediction.size == 1
    assert clumps.rows.tolist() == [12.0]
    assert clumps.prediction[0] == pytest.approx(p[-12:].mean())
    assert clumps.observed[0] == pytest.approx(y[-12:].mean())
    low, high = wilson(np.array([y[-12:].mean()]), np.array([12.0]), 0.95)
    assert (clumps.low[0], clumps.high[0]) == (pytest.approx(low[0]), pytest.approx(high[0]))


def test_tiny_samples_have_no_curve_but_groups() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 12, 30):
        p = rng.random(n)
        y = (rng.random(n) < p).astype(int)
        found, clumps = both(y, p)
        assert not found.drawn.any()
        assert clumps.rows.sum() == n
        assert clumps.rows.size == min(max(n // 4, 1), 5)


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize("kind", ["uniform", "rare", "ends"])
def test_bands_cover(kind: str, n: int) -> None:
    """Both bands hold 95% of the points of the curve, on average over 40 samples."""
    shapes = {"uniform": (1, 1), "rare": (0.5, 20), "ends": (0.1, 0.1)}
    inside = []
    for seed in range(40):
        rng = np.random.default_rng([seed, n])
        p = rng.beta(*shapes[kind], n)
        y = (rng.random(n) < p).astype(int)
        found = curve(y, p)
        truth = curve(p, p, width=cal.smooth_ece(y, p), labels="soft")
        if (shown := found.drawn).any():
            x, low, high = found.observed, found.consistency_low, found.consistency_high
            null = (low <= x) & (x <= high)
            at = (column[truth.drawn] for column in (truth.prediction, truth.observed))
            rate = np.interp(found.prediction[shown], *at)
            own = (found.low[shown] <= rate) & (rate <= found.high[shown])
            inside.append([null[shown].mean(), own.mean()])
    assert inside
    assert (np.mean(inside, axis=0) > 0.91).all()


@pytest.mark.parametrize("n", [300, 3000])
def test_the_consistency_band_holds_whole_curves(n: int) -> None:
    """Of calibrated samples about 95% stay inside everywhere; pointwise bands would hold far fewer."""
    inside = []
    for seed in range(150):
        rng = np.random.default_rng([seed, n])
        p = rng.random(n)
        found = curve((rng.random(n) < p).astype(int), p)
        y, low, high = (
            getattr(found, name)[found.drawn]
            for name in ("observed", "consistency_low", "consistency_high")
        )
        inside.append(bool(((low - 1e-12 <= y) & (y <= high + 1e-12)).all()))
    assert np.mean(inside) > 0.88
    wide = simultaneous_quantile(0.95, 1, 6.0)
    assert 1.96 < wide < simultaneous_quantile(0.95, 1, 60.0) < simultaneous_quantile(0.99, 3, 60.0)
    assert simultaneous_quantile(0.95, 5, 0.0) == pytest.approx(2.5758, abs=1e-4)  # Bonferroni


def test_lines_are_led_to_the_last_rows() -> None:
    """A straight line stays straight, and reaches the rows at the ends."""
    rng = np.random.default_rng(0)
    p = np.sort(rng.uniform(0.1, 0.9, 2000))
    found = curve(0.3 + 0.4 * p, p, width=0.1, labels="soft")
    x, y = found.prediction[found.drawn], found.observed[found.drawn]
    assert x[0] < 0.11
    assert x[-1] > 0.89
    np.testing.assert_allclose(y, 0.3 + 0.4 * x, atol=1e-3)
    beyond = found.drawn & (found.weight == 0.0)
    assert beyond.any()
    assert found.effective_rows[beyond].min() > found.effective_rows[found.drawn].max() / 10


def test_weights_count_by_their_effective_number(dense) -> None:
    y, p = dense
    weight = np.where(np.arange(p.size) % 10 == 0, 20.0, 1.0)
    plain = curve(y, p, widen=False)
    width = cal.smooth_ece(y, p)
    heavy = curve(y, p, width=width, weight=weight, widen=False)
    kish = weight.sum() ** 2 / (weight**2).sum() / p.size
    ratio = heavy.effective_rows / np.interp(heavy.position, plain.position, plain.effective_rows)
    assert np.median(ratio) == pytest.approx(kish, rel=0.1)
    scaled, same = (curve(y, p, width=width, weight=k * weight) for k in (7.0, 1.0))
    np.testing.assert_allclose(scaled.low, same.low, rtol=1e-9)


def test_a_design_effect_divides_the_effective_rows(dense) -> None:
    plain, clustered = curve(*dense, widen=False), curve(*dense, widen=False, design_effect=4.0)
    np.testing.assert_allclose(clustered.effective_rows, plain.effective_rows / 4.0)
    width = (clustered.high - clustered.low) / (plain.high - plain.low)
    assert np.nanmedian(width) == pytest.approx(2.0, rel=0.1)


def test_intervals_of_rates() -> None:
    low, high = wilson(np.array([0.1]), np.array([100.0]), 0.95)
    assert (low[0], high[0]) == (pytest.approx(0.05523, abs=1e-5), pytest.approx(0.17437, abs=1e-5))
    from scipy.stats import beta, norm

    low, high = beta_quantiles(np.array([0.3]), np.array([0.3 * 0.7 / 51]), norm.ppf(0.95))
    assert (low[0], high[0]) == pytest.approx(
        beta(15, 35).ppf([0.05, 0.95]) + np.array([-0.01, 0.01])
    )
    low, high = beta_quantiles(np.array([0.001, 0.0]), np.array([0.001 / 100, 0.0]), 1.96)
    assert low.tolist() == [0.0, 0.0]
    assert high[1] == 0.0
