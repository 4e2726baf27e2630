"""Every invalid value is refused with the rule, the value, the row and a cure; and the cure works."""

import numpy as np
import pytest
from pandas import DataFrame
from scipy.sparse import csr_array
from tests.refusals import ANYTHING, refused

import calibrant as cal
from calibrant import InputError, Sketch, scan, smooth_ece, smooth_ece_result
from calibrant.data.rows import as_rows
from calibrant.data.sketches import from_table
from calibrant.errors import CalibrantWarning, TooFewRows

Y = [0, 1, 0, 1, 1, 0, 1, 0, 1, 1]
P = [0.1, 0.8, 0.3, 0.6, 0.9, 0.2, 0.7, 0.4, 0.5, 0.95]
DROP = {"on_invalid": "drop"}


def changed(values, row, value):
    return [*values[:row], value, *values[row + 1 :]]


# name, y, p, options, what the message must say, the cure
REFUSED = [
    ("nan prediction", Y, changed(P, 3, np.nan), {}, ["y_prob", "row 3"], DROP),
    ("null prediction", Y, changed(P, 3, None), {}, ["y_prob", "row 3"], DROP),
    ("nan label", changed(Y, 4, np.nan), P, {}, ["y_true", "row 4"], DROP),
    ("null label", changed(Y, 4, None), P, {}, ["y_true", "row 4"], DROP),
    (
        "just below 0",
        Y,
        changed(P, 2, -0.01),
        {},
        ["y_prob", "row 2", "-0.01"],
        DROP,
    ),
    ("just above 1", Y, changed(P, 9, 1.0003), {}, ["y_prob", "row 9", "1.0003"], DROP),
    ("percentages", Y, [100 * p for p in P], {}, ["y_prob", "row 0", "10"], {"percent": True}),
    ("sentinel", Y, changed(P, 5, -999.0), {}, ["row 5", "-999"], DROP),
    ("large sentinel", Y, changed(P, 5, 9999), {}, ["row 5", "9999"], DROP),
    ("infinity", Y, changed(P, 5, np.inf), {}, ["row 5", "inf"], DROP),
    (
        "logits",
        Y,
        [-2.5, 1.4, -0.8, 0.4, 2.2, -1.4, 0.8, -0.4, 0.1, 2.9],
        {},
        ["row 0", "-2.5"],
        {"from_logits": True},
    ),
    (
        "percent beyond 100",
        Y,
        changed([100 * p for p in P], 1, 101),
        {"percent": True},
        ["row 1", "101"],
        DROP,
    ),
    ("ties", changed(Y, 6, 0.5), P, {}, ["y_true", "row 6", "0.5"], {"labels": "soft"}),
    ("ties to drop", changed(Y, 6, 0.5), P, {}, ["row 6", "0.5"], DROP),
    ("minus one", [2 * y - 1 for y in Y], P, {}, ["row 0", "-1"], {"pos_label": 1}),
    ("one and two", [y + 1 for y in Y], P, {}, ["y_true", "row 1", "2"], {"pos_label": 2}),
    (
        "text",
        ["yes" if y else "no" for y in Y],
        P,
        {},
        ["row 0", "'no'", "'yes'"],
        {"pos_label": "yes"},
    ),
    ("label sentinel", changed(Y, 7, 999), P, {}, ["row 7", "999"], DROP),
    ("soft beyond 1", changed(Y, 7, 1.5), P, {"labels": "soft"}, ["row 7", "1.5"], DROP),
    (
        "negative weight",
        Y,
        P,
        {"sample_weight": changed([1.0] * 10, 2, -1.0)},
        ["sample_weight", "row 2", "-1"],
        DROP,
    ),
    (
        "nan weight",
        Y,
        P,
        {"sample_weight": changed([1.0] * 10, 2, np.nan)},
        ["sample_weight", "row 2"],
        DROP,
    ),
    (
        "infinite weight",
        Y,
        P,
        {"sample_weight": changed([1.0] * 10, 2, np.inf)},
        ["sample_weight", "row 2", "inf"],
        DROP,
    ),
    (
        "weight beyond sums",
        Y,
        P,
        {"sample_weight": changed([1.0] * 10, 2, 1e200)},
        ["row 2", "1e+200"],
        DROP,
    ),
]
NAME_OF_CURE = {
    "on_invalid": 'on_invalid="drop"',
    "labels": 'labels="soft"',
    "percent": "percent=True",
}


