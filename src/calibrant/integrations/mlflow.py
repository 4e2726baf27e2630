"""Calibration in MLflow: a metric for `mlflow.models.evaluate`."""

from __future__ import annotations

from math import nan
from typing import Any, Unpack

from calibrant._optional import require
from calibrant.data.rows import InputOptions
from calibrant.integrations.scores import NUMBERS, calibration_scores

__all__ = ["smooth_ece_metric"]


def smooth_ece_metric(*, name: str = "calibration", **options: Unpack[InputOptions]) -> Any:
    """An MLflow metric: SmoothECE with its noise floor, interval and p-value as aggregate results.

    Predictions must be probabilities of the event; MLflow logs them as `calibration/smooth_ece`,
    `calibration/noise_floor` and so on.

    Parameters
    ----------
    name : str
        What stands before the slash.
    **options
        How to read the columns (see `InputOptions`).

    Examples
    --------
    >>> import mlflow  # doctest: +SKIP
    >>> mlflow.models.evaluate(  # doctest: +SKIP
    ...     data=frame, predictions="p", targets="y", extra_metrics=[smooth_ece_metric()]
    ... )
    """
    metrics = require("mlflow.metrics", caller="smooth_ece_metric")

    def calibration(predictions: Any, targets: Any) -> Any:
        if len(targets) < 2:  # MLflow tries a metric on the first row alone
            return metrics.MetricValue(aggregate_results=dict.fromkeys(NUMBERS, nan))
        scores = calibration_scores(targets, predictions, **options)
        return metrics.MetricValue(aggregate_results=scores)

    return metrics.make_metric(
        eval_fn=calibration,
        greater_is_better=False,
        name=name,
        long_name="SmoothECE, with the value of a calibrated model and a 95% interval",
    )
