"""Mistakes in calls are seen by type checkers, before anything runs."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant

SOURCE = Path(calibrant.__file__).parents[1]
MISTAKES = """\
cal.smooth_ece(y, p, bandwith=0.1)
cal.smooth_ece(y, p, weights=p)
cal.smooth_ece(y, p, scale=3)
cal.assess(y, p, confidance=0.9)
cal.assess(y, p, confidence="95%")
cal.assess(y, p, weight_type="sampling")
cal.assess(y, p, on_invalid="ignore")
cal.assess(y, p).pvalue
cal.assess_by(y, p, by=["a", "b"], correction="holms")
cal.assess_by(y, p, group=["a", "b"])
cal.expected_calibration_error(y, p, strategy="equal")
cal.expected_calibration_error(y, p, bins=10)
cal.ece(y, p, norm="l3")
cal.compare(y, {"rf": p, "nb": p}, alpha=0.05)
cal.reliability_diagram(y, p, title="mine")
cal.reliability_diagrams(y, {"rf": p, "nb": p}, bandwith=0.1)
cal.certify(y, p, risk="low")
cal.choose_recalibrator(y, p, folds=5)
cal.report(y, p, titel="Test set")
cal.scan("preds.csv", y_true="y", y_prob="p", seperator=";")
cal.recalibration.PlattRecalibrator(C=1.0)
cal.recalibration.GroupRecalibrator(depths=1)
cal.recalibration.IsotonicRecalibrator().fit(p, y, weights=p)
cal.reliability_diagram(y, p).plot(tittle="mine")
cal.reliability_diagrams(y, {"rf": p, "nb": p}).save("x.svg", layot="grid")
cal.profiles.clinical(threshold=[0.1])
ReliabilityDisplay.from_predictions(y, p, nam="rf")
assert_calibrated(y, p, margin=0.1, inconclusive="maybe")
binary_smooth_ece(tensor, tensor, ignore_idx=0)
BinarySmoothECE(ignore_idx=0)
cal.smooth_ecee(y, p)
""".splitlines()
HEAD = """\
from typing import Any

import calibrant as cal
from calibrant.integrations.pytest import assert_calibrated
from calibrant.integrations.torch import BinarySmoothECE, binary_smooth_ece
from calibrant.sklearn import ReliabilityDisplay

y, p = [0, 1], [0.2, 0.7]
tensor: Any = None
"""
RIGHT = """\
cal.smooth_ece(y, p, sample_weight=[1.0, 2.0])
cal.assess(y, p, confidence=0.9, on_invalid="drop")
cal.expected_calibration_error(y, p, n_bins="cube_root", strategy="quantile", norm="max")
cal.recalibration.PlattRecalibrator().fit(p, y)
cal.reliability_diagrams(y, {"rf": p, "nb": p}).save("x.svg", layout="grid", title="mine")
cal.reliability_diagram(y, p).plot(c="C1", lw=2, ls="--", label="mine")
ReliabilityDisplay.from_predictions(y, p, name="rf", color="C1", confidence=0.9)
"""


@pytest.fixture
def planted(tmp_path):
    path = tmp_path / "mistakes.py"
    path.write_text(HEAD + "\n".join(MISTAKES) + "\n" + RIGHT, encoding="utf-8")
    return path


def lines(numbers):
    """Mistakes on these lines of the file."""
    head = HEAD.count("\n")
    source = [*MISTAKES, *RIGHT.splitlines()]
    return [source[number - head - 1] for number in sorted(set(numbers))]


def test_mypy_sees_every_mistake(planted, request):
    cache = request.config.cache.mkdir("mypy")  # reading the package takes most of the time
    command = [sys.executable, "-m", "mypy", "--cache-dir", cache, planted]
    done = subprocess.run(
        [*command, "--follow-imports=silent", "--config-file="],
        capture_output=True,
        text=True,
        env={"MYPYPATH": str(SOURCE), "PATH": ""},
        check=False,
    )
    assert done.returncode == 1, done.stderr
    found = re.findall(r"^.*mistakes\.py:(\d+): error", done.stdout, re.MULTILINE)
    assert lines(map(int, found)) == MISTAKES


@pytest.mark.heavy
def test_pyright_sees_every_mistake(planted):
    pyright = shutil.which("pyright")
    assert pyright, "pyright is not installed: see HEAVY_PACKAGES in the Makefile"
    settings = {"include": [planted.name], "extraPaths": [str(SOURCE)]}
    (planted.parent / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [pyright, "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=planted.parent, check=False)
    reports = json.loads(done.stdout)["generalDiagnostics"]
    errors = [one["range"]["start"]["line"] + 1 for one in reports if one["severity"] == "error"]
    assert lines(errors) == MISTAKES
