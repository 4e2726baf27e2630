"""The rows of each group, where there are rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.rows import Rows
from calibrant.inference.assess import read_clustered
from calibrant.io.group_keys import indexed

__all__ = ["GroupRows"]


@dataclass(frozen=True, eq=False)
class GroupRows:
    """The rows of one group, or of all of them, and what they are grouped by."""

    y_true: NDArray[Any]
    y_prob: NDArray[Any]
    cluster: NDArray[Any] | None
    options: Mapping[str, Any]
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """As the functions of the library take them."""
        return {
            "y_true": self.y_true,
            "y_prob": self.y_prob,
            "cluster": self.cluster,
            **self.options,
        }

    def pairs(self) -> tuple[Rows, tuple[NDArray[np.int64], int] | None]:
        """Checked, and the cluster of each row."""
        return read_clustered(**self.arguments)

    def by(self, names: Sequence[str]) -> dict[tuple[Any, ...], GroupRows]:
        """The rows of each group by its values in these columns."""
        if not names:
            return {(): self}
        values = (self.columns[name].tolist() for name in names)
        place, keys = indexed(zip(*values, strict=True))
        return {key: self._at(np.flatnonzero(place == k)) for k, key in enumerate(keys)}

    def _at(self, rows: NDArray[np.int64]) -> GroupRows:
        weight = self.options.get("sample_weight")
        return GroupRows(
            self.y_true[rows],
            self.y_prob[rows],
            None if self.cluster is None else self.cluster[rows],
            {**self.options} if weight is None else {**self.options, "sample_weight": weight[rows]},
            {name: column[rows] for name, column in self.columns.items()},
        )
