"""SmoothECE: the calibration error smoothed at the bandwidth that equals it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

import numpy as np

from calibrant._arguments import is_number
from calibrant.data.atoms import Atoms
from calibrant.data.dropped import Dropped
from calibrant.data.pairs import InputOptions, Pairs, as_pairs
from calibrant.data.scales import PROBABILITY, Scale, as_scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import InputError
from calibrant.measures.record import rows_text
from calibrant.smoothing.fixed_point import SMALLEST_BANDWIDTH, START, solve
from calibrant.smoothing.line import Line
from calibrant.smoothing.nodes import masses_of, residuals_of_rows
from calibrant.smoothing.spectrum import Evaluation, Spectrum

__all__ = ["Certificate", "SmoothECE", "smooth_ece", "smooth_ece_result", "spectrum_of"]

TOLERANCE = 1e-7
LARGEST_BANDWIDTH = 1e6
ROWS_WORTH_A_SKETCH = 1 << 19
GRIDS = (1 << 13, 1 << 16, 1 << 18, 1 << 20)
NARROW = 0.02
"""Rows closer together than this have small bandwidths, for which [0, 1] would be a waste of mesh."""
CELLS_PER_BANDWIDTH = 16
"""Fewer leave an error of the order of 1e-6: a grid with less is not worth its transform."""


@dataclass(frozen=True)
class Certificate:
    """A bound on the error of a SmoothECE, term by term.

    All terms are proved but one: for float arithmetic `rounding` holds the customary bound on fast
    transforms, a few roundings per stage, rather than a proof for the transform in use. It is about
    1e-14, far below the others. For a scale of your own the slopes of its map are found by sampling.

    Attributes
    ----------
    total : float
        The exact value lies within this of the one given. At most 1, as both are: a certificate near 1
        says that the grid is too coarse for the bandwidth to tell anything.
    binning : float
        What the grid costs (see `calibrant.smoothing.nodes.BinningError`). Proved.
    quadrature : float
        What integrating |r| on a mesh costs. Proved, after the integral is known.
    rounding : float
        Float arithmetic, by the customary bound, and the coefficients left out, which is proved.
    solver : float
        Distance between the bandwidth and the error found there: smECE_σ falls with σ, so the fixed
        point lies between them. Proved.
    """

    total: float
    binning: float
    quadrature: float
    rounding: float
    solver: float


@dataclass(frozen=True)
class SmoothECE:
    """A SmoothECE with its bandwidth and a bound on its numerical error.

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

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON."""
        out = {**vars(self), "dropped": dict(self.dropped)}
        return {**out, "certificate": asdict(self.certificate)}

    def _repr_html_(self) -> str:
        return (
            f"<b>SmoothECE {self.value:.6f}</b> ± {self.certificate.total:.1e}, "
            f"bandwidth {self.bandwidth:.4g}, n = {self.n}"
        )


def smooth_ece(
    y_true: Any,
    y_prob: Any = None,
    *,
    bandwidth: float | None = None,
    scale: str | Scale | None = None,
    tolerance: float = TOLERANCE,
    **options: Unpack[InputOptions],
) -> float:
    """How far the predictions are from being calibrated, as one number without hyperparameters.

    Parameters
    ----------
    y_true : array or Sketch
        Outcomes, 0 or 1; or a Sketch, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    bandwidth : float, optional
        Evaluate smECE there. By default it is the fixed point σ* = smECE_σ*, which is what
        "SmoothECE" means.
    scale : str or Scale, default "probability"
        Where the smoothing happens.
    tolerance : float
        From arrays, the grid is refined until the certificate is at most this. A Sketch cannot be
        refined; `smooth_ece_result` says how accurate the value is.
    **options
        How to read the arrays: `sample_weight`, `pos_label`, `from_logits`, `percent`, `labels`,
        `on_invalid` (see `InputOptions`).

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
        y_true, y_prob, bandwidth=bandwidth, scale=scale, tolerance=tolerance, **options
    ).value


def smooth_ece_result(
    y_true: Any,
    y_prob: Any = None,
    *,
    bandwidth: float | None = None,
    scale: str | Scale | None = None,
    tolerance: float = TOLERANCE,
    **options: Unpack[InputOptions],
) -> SmoothECE:
    """As `smooth_ece`, with the bandwidth and a bound on the numerical error.

    Parameters
    ----------
    y_true, y_prob, bandwidth, scale, tolerance, **options
        As for `smooth_ece`.

    Returns
    -------
    SmoothECE
        The value, its bandwidth and certificate, the rows, and those that were left out.

    Examples
    --------
    >>> smooth_ece_result([0, 0, 1, 1], [0.1, 0.6, 0.6, 0.9])
    SmoothECE(0.092650129 ± ..., bandwidth=0.0926501, n=4)
    """
    _require_positive("tolerance", tolerance)
    if bandwidth is not None:
        _require_positive("bandwidth", bandwidth)
    if scale is not None:
        as_scale(scale, base_rate=0.5)
    if isinstance(y_true, Sketch):
        sketch = as_sketch(y_true, y_prob, scale=scale, **options)
        return _measured(spectrum_of(sketch), sketch, bandwidth, tolerance)
    pairs = as_pairs(y_true, y_prob, **options)
    if scale is not None and scale not in (PROBABILITY, PROBABILITY.name):
        return _measured_on_line(pairs, scale, bandwidth, tolerance)
    return _measured_from_rows(pairs, bandwidth, tolerance)


