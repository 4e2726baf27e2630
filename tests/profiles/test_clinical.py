"""The clinical profile: values that R gives, laws, and the inputs that have no plain answer."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit
from scipy.stats import beta
from tests.profiles.cancer import breast_cancer

import calibrant as cal
from calibrant.profiles import clinical
from calibrant.profiles.logistic import LogOdds, fit_line, slope_interval

THRESHOLDS = (0.1, 0.2, 0.5)
EVERYTHING = clinical(thresholds=THRESHOLDS, hosmer_lemeshow=True)
# R 4.2.2: glm, rms 6.5-0, pROC 1.18.0, ResourceSelection 0.3-6.
CANCER = {
    "observed / expected": (1.053018475, None),
    "calibration intercept": (0.3123506415, 0.2339056952),
    "calibration slope": (0.6133668956, 0.07620021233),
    "intercept given slope": (-0.02919243033, None),
    "intercept 0 and slope 1, χ² (2 df)": (19.116287477, None),
    "AUC": (0.9250261233, None),
    "Brier score": (0.09973263547, None),
    "scaled Brier score (IPA)": (0.5797264657, None),
    "log loss": (0.3465864968, None),
    "Spiegelhalter's z": (4.494017727, None),
    "net benefit at 0.1": (0.3360719875, None),
    "net benefit at 0.2": (0.2966549296, None),
    "net benefit at 0.5": (0.25, None),
    "Hosmer-Lemeshow χ² (10 groups, 10 df)": (93.54174329, None),
}


def profile_of(y, p, profile="clinical", **options):
    return cal.assess(y, p, profile=profile, **options).profile


def generated(seed, n=400, slope=0.7, spread=2.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.3, spread, n)
    return (rng.random(n) < expit(0.2 + slope * z)).astype(int), expit(z)


def require_reference(found, reference):
    for name, (value, error) in reference.items():
        assert found[name].value == pytest.approx(value, rel=2e-8, abs=1e-8), name
        if error is not None:
            assert found[name].standard_error == pytest.approx(error, rel=1e-7), name


def test_breast_cancer_has_the_values_of_r():
    found = profile_of(*breast_cancer(), EVERYTHING)
    require_reference(found, CANCER)
    assert (found["AUC"].low, found["AUC"].high) == pytest.approx((0.8925541, 0.9574981), abs=1e-7)
    slope = found["calibration slope"]  # R's own ends are interpolated
    assert (slope.low, slope.high) == pytest.approx((0.47716, 0.77722), abs=5e-5)
    assert found["Hosmer-Lemeshow χ² (10 groups, 10 df)"].p_value == pytest.approx(
        1.0599e-15, rel=1e-3
    )
    assert 0.04 < found["mean gap (ICI)"].value < 0.07


# -- the slope -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("slope", "spread"), [(0.7, 2.0), (1.0, 0.3), (0.1, 30.0), (-0.5, 1.0)])
def test_the_line_maximises_the_likelihood_and_the_ends_profile_it(slope, spread):
    y, p = generated(3, slope=slope, spread=spread)
    z = logit(np.clip(p, 1e-15, 1 - 1e-15))

    def loss(a, b):
        return float(np.sum(np.logaddexp(0.0, a + b * z) - y * (a + b * z)))

    data = LogOdds.of(z, 1.0 - y, 1.0 * y)
    fit = fit_line(data)
    best = minimize(lambda x: loss(*x), [0.0, 0.5 / spread], method="Nelder-Mead").fun
    assert loss(fit.intercept, fit.slope) <= best + 1e-6
    assert np.allclose(fit.gradient, 0.0, atol=1e-6 * len(y))
    for end in slope_interval(data, fit.slope, 1.96):
        held = minimize_scalar(lambda a, end=end: loss(a, end)).fun
        assert 2.0 * (held - loss(fit.intercept, fit.slope)) == pytest.approx(1.96**2, abs=1e-5)


def test_certain_predictions_that_are_right_add_nothing():
    y, p = generated(1)
    with_certain = profile_of(np.r_[y, 0, 0, 1], np.r_[p, 0.0, 0.0, 1.0])
    without = profile_of(y, p)
    for name in (
        "calibration slope",
        "calibration intercept",
        "intercept 0 and slope 1, χ² (2 df)",
    ):
        assert with_certain[name].value == pytest.approx(without[name].value, rel=1e-12)
    assert "3 rows" in with_certain["calibration slope"].note
    # The limit of log-odds that grow: rows that are almost certain, and right.
    near = profile_of(np.r_[y, 0, 1], np.r_[-logit(1 - p), -45.0, 45.0], from_logits=True)
    assert near["calibration slope"].value == pytest.approx(
        without["calibration slope"].value, rel=1e-9
    )


def test_a_certain_prediction_that_is_wrong_makes_every_positive_slope_impossible():
    y, p = generated(1)
    found = profile_of(np.r_[y, 1], np.r_[p, 0.0])
    assert found["calibration slope"].value == 0.0
    assert "1 row " in found["calibration slope"].note
    assert found["intercept 0 and slope 1, χ² (2 df)"].value == np.inf
    assert found["log loss"].value == np.inf
    # The intercept is the limit of a row whose log-odds go to minus infinity.
    z = np.r_[logit(p), -60.0]
    near = profile_of(np.r_[y, 1], z, from_logits=True)["calibration intercept"]
    assert found["calibration intercept"].value == pytest.approx(near.value, abs=1e-9)


@pytest.mark.parametrize(
    ("y", "p", "value", "low", "high"),
    [
        ([0, 0, 0, 1, 1], [0.1, 0.2, 0.3, 0.7, 0.8], np.inf, True, False),
        ([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.3, 0.7, 0.8], np.inf, True, False),
        ([1, 1, 0, 0, 0], [0.1, 0.2, 0.3, 0.7, 0.8], -np.inf, False, True),
    ],
)
def test_separated_outcomes_have_an_infinite_slope_with_one_finite_end(y, p, value, low, high):
    slope = profile_of(y, p)["calibration slope"]
    assert slope.value == value
    assert (np.isfinite(slope.low), np.isfinite(slope.high)) == (low, high)
    assert "infinite" in slope.note
    end = slope.low if low else slope.high
    z, y = logit(p), np.asarray(y)

    def profiled(b):
        return -minimize_scalar(lambda a: np.sum(np.logaddexp(0, a + b * z) - y * (a + b * z))).fun

    top = max(profiled(np.sign(value) * b) for b in (30.0, 60.0, 100.0))
    assert 2.0 * (top - profiled(end)) == pytest.approx(1.959964**2, abs=2e-3)


def test_one_class_and_equal_predictions_are_named():
    one = profile_of([0, 0, 0, 0], [0.1, 0.2, 0.3, 0.4])
    intercept = one["calibration intercept"]
    assert (intercept.value, intercept.low) == (-np.inf, -np.inf)
    at_end = -2.0 * np.sum(np.log1p(-expit(intercept.high + logit([0.1, 0.2, 0.3, 0.4]))))
    assert at_end == pytest.approx(1.959963985**2, rel=1e-8)
    for name in ("calibration slope", "AUC", "scaled Brier score (IPA)"):
        assert np.isnan(one[name].value)
        assert one[name].note
    equal = profile_of([0, 1, 0, 1], [0.3, 0.3, 0.3, 0.3])
    assert np.isnan(equal["calibration slope"].value)
    assert equal["calibration slope"].note
    assert equal["AUC"].value == 0.5


# -- sketches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_a_sketch_gives_what_the_rows_give(scale):
    y, p = generated(7, n=3000, spread=1.5)
    rows = profile_of(y, p, clinical(thresholds=(0.1, 1 / 3)))
    sketched = cal.assess(
        cal.Sketch.from_arrays(y, p, scale=scale, nodes=1 << 12),
        profile=clinical(thresholds=(0.1, 1 / 3)),
    ).profile
    for name in rows:
        if name in ("observed / expected", "mean gap (ICI)", "E50", "E90", "Emax"):
            continue
        ours, exact = sketched[name], rows[name]
        near = 1e-3 + 1e-3 * max(np.nan_to_num(exact.standard_error), 1e-3)
        assert ours.value == pytest.approx(exact.value, abs=near, rel=1e-4), name
        if not np.isnan(exact.low):
            assert (ours.low, ours.high) == pytest.approx((exact.low, exact.high), abs=near), name


def test_a_probability_sketch_with_rows_near_its_ends_refuses_the_slope():
    rng = np.random.default_rng(2)
    z = rng.normal(0, 8, 2000)
    sketch = cal.Sketch.from_arrays(rng.random(2000) < expit(0.14 * z), expit(z))
    slope = cal.assess(sketch, profile="clinical").profile["calibration slope"]
    assert np.isnan(slope.value)
    assert "logit sketch" in slope.note


# -- weights, clusters, soft labels ----------------------------------------------------------------

COUNTED = ("calibration slope", "AUC", "Brier score", "log loss", "scaled Brier score (IPA)")


def test_weights_count_as_duplicates_for_values():
    y, p = generated(4, n=150)
    weight = np.random.default_rng(0).integers(1, 4, y.size)
    weighted = profile_of(y, p, sample_weight=weight)
    repeated = profile_of(
        np.repeat(y, weight), np.repeat(p, weight), cluster=np.repeat(range(150), weight)
    )
    for name in COUNTED:
        assert weighted[name].value == pytest.approx(repeated[name].value, rel=1e-9)
        assert weighted[name].standard_error == pytest.approx(
            repeated[name].standard_error, rel=1e-9
        )


def test_rows_that_were_copied_in_clusters_are_no_news():
    y, p = generated(6, n=200)
    once = profile_of(y, p, sample_weight=np.ones(200))
    thrice = profile_of(np.tile(y, 3), np.tile(p, 3), cluster=np.tile(np.arange(200), 3))
    for name in COUNTED:
        assert thrice[name].low == pytest.approx(once[name].low, rel=1e-9)
        assert thrice[name].high == pytest.approx(once[name].high, rel=1e-9)


def test_soft_labels_are_rows_of_both_outcomes():
    rng = np.random.default_rng(8)
    p = np.repeat(rng.uniform(0.05, 0.95, 80), 5)
    y = (rng.random(400) < p).astype(int)
    shares = y.reshape(80, 5).mean(axis=1)
    soft = profile_of(shares, p[::5], labels="soft")
    hard = profile_of(y, p, cluster=np.repeat(np.arange(80), 5))
    for name in ("calibration slope", "calibration intercept", "AUC", "log loss"):
        assert soft[name].value == pytest.approx(hard[name].value, rel=1e-9)


def test_the_auc_of_perfect_order_has_an_interval():
    found = profile_of([0] * 20 + [1] * 30, np.linspace(0.01, 0.99, 50))["AUC"]
    assert found.value == found.high == 1.0
    assert found.low == pytest.approx(0.025 ** (1 / 20))


def test_the_auc_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(9)
    p, y = np.round(rng.random(120), 1), rng.integers(0, 2, 120)
    difference = p[y == 1][:, None] - p[y == 0][None, :]
    pairs = np.mean((difference > 0) + 0.5 * (difference == 0))
    found = profile_of(y, p)["AUC"]
    assert found.value == pytest.approx(pairs, rel=1e-12)
    placed = (difference > 0) + 0.5 * (difference == 0)
    variance = placed.mean(axis=1).var(ddof=1) / (y == 1).sum()
    variance += placed.mean(axis=0).var(ddof=1) / (y == 0).sum()
    assert found.standard_error == pytest.approx(np.sqrt(variance), rel=1e-12)


# -- few events ------------------------------------------------------------------------------------


def test_few_events_widen_the_interval_of_the_auc_and_it_says_so():
    rng = np.random.default_rng(8)
    p = rng.random(400)
    y = np.zeros(400, dtype=int)
    y[np.argsort(p)[-40::10]] = 1
    area = cal.assess(y, p, profile="clinical").profile["AUC"]
    wald = 1.959964 * area.standard_error
    assert area.low < area.value - wald
    assert area.value < area.high < 1.0
    assert area.note
    # No AUC inside is further than 1.96 standard errors of its own; both ends are exactly that far.
    for end in (area.low, area.high):
        events, others = 2 * end**2 / (1 + end) - end**2, end / (2 - end) - end**2
        spread = end * (1 - end) + 3 * others + 395 * events
        error = max(np.sqrt(spread / (4 * 396)), area.standard_error)
        assert abs(end - area.value) == pytest.approx(1.959964 * error, rel=1e-6)


@pytest.mark.parametrize("events", [1, 2, 5, 12])
def test_a_mean_of_few_events_has_nearly_the_exact_interval(events):
    # Predictions of 0 make the Brier score the event rate, of which Clopper and Pearson's is exact.
    n = 300
    y = np.arange(n) < events
    score = cal.assess(y, np.zeros(n), profile=clinical().only("Brier score")).profile[
        "Brier score"
    ]
    low, high = beta.ppf([0.025, 0.975], [events, events + 1], [n - events + 1, n - events])
    assert (score.low, score.high) == pytest.approx((low, high), rel=0.05, abs=2e-5)


# -- sketches with weights and clusters ------------------------------------------------------------


def many(seed=3, n=1500):
    rng = np.random.default_rng(seed)
    z = rng.normal(-0.5, 1.5, n)
    y = (rng.random(n) < expit(0.2 + 0.7 * z)).astype(int)
    return y, expit(z), rng.integers(1, 5, n) / 2.0, np.arange(n) // 25


SKETCHED = (
    "calibration intercept",
    "calibration slope",
    "AUC",
    "Brier score",
    "scaled Brier score (IPA)",
    "log loss",
    "net benefit at 0.2",
)


@pytest.mark.parametrize("kind", ["weights", "soft", "clusters"])
def test_a_sketch_with_weights_or_clusters_has_the_intervals_of_the_rows(kind):
    y, p, weight, group = many()
    profile = clinical(thresholds=[0.2])
    if kind == "clusters":
        exact = cal.assess(y, p, cluster=group, profile=profile).profile
        columns = {"y": y, "p": p, "g": group}
        sketch = cal.scan(columns, y_true="y", y_prob="p", by="g", scale="logit")
        sketched = cal.assess(sketch, cluster="g", profile=profile).profile
    else:
        options = {"sample_weight": weight} if kind == "weights" else {"labels": "soft"}
        y = y if kind == "weights" else 0.1 + 0.8 * y
        exact = cal.assess(y, p, profile=profile, **options).profile
        sketch = cal.Sketch.from_arrays(y, p, scale="logit", **options)
        sketched = cal.assess(sketch, profile=profile).profile
    # What a sketch does not know is the skewness of soft rows, which are of both outcomes.
    near = 0.06 if kind == "soft" else 1e-3
    for name in SKETCHED:
        ours, rows = sketched[name], exact[name]
        assert abs(ours.value - rows.value) <= 1e-4, name
        assert ours.low - near * rows.standard_error <= rows.low, name
        assert rows.high <= ours.high + near * rows.standard_error, name
        assert ours.standard_error == pytest.approx(rows.standard_error, rel=2e-3), name
    name = "intercept 0 and slope 1, χ² (2 df)"
    assert sketched[name].value == pytest.approx(exact[name].value, rel=2e-3)


GAPS = ("mean gap (ICI)", "E50", "E90", "Emax")


def test_gaps_are_those_of_the_curve_on_the_probability_scale():
    rng = np.random.default_rng(3)
    p = rng.random(400)
    y = rng.random(400) < p
    for given in ((y, p), (cal.Sketch.from_arrays(y, p, scale="logit"),)):
        found = cal.assess(*given, scale="logit", profile=clinical().only(*GAPS)).profile
        for quantity in found.quantities:
            assert np.isnan(quantity.value)
            assert "probability scale" in quantity.note


@pytest.mark.parametrize("kind", ["rows", "clusters", "weights"])
def test_few_rows_with_few_events_have_a_profile(kind):
    """The 5,000 samples of bench.coverage.profiles, fewer of them."""
    rng = np.random.default_rng(8)
    for k in range(12):
        n = int(rng.integers(5, 51))
        p = [rng.random(n), expit(rng.normal(0, 20, n)), rng.choice([0.0, 0.3, 1.0], n)][k % 3]
        y = np.zeros(n)
        y[: rng.integers(0, 4)] = 1.0
        options = {
            "rows": {},
            "clusters": {"cluster": np.arange(n) // 2},
            "weights": {"sample_weight": rng.lognormal(0, 1, n)},
        }[kind]
        for quantity in profile_of(rng.permutation(y), p, EVERYTHING, **options).quantities:
            assert quantity.note or not np.isnan(quantity.value), quantity.name
            assert not quantity.low > quantity.value
            assert not quantity.high < quantity.value


@pytest.mark.filterwarnings("error")
def test_separable_and_sharp_rows_warn_of_nothing():
    p = np.linspace(0.01, 0.99, 50)
    found = cal.assess(p > 0.5, p, profile="clinical").profile["calibration slope"]
    assert found.value == np.inf
    assert np.isfinite(found.low)
    reversed_ = cal.assess([1, 0], [0.3, 0.6], profile="clinical").profile["calibration slope"]
    assert reversed_.value == -np.inf
    assert np.isfinite(reversed_.high)
    sharp = np.array([0.0, 1.0, 0.5, 1e-14] * 20)
    sketch = cal.Sketch.from_arrays(np.arange(80) % 3 == 0, sharp)
    assert np.isnan(cal.assess(sketch, profile="clinical").profile["log loss"].value)


def newton_in_longdouble(y, p, *, offset):
    """Intercept and slope (held at 1 with `offset`), and their standard errors, in extended precision."""
    p, y = p.astype(np.longdouble), y.astype(np.longdouble)
    z = np.log(p) - np.log1p(-p)
    a, b = np.longdouble(0), np.longdouble(1 if offset else 0)
    for _ in range(100):
        mean = 1 / (1 + np.exp(-(a + b * z)))
        w, r = mean * (1 - mean), y - mean
        aa, ab, bb = w.sum(), (w * z).sum(), (w * z * z).sum()
        determinant = aa * bb - ab * ab
        da = r.sum() / aa if offset else (bb * r.sum() - ab * (r * z).sum()) / determinant
        db = 0 if offset else (aa * (r * z).sum() - ab * r.sum()) / determinant
        largest = max(abs(da), abs(db), 1)
        a, b = a + da / largest, b + db / largest
    if offset:
        return float(a), float(1 / np.sqrt(aa))
    return float(b), float(np.sqrt(aa / determinant))


@pytest.mark.parametrize("seed", range(3))
def test_fits_are_those_of_extended_precision(seed):
    rng = np.random.default_rng([seed, 181])
    n = int(rng.integers(60, 400))
    z = np.round(rng.normal(rng.normal(), rng.uniform(0.4, 4), n), 2)
    y = (rng.random(n) < 1 / (1 + np.exp(-rng.uniform(0.2, 1.5) * z))).astype(int)
    p = 1 / (1 + np.exp(-z))
    profile = clinical().only("calibration intercept", "calibration slope")
    found = cal.assess(y, p, cluster=None, profile=profile).profile
    for name, offset in (("calibration intercept", True), ("calibration slope", False)):
        one = found[name]
        exact = newton_in_longdouble(y, p, offset=offset)
        assert (one.value, one.standard_error) == pytest.approx(exact, rel=1e-11), name
