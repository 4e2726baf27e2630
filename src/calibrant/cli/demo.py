"""`calibrant demo`: two real classifiers, then the commands that anybody would type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from calibrant._optional import require
from calibrant.cli.assess import run_assess
from calibrant.cli.output import printable, written
from calibrant.cli.plot import run_plot
from calibrant.cli.report import run_report
from calibrant.cli.shared_options import Grouping, Measuring, Reading
from calibrant.errors import InputError, Option

__all__ = ["run_demo"]

CALLER = "calibrant demo"
INTRODUCTION = """\
Is a tumour malignant? A naive Bayes and a logistic regression say how
probable that is for 569 biopsies that they were not trained on (Wisconsin
breast cancer data, from scikit-learn).
"""


def run_demo(output: str) -> None:
    """Train, write the predictions, and assess, plot and report them."""
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise InputError(
            "{folder} is a file", folder=printable(folder, 200), cure="Name a folder with {output}.",
            output=Option("output"),
        )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    predictions = folder / "predictions.parquet"
    print(INTRODUCTION, end="")
    table = _predicted()
    parquet = require("pyarrow.parquet", caller=CALLER)
    written(predictions, lambda path: parquet.write_table(table, path))
    files, reading = [str(predictions)], Reading(prob=["p"], label="y")
    grouping, measuring = Grouping(by=["model"]), Measuring()
    shown = printable(predictions, 200)
    _announce(f"calibrant assess {shown} --by model")
    run_assess(files, reading, grouping, measuring)
    picture, page = folder / "diagram.svg", folder / "report.html"
    _announce(f"calibrant plot {shown} --by model -o {printable(picture, 200)}")
    run_plot(files, reading, grouping, measuring, output=str(picture))
    command = f"calibrant report {shown} --by model -o {printable(page, 200)}"
    _announce(command)
    title = "Is the tumour malignant? Two classifiers"
    run_report(files, reading, grouping, measuring, title, str(page), command)
    print(
        f"\nThe diagram:     {picture.resolve()}"
        f"\nThe report:      {page.resolve()}  (open it in a browser)"
        f"\nThe predictions: {predictions.resolve()}"
        "\n\nNow your own: calibrant assess YOUR_FILE.csv"
    )


def _announce(command: str) -> None:
    print(f"\n$ {command}", flush=True)


def _predicted() -> Any:
    """Predictions for every row by models that were trained on the other folds."""
    datasets = require("sklearn.datasets", caller=CALLER)
    linear = require("sklearn.linear_model", caller=CALLER)
    bayes = require("sklearn.naive_bayes", caller=CALLER)
    pipeline = require("sklearn.pipeline", caller=CALLER)
    scaling = require("sklearn.preprocessing", caller=CALLER)
    selection = require("sklearn.model_selection", caller=CALLER)
    pyarrow = require("pyarrow", caller=CALLER)
    features, benign = datasets.load_breast_cancer(return_X_y=True)
    models = {
        "naive Bayes": bayes.GaussianNB(),
        "logistic regression": pipeline.make_pipeline(
            scaling.StandardScaler(), linear.LogisticRegression(max_iter=1000)
        ),
    }
    malignant = 1 - benign
    columns: dict[str, list[Any]] = {"model": [], "p": [], "y": []}
    for name, model in models.items():
        shares = selection.cross_val_predict(
            model, features, malignant, cv=5, method="predict_proba"
        )
        columns["model"] += [name] * len(malignant)
        columns["p"] += shares[:, 1].tolist()
        columns["y"] += malignant.tolist()
    return pyarrow.table(columns)
