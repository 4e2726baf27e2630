"""SmoothECE: the calibration error smoothed at the bandwidth that equals it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrant._arguments import require_number
from calibrant.data.rows import InputOptions, Rows, as_rows
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import InputError, show_value
from calibrant.io.from_data import sample_from
from calibrant.io.scan import ReadingOptions
from calibrant.measures.result_record import Record, rows_text
from calibrant.smoothing.residuals import LineResiduals, RowResiduals, SketchResiduals
from calibrant.smoothing.spectrum import SMALLEST_BANDWIDTH, Residuals, evaluate, solve

TOLERANCE = 1e-7
"""Of the numerical error: far below the noise of millions of rows."""
LARGEST_BANDWIDTH = 1e6
"""On any scale the smoothed residual is level long before."""


@dataclass(frozen=True)
class Certificate:
    """Bound on the error of a SmoothECE, term by term.

    All terms are proved, that of float arithmetic too, if the machine's sines, cosines and exponentials
    are right within two units in the last place. For a scale of your own the slopes of its map are found
    by sampling.

    Attributes
    ----------
    total : float
        The exact value lies within this of the one given. At most 1, as both are: a certificate near 1
        says that the grid is too coarse for the bandwidth to tell anything.
    binning : float
        What the grid costs (see `calibrant.smoothing.spectrum.Spectrum`).
    quadrature : float
        What integrating |r| on a mesh costs, bounded once the integral is known.
    rounding : float
        Float arithmetic, and the coefficients left out.
    solver : float
        Distance between the bandwidth and the error found there: smECE_σ falls with σ, so the fixed
        point lies between them.

    Examples
    --------
    >>> smooth_ece_result([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9]).certificate.total < 1e-6
    True
    """

    total: float
    binning: float
    quadrature: float
    rounding: float
    solver: float


@dataclass(frozen=True, repr=False)
class SmoothECE(Record):
    """SmoothECE with its bandwidth and a bound on its numerical error.

    Attributes
    ----------
    value : float
        smECE at the bandwidth.
    bandwidth : float
        σ*, where it was solved for; otherwise the one that was asked for.
    certificate : Certificate
        Bound on the numerical error of `value`, term by term.
    evaluations : int
        How many bandwidths were tried.
    n : int
        Rows; `dropped` counts by reason those that were left out.
    scale : str
        The scale on which the smoothing was done.

    Examples
    --------
    >>> result = smooth_ece_result([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> float(result) == result.value == result.bandwidth
    True
    """

    value: float
    bandwidth: float
    certificate: Certificate
    evaluations: int
    n: int
    dropped: Mapping[str, int]
    scale: str

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        return (
            f"SmoothECE({self.value:.9f} ± {self.certificate.total:.1e}, "
            f"bandwidth={self.bandwidth:.6g}, {rows_text(self.n, self.dropped)}"
            + (f", scale={self.scale!r}" if self.scale != PROBABILITY.name else "")
            + ")"
        )

    def _repr_html_(self) -> str:
        return (
            f"<b>SmoothECE {self.value:.6f}</b> ± {self.certificate.total:.1e}, "
            f"bandwidth {self.bandwidth:.4g}, n = {self.n}"
        )


def smooth_ece(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    bandwidth: float | None = None,
    scale: str | Scale | None = None,
    tolerance: float = TOLERANCE,
    **options: Unpack[ReadingOptions],
) -> float:
    """SmoothECE: the calibration error smoothed at the bandwidth that equals it, without hyperparameters.

    Parameters
    ----------
    y_true : array or Sketch
        Outcomes, 0 or 1; or a Sketch, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true` and `y_prob` then name columns.
    bandwidth : float, optional
        Evaluate smECE there. By default it is the fixed point σ* = smECE_σ*, which is what
        "SmoothECE" means.
    scale : str or Scale, default "probability"
        Where the smoothing happens.
    tolerance : float
        From arrays, the grid is refined until the certificate is at most this. A Sketch cannot be
        refined; `smooth_ece_result` says how accurate the value is.
    **options
        How to read the arrays: `sample_weight`, `pos_label`, `from_logits`, `from_logprobs`, `percent`,
        `labels`, `on_invalid`, `multiclass`, `classes` (see `calibrant.data.InputOptions`).

    Returns
    -------
    float
        Within a constant and a square root of the distance to the nearest calibrated predictor:
        ½ dCE ≤ smECE ≤ 2 √dCE, as the theory page lists.

    Notes
    -----
    On a finite sample even a calibrated predictor has SmoothECE above 0: about .04 with 500 rows and
    .02 with 5,000. `calibrant.assess` gives that noise floor, an interval and a test.

    References
    ----------
    Błasiok and Nakkiran, *Smooth ECE*, ICLR 2024.

    Examples
    --------
    >>> round(smooth_ece([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9]), 9)
    0.149130477
    >>> round(smooth_ece([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], bandwidth=0.01), 9)
    0.25
    """
    return smooth_ece_result(
        y_true,
        y_prob,
        data=data,
        bandwidth=bandwidth,
        scale=scale,
        tolerance=tolerance,
        **options,
    ).value


def smooth_ece_result(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    bandwidth: float | None = None,
    scale: str | Scale | None = None,
    tolerance: float = TOLERANCE,
    **options: Unpack[ReadingOptions],
) -> SmoothECE:
    """SmoothECE with its bandwidth and a bound on the numerical error.

    Parameters
    ----------
    y_true, y_prob, data, bandwidth, scale, tolerance, **options
        As for `smooth_ece`.

    Returns
    -------
    SmoothECE
        The value, its bandwidth and certificate, the rows, and those that were left out.

    Examples
    --------
    >>> result = smooth_ece_result([0, 0, 1, 1], [0.1, 0.6, 0.6, 0.9])
    >>> round(result.value, 6), round(result.bandwidth, 6), result.n
    (0.09265, 0.09265, 4)
    """
    reading: InputOptions = options
    if data is not None:
        y_true, y_prob, _, reading = sample_from(data, y_true, y_prob, options, scale=scale)
    require_number("tolerance", tolerance, 0.0)
    if bandwidth is not None:
        require_number("bandwidth", bandwidth, 0.0)
    if scale is not None:
        as_scale(scale, base_rate=0.5)
    residuals: Residuals
    if isinstance(y_true, Sketch):
        rows: Sketch | Rows = as_sketch(y_true, y_prob, scale=scale, **reading)
        chosen = y_true.scale
        residuals = SketchResiduals(y_true, bandwidth)
    else:
        rows = as_rows(y_true, y_prob, **reading)
        if scale is None or scale in (PROBABILITY, PROBABILITY.name):
            chosen = PROBABILITY
            residuals = RowResiduals(rows, bandwidth)
        else:
            rows.require_valid()
            chosen = as_scale(scale, base_rate=rows.base_rate)
            residuals = LineResiduals(rows, chosen, bandwidth)
    if bandwidth is None:
        fixed = solve(residuals, tolerance=tolerance)
        last, evaluations = fixed.last, fixed.evaluations
        value, total, width = fixed.value, fixed.certificate, fixed.value
        solver = abs(last.value - last.bandwidth)
    else:
        width = _require_bandwidth(bandwidth, residuals.length)
        last = evaluate(residuals, width, tolerance=tolerance)
        value, evaluations, solver = last.value, 1, 0.0
        total = min(last.error, max(value, 1.0 - value))
    terms = np.minimum(
        [last.interpolation + last.inherent, last.quadrature, last.rounding, solver], 1.0
    )
    return SmoothECE(
        value=value,
        bandwidth=width,
        certificate=Certificate(total, *terms.tolist()),
        evaluations=evaluations,
        n=rows.n,
        dropped=rows.dropped,
        scale=chosen.name,
    )


def _require_bandwidth(bandwidth: float, length: float) -> float:
    """A mesh has some points to a bandwidth, over the whole length of a scale: it must end somewhere."""
    smallest = SMALLEST_BANDWIDTH * min(length, 1e9)
    if not smallest <= float(bandwidth) <= LARGEST_BANDWIDTH:
        message = (
            f"`bandwidth` must lie between {smallest:.2g} and {LARGEST_BANDWIDTH:g} here; got "
        )
        raise InputError(f"{message}{show_value(bandwidth)}.")
    return float(bandwidth)
