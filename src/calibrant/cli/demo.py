"""`calibrant demo`: two real classifiers, assessed, drawn and reported."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from calibrant.cli.options import app, verb
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
    rows = [str(predictions), "--by", "model"]
    title = "Is the tumour malignant? Two classifiers"
    for words in (
        ["assess", *rows],
        ["plot", *rows, "-o", str(picture)],
        ["report", *rows, "--title", title, "-o", str(page)],
    ):
        print(f"\n$ calibrant {printable(shlex.join(words), 3 * LONGEST_PATH)}", flush=True)
        app(args=words, prog_name="calibrant", standalone_mode=False)
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
