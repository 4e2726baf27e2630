"""The binned reliability diagram, with the number of bins chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, require_choice
from calibrant._format import decimals
from calibrant.data.cell_sums import over_outcomes
from calibrant.data.points import Points, as_points
from calibrant.data.rows import Dropped, InputOptions, Rows, as_rows
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError
from calibrant.inference.interval import require_confidence
from calibrant.inference.profile import Profiled
from calibrant.measures.result_record import rows_text
from calibrant.plotting.axes import probability_axes
from calibrant.plotting.bands import Bounds
from calibrant.plotting.diagram import Diagram, laid_out, plain, series_of, who
from calibrant.plotting.looks import Color, as_name
from calibrant.plotting.panel import Dots, Panel, Steps
from calibrant.plotting.reference import attributes_of, calibrated_marks
from calibrant.plotting.smooth_numbers import rate_interval
from calibrant.plotting.verdict import UNSAID, Verdict, verdict_on_rows

__all__ = ["BinnedDiagram", "binned_diagram"]

Floats = NDArray[np.float64]

_MOST_BINS = 100
_MOST_BINS_ASKED = 10_000
# Less than this share of a bin is nothing but the rounding of its sum.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class BinnedDiagram(Diagram):
    """Observed rates in bins of predictions; empty bins are NaN.

    Attributes
    ----------
    edges : float64[b + 1]
        Bin k holds edges[k] < p ≤ edges[k + 1]; the first one holds p = 0 too.
    prediction, rate : float64[b]
        Mean prediction and share of events.
    rows : float64[b]
        Rows in the bin (the effective number, where rows have weights).
    band : Bounds
        Interval for the true rate in each bin (Jeffreys).
    consistency : Bounds
        Rates that a calibrated model would show there.
    ece : float
        Σ (weight of the bin) · |rate - prediction|.
    losses : mapping of int to float
        Cross-validated squared loss for each number of bins that was tried.
    n : int
        Rows; `dropped` counts by reason those that were left out.
    said : Verdict
        What the smooth diagram of the same rows says; empty for Points.

    Examples
    --------
    >>> diagram = binned_diagram([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9], bins=2)
    >>> diagram.edges.tolist(), diagram.rate.tolist()
    ([0.0, 0.5, 1.0], [0.0, 1.0])
    """

    edges: Floats
    prediction: Floats
    rate: Floats
    rows: Floats
    band: Bounds
    consistency: Bounds
    ece: float
    binning: str
    losses: dict[int, float]
    confidence: float
    n: int
    dropped: Mapping[str, int] = field(default_factory=Dropped)
    said: Verdict = UNSAID

    @property
    def label(self) -> str:
        """The number as the picture writes it."""
        return f"average error of the bins {decimals(self.ece, places=3)} (ECE)"

    def __repr__(self) -> str:
        chosen = ", chosen by cross-validation" if self.losses else ""
        rows = rows_text(self.n, self.dropped)
        return f"BinnedDiagram(ECE {decimals(self.ece, places=3)}, {self.rows.size} bins{chosen}, {rows})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """The bins, by name."""
        return {
            "left": self.edges[:-1],
            "right": self.edges[1:],
            "prediction": self.prediction,
            "rate": self.rate,
            "rows": self.rows,
            "low": self.band.low,
            "high": self.band.high,
            "consistency_low": self.consistency.low,
            "consistency_high": self.consistency.high,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON; NaN becomes None."""
        out: dict[str, Any] = plain(
            {
                "kind": "binned",
                "ece": self.ece,
                "binning": self.binning,
                "confidence": self.confidence,
                "n": self.n,
                "dropped": self.dropped,
                "losses": self.losses,
                "bins": self.columns(),
            }
        )
        return out

    def panel(
        self,
        *,
        name: str = "",
        color: Color | None = None,
        reference: str | None = "band",
        axes: str = "auto",
        rare: float = 0.2,
        attributes: bool | Profiled = False,
    ) -> Panel:
        """The marks of the picture.

        Parameters
        ----------
        name : str
            Name of the model.
        color : str or three numbers, optional
            Colour of the points.
        reference : {"band", "diagonal", None}
            With the band that a calibrated model would stay in, the diagonal alone, or neither.
        axes : {"auto", "probability", "fit", "logit"}
            From 0 to 1; only as far as the rows go; or in log-odds. "auto" fits the axes where nearly
            all rows lie within `rare` of 0 or of 1.
        rare : float
            How close to an end predictions must be to get an axis of their own.
        attributes : bool or Profiled
            Add the weather forecasters' overlay: climatology, the line of no skill, the area with skill.
            What `assess(..., profile="weather").profile` found adds its skill to the notes.
        """
        name = as_name(name)
        series, used, bounds = series_of(name), self.rows > 0, self.consistency
        x, y, rows = self.prediction[used], self.rate[used], self.rows[used]
        limits = probability_axes(axes, rare, x, y, rows)
        steps = Bounds(np.repeat(bounds.low, 2), np.repeat(bounds.high, 2))
        marks, said = attributes_of(attributes, float(np.sum(y * rows) / rows.sum()))
        marks += calibrated_marks(reference, np.repeat(self.edges, 2)[1:-1], steps, self.confidence)
        marks += [
            Steps(
                key="steps",
                series=series,
                left=self.edges[:-1],
                right=self.edges[1:],
                y=self.rate,
            ),
            Dots(
                key="values",
                series=series,
                x=x,
                y=y,
                low=self.band.low[used],
                high=self.band.high[used],
                weight=rows / rows.max(),
                details={
                    "prediction": x,
                    "observed": y,
                    "low": self.band.low[used],
                    "high": self.band.high[used],
                    "rows": rows,
                },
                says=f"{who(name)}, in bins of predictions",
            ),
        ]
        bins = f"{self.rows.size} bins" + (", cross-validated" if self.losses else "")
        notes = (self.label, bins, *said)
        return laid_out(marks, limits, notes, name=name, color=color, verdict=self.verdict)


