"""Recalibration by group: the worst group on rows held out, beside MCGrad's.

python -m bench.peers.group_maps            # makes the environment "mcgrad" first, if it is not there
python -m bench.peers.group_maps --halves 8 --seed 100    # other halves, other draws
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from bench import environments, pages
from calibrant import datasets, smooth_ece
from calibrant.recalibration import GroupRecalibrator
from calibrant.recalibration.effect import log_losses

WORKER = Path(__file__).with_name("group_maps_worker.py")
HALVES = 4
LEAST = 50
"""Rows of a group, in the held-out half, whose error is looked at."""
DRAWN = 40_000
"""Rows of a drawn set that are held out; their chances are known, and stand for outcomes."""


@dataclass(frozen=True)
class Half:
    """Rows to learn from, rows held out, the columns that define groups, and the groups that are judged.

    `learn` and `test` hold p and y, whose values in `test` are chances where these are known.
    """

    learn: pd.DataFrame
    test: pd.DataFrame
    by: list[str]
    groups: pd.DataFrame

    def each(self) -> Iterator[np.ndarray]:
        """Rows of every judged group."""
        for name in self.groups:
            for _, rows in self.groups.groupby(name, observed=True).indices.items():
                if rows.size >= LEAST:
                    yield rows


@dataclass(frozen=True)
class Found:
    """Means over halves: SmoothECE and mean gap of the worst group, log loss, and those of the base map."""

    name: str
    rows: int
    ours: tuple[float, float, float]
    mcgrad: tuple[float, float, float]
    base: tuple[float, float, float]
    apart: float
    worse: float

    @property
    def beats(self) -> bool:
        return self.ours[0] < self.mcgrad[0]


def _real(
    frame: pd.DataFrame, by: list[str], seed: int, crossed: list[str], unit: str = ""
) -> Half:
    """A random half of real rows; rows of one unit stay together."""
    rng = np.random.default_rng(seed)
    units = frame[unit] if unit else pd.Series(np.arange(len(frame)), index=frame.index)
    names = units.unique()
    first = units.isin(rng.permutation(names)[: len(names) // 2])
    learn, test = (frame[part].reset_index(drop=True) for part in (first, ~first))
    groups = pd.DataFrame({name: bands(test[name]) for name in by})
    groups["crossed"] = [" ".join(map(str, row)) for row in groups[crossed].to_numpy()]
    return Half(learn[["p", "y", *by]], test[["p", "y", *by]], by, groups)


def bands(column: pd.Series) -> pd.Series:
    """Numbers in ten bands of equal width, categories as they are."""
    return pd.cut(column, 10).astype(str) if column.dtype.kind == "f" else column.astype(str)


def _loaded(name: str) -> pd.DataFrame:
    return pd.DataFrame(dict(datasets.load(name).columns))


def recidivism(seed: int) -> Half:
    """One forecaster: the four of the set judge the same people."""
    frame = _loaded("recidivism_broward").astype({"age": float})
    frame = frame[frame["model"] == "compas"].copy()
    frame["race"], frame["sex"] = (frame[name].map("n{}".format) for name in ("race", "sex"))
    return _real(frame, ["race", "sex", "age"], seed, ["race", "sex"])


def flares(seed: int) -> Half:
    frame = _loaded("solar_flares_all_models")
    return _real(frame, ["model", "event"], seed, ["model", "event"], "date")


def language_models(seed: int) -> Half:
    frame = _loaded("llm_token_confidence")
    frame["question"] = frame["qset"] + frame["question_id"].astype(str)
    return _real(frame, ["llm", "qset"], seed, ["llm", "qset"], "question")


def forecasts(seed: int) -> Half:
    frame = _loaded("fivethirtyeight_all").sample(40_000, random_state=0)
    return _real(frame, ["project", "quantity"], seed, ["project", "quantity"], "date")


def football(seed: int) -> Half:
    frame = _loaded("nfl_elo_1920_with_ties")
    frame = frame[frame["p"].between(0, 1) & frame["y"].isin([0.0, 1.0])].astype({"season": float})
    frame["playoff"], frame["neutral"] = (
        frame[name].map("n{}".format) for name in ("playoff", "neutral")
    )
    return _real(frame, ["playoff", "neutral", "season"], seed, ["playoff", "neutral"])


def cancer(seed: int) -> Half:
    """Two columns predict; a third, which the model has not seen, makes the groups."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    made = make_pipeline(StandardScaler(), LogisticRegression())
    seen = X[["mean radius", "mean texture"]]
    p = cross_val_predict(made, seen, 1 - y, cv=5, method="predict_proba")[:, 1]
    frame = pd.DataFrame({"p": p, "y": 1 - y, "smoothness": X["mean smoothness"]})
    frame["rough"] = np.where(frame["smoothness"] > frame["smoothness"].median(), "rough", "smooth")
    half = _real(frame, ["smoothness"], seed, ["smoothness"])
    rest = frame.set_index(["p", "smoothness"])["rough"]
    test = half.test.set_index(["p", "smoothness"]).index
    return Half(half.learn, half.test, half.by, pd.DataFrame({"rough": rest.loc[test].to_numpy()}))


