"""What recalibration would gain, measured on rows that the recalibrator has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.inference.scores import brier_score, log_loss
from calibrant.inputs.seeds import generator
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.recalibration.smooth import SmoothRecalibrator
from calibrant.sketch.atoms import Atoms
from calibrant.sketch.table import Sketch

__all__ = ["Repair", "Scores", "halves", "repair_of", "scores_of"]

NODES = 1 << 13
"""Enough for three digits of every score, at an eighth of the cost of the default grid."""


@dataclass(frozen=True)
class Scores:
    """SmoothECE and two proper losses of the same rows."""

    smooth_ece: float
    brier: float
    log_loss: float


@dataclass(frozen=True)
class Repair:
    """Scores as the predictions are and recalibrated, and the sketch of the recalibrated ones."""

    before: Scores
    after: Scores
    sketch: Sketch

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {"method": "smooth", "before": vars(self.before), "after": vars(self.after)}


def repair_of(sketch: Sketch, *, seed: int = 0) -> Repair | None:
    """Fit the smooth recalibrator on either half of the rows and apply it to the other.

    None where halves of the rows cannot be had from the sketch (weights), or hold one outcome only.

    Examples
    --------
    >>> p = np.linspace(0.01, 0.99, 99)
    >>> found = repair_of(Sketch.from_counts(p, np.full(99, 1000), np.round(1000 * p**2)))
    >>> found.after.smooth_ece < 0.5 * found.before.smooth_ece
    True
    """
    if sketch.weighted:
        return None
    sketch = sketch.rebin(min(sketch.nodes, NODES))
    parts = halves(sketch, seed=seed)
    if any(not part.counts.sum(axis=0).all() for part in parts):
        return None
    repaired = sum(
        _applied(SmoothRecalibrator(scale=sketch.scale).fit(fitted), held_out)
        for fitted, held_out in (parts, parts[::-1])
    )
    assert isinstance(repaired, Sketch)
    return Repair(scores_of(sketch), scores_of(repaired), repaired)


def halves(sketch: Sketch, *, seed: int) -> tuple[Sketch, Sketch]:
    """The rows dealt into two parts, each by the throw of a coin.

    Rows of one cell and outcome are alike, so that dealing them is a binomial draw of their number;
    their offsets are shared out in proportion, which moves no row out of its cell.
    """
    rng = generator(seed)
    cells = np.repeat(sketch.cells, 2)
    labels = np.tile(np.array([0, 1]), sketch.cells.size)
    counts, offsets = sketch.counts.ravel(), sketch.offsets.ravel()
    first = rng.binomial(counts, 0.5)
    share = np.where(counts > 0, offsets // np.maximum(counts, 1), 0) * first
    return tuple(  # type: ignore[return-value]
        Sketch.from_columns(
            cells[kept > 0],
            labels[kept > 0],
            kept[kept > 0],
            moved[kept > 0],
            nodes=sketch.nodes,
            scale=sketch.scale,
        )
        for kept, moved in ((first, share), (counts - first, offsets - share))
    )


def _applied(recalibrator: SmoothRecalibrator, held_out: Sketch) -> Sketch:
    atoms = Atoms.from_sketch(held_out)
    counts = atoms.mass.astype(np.int64)
    return Sketch.from_counts(
        recalibrator.transform(atoms.p),
        counts.sum(axis=1),
        counts[:, 1],
        nodes=held_out.nodes,
        scale=held_out.scale,
    )


def scores_of(sketch: Sketch) -> Scores:
    """SmoothECE, Brier score and log loss of a sketch's rows."""
    return Scores(smooth_ece(sketch), brier_score(sketch).value, log_loss(sketch).value)
