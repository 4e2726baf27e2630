"""`calibrant demo`: two real classifiers, assessed, drawn and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrant.cli.options import Grouping, Measuring, Picture, Profiling, Reading, verb
from calibrant.cli.output import LONGEST_PATH, printable, write
from calibrant.errors import InputError

__all__ = ["demo"]

INTRODUCTION = """\
Is a tumour malignant? A naive Bayes and a logistic regression say how
probable that is for 569 biopsies that they were not trained on (Wisconsin
breast cancer data, from scikit-learn)."""


@verb("calibrant demo", needs_arguments=False)
def demo(output: str = "demo") -> None:
    """Assess, draw and report two real classifiers.

    Trains a naive Bayes and a logistic regression on data that ships with scikit-learn.

    Output
    ------
    output : FOLDER
        Folder to write into. [demo]
    """
    import pyarrow
    import pyarrow.parquet

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
    table = pyarrow.table(_predicted())
    write(predictions, lambda file: pyarrow.parquet.write_table(table, file))
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
