"""Which map to use: all candidates on rows they have not seen, "none" among them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import generator
from calibrant.data.pairs import Pairs
from calibrant.data.scales import PROBABILITY
from calibrant.errors import InputError, TooFewRows
from calibrant.inference.assess import read_clustered
from calibrant.measures.record import Record
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.cures import TO_LEARN, only_cures, refuse_forms
from calibrant.recalibration.interface import FitOptions, Recalibrator, require_map
from calibrant.recalibration.parametric import (
    BetaRecalibrator,
    IdentityRecalibrator,
    IsotonicRecalibrator,
    OffsetRecalibrator,
    PlattRecalibrator,
    TemperatureRecalibrator,
)
from calibrant.recalibration.smooth import SmoothRecalibrator
from calibrant.recalibration.venn_abers import VennAbersRecalibrator
from calibrant.repair.effect import log_losses

__all__ = ["Candidate", "Choice", "choose_recalibrator"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NONE = "none"


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
    recalibrator: Recalibrator = field(compare=False)

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
    y_prob: Any,
    y_true: Any,
    sample_weight: Any = None,
    *,
    candidates: Mapping[str, Recalibrator] | None = None,
    loss: Literal["log", "brier"] = "log",
    cluster: Any = None,
    folds: int = 5,
    seed: int = 0,
    **options: Unpack[FitOptions],
) -> Choice:
    """Compare recalibration maps by cross-fitting, and fit the best one to all rows.

    Parameters
    ----------
    y_prob, y_true, sample_weight, **options
        As for `Recalibrator.fit`.
    candidates : mapping of str to Recalibrator, optional
        By default adaptive, smooth, the paper's own smooth map on the probability scale, Platt, temperature,
        beta, isotonic, Venn-Abers and offset. "none" is always there.
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
    >>> choose_recalibrator(p, rng.random(2000) < p).best
    'none'
    """
    if loss not in ("log", "brier"):
        raise InputError(f'`loss` must be "log" or "brier"; got {loss!r}.')
    maps = {NONE: IdentityRecalibrator(), **_checked(candidates)}
    if not isinstance(folds, int | np.integer) or isinstance(folds, bool):
        raise InputError(f"`folds` must be a whole number; got {folds!r}.")
    refuse_forms(options)
    with only_cures(TO_LEARN):
        pairs, codes = read_clustered(
            y_true, y_prob, cluster, sample_weight=sample_weight, **options
        )
        p, y = pairs.p, pairs.y
    weight = np.ones(p.size) if pairs.weight is None else pairs.weight
    if codes is None:
        unit, units, called = np.arange(p.size), p.size, "rows"
    else:
        unit, units, called = codes[0], int(codes[0].max()) + 1, "clusters"
    if not 2 <= folds <= units:
        raise InputError(f"`folds` must lie between 2 and the {units} {called}; got {folds!r}.")
    fold = _dealt(y, unit, units, called, folds, seed)[unit]
    found: dict[str, Floats] = {}
    for name, candidate in maps.items():
        found[name] = predicted = np.empty_like(p)
        for k in range(folds):
            held_out = fold == k
            learned = _fitted(candidate, pairs.select(~held_out))
            predicted[held_out] = learned.transform(p[held_out])
    lines = _compared(found, y, weight, unit, loss)
    best = lines[0] if lines[0].gain > lines[0].gain_se else _named(lines, NONE)
    return Choice(best.name, tuple(lines), loss, _fitted(maps[best.name], pairs))


def _dealt(
    y: Floats, unit: Integers, units: int, called: str, folds: int, seed: int
) -> NDArray[np.int64]:
    """The fold of each unit at random, but so that no fold takes all units with or without the event."""
    events = np.bincount(unit, y, minlength=units)
    some = events > 0.0
    others = np.bincount(unit, minlength=units) > events
    for held, what in ((some, "with the event"), (others, "without it")):
        if np.count_nonzero(held) < 2:
            raise TooFewRows(
                f"to be judged on {called} that it has not seen, a map needs two or more {what}; there "
                f"are {np.count_nonzero(held)} of {units}."
            )
    order = generator(seed).permutation(units)
    order = order[np.argsort((some * 1 + ~others)[order], kind="stable")]
    fold = np.empty(units, dtype=np.int64)
    fold[order] = np.arange(units) % folds
    return fold


def _fitted(candidate: Recalibrator, pairs: Pairs) -> Recalibrator:
    labels: Literal["binary", "soft"] = "soft" if pairs.soft else "binary"
    return deepcopy(candidate).fit(pairs.p, pairs.y, pairs.weight, labels=labels)


def _checked(candidates: Any) -> Mapping[str, Recalibrator]:
    if candidates is None:
        return _defaults()
    if not isinstance(candidates, Mapping):
        raise InputError(
            "`candidates` must be a mapping from names to maps, such as "
            f'{{"platt": PlattRecalibrator()}}; got a {type(candidates).__name__}.'
        )
    for name, candidate in candidates.items():
        require_map(candidate, f"the candidate {name!r}")
    if not isinstance(candidates.get(NONE, IdentityRecalibrator()), IdentityRecalibrator):
        raise InputError(f"{NONE!r} is what others are compared with; give the map another name.")
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


def _compared(
    found: Mapping[str, Floats], y: Floats, weight: Floats, unit: Integers, loss: str
) -> list[Candidate]:
    share = weight / weight.sum()
    losses = {
        name: log_losses(y, p) if loss == "log" else (p - y) ** 2 for name, p in found.items()
    }
    lines = []
    for name, values in losses.items():
        saved = losses[NONE] - values
        gain = float(share @ saved)
        se = float(np.linalg.norm(np.bincount(unit, share * (saved - gain))))
        error = smooth_ece(y, found[name], sample_weight=weight, labels="soft")
        lines.append(Candidate(name, float(share @ values), gain, se, error))
    return sorted(lines, key=lambda line: line.loss)


def _named(lines: list[Candidate], name: str) -> Candidate:
    return next(line for line in lines if line.name == name)
