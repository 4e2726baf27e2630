"""What Błasiok and Nakkiran prove of smECE, and what must hold of any calibration error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant import Sketch, smooth_ece_result

# Odd multiples of 2^-20: 1 - p is exact, and so is every sum; rows seldom cancel by chance.
predictions = st.integers(2**13, 2**19 - 2**13).map(lambda k: (2 * k + 1) / 2**20)
rows = st.lists(st.tuples(st.integers(0, 1), predictions), min_size=1, max_size=30)
bandwidths = st.floats(0.003, 0.5)
STEEPEST = np.sqrt(2 / np.pi)  # of the kernel in L1, per bandwidth


def columns(rows):
    y, p = (np.array(column) for column in zip(*rows, strict=True))
    return y, p


def measured(y, p, bandwidth=None, **options):
    return smooth_ece_result(y, p, bandwidth=bandwidth, **options)


def slack(*results):
    return sum(result.certificate.total for result in results)


@given(rows=rows, narrow=bandwidths, wide=bandwidths)
def test_falls_with_the_bandwidth(rows, narrow, wide):
    y, p = columns(rows)
    a, b = measured(y, p, min(narrow, wide)), measured(y, p, max(narrow, wide))
    assert b.value <= a.value + slack(a, b)


@given(rows=rows, bandwidth=bandwidths)
def test_lies_between_the_bias_and_the_binned_error_of_every_value(rows, bandwidth):
    y, p = columns(rows)
    result, solved = measured(y, p, bandwidth), measured(y, p)
    per_value = [abs((p - y)[p == value].sum()) for value in np.unique(p)]
    for found in (result, solved):
        assert abs((p - y).mean()) - slack(found) <= found.value
        assert found.value <= sum(per_value) / p.size + slack(found) + 1e-15


@given(rows=rows)
def test_the_fixed_point_is_one(rows):
    y, p = columns(rows)
    solved = measured(y, p)
    if solved.value >= 1e-3:
        there = measured(y, p, solved.value)
        assert (
            abs(there.value - solved.value)
            <= 2 * slack(solved, there) + solved.certificate.total / solved.value
        )


@settings(max_examples=8)
@given(counts=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 5)), min_size=1, max_size=6))
def test_is_zero_for_calibrated_data_within_the_certificate(counts):
    """k / 8 predicted for 8 m rows of which k m have the event."""
    p = np.repeat([k / 8 for k, m in counts], [8 * m for _, m in counts])
    y = np.concatenate([np.repeat([1, 0], [k * m, (8 - k) * m]) for k, m in counts])
    result = measured(y, p)
    assert result.value <= result.certificate.total <= 1e-6
    fixed = measured(y, p, 0.01)
    assert fixed.value <= fixed.certificate.total
    from_sketch = smooth_ece_result(Sketch.from_arrays(y, p), bandwidth=0.01)
    assert from_sketch.value <= from_sketch.certificate.total


@given(rows=rows, moved=st.lists(predictions, min_size=30, max_size=30), bandwidth=bandwidths)
def test_moving_predictions_changes_it_no_more_than_the_kernel_allows(rows, moved, bandwidth):
    y, p = columns(rows)
    q = np.clip(p + (np.array(moved[: p.size]) - 0.5) * 0.02, 0, 1)
    distance = np.abs(p - q).mean()
    a, b = measured(y, p, bandwidth), measured(y, q, bandwidth)
    assert abs(a.value - b.value) <= (1 + STEEPEST / bandwidth) * distance + slack(a, b)
    a, b = measured(y, p), measured(y, q)
    steepest = 1 + STEEPEST / max(a.value, 1e-6)
    assert abs(a.value - b.value) <= steepest * distance + slack(a, b) * steepest


@given(rows=rows, row=st.integers(0, 29), bandwidth=bandwidths)
def test_one_outcome_changes_it_by_one_row(rows, row, bandwidth):
    y, p = columns(rows)
    changed = y.copy()
    changed[row % y.size] = 1 - changed[row % y.size]
    for width in (bandwidth, None):
        a, b = measured(y, p, width), measured(changed, p, width)
        assert abs(a.value - b.value) <= 1 / y.size + slack(a, b)


@given(rows=rows, times=st.lists(st.integers(1, 4), min_size=30, max_size=30))
def test_weight_two_equals_duplication_for_the_value_not_for_n(rows, times):
    y, p = columns(rows)
    times = np.array(times[: y.size])
    weighted = measured(y, p, sample_weight=times)
    repeated = measured(np.repeat(y, times), np.repeat(p, times))
    assert abs(weighted.value - repeated.value) <= slack(weighted, repeated)
    assert (weighted.n, repeated.n) == (y.size, times.sum())
    scaled = measured(y, p, sample_weight=times * 1e-30)
    assert abs(weighted.value - scaled.value) <= slack(weighted, scaled)


@settings(max_examples=15)
@given(rows=rows, soft=st.lists(st.integers(0, 4), min_size=30, max_size=30))
def test_a_soft_outcome_is_a_share_of_each(rows, soft):
    _, p = columns(rows)
    k = np.array(soft[: p.size])
    shared = measured(k / 4, p, labels="soft")
    y = np.concatenate([np.repeat([1, 0], [one, 4 - one]) for one in k])
    split = measured(y, np.repeat(p, 4))
    assert abs(shared.value - split.value) <= slack(shared, split)
    sketched = smooth_ece_result(Sketch.from_arrays(k / 4, p, labels="soft"))
    assert abs(shared.value - sketched.value) <= slack(shared, sketched)


@settings(max_examples=15)
@given(rows=rows, data=st.data())
def test_the_order_of_rows_does_not_matter(rows, data):
    y, p = columns(rows)
    other = columns(data.draw(st.permutations(rows)))
    a, b = measured(y, p), measured(*other)
    assert abs(a.value - b.value) <= slack(a, b)
    assert smooth_ece_result(Sketch.from_arrays(y, p)) == smooth_ece_result(
        Sketch.from_arrays(*other)
    )


@given(rows=rows, bandwidth=bandwidths)
def test_is_the_same_for_the_opposite_event(rows, bandwidth):
    y, p = columns(rows)
    for width in (bandwidth, None):
        a, b = measured(y, p, width), measured(1 - y, 1 - p, width)
        assert abs(a.value - b.value) <= slack(a, b)


@given(rows=rows, others=rows, bandwidth=bandwidths)
def test_pooling_makes_it_no_worse_than_the_mean(rows, others, bandwidth):
    parts = [columns(rows), columns(others)]
    pooled = measured(*(np.concatenate(column) for column in zip(*parts, strict=True)), bandwidth)
    apart = [measured(*part, bandwidth) for part in parts]
    sizes = [part[0].size for part in parts]
    mean = np.average([result.value for result in apart], weights=sizes)
    assert pooled.value <= mean + slack(pooled, *apart)


@settings(max_examples=15)
@given(rows=rows)
def test_arrays_and_sketch_agree_within_their_certificates(rows):
    y, p = columns(rows)
    a, b = measured(y, p), smooth_ece_result(Sketch.from_arrays(y, p))
    assert abs(a.value - b.value) <= slack(a, b)
    assert a.value == pytest.approx(b.value, abs=1e-4)
