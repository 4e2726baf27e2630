"""The numbers of the paper, reproduced.

python -m bench.paper              # writes the page
python -m bench.paper --reduced    # a rehearsal, for CI
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import calibrant
from bench import pages
from bench.exact import exact_smooth_ece
from bench.peers.asking import NoAnswer, ask
from calibrant import datasets

Rows = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Experiment:
    """One figure: where its rows come from and what is printed under it.

    `printed` is what the paper (or, for the first figure, the authors' notebook) prints; `digits` is
    how many digits that has. `variant_of` names the figure that other rows of the same table could be.
    """

    name: str
    title: str
    rows: Callable[[], Rows]
    printed: float | None
    margin: float | None = None
    digits: int = 3
    variant_of: str = ""


def _named(name: str) -> Callable[[], Rows]:
    def rows() -> Rows:
        loaded = datasets.load(name)
        return loaded.p, loaded.y

    return rows


def _rain_two_days_ahead() -> Rows:
    """The 48-hour forecasts of the same table; sentinels mean that a value is missing."""
    table = datasets.load("fmi_rain_raw_sentinels")
    known = (table["p48_cat0"] >= 0.0) & (table["obs_mm"] < 999.0)
    return 1.0 - table["p48_cat0"][known], table.y[known]


def _drawn() -> Rows:
    drawn = datasets.generate("paper_sine")
    return drawn.p, drawn.y


def _logistic_regression() -> Rows:
    """The first figure's model, trained as the authors' notebook trains it."""
    import warnings

    from sklearn.datasets import make_classification
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import train_test_split

    made = make_classification(n_samples=700, random_state=0)
    train, test, y_train, y_test = train_test_split(*made, test_size=400, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model = LogisticRegressionCV().fit(train, y_train)
    return model.predict_proba(test)[:, 1], y_test


def _eight() -> Rows:
    """Eight rows to show how the number is made."""
    p = np.array([0.06, 0.18, 0.31, 0.42, 0.55, 0.68, 0.83, 0.95])
    return p, np.array([0, 1, 0, 0, 1, 1, 0, 1])


EXPERIMENTS = (
    Experiment("hero", "The first figure: a logistic regression", _logistic_regression, 0.1337, digits=4),
    Experiment("imagenet", "ResNet-34 on ImageNet", _named("imagenet_resnet34"), 0.078, 0.004),
    Experiment("flares", "Solar flares (DAFFS)", _named("solar_flares_daffs_c1"), 0.067, 0.021),
    Experiment("rain", "Rain in Finland, 24 hours ahead", _named("fmi_rain_tampere_2003"), 0.132, 0.041),
    Experiment("rain-48", "Rain in Finland, 48 hours ahead", _rain_two_days_ahead, None, variant_of="rain"),
    Experiment("synthetic", "The synthetic example", _drawn, 0.045, 0.013),
    Experiment("eight", "Eight rows", _eight, None),
)  # fmt: skip


def study() -> dict[str, dict[str, Any]]:
    """The number of every figure, four times."""
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for experiment in EXPERIMENTS:
            p, y = experiment.rows()
            files[experiment.name] = [str(Path(folder, f"{experiment.name}-{k}.npy")) for k in "py"]
            np.save(files[experiment.name][0], p)
            np.save(files[experiment.name][1], y)
            result = calibrant.smooth_ece_result(y, p)
            found[experiment.name] = {
                "exact": exact_smooth_ece(y, p),
                "calibrant": result.value,
                "certificate": result.certificate.total,
                "n": len(p),
            }
            print(f"{experiment.name}: {result}", file=sys.stderr, flush=True)
        try:
            answer = ask("relplot", "values", files=files)
        except NoAnswer as error:
            answer = {"values": {}, "version": str(error)}
    for name, one in found.items():
        one["relplot"] = answer["values"].get(name)
        one["relplot version"] = answer["version"]
    return found


def agrees(value: float | None, printed: float, digits: int) -> bool:
    """Whether a value rounds to what is printed, or lies within half a unit of its last digit."""
    return value is not None and abs(value - printed) <= 0.5 * 10.0**-digits + 1e-9


def note(experiment: Experiment, found: dict[str, dict[str, Any]]) -> str:
    """Where the numbers differ, and why, found by comparing them."""
    one, printed, digits = found[experiment.name], experiment.printed, experiment.digits
    if abs(one["calibrant"] - one["exact"]) > one["certificate"] + 1e-12:
        return "**calibrant is further from the exact value than its certificate**"
    if printed is None:
        return "not printed"
    if agrees(one["exact"], printed, digits):
        return "agrees to the printed digits"
    if agrees(one["relplot"], printed, digits):
        return (
            "the printed number is relplot's value: its reflection at the ends and its grid of "
            "bandwidths differ"
        )
    for other in EXPERIMENTS:
        theirs = found[other.name]["relplot"]
        if other.variant_of == experiment.name and agrees(theirs, printed, digits):
            return f"the printed number is relplot's ({theirs:.4f}) for: {other.title}"
    return f"the exact value is {abs(one['exact'] - printed):.4f} away from the printed one"


def table(found: dict[str, dict[str, Any]]) -> pages.Table:
    rows = []
    for experiment in EXPERIMENTS:
        one, printed = found[experiment.name], experiment.printed
        shown = "" if printed is None else f"{printed:.{experiment.digits}f}".lstrip("0")
        if experiment.margin is not None:
            shown += f" ± {experiment.margin:.3f}".replace("± 0", "± ")
        relplot = "none" if one["relplot"] is None else f"{one['relplot']:.6f}"
        rows.append(
            [
                experiment.title,
                f"{one['n']:,}",
                shown,
                relplot,
                f"{one['exact']:.9f}",
                f"{one['calibrant']:.9f}",
                f"{one['certificate']:.0e}",
                note(experiment, found),
            ]
        )
    return pages.Table(
        "Every number, four ways",
        ["figure", "rows", "printed", "relplot", "exact", "calibrant", "its certificate", "note"],
        rows,
        [
            "Printed: the number in the paper's figure or, for the first figure, in the authors' "
            "notebook. The margins are the paper's own (bootstrap).",
            "Exact: computed without a grid by `bench/exact.py`. The certificate is calibrant's proven "
            "bound on its own error.",
            "The eight rows are ours: the paper does not print the rows of its illustration.",
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reduced", action="store_true", help="a rehearsal, for CI")
    reduced = parser.parse_args().reduced
    found = study()
    pages.save("paper", found)
    versions = {"calibrant": calibrant.__version__}
    versions["relplot"] = next(iter(found.values()))["relplot version"]
    page = pages.Page(
        "paper",
        "The paper, reproduced",
        "python -m bench.paper" + (" --reduced" if reduced else ""),
        "The numbers of Błasiok and Nakkiran, *Smooth ECE: Principled Reliability Diagrams via Kernel "
        "Smoothing* (arXiv:2309.12236), from the same data.",
        [table(found)],
        versions,
    )
    print(page.write(pages.place(reduced)).read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
