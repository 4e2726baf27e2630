"""All measures in one table, each with its cost and what it misses."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, Unpack, get_args

import numpy as np

from calibrant._arguments import require_choice
from calibrant.data.classes import classwise, confidence, top_label
from calibrant.data.points import Points, as_points
from calibrant.data.rows import Dropped, InputOptions, Rows, as_rows
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import CalibrantError, Function, InputError
from calibrant.measures.binned import (
    binned_ece_of_atoms,
    cross_validated_ece_of_atoms,
    debiased_ece_of_atoms,
    sweep_ece_of_atoms,
    t_cal_of_atoms,
)
from calibrant.measures.cumulative import (
    ecce_mad_of_atoms,
    ecce_range_of_atoms,
    spline_ks_of_atoms,
    truthful_atb_of_atoms,
)
from calibrant.measures.distance import distance_to_calibration_result, interval_of_atoms
from calibrant.measures.isotonic import miscalibration_of_atoms
from calibrant.measures.kernel import MMCE_BANDWIDTH, kde_ece_of_atoms, kernel_of_atoms
from calibrant.measures.result_record import Bounded, Record, bound_text
from calibrant.measures.smooth_ece import smooth_ece, smooth_ece_result
from calibrant.measures.weak_error import weak_calibration_result

__all__ = ["MEASURES", "RECOMMENDED", "Measured", "Measures", "measure_all", "multiclass_error"]


@dataclass(frozen=True, repr=False)
class Measured(Record):
    """One line of the table.

    Attributes
    ----------
    name : str
        Name of the measure.
    value, error : float
        What it is, and how far the exact value can lie from it (not a sampling error). Both NaN
        where the measure does not apply: `misses` then says why. The error alone is NaN where a
        sketch leaves no bound.
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
    dropped: Mapping[str, int] = field(default_factory=Dropped)

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

    def __repr__(self) -> str:
        gone = sum(self.dropped.values())
        left_out = f", {gone} rows dropped" if gone else ""
        return f"<{len(self.lines)} measures of {self.n} rows{left_out}>"

    def __str__(self) -> str:
        rows = [
            f"{m.name:<26} {m.value:>11.6g} {bound_text(m.error):<10} {1e3 * m.seconds:>8.2f} ms  {m.misses}"
            for m in self.lines
        ]
        return "\n".join(rows + [f"dropped: {self._left_out()}"] * bool(self.dropped))

    def _left_out(self) -> str:
        return "; ".join(f"{count:,} for {reason}" for reason, count in self.dropped.items())

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><td>{escape(m.name)}</td><td>{m.value:.6g}</td><td>{bound_text(m.error)}</td>"
            f"<td>{1e3 * m.seconds:.2f} ms</td><td>{escape(m.misses)}</td></tr>"
            for m in self.lines
        )
        head = "<tr><th>measure</th><th>value</th><th>error</th><th>cost</th><th>misses</th></tr>"
        note = f"<p>dropped: {escape(self._left_out())}</p>" if self.dropped else ""
        return f"<table>{head}{cells}</table>{note}"


@dataclass(frozen=True)
class _Entry:
    measure: Callable[[Any], Bounded]
    misses: str
    on: Literal["rows", "atoms"] = "atoms"


def _smooth_ece(rows: Rows | Sketch) -> Bounded:
    result = smooth_ece_result(rows)
    return Bounded(result.value, result.certificate.total)


def _weak(atoms: Points) -> Bounded:
    result = weak_calibration_result(atoms)
    return Bounded(result.value, result.error)


def _distance(atoms: Points) -> Bounded:
    result = distance_to_calibration_result(atoms, nodes=500)
    return Bounded(result.value, max(result.high - result.value, result.value - result.low))


