"""MCGrad's predictions, for `group_maps.py`: runs inside its environment. Takes a folder of questions."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from mcgrad import methods

warnings.filterwarnings("ignore")


def answer(folder: Path) -> None:
    columns = json.loads((folder / "columns.json").read_text())
    learn, test = (pd.read_csv(folder / f"{part}.csv") for part in ("learn", "test"))
    kinds = {f"{kind}_feature_column_names": names for kind, names in columns.items()}
    made = methods.MCGrad().fit(learn, "p", "y", **kinds)
    np.save(folder / "answer.npy", np.asarray(made.predict(test, "p", **kinds), dtype=np.float64))


def main() -> None:
    for question in sorted(Path(sys.argv[1]).iterdir()):
        answer(question)


if __name__ == "__main__":
    main()
