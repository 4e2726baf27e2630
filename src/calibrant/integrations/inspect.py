"""Calibration in Inspect: a metric over scores, and a hook that notes what the model says of itself.

from calibrant.integrations.inspect import calibration, with_confidence

@scorer(metrics=[accuracy(), calibration()])
def my_scorer(): ...

Task(dataset, scorer=with_confidence(match()))
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import Any

from calibrant._optional import require
from calibrant.errors import InputError
from calibrant.integrations.scores import NUMBERS, calibration_scores
from calibrant.io.confidence import Values, as_credit, stated_confidence

__all__ = ["calibration", "with_confidence"]

_scorers: Any = require("inspect_ai.scorer", caller="calibrant.integrations.inspect")
CONFIDENCE = ("confidence", "probability")


@_scorers.metric(name="calibration", scores="unreduced")  # type: ignore[untyped-decorator]
def calibration() -> Any:
    """SmoothECE with noise floor, interval and p-value, of the confidence in the scores' metadata.

    Samples of several epochs are one question. Scores without a confidence, or without a value, are
    left out and counted as `without_confidence`; "N" (no answer) is counted as `abstained`.

    Examples
    --------
    >>> from inspect_ai.scorer import SampleScore, Score
    >>> scores = [
    ...     SampleScore(score=Score(value=right, metadata={"confidence": sure}))
    ...     for right, sure in [("C", 0.9), ("I", 0.6), ("C", 0.7), ("I", 0.2)]
    ... ]
    >>> 0 < calibration()(scores)["smooth_ece"] < 1
    True
    """

    def compute(scores: Sequence[Any]) -> dict[str, float]:
        right, sure, question = [], [], []
        abstained = missing = 0
        for number, sample in enumerate(scores):
            if sample.score.value == "N":
                abstained += 1
                continue
            confidence = _confidence(sample.score)
            credit = _credit(sample.score.value)
            if confidence is None or credit is None:
                missing += 1
                continue
            right.append(credit)
            sure.append(confidence)
            question.append(str(number) if sample.sample_id is None else str(sample.sample_id))
        counts = {"abstained": float(abstained), "without_confidence": float(missing)}
        if len(right) < 2 or len(set(question)) < 2:
            return {**dict.fromkeys(NUMBERS, nan), **counts}
        repeated = len(set(question)) < len(question)
        soft = any(0.0 < value < 1.0 for value in right)
        return {
            **calibration_scores(
                right,
                sure,
                cluster=question if repeated else None,
                labels="soft" if soft else "binary",
            ),
            **counts,
        }

    return compute


def with_confidence(scorer: Any, *, metrics: Sequence[Any] = ()) -> Any:
    """The scorer, with the confidence that the answer states in the metadata of its score.

    Parameters
    ----------
    scorer : Scorer
        Any of Inspect's, such as `match()`.
    metrics : sequence of Metric
        Besides accuracy and `calibration()`.

    Examples
    --------
    >>> from inspect_ai import Task
    >>> from inspect_ai.dataset import MemoryDataset, Sample
    >>> from inspect_ai.scorer import match
    >>> questions = MemoryDataset([Sample("What is 2 + 2? Say how sure you are.", target="4")])
    >>> task = Task(questions, scorer=with_confidence(match()))
    """

    @_scorers.scorer(  # type: ignore[untyped-decorator]
        metrics=[_scorers.accuracy(), calibration(), *metrics], name="with_confidence"
    )
    def wrapped() -> Any:
        async def score(state: Any, target: Any) -> Any:
            found = await scorer(state, target)
            stated = stated_confidence(state.output.completion or "")
            metadata = {**(found.metadata or {})}
            metadata.setdefault("confidence", stated)
            return found.model_copy(update={"metadata": metadata})

        return score

    return wrapped()


def _confidence(score: Any) -> float | None:
    metadata = score.metadata or {}
    for name in CONFIDENCE:
        if metadata.get(name) is not None:
            value = Values(lenient=True).confidence(metadata[name])
            return value if value is not None and isfinite(value) else None
    return None


def _credit(value: Any) -> float | None:
    try:
        return as_credit(value)
    except InputError:
        return None
