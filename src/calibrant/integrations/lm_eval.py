"""Calibration in lm-evaluation-harness: metrics for tasks whose results say how sure the model was.

In a task's Python file:

    from calibrant.integrations.lm_eval import metric_list, process_choices

    task = {
        ...,
        "output_type": "multiple_choice",
        "process_results": process_choices("answer"),
        "metric_list": metric_list(),
    }
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from calibrant._optional import require
from calibrant.integrations.scores import NUMBERS, calibration_scores

__all__ = ["metric_list", "process_choices"]

require("lm_eval", caller="calibrant.integrations.lm_eval")
Item = tuple[float, float]


def process_choices(
    gold: str | Callable[[dict[str, Any]], int],
) -> Callable[[dict[str, Any], Sequence[tuple[float, bool]]], dict[str, Any]]:
    """The `process_results` of a multiple-choice task: accuracy, and what calibration is made of.

    The confidence is the share of the chosen option in the likelihoods of all.

    Parameters
    ----------
    gold : str or callable
        The field of a document that holds the index of the right option, or a function of it.

    Examples
    --------
    >>> likelihoods = [(-2.3, False), (-0.1, True)]  # the log-likelihood of each option
    >>> result = process_choices("answer")({"answer": 1}, likelihoods)
    >>> right, confidence = result["smooth_ece"]
    >>> right, round(confidence, 2)
    (1.0, 0.9)
    """

    def process(document: dict[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        scores = [float(log) for log, *_ in results]
        best = max(scores)
        chosen = scores.index(best)
        right = float(chosen == (gold(document) if callable(gold) else int(document[gold])))
        confidence = 1.0 / math.fsum(math.exp(score - best) for score in scores)
        return {"acc": right, **dict.fromkeys(NUMBERS, (right, confidence))}

    return process


def metric_list() -> list[dict[str, Any]]:
    """The `metric_list` that goes with `process_choices`: accuracy, SmoothECE, floor, interval, p.

    Examples
    --------
    >>> [metric["metric"] for metric in metric_list()][:2]
    ['acc', 'smooth_ece']
    """
    own = [
        {
            "metric": name,
            "aggregation": partial(_aggregated, name=name),
            "higher_is_better": name == "p_value",
        }
        for name in NUMBERS
    ]
    return [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}, *own]


def _aggregated(items: Sequence[Item], *, name: str) -> float:
    right, confidence = zip(*items, strict=True)
    return calibration_scores(right, confidence)[name] if len(items) > 1 else math.nan
