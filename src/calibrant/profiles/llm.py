"""Language model profile: accuracy, calibration and selective prediction."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_count
from calibrant._format import decimals
from calibrant.data.points import Points
from calibrant.data.sketches import Stacked
from calibrant.decisions.ranking import rank_rows, rank_sketch
from calibrant.decisions.selective import selective_of
from calibrant.errors import TooFewRows
from calibrant.inference.profile import Profile, Quantity, Sample, Unavailable, profile
from calibrant.profiles.scores import event_rate

BIN_ROWS = 100
"""Answers to a bin in the calibration error of Humanity's Last Exam."""
HLE = "Phan et al., Humanity's Last Exam, 2025"
SELECTIVE = "Geifman and El-Yaniv, Selective classification for deep neural networks, 2017"


@profile
def llm(*, abstained: int = 0) -> Profile:
    """Language model profile, where `y_true` says whether an answer was right.

    Pass the question as `cluster`: its answers depend on each other.

    Parameters
    ----------
    abstained : int
        Questions that the model declined, as `read_answers(...).abstained` counts them.

    Returns
    -------
    Profile
        Accuracy; SmoothECE with its noise floor; the calibration error of Humanity's Last Exam as its
        code computes it and with all bins; over-confidence; AURC, its excess and AUGRC; coverage.

    Examples
    --------
    >>> import calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(900)
    >>> y = rng.random(900) < 0.3 + 0.5 * p
    >>> found = cal.assess(y, p, cluster=np.arange(900) // 3, profile="llm")
    >>> bool(np.isclose(found.profile["accuracy"].value, y.mean()))
    True
    """
    require_count("abstained", abstained, least=0)
    return Profile(
        "llm",
        {
            "accuracy": _accuracy,
            "SmoothECE": _smooth_ece,
            "over-confidence": _over_confidence,
            "HLE calibration error": _hle,
            "risk-coverage": partial(_risk_coverage, abstained=int(abstained)),
            "coverage": partial(_coverage, abstained=int(abstained)),
        },
    )


def _accuracy(sample: Sample) -> Quantity:
    """Share of right answers."""
    return event_rate(sample, "accuracy")


def _over_confidence(sample: Sample) -> Quantity:
    """Mean confidence less accuracy."""
    return sample.mean("over-confidence", sample.p - sample.y, note="mean confidence less accuracy")


def _smooth_ece(sample: Sample) -> Quantity:
    """SmoothECE with its noise floor."""
    found = sample.assessment
    return Quantity(
        "SmoothECE",
        found.smooth_ece,
        found.interval.low,
        found.interval.high,
        found.p_value,
        source="Blasiok and Nakkiran, Smooth ECE, 2023",
        note=f"noise floor {decimals(found.noise_floor.value)}: what a calibrated model would show",
    )


def _hle(sample: Sample) -> list[Quantity]:
    """Calibration error of Humanity's Last Exam, as its code computes it and with all bins."""
    points = sample.points
    if points.n < BIN_ROWS:
        raise Unavailable(f"needs at least {BIN_ROWS} answers; there are {points.n}")
    if sample.fractional:
        raise Unavailable("is not defined for weights or partial credit")
    published, whole = (rank_bin_rms(points, last_bin=last) for last in (False, True))
    return [
        Quantity(
            "HLE calibration error, as published",
            published,
            source=HLE,
            note="the published code leaves out the last bin, the most confident answers",
        ),
        Quantity("HLE calibration error, all bins", whole, source=HLE),
    ]


def rank_bin_rms(points: Points, *, rows: int = BIN_ROWS, last_bin: bool = True) -> float:
    """Root mean squared gap between confidence and accuracy over bins of equally many rows.

    Rows are ranked by confidence and cut into bins of `rows`; the last one takes the rest. Rows that tie
    across an edge are shared out in proportion.

    Examples
    --------
    >>> from calibrant.data.points import as_points
    >>> points = as_points([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8])
    >>> round(rank_bin_rms(points, rows=2), 3), round(rank_bin_rms(points, rows=2, last_bin=False), 3)
    (0.2, 0.141)
    """
    bins = int(points.total) // rows
    if bins < 1:
        raise TooFewRows(f"This figure needs at least {rows} rows; there are {points.n}.")
    edges = np.append(np.arange(bins) * float(rows), points.total)
    weight, events, predictions = (
        np.interp(edges, points.cumulative[:, 0], points.cumulative[:, column])
        for column in range(3)
    )
    counts: NDArray[np.float64] = np.diff(weight)
    gaps = (np.diff(predictions) - np.diff(events)) / counts
    used = slice(None) if last_bin else slice(bins - 1)
    return float(np.sqrt((counts[used] * gaps[used] ** 2).sum() / points.total))


def _risk_coverage(sample: Sample, *, abstained: int) -> list[Quantity]:
    """AURC, its excess, and AUGRC."""
    if sample.rows is not None:
        ranking = rank_rows(sample.rows, sample.clusters)
    else:
        ranking = rank_sketch(sample.sketch, Stacked.of(sample.parts) if sample.parts else None)
    found = selective_of(ranking, abstained=abstained, confidence=sample.confidence)
    own, generalised = found.aurc_interval, found.augrc_interval
    return [
        Quantity("AURC", found.aurc, own.low, own.high, source=SELECTIVE),
        Quantity(
            "excess AURC",
            found.excess_aurc,
            source="Geifman, Uziel and El-Yaniv, Bias-reduced uncertainty estimation, 2019",
        ),
        Quantity(
            "AUGRC",
            found.augrc,
            generalised.low,
            generalised.high,
            source="Traub et al., Overcoming common flaws in selective classification, 2024",
        ),
    ]


def _coverage(sample: Sample, *, abstained: int) -> Quantity:
    """Share of the cases that were answered."""
    found = sample.assessment
    dropped = sum(found.dropped.values())
    left_out = [
        f"{number:,} {what}{'' if number == 1 else 's'}"
        for number, what in ((abstained, "abstention"), (dropped, "dropped answer"))
        if number
    ]
    note = " and ".join(left_out)
    return Quantity(
        "coverage",
        found.n / (found.n + abstained + dropped),
        note=note or "no abstentions were counted",
    )
