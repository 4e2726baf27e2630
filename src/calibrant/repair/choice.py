"""Which map to use: all candidates on rows they have not seen, "none" among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator, require_choice, require_count
from calibrant.data.atoms import Atoms
from calibrant.data.pairs import Pairs
from calibrant.data.scales import PROBABILITY
from calibrant.data.sketch import Sketch
from calibrant.errors import Code, InputError, Option, TooFewRows, TypeName
from calibrant.inference.assess import read_clustered
from calibrant.measures.record import Record
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.cures import TO_LEARN, only_cures, refuse_forms
from calibrant.recalibration.interface import Recalibrator, require_map
from calibrant.recalibration.isotonic import IsotonicRecalibrator
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
from calibrant.repair.effect import log_losses

__all__ = ["NONE", "Candidate", "Choice", "choose_recalibrator", "compared"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NONE = "none"


class ChoiceOptions(FitOptions, total=False):
    """`FitOptions`, and what the columns of class probabilities stand for."""

    classes: Sequence[Any]


@dataclass(frozen=True, repr=False)
class Candidate(Record):
    """How one map did on rows it was not learned from.

    Attributes
    ----------
    name : str
        Of the map.
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
        rows = [
            f"{'*' if c.name == self.best else ' '} {c.name:<14} {self.loss} loss {c.loss:.5f}  "
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
        columns.
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
        Of the folds.

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
    refuse_forms(options)
    if np.ndim(y_prob) == 2 and np.shape(y_prob)[1] > 1:
        unknown = [*({"cluster"} if cluster is not None else ()), *({*options} - {"classes"})]
        if unknown:
            raise InputError(
                "is not known for class probabilities",
                argument=unknown[0],
                cure="Leave it out.",
            )
        from calibrant.repair.class_choice import choose_map_of_classes

        rows, classes = (y_prob, y_true, sample_weight), options.get("classes")
        return choose_map_of_classes(*rows, candidates, loss, folds, seed, classes=classes)
    maps = {NONE: IdentityRecalibrator(), **_checked(candidates)}
    if "classes" in options:
        raise InputError(
            "is for predictions with a column for each class",
            argument="classes",
            cure="Leave it out.",
        )
    if isinstance(y_true, Sketch):
        y_true, y_prob = _rows_of(y_true, y_prob, sample_weight, cluster)
    with only_cures(TO_LEARN):
        pairs, codes = read_clustered(
            y_true, y_prob, cluster, sample_weight=sample_weight, **cast(FitOptions, options)
        )
        p, y = pairs.p, pairs.y  # checked here
    unit = np.arange(p.size) if codes is None else codes[0]
    fold = _dealt(y, unit, "rows" if codes is None else "clusters", folds, seed)
    predictions = {name: _cross_fitted(map_, pairs, fold) for name, map_ in maps.items()}
    weight = np.ones(p.size) if pairs.weight is None else pairs.weight
    losses, errors = {}, {}
    for name, q in predictions.items():
        losses[name] = log_losses(y, q) if loss == "log" else (q - y) ** 2
        errors[name] = smooth_ece(y, q, sample_weight=weight, labels="soft")
    lines, best = compared(losses, errors, weight, unit)
    return Choice(best, lines, loss, _fitted(maps[best], pairs))


def _cross_fitted(candidate: Recalibrator, pairs: Pairs, fold: Integers) -> Floats:
    """Every prediction by the map of the rows outside its fold."""
    predictions = np.empty_like(pairs.p)
    for held_out in (fold == k for k in range(int(fold.max()) + 1)):
        predictions[held_out] = _fitted(candidate, pairs.select(~held_out)).transform(
            pairs.p[held_out]
        )
    return predictions


def _rows_of(
    sketch: Sketch, y_prob: Any, sample_weight: Any, cluster: Any
) -> tuple[NDArray[np.int64], Floats]:
    """Outcomes and predictions of a sketch that counts rows: those of a cell are alike."""
    for name, value in {
        "y_prob": y_prob,
        "sample_weight": sample_weight,
        "cluster": cluster,
    }.items():
        if value is not None:
            raise InputError(
                "must be left out with a Sketch",
                argument=name,
                cure="Pass {y_true} and {y_prob} as arrays.",
                y_true=Option("y_true"),
                y_prob=Option("y_prob"),
            )
    if sketch.weighted:
        raise InputError(
            "must count rows to be dealt into folds, and this Sketch holds weights",
            argument="y_true",
            cure="Pass {y_true} and {y_prob} as arrays.",
            y_true=Option("y_true"),
            y_prob=Option("y_prob"),
        )
    atoms = Atoms.from_sketch(sketch)
    counts = np.rint(atoms.mass).astype(np.int64)
    labels = np.repeat(np.tile([0, 1], atoms.p.size), counts.ravel())
    return labels, np.repeat(np.repeat(atoms.p, 2), counts.ravel())


def _dealt(y: Floats, unit: Integers, called: str, folds: int, seed: int) -> Integers:
    """The fold of each row: units at random, but no fold takes all units with or without the event."""
    units = int(unit.max()) + 1
    if not 2 <= folds <= units:
        raise InputError(
            "must lie between 2 and the {units} {called}",
            argument="folds",
            seen=folds,
            cure="Pass fewer folds, or more rows.",
            units=units,
            called=called,
        )
    events = np.bincount(unit, y, minlength=units)
    some = events > 0.0
    others = np.bincount(unit, minlength=units) > events
    for held, what in ((some, "with the event"), (others, "without it")):
        if np.count_nonzero(held) < 2:
            raise TooFewRows(
                "must hold two or more {called} {what}, to judge a map on {called} that it has not seen",
                argument="y_true",
                seen=int(np.count_nonzero(held)),
                saying="there are {} among {units}",
                cure="Pass more rows.",
                called=called,
                what=what,
                units=units,
            )
    order = generator(seed).permutation(units)
    order = order[np.argsort((some * 1 + ~others)[order], kind="stable")]
    fold = np.empty(units, dtype=np.int64)
    fold[order] = np.arange(units) % folds
    return fold[unit]


def _fitted(candidate: Recalibrator, pairs: Pairs) -> Recalibrator:
    labels: Literal["binary", "soft"] = "soft" if pairs.soft else "binary"
    return deepcopy(candidate).fit(pairs.p, pairs.y, pairs.weight, labels=labels)


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
