"""What the lazy packages offer and what type checkers are told of them are the same."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import calibrant
from calibrant.recalibration import cross_fitted_error

STUBS = sorted(Path(calibrant.__file__).parent.rglob("__init__.pyi"))
PACKAGES = [
    ".".join(stub.parent.relative_to(Path(calibrant.__file__).parents[1]).parts) for stub in STUBS
]


def told(package: str) -> dict[str, str]:
    """Public names of a stub, and the modules that they come from."""
    stub = Path(importlib.import_module(package).__file__).with_suffix(".pyi")
    return {
        alias.name: node.module
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)  # only `import x as x` is public in a stub
        for alias in node.names
        if alias.asname == alias.name
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_offers_what_its_stub_names(package):
    loaded = importlib.import_module(package)
    names = told(package)
    assert sorted(names) == dir(loaded) == list(loaded.__all__)
    for name, home in names.items():
        value = getattr(loaded, name)
        assert value is getattr(importlib.import_module(home), name)
        assert value.__doc__ or not callable(value), name
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        loaded.nothing_of_the_kind  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_a_function_stays_a_function_after_the_module_of_its_name_is_loaded(package):
    loaded = importlib.import_module(package)
    for name, home in told(package).items():
        module = importlib.import_module(home)
        assert getattr(loaded, name) is getattr(module, name), name


def test_functions_of_the_facade_have_few_arguments():
    """Besides those that say what is read: `data`, `names`, `scale`, and `**options`."""
    many = {}
    for name in told("calibrant"):
        if not callable(getattr(calibrant, name)):
            continue
        parameters = inspect.signature(getattr(calibrant, name)).parameters
        own = [
            key
            for key, one in parameters.items()
            if one.kind is not one.VAR_KEYWORD and key not in ("data", "names", "scale")
        ]
        if len(own) > 10:
            many[name] = own
    assert many == {}


N = 300
P = np.linspace(0.03, 0.97, N)
Y = (np.arange(N) * 0.618 % 1 < P).astype(int)
MODELS = {"rf": P, "nb": P**2}
SHAPES = {
    "mapping": lambda: ((Y, MODELS), {}),
    "pandas": lambda: ((Y, pd.DataFrame(MODELS)), {}),
    "polars": lambda: ((Y, pl.DataFrame(MODELS)), {}),
    "array with names": lambda: ((Y, np.c_[P, P**2]), {"names": ["rf", "nb"]}),
    "columns of data": lambda: (("y", ["rf", "nb"]), {"data": pl.DataFrame({"y": Y, **MODELS})}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_models_come_in_the_same_shapes_everywhere(shape):
    arguments, options = SHAPES[shape]()
    compared = calibrant.compare(*arguments, **options)
    assert set(compared.assessments) == {"rf", "nb"}
    assert list(calibrant.reliability_diagrams(*arguments, **options)) == ["rf", "nb"]
    page = calibrant.report(*arguments, **options)
    assert {one.name for one in page.summary.groups} == {"rf", "nb"}
    assert page.summary.comparison.verdict == compared.verdict
    found = calibrant.assess_by(*arguments, **options)
    assert found["nb"].smooth_ece == pytest.approx(calibrant.smooth_ece(Y, P**2))


@pytest.mark.parametrize(
    ("call", "place"),
    [
        (lambda: calibrant.reliability_diagram(Y, P, title="mine"), r"`\.plot\(\)`"),
        (lambda: calibrant.reliability_diagrams(Y, MODELS, color="C1"), r"`\.plot\(\)`"),
        (lambda: calibrant.assess(Y, P, alpha=0.1), "confidence="),
        (lambda: calibrant.smooth_ece(Y, P, weights=P), "sample_weight"),
        (lambda: calibrant.assess(Y, P, n_bins=10), "expected_calibration_error"),
        (lambda: calibrant.assess("y", "p", data={"y": Y, "p": P}, by="g"), "assess_by"),
        (lambda: calibrant.smooth_ece(Y, P, confidence=0.9), "assess"),
        (lambda: calibrant.assess(Y, P, on_invalidd="drop"), "on_invalid"),
        (lambda: calibrant.assess(y_true=Y, y_score=P), "'y_score'.*`y_prob=`"),
        (lambda: calibrant.assess(labels=Y, probs=P), "'probs'.*`y_prob=`"),
        (lambda: calibrant.assess_by(Y, y_proba=P, by=Y), "'y_proba'.*`y_prob=`"),
        (lambda: calibrant.compare(Y, y_pred=MODELS), "'y_pred'.*`y_prob=`"),
        (lambda: calibrant.assess(data={"y": Y}, y_true="y", y_score="p"), "`y_prob=`"),
        (lambda: calibrant.reliability_diagram(Y, P, figsize=(3, 3)), r"Pass it to `\.plot\(\)`"),
        (lambda: calibrant.smooth_ece(Y, P, random_state=0), "Nothing is drawn"),
        (lambda: calibrant.smooth_ece(Y, P, weight_type="frequency"), "`assess` takes"),
        (lambda: calibrant.report(Y, P, titel="mine"), "`report` takes it"),
        (lambda: calibrant.compare(Y, MODELS, alpha=0.1), "Tests and intervals take `confidence="),
    ],
)
def test_a_keyword_of_another_function_is_refused_with_its_place(call, place):
    with pytest.raises(TypeError, match=place):
        call()


TWINS = pd.DataFrame(np.column_stack([P, P]), columns=["a", "a"])
SCORES = pd.DataFrame(np.full((N, 3), 1 / 3), columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("call", "argument", "cure"),
    [
        (lambda: calibrant.compare(Y, MODELS, names=["a", "b"]), "names", "Leave it out"),
        (lambda: calibrant.report(Y, MODELS, names=["a", "b"]), "names", "Leave it out"),
        (lambda: calibrant.reliability_diagrams(Y, MODELS, names=["a", "b"]), "names", "Leave"),
        (lambda: calibrant.compare(Y, TWINS.to_numpy(), names="ab"), "names", r"\['a', 'b'\]"),
        (
            lambda: calibrant.assess_by("y", ["p", "q"], data={"y": Y, "p": P}, names=["a", "b"]),
            "names",
            "Map them",
        ),
        (lambda: calibrant.compare(Y, TWINS), "y_prob", "Rename"),
        (lambda: calibrant.assess_by(Y, TWINS), "y_prob", "Rename"),
        (lambda: calibrant.report(np.arange(N) % 3, SCORES), "y_true", "`multiclass="),
        (lambda: calibrant.assess("y", ["p", "q"], data={"y": Y}), "y_prob", "`multiclass="),
        (
            lambda: calibrant.measures.expected_calibration_error(Y, P, strategy="equal"),
            "strategy",
            'mean "uniform"',
        ),
    ],
)
def test_what_is_meant_otherwise_is_refused_with_a_cure(call, argument, cure):
    with pytest.raises(calibrant.InputError, match=cure) as refused:
        call()
    assert refused.value.argument == argument


def test_columns_whose_indexes_differ_are_refused_with_a_cure():
    outcomes, predictions = pd.Series(Y), pd.Series(P).sample(frac=1.0, random_state=0)
    with pytest.raises(calibrant.InputError, match=r"`y_prob\.loc\[y_true\.index\]`") as refused:
        calibrant.smooth_ece(outcomes, predictions)
    assert refused.value.argument == "y_prob"
    with pytest.raises(calibrant.InputError, match="sample_weight"):
        calibrant.smooth_ece(outcomes, P, sample_weight=predictions)
    cured = calibrant.smooth_ece(outcomes, predictions.loc[outcomes.index])
    assert cured == calibrant.smooth_ece(Y, P) == calibrant.smooth_ece(outcomes, P)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda y, other: calibrant.assess(y, P, cluster=other), "cluster"),
        (lambda y, other: calibrant.assess_by(y, P, by=other), "by"),
        (lambda y, other: calibrant.assess_by(y, P, by={"g": other}), "by"),
        (lambda y, other: calibrant.assess_by(y, MODELS, by=other), "by"),
        (lambda y, other: calibrant.assess_by(y, P, by=np.arange(N) % 2, cluster=other), "cluster"),
        (lambda y, other: calibrant.report(y, P, cluster=other), "cluster"),
        (lambda y, other: calibrant.certify(y, P, risk=0.1, cluster=other), "cluster"),
        (lambda y, other: calibrant.compare(y, MODELS, cluster=other), "cluster"),
        (lambda y, other: cross_fitted_error(y, P, cluster=other), "cluster"),
    ],
)
def test_groups_and_clusters_whose_indexes_differ_are_refused_alike(call, argument):
    group = pd.Series(np.arange(N) % 50)
    with pytest.raises(calibrant.InputError, match=r"`\S+\.loc\[y_true\.index\]`") as refused:
        call(pd.Series(Y), group.sample(frac=1.0, random_state=0))
    assert refused.value.argument == argument
    with pytest.raises(calibrant.InputError, match=r"`\.reset_index\(drop=True\)`"):
        call(pd.Series(Y), group.set_axis(np.arange(N) + N))


def test_several_models_are_crossed_with_groups_even_of_their_own_name(tmp_path):
    group = np.where(np.arange(N) % 2, "odd", "even")
    data = {"y": Y, "p": P, "p2": P**2, "model": group, "prediction": group}
    found = calibrant.assess_by(data=data, y_true="y", y_prob=["p", "p2"], by="model")
    assert found.by == ("prediction", "model")
    assert len(found) == 4
    again = calibrant.assess_by(Y, {"p": P, "p2": P**2}, by={"model": group})
    assert again.by == found.by
    assert again.to_dict() == found.to_dict()
    both = ["model", "prediction"]
    pd.DataFrame(data).to_csv(tmp_path / "rows.csv", index=False)
    for source in (data, tmp_path / "rows.csv"):
        crossed = calibrant.assess_by(data=source, y_true="y", y_prob=["p", "p2"], by=both)
        assert crossed.by == ("prediction_2", *both)
        assert len(crossed) == 4
    plain = calibrant.assess_by(Y, {"p": P, "p2": P**2}, by=group)
    assert plain.by == ("model", "group")
    assert len(plain) == 4


def test_predictions_that_rank_backwards_and_one_outcome_are_said_in_words():
    backwards = calibrant.assess(Y, 1.0 - P)
    assert "are labels flipped?" in backwards.verdict
    assert backwards.direction.auc == pytest.approx(roc_auc_score(Y, 1.0 - P))
    for several in (
        calibrant.assess_by(Y, {"good": P, "bad": 1.0 - P}).summary,
        calibrant.compare(Y, {"good": P, "bad": 1.0 - P}).verdict,
    ):
        assert re.search(
            r"redictions (rank backwards in bad|of bad rank backwards): are lab", several
        )
    assert not calibrant.assess(Y, P).direction.backwards
    assert "all outcomes are 1" in calibrant.assess(np.ones(N), P).verdict


def test_a_number_and_its_object_are_called_alike():
    names = set(dir(calibrant.measures)) | {"smooth_ece"}
    objects = {name for name in names if name.endswith("_result")}
    assert objects
    assert {name.removesuffix("_result") for name in objects} <= names


FRAMES = """
import numpy as np, polars as pl
import calibrant as cal

p = np.random.default_rng(0).random(300)
frame = pl.DataFrame({"y": (np.random.default_rng(1).random(300) < p).astype(int), "a": p, "b": p**2})
y, models = frame["y"], frame[["a", "b"]]
for result in (
    cal.assess(y, frame["a"]),
    cal.assess_by(y, np.c_[p, p**2], names=["a", "b"]),
    cal.compare(y, models),
    cal.report(y, models),
    cal.report(data=frame, y_true="y", y_prob="a"),
    cal.reliability_diagram(y, frame["a"]),
    cal.reliability_diagrams(y, models),
    cal.selective(y, frame["a"]),
    cal.decision_curve(y, frame["a"]),
    cal.measure_all(y, frame["a"]),
):
    assert isinstance(result.to_frame(), pl.DataFrame), result
"""


def test_a_result_becomes_a_frame_of_the_library_that_the_session_uses():
    subprocess.run([sys.executable, "-c", FRAMES], check=True)
