"""A map as a picture: the probability that each prediction becomes, and its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import (
    CONFIDENCE,
    generator,
    require_confidence,
    require_count,
    require_seed,
)
from calibrant._format import decimals
from calibrant.errors import CalibrantError, InputError, TooFewRows
from calibrant.plotting.artists import band, line
from calibrant.plotting.diagram import Diagram, Style, reference
from calibrant.plotting.frame import Frame, probability_frame, probability_limits
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.class_map import ClassRecalibrator
from calibrant.recalibration.effect import Effect, Sample, evaluate, fit_to
from calibrant.recalibration.export import monotonicity
from calibrant.recalibration.isotonic import CrossVennAbersRecalibrator, VennAbersRecalibrator
from calibrant.recalibration.learned_map import FitOptions, Recalibrator, require_map

Floats = NDArray[np.float64]

PLACES = 257
FOLDS = 5
VENN_ABERS = (VennAbersRecalibrator, CrossVennAbersRecalibrator)


@dataclass(frozen=True, eq=False, repr=False)
class MapDiagram(Diagram):
    """Recalibrated probability against prediction, as data and as a picture.

    Attributes
    ----------
    recalibrator : Recalibrator
        The map, learned from all rows.
    prediction, recalibrated : float64[k]
        Points of the map, as far as there are rows.
    low, high : float64[k]
        Confidence band of the map at each point; NaN where nothing is known of it.
    effect : Effect or None
        Scores before and after on held-out rows; None of a map without rows, or with too few.
    confidence : float
        Confidence of the band, and of the interval of the gain.
    n : int or None
        Rows that the map was learned from.
    rows, weight : float64[m]
        Distinct predictions of these rows, and the weight of each.
    """

    kind = "map"
    table = ("prediction", "recalibrated", "low", "high")

    recalibrator: Recalibrator
    prediction: Floats
    recalibrated: Floats
    low: Floats
    high: Floats
    effect: Effect | None
    confidence: float
    n: int | None
    rows: Floats
    weight: Floats

    @property
    def keeps_order(self) -> bool:
        """True where the predictions of the rows stay apart and in order; without rows, those of the map."""
        if not self.rows.size:
            return self.recalibrator.keeps_order
        return monotonicity(self.rows, self.recalibrator.mapped(self.rows)) == "increasing"

    @property
    def explanation(self) -> str:
        """The effect of the map on some predictions, in one sentence."""
        return self.recalibrator.explain(_examples(self.rows, self.weight))

    @property
    def label(self) -> str:
        """The number as text."""
        if self.effect is None:
            return f"{self.recalibrator.kind} map"
        before, after = self.effect.before, self.effect.after
        return f"Log loss {decimals(before.log_loss)} → {decimals(after.log_loss)}"

    def __repr__(self) -> str:
        rows = "" if self.n is None else f", n={self.n}"
        gain = "" if self.effect is None else f": {self.effect.verdict}, {self.label}"
        return f"MapDiagram({self.recalibrator.kind}{gain}{rows})"

    def numbers(self) -> dict[str, Any]:
        """The effect, and the map in a sentence."""
        return {
            "map": self.recalibrator.kind,
            "explanation": self.explanation,
            "keeps_order": self.keeps_order,
            "effect": self.effect,
            "confidence": self.confidence,
            "n": self.n,
        }

    @property
    def limits(self) -> tuple[float, float]:
        """Ends of both axes."""
        none = np.zeros(self.prediction.size)
        rows, weight = self.rows, self.weight
        if not rows.size:
            rows, weight = self.prediction, np.ones(self.prediction.size)
        return probability_limits(rows, weight, self.prediction, self.recalibrated, none)

    def frame(self) -> Frame:
        """Axes of probabilities."""
        share = "interval of its two probabilities"
        if not isinstance(self.recalibrator, VENN_ABERS):
            share = f"{100 * self.confidence:g}% confidence band"
        band = f", with {share}" if np.isfinite(self.low).any() else ""
        legend = {"curve+confidence_band": f"The {self.recalibrator.kind} map{band}"}
        legend["diagonal"] = "No change"
        number = self.label if self.effect is None else f"{self.label} on held-out rows"
        return probability_frame(
            self.limits,
            legend,
            title=self._in_numbers(),
            subtitle=number,
            ylabel="Recalibrated probability",
        )

    def _in_numbers(self) -> str:
        """Some predictions, and what they become."""
        some = _examples(self.rows, self.weight)
        pairs = zip(some.tolist(), self.recalibrator.mapped(some).tolist(), strict=True)
        return ", ".join(f"{p:.3g} → {q:.2g}" for p, q in pairs)

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """The map and its band over the diagonal, on which nothing changes."""
        drawn: dict[str, list[Any]] = {}
        if not style.beside_others:
            drawn |= reference(ax, style, (self.rows, self.weight), self.limits, None)
        if np.isfinite(self.low).any():
            drawn["confidence_band"] = [
                band(ax, self.prediction, self.low, self.high, **style.of_band)
            ]
        curve = line(ax, self.prediction, self.recalibrated, **style.of_line(1.8))
        return {**drawn, "curve": [curve]}


def map_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    recalibrator: Recalibrator | None = None,
    sample_weight: Any = None,
    cluster: Any = None,
    confidence: float = CONFIDENCE,
    resamples: int = 200,
    random_state: int = 0,
    **options: Unpack[FitOptions],
) -> MapDiagram:
    """A map learned from rows, what it does to each prediction, how sure that is, and what it gains.

    Parameters
    ----------
    y_true : array, Sketch or Recalibrator
        Outcomes, 0 or 1; or a Sketch that counts rows, and no `y_prob`; or a map that is fitted, alone: it
        is then drawn as it is.
    y_prob : array
        Predicted probabilities.
    recalibrator : Recalibrator, optional
        The kind of map, learned here from all rows; by default `AdaptiveRecalibrator`.
    sample_weight, **options
        As for `Recalibrator.fit`.
    cluster : array, optional
        Which rows belong together: they are resampled and held out together.
    confidence : float
        Confidence of the band at each point, and of the interval of the gain.
    resamples : int
        How often rows are drawn again for the band.
    random_state : int
        Seed of the draws and of the folds.

    Returns
    -------
    MapDiagram
        With `plot`, `save` and `to_frame`.

    Notes
    -----
    The band is the map's own `interval` where it has one: of `AdaptiveRecalibrator`, the spread of its
    average; of Venn–Abers, the two probabilities. Otherwise, and with clusters, it holds the central maps of
    resampled rows at each point. It does not know how wrong the form of a map is: a temperature has a
    narrow band even where no temperature fits. The gain is that of maps learned from four fifths of the
    rows and judged on the rest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> map_diagram(rng.random(2000) < p**2, p)
    MapDiagram(adaptive: better, Log loss 0.4902 → 0.3964, n=2000)
    """
    require_confidence(confidence)
    require_count("resamples", resamples, least=20)
    seed = require_seed(random_state, "random_state")
    alone = isinstance(y_true, Recalibrator)
    made = y_true if alone else AdaptiveRecalibrator() if recalibrator is None else recalibrator
    if isinstance(made, ClassRecalibrator) or getattr(made, "kind", None) == "randomized":
        raise InputError(
            "`recalibrator` must be a map of one event that draws nothing at random.",
            argument="recalibrator",
            hint="For the effect of any other, use `calibrant.recalibration.evaluate`.",
        )
    require_map(made, "recalibrator")
    if alone:
        if y_prob is not None or recalibrator is not None or cluster is not None:
            raise InputError(
                "Beside a map that is fitted, everything else must be left out.", argument="y_prob"
            )
        x = np.linspace(0.0, 1.0, PLACES)
        low, high = _own_band(made, x, confidence) or (np.full(PLACES, np.nan),) * 2
        none = np.zeros(0)
        return MapDiagram(made, x, made.mapped(x), low, high, None, confidence, None, none, none)
    sample = Sample.read(
        y_true, y_prob, made=made, sample_weight=sample_weight, cluster=cluster, **options
    )
    learned = fit_to(made, sample)
    x = _places(sample.probs)
    band = None if sample.clustered else _own_band(learned, x, confidence)
    if band is None:
        band = _resampled(made, sample, x, resamples, seed, confidence)
    rows, place = np.unique(sample.probs, return_inverse=True)
    return MapDiagram(
        recalibrator=learned,
        prediction=x,
        recalibrated=learned.mapped(x),
        low=band[0],
        high=band[1],
        effect=_effect(made, sample, confidence, seed),
        confidence=float(confidence),
        n=sample.n,
        rows=rows,
        weight=np.bincount(place, sample.ones).astype(np.float64),
    )


def _places(p: Floats) -> Floats:
    """Even places as far as there are rows, and as many where the rows are."""
    even = np.linspace(float(p.min()), float(p.max()), PLACES)
    return np.unique(np.concatenate([even, np.quantile(p, np.linspace(0.0, 1.0, PLACES))]))


def _own_band(learned: Recalibrator, x: Floats, confidence: float) -> tuple[Floats, Floats] | None:
    if isinstance(learned, AdaptiveRecalibrator):
        low, high = learned.interval(x, confidence=confidence)
    elif isinstance(learned, VENN_ABERS):
        low, high = learned.interval(x)
    else:
        return None
    return low, high


def _resampled(
    made: Recalibrator, sample: Sample, x: Floats, resamples: int, seed: int, confidence: float
) -> tuple[Floats, Floats]:
    """Pointwise band of maps of rows drawn again, units as a whole."""
    draw, units = generator(seed), int(sample.unit.max()) + 1
    curves = []
    for _ in range(resamples):
        counts = np.bincount(draw.integers(units, size=units), minlength=units)
        try:
            rows = cast(Any, np.repeat(np.arange(sample.n), counts[sample.unit]))
            curves.append(fit_to(made, sample, rows).transform(x))
        except CalibrantError:  # a draw may hold one outcome only
            continue
    if not curves:
        return np.full(x.size, np.nan), np.full(x.size, np.nan)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(curves, [tail, 1.0 - tail], axis=0)
    return low, high


def _effect(made: Recalibrator, sample: Sample, confidence: float, seed: int) -> Effect | None:
    try:
        return evaluate(
            made,
            sample.y,
            sample.probs,
            sample_weight=sample.weight,
            cluster=sample.unit if sample.clustered else None,
            cv=min(FOLDS, int(sample.unit.max()) + 1),
            confidence=confidence,
            random_state=seed,
            labels="soft" if sample.soft else "binary",
        )
    except TooFewRows:
        return None


def _examples(p: Floats, mass: Floats) -> Floats:
    """Predictions to explain a map by: .1, .5 and .9 where rows reach as far, else their own deciles."""
    usual = np.array([0.1, 0.5, 0.9])
    if not p.size:
        return usual
    rank = np.cumsum(mass) / mass.sum()
    low, *deciles, high = p[np.searchsorted(rank, [0.02, *usual, 0.98])]
    if low <= usual[0] and high >= usual[-1]:
        return usual
    told = [
        float(f"{one:.2g}") if one <= 0.5 else 1.0 - float(f"{1.0 - one:.2g}") for one in deciles
    ]
    return np.unique(np.clip(told, 0.0, 1.0))