@pytest.mark.parametrize(
    ("name", "y", "p", "options", "said", "cure"), REFUSED, ids=[r[0] for r in REFUSED]
)
@pytest.mark.parametrize(
    "measure", [smooth_ece, Sketch.from_arrays, lambda *a, **k: as_rows(*a, **k).p]
)
def test_refusal_names_rule_row_value_and_a_cure_that_works(
    name, y, p, options, said, cure, measure
):
    with pytest.raises(InputError) as refused:
        measure(y, p, **options)
    message = str(refused.value)
    for part in said:
        assert part in message
    for keyword in cure:
        assert NAME_OF_CURE.get(keyword, f"{keyword}=") in message
    cured = smooth_ece_result(y, p, **options, **cure)
    assert 0 <= cured.value <= 1
    assert cured.n == 10 - (cure is DROP)


@pytest.mark.parametrize(
    ("y", "p", "argument", "holds"),
    [
        ([0, 1], [0.2], "y_true", ("2", "1")),
        ([], [], ANYTHING, ()),
        ([[0, 1]], [0.2, 0.3], "y_true", ("(1, 2)", "ravel")),
        ([0, 1], [[0.2, 0.8], [0.3, 0.7]], "y_prob", ("(2, 2)", 'multiclass="confidence"')),
        ([[0], [1, 2]], [0.2, 0.3], "y_true", ()),
        ([0.2, 0.7], [0, 1], "y_true", ("`y_prob`", "`y_true`")),
        ([0, 1], ["a", "b"], "y_prob", ("row 0", "'a'")),
        ([0, 1], [0.2 + 1j, 0.7], "y_prob", ("complex",)),
        ([0, 1], csr_array([[0.2], [0.7]]), "y_prob", ("csr_array", "`.toarray()`")),
        ([0, 1], np.array(["2020", "2021"], "M8[Y]"), "y_prob", ("datetime64",)),
        (np.array([0, 1], "m8[s]"), [0.2, 0.7], "y_true", ("timedelta64",)),
        ([0, 1], [10**400, 0.5], "y_prob", ()),
        (0, 0.5, ANYTHING, ("0",)),
        (np.array(0), np.array(0.5), ANYTHING, ()),
        ((y for y in Y), P, "y_true", ("generator",)),
        ("yes", P, "y_true", ("'yes'",)),
        (Y, None, "y_prob", ("list",)),
    ],
)
def test_what_is_not_two_columns_is_refused(y, p, argument, holds):
    with refused(argument, holds=holds):
        smooth_ece(y, p)


def test_the_row_of_text_among_numbers_is_named_wherever_it_is():
    for row in (0, 1500):
        with refused("y_prob", "x", row=row):
            as_rows([0] * 2000, changed([0.5] * 2000, row, "x"))
        with refused("y_true", "x", row=row):
            _ = as_rows(changed([0] * 2000, row, "x"), [0.5] * 2000).y


def test_rows_are_named_in_any_block_and_the_first_is_named():
    n = 1 << 19
    p = np.full(n, 0.5)
    p[[400_000, 500_000]] = -0.25
    for dtype in (np.float64, np.float32, np.float16):
        with refused("y_prob", -0.25, row=400_000):
            Sketch.from_arrays(np.zeros(n, np.int8), p.astype(dtype))


def test_weights_too_small_to_add_are_refused_of_arrays_and_of_sketches_alike():
    for weight in (0.0, 1e-320, 1e-101):
        with refused("sample_weight"):
            smooth_ece(Y, P, sample_weight=[weight, *[0.0] * 9])
        with refused(holds="weights"):
            table = {"cell": [5], "label": [0], "count": [1], "offset": [3], "weight": [weight]}
            smooth_ece(
                from_table({**table, "squared_weight": [0.0], "weighted_offset": [0.0]}, nodes=16)
            )
    with refused("sample_weight", -1.0, row=0):
        smooth_ece([0, 1], [0.2, 0.7], sample_weight=[-1.0, -2.0])


