"""Sample size for external validation of a risk model by the criteria of Riley et al. (2021)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.special import expit

from calibrant._arguments import require_number, require_share
from calibrant.data.columns import numbers
from calibrant.errors import InputError

__all__ = ["ValidationSize", "validation_size"]

Z = 1.96
"""Of the 95% intervals whose widths are asked for."""


@dataclass(frozen=True)
class ValidationSize:
    """Rows that give each measure the standard error asked for.

    Attributes
    ----------
    observed_expected, slope, c_statistic, net_benefit : int or None
        Rows by each criterion; None where what it needs was not given.
    rows, events : int
        The largest of them, and the events among so many.
    """

    observed_expected: int
    slope: int | None
    c_statistic: int | None
    net_benefit: int | None
    rows: int
    events: int

    def __int__(self) -> int:
        return self.rows

    def to_dict(self) -> dict[str, int | None]:
        """The fields, for JSON."""
        return dict(self.__dict__)


def validation_size(
    prevalence: float,
    *,
    log_odds: Any = None,
    c_statistic: float | None = None,
    sensitivity: float | None = None,
    specificity: float | None = None,
    threshold: float | None = None,
    se_log_oe: float = 0.2 / (2 * Z),
    se_slope: float = 0.2 / (2 * Z),
    se_c: float = 0.1 / (2 * Z),
    se_net_benefit: float = 0.2 / (2 * Z),
) -> ValidationSize:
    """Rows needed to validate a risk model: for O/E, calibration slope, C statistic and net benefit.

    Parameters
    ----------
    prevalence : float
        Expected share of events.
    log_odds : array, optional
        Linear predictors as expected in the validation sample, such as draws from a normal distribution; for
        the slope, whose expected information they give.
    c_statistic : float, optional
        Expected C statistic (Newcombe's variance).
    sensitivity, specificity, threshold : float, optional
        Expected at the risk threshold, for the standardised net benefit.
    se_log_oe, se_slope, se_c, se_net_benefit : float
        Standard errors to reach; by default 95% intervals 0.2 wide, and 0.1 for the C statistic.

    References
    ----------
    Riley et al., Minimum sample size for external validation of a clinical prediction model with a binary
    outcome, Statistics in Medicine 40 (2021).

    Examples
    --------
    >>> validation_size(0.018, se_log_oe=0.051).rows
    20975
    """
    require_share("prevalence", prevalence)
    errors = {"se_log_oe": se_log_oe, "se_slope": se_slope, "se_c": se_c}
    for name, value in {**errors, "se_net_benefit": se_net_benefit}.items():
        require_number(name, value, 1e-6, 10.0)
    oe = math.ceil((1 - prevalence) / (prevalence * se_log_oe**2) - 1e-9)
    found: dict[str, int | None] = {
        "slope": None
        if log_odds is None
        else _rows_for_slope(numbers(log_odds, "log_odds"), se_slope),
        "c_statistic": None,
        "net_benefit": None,
    }
    if c_statistic is not None:
        require_share("c_statistic", c_statistic)
        found["c_statistic"] = _rows_for_c(prevalence, c_statistic, se_c)
    asked = {"sensitivity": sensitivity, "specificity": specificity, "threshold": threshold}
    if any(value is not None for value in asked.values()):
        for name, share in asked.items():
            if share is None:
                raise InputError(
                    f"`{name}` is needed for net benefit, as are `sensitivity`, `specificity` and "
                    "`threshold`.",
                    argument=name,
                )
            require_share(name, share)
        assert sensitivity is not None
        assert specificity is not None
        assert threshold is not None
        weight = (1 - prevalence) / prevalence * threshold / (1 - threshold)
        variance = (
            sensitivity * (1 - sensitivity) / prevalence
            + weight**2 * specificity * (1 - specificity) / (1 - prevalence)
            + weight**2 * (1 - specificity) ** 2 / (prevalence * (1 - prevalence))
        )
        found["net_benefit"] = math.ceil(variance / se_net_benefit**2 - 1e-9)
    rows = max([oe, *(value for value in found.values() if value is not None)])
    return ValidationSize(
        oe,
        found["slope"],
        found["c_statistic"],
        found["net_benefit"],
        rows,
        math.ceil(rows * prevalence),
    )


def _rows_for_slope(log_odds: Any, se: float) -> int:
    """Inverse of the expected information of one row, for the slope given the intercept."""
    risk = expit(log_odds)
    v = risk * (1 - risk)
    a, ab, b = (float((v * log_odds**power).mean()) for power in range(3))
    determinant = a * b - ab * ab
    if not determinant > 0:
        raise InputError("`log_odds` must vary, or there is no slope.", argument="log_odds")
    return math.ceil(a / (se**2 * determinant))


def _rows_for_c(prevalence: float, c: float, se: float) -> int:
    """Smallest n with Newcombe's (2006, method 4) standard error of the C statistic at most `se`."""

    def error(n: float) -> float:
        half = n / 2 - 1
        spread = 1 + half * (1 - c) / (2 - c) + half * c / (1 + c)
        return math.sqrt(c * (1 - c) * spread / (n * n * prevalence * (1 - prevalence)))

    low, high = 1, 2
    while error(high) > se:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if error(middle) > se else (low, middle)
    return high
