"""From an original file to columns: `p` and `y`, with the groups and dates that the source has."""

from __future__ import annotations

import csv
import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._optional import require
from calibrant.errors import InputError, Where

__all__ = ["CONVERTERS", "Columns", "fingerprint", "row_count"]

Columns = dict[str, NDArray[Any]]
Converter = Callable[[Sequence[Path]], Columns]
CONVERTERS: dict[str, Converter] = {}

_MISSING = frozenset({"", "NA", "NaN", "nan"})
_NANO = 1e9


def _converter(function: Converter) -> Converter:
    CONVERTERS[function.__name__] = function
    return function


def row_count(columns: Columns) -> int:
    """Rows of the part that is tested on."""
    for name in ("y", "labels", "labels_test"):
        if name in columns:
            return len(columns[name])
    raise InputError(
        "a data set needs a column 'y', 'labels' or 'labels_test'",
        seen=[*columns],
        saying="it has {}",
        cure="Name one of its columns so.",
    )


def _nano(values: NDArray[Any]) -> NDArray[np.int64]:
    """Integers that do not depend on the last bits of a float; missing is the lowest integer."""
    floats = np.asarray(values, dtype=np.float64)
    missing = np.isnan(floats)
    scaled = np.rint(np.where(missing, 0.0, floats) * _NANO).astype(np.int64)
    scaled[missing] = np.iinfo(np.int64).min
    return scaled


def fingerprint(columns: Columns) -> str:
    """SHA-256 of the rows: sorted pairs to nine digits, or float32 scores with their labels."""
    digest = sha256()
    if "p" in columns:
        rows = np.stack([_nano(columns["y"]), _nano(columns["p"])])
        digest.update(rows[:, np.lexsort(rows)].astype("<i8").tobytes())
        return digest.hexdigest()
    for name in sorted(columns):
        kind = "<i8" if name.startswith("labels") else "<f4"
        digest.update(name.encode() + columns[name].astype(kind).tobytes())
    return digest.hexdigest()


def _table(path: Path) -> dict[str, list[str]]:
    """A comma-separated file with a header, as text."""
    with path.open(newline="", encoding="utf-8") as stream:
        reader = csv.reader(stream)
        header = next(reader, [])
        columns: list[list[str]] = [[] for _ in header]
        for line, row in enumerate(reader, start=2):
            if not row:
                continue
            if len(row) != len(header):
                raise InputError(
                    "every row must have {width} values",
                    seen=len(row),
                    where=Where(line=line, file=path.name),
                    cure="The file is damaged: fetch it again.",
                    width=len(header),
                )
            for column, value in zip(columns, row, strict=True):
                column.append(value)
    return dict(zip(header, columns, strict=True))


def _floats(values: Sequence[str]) -> NDArray[np.float64]:
    return np.array([np.nan if v in _MISSING else float(v) for v in values], dtype=np.float64)


def _integers(values: Sequence[str]) -> NDArray[np.int64]:
    return np.array([int(v) for v in values], dtype=np.int64)