def _measured_from_rows(pairs: Pairs, bandwidth: float | None, tolerance: float) -> SmoothECE:
    """The cheapest grid first, a finer one while the certificate exceeds the tolerance.

    Many rows go through a sketch first: it reads them with every check at twice the speed of laying
    each row onto four nodes, and is usually enough. Rows in a small part of [0, 1] have a line of their
    own.
    """
    grids: tuple[int, ...] = GRIDS
    if pairs.n > ROWS_WORTH_A_SKETCH:
        sketch = Sketch.from_pairs(pairs)
        result = _measured(spectrum_of(sketch), sketch, bandwidth, tolerance)
        if result.certificate.total <= tolerance:
            return result
        grids = GRIDS[1:]
    pairs.require_valid()
    if bandwidth is None and float(np.ptp(pairs.p)) < NARROW:
        return _measured_on_line(pairs, PROBABILITY, bandwidth, tolerance)
    for nodes in grids:
        spectrum = Spectrum.of_residuals(*residuals_of_rows(pairs, nodes))
        result = _measured(spectrum, pairs, bandwidth, tolerance)
        between = _calibrated(pairs, result, bandwidth, tolerance)
        if between is not None:
            return between
    return result


def _calibrated(
    pairs: Pairs, result: SmoothECE, bandwidth: float | None, tolerance: float
) -> SmoothECE | None:
    """The result where it is accurate enough, or where residuals cancel wherever rows meet.

    In that case the value lies between the absolute mean of the residuals and the sum of their absolute
    sums, prediction by prediction: no kernel, on any scale, makes the former smaller or the latter
    larger.
    """
    if result.certificate.total <= tolerance:
        return result
    if bandwidth is not None or result.value > SMALLEST_BANDWIDTH + result.certificate.total:
        return None
    residuals = Atoms.from_pairs(pairs).residuals
    low, high = abs(float(residuals.sum())), float(np.abs(residuals).sum())
    if high > max(SMALLEST_BANDWIDTH, 2.0 * tolerance):
        return None
    value, half = 0.5 * (low + high), 0.5 * (high - low)
    rounding = float(np.finfo(float).eps) * (4.0 + pairs.n)
    proved = Certificate(half + rounding, 0.0, 0.0, rounding, half)
    return replace(result, value=value, bandwidth=value, certificate=proved)


def _measured_on_line(
    pairs: Pairs, scale: str | Scale, bandwidth: float | None, tolerance: float
) -> SmoothECE:
    """The grid fits the data: no longer than the bandwidth needs, and finer where that is not enough."""
    pairs.require_valid()
    chosen = as_scale(scale, base_rate=pairs.base_rate)
    if chosen == PROBABILITY and scale is not PROBABILITY:
        return _measured_from_rows(pairs, bandwidth, tolerance)
    line = Line(pairs, chosen, START if bandwidth is None else bandwidth)
    if bandwidth is None:
        line.narrow(max(line.absolute, SMALLEST_BANDWIDTH))  # no fixed point lies beyond
    enough = 0.0
    for nodes in GRIDS:
        if nodes < min(enough, GRIDS[-1]):
            continue
        result = _measured(line.spectrum(nodes), pairs, bandwidth, tolerance, line.widest)
        result = replace(result, scale=chosen.name)
        between = _calibrated(pairs, result, bandwidth, tolerance)
        if between is not None:
            return between
        most = result.bandwidth + result.certificate.total
        if bandwidth is None and most < 0.25 * line.widest:
            line.narrow(2.0 * most)
        if result.certificate.total < 0.5 * result.bandwidth:  # then its size is known
            enough = CELLS_PER_BANDWIDTH * line.length / result.bandwidth
    return result


def spectrum_of(sketch: Sketch) -> Spectrum:
    """The cosine spectrum of a sketch's residuals."""
    masses = masses_of(sketch)
    return Spectrum.of_residuals(masses.residual(), masses.error, sketch.scale.length)


def _measured(
    spectrum: Spectrum,
    data: Sketch | Pairs,
    bandwidth: float | None,
    tolerance: float,
    widest: float = np.inf,
) -> SmoothECE:
    seen: Evaluation
    if bandwidth is None:
        found = solve(spectrum, tolerance=tolerance, widest=widest)
        value, total, seen, evaluations = (
            found.value,
            found.certificate,
            found.last,
            found.evaluations,
        )
        solver, width = abs(seen.value - seen.bandwidth), value
    else:
        _require_bandwidth(bandwidth, spectrum.length)
        seen = spectrum.evaluate(float(bandwidth), tolerance=tolerance / 8)
        value, evaluations, solver = seen.value, 1, 0.0
        total = min(seen.error, max(value, 1.0 - value))
        width = float(bandwidth)
    terms = (seen.binning, seen.quadrature, seen.rounding, solver)
    return SmoothECE(
        value=value,
        bandwidth=width,
        certificate=Certificate(total, *(min(term, 1.0) for term in terms)),
        evaluations=evaluations,
        n=data.n,
        dropped=Dropped(data.dropped),
        scale=data.scale.name if isinstance(data, Sketch) else PROBABILITY.name,
    )


def _require_bandwidth(bandwidth: float, length: float = 1.0) -> None:
    """A mesh has some points to a bandwidth, over the whole length of a scale: it must end somewhere."""
    _require_positive("bandwidth", bandwidth)
    smallest = SMALLEST_BANDWIDTH * min(length, 1e9)
    if not smallest <= float(bandwidth) <= LARGEST_BANDWIDTH:
        raise InputError(
            f"`bandwidth` must lie between {smallest:.2g} and {LARGEST_BANDWIDTH:g} here; got "
            f"{bandwidth!r}. Leave it out to measure at the bandwidth that equals the error."
        )


def _require_positive(name: str, value: float) -> None:
    if not (is_number(value) and 0 < float(value) < np.inf):
        raise InputError(f"`{name}` must be a positive number; got {value!r}.")
