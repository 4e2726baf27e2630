"""A sketch is exact: any partition, order, grid and thread gives the same bits."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.oracles.sketches import as_table, counts_and_offsets
from tests.refusals import ANYTHING, refused

import calibrant as cal
from calibrant import InputError, Sketch, Sketches, smooth_ece
from calibrant.data.scales import as_scale
from calibrant.data.sketch import as_sketch
from calibrant.data.sketches import FLOAT_COLUMNS, INTEGER_COLUMNS, from_table, to_table
from calibrant.errors import CalibrantWarning, MergeError

GRIDS = [2, 16, 256, 2**16, 2**20]
floats = st.one_of(
    st.floats(0, 1),
    st.floats(0, 1, width=32),
    st.integers(0, 2**16).map(lambda k: k / 2**16),
    st.sampled_from([0.0, 1.0, -0.0, 0.5, 5e-324, 1 - 2**-53, 2**-36, 1 - 2**-36, 0.1, 1 - 0.8]),
)
rows = st.lists(st.tuples(st.integers(0, 1), floats), min_size=1, max_size=60)


def of_columns(*columns, nodes=2**16):
    return from_table(
        dict(zip(INTEGER_COLUMNS + FLOAT_COLUMNS, columns, strict=False)), nodes=nodes
    )


@given(rows=rows, nodes=st.sampled_from(GRIDS))
def test_compiled_fill_equals_exact_arithmetic(rows, nodes):
    y, p = zip(*rows, strict=True)
    assert as_table(Sketch.from_arrays(y, p, nodes=nodes)) == counts_and_offsets(y, p, nodes)


LABELS = (bool, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")


@pytest.mark.parametrize("dtype", LABELS[1:])
def test_labels_of_every_type_are_checked(dtype):
    kind = np.dtype(dtype).kind
    wrong = [2] + ([-1] if kind in "if" else []) + ([0.5, np.nan, np.inf] if kind == "f" else [])
    for value in wrong:
        y = np.array([0, 1, value], dtype=dtype)
        with refused("y_true", row=2):
            Sketch.from_arrays(y, [0.1, 0.2, 0.3])


@given(rows=rows, weight=hnp.arrays(np.float64, 60, elements=st.floats(0, 1e6)), data=st.data())
def test_weighted_fill_equals_plain_sums(rows, weight, data):
    y, p = (np.array(column) for column in zip(*rows, strict=True))
    weight = weight[: y.size]
    weight[0] += 1.0
    sketch = Sketch.from_arrays(y, p, sample_weight=weight)
    assert as_table(sketch) == counts_and_offsets(y, p, 2**16)
    assert sketch.total_weight == pytest.approx(weight.sum(), rel=1e-12)
    assert sketch.squared_weights.sum() == pytest.approx((weight**2).sum(), rel=1e-12)
    cell = np.floor(p * 2**36) // 2**20
    place = np.floor(p * 2**36) - cell * 2**20
    for row, c in enumerate(sketch.cells):
        for label in (0, 1):
            here = (cell == c) & (y == label)
            assert sketch.weights[row, label] == pytest.approx(weight[here].sum(), rel=1e-12)
            expected = (weight * place)[here].sum()
            assert sketch.weighted_offsets[row, label] == pytest.approx(expected, rel=1e-12)


@given(rows=rows, data=st.data())
def test_any_partition_in_any_order_gives_the_same_bits(rows, data):
    whole = Sketch.from_arrays(*zip(*rows, strict=True))
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=5)))
    bounds = zip([0, *cuts], [*cuts, len(rows)], strict=True)
    pieces = [shuffled[low:high] for low, high in bounds if high > low]
    parts = [Sketch.from_arrays(*zip(*piece, strict=True)) for piece in pieces]
    assert sum(parts) == whole
    grown = Sketch.empty()
    for piece in pieces:
        grown.update(*zip(*piece, strict=True))
    assert grown == whole
    assert Sketch.empty() + whole == whole


@given(rows=rows, fine=st.sampled_from(GRIDS), coarse=st.sampled_from(GRIDS))
def test_rebin_equals_the_sketch_on_the_coarser_grid(rows, fine, coarse):
    y, p = zip(*rows, strict=True)
    sketch = Sketch.from_arrays(y, p, nodes=fine)
    if coarse <= fine:
        assert sketch.rebin(coarse) == Sketch.from_arrays(y, p, nodes=coarse)
    else:
        with refused("nodes", coarse, holds="Sketch.from_arrays"):
            sketch.rebin(coarse)


def test_many_rows_on_many_threads_equal_few():
    rng = np.random.default_rng(0)
    p = np.where(rng.random(1_200_000) < 0.5, 1.0, rng.random(1_200_000))
    y = rng.integers(0, 2, p.size)
    pieces = [Sketch.from_arrays(y[i::7], p[i::7]) for i in range(7)]
    assert sum(pieces) == Sketch.from_arrays(y, p)
    assert Sketch.from_arrays(y[::-1], p[::-1]) == Sketch.from_arrays(y, p)


def test_one_place_filled_past_every_carry():
    """Counts and offsets share a machine word in the loop: it must be emptied in time."""
    n = 1 << 23
    p = np.full(n, np.nextafter(1, 0))
    for nodes in (2, 2**16):
        sketch = Sketch.from_arrays(np.ones(n, bool), p, nodes=nodes)
        assert sketch.counts.tolist() == [[0, n]]
        assert sketch.offsets.tolist() == [[0, n * (2**36 // nodes - 1)]]


def test_a_refused_update_leaves_the_sketch_as_it_was():
    sketch = Sketch.from_arrays([0, 1], [0.2, 0.7])
    before = copy.deepcopy(sketch)
    with pytest.raises(InputError):
        sketch.update([0, 1], [0.2, 7.0])
    assert sketch == before


def test_sketches_of_different_grids_or_scales_do_not_merge():
    sketch = Sketch.from_arrays([0, 1], [0.2, 0.7])
    with refused(seen=65536, holds=("256", ".rebin(256)"), kind=MergeError):
        sketch + Sketch.from_arrays([0, 1], [0.2, 0.7], nodes=256)
    assert sketch.rebin(256) + Sketch.from_arrays([0], [0.2], nodes=256)
    with refused(seen="probability", holds="'logit'", option="scale", kind=MergeError):
        sketch + Sketch.from_arrays([0, 1], [0.2, 0.7], scale=as_scale("logit"))
    with pytest.raises(TypeError):
        sketch + 1
    with pytest.raises(MergeError):
        Sketches({"a": sketch}, by="model") + Sketches({"a": sketch}, by="day")


def test_overflow_is_refused_never_wrapped():
    most = 2**43 - 1
    full = of_columns([5], [0], [most], [most * (2**20 - 1)])
    assert full.offsets.max() == most * (2**20 - 1)
    with refused(holds=str(most), kind=MergeError):
        full + Sketch.from_arrays([0], [5.5 / 2**16])
    with pytest.raises(MergeError):
        full.rebin(2)
    with pytest.raises(MergeError):
        of_columns([5], [0], [most + 1], [0])
    quarter = 2**27
    cells = [2**15 - k for k in range(1, 5)]
    spread = of_columns(cells, [0] * 4, [quarter] * 4, [quarter * (2**20 - 1)] * 4)
    with pytest.raises(MergeError):
        spread.rebin(2)
    assert spread.rebin(2**13).offsets.sum() == 4 * quarter * (2**23 - 1) - 6 * quarter * 2**20
    with pytest.raises((MergeError, InputError)):
        Sketch.from_counts([0.2] * 4, [2**62] * 4, [1] * 4)


def test_what_a_table_of_counts_may_hold_is_a_matter_of_each_cell():
    p = np.linspace(0, 1, 400)
    each = 2**36
    found = Sketch.from_counts(p, [each] * 400, [each // 2] * 400)
    assert found.n == 400 * each  # more than one cell could hold
    Sketch.from_counts([0.2] * 100, [each] * 100, [0] * 100)
    with refused(holds=str(2**43 - 1), kind=MergeError):
        Sketch.from_counts([0.2] * 200, [each] * 200, [0] * 200)
    many = Sketches({"a": found, "b": found}, by="model")
    assert from_table(to_table(many), by=["model"], nodes=found.nodes) == many
    coarse = of_columns([0, 1], [0, 1], [2**28 - 1] * 2, [0, 5], nodes=2)
    coarse = Sketch(coarse.sums, nodes=2, scale=coarse.scale, dropped={"missing label": 2**40})
    again = from_table(to_table(coarse), nodes=2)
    assert (again, again.dropped) == (coarse, coarse.dropped)
    for cells in ([0, 0], [0, 1]):
        columns = [cells, [0, 0], [2**62] * 2, [0, 0]]
        with pytest.raises((MergeError, InputError)):
            of_columns(*columns, nodes=2**24)
    with refused(holds="268435455", kind=MergeError):
        of_columns([0, 0], [0, 0], [2**27] * 2, [0, 0], nodes=2)


def test_batches_without_a_valid_row_are_counted_and_passed_over():
    sketch = Sketch.empty()
    for y, p in (
        ([0, 1], [0.2, 0.7]),
        ([1, 5], [np.nan, 0.5]),
        ([], []),
        (np.empty(0), np.empty(0)),
    ):
        sketch.update(y, p, on_invalid="drop")
    expected = Sketch.from_arrays([0, 1, 1, 5], [0.2, 0.7, np.nan, 0.5], on_invalid="drop")
    assert sketch == expected
    with refused("y_prob", 2.0, row=0):
        sketch.update([1], [2.0])
    with pytest.raises(InputError):
        sketch.update([1], [])
    assert sketch == expected


def test_from_counts_equals_the_rows():
    p, n, events = [0.1, 0.1, 0.7, 1.0, 0.0], [3, 2, 4, 1, 0], [1, 0, 4, 1, 0]
    y = [1, 0, 0, 0, 0, 1, 1, 1, 1, 1]
    rows = Sketch.from_arrays(y, [0.1] * 5 + [0.7] * 4 + [1.0])
    assert Sketch.from_counts(p, n, events) == rows
    assert Sketch.from_counts(p, np.array(n, float), np.array(events, "u1")) == rows


@pytest.mark.parametrize(
    ("p", "n", "events", "argument", "seen", "row"),
    [
        ([1.2], [3], [1], "p", 1.2, 0),
        ([20.0, 30.0], [3, 3], [1, 1], "p", 20.0, 0),
        ([np.nan], [3], [1], "p", ANYTHING, 0),
        (["a"], [3], [1], "p", "a", 0),
        ([0.2], [3], [4], "events", 4, 0),
        ([0.2], [-3], [0], "n", -3, 0),
        ([0.2], [3.5], [0], "n", 3.5, 0),
        ([0.2], [np.nan], [0], "n", ANYTHING, 0),
        ([0.2], [1e300], [0], "n", 1e300, 0),
        ([0.2, 0.3], [3], [1], "p", ANYTHING, None),
        ([0.2], [0], [0], "n", 0, None),
        ([], [], [], "n", ANYTHING, None),
    ],
)
def test_from_counts_refuses(p, n, events, argument, seen, row):
    with refused(argument, seen, row=row):
        Sketch.from_counts(p, n, events)


@given(rows=rows)
def test_reweight_equals_weights(rows):
    y, p = (np.array(column) for column in zip(*rows, strict=True))
    kept = Sketch.from_arrays(y, p)
    whole = Sketch.from_arrays(y, p, sample_weight=np.where(y == 0, 8.0, 1.0))
    assert kept.reweight(negative=8) == whole
    assert kept.reweight(negative=8).reweight(negative=0.125).total_weight == kept.n
    for factor in (0, -1, np.inf, np.nan, 1e40):
        with refused("negative"):
            kept.reweight(negative=factor)


@given(rows=rows)
def test_pickle_and_copy_keep_every_bit_and_stay_read_only(rows):
    y, p = zip(*rows, strict=True)
    for sketch in (
        Sketch.from_arrays(y, p),
        Sketch.from_arrays(y, p, sample_weight=np.ones(len(y))),
    ):
        for twin in (pickle.loads(pickle.dumps(sketch)), copy.deepcopy(sketch), copy.copy(sketch)):
            assert twin == sketch
            assert not twin.counts.flags.writeable
            assert not twin.weights.flags.writeable or not twin.weighted
            twin.update([1], [0.5])
            assert twin != sketch


def test_equality_sees_everything():
    sketch = Sketch.from_arrays([0, 1], [0.2, 0.7])
    others = [
        Sketch.from_arrays([1, 0], [0.2, 0.7]),
        Sketch.from_arrays([0, 1], [0.2, 0.7 + 1e-9]),
        Sketch.from_arrays([0, 1], [0.2, 0.7], nodes=256),
        Sketch.from_arrays([0, 1], [0.2, 0.7], sample_weight=[1.0, 1.0]),
        Sketch.from_arrays([0, 1], [0.2, 0.7], scale=as_scale("logit")),
        "sketch",
    ]
    assert all(sketch != other for other in others)
    with pytest.raises(TypeError):
        hash(sketch)


@pytest.mark.parametrize("nodes", [0, 1, 3, 1000, 2**25, -2, 2.0, "256", True])
def test_grids_that_are_no_power_of_two_are_refused(nodes):
    with refused("nodes", nodes):
        Sketch.from_arrays([0], [0.5], nodes=nodes)


def test_a_sketch_settles_what_describes_rows():
    sketch = Sketch.from_arrays([0, 1], [0.2, 0.7])
    assert as_sketch(sketch) is sketch
    with refused("y_prob", option=None, holds="Sketch"):
        smooth_ece(sketch, [0.2, 0.7])
    with refused("sample_weight", holds="Sketch"):
        smooth_ece(sketch, sample_weight=[1, 2])
    with refused("scale", "logit", holds="'probability'", option="scale"):
        smooth_ece(sketch, scale="logit")
    with refused(seen=0):
        smooth_ece(Sketch.empty())
    weightless = of_columns([5], [0], [1], [3], [0.0], [0.0], [0.0])
    with refused(seen=1):
        smooth_ece(weightless)


def test_a_sum_shares_nothing_with_its_parts():
    one = Sketch.from_arrays([0, 1], [0.2, 0.7])
    sum([one]).update([1], [0.9])
    single = Sketches({"a": one}, by="model")
    for made in (sum([single]), single.roll_up("model"), single + Sketches({}, by="model")):
        made["a"].update([1], [0.9])
    groups = Sketches({(1, "a"): one}, by=["day", "model"])
    (groups + Sketches({(2, "a"): one}, by=["day", "model"]))[1, "a"].update([1], [0.9])
    groups.roll_up("day")[1].update([1], [0.9])
    assert one.n == 2


@given(rows=rows, keys=st.sets(st.integers(0, 5)))
def test_what_is_selected_and_the_rest_are_the_whole(rows, keys):
    y, p = map(np.array, zip(*rows, strict=True))
    group = np.arange(p.size) % 6
    sketches = Sketches(
        {int(k): Sketch.from_arrays(y[group == k], p[group == k]) for k in np.unique(group)},
        by="part",
    )
    chosen, rest = sketches.select(keys.__contains__), sketches.select(lambda k: k not in keys)
    assert list(chosen) == [key for key in sketches if key in keys]
    assert chosen.by == rest.by == ("part",)
    assert {**chosen, **rest} == dict(sketches)
    parts = [part.total() for part in (chosen, rest) if len(part)]
    assert sum(parts[1:], start=parts[0]) == sketches.total()


@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_hard_labels_are_told(scale):
    rng = np.random.default_rng(5)
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(int)
    with pytest.warns(CalibrantWarning, match="hard labels"):
        cal.assess(y, (p > 0.5).astype(float), scale=scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cal.assess(y, np.where(np.arange(1000) == 3, 0.7, p > 0.5), scale=scale)