def _stack(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@_converter
def confidences(paths: Sequence[Path]) -> Columns:
    table = _table(paths[0])
    truth, predicted = _integers(table["true_label"]), _integers(table["pred_label"])
    return {
        "p": _floats(table["confidence"]),
        "y": (truth == predicted).astype(np.int8),
        "true_label": truth,
        "pred_label": predicted,
    }


def _flare_models(path: Path) -> Iterator[tuple[str, Columns]]:
    """One part a forecaster: every column between the date and the realisation."""
    table = _table(path)
    realised = next(name for name in table if name.startswith("rlz."))
    event = realised.removeprefix("rlz.")
    outcome = _integers(table[realised]).astype(np.int8)
    date = np.array(table["VALID_DATE"])
    for model in table:
        if model in ("VALID_DATE", realised):
            continue
        yield (
            model,
            {
                "p": _floats(table[model]),
                "y": outcome,
                "date": date,
                "model": np.full(len(date), model),
                "event": np.full(len(date), event),
            },
        )


@_converter
def solar_flares_as_published(paths: Sequence[Path]) -> Columns:
    return _stack([part for path in paths for _, part in _flare_models(path)])


@_converter
def solar_flares(paths: Sequence[Path]) -> Columns:
    every = solar_flares_as_published(paths)
    valid = (every["p"] >= 0.0) & (every["p"] <= 1.0)
    return {name: values[valid] for name, values in every.items()}


@_converter
def solar_flares_daffs(paths: Sequence[Path]) -> Columns:
    part = dict(_flare_models(paths[0]))["DAFFS"]
    return {name: part[name] for name in ("p", "y", "date")}


@_converter
def recidivism(paths: Sequence[Path]) -> Columns:
    table = _table(paths[0])
    people = {name: _integers(table[name]) for name in ("race", "sex", "age")}
    outcome = _integers(table["two_year_recid"]).astype(np.int8)
    predictors = {
        "logit": "logitpredprobs",
        "gbm": "gbmpredprobs",
        "mturk": "mturkpredprobs",
        "compas": "compaspredprobs.linear",
    }
    return _stack(
        [
            {
                "p": _floats(table[column]),
                "y": outcome,
                "model": np.full(len(outcome), model),
                **people,
            }
            for model, column in predictors.items()
        ]
    )


def _r_frame(path: Path, name: str) -> Any:
    """The data frame `name` of an R data file."""
    rdata = require("rdata", caller=f"the data set in {path.name}")
    return rdata.read_rda(str(path))[name]


def _r_days(values: Any) -> NDArray[np.str_]:
    """R keeps a date as the number of days since 1970."""
    days = np.asarray(values)
    if days.dtype.kind in "fiu":
        days = days.astype(np.int64).astype("datetime64[D]")
    return days.astype(np.str_)


@_converter
def rain(paths: Sequence[Path]) -> Columns:
    frame = _r_frame(paths[0], "pop")
    dry = np.asarray(frame["p24_cat0"], dtype=np.float64)
    millimetres = np.asarray(frame["obs"], dtype=np.float64)
    known = ~(np.isnan(dry) | np.isnan(millimetres))
    return {"p": 1.0 - dry[known], "y": (millimetres[known] > 0.2).astype(np.int8)}


@_converter
def rain_as_published(paths: Sequence[Path]) -> Columns:
    header, *lines = paths[0].read_text(encoding="utf-8").split("\n")
    position = {name: index for index, name in enumerate(header.split())}
    values = np.array([line.split() for line in lines if line.strip()], dtype=np.float64)
    dry = values[:, position["p24_cat0"]]
    millimetres = values[:, position["obs(mm)"]]
    return {
        "p": 1.0 - dry,
        "y": (millimetres > 0.2).astype(np.int8),
        "p24_cat0": dry,
        "obs_mm": millimetres,
        "p48_cat0": values[:, position["p48_cat0"]],
    }


@_converter
def icing_as_published(paths: Sequence[Path]) -> Columns:
    frame = _r_frame(paths[0], "prob.frcs.dat")
    return {
        "p": np.asarray(frame["frcst"], dtype=np.float64),
        "y": np.asarray(frame["obs"], dtype=np.float64),
    }


@_converter
def icing(paths: Sequence[Path]) -> Columns:
    percent = icing_as_published(paths)
    return {"p": percent["p"] / 100.0, "y": percent["y"].astype(np.int8)}


@_converter
def niamey(paths: Sequence[Path]) -> Columns:
    frame = _r_frame(paths[0], "precip_Niamey_2016")
    outcome = np.asarray(frame["obs"]).astype(np.int8)
    date = _r_days(frame["date"])
    return _stack(
        [
            {
                "p": np.asarray(frame[model], dtype=np.float64),
                "y": outcome,
                "date": date,
                "model": np.full(len(outcome), model),
            }
            for model in ("Logistic", "EMOS", "ENS", "EPC")
        ]
    )


def _checked_quantities(path: Path) -> Iterator[tuple[str, Columns]]:
    """One part a quantity: each column that has an `_outcome` beside it."""
    table = _table(path)
    for quantity in table:
        if f"{quantity}_outcome" not in table:
            continue
        predicted, outcome = _floats(table[quantity]), _floats(table[f"{quantity}_outcome"])
        known = ~np.isnan(predicted) & np.isin(outcome, (0.0, 1.0))
        rows = len(predicted)
        date = np.array(table.get("date", [""] * rows))
        season = _floats(table.get("season", [""] * rows))
        yield (
            quantity,
            {
                "p": predicted[known],
                "y": outcome[known].astype(np.int8),
                "project": np.full(int(known.sum()), path.stem),
                "quantity": np.full(int(known.sum()), quantity),
                "season": season[known],
                "date": date[known],
            },
        )


@_converter
def checked_forecasts(paths: Sequence[Path]) -> Columns:
    return _stack([part for path in paths for _, part in _checked_quantities(path)])


@_converter
def first_team_wins(paths: Sequence[Path]) -> Columns:
    return dict(_checked_quantities(paths[0]))["prob1"]


@_converter
def football_with_ties(paths: Sequence[Path]) -> Columns:
    table = _table(paths[0])
    return {
        "p": _floats(table["elo_prob1"]),
        "y": _floats(table["result1"]),
        "date": np.array(table["date"]),
        **{name: _integers(table[name]) for name in ("season", "playoff", "neutral")},
    }


@_converter
def token_confidences(paths: Sequence[Path]) -> Columns:
    """Answers of the models whose interface gives the probabilities of tokens."""
    table = _table(paths[0])
    probability = _floats(table["chosen_token_confidence"])
    known = ~np.isnan(probability) & np.isin(table["correct"], ("TRUE", "FALSE"))
    every = {
        "p": probability,
        "y": (np.array(table["correct"]) == "TRUE").astype(np.int8),
        **{name: np.array(table[name]) for name in ("llm", "qset", "question_id")},
    }
    return {name: values[known] for name, values in every.items()}


@_converter
def class_probabilities(paths: Sequence[Path]) -> Columns:
    with np.load(paths[0], allow_pickle=False) as archive:
        labels = np.asarray(archive["ground_truth"]).reshape(-1).astype(np.int64)
        return {"probs": np.asarray(archive["predictions"], dtype=np.float32), "labels": labels}


class _ArraysOnly(pickle.Unpickler):
    """Reads NumPy arrays and refuses every other object that a pickle could build."""

    _ALLOWED = frozenset(
        (f"numpy{core}", name)
        for core in ("", ".core.multiarray", "._core.multiarray")
        for name in ("_reconstruct", "ndarray", "dtype", "scalar")
    ) | {("_codecs", "encode")}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise InputError(
                "a file of arrays must hold arrays only",
                seen=f"{module}.{name}",
                saying="it names {}",
                cure="Do not open this file: it may run code.",
            )
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


@_converter
def pickled_logits(paths: Sequence[Path]) -> Columns:
    stream = io.BytesIO(paths[0].read_bytes())
    parts = _ArraysOnly(stream, encoding="latin1").load()
    columns: Columns = {}
    for suffix, (logits, labels) in zip(("val", "test"), parts, strict=True):
        columns[f"logits_{suffix}"] = np.asarray(logits, dtype=np.float32)
        columns[f"labels_{suffix}"] = np.asarray(labels).reshape(-1).astype(np.int64)
    return columns