def test_drop_counts_by_the_first_reason():
    nan = np.nan
    p = [nan, 7.0, nan, 0.5, 0.5, 0.5, 0.5, 0.2, 0.6]
    y = [0, 0, nan, nan, 0.5, 0, 1, 0, 1]
    w = [1, 1, 1, 1, nan, nan, -1, 1, 1]
    result = smooth_ece_result(y, p, sample_weight=w, on_invalid="drop")
    assert result.n == 2
    assert result.dropped == {
        "missing prediction": 2,
        "prediction out of range": 1,
        "missing label": 1,
        "invalid label": 1,
        "missing weight": 1,
        "invalid weight": 1,
    }
    assert result.value == smooth_ece([0, 1], [0.2, 0.6], sample_weight=[1, 1])


def test_nothing_left_after_dropping_is_refused():
    with refused(seen=2, option="on_invalid", kind=TooFewRows):
        smooth_ece([0, 1], [np.nan, 5.0], on_invalid="drop")


@pytest.mark.parametrize("on_invalid", ["raise", "drop"])
def test_a_third_class_is_refused_whatever_the_order(on_invalid):
    """Which class is the other one must not depend on which comes first."""
    for y in (["u", "n", "y", "n"], ["n", "u", "y", "n"]):
        with refused("y_true", option="calibrant.confidence", holds="'y'"):
            smooth_ece(y, [0.1, 0.2, 0.3, 0.4], pos_label="y", on_invalid=on_invalid)


def test_one_class_alone_is_valid():
    assert smooth_ece([0, 0], [0.0, 0.2]) == pytest.approx(0.1, abs=1e-9)
    assert smooth_ece([1, 1], [0.9, 0.9]) == pytest.approx(0.1, abs=1e-9)
    assert smooth_ece(["no", "no"], [0.2, 0.2], pos_label="yes") == pytest.approx(0.2, abs=1e-9)


def test_a_class_that_does_not_occur_is_refused():
    with refused("pos_label", "maybe"):
        smooth_ece(["yes", "no"], [0.2, 0.2], pos_label="maybe")


def test_the_cure_for_both_columns_of_predict_proba_works():
    both = np.column_stack([1 - np.array(P), P])
    with refused("y_prob", holds="`y_prob[:, 1]`"):
        smooth_ece(Y, both)
    assert smooth_ece(Y, both[:, 1]) == smooth_ece(Y, P)


@pytest.mark.parametrize("asked", [cal.compare, cal.reliability_diagrams])
def test_probabilities_of_two_classes_are_not_two_models(asked):
    both = np.column_stack([1 - np.array(P), P])
    for given, cure in (
        (both, "`y_prob[:, 1]`"),
        (both.tolist(), "`numpy.array(y_prob)[:, 1]`"),
        (DataFrame(both, columns=["n", "p"]), "`y_prob['p']`"),
    ):
        with refused("y_prob", holds=(cure, "a mapping from their names")):
            asked(Y, given)
    for models, names in ({"n": 1 - np.array(P), "p": P}, None), (both, ["n", "p"]):
        assert asked(Y, models, names=names)


def test_names_of_two_classes_do_not_say_that_the_confidence_is_meant():
    both, names = np.column_stack([1 - np.array(P), P]), np.array(["no", "yes"])
    frame = DataFrame(both, columns=names)
    for reading in smooth_ece, cal.assess, cal.report:
        with refused("y_prob", holds=("`y_prob[:, 1]`", "`pos_label=`", 'multiclass="confidence"')):
            reading(names[Y], both, classes=names)
    for given, cure in (frame, "`y_prob['yes']`"), (both.tolist(), "`numpy.array(y_prob)[:, 1]`"):
        with refused("y_prob", holds=cure):
            smooth_ece(names[Y], given)
    assert smooth_ece(names[Y], frame["yes"], pos_label="yes") == smooth_ece(Y, P)
    confident = smooth_ece(names[Y], both, classes=names, multiclass="confidence")
    assert confident == smooth_ece(Y, both, multiclass="confidence")