def binned_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    bins: int | str = "cv",
    binning: str = "width",
    confidence: float = CONFIDENCE,
    **options: Unpack[InputOptions],
) -> BinnedDiagram:
    """Binned reliability diagram.

    Parameters
    ----------
    y_true : array, Sketch or Points
        Outcomes, 0 or 1; or a Sketch or Points, and no `y_prob`.
    y_prob : array
        Predicted probabilities of outcome 1.
    bins : int or "cv"
        How many. "cv" takes the number whose rates predict left-out outcomes best in squared loss,
        as the paper's figures do: leave-one-out, which has a closed form and needs no seed. A sketch
        of weighted rows does not hold the weight of each, so that the loss is approximate there.
    binning : {"width", "mass"}
        Bins of equal width, or with an equal number of rows as far as ties allow.
    confidence : float
        Confidence of the whiskers and of the consistency band.
    **options
        How to read the arrays (see `InputOptions`).

    Examples
    --------
    >>> binned_diagram([0, 0, 1, 1, 0, 1], [0.1, 0.3, 0.35, 0.8, 0.6, 1.0], bins=2)
    BinnedDiagram(ECE 0.108, 2 bins, n=6)
    """
    require_choice("binning", binning, ("width", "mass"))
    require_confidence(confidence)
    atoms, rows = _read_rows(y_true, y_prob, options)
    losses: dict[int, float] = {}
    if bins == "cv":
        most = int(min(_MOST_BINS, max(2, atoms.n // 2)))
        losses = {b: rows.loss(_edges(atoms, b, binning)) for b in range(1, most + 1)}
        count = min(losses, key=lambda b: losses[b])
    else:
        count = _require_bins(bins)
    edges = _edges(atoms, count, binning)
    said = verdict_on_rows(y_true, y_prob, confidence, options)
    return replace(_filled(atoms, edges, binning, losses, confidence), said=said)


def _require_bins(bins: int | str) -> int:
    whole = isinstance(bins, int | np.integer) and not isinstance(bins, bool)
    if not whole or not 1 <= bins <= _MOST_BINS_ASKED:  # type: ignore[operator]
        raise InputError(
            'must be "cv" or a whole number from 1 to {most}',
            argument="bins",
            seen=bins,
            cure="Leave it out for the default.",
            most=f"{_MOST_BINS_ASKED:,}",
        )
    return int(bins)


def _edges(atoms: Points, bins: int, binning: str) -> Floats:
    """Edges of the bins of `calibrant.expected_calibration_error`, so that both give the same ECE."""
    if binning == "width":
        return np.linspace(0.0, 1.0, bins + 1)
    mass = over_outcomes(atoms.mass)
    middle = (np.cumsum(mass) - 0.5 * mass) / atoms.total
    last = np.flatnonzero(np.diff(np.minimum(middle * bins, bins - 1).astype(np.int64)))
    return np.concatenate([[0.0], (atoms.p[last] + atoms.p[last + 1]) / 2, [1.0]])


def _place(atoms: Points, edges: Floats) -> NDArray[np.intp]:
    return np.searchsorted(edges[1:-1], atoms.p)


def _sums(atoms: Points, edges: Floats) -> Floats:
    """Weight, events and predictions per bin."""
    place, weight = _place(atoms, edges), over_outcomes(atoms.mass)
    layers = (weight, atoms.mass[:, 1], weight * atoms.p)
    return np.stack([np.bincount(place, layer, minlength=edges.size - 1) for layer in layers])


def _effective_rows(atoms: Points, edges: Floats, weight: Floats) -> Floats:
    """Rows per bin, or as many equal ones as have the variance of the weighted ones there."""
    if atoms.squared is None:
        return weight
    squared = np.bincount(_place(atoms, edges), atoms.squared, minlength=edges.size - 1)
    return np.divide(weight**2, squared, out=np.zeros_like(weight), where=squared > 0)


def _filled(
    atoms: Points, edges: Floats, binning: str, losses: dict[int, float], confidence: float
) -> BinnedDiagram:
    weight, events, predictions = _sums(atoms, edges)
    used = weight > 0
    safe = np.where(used, weight, 1.0)
    rate = np.where(used, events / safe, np.nan)
    mean = np.where(used, predictions / safe, np.nan)
    trials = _effective_rows(atoms, edges, weight)
    return BinnedDiagram(
        edges=edges,
        prediction=mean,
        rate=rate,
        rows=trials,
        band=Bounds(*rate_interval(rate, trials, confidence)),
        consistency=_consistency(mean, trials, confidence),
        ece=float(np.sum(np.abs(events - predictions)) / atoms.total),
        binning=binning,
        losses=losses,
        confidence=confidence,
        n=atoms.n,
        dropped=atoms.dropped,
    )


def _consistency(prediction: Floats, trials: Floats, confidence: float) -> Bounds:
    """Central rates of a binomial with the mean prediction as its chance."""
    from scipy.special import bdtrik

    tail = (1 - confidence) / 2
    inside = (prediction > 0) & (prediction < 1) & (trials > 0)
    chance, number = np.where(inside, prediction, 0.5), np.maximum(trials, 1.0)
    ends = []
    for q in (tail, 1 - tail):
        least = np.ceil(np.nan_to_num(bdtrik(q, number, chance), nan=0.0))
        ends.append(np.where(inside, np.clip(least, 0, number) / number, prediction))
    return Bounds(*ends)


@dataclass(frozen=True, eq=False)
class _LeftOut:
    """Rows, or rows that share a prediction, to leave out one at a time.

    Attributes
    ----------
    p : float64[m]
    sums : float64[3, m]
        Of the weight w, of w y and of w y².
    own : float64[m]
        Weight of one row. From a sketch with weights the mean, to which each row counts with its weight.
    """

    p: Floats
    sums: Floats
    own: Floats

    @classmethod
    def of_atoms(cls, atoms: Points) -> _LeftOut:
        """Rows that are told by their prediction and outcome, or by the sums of a sketch."""
        weight, events = over_outcomes(atoms.mass), atoms.mass[:, 1]
        own = np.ones_like(weight) if atoms.squared is None else atoms.squared / weight
        return cls(atoms.p, np.stack([weight, events, events]), own)

    @classmethod
    def of_pairs(cls, pairs: Rows) -> _LeftOut:
        """Every row for itself, with its own weight and soft outcome."""
        y = np.asarray(pairs.y, dtype=np.float64)
        weight = np.ones(pairs.n) if pairs.weight is None else np.asarray(pairs.weight)
        return cls(np.asarray(pairs.p), np.stack([weight, weight * y, weight * y * y]), weight)

    def loss(self, edges: Floats) -> float:
        """Mean squared loss when each row is predicted by the rate of the other rows of its bin.

        With the rate m of a bin of weight W, that of the others is off by (y - m) W / (W - w). A row alone
        in its bin is predicted by the rate of all.
        """
        place = np.searchsorted(edges[1:-1], self.p)
        weight, events, squares = self.sums
        mass = np.bincount(place, weight, minlength=edges.size - 1)
        rates = np.bincount(place, events, minlength=edges.size - 1) / np.where(mass > 0, mass, 1.0)
        rest = mass[place] - self.own
        alone = rest <= _ROUNDING * mass[place]
        base = events.sum() / weight.sum()
        rate = np.where(alone, base, rates[place])
        factor = np.where(alone, 1.0, mass[place] / np.where(alone, 1.0, rest))
        losses = (squares - 2 * rate * events + rate**2 * weight) * factor**2
        return float(losses.sum() / weight.sum())


def _read_rows(y_true: Any, y_prob: Any, options: InputOptions) -> tuple[Points, _LeftOut]:
    """Distinct predictions, and the rows one by one where these differ by more than their outcome."""
    if isinstance(y_true, Sketch | Points):
        atoms = as_points(y_true, y_prob, **options)
        return atoms, _LeftOut.of_atoms(atoms)
    pairs = as_rows(y_true, y_prob, **options)
    atoms = Points.of(pairs)
    return atoms, _LeftOut.of_pairs(pairs) if pairs.fractional else _LeftOut.of_atoms(atoms)
