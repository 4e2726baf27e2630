"""How each package is called, at its best documented settings.

This file runs inside the peers' environments: it imports NumPy, and a peer only when it is called.
Every call takes (y, p), outcome first, as the peer wants them (`prepare` is not timed), and returns
the number that the package calls its calibration error.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

BINS = 15


@dataclass(frozen=True)
class Peer:
    """A package and what it is asked for.

    `target` says which exact value its number is compared with: "smooth" (the paper's SmoothECE),
    "smooth confidence" (the same, of the predicted class), "binned" (15 bins of equal width on
    [0, 1]), "binned range" (the same, from the lowest prediction to the highest), or "" where the
    package gives a curve and no number. `interval_of` is what the interval is for, where that is
    another number than `measure`.
    """

    name: str
    distribution: str
    environment: str
    asked: str
    target: str
    measure: Callable[[Any, Any], float]
    prepare: Callable[[Any, Any], tuple[Any, Any]] = lambda y, p: (y, p)
    interval: Callable[[Any, Any], tuple[float, float]] | None = None
    interval_of: Callable[[Any, Any], float] | None = None


def _calibrant(y: Any, p: Any) -> float:
    import calibrant

    return calibrant.smooth_ece(y, p)


def _calibrant_binned(y: Any, p: Any) -> float:
    from calibrant import ece

    return ece(y, p, n_bins=BINS)


def _calibrant_interval(y: Any, p: Any) -> tuple[float, float]:
    import calibrant

    found = calibrant.assess(y, p).interval
    return found.low, found.high


def _relplot(y: Any, p: Any) -> float:
    import relplot

    return float(relplot.smECE(p, y))


def _relplot_interval(y: Any, p: Any) -> tuple[float, float]:
    import relplot

    drawn = relplot.prepare_rel_diagram(p, y, plot_confidence_band=False)
    return drawn["ce"] - drawn["ce_ci_width"], drawn["ce"] + drawn["ce_ci_width"]


def _sklearn(y: Any, p: Any) -> float:
    from sklearn.calibration import calibration_curve

    true, predicted = calibration_curve(y, p, n_bins=BINS)
    return float(np.abs(true - predicted).max())


def _netcal(y: Any, p: Any) -> float:
    from netcal.metrics import ECE

    return float(ECE(BINS).measure(p, y))


def _tensors(y: Any, p: Any) -> tuple[Any, Any]:
    import torch

    return torch.as_tensor(y), torch.as_tensor(p)


def _float32_tensors(y: Any, p: Any) -> tuple[Any, Any]:
    y, p = _tensors(y, p)
    return y, p.float()


def _torchmetrics(y: Any, p: Any) -> float:
    from torchmetrics.functional.classification import binary_calibration_error

    return float(binary_calibration_error(p, y, n_bins=BINS))


def _without_its_trainer(package: str) -> None:
    """Name a package without running its __init__, which here wants a build of torchvision."""
    if package in sys.modules:
        return
    found = importlib.util.find_spec(package)
    if found is not None:
        sys.modules[package] = importlib.util.module_from_spec(found)


def _torch_uncertainty(y: Any, p: Any) -> float:
    for package in ("torch_uncertainty", "torch_uncertainty.metrics"):
        _without_its_trainer(package)
    from torch_uncertainty.metrics.classification.calibration import SmoothCalibrationError

    metric = SmoothCalibrationError(kernel_type="reflected")
    metric.update(p, y)
    return float(metric.compute())


def _probcal(y: Any, p: Any) -> float:
    from probcal.metrics import ece

    return float(ece(y, p, n_bins=BINS, strategy="width"))


def _probcal_interval(y: Any, p: Any) -> tuple[float, float]:
    from probcal.metrics import evaluate

    # Its default keeps the number of events fixed, and with it the error of the event rate.
    report = evaluate(y, p, metrics=["ece"], stratify=False)
    return float(report.ci_low[0]), float(report.ci_high[0])


def _probcal_interval_of(y: Any, p: Any) -> float:
    from probcal.metrics import evaluate

    return float(evaluate(y, p, metrics=["ece"], n_boot=0).values[0])


def _calibre(y: Any, p: Any) -> float:
    from calibre.metrics import expected_calibration_error

    return float(expected_calibration_error(y, p, n_bins=BINS))


def _categorical(y: Any, p: Any) -> tuple[Any, Any]:
    import torch

    p = torch.as_tensor(p)
    return torch.as_tensor(y), torch.stack([1 - p, p], dim=1)


def _probmetrics(y: Any, p: Any) -> float:
    from probmetrics.distributions import CategoricalDirac, CategoricalProbs
    from probmetrics.metrics import SmoothCalibrationError

    return float(SmoothCalibrationError().compute(CategoricalDirac(y, 2), CategoricalProbs(p)))


def _uncertainty_calibration(y: Any, p: Any) -> float:
    import calibration

    return float(calibration.get_ece(p, y, num_bins=BINS, mode="marginal"))


def _uncertainty_calibration_interval(y: Any, p: Any) -> tuple[float, float]:
    import calibration

    # Its alpha is in per cent, whatever its default of 0.1 suggests.
    low, _, high = calibration.get_calibration_error_uncertainties(p, y, p=1, alpha=5.0)
    return float(low), float(high)


def _uncertainty_calibration_interval_of(y: Any, p: Any) -> float:
    import calibration

    return float(calibration.get_calibration_error(p, y, p=1, debias=False))


def _mapie(y: Any, p: Any) -> float:
    from mapie.metrics.calibration import expected_calibration_error

    # num_bins counts the edges: one more of them makes BINS bins.
    return float(expected_calibration_error(y, p, num_bins=BINS + 1, split_strategy="uniform"))


def _model_diagnostics(y: Any, p: Any) -> float:
    from model_diagnostics.calibration import compute_bias

    with contextlib.redirect_stdout(io.StringIO()):
        table = compute_bias(y, p, feature=p, bin_method="uniform", n_bins=BINS)
    share = table["bias_weights"] / table["bias_weights"].sum()
    return float((share * table["bias_mean"].abs()).sum())


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "calibrant", "calibrant", "calibrant", "smooth_ece", "smooth", _calibrant,
            interval=_calibrant_interval,
        ),
        Peer(
            "calibrant, binned", "calibrant", "calibrant", f"ece(n_bins={BINS})", "binned",
            _calibrant_binned,
        ),
        Peer(
            "relplot", "relplot", "relplot", "smECE", "smooth", _relplot,
            interval=_relplot_interval,
        ),
        Peer(
            "probmetrics", "probmetrics", "torch", "SmoothCalibrationError", "smooth",
            _probmetrics, _categorical,
        ),
        Peer(
            "torch-uncertainty", "torch-uncertainty", "torch",
            "SmoothCalibrationError(kernel_type='reflected')", "smooth confidence",
            _torch_uncertainty, _float32_tensors,
        ),
        Peer(
            "scikit-learn", "scikit-learn", "plain", f"calibration_curve(n_bins={BINS})", "",
            _sklearn,
        ),
        Peer("netcal", "netcal", "torch", f"ECE({BINS})", "binned", _netcal),
        Peer(
            "torchmetrics", "torchmetrics", "torch", f"binary_calibration_error(n_bins={BINS})",
            "binned", _torchmetrics, _tensors,
        ),
        Peer(
            "probcal", "probcal", "probcal", f"ece(n_bins={BINS}, strategy='width')", "binned",
            _probcal, interval=_probcal_interval, interval_of=_probcal_interval_of,
        ),
        Peer(
            "calibre", "calibre", "plain", f"expected_calibration_error(n_bins={BINS})", "binned",
            _calibre,
        ),
        Peer(
            "uncertainty-calibration", "uncertainty-calibration", "plain",
            f"get_ece(num_bins={BINS}, mode='marginal')", "binned", _uncertainty_calibration,
            interval=_uncertainty_calibration_interval,
            interval_of=_uncertainty_calibration_interval_of,
        ),
        Peer(
            "mapie", "mapie", "plain",
            f"expected_calibration_error(num_bins={BINS + 1}, split_strategy='uniform')", "binned",
            _mapie,
        ),
        Peer(
            "model-diagnostics", "model-diagnostics", "plain",
            f"compute_bias(bin_method='uniform', n_bins={BINS})", "binned range", _model_diagnostics,
        ),
    )
}  # fmt: skip
