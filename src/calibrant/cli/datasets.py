"""`calibrant datasets` and `calibrant demo`: real predictions to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrant.cli.options import Grouping, Measuring, Picture, Profiling, Reading, verb
from calibrant.cli.output import LONGEST_PATH, printable, show_json, show_table, target, write
from calibrant.errors import InputError

__all__ = ["datasets", "demo"]

INTRODUCTION = """\
Is a tumour malignant? A naive Bayes and a logistic regression say how
probable that is for 569 biopsies that they were not trained on (Wisconsin
breast cancer data, from scikit-learn)."""


@verb(
    "calibrant datasets",
    "calibrant datasets imagenet_resnet34 -o resnet.parquet",
    needs_arguments=False,
)
def datasets(name: str | None = None, output: str | None = None, json: bool = False) -> None:
    """List real data sets, or fetch one.

    Inputs
    ------
    name : NAME
        Describe this data set.

    Output
    ------
    output : FILE
        Fetch it and write it as .parquet or .csv.
    """
    from calibrant import datasets as collection

    if output is not None:
        if name is None:
            raise InputError("`output` writes one data set; name it.", argument="output")
        _fetch(name, output)
        return
    sources = [collection.describe(each) for each in ([name] if name else collection.names())]
    if json:
        show_json([_described(source) for source in sources])
    elif name is not None:
        for key, value in _described(sources[0]).items():
            for line in value if isinstance(value, tuple) else [value]:
                print(f"{key:11} {line}")
    else:
        columns = {
            "name": [source.name for source in sources],
            "rows": [f"{source.rows:,}" for source in sources],
            "contents": [source.title for source in sources],
        }
        show_table(columns, text=("name", "contents"))


def _described(source: Any) -> dict[str, Any]:
    names = ("name", "title", "rows", "licence", "citations")
    return {**{name: getattr(source, name) for name in names}, "addresses": source.addresses()}


def _fetch(name: str, output: str) -> None:
    """Write a data set as a table."""
    from calibrant import datasets as collection

    path = target(output, (".parquet", ".csv"), "a data set")
    found = collection.load(name)
    if any(values.ndim != 1 or values.size != found.n for values in found.columns.values()):
        raise InputError(
            f"{name} holds a matrix of class scores, which is no table.",
            hint=f'Load it in Python with `calibrant.datasets.load("{name}")`.',
        )
    _write_table(dict(found.columns), path)


def _write_table(columns: dict[str, Any], path: Path) -> None:
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    save = pyarrow.csv.write_csv if path.suffix == ".csv" else pyarrow.parquet.write_table
    table = pyarrow.table(columns)
    about = f": {table.num_rows:,} rows, columns {', '.join(columns)}."
    write(path, lambda file: save(table, file), about)


@verb("calibrant demo", needs_arguments=False)
def demo(output: str = "demo") -> None:
    """Assess, draw and report two real classifiers.

    Trains a naive Bayes and a logistic regression on data that ships with scikit-learn.

    Output
    ------
    output : FOLDER
        Folder to write into. [demo]
    """
    from calibrant.cli.assess import assess
    from calibrant.cli.plot import plot
    from calibrant.cli.report import report

    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"`output` must be a folder; {printable(folder, LONGEST_PATH)} is a file.")
    folder.mkdir(parents=True, exist_ok=True)
    predictions, picture, page = (
        folder / name for name in ("predictions.parquet", "diagram.svg", "report.html")
    )
    print(INTRODUCTION)
    _write_table(_predicted(), predictions)
    shared: Any = ([str(predictions)], Reading(prob=["p"], label="y"), Grouping(by=["model"]))
    command = f"{printable(predictions, LONGEST_PATH)} --by model"
    print(f"\n$ calibrant assess {command}", flush=True)
    assess(*shared, Measuring(), Profiling())
    print(f"\n$ calibrant plot {command} -o {picture}", flush=True)
    plot(*shared, Measuring(), Picture(), output=str(picture))
    print(f"\n$ calibrant report {command} -o {page}", flush=True)
    title = "Is the tumour malignant? Two classifiers"
    report(*shared, Measuring(), Profiling(), title=title, output=str(page))
    print(
        f"\nThe diagram:     {picture.resolve()}"
        f"\nThe report:      {page.resolve()}  (open it in a browser)"
        f"\nThe predictions: {predictions.resolve()}"
        "\n\nNow your own: calibrant assess YOUR_FILE.csv"
    )


def _predicted() -> dict[str, list[Any]]:
    """Predictions for every row by models that were trained on the other folds."""
    from calibrant._optional import require

    require("sklearn", caller="calibrant demo")
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features, benign = load_breast_cancer(return_X_y=True)
    models = {
        "naive Bayes": GaussianNB(),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }
    malignant = 1 - benign
    columns: dict[str, list[Any]] = {"model": [], "p": [], "y": []}
    for name, model in models.items():
        shares = cross_val_predict(model, features, malignant, cv=5, method="predict_proba")
        columns["model"] += [name] * len(malignant)
        columns["p"] += shares[:, 1].tolist()
        columns["y"] += malignant.tolist()
    return columns
