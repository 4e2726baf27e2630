"""What each peer says of the measures that calibrant has too: runs inside a peer's environment.

python companions.py p.npy y.npy ENVIRONMENT > answers.json
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

BINS = 15


@dataclass(frozen=True)
class Companion:
    """One of calibrant's measures as a peer computes it.

    `differs` is the reason for a difference beyond rounding, or "" where there should be none.
    """

    measure: str
    peer: str
    environment: str
    asked: str
    call: Callable[[Any, Any], float]
    differs: str = ""


def _netcal(name: str, **options: Any) -> Callable[[Any, Any], float]:
    def call(y: Any, p: Any) -> float:
        import netcal.metrics

        made = getattr(netcal.metrics, name)
        return float((made(BINS, **options) if name != "MMCE" else made()).measure(p, y))

    return call


def _torchmetrics(norm: str) -> Callable[[Any, Any], float]:
    def call(y: Any, p: Any) -> float:
        import torch
        from torchmetrics.functional.classification import binary_calibration_error

        return float(
            binary_calibration_error(torch.as_tensor(p), torch.as_tensor(y), n_bins=BINS, norm=norm)
        )

    return call


def _probcal(name: str, part: str = "", **options: Any) -> Callable[[Any, Any], float]:
    def call(y: Any, p: Any) -> float:
        import probcal.metrics

        found = getattr(probcal.metrics, name)(y, p, **options)
        return float(getattr(found, part) if part else found)

    return call


def _mapie(name: str, *, scaled: bool = False) -> Callable[[Any, Any], float]:
    def call(y: Any, p: Any) -> float:
        from mapie.metrics import calibration

        scale = calibration.length_scale(p) if scaled else 1.0
        return float(getattr(calibration, name)(y, p) * scale)

    return call


def _mapie_ece(y: Any, p: Any) -> float:
    from mapie.metrics.calibration import expected_calibration_error

    return float(expected_calibration_error(y, p, num_bins=BINS + 1, split_strategy="uniform"))


def _uncertainty_calibration(name: str, **options: Any) -> Callable[[Any, Any], float]:
    def call(y: Any, p: Any) -> float:
        from calibration import utils

        return float(getattr(utils, name)(p, y, num_bins=BINS, mode="marginal", **options))

    return call


def _calibre(name: str) -> Callable[[Any, Any], float]:
    def call(y: Any, p: Any) -> float:
        import calibre.metrics

        return float(getattr(calibre.metrics, name)(y, p, n_bins=BINS))

    return call


def _model_diagnostics(part: str) -> Callable[[Any, Any], float]:
    def call(y: Any, p: Any) -> float:
        from model_diagnostics.scoring import SquaredError, decompose

        return float(decompose(y, p, scoring_function=SquaredError())[part][0])

    return call


def _relplot(name: str, **options: Any) -> Callable[[Any, Any], float]:
    def call(y: Any, p: Any) -> float:
        import relplot.metrics

        np.random.seed(0)  # noqa: NPY002  the peer draws from the global generator
        return float(getattr(relplot.metrics, name)(p, y, **options))

    return call


MASS = "cuts the sorted rows elsewhere"
FAR = "a series cut early, and its jitter"
JITTER = "adds noise of 1e-8 to break ties"
COMPANIONS = (
    Companion("smooth_ece", "relplot", "relplot", "smECE", _relplot("smECE"), "a grid of 1/1024"),
    Companion(
        "smooth_ece_logit", "probcal", "probcal", "smooth_ece", _probcal("smooth_ece"),
        "a grid of 8,192 cells, bisection",
    ),
    Companion("binned_ece", "netcal", "torch", "ECE", _netcal("ECE")),
    Companion("binned_ece", "torchmetrics", "torch", "l1", _torchmetrics("l1")),
    Companion("binned_ece", "probcal", "probcal", "ece", _probcal("ece", n_bins=BINS, strategy="width")),
    Companion("binned_ece", "calibre", "plain", "ECE", _calibre("expected_calibration_error")),
    Companion("binned_ece", "mapie", "plain", "ECE", _mapie_ece),
    Companion(
        "binned_ece", "uncertainty-calibration", "plain", "get_ece",
        _uncertainty_calibration("get_ece"),
    ),
    Companion(
        "binned_ece_mass", "netcal", "torch", "ECE(equal_intervals=False)",
        _netcal("ECE", equal_intervals=False), MASS,
    ),
    Companion(
        "binned_ece_mass", "probcal", "probcal", "ece(strategy='mass')",
        _probcal("ece", n_bins=BINS, strategy="mass"), MASS,
    ),
    Companion(
        "binned_ece_mass", "uncertainty-calibration", "plain", "get_ece_em",
        _uncertainty_calibration("get_ece_em"), MASS,
    ),
    Companion("binned_rms", "torchmetrics", "torch", "l2", _torchmetrics("l2")),
    Companion(
        "binned_rms", "probcal", "probcal", "ece(norm='l2')",
        _probcal("ece", n_bins=BINS, strategy="width", norm="l2"),
    ),
    Companion("binned_max", "netcal", "torch", "MCE", _netcal("MCE")),
    Companion("binned_max", "torchmetrics", "torch", "max", _torchmetrics("max")),
    Companion("binned_max", "calibre", "plain", "MCE", _calibre("maximum_calibration_error")),
    Companion(
        "debiased_ece", "probcal", "probcal", "ece_debiased",
        _probcal("ece_debiased", n_bins=BINS),
        "floors every bin at 0 and averages the roots: the mean of ℓ1 gaps, not the root of ℓ2",
    ),
    Companion(
        "debiased_ece", "uncertainty-calibration", "plain", "lower_bound_scaling_ce",
        _uncertainty_calibration("lower_bound_scaling_ce"), MASS,
    ),
    Companion(
        "sweep_ece", "probcal", "probcal", "ece_sweep", _probcal("ece_sweep", max_bins=4096), MASS
    ),
    Companion(
        "kernel_calibration_error", "relplot", "relplot", "laplace_calibration_approx",
        _relplot("laplace_calibration_approx"), "samples random pairs",
    ),
    Companion(
        "squared_kernel_calibration_error", "probcal", "probcal", "skce(bandwidth=1)",
        _probcal("skce", bandwidth=1.0), "adds up both classes: twice the binary value",
    ),
    Companion("kernel_of_hits", "netcal", "torch", "MMCE", _netcal("MMCE")),
    Companion(
        "ecce_mad", "mapie", "plain", "kolmogorov_smirnov_statistic",
        _mapie("kolmogorov_smirnov_statistic", scaled=True), JITTER,
    ),
    Companion("ecce_mad", "probcal", "probcal", "ecce", _probcal("ecce", "stat_max")),
    Companion(
        "ecce_mad_p_value", "mapie", "plain", "kolmogorov_smirnov_p_value",
        _mapie("kolmogorov_smirnov_p_value"), FAR,
    ),
    Companion(
        "ecce_range", "mapie", "plain", "kuiper_statistic",
        _mapie("kuiper_statistic", scaled=True), "leaves out the 0 at which the sum begins",
    ),
    Companion(
        "ecce_range_p_value", "mapie", "plain", "kuiper_p_value", _mapie("kuiper_p_value"), FAR
    ),
    Companion(
        "miscalibration", "model-diagnostics", "plain", "decompose",
        _model_diagnostics("miscalibration"),
    ),
    Companion(
        "discrimination", "model-diagnostics", "plain", "decompose",
        _model_diagnostics("discrimination"),
    ),
    Companion(
        "binned_decomposition", "probcal", "probcal", "murphy_decomposition",
        _probcal("murphy_decomposition", "reliability", n_bins=BINS, strategy="width"),
    ),
    Companion(
        "interval_calibration_error", "relplot", "relplot", "intCE_rand", _relplot("intCE_rand"),
        "tries equal widths, shifted at random, only",
    ),
)  # fmt: skip


def main() -> None:
    p, y = np.load(sys.argv[1]), np.load(sys.argv[2])
    warnings.simplefilter("ignore")
    answers = {}
    for companion in COMPANIONS:
        if companion.environment == sys.argv[3]:
            key = f"{companion.measure} {companion.peer}"
            try:
                answers[key] = companion.call(y, p)
            except Exception as error:
                answers[key] = f"{type(error).__name__}: {error}"[:120]
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
