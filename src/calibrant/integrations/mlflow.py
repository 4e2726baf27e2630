"""Calibration in MLflow: a metric for `mlflow.models.evaluate`, and an evaluator that MLflow discovers."""

from __future__ import annotations

from math import nan
from typing import Any, Unpack

from calibrant._optional import require
from calibrant.data.rows import InputOptions
from calibrant.integrations.scores import NUMBERS, calibration_scores

__all__ = ["CalibrationEvaluator", "smooth_ece_metric"]

_evaluation: Any = require("mlflow.models.evaluation.base", caller="calibrant.integrations.mlflow")


def smooth_ece_metric(*, name: str = "calibration", **options: Unpack[InputOptions]) -> Any:
    """MLflow metric: SmoothECE with its noise floor, interval and p-value as aggregate results.

    Predictions must be probabilities of the event; MLflow logs them as `calibration/smooth_ece`,
    `calibration/noise_floor` and so on.

    Parameters
    ----------
    name : str
        Prefix before the slash.
    **options
        Keywords that read the columns (see `calibrant.data.InputOptions`).

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


class CalibrationEvaluator(_evaluation.ModelEvaluator):  # type: ignore[misc]
    """Evaluator "calibrant" of `mlflow.models.evaluate`, for predictions that are probabilities.

    It runs where `evaluator_config` has an entry for it, with a prefix and options to read the columns:
    `evaluator_config={"calibrant": {"name": "calibration"}}`.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: Any, evaluator_config: Any, **_: Any) -> bool:
        """True if the user has asked for it."""
        return bool(evaluator_config)

    def evaluate(
        self, *, dataset: Any, run_id: str, evaluator_config: Any, model: Any = None, **_: Any
    ) -> Any:
        """Log the scores to the run and return them."""
        options = dict(evaluator_config)
        name = options.pop("name", "calibration")
        y_prob = dataset.predictions_data
        if y_prob is None:
            y_prob = model.predict(dataset.features_data)
        scores = calibration_scores(dataset.labels_data, y_prob, **options)
        named = {f"{name}/{key}": value for key, value in scores.items()}
        require("mlflow", caller="CalibrationEvaluator").log_metrics(named, run_id=run_id)
        return _evaluation.EvaluationResult(metrics=named, artifacts={}, run_id=run_id)