def test_swapped_arguments_are_seen_where_rows_are_dropped_and_where_labels_are_text():
    saturated = [0.0, 1.0, *P[2:]]
    with refused("y_true", option="y_prob"):
        smooth_ece(saturated, Y, on_invalid="drop")
    with refused(option="y_prob"):
        smooth_ece(P, ["yes", "no"] * 5, pos_label="yes")


def test_pairs_are_read_once():
    pairs = as_rows(Y, P)
    for options in ({"from_logits": True}, {"percent": True}, {"pos_label": 1}, {"labels": "soft"}):
        with refused(option=next(iter(options))):
            smooth_ece(pairs, **options)
    invalid = as_rows(Y, changed(P, 3, np.nan))
    assert smooth_ece_result(invalid, on_invalid="drop").dropped == {"missing prediction": 1}


def test_pairs_with_weights_do_not_lose_them_by_unpacking():
    y, p = as_rows(Y, P)
    assert smooth_ece(y, p) == smooth_ece(Y, P)
    with refused("sample_weight"):
        list(as_rows(Y, P, sample_weight=P))


def test_text_among_numbers_can_be_dropped():
    mixed = [*P, "85%"]
    with refused("y_prob", "85%", row=10):
        smooth_ece([*Y, 1], mixed)
    found = smooth_ece_result([*Y, 1], mixed, on_invalid="drop")
    assert (found.value, found.dropped) == (smooth_ece(Y, P), {"prediction out of range": 1})
    with refused("y_prob", "high", row=0):
        smooth_ece([0, 1], ["high", "low"], on_invalid="drop")


@pytest.mark.parametrize("labels", [["yes"] * 3, ["yes", "no", "no"]])
def test_an_event_in_another_case_is_no_other_label(labels):
    for act in (
        smooth_ece,
        lambda y, p, **how: scan({"y": y, "p": p}, y_true="y", y_prob="p", **how),
    ):
        with refused("pos_label", holds='Did you mean "yes"?'):
            act(labels, [0.1, 0.8, 0.4], pos_label="Yes")
    assert smooth_ece(["no"] * 3, [0.1, 0.8, 0.4], pos_label="Yes") > 0


def test_percentages_that_look_like_fractions_are_warned_of():
    for form in ("percent", "from_logits"):
        with pytest.warns(CalibrantWarning, match=f"`{form}=True`"):
            smooth_ece(Y, P, **{form: True})
        with pytest.warns(CalibrantWarning, match=f"`{form}=True`"):
            scan({"y": Y, "p": P}, y_true="y", y_prob="p", **{form: True})
    assert smooth_ece(Y, 100 * np.array(P), percent=True) == pytest.approx(
        smooth_ece(Y, P), abs=1e-12
    )


@pytest.mark.parametrize(
    ("call", "argument", "cure"),
    [
        (lambda: cal.assess(), "y_true", "`y_true` and `y_prob` are missing"),
        (lambda: cal.assess({"lr": (Y, P)}), "y_prob", '(y_true, {"a": p, "b": q})'),
        (lambda: cal.assess_by({"lr": (Y, P)}), "y_prob", '(y_true, {"a": p, "b": q})'),
        (lambda: cal.report({"lr": (Y, P)}), "y_true", '(y_true, {"a": p, "b": q})'),
        (lambda: cal.assess(Y, P, margin=0), "margin", "above 0 and below 1; got 0"),
        (lambda: cal.assess(Y, P, scale="logits"), "scale", 'Did you mean "logit"?'),
        (
            lambda: cal.assess(Y, P, sample_weight=P, weight_type="survey"),
            "weight_type",
            'Survey weights are "importance"',
        ),
    ],
)
def test_refusals_name_what_was_meant(call, argument, cure):
    with refused(argument, holds=cure):
        call()
