"""How the default of SmoothRecalibrator was chosen, and whether the choice holds on other data.

Groups of the real data sets (a forecaster, a project, a class, a model) are sets of their own. Every other
one, and synthetic shapes, served to choose among maps; the rest were looked at once, afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from bench import pages
from calibrant import datasets, smooth_ece
from calibrant.recalibration.adaptive import AdaptiveRecalibrator
from calibrant.recalibration.effect import log_losses
from calibrant.recalibration.isotonic import IsotonicRecalibrator
from calibrant.recalibration.learned_map import Recalibrator
from calibrant.recalibration.parametric import BetaRecalibrator, PlattRecalibrator
from calibrant.recalibration.smooth import SmoothRecalibrator

Floats = NDArray[np.float64]
Sets = dict[str, tuple[Floats, Floats]]

GROUPED = {
    "solar_flares_all_models": ("model", "event"),
    "fivethirtyeight_all": ("project", "quantity"),
    "llm_token_confidence": ("llm",),
    "recidivism_broward": ("model",),
    "precip_niamey_2016": ("model",),
}
WHOLE = (
    "imagenet_resnet34",
    "imagenet_resnext50_32x4d",
    "nncal_densenet40_c10",
    "fmi_rain_tampere_2003",
    "solar_flares_daffs_c1",
    "verification_prob_frcs",
)
SHAPES = ("calibrated", "sine", "overconfident", "lattice", "rare_events", "end_heavy")
MOST_ROWS = 20_000
FEWEST_ROWS = {"precip_niamey_2016": 80}
FEWEST_OF_A_KIND = 10
CUTS = 2

OLD = "the paper's map"
MAPS: dict[str, Callable[[], Recalibrator]] = {
    OLD: lambda: SmoothRecalibrator(scale="probability", pseudo_rows=0),
    "paper's, pseudo-rows": lambda: SmoothRecalibrator(scale="probability"),
    "logit/4": lambda: SmoothRecalibrator(scale="logit/4", pseudo_rows=0),
    "logit/4, 3 pseudo-rows": lambda: SmoothRecalibrator(pseudo_rows=3),
    "logit/4, 10 (default)": SmoothRecalibrator,
    "Platt": PlattRecalibrator,
    "beta": BetaRecalibrator,
    "isotonic": IsotonicRecalibrator,
    "adaptive": AdaptiveRecalibrator,
}


def _grouped(name: str, by: tuple[str, ...]) -> Iterator[tuple[str, Floats, Floats]]:
    data = datasets.load(name)
    keys = np.array([" ".join(map(str, key)) for key in zip(*(data[c] for c in by), strict=True)])
    for key in np.unique(keys):
        yield f"{name} {key}", data.p[keys == key], data.y[keys == key]


def _classes() -> Iterator[tuple[str, Floats, Floats]]:
    ten = datasets.load("cifar10_logits_val_test")
    hundred = datasets.load("cifar100_wideresnet_16_4_probs")
    probs, labels = softmax(ten["logits_test"].astype(float), axis=1), ten["labels_test"].ravel()
    for k in range(10):
        yield f"cifar10 {k}", probs[:, k], (labels == k).astype(float)
    for k in range(0, 100, 12):
        of_class = (hundred["labels"].ravel() == k).astype(float)
        yield f"cifar100 {k}", np.clip(hundred["probs"][:, k], 0, 1).astype(float), of_class


def halves_of_the_sets() -> tuple[Sets, Sets]:
    """Sets to choose by, and sets to confirm the choice."""
    sources = [_grouped(name, by) for name, by in GROUPED.items()]
    sources.append((name, datasets.load(name).p, datasets.load(name).y) for name in WHOLE)
    sources.append(_classes())
    chosen: Sets = {}
    confirmed: Sets = {}
    for source in sources:
        for k, (name, p, y) in enumerate(filter(_is_enough, source)):
            kept = np.random.default_rng(0).permutation(p.size)[:MOST_ROWS]
            pair = (p[kept].astype(float), y[kept].astype(float))
            (confirmed if k % 2 else chosen)[name] = pair
    for shape in SHAPES:
        for n in (600, 6000, 20_000):
            drawn = datasets.generate(shape, n, seed=1)
            chosen[f"{shape} {n}"] = (drawn.p, drawn.y.astype(float))
    return chosen, confirmed


def _is_enough(named: tuple[str, Any, Any]) -> bool:
    name, p, y = named
    events = float(y.sum())
    return (
        p.size >= FEWEST_ROWS.get(name.split()[0], 300)
        and min(events, p.size - events) >= FEWEST_OF_A_KIND
    )


def _measured(p: Floats, y: Floats) -> dict[str, tuple[float, float]]:
    """Log loss and SmoothECE of every map on halves that it has not seen."""
    found: dict[str, list[tuple[float, float]]] = {"none": [], **{name: [] for name in MAPS}}
    for seed in range(CUTS):
        order = np.random.default_rng(seed).permutation(p.size)
        first, second = order[: p.size // 2], order[p.size // 2 :]
        if not 3 <= y[first].sum() <= first.size - 3:
            continue
        for name in found:
            made = MAPS[name]().fit(p[first], y[first]) if name in MAPS else None
            q = p[second] if made is None else np.clip(made.transform(p[second]), 0.0, 1.0)
            found[name].append((float(log_losses(y[second], q).mean()), smooth_ece(y[second], q)))
    return {name: tuple(np.mean(pairs, axis=0)) for name, pairs in found.items() if pairs}


def _table(title: str, sets: Sets, workers: int | None) -> pages.Table:
    with ProcessPoolExecutor(workers) as pool:
        found = pool.map(_measured, *zip(*sets.values(), strict=True))
    measured = [row for row in found if row]
    rows = []
    for name in measured[0]:
        values = np.array([row[name] for row in measured])
        change = values - np.array([row[OLD] for row in measured])
        mean, se = change.mean(axis=0), change.std(axis=0) / np.sqrt(len(measured))
        rows.append(
            [
                name,
                f"{values[:, 0].mean():.4f}",
                f"{mean[0]:+.4f} ± {se[0]:.4f}",
                f"{np.mean(change[:, 0] < -5e-5):.0%} / {np.mean(change[:, 0] > 5e-5):.0%}",
                f"{values[:, 1].mean():.4f}",
                f"{mean[1]:+.4f} ± {se[1]:.4f}",
            ]
        )
    header = ["map", "log loss", f"change from {OLD}", "better / worse", "SmoothECE", "change"]
    return pages.Table(f"{title}: {len(measured)} sets", header, rows)


def study(*, reduced: bool, workers: int | None) -> list[pages.Table]:
    """The tables of the sets that served to choose, and of those that confirm."""
    chosen, confirmed = halves_of_the_sets()
    if reduced:
        chosen, confirmed = (dict(list(sets.items())[::20]) for sets in (chosen, confirmed))
    notes = (
        "Mean over sets of log loss and SmoothECE on unseen halves, two splits each. ± is one standard "
        "error over sets.",
        "A set is a group of rows from one source (a forecaster, a project, a class, a model). Sets "
        "serve alternately for choosing and for confirming. The two use different groups but the same "
        "sources, so their errors are not independent.",
    )
    confirming = _table("Confirming that choice", confirmed, workers)
    return [
        _table("Choosing the default for SmoothRecalibrator", chosen, workers),
        replace(confirming, notes=notes),
    ]
