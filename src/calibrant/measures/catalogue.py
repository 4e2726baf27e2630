"""Registry of all measures: one line for each, with what it misses; and any measure for many classes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, Unpack, get_args

import numpy as np

from calibrant._arguments import require_choice
from calibrant._format import aligned, html_table
from calibrant.data.classes import ClassOptions, classwise, confidence, top_label
from calibrant.data.points import Points
from calibrant.data.rows import InputOptions, Rows
from calibrant.data.sketch import Sketch, as_sample
from calibrant.errors import CalibrantError, InputError, invalid, show_value
from calibrant.io.from_data import sample_from
from calibrant.io.scan import ReadingOptions
from calibrant.measures.binned import (
    bounded_ece,
    cross_validated_ece,
    debiased_ece,
    sweep_ece,
    t_cal_statistic,
)
from calibrant.measures.cumulative import ecce_mad, ecce_range, spline_ks_error, truthful_atb
from calibrant.measures.distance import (
    MOST_INTERVALS,
    distance_to_calibration_result,
    interval_calibration_error,
)
from calibrant.measures.isotonic import miscalibration
from calibrant.measures.kernel import kde_ece, kernel_calibration_error, mmce
from calibrant.measures.result_record import Bounded, Record, bound_text, frame_of, rows_text
from calibrant.measures.smooth_ece import smooth_ece, smooth_ece_result
from calibrant.measures.weak_error import weak_calibration_error_result


@dataclass(frozen=True, repr=False)
class Measured(Record):
    """Line of the table.

    Attributes
    ----------
    name : str
        Name of the measure.
    value, error : float
        The value, and a proved bound on its numerical error (not a sampling error): 0 from arrays but
        where a grid is used; NaN from a sketch where only the width of its cells, 2⁻¹⁶, is known. Both
        NaN where the measure does not apply: `misses` then says why.
    seconds : float
        What it cost, after the sort that most of them share.
    misses : str
        What it does not see, or where it misleads.
    """

    name: str
    value: float
    error: float
    seconds: float
    misses: str

    def __repr__(self) -> str:
        bound = bound_text(self.error)
        return f"Measured({self.name} = {self.value:.6g} {bound}, {self.seconds:.2g} s)"


@dataclass(frozen=True, repr=False)
class Measures(Record):
    """Measures of one set of predictions, in the order asked for.

    Index it by name; iterate over its lines; `str()` is a table.

    Attributes
    ----------
    lines : tuple of Measured
        One for each measure.
    n : int
        Rows; `dropped` counts by reason those that were left out.

    Examples
    --------
    >>> measures = measure_all([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> round(measures["smooth_ece"].value, 3)
    0.149
    """

    lines: tuple[Measured, ...]
    n: int
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Measured:
        for line in self.lines:
            if line.name == name:
                return line
        there = ", ".join(line.name for line in self.lines)
        raise KeyError(f"{name!r} is not among the measures taken: {there}; `which` says which are")

    def __iter__(self) -> Iterator[Measured]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        measures = [line.to_dict() for line in self.lines]
        return {"n": self.n, "dropped": dict(self.dropped), "measures": measures}

    def to_frame(self, backend: Any = None) -> Any:
        """Data frame with a row for each measure."""
        return frame_of([line.to_dict() for line in self.lines], backend)

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            ("measure", "value", "error", "cost", "misses"),
            *(
                (
                    m.name,
                    f"{m.value:.6g}",
                    bound_text(m.error),
                    f"{1e3 * m.seconds:.2f} ms",
                    m.misses,
                )
                for m in self.lines
            ),
        ]

    def __repr__(self) -> str:
        return f"<{len(self.lines)} measures, {rows_text(self.n, self.dropped)}>"

    def __str__(self) -> str:
        table = aligned(self._rows(), left=(0, 2, 4))
        return f"{table}\n{rows_text(self.n, self.dropped)}"

    def _repr_html_(self) -> str:
        return f"{html_table(self._rows())}<p>{rows_text(self.n, self.dropped)}</p>"


def _smooth_ece(rows: Rows | Sketch) -> Bounded:
    result = smooth_ece_result(rows)
    return Bounded(result.value, result.certificate.total)


def _weak(points: Points) -> Bounded:
    result = weak_calibration_error_result(points)
    return Bounded(result.value, result.error)


def _distance(points: Points) -> Bounded:
    result = distance_to_calibration_result(points, nodes=500)
    return Bounded(result.value, max(result.high - result.value, result.value - result.low))


def _interval(points: Points) -> float | Bounded:
    value = interval_calibration_error(points)
    return value if points.p.size <= MOST_INTERVALS else Bounded(value, math.nan)


def _t_cal(points: Points) -> float:
    return float(t_cal_statistic(points, points.mass[None, :, 1], 16)[0])


class Entry(NamedTuple):
    """Measure of the catalogue: a function of points, or of rows as they came; a float has no error."""

    measure: Callable[[Any], float | Bounded]
    misses: str
    of_rows: bool = False


MEASURES: dict[str, Entry] = {
    "smooth_ece": Entry(_smooth_ece, "errors finer than its own bandwidth", of_rows=True),
    "weak_calibration_error": Entry(_weak, "has no diagram; fast wiggles weigh little"),
    "debiased_ece": Entry(debiased_ece, "jumps at bin edges; what cancels inside a bin is lost"),
    "kernel_calibration_error": Entry(
        kernel_calibration_error, "square-root scale; above 0 from noise alone"
    ),
    "ecce_range": Entry(
        ecce_range, "weighs by rank, so sparse regions hardly count; has a p-value"
    ),
    "miscalibration": Entry(
        miscalibration, "in units of the Brier score; maps that decrease are not seen"
    ),
    "distance_to_calibration": Entry(_distance, "a linear program; only bounds on a grid"),
    "binned_ece": Entry(bounded_ece, "grows with the number of bins; jumps at edges"),
    "binned_ece_mass": Entry(
        partial(bounded_ece, strategy="quantile"), "grows with the number of bins"
    ),
    "binned_rms": Entry(partial(bounded_ece, norm="l2"), "as binned_ece; large gaps dominate"),
    "binned_max": Entry(partial(bounded_ece, norm="max"), "the emptiest bin decides"),
    "sweep_ece": Entry(sweep_ece, "one disorder by chance stops the sweep"),
    "cross_validated_ece": Entry(cross_validated_ece, "as binned_ece, with chosen bins"),
    "mmce": Entry(mmce, "above 0 from noise alone"),
    "kernel_rbf": Entry(
        partial(kernel_calibration_error, kernel="rbf", bandwidth=0.2),
        "not consistent: fast wiggles vanish exponentially",
    ),
    "interval_calibration_error": Entry(
        _interval, "an upper bound of the distance, up to twice its root"
    ),
    "ecce_mad": Entry(ecce_mad, "weighs by rank; opposite errors far apart cancel"),
    "truthful_atb": Entry(truthful_atb, "squared units; opposite errors may cancel"),
    "kde_ece": Entry(kde_ece, "about the bandwidth even for calibrated predictions"),
    "spline_ks_error": Entry(spline_ks_error, "six knots: local errors are smoothed away"),
    "t_cal": Entry(_t_cal, "squared units, may be negative; a test, not a distance"),
}
RECOMMENDED = tuple(MEASURES)[:6]


def measure_all(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    which: Literal["recommended", "all"] | Sequence[str] = "recommended",
    **options: Unpack[ReadingOptions],
) -> Measures:
    """Many measures of the same predictions in one table.

    Parameters
    ----------
    y_true : array or Sketch
        Outcomes, 0 or 1; or a Sketch, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true` and `y_prob` then name columns.
    which : {"recommended", "all"} or list of str
        Six, all, or those named.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Examples
    --------
    >>> table = measure_all([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> [line.name for line in table][:2]
    ['smooth_ece', 'weak_calibration_error']
    >>> round(table["smooth_ece"].value, 4)
    0.1491
    """
    reading: InputOptions = options
    if data is not None:
        y_true, y_prob, _, reading = sample_from(data, y_true, y_prob, options)
    names = _chosen(which)
    rows = as_sample(y_true, y_prob, **reading)
    points = Points.of(rows)
    lines = tuple(_line(name, rows, points) for name in names)
    return Measures(lines, points.n, points.dropped)


def _chosen(which: Any) -> Sequence[str]:
    groups = {"recommended": RECOMMENDED, "all": tuple(MEASURES)}
    names = groups.get(which, [which]) if isinstance(which, str) else which
    for name in names if isinstance(names, Iterable) else [names]:
        if not isinstance(name, str) or name not in MEASURES:
            message = f'`which` must be "recommended", "all" or names of measures; got {show_value(name)}.'
            hint = f"The names are {', '.join(MEASURES)}."
            raise InputError(message, hint=hint)
    return list(names)


def _line(name: str, rows: Rows | Sketch, points: Points) -> Measured:
    entry = MEASURES[name]
    start = time.perf_counter()
    try:
        found = entry.measure(rows if entry.of_rows else points)
        unknown = 0.0 if points.position_error == 0.0 else math.nan
        value, error = found if isinstance(found, Bounded) else (found, unknown)
        misses = entry.misses
    except CalibrantError as refusal:  # weights where rows are counted, or a program unsolved
        value, error, misses = math.nan, math.nan, str(refusal)
    return Measured(name, value, error, time.perf_counter() - start, misses)


View = Literal["confidence", "top_label", "classwise_mean", "classwise_max"]


def multiclass_error(
    y_true: Any,
    y_prob: Any,
    *,
    view: View = "confidence",
    measure: Callable[[Any], float] = smooth_ece,
    **options: Unpack[ClassOptions],
) -> float:
    """Calibration error of class probabilities, by any measure.

    Parameters
    ----------
    y_true : array
        Class labels.
    y_prob : array of shape (rows, classes)
        Class probabilities, or logits with `from_logits=True`.
    view : {"confidence", "top_label", "classwise_mean", "classwise_max"}
        The largest probability against "was it right?" over all rows; the same apart by predicted
        class, averaged over rows; or one-vs-rest for each class, averaged over classes or the
        largest.
    measure : callable
        Of pairs or of a sketch: any measure of this package.
    **options
        As for `calibrant.confidence`.

    References
    ----------
    Guo et al., 2017 (confidence); Gupta and Ramdas, *Top-label calibration*, 2022; Kull et al.,
    *Beyond temperature scaling*, 2019 (class-wise).

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> round(multiclass_error([0, 2], probs, view="classwise_max"), 3)
    0.35
    """
    if not callable(measure):
        raise invalid("measure", "be a function such as `calibrant.smooth_ece`", measure)
    require_choice("view", view, get_args(View))
    if view == "confidence":
        return measure(confidence(y_true, y_prob, **options))
    read = top_label if view == "top_label" else classwise
    groups = read(y_true, y_prob, **options).values()
    values = [measure(sketch) for sketch in groups]
    if view == "top_label":
        return float(np.average(values, weights=[sketch.total_weight for sketch in groups]))
    return float(np.mean(values) if view == "classwise_mean" else np.max(values))
