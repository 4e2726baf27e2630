"""SmoothECE for Hugging Face `evaluate`, which copies this file and loads the copy."""

from typing import Any

import evaluate

import calibrant.integrations.scores as scores
import datasets

DESCRIPTION = """
SmoothECE: how far probabilities are from the frequencies they claim, without bins. With the value that a
calibrated model would show on as many rows (the noise floor), a 95% interval and the p-value of calibration.
"""
ARGUMENTS = """
predictions: probabilities of the event (or confidences of answers).
references: 1 where the event came (or the answer was right), else 0.
"""
CITATION = (
    "Blasiok and Nakkiran, Smooth ECE: Principled Reliability Diagrams via Kernel Smoothing, 2023"
)


class SmoothECE(evaluate.Metric):  # type: ignore[misc]
    """The metric that `evaluate.load` gives."""

    def _info(self) -> Any:
        return evaluate.MetricInfo(
            description=DESCRIPTION,
            citation=CITATION,
            inputs_description=ARGUMENTS,
            features=datasets.Features(
                {"predictions": datasets.Value("float64"), "references": datasets.Value("int64")}
            ),
        )

    def _compute(self, predictions: Any, references: Any) -> dict[str, float]:
        return scores.calibration_scores(references, predictions)
