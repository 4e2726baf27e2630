"""Leave-one-out loss of the rates in bins, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.atoms import Atoms, as_atoms
from calibrant.data.pairs import InputOptions, Pairs, as_pairs
from calibrant.data.sketch import Sketch

__all__ = ["LeftOut", "read_rows"]

Floats = NDArray[np.float64]

# Less than this share of a bin is nothing but the rounding of its sum.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class LeftOut:
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
    def of_atoms(cls, atoms: Atoms) -> LeftOut:
        """Rows that are told by their prediction and outcome, or by the sums of a sketch."""
        weight, events = atoms.mass.sum(axis=1), atoms.mass[:, 1]
        own = np.ones_like(weight) if atoms.squared is None else atoms.squared / weight
        return cls(atoms.p, np.stack([weight, events, events]), own)

    @classmethod
    def of_pairs(cls, pairs: Pairs) -> LeftOut:
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


def read_rows(y_true: Any, y_prob: Any, options: InputOptions) -> tuple[Atoms, LeftOut]:
    """Distinct predictions, and the rows one by one where these differ by more than their outcome."""
    if isinstance(y_true, Sketch | Atoms):
        atoms = as_atoms(y_true, y_prob, **options)
        return atoms, LeftOut.of_atoms(atoms)
    pairs = as_pairs(y_true, y_prob, **options)
    atoms = Atoms.from_pairs(pairs)
    return atoms, LeftOut.of_pairs(pairs) if pairs.fractional else LeftOut.of_atoms(atoms)
