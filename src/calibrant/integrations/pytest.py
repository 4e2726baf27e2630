"""Assertion on calibration for the tests of a model, which pytest discovers as a fixture of that name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Unpack

from calibrant._arguments import CONFIDENCE, require_choice
from calibrant._format import decimals
from calibrant._optional import find

if TYPE_CHECKING:  # pytest loads this module whenever it starts
    from calibrant.data.rows import InputOptions
    from calibrant.inference.assessment import Assessment

__all__ = ["assert_calibrated"]


def assert_calibrated(
    y_true: Any,
    y_prob: Any = None,
    *,
    margin: float,
    cluster: Any = None,
    confidence: float = CONFIDENCE,
    inconclusive: Literal["fail", "pass"] = "fail",
    **options: Unpack[InputOptions],
) -> Assessment:
    """Pass if the calibration error is shown to be within a margin; else raise AssertionError.

    Parameters
    ----------
    y_true, y_prob, cluster, confidence, **options
        As in `calibrant.assess`.
    margin : float
        The largest SmoothECE that is acceptable. Below the noise floor of the sample nothing can be
        shown: `calibrant.required_n` says how many rows a margin takes.
    inconclusive : {"fail", "pass"}
        What happens where the interval holds the margin: too few rows to tell.

    Returns
    -------
    Assessment
        What was found, for further assertions.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.random.default_rng(0).random(5000)
    >>> y = np.random.default_rng(1).random(5000) < p
    >>> assert_calibrated(y, p, margin=0.05).decision
    'within'
    >>> assert_calibrated(y, p / 2, margin=0.05)
    Traceback (most recent call last):
    ...
    AssertionError: SmoothECE is beyond the margin 0.05: 0.2487, 95% interval 0.2302 to 0.2611, ...
    """
    from calibrant.inference.assess import assess

    require_choice("inconclusive", inconclusive, ("fail", "pass"))
    assessment = assess(
        y_true, y_prob, cluster=cluster, margin=margin, confidence=confidence, **options
    )
    if assessment.decision == "within" or (
        assessment.decision != "beyond" and inconclusive == "pass"
    ):
        return assessment
    place = "is beyond" if assessment.decision == "beyond" else "is not shown to be within"
    raise AssertionError(
        f"SmoothECE {place} the margin {margin:g}: {decimals(assessment.smooth_ece)}, "
        f"{100 * confidence:g}% interval {decimals(assessment.interval.low)} to "
        f"{decimals(assessment.interval.high)}, noise floor "
        f"{decimals(assessment.noise_floor.value)}, n = {assessment.n:,}"
    )


_pytest = find("pytest")
if _pytest is not None:

    @_pytest.fixture(name="assert_calibrated")  # type: ignore[untyped-decorator]
    def _assert_calibrated() -> Callable[..., Assessment]:
        """`calibrant.integrations.pytest.assert_calibrated`, for tests that import nothing."""
        return assert_calibrated
