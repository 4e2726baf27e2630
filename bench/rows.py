"""Rows of real predictions, cut in two at random with the rows of one event together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import confidence, datasets
from calibrant.data.rows import Rows as CheckedRows
from calibrant.data.rows import as_rows

Floats = NDArray[np.float64]

EVENTS = {
    "precip_niamey_2016": ("date",),
    "solar_flares_all_models": ("date",),
    "solar_flares_all_models_with_nan": ("date",),
    "llm_token_confidence": ("qset", "question_id"),
    "fivethirtyeight_all": ("project", "date"),
}
"""Columns that tell which rows forecast one event, where there are several: they stay together."""

SAME_ORDER = {"recidivism_broward": "model"}
"""Where every value of a column has rows of the same events, in the same order."""


@dataclass(frozen=True)
class Rows:
    """Predictions and outcomes of one data set; the event of each row, where rows share one."""

    name: str
    p: Floats
    y: Floats
    event: NDArray[np.int64] | None = None

    def standard_error(self, of_rows: Floats) -> float:
        """Of the mean of a figure of every row; the rows of an event err together."""
        event = np.arange(self.p.size) if self.event is None else self.event
        errors = np.bincount(event, of_rows - of_rows.mean())
        return float(np.linalg.norm(errors)) / self.p.size

    def halves(self, seed: int) -> tuple[Rows, Rows]:
        """Cut in two at random, events as a whole."""
        event = np.arange(self.p.size) if self.event is None else self.event
        order = np.random.default_rng(seed).permutation(int(event.max()) + 1)
        first = order[event] < order.size // 2
        return self._where(first), self._where(~first)

    def at_most(self, n: int, seed: int) -> Rows:
        """No more rows than that, or so: of larger sets, events drawn at random."""
        if self.p.size <= n:
            return self
        event = np.arange(self.p.size) if self.event is None else self.event
        share = np.random.default_rng([seed, n]).random(int(event.max()) + 1) < n / self.p.size
        return self._where(share[event])

    def some(self, n: int, seed: int) -> Rows:
        """So many rows, drawn at random."""
        chosen = np.zeros(self.p.size, dtype=np.bool_)
        chosen[np.random.default_rng([seed, n]).permutation(self.p.size)[:n]] = True
        return self._where(chosen)

    def _where(self, kept: NDArray[np.bool_]) -> Rows:
        event = None if self.event is None else self.event[kept]
        return Rows(self.name, self.p[kept], self.y[kept], event)


def sets() -> Iterator[Rows]:
    """Every set of predictions: of one event, or of the class that a model finds most likely."""
    for name in datasets.names():
        data = datasets.load(name)
        pairs = _pairs(name, data)
        columns = {key: np.asarray(values) for key, values in data.columns.items()}
        if pairs.kept is not None:
            columns = {key: values[pairs.kept] for key, values in columns.items()}
        yield Rows(name, pairs.p, pairs.y, _events(name, columns))
    toy = datasets.generate("paper_sine", 1_000)
    yield Rows("the paper's sine", toy.p, toy.y.astype(np.float64))


def _pairs(name: str, data: Any) -> CheckedRows:
    if name == "cifar10_logits_val_test":
        return confidence(data["labels_test"].ravel(), data["logits_test"], from_logits=True)
    if name == "cifar100_wideresnet_16_4_probs":
        return confidence(data["labels"].ravel(), data["probs"])
    return as_rows(data["y"], data["p"], percent=name.endswith("percent"), on_invalid="drop")


def _events(name: str, columns: Mapping[str, Any]) -> NDArray[np.int64] | None:
    if name in SAME_ORDER:
        groups, group = np.unique(columns[SAME_ORDER[name]].astype(str), return_inverse=True)
        place = np.empty(group.size, dtype=np.int64)
        for k in range(groups.size):
            place[group == k] = np.arange(np.sum(group == k))
        return place
    if name not in EVENTS:
        return None
    code = np.zeros(len(columns["y"]), dtype=np.int64)
    for column in EVENTS[name]:
        values, part = np.unique(columns[column].astype(str), return_inverse=True)
        code = np.unique(code * values.size + part.ravel(), return_inverse=True)[1].ravel()
    return code.astype(np.int64)
