"""Choice of a map: all candidates on rows they have not seen, "none" among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np

from calibrant._arguments import require_choice
from calibrant.data.arrays import cure_of_two_columns
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketches import is_summed
from calibrant.errors import InputError, invalid
from calibrant.io.from_data import sample_from
from calibrant.io.scan import ReadingOptions
from calibrant.measures.result_record import Record, frame_of
from calibrant.recalibration.class_map import (
    LEAST_OF_A_CLASS,
    ClassRecalibrator,
    IdentityOfClasses,
    require_rows_of_classes,
)
from calibrant.recalibration.effect import (
    Integers,
    Sample,
    brier_losses,
    cross_fit,
    fit_to,
    log_losses,
    mean_and_error,
    scores_of,
    stratified_folds,
)
from calibrant.recalibration.learned_map import LearnedMap, Recalibrator, make_map, shape_of
from calibrant.recalibration.parametric import IdentityRecalibrator
from calibrant.recalibration.smooth import SmoothRecalibrator

NONE = "none"
OF_EVENTS = (
    "adaptive",
    "smooth",
    "platt",
    "temperature",
    "beta",
    "isotonic",
    "venn-abers",
    "offset",
)
OF_CLASSES = {
    "temperature": "temperature",
    "one-vs-rest beta": "beta",
    "structured": "structured",
    "structured matrix": "structured-matrix",
}
"""Maps to compare by default; of classes, the names that `make_map` knows them by."""
ROWS_PER_PARAMETER = 2
"""A map of classes is compared by default where each of its parameters is learned from so many rows."""


@dataclass(frozen=True, repr=False)
class Candidate(Record):
    """Losses of one map on rows that it was not learned from.

    Attributes
    ----------
    name : str
        Name of the map.
    loss : float
        Mean loss.
    gain, gain_se : float
        Fall of the loss against "none", and its standard error over rows, or clusters of them.
    smooth_ece : float
        SmoothECE of its predictions.
    """

    name: str
    loss: float
    gain: float
    gain_se: float
    smooth_ece: float

    def __repr__(self) -> str:
        return (
            f"Candidate({self.name}: loss {self.loss:.5f}, gain {self.gain:+.5f} ± {self.gain_se:.5f}, "
            f"SmoothECE {self.smooth_ece:.4f})"
        )


@dataclass(frozen=True, repr=False)
class Choice(Record):
    """Comparison of maps, and the chosen one fitted to all rows.

    `str()` is a table, best first.
    """

    best: str
    candidates: tuple[Candidate, ...]
    loss: str
    recalibrator: Any = field(compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        table = [candidate.to_dict() for candidate in self.candidates]
        return {"best": self.best, "loss": self.loss, "candidates": table}

    def to_frame(self, backend: Any = None) -> Any:
        """Data frame with a row for each map, best first; see `frame_of` for the backend."""
        return frame_of([candidate.to_dict() for candidate in self.candidates], backend)

    def __repr__(self) -> str:
        return f"Choice({self.best} of {len(self.candidates)} by {self.loss} loss)"

    def __str__(self) -> str:
        width = max(len(c.name) for c in self.candidates)
        rows = [
            f"{'*' if c.name == self.best else ' '} {c.name:<{width}}  {self.loss} loss {c.loss:.5f}  "
            f"gain {c.gain:+.5f} ± {c.gain_se:.5f}  SmoothECE {c.smooth_ece:.4f}"
            for c in self.candidates
        ]
        return "\n".join(rows)


def choose_recalibrator(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    candidates: Mapping[str, Any] | None = None,
    loss: Literal["log", "brier"] = "log",
    cluster: Any = None,
    cv: int = 5,
    random_state: int = 0,
    **options: Unpack[ReadingOptions],
) -> Choice:
    """Compare recalibration maps by cross-fitting, and fit the best one to all rows.

    Parameters
    ----------
    y_true : array or Sketch
        Outcomes, 0 or 1; or a Sketch that counts rows, and no `y_prob`.
    y_prob : array
        Predicted probabilities. With a column per class, `y_true` holds classes, and `classes` names the
        columns; of logits, with `from_logits=True`, the softmax is taken, and is what the map takes too.
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true` and `y_prob` then name columns (a list of them for classes).
    candidates : mapping of str to Recalibrator, optional
        By default adaptive, smooth, the paper's own smooth map on the probability scale, Platt, temperature,
        beta, isotonic, Venn-Abers and offset; for class probabilities one temperature, structured scaling
        (vector and matrix) and beta of each class against the rest. "none" is always there.
    loss : {"log", "brier"}
        The proper loss that decides. Predictions of 0 and 1 count as 6e-8 away from them.
    cluster : array, optional
        Which rows belong together, such as the forecasts of one event. They are held out together,
        and the standard error of a gain is that of clusters: rows of one event that are learned from
        flatter the maps on its other rows.
    cv : int
        Number of folds; every row is predicted by maps fitted to the other folds.
    random_state : int
        Seed of the folds.
    **options
        As for `Recalibrator.fit`; of class probabilities, `sample_weight`, `classes`, `from_logits` and
        `on_invalid`.

    Returns
    -------
    Choice
        The smallest mean loss wins, unless what it saves against "none" is within one standard
        error: then "none" does.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000)
    >>> choose_recalibrator(rng.random(2000) < p, p).best
    'none'
    """
    require_choice("loss", loss, ("log", "brier"))
    reading: dict[str, Any] = dict(options)
    if data is not None:
        classes = reading.get("multiclass") is not None
        y_true, y_prob, cluster, left = sample_from(
            data, y_true, y_prob, options, cluster=cluster, rows=classes
        )
        reading = {name: value for name, value in left.items() if name != "multiclass"}
    shape = () if is_summed(y_true) or y_prob is None else shape_of(y_prob)
    binary = not (len(shape) == 2 and shape[1] > 1)
    maps = _checked(candidates, binary)
    if not binary and shape[1] == 2 and maps is None:
        hint = f"{cure_of_two_columns(y_prob)}, or name maps of classes as `candidates`."
        raise InputError(f"`y_prob` must be one-dimensional; its shape is {shape}.", hint=hint)
    none: LearnedMap = IdentityRecalibrator() if binary else IdentityOfClasses()
    if binary and "classes" in reading:
        raise InputError(
            "`classes` is for predictions with a column for each class.", argument="classes"
        )
    sample = Sample.read(y_true, y_prob, made=none, cluster=cluster, **reading)
    fold = stratified_folds(sample, cv, random_state)
    if not binary:
        require_rows_of_classes(sample.counts(), sample.classes, shared=True)
    maps = {NONE: none, **(_defaults(sample, fold) if maps is None else maps)}
    predictions = {name: cross_fit(made, sample, fold) for name, made in maps.items()}
    losses_of = log_losses if loss == "log" else brier_losses
    losses = {name: losses_of(sample.y, p) for name, p in predictions.items()}
    lines = []
    for name, p in predictions.items():
        gain, error, _ = mean_and_error(losses[NONE] - losses[name], sample.ones, sample.unit)
        scores = scores_of(sample, p)
        mean = scores.log_loss if loss == "log" else scores.brier
        lines.append(Candidate(name, mean, gain, error, scores.smooth_ece))
    lines.sort(key=lambda line: line.loss)
    best = lines[0].name if lines[0].gain > lines[0].gain_se else NONE
    return Choice(best, tuple(lines), loss, fit_to(maps[best], sample))


def _checked(candidates: Any, binary: bool) -> Mapping[str, LearnedMap] | None:
    if candidates is None:
        return None
    wanted: Any = Recalibrator if binary else ClassRecalibrator
    example = "PlattRecalibrator()" if binary else "TemperatureScaling(from_logits=False)"
    if not isinstance(candidates, Mapping):
        hint = f'Pass `{{"mine": {example}}}`, or leave it out for all.'
        raise invalid("candidates", "be a mapping from names to maps", candidates, hint)
    for name, made in candidates.items():
        if not isinstance(made, wanted) or getattr(made, "from_logits", False):
            kind = "Recalibrators" if binary else "maps of class probabilities"
            rule = f"hold {kind}, and {name!r} is none"
            raise invalid("candidates", rule, made, f"Pass a map such as `{example}`.")
    if not isinstance(candidates.get(NONE, IdentityRecalibrator()), IdentityRecalibrator):
        raise invalid("candidates", f"not hold another map as {NONE!r}", candidates[NONE])
    return candidates


def _defaults(sample: Sample, fold: Integers) -> dict[str, LearnedMap]:
    """Maps to compare; of classes, those whose parameters every fold leaves enough rows for."""
    if sample.binary:
        own = SmoothRecalibrator(scale=PROBABILITY, pseudo_rows=0.0)
        return {**{name: make_map(name) for name in OF_EVENTS}, "smooth probability": own}
    fewest = np.min([sample.counts(fold != one) for one in np.unique(fold)], axis=0)
    every, rows = fewest.min() >= LEAST_OF_A_CLASS, int(fewest.sum())
    maps = {name: make_map(key, fewest.size) for name, key in OF_CLASSES.items()}
    return {
        name: made
        for name, made in maps.items()
        if made.shared or (every and rows >= ROWS_PER_PARAMETER * made.n_parameters_of(fewest.size))
    }