def _drawn(
    seed: int,
    n: int,
    columns: Callable[[np.random.Generator, int], pd.DataFrame],
    truth: Callable[[pd.DataFrame, np.ndarray], np.ndarray],
    judged: Callable[[pd.DataFrame], pd.DataFrame],
) -> Half:
    rng = np.random.default_rng(1000 + seed)
    halves = []
    for size, known in ((n, False), (DRAWN, True)):
        frame = columns(rng, size)
        p = expit(rng.normal(-0.5, 1.2, size))
        chance = np.clip(truth(frame, p), 0.0, 1.0)
        y = chance if known else (rng.random(size) < chance).astype(int)
        halves.append(frame.assign(p=p, y=y))
    by = [name for name in halves[0] if name not in "py"]
    return Half(halves[0], halves[1], by, judged(halves[1]))


def exclusive_or(seed: int) -> Half:
    """Two columns; the error is ±.1 by their agreement."""

    def columns(rng: np.random.Generator, n: int) -> pd.DataFrame:
        return pd.DataFrame({name: rng.choice(["u", "v"], n) for name in "ab"})

    return _drawn(
        seed,
        20_000,
        columns,
        lambda rows, p: p + np.where(rows["a"] == rows["b"], 0.1, -0.1),
        lambda rows: pd.DataFrame({"pair": rows["a"] + rows["b"]}),
    )


def pair(seed: int) -> Half:
    """Four columns of five categories; .15 too low in one pair, 4% of the rows."""

    def columns(rng: np.random.Generator, n: int) -> pd.DataFrame:
        return pd.DataFrame({name: rng.choice([*"uvwxy"], n) for name in "abcd"})

    return _drawn(
        seed,
        20_000,
        columns,
        lambda rows, p: p + 0.15 * ((rows["a"] == "u") & (rows["b"] == "v")),
        lambda rows: pd.DataFrame({"pair": rows["a"] + rows["b"]}),
    )


def sites(seed: int) -> Half:
    """Thirty sites of unlike size with offsets and slopes of their own."""
    rng = np.random.default_rng(7)
    names = np.array([f"s{k}" for k in range(30)])
    offset = pd.Series(rng.normal(0.0, 0.5, 30), names)
    slope = pd.Series(np.exp(rng.normal(0.0, 0.4, 30)), names)
    share = rng.dirichlet(np.full(30, 2.0))

    return _drawn(
        seed,
        10_000,
        lambda rng, n: pd.DataFrame({"site": rng.choice(names, n, p=share)}),
        lambda rows, p: expit(
            rows["site"].map(offset).to_numpy() + rows["site"].map(slope).to_numpy() * logit(p)
        ),
        lambda rows: rows[["site"]],
    )


def age(seed: int) -> Half:
    """Too low for the old, the more the older, and more so for one sex."""

    def columns(rng: np.random.Generator, n: int) -> pd.DataFrame:
        return pd.DataFrame({"age": rng.uniform(20, 90, n), "sex": rng.choice(["f", "m"], n)})

    def truth(rows: pd.DataFrame, p: np.ndarray) -> np.ndarray:
        older = np.maximum(rows["age"].to_numpy() - 60.0, 0.0) / 30.0
        return expit(logit(p) + older * np.where(rows["sex"] == "f", 1.2, 0.4))

    def judged(rows: pd.DataFrame) -> pd.DataFrame:
        band = bands(rows["age"])
        return pd.DataFrame({"age": band, "age and sex": band + rows["sex"]})

    return _drawn(seed, 10_000, columns, truth, judged)


SETS: dict[str, Callable[[int], Half]] = {
    "recidivism, by race and sex": recidivism,
    "solar flares, by forecaster and class": flares,
    "language models, by model and questions": language_models,
    "forecasts, by project and quantity": forecasts,
    "football, by place and season": football,
    "breast cancer, by an unseen column": cancer,
    "exclusive or": exclusive_or,
    "one pair of 25, four columns": pair,
    "thirty sites": sites,
    "age, more so for one sex": age,
}


