"""The paper's figures, drawn by calibrant: binned beside smooth."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import calibrant
from bench.paper.experiments import Experiment
from calibrant.plotting.binned import binned_diagram
from calibrant.plotting.reliability import reliability_diagram

matplotlib.use("Agg")

BINS = 15


def _saved(figure: plt.Figure, name: str, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    file = f"paper-{name}.png"
    figure.savefig(folder / file, dpi=110, metadata={"Software": None})
    plt.close(figure)
    return file


def side_by_side(experiment: Experiment, folder: Path) -> str:
    """The paper's comparison of the two diagrams."""
    p, y = experiment.rows()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 5.0), layout="constrained")
    binned_diagram(y, p, n_bins=BINS).plot(left)
    reliability_diagram(y, p, bandwidth="smooth_ece").plot(right)
    if experiment.truth is not None:
        x = np.linspace(0.0, 1.0, 201)
        right.plot(x, experiment.truth(x), color="0.3", linestyle="--", linewidth=1.0)
    left.set_title(f"Binned, {BINS} bins")
    right.set_title("Smooth")
    return _saved(figure, experiment.name, folder)


def method(experiment: Experiment, folder: Path) -> str:
    """From a handful of rows to the number: rows, smoothed residuals, diagram."""
    p, y = experiment.rows()
    result = calibrant.smooth_ece_result(y, p)
    figure, (rows, residuals, diagram) = plt.subplots(
        1, 3, figsize=(14.0, 4.6), layout="constrained"
    )
    rows.plot([0, 1], [0, 1], color="0.8")
    rows.plot(p, y, "o", color="#0b6e99")
    rows.set(title="1. Predictions and outcomes", xlabel="prediction f", ylabel="outcome y")
    t = np.linspace(0.0, 1.0, 801)
    smoothed = _smoothed(t, p, y - p, result.bandwidth)
    residuals.vlines(p, 0, y - p, color="0.6")
    residuals.plot(p, y - p, "o", color="#0b6e99")
    residuals.fill_between(t, smoothed, color="#0b6e99", alpha=0.3)
    residuals.plot(t, smoothed, color="#0b6e99")
    residuals.set(
        title=f"2. Residuals, smoothed: the area is {result.value:.3f}",
        xlabel="prediction f",
        ylabel="y - f",
    )
    reliability_diagram(y, p, bandwidth="smooth_ece").plot(diagram)
    diagram.set_title("3. The diagram")
    return _saved(figure, experiment.name, folder)


def _smoothed(t: np.ndarray, p: np.ndarray, residual: np.ndarray, bandwidth: float) -> np.ndarray:
    """The mean residual under the reflected Gaussian kernel, as a sum over images."""
    total = np.zeros_like(t)
    for shift in (-2.0, 0.0, 2.0):
        for sign in (-1.0, 1.0):
            z = (t[:, None] - (sign * p + shift)) / bandwidth
            total += np.exp(-0.5 * z**2) @ residual
    return np.asarray(total / (len(p) * bandwidth * np.sqrt(2 * np.pi)))
