"""A map as a picture: what each prediction becomes, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE, generator, require_confidence, require_count
from calibrant._format import decimals
from calibrant.errors import CalibrantError, Code, Function, InputError, TooFewRows
from calibrant.plotting.axes import probability_axes
from calibrant.plotting.bands import Bounds, ResampledCurves
from calibrant.plotting.diagram import Diagram, laid_out, plain, series_of
from calibrant.plotting.histogram import histogram
from calibrant.plotting.legend_words import PREDICTIONS
from calibrant.plotting.looks import Color, as_name
from calibrant.plotting.panel import Band, Line, Mark, Panel
from calibrant.plotting.reference import diagonal
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.class_map import ClassRecalibrator
from calibrant.recalibration.effect import Effect, Sample, evaluate, fit_to
from calibrant.recalibration.export import monotonicity
from calibrant.recalibration.isotonic import CrossVennAbersRecalibrator, VennAbersRecalibrator
from calibrant.recalibration.learned_map import FitOptions, Recalibrator, require_map

__all__ = ["MapDiagram", "map_diagram"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PLACES = 257
FOLDS = 5
REPAIRED = "repaired probability"
SURE, BOTH = "uncertainty of the map", "its two probabilities"
_VENN_ABERS = (VennAbersRecalibrator, CrossVennAbersRecalibrator)


@dataclass(frozen=True, eq=False, repr=False)
class MapDiagram(Diagram):
    """What each prediction becomes, as data and as a picture.

    Attributes
    ----------
    recalibrator : Recalibrator
        The map, learned from all rows.
    prediction, repaired : float64[k]
        Points of the map, as far as there are rows.
    band : Bounds or None
        Band of the map at each point; None where nothing is known of it.
    effect : Effect or None
        Scores before and after on held-out rows; None of a map without rows, or with too few.
    confidence : float
        Confidence of the band, and of the interval of the gain.
    n : int or None
        Rows that the map was learned from.
    """

    recalibrator: Recalibrator
    prediction: Floats
    repaired: Floats
    band: Bounds | None
    effect: Effect | None
    confidence: float
    n: int | None
    rows: tuple[Floats, Floats] = field(default=(np.zeros(0), np.zeros(0)))

    @property
    def keeps_order(self) -> bool:
        """Whether the predictions of the rows stay apart and in order; without rows, those of the map."""
        p, _ = self.rows
        if not p.size:
            return self.recalibrator.keeps_order
        return monotonicity(p, self.recalibrator.transform(p)) == "increasing"

    @property
    def says(self) -> str:
        """What the map does, in one sentence, to predictions of which there are rows."""
        return self.recalibrator.explain(_told(*self.rows))

    @property
    def label(self) -> str:
        """The number as the picture writes it."""
        if self.effect is None:
            return f"{self.recalibrator.kind} map"
        before, after = self.effect.before, self.effect.after
        return f"log loss {decimals(before.log_loss)} → {decimals(after.log_loss)}"

    def __repr__(self) -> str:
        rows = "" if self.n is None else f", n={self.n}"
        gain = "" if self.effect is None else f": {self.effect.verdict}, {self.label}"
        return f"MapDiagram({self.recalibrator.kind}{gain}{rows})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """The points of the map and its band, by name."""
        unknown = np.full(self.prediction.size, np.nan)
        low, high = (unknown, unknown) if self.band is None else (self.band.low, self.band.high)
        return {
            "prediction": self.prediction,
            "repaired": self.repaired,
            "low": low,
            "high": high,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        out: dict[str, Any] = plain(
            {
                "kind": "map",
                "map": self.recalibrator.kind,
                "says": self.says,
                "keeps_order": self.keeps_order,
                "effect": None if self.effect is None else self.effect.to_dict(),
                "confidence": self.confidence,
                "n": self.n,
                "curve": self.columns(),
            }
        )
        return out

    def panel(
        self,
        *,
        name: str = "",
        color: Color | None = None,
        axes: str = "auto",
        rare: float = 0.2,
    ) -> Panel:
        """The marks of the picture: the map and its band over the diagonal, on which nothing changes.

        Parameters
        ----------
        name : str
            Name of the model.
        color : str or three numbers, optional
            Colour of the curve.
        axes : {"auto", "probability", "fit", "logit"}
            As for a reliability diagram.
        rare : float
            How close to an end predictions must be to get an axis of their own.
        """
        name = as_name(name)
        p, mass = self.rows
        points = (p, self.recalibrator.transform(p), mass) if p.size else self._evenly()
        x_axis, y_axis = probability_axes(axes, rare, *points)
        y_axis = replace(y_axis, label=y_axis.label.replace("how often it happened", REPAIRED))
        marks = histogram(x_axis, p, [mass], says=PREDICTIONS) if p.size else []
        marks += [diagonal(says="no change"), *self._band()]
        curve = Line(
            key="curve",
            series=series_of(name),
            x=self.prediction,
            y=self.repaired,
            details={"prediction": self.prediction, "repaired": self.repaired},
            says=f"the {self.recalibrator.kind} map",
        )
        says = self.says
        laid = laid_out(
            [*marks, curve],
            (x_axis, y_axis),
            self._notes(),
            name=name,
            color=color,
            finding=f"{says} {'; '.join(self._notes())}.",
        )
        return replace(laid, subtitle=says, judged=True)

    def _evenly(self) -> tuple[Floats, Floats, Floats]:
        return self.prediction, self.repaired, np.ones(self.prediction.size)

    def _band(self) -> list[Mark]:
        if self.band is None:
            return []
        says = BOTH if isinstance(self.recalibrator, _VENN_ABERS) else SURE
        x, low, high = self.prediction, self.band.low, self.band.high
        return [Band(key="band", ink="neutral", x=x, low=low, high=high, says=says)]

    def _notes(self) -> list[str]:
        effect = self.effect
        if effect is None:
            return [self.label, *([] if self.n is None else [f"n = {self.n:,}"])]
        auc = [decimals(scores.auc, places=3) for scores in (effect.before, effect.after)]
        return [
            self.label,
            f"gain {effect.gain:+.4f} ({effect.low:+.4f} to {effect.high:+.4f})",
            f"AUC {auc[0]} → {auc[1]}",
            f"on held-out rows, n = {effect.n:,}",
        ]


def map_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    recalibrator: Recalibrator | None = None,
    sample_weight: Any = None,
    cluster: Any = None,
    confidence: float = CONFIDENCE,
    resamples: int = 200,
    seed: int = 0,
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
    seed : int
        Seed of the draws and of the folds.

    Returns
    -------
    MapDiagram
        With `plot`, `chart`, `save` and `to_frame`.

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
    MapDiagram(adaptive: better, log loss 0.49... → 0.39..., n=2000)
    """
    require_confidence(confidence)
    require_count("resamples", resamples, least=20)
    for name, value in (("y_true", y_true), ("recalibrator", recalibrator)):
        _refuse_classes(value, name)
    if isinstance(y_true, Recalibrator):
        _require_alone(y_prob, recalibrator, cluster)
        return _as_it_is(y_true, confidence)
    made = AdaptiveRecalibrator() if recalibrator is None else recalibrator
    require_map(made, "recalibrator")
    _require_steady(made, "recalibrator")
    sample = Sample.read(
        y_true, y_prob, made=made, sample_weight=sample_weight, cluster=cluster, **options
    )
    learned = fit_to(made, sample)
    x = _places(sample.probs)
    band = None if sample.clustered else _own_band(learned, x, confidence)
    if band is None:
        band = _resampled(made, sample, x, resamples, seed).pointwise(confidence)
    return MapDiagram(
        recalibrator=learned,
        prediction=x,
        repaired=learned.transform(x),
        band=band,
        effect=_effect(made, sample, confidence, seed),
        confidence=float(confidence),
        n=sample.n,
        rows=_gathered(sample.probs, sample.ones),
    )