def theirs(halves: list[Half]) -> list[np.ndarray]:
    """MCGrad's predictions of the held-out rows."""
    python = environments.make("mcgrad")
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name, f"{k:04d}") for k in range(len(halves))]
        for folder, half in zip(folders, halves, strict=True):
            folder.mkdir()
            numeric = [name for name in half.by if half.learn[name].dtype.kind == "f"]
            kinds = {"categorical": [n for n in half.by if n not in numeric], "numerical": numeric}
            (folder / "columns.json").write_text(json.dumps(kinds))
            half.learn.to_csv(folder / "learn.csv", index=False)
            half.test.to_csv(folder / "test.csv", index=False)
        subprocess.run([python, WORKER, name], check=True)
        return [np.load(folder / "answer.npy") for folder in folders]


def worst(half: Half, p: np.ndarray) -> tuple[float, float, float]:
    """SmoothECE and mean gap, each of the group where it is largest, and the log loss of all rows."""
    y = half.test["y"].to_numpy(dtype=float)
    p = np.clip(p, 0.0, 1.0)
    labels = "binary" if np.isin(y, (0.0, 1.0)).all() else "soft"
    errors = [float(smooth_ece(y[rows], p[rows], labels=labels)) for rows in half.each()]
    gaps = [abs(float(np.mean(y[rows] - p[rows]))) for rows in half.each()]
    return max(errors), max(gaps), float(log_losses(y, p).mean())


def measured(name: str, halves: list[Half], mcgrad: list[np.ndarray]) -> Found:
    scores = []
    rises = []
    for half, answer in zip(halves, mcgrad, strict=True):
        made = GroupRecalibrator(by=half.by, y_prob="p").fit(half.learn, half.learn["y"])
        ours, base = np.asarray(made.transform(half.test)), made.map_.transform(half.test["p"])
        y = half.test["y"].to_numpy(dtype=float)
        lost = log_losses(y, ours) - log_losses(y, np.asarray(base))
        rises.append([lost.mean(), lost.std() / np.sqrt(lost.size)])
        scores.append([worst(half, each) for each in (ours, answer, base)])
    table = np.array(scores)
    rise, noise = np.mean(rises, axis=0)
    worse = float(rise / noise) if noise > 0.0 else 0.0
    apart = table[:, 0, 0] - table[:, 1, 0]
    ours, theirs, base = (tuple(map(float, table[:, k].mean(axis=0))) for k in range(3))
    error = float(apart.std(ddof=1) / np.sqrt(len(halves)))
    return Found(name, len(halves[0].learn), ours, theirs, base, error, worse)


def page(found: list[Found]) -> pages.Page:
    rows = [
        [
            one.name,
            f"{one.rows:,}",
            *(f"{each[0]:.4f}" for each in (one.base, one.mcgrad, one.ours)),
            f"{one.ours[0] - one.mcgrad[0]:+.4f} ± {one.apart:.4f}",
            *(f"{each[1]:.4f}" for each in (one.base, one.mcgrad, one.ours)),
            *(f"{each[2]:.4f}" for each in (one.base, one.mcgrad, one.ours)),
            f"{one.worse:+.1f}",
        ]
        for one in found
    ]
    not_there = ", ".join(one.name for one in found if not one.beats) or "none"
    header = ["set", "rows fitted"]
    header += ["base map", "MCGrad", "ours", "ours - MCGrad"]
    header += [f"gap, {one}" for one in ("base", "MCGrad", "ours")]
    header += [f"log loss, {one}" for one in ("base", "MCGrad", "ours")]
    notes = [
        f"`GroupRecalibrator` has the smaller error in {sum(one.beats for one in found)} of {len(found)} "
        f"sets; not in: {not_there}.",
        "SmoothECE of the group where it is largest, then the mean gap of the group where that is largest, "
        f"on rows held out, means over halves. Groups of {LEAST} rows or more. Of drawn sets the chances are "
        "known, and groups are judged by them.",
        "Worse than the base map: the mean rise of the log loss on held-out rows over the base map's, in "
        "standard errors of the paired difference on one half; negative where it falls.",
    ]
    table = pages.Table("The worst group", [*header, "worse than the base map"], rows, notes)
    return pages.Page(
        "group-maps",
        "Recalibration by group",
        "python -m bench.peers.group_maps",
        "`GroupRecalibrator` and MCGrad fitted to the same rows with the same columns, both with their "
        "defaults, and judged on other rows.",
        [table],
        environments.pinned("MCGrad"),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--halves", type=int, default=HALVES)
    parser.add_argument(
        "--seed", type=int, default=0, help="of the halves; others than 0 write no page"
    )
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.halves)
    every = {name: [made(seed) for seed in seeds] for name, made in SETS.items()}
    answers = iter(theirs([half for halves in every.values() for half in halves]))
    found = [
        measured(name, halves, [next(answers) for _ in halves]) for name, halves in every.items()
    ]
    pages.save("group-maps", [asdict(one) for one in found])
    made = page(found)
    if options.seed == 0:
        made.write(pages.EVIDENCE)
    print(made.markdown())


if __name__ == "__main__":
    main()
