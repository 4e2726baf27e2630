"""Which map to use: all candidates on rows they have not seen, "none" among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_choice, require_count
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import Sketch
from calibrant.errors import Code, InputError, TypeName
from calibrant.inference.assess import read_clustered
from calibrant.measures.result_record import Record
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.cross_fitting import cross_fitted, dealt, fitted, rows_of
from calibrant.recalibration.cures import TO_LEARN, only_cures, refuse_forms
from calibrant.recalibration.effect import log_losses
from calibrant.recalibration.isotonic import IsotonicRecalibrator
from calibrant.recalibration.learned_map import Recalibrator, require_map
from calibrant.recalibration.parametric import (
    BetaRecalibrator,
    IdentityRecalibrator,
    OffsetRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)
from calibrant.recalibration.smooth import SmoothRecalibrator
from calibrant.recalibration.training import FitOptions
from calibrant.recalibration.venn_abers import VennAbersRecalibrator

__all__ = ["NONE", "Candidate", "Choice", "choose_recalibrator", "compared"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NONE = "none"


class ChoiceOptions(FitOptions, total=False):
    """`FitOptions`; what the columns of class probabilities stand for, and whether they hold logits."""

    classes: Sequence[Any]
    from_logits: bool


@dataclass(frozen=True, repr=False)
class Candidate(Record):
    """How one map did on rows it was not learned from.

    Attributes
    ----------
    name : str
        Name of the map.
    loss : float
        Mean loss.
    gain, gain_se : float
        What it saves against "none", and the standard error of that over rows, or clusters of them.
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
    """The comparison, and the chosen map learned from all rows.

    `str()` is a table, best first.
    """

    best: str
    candidates: tuple[Candidate, ...]
    loss: str
    recalibrator: Any = field(compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        table = [candidate.to_dict() for candidate in self.candidates]
        return {"best": self.best, "loss": self.loss, "candidates": table}

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
    y_true: Any,
    y_prob: Any = None,
    *,
    sample_weight: Any = None,
    candidates: Mapping[str, Any] | None = None,
    loss: Literal["log", "brier"] = "log",
    cluster: Any = None,
    folds: int = 5,
    seed: int = 0,
    **options: Unpack[ChoiceOptions],
) -> Choice:
    """Compare recalibration maps by cross-fitting, and fit the best one to all rows.

    Parameters
    ----------
    y_true : array or Sketch
        Outcomes, 0 or 1; or a Sketch that counts rows, and no `y_prob`.
    y_prob : array
        Predicted probabilities. With a column per class, `y_true` holds classes, and `classes` names the
        columns; of logits, with `from_logits=True`, the softmax is taken, and is what the map takes too.
    sample_weight, **options
        As for `Recalibrator.fit`.
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
    folds : int
        Every row is predicted by maps learned from the other folds.
    seed : int
        Seed of the folds.

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
    require_count("folds", folds, least=2)
    if np.ndim(y_prob) == 2 and np.shape(y_prob)[1] > 1:
        from calibrant.recalibration.class_choice import choose_map_of_classes

        settings = {"sample_weight": sample_weight, "cluster": cluster, **options}
        return choose_map_of_classes(y_prob, y_true, candidates, loss, folds, seed, **settings)
    refuse_forms(options)
    maps = {NONE: IdentityRecalibrator(), **_checked(candidates)}
    if "classes" in options:
        raise InputError(
            "is for predictions with a column for each class",
            argument="classes",
            cure="Leave it out.",
        )
    if isinstance(y_true, Sketch):
        y_true, y_prob = rows_of(y_true, y_prob, sample_weight, cluster)
    with only_cures(TO_LEARN):
        pairs, codes = read_clustered(
            y_true, y_prob, cluster, sample_weight=sample_weight, **cast(FitOptions, options)
        )
        p, y = pairs.p, pairs.y  # checked here
    unit = np.arange(p.size) if codes is None else codes[0]
    fold = dealt(y, unit, "rows" if codes is None else "clusters", folds, seed)
    predictions = {name: cross_fitted(map_, pairs, fold) for name, map_ in maps.items()}
    weight = np.ones(p.size) if pairs.weight is None else pairs.weight
    losses, errors = {}, {}
    for name, q in predictions.items():
        losses[name] = log_losses(y, q) if loss == "log" else (q - y) ** 2
        errors[name] = smooth_ece(y, q, sample_weight=weight, labels="soft")
    lines, best = compared(losses, errors, weight, unit)
    return Choice(best, lines, loss, fitted(maps[best], pairs))


def _checked(candidates: Any) -> Mapping[str, Recalibrator]:
    if candidates is None:
        return _defaults()
    if not isinstance(candidates, Mapping):
        raise InputError(
            "must be a mapping from names to maps",
            argument="candidates",
            seen=TypeName.of(candidates),
            cure="Pass {example}, or leave it out for all.",
            example=Code('{"platt": PlattRecalibrator()}'),
        )
    for name, candidate in candidates.items():
        require_map(candidate, "candidates", name)
    if not isinstance(candidates.get(NONE, IdentityRecalibrator()), IdentityRecalibrator):
        raise InputError(
            "must not hold another map under the name {none}, with which all others are compared",
            argument="candidates",
            seen=TypeName.of(candidates[NONE]),
            cure="Give the map another name.",
            none=repr(NONE),
        )
    return candidates


def _defaults() -> dict[str, Recalibrator]:
    return {
        "adaptive": AdaptiveRecalibrator(),
        "smooth": SmoothRecalibrator(),
        "smooth probability": SmoothRecalibrator(scale=PROBABILITY, pseudo_rows=0.0),
        "platt": PlattRecalibrator(),
        "temperature": TemperatureRecalibrator(),
        "beta": BetaRecalibrator(),
        "isotonic": IsotonicRecalibrator(),
        "venn-abers": VennAbersRecalibrator(),
        "offset": OffsetRecalibrator(),
    }


def compared(
    losses: Mapping[str, Floats], errors: Mapping[str, float], weight: Floats, unit: Integers
) -> tuple[tuple[Candidate, ...], str]:
    """The candidates, best first, by the loss of every row; and the name of the one to use."""
    share = weight / weight.sum()
    lines = []
    for name, values in losses.items():
        saved = losses[NONE] - values
        gain = float(share @ saved)
        se = float(np.linalg.norm(np.bincount(unit, share * (saved - gain))))
        lines.append(Candidate(name, float(share @ values), gain, se, errors[name]))
    lines.sort(key=lambda line: line.loss)
    return tuple(lines), lines[0].name if lines[0].gain > lines[0].gain_se else NONE