def _refuse_classes(value: Any, argument: str) -> None:
    if isinstance(value, ClassRecalibrator):
        raise InputError(
            "must be a map of one event: what a map of classes makes of one depends on all the others",
            argument=argument,
            seen=value.kind,
            cure="For its effect pass it to {effect}; for a picture, draw {picture} of the class "
            "probabilities that its {transform} gives.",
            effect=Code("calibrant.recalibration.evaluate"),
            picture=Function("reliability_diagram"),
            transform=Code("transform"),
        )


def _require_alone(*others: Any) -> None:
    if any(other is not None for other in others):
        raise InputError(
            "must be left out beside a map that is fitted",
            argument="y_prob",
            cure="Pass the map alone, or outcomes and predictions with {example}.",
            example=Code("recalibrator="),
        )


def _require_steady(made: Recalibrator, argument: str) -> None:
    if made.kind == "randomized":
        raise InputError(
            "must be a map that draws nothing at random",
            argument=argument,
            seen=made.kind,
            cure="Pass a map such as {other}.",
            other=Code("AdaptiveRecalibrator()"),
        )


def _as_it_is(learned: Recalibrator, confidence: float) -> MapDiagram:
    """Of a map without rows: from 0 to 1, with the band that it knows itself."""
    _require_steady(learned, "y_true")
    x = np.linspace(0.0, 1.0, PLACES)
    band = _own_band(learned, x, confidence)
    return MapDiagram(learned, x, learned.transform(x), band, None, float(confidence), None)


def _places(p: Floats) -> Floats:
    """Even places as far as there are rows, and as many where the rows are."""
    even = np.linspace(float(p.min()), float(p.max()), PLACES)
    return np.unique(np.concatenate([even, np.quantile(p, np.linspace(0.0, 1.0, PLACES))]))


def _own_band(learned: Recalibrator, x: Floats, confidence: float) -> Bounds | None:
    if isinstance(learned, AdaptiveRecalibrator):
        return Bounds(*learned.interval(x, confidence=confidence))
    return Bounds(*learned.interval(x)) if isinstance(learned, _VENN_ABERS) else None


def _resampled(
    made: Recalibrator, sample: Sample, x: Floats, resamples: int, seed: int
) -> ResampledCurves:
    """Maps of rows drawn again, units as a whole; NaN where a draw has too little to learn from."""
    draw, units = generator(seed), int(sample.unit.max()) + 1
    curves = np.full((resamples, x.size), np.nan)
    for curve in curves:
        counts = np.bincount(draw.integers(units, size=units), minlength=units)
        try:
            rows = np.repeat(np.arange(sample.n), counts[sample.unit])
            curve[:] = fit_to(made, sample, rows).transform(x)
        except CalibrantError:
            continue
    return ResampledCurves(x, curves)


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


def _told(p: Floats, mass: Floats) -> Floats:
    """10, 50 and 90 per cent where rows are as wide apart, otherwise the rows' own deciles, rounded."""
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


def _gathered(p: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Distinct predictions, and the weight of each."""
    distinct, place = np.unique(p, return_inverse=True)
    return distinct, np.asarray(np.bincount(place, weight), dtype=np.float64)
