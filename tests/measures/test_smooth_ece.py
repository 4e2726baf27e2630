"""SmoothECE as a person calls it: what it returns, what it says, and real data."""

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.refusals import refused

import calibrant as cal

# Computed without a grid by two independent methods that agree to 2e-9. Sources of the predictions:
# hollance/reliability-diagrams (MIT), TimoDimi/replication_DGJ20 (CC0), cran/verification,
# aijordan/reliabilitydiag, fivethirtyeight/checking-our-work-data (CC BY 4.0),
# NoamMichael/Comparing-Confidence-in-LLMs (MIT), apple/ml-calibration (drawn anew).
EXACT = {
    "imagenet_resnet34": 0.0778723234,
    "imagenet_resnext50_32x4d": 0.0579909482,
    "solar_flares_daffs_c1": 0.0674017372,
    "solar_flares_all_models": 0.0492082515,
    "fmi_rain_tampere_2003": 0.1338150289,
    "synthetic_toy": 0.0453810055,
    "precip_niamey_2016": 0.0718344212,
    "nncal_densenet40_c10": 0.0549308810,
    "fivethirtyeight_mlb_games": 0.0113115679,
    "fivethirtyeight_all": 0.0046884776,
    "llm_token_confidence": 0.2242997762,
    "recidivism_broward": 0.0662592546,
    "verification_prob_frcs": 0.0296833570,
}
ROUNDING_OF_TABLE = 2e-9


def real(name):
    folder = os.environ.get("CALIBRANT_DATA")
    if not folder:
        pytest.skip("NOT RUN: set CALIBRANT_DATA to the folder of real predictions")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(Path(folder) / f"{name}.parquet", columns=["y", "p"])
    return table["y"], table["p"]


@pytest.mark.parametrize("name", EXACT)
def test_real_predictions_to_the_exact_value(name):
    y, p = real(name)
    for result in (
        cal.smooth_ece_result(y, p),
        cal.smooth_ece_result(cal.Sketch.from_arrays(y, p)),
    ):
        error = abs(result.value - EXACT[name])
        assert error <= 2e-7
        assert error <= result.certificate.total + ROUNDING_OF_TABLE


@pytest.mark.parametrize(
    ("name", "argument", "cure"),
    [
        ("fmi_rain_raw_sentinels", "y_prob", {"on_invalid": "drop"}),
        ("solar_flares_all_models_with_nan", "y_prob", {"on_invalid": "drop"}),
        ("nfl_elo_1920_with_ties", "y_true", {"on_invalid": "drop"}),
        ("verification_prob_frcs_percent", "y_prob", {"percent": True}),
    ],
)
def test_dirty_files_are_refused_and_cured(name, argument, cure):
    y, p = real(name)
    with refused(argument, option=next(iter(cure))):
        cal.smooth_ece(y, p)
    result = cal.smooth_ece_result(y, p, **cure)
    assert result.n + sum(result.dropped.values()) == len(y)
    if "percent" in cure:
        assert result.value == pytest.approx(EXACT["verification_prob_frcs"], abs=2e-7)


def test_returns_a_float_or_a_result():
    y, p = [0, 1, 1, 0], [0.2, 0.6, 0.9, 0.4]
    value, result = cal.smooth_ece(y, p), cal.smooth_ece_result(y, p)
    assert type(value) is float
    assert float(result) == result.value == value
    assert result.bandwidth == value
    assert result.evaluations >= 1
    assert (result.n, dict(result.dropped), result.scale) == (4, {}, "probability")
    assert type(cal.smooth_ece(cal.Sketch.from_arrays(y, p))) is float


def test_result_speaks_in_one_line_in_json_and_in_html():
    result = cal.smooth_ece_result([0, 1, 1], [0.2, 0.6, np.nan], on_invalid="drop")
    assert "\n" not in repr(result)
    assert "dropped=1" in repr(result)
    assert f"{result.value:.9f}" in repr(result)
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["value"] == result.value
    assert plain["certificate"]["total"] == result.certificate.total
    assert plain["dropped"] == {"missing prediction": 1}
    assert f"{result.value:.6f}" in result._repr_html_()
    with pytest.raises(AttributeError):
        result.value = 0.0


def test_certificate_has_terms_and_the_tolerance_is_met():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    y = rng.random(5000) < p
    for tolerance in (1e-5, 1e-9, 1e-12):
        certificate = cal.smooth_ece_result(y, p, tolerance=tolerance, bandwidth=0.05).certificate
        assert certificate.total <= tolerance
        terms = certificate.binning + certificate.quadrature + certificate.rounding
        assert certificate.total == pytest.approx(terms, rel=1e-9)


MEMORY = """
import os, sys, numpy as np, calibrant as cal
def status(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024
rng = np.random.default_rng(0)
n = 10_000_000
p = rng.random(n, dtype=np.float64)
y = np.empty(n, {label!r})
for start in range(0, n, 100_000):
    piece = slice(start, start + 100_000)
    y[piece] = rng.random(100_000) < p[piece]
cal.smooth_ece(y[:300_000], p[:300_000])
os.cpu_count = lambda: {cores}
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
cal.smooth_ece(y, p)
print(status("VmHWM") - before)
"""


@pytest.mark.skipif(
    not os.path.exists("/proc/self/clear_refs"), reason="reads Linux's own counters"
)
@pytest.mark.parametrize(("label", "cores"), [("int64", 2), ("int8", 64)])
def test_ten_million_rows_take_less_than_twenty_megabytes(label, cores):
    script = MEMORY.format(label=label, cores=cores)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 20


def test_a_zero_of_the_residual_on_the_mesh_counts_in_the_slope():
    result = cal.smooth_ece_result(
        [1, 0], [0.0, 1.0]
    )  # odd about ½, which is a point of every mesh
    assert result.certificate.total <= 1e-7
    assert result.evaluations <= 10


def test_results_travel_between_processes():
    pairs = cal.confidence([0, 1, 5], [[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]], on_invalid="drop")
    result = cal.smooth_ece_result(pairs)
    assert result.dropped == {"invalid label": 1}
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert again == result
    assert cal.smooth_ece_result(pickle.loads(pickle.dumps(pairs))) == result
