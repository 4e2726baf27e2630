"""Every map is an estimator of scikit-learn, without importing it; and one decorator adds a map."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.validation import check_is_fitted
from tests.refusals import refused

import calibrant as cal
from calibrant.recalibration import (
    GroupRecalibrator,
    HistogramRecalibrator,
    OneVsRestRecalibrator,
    PlattRecalibrator,
    Recalibrator,
    StructuredScaling,
    TemperatureScaling,
    VectorScaling,
    evaluate,
    make_map,
    map_names,
)
from calibrant.recalibration.learned_map import registered_maps

RNG = np.random.default_rng(0)
P = RNG.random(400)
Y = (RNG.random(400) < P**2).astype(int)
PROBS = softmax(RNG.normal(size=(400, 3)), axis=1)
LABELS = np.arange(400) % 3
CLASSES = sorted(registered_maps().values(), key=lambda one: one.__name__)
CHECKS = (
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
)
NOT_FOR_CLASSES = {
    **dict.fromkeys(
        (
            "check_estimators_fit_returns_self",
            "check_estimators_overwrite_params",
            "check_readonly_memmap_input",
            "check_sample_weights_not_an_array",
            "check_sample_weights_not_overwritten",
            "check_sample_weights_pandas_series",
            "check_sample_weights_shape",
        ),
        "two columns are two classes, and the target has three",
    ),
    **dict.fromkeys(
        (
            "check_fit_score_takes_y",
            "check_sample_weight_equivalence_on_dense_data",
            "check_transformer_data_not_an_array",
            "check_transformer_general",
        ),
        "the target is called y_true, as everywhere in calibrant, and not y",
    ),
    **dict.fromkeys(
        (
            "check_dtype_object",
            "check_estimators_empty_data_messages",
            "check_fit2d_1feature",
            "check_n_features_in_after_fitting",
        ),
        "refused, in calibrant's own words",
    ),
}

NOT_FOR_MAPS_OF_EACH_CLASS = {
    **NOT_FOR_CLASSES,
    **dict.fromkeys(
        (
            "check_estimators_dtypes",
            "check_estimators_nan_inf",
            "check_estimators_pickle",
            "check_fit2d_1sample",
            "check_pipeline_consistency",
            "check_positive_only_tag_during_fit",
        ),
        "every column needs rows of its class, and the target has fewer classes than there are columns",
    ),
}
NOT_FOR_MAPS_OF_PROBABILITIES = {
    **NOT_FOR_MAPS_OF_EACH_CLASS,
    **dict.fromkeys(
        (
            "check_all_zero_sample_weights_error",
            "check_dict_unchanged",
            "check_dont_overwrite_parameters",
            "check_f_contiguous_array_estimator",
            "check_fit2d_predict1d",
            "check_fit_check_is_fitted",
            "check_fit_idempotent",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_n_features_in",
            "check_sample_weights_list",
        ),
        "the columns are no probabilities",
    ),
}
OUTSIDE = {
    PlattRecalibrator: {},
    HistogramRecalibrator: {},
    TemperatureScaling: NOT_FOR_CLASSES,
    VectorScaling: NOT_FOR_MAPS_OF_EACH_CLASS,
    StructuredScaling: NOT_FOR_MAPS_OF_EACH_CLASS,
    OneVsRestRecalibrator: NOT_FOR_MAPS_OF_PROBABILITIES,
}


def fitted(cls):
    made = cls()
    if issubclass(cls, Recalibrator):
        return made.fit(P, Y), P
    if cls.takes_table:
        table = np.column_stack([P, LABELS, RNG.normal(size=400)])
        return made.fit(table, Y), table
    given = np.log(PROBS) * 3 if made.from_logits else PROBS
    return made.fit(given, LABELS), given


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_protocol_of_scikit_learn(cls):
    for name in CHECKS:
        check = getattr(estimator_checks, name)
        check(cls.__name__, cls())
    with pytest.raises(NotFittedError):
        check_is_fitted(cls())
    made, given = fitted(cls)
    check_is_fitted(made)
    assert made.n_features_in_ == (1 if issubclass(cls, Recalibrator) else 3)
    assert get_tags(made).input_tags.one_d_array == issubclass(cls, Recalibrator)
    copied, again = clone(made), pickle.loads(pickle.dumps(made))
    assert copied.get_params() == cls().get_params()
    with pytest.raises(NotFittedError):
        copied.transform(given)
    np.testing.assert_array_equal(again.transform(given), made.transform(given))
    with refused("colour"):
        made.set_params(colour=1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("cls", OUTSIDE, ids=lambda cls: cls.__name__)
def test_scikit_learns_own_checks_where_the_shape_allows(cls):
    """A map of one event takes one column, of which scikit-learn checks little: see the test above."""
    results = estimator_checks.check_estimator(
        cls(), on_fail=None, on_skip=None, expected_failed_checks=OUTSIDE[cls]
    )
    names = {
        status: [one["check_name"] for one in results if one["status"] == status]
        for status in ("failed", "xfail")
    }
    assert names["failed"] == []
    assert set(names["xfail"]) == OUTSIDE[cls].keys()


def test_parameters_of_a_map_inside():
    made = OneVsRestRecalibrator(PlattRecalibrator())
    made.set_params(recalibrator__platt_targets=False)
    assert made.get_params()["recalibrator__platt_targets"] is False
    assert repr(clone(made)) == repr(made)


def test_a_pipeline_and_a_search():
    X = np.column_stack([P, RNG.normal(size=400)])
    pipe = make_pipeline(FunctionTransformer(lambda rows: rows[:, :1]), PlattRecalibrator())
    expected = PlattRecalibrator().fit(P, Y).transform(P)
    np.testing.assert_array_equal(pipe.fit(X, Y).transform(X), expected)
    assert pipe.score(X, Y) == pytest.approx(-log_loss(Y, expected))
    search = GridSearchCV(HistogramRecalibrator(), {"n_bins": [1, 8], "strategy": ["uniform"]})
    assert search.fit(P, Y).best_params_["n_bins"] == 8
    assert cross_val_score(TemperatureScaling(False), PROBS, LABELS, cv=3).shape == (3,)


def test_hints_name_what_a_map_takes():
    """`transform` has no options, and no map reads logits or percentages unless it is made to."""
    gap = np.where(np.arange(400)[:, None] == 5, np.nan, PROBS)
    for made, given in ((PlattRecalibrator().fit(P, Y), gap[:, 0]), (fitted_classes(), gap)):
        with refused("y_prob", row=5, holds="Leave such rows out first.") as caught:
            made.transform(given)
        assert "on_invalid" not in str(caught.value)
        kept = ~np.isnan(given.reshape(400, -1)).any(axis=1)
        assert np.isfinite(made.transform(given[kept])).all()
    with refused("y_prob", row=5, holds='pass `on_invalid="drop"`'):
        PlattRecalibrator().fit(gap[:, 0], Y)
    PlattRecalibrator().fit(gap[:, 0], Y, on_invalid="drop")
    for given in (100 * P, 9 * P - 4, -9 * P - 2):
        for act in (
            PlattRecalibrator().fit(P, Y).transform,
            lambda p: PlattRecalibrator().fit(p, Y),
        ):
            with refused("y_prob", holds="convert them to probabilities first") as caught:
                act(given)
            assert "=True" not in str(caught.value)
    with refused("y_prob", holds="convert them to probabilities first"):
        fitted(GroupRecalibrator)[0].transform(np.column_stack([100 * P, LABELS, P]))
    with refused("y_prob", holds="convert them to probabilities first"):
        GroupRecalibrator().fit(np.column_stack([100 * P, LABELS]), Y)
    for act in (TemperatureScaling().fit, lambda p, y: evaluate(TemperatureScaling(), y, p, cv=3)):
        with refused("y_prob", holds="make the map with `from_logits=False`"):
            act(PROBS, LABELS)


def fitted_classes():
    return TemperatureScaling(from_logits=False).fit(PROBS, LABELS)


def test_a_column_or_frame_comes_back_as_one():
    index = [f"row {k}" for k in range(400)]
    table = pd.DataFrame({"p": P, "group": LABELS}, index=index)
    platt = PlattRecalibrator().fit(table["p"], pd.Series(Y, index=index))
    by_group = GroupRecalibrator().fit(table, pd.Series(Y, index=index))
    named = pd.DataFrame(PROBS, columns=list("abc"), index=index)
    scaling = TemperatureScaling(False).fit(named, LABELS)
    for made, given, plain in (
        (platt, table["p"], P),
        (platt, table[["p"]], P),
        (by_group, table, {"p": P, "group": LABELS}),
        (scaling, named, PROBS),
    ):
        arrow = pl.from_pandas(given)
        expected = made.transform(plain)
        assert type(expected) is np.ndarray
        for each, library in ((given, pd), (arrow, pl)):
            mapped = made.transform(each)
            assert type(mapped) is (library.Series if expected.ndim == 1 else library.DataFrame)
            np.testing.assert_array_equal(mapped.to_numpy(), expected)
            assert list(mapped.columns if expected.ndim == 2 else [mapped.name]) == (
                list("abc") if expected.ndim == 2 else ["p"]
            )
        assert made.transform(given).index.tolist() == index
    repeated = named.set_axis(["a", "a", "b"], axis=1)
    assert TemperatureScaling(False).fit(PROBS, LABELS).transform(repeated).index.tolist() == index


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_set_output_chooses_frames(library):
    name = library.__name__
    named = pd.DataFrame(PROBS, columns=list("abc"), index=np.arange(400) + 7)
    platt, scaling = PlattRecalibrator(), TemperatureScaling(False)
    for made, given, y, columns in (
        (platt, P, Y, ["x0"]),
        (platt, pd.Series(P, name="p"), Y, ["p"]),
        (scaling, PROBS, LABELS, ["x0", "x1", "x2"]),
        (scaling, named, LABELS, ["a", "b", "c"]),
    ):
        plain = made.fit(given, y).mapped(given)
        assert type(plain) is np.ndarray
        frame = clone(made).set_output(transform=name).fit(given, y).transform(given)
        assert type(frame) is library.DataFrame
        assert list(frame.columns) == columns
        np.testing.assert_array_equal(frame.to_numpy().reshape(plain.shape), plain)
        if library is pd and isinstance(given, pd.DataFrame):
            assert frame.index.equals(given.index)
    pipe = make_pipeline(MaxAbsScaler(), PlattRecalibrator()).set_output(transform=name)
    assert type(pipe.fit(P[:, None], Y).transform(P[:, None])) is library.DataFrame
    chosen = PlattRecalibrator().set_output(transform=name)
    assert repr(evaluate(chosen, Y, P, cv=3)) == repr(evaluate(PlattRecalibrator(), Y, P, cv=3))
    assert repr(evaluate(chosen.fit(P, Y), Y, P)) == repr(
        evaluate(PlattRecalibrator().fit(P, Y), Y, P)
    )
    assert type(chosen.set_output(transform="default").transform(P)) is np.ndarray
    with refused("transform"):
        chosen.set_output(transform="arrow")


def test_names_of_columns_for_a_pipeline():
    frame = pd.DataFrame(PROBS, columns=list("abc"))
    pipe = make_pipeline(MaxAbsScaler(), VectorScaling()).fit(frame * 3.0, LABELS)
    assert list(pipe.get_feature_names_out()) == ["a", "b", "c"]
    assert list(VectorScaling(False).fit(frame, LABELS).get_feature_names_out()) == ["a", "b", "c"]
    assert list(VectorScaling(False).fit(PROBS, LABELS).get_feature_names_out()) == [
        "x0",
        "x1",
        "x2",
    ]
    assert list(PlattRecalibrator().fit(P, Y).get_feature_names_out()) == ["x0"]
    table = {"group": LABELS, "p": P}
    made = GroupRecalibrator(y_prob="p").fit(table, Y)
    assert list(made.get_feature_names_out()) == ["p"]
    assert list(fitted(GroupRecalibrator)[0].get_feature_names_out(["p", "u", "v"])) == ["p"]
    with refused("input_features"):
        PlattRecalibrator().fit(P, Y).get_feature_names_out(["a", "b"])


def test_maps_have_names():
    assert {"platt", "sigmoid", "histogram", "cross-venn-abers"} <= set(map_names())
    assert type(make_map("sigmoid")) is type(make_map("platt")) is PlattRecalibrator
    assert make_map("structured-matrix", 3).matrix
    assert make_map("isotonic", 3).kind == "one-vs-rest"
    assert {one.__name__ for one in CLASSES} <= set(dir(cal.recalibration))
    for wrong in ("magic", None, PlattRecalibrator):
        with refused("recalibrator"):
            make_map(wrong)


def test_one_module_and_one_decorator_add_a_map(tmp_path):
    """Names, files, text and the classifier find it."""
    code = """