MEASURES: dict[str, _Entry] = {
    "smooth_ece": _Entry(_smooth_ece, "errors finer than its own bandwidth", on="rows"),
    "weak_calibration_error": _Entry(_weak, "has no diagram; fast wiggles weigh little"),
    "debiased_ece": _Entry(
        debiased_ece_of_atoms, "jumps at bin edges; what cancels inside a bin is lost"
    ),
    "kernel_calibration_error": _Entry(
        kernel_of_atoms, "square-root scale; above 0 from noise alone"
    ),
    "ecce_range": _Entry(
        ecce_range_of_atoms, "weighs by rank, so sparse regions hardly count; has a p-value"
    ),
    "miscalibration": _Entry(
        miscalibration_of_atoms, "in units of the Brier score; maps that decrease are not seen"
    ),
    "distance_to_calibration": _Entry(_distance, "a linear program; only bounds on a grid"),
    "binned_ece": _Entry(binned_ece_of_atoms, "grows with the number of bins; jumps at edges"),
    "binned_ece_mass": _Entry(
        lambda atoms: binned_ece_of_atoms(atoms, binning="mass"), "grows with the number of bins"
    ),
    "binned_rms": _Entry(
        lambda atoms: binned_ece_of_atoms(atoms, norm="l2"), "as binned_ece; large gaps dominate"
    ),
    "binned_max": _Entry(
        lambda atoms: binned_ece_of_atoms(atoms, norm="max"), "the emptiest bin decides"
    ),
    "sweep_ece": _Entry(sweep_ece_of_atoms, "one disorder by chance stops the sweep"),
    "cross_validated_ece": _Entry(cross_validated_ece_of_atoms, "as binned_ece, with chosen bins"),
    "mmce": _Entry(
        lambda atoms: kernel_of_atoms(atoms, bandwidth=MMCE_BANDWIDTH), "above 0 from noise alone"
    ),
    "kernel_rbf": _Entry(
        lambda atoms: kernel_of_atoms(atoms, kernel="rbf", bandwidth=MMCE_BANDWIDTH),
        "not consistent: fast wiggles vanish exponentially",
    ),
    "interval_calibration_error": _Entry(
        interval_of_atoms, "an upper bound of the distance, up to twice its root"
    ),
    "ecce_mad": _Entry(ecce_mad_of_atoms, "weighs by rank; opposite errors far apart cancel"),
    "truthful_atb": _Entry(truthful_atb_of_atoms, "squared units; opposite errors may cancel"),
    "kde_ece": _Entry(kde_ece_of_atoms, "about the bandwidth even for calibrated predictions"),
    "spline_ks_error": _Entry(spline_ks_of_atoms, "six knots: local errors are smoothed away"),
    "t_cal": _Entry(t_cal_of_atoms, "squared units, may be negative; a test, not a distance"),
}
RECOMMENDED = tuple(MEASURES)[:6]


def measure_all(
    y_true: Any,
    y_prob: Any = None,
    *,
    which: Literal["recommended", "all"] | Sequence[str] = "recommended",
    **options: Unpack[InputOptions],
) -> Measures:
    """Many measures of the same predictions in one table.

    Parameters
    ----------
    y_true : array or Sketch
        Outcomes, 0 or 1; or a Sketch, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    which : {"recommended", "all"} or list of str
        Six, all, or those named.
    **options
        How to read the arrays (see `InputOptions`).

    Examples
    --------
    >>> table = measure_all([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> [line.name for line in table][:2]
    ['smooth_ece', 'weak_calibration_error']
    >>> round(table["smooth_ece"].value, 4)
    0.1491
    """
    names = _chosen(which)
    rows: Rows | Sketch
    if isinstance(y_true, Sketch):
        rows = as_sketch(y_true, y_prob, **options)
    else:
        rows = as_rows(y_true, y_prob, **options)
    atoms = as_points(rows)
    return Measures(tuple(_line(name, rows, atoms) for name in names), atoms.n, atoms.dropped)


def _chosen(which: str | Sequence[str]) -> Sequence[str]:
    if which == "recommended":
        return RECOMMENDED
    if which == "all":
        return tuple(MEASURES)
    if not isinstance(which, Iterable):
        raise InputError(
            'must be "recommended", "all" or names of measures',
            argument="which",
            seen=which,
            cure="The names are {names}.",
            names=", ".join(MEASURES),
        )
    names = [which] if isinstance(which, str) else list(which)
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        raise InputError(
            'must be "recommended", "all" or names of measures',
            argument="which",
            seen=unknown[0],
            cure="The names are {names}.",
            names=", ".join(MEASURES),
        )
    return names


def _line(name: str, rows: Rows | Sketch, atoms: Points) -> Measured:
    entry = MEASURES[name]
    start = time.perf_counter()
    try:
        value, error = entry.measure(rows if entry.on == "rows" else atoms)
        misses = entry.misses
    except CalibrantError as refusal:  # weights where rows are counted, or a program unsolved
        value, error, misses = float("nan"), float("nan"), str(refusal)
    return Measured(name, value, error, time.perf_counter() - start, misses)


View = Literal["confidence", "top_label", "classwise_mean", "classwise_max"]


def multiclass_error(
    y_true: Any,
    y_prob: Any,
    *,
    view: View = "confidence",
    measure: Callable[[Any], float] = smooth_ece,
    from_logits: bool = False,
    classes: Sequence[Any] | None = None,
) -> float:
    """A calibration measure of class probabilities.

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
    from_logits, classes
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
        raise InputError(
            "must be a function, as {example} is",
            argument="measure",
            seen=measure,
            cure="Leave it out for {example}.",
            example=Function("smooth_ece"),
        )
    if view == "confidence":
        return measure(confidence(y_true, y_prob, from_logits=from_logits, classes=classes))
    if view == "top_label":
        groups = top_label(y_true, y_prob, from_logits=from_logits, classes=classes)
        rows = np.array([sketch.total_weight for sketch in groups.values()])
        return float(np.average([measure(s) for s in groups.values()], weights=rows))
    require_choice("view", view, get_args(View))
    values = [
        measure(s)
        for s in classwise(y_true, y_prob, from_logits=from_logits, classes=classes).values()
    ]
    return float(np.mean(values) if view == "classwise_mean" else np.max(values))
