"""A certified threshold: what it promises, in samples where the truth is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom
from tests.refusals import refused

import calibrant as cal
from calibrant.decisions.certify import least_rows
from calibrant.inference.dependence import DependenceWarning


def sample(seed=0, n=2000):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


def test_the_threshold_splits_the_rows_as_it_says():
    y, p = sample()
    found = cal.certify(y, p, risk=0.2)
    chosen = p >= found.threshold
    assert found.above.rows == chosen.sum()
    assert found.above.errors == np.sum(y[chosen] == 0)
    assert found.coverage == chosen.mean()
    assert found.above.risk <= found.risk_bound <= 0.2
    assert found.certified
    assert found.below is None


def by_definition(y, p, risk, level=0.05):
    """Rows beyond the last threshold that passes: starts at doublings, each with an equal share."""
    order = np.argsort(-p)
    wrong, rows = np.cumsum(1.0 - y[order]), np.arange(1, p.size + 1)
    p_values = binom.cdf(wrong, rows, risk)
    starts = 1
    while least_rows(risk, level / (starts + 1)) * 2**starts <= p.size:
        starts += 1
    first, level = least_rows(risk, level / starts), level / starts
    begin = {first * 2**k for k in range(starts)}
    carried, last = 0.0, (0, 0.0)
    for n in range(first, p.size + 1):
        carried += level * (n in begin)
        if p_values[n - 1] > carried:
            carried = 0.0
        elif carried:
            last = n, carried
    return last


@pytest.mark.parametrize("seed", range(20))
def test_thresholds_are_tested_from_the_most_confident_down(seed):
    rng = np.random.default_rng(seed)
    n, risk = int(rng.integers(40, 3000)), float(rng.choice([0.1, 0.2, 0.4]))
    p = rng.random(n)
    y = (rng.random(n) < p ** rng.uniform(0.2, 1.5)).astype(int)
    rows, level = by_definition(y, p, risk)
    found = cal.certify(y, p, risk=risk)
    assert found.certified == bool(rows)
    if rows:
        errors = found.above.errors
        assert found.above.rows == rows
        bound = beta.ppf(1 - level, errors + 1, rows - errors)  # Clopper and Pearson's
        assert found.risk_bound == pytest.approx(bound)


def test_a_model_that_is_right_only_where_it_is_surest_gets_a_threshold():
    rng = np.random.default_rng(2)
    p = rng.random(20_000)
    found = cal.certify(rng.random(20_000) >= 0.4 * (1 - p**8), p)
    assert 0.04 < found.coverage < 0.074  # at most a tenth is wrong in the surest .074


@pytest.mark.parametrize(
    ("risk", "least"), [(0.10, 29), (0.01, 299), (0.5, 5)], ids=["tenth", "hundredth", "half"]
)
def test_the_fewest_rows_that_certify(risk, least):
    assert least_rows(risk, 0.05) == least
    enough, short = np.full(least, 0.9), np.full(least - 1, 0.9)
    assert cal.certify(np.ones(least), enough, risk=risk).threshold == 0.9
    nothing = cal.certify(np.ones(least - 1), short, risk=risk)
    assert nothing.threshold is None
    assert nothing.risk_bound is None
    assert not nothing.certified
    assert nothing.rows_needed == least
    assert str(least) in nothing.sentence
    assert nothing.coverage == 0.0


def false_certificates(draw, risk, truth, samples=150, **options):
    """The share of samples whose threshold has a true risk above the limit."""
    wrong = 0
    for seed in range(samples):
        y, p, cluster = draw(np.random.default_rng(seed))
        found = cal.certify(y, p, risk=risk, cluster=cluster, **options)
        wrong += found.threshold is not None and truth(found.threshold) > risk + 1e-12
    return wrong / samples


def flat(rng):
    p = rng.random(400)
    return rng.random(400) < 0.895, p, None


def at_the_limit_below(rng):
    p = rng.random(400)
    return rng.random(400) < np.where(p > 0.5, 0.901, 0.85), p, None


def ties(rng):
    p = rng.choice([0.6, 0.8, 0.9], 400)
    return rng.random(400) < np.where(p > 0.85, 0.95, 0.84), p, None


def shared_outcomes(rng):
    p, right = rng.random(200), rng.random(200) < 0.895
    cluster = np.repeat(np.arange(200), 4)
    return right[cluster], p[cluster], cluster


@pytest.mark.parametrize(
    ("draw", "truth"),
    [
        (flat, lambda t: 0.105),
        (at_the_limit_below, lambda t: 0.099 if t >= 0.5 else 0.11),
        (ties, lambda t: 0.05 if t > 0.85 else 0.1 + 1e-6),
        (shared_outcomes, lambda t: 0.105),
    ],
    ids=["flat", "limit", "ties", "clusters"],
)
def test_it_certifies_falsely_no_more_often_than_it_says(draw, truth):
    # At level .05, more than 16 of 150 have probability .002. The long table is in bench.
    assert false_certificates(draw, 0.1, truth) <= 16 / 150


def test_clusters_are_needed_where_rows_repeat():
    def as_if_independent(rng):
        y, p, _ = shared_outcomes(rng)
        return y, p, None

    with pytest.warns(DependenceWarning):
        assert false_certificates(as_if_independent, 0.1, lambda t: 0.105, samples=60) > 0.14


def test_both_sides_share_the_level_and_no_row():
    y, p = sample()
    both = cal.certify(y, p, side="both", risk=0.2)
    for side in ("above", "below"):
        alone = cal.certify(y, p, side=side, risk=0.2, confidence=0.975)
        assert getattr(both, side) == getattr(alone, side)
    everything = cal.certify(y, p, side="both", risk=0.45)
    assert everything.below.threshold < everything.above.threshold
    assert everything.coverage <= 1.0
    # Either side alone would decide all of them.
    assert everything.coverage > 0.95


def test_a_sketch_certifies_as_its_rows_do():
    y, p = sample()
    p = np.floor(p * 1000) / 1000
    rows, cells = (
        cal.certify(y, p, side="both"),
        cal.certify(cal.Sketch.from_arrays(y, p), side="both"),
    )
    for one, other in zip(rows.points, cells.points, strict=True):
        assert (one.rows, one.errors, one.risk_bound) == (
            other.rows,
            other.errors,
            other.risk_bound,
        )
        beyond = p >= other.threshold if other.side == "above" else p <= other.threshold
        assert beyond.sum() == one.rows


def test_sketches_by_cluster_certify_as_their_rows_do():
    y, p = sample(n=1200)
    code = np.arange(y.size) // 4
    parts = {int(g): cal.Sketch.from_arrays(y[code == g], p[code == g]) for g in range(300)}
    sketches = cal.certify(cal.Sketches(parts, by="question"), cluster="question", risk=0.3)
    rows = cal.certify(y, p, cluster=code, risk=0.3)
    assert sketches.above.rows == rows.above.rows
    assert sketches.clusters == rows.clusters == 300
    assert sketches.risk_bound == pytest.approx(rows.risk_bound)


def test_a_cluster_counts_once_however_often_it_repeats():
    y, p = sample(n=1500)
    copies = np.repeat(np.arange(y.size), 5)
    one = cal.certify(y, p, cluster=np.arange(y.size), risk=0.2)
    five = cal.certify(y[copies], p[copies], cluster=copies, risk=0.2)
    assert five.coverage <= one.coverage
    assert one.coverage <= cal.certify(y, p, risk=0.2).coverage


def test_partial_credit_is_bounded_by_bets():
    rng = np.random.default_rng(0)
    p = rng.random(2000)
    credit = np.clip(p + 0.05 * rng.standard_normal(2000), 0, 1)
    found = cal.certify(credit, p, labels="soft")
    assert found.clusters is None
    assert 0.1 < found.coverage < 0.25  # an oracle has 0.2
    assert 1 - credit[p >= found.threshold].mean() <= found.risk_bound <= 0.1


def test_abstentions_count_as_cases():
    y, p = sample()
    assert cal.certify(y, p, abstained=2000).coverage == cal.certify(y, p).coverage / 2


def test_the_sentence():
    y, p = sample()
    found = cal.certify(y, p)
    assert found.sentence.startswith("Accept without review at 0.8")
    assert "at most 10% of those are wrong (95% confidence)" in found.sentence
    assert str(found) == found.sentence
    assert found.sentence in found._repr_html_()


def test_weighted_sketches_are_refused():
    sketch = cal.Sketch.from_arrays(*sample(), sample_weight=np.full(2000, 2.0))
    with refused("sample_weight"):
        cal.certify(sketch)
    with refused("sample_weight"):
        cal.certify(*sample(), sample_weight=np.ones(2000))


@given(st.integers(0, 10_000), st.sampled_from(["above", "below"]))
@settings(max_examples=30)
def test_the_printed_threshold_decides_the_same(seed: int, side: str) -> None:
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(400) ** rng.integers(1, 9), rng.integers(2, 12))
    y = rng.random(400) < (p > 0.3)
    for sample in ((y, p), (cal.Sketch.from_arrays(y, p),)):
        point = getattr(cal.certify(*sample, risk=0.3, side=side), side)
        if point is None:
            continue
        typed = float(point.text)
        decided = [p >= t if side == "above" else p <= t for t in (point.threshold, typed)]
        np.testing.assert_array_equal(*decided)
        assert decided[0].sum() == point.rows


def test_cases_without_a_confidence_lower_the_coverage() -> None:
    y, p = [1.0] * 60, [0.9] * 60
    whole = cal.certify(y, p)
    found = cal.certify([*y, 1.0, 1.0], [*p, np.nan, 7.0], abstained=18, on_invalid="drop")
    assert (whole.coverage, found.coverage) == (1.0, 60 / 80)
    assert sum(found.dropped.values()) == 2
    ranked = cal.selective([*y, 1.0, 0.0], [*p, np.nan, 0.1], abstained=18, on_invalid="drop")
    assert (ranked.coverage, ranked.curve.coverage[-1]) == (61 / 80, 61 / 80)