import sys
import numpy as np
import calibrant.recalibration as room
room.__path__.append(sys.argv[1])
import calibrant as cal
rng = np.random.default_rng(0)
p = rng.random(300)
half = room.make_map("half").fit(p, rng.random(300) < p)
half.save(sys.argv[1] + "/map.json")
module = {}
exec(half.to_python(), module)
print("half" in room.map_names(), cal.load_recalibrator(sys.argv[1] + "/map.json").transform([0.4]))
print(round(module["recalibrate"](0.4), 6), half.explain([0.4]))
"""
    (tmp_path / "half.py").write_text("""
from calibrant.recalibration.learned_map import Recalibrator, register

@register("half")
class HalfRecalibrator(Recalibrator):
    parts = {"share": float}
    def _learn(self, training):
        return {"share": 0.5}
    def _apply(self, p, state):
        return state["share"] * p
""")
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "True [0.2]",
        "0.2 This half map turns 40% into 20%, and keeps their order.",
    ]


def test_scikit_learn_is_not_imported():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from calibrant.recalibration import PlattRecalibrator\n"
        "from calibrant import CalibrantError\n"
        "made = PlattRecalibrator().set_params(platt_targets=False)\n"
        "print(made.get_params(), made.fit([.1, .4, .6, .9], [0, 1, 0, 1]).transform([.5]).shape)\n"
        "try: PlattRecalibrator().transform([.5])\n"
        "except CalibrantError as error: print('fit' in str(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["{'platt_targets': False} (1,)", "True"], done.stderr


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_histogram_bins_hold_observed_frequencies(strategy):
    made = HistogramRecalibrator(n_bins=7, strategy=strategy).fit(P, Y)
    inner = np.arange(1, 7) / 7
    edges = inner if strategy == "uniform" else np.sort(P)[(np.arange(1, 7) * 400) // 7]
    bin_of = np.searchsorted(edges, P, side="right")
    frequency = np.bincount(bin_of, Y) / np.bincount(bin_of)
    np.testing.assert_allclose(made.transform(P), frequency[bin_of], atol=1e-12)
    np.testing.assert_allclose(
        [eval_python(made)(float(p)) for p in P[:50]], made.transform(P[:50]), atol=1e-9
    )
    sketch = HistogramRecalibrator(7, strategy).fit(cal.Sketch.from_arrays(Y, P))
    assert np.abs(sketch.transform(P) - made.transform(P)).max() < 1e-12
    gap = HistogramRecalibrator(10, "uniform").fit([0.05, 0.95, 0.96], [0, 1, 1])
    assert gap.transform([0.5]) == 0.0  # an empty bin has the frequency of the one below


def eval_python(made):
    module = {}
    exec(made.to_python(), module)
    return module["recalibrate"]
