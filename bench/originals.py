"""Original files of the public predictions: fetched at their commit, converted, checked, cached.

python -m bench.originals [NAME ...]
"""

from __future__ import annotations

import csv
import io
import pickle
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant import datasets
from calibrant._files import replaced_when_whole
from calibrant._optional import require
from calibrant.errors import CalibrantError, InputError

PATIENCE_SECONDS = 60.0


def download(address: str, target: Path) -> None:
    """Fetch a file from the first byte to the last: never resumed, and nothing is left of a part."""
    request = urllib.request.Request(address, headers={"User-Agent": "calibrant"})
    try:
        with (
            urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer,
            replaced_when_whole(target) as partial,
            partial.open("wb") as out,
        ):
            shutil.copyfileobj(answer, out)
            announced = answer.headers.get("Content-Length")
            if announced is not None and out.tell() != int(announced):
                raise CalibrantError(
                    f"{address} gave {out.tell()} of {announced} bytes.", file=address
                )
    except OSError as error:
        raise CalibrantError(f"Cannot fetch {address}: {error}.", file=address) from error


def fetch(source: datasets.Source, mirror: str = datasets.PUBLIC_ADDRESS) -> datasets.Dataset:
    """Fetch, convert and check a data set, and leave it in the cache."""
    addresses = source.addresses(mirror)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, address.rsplit("/", 1)[-1]) for address in addresses]
        for address, path in zip(addresses, paths, strict=True):
            download(address, path)
        try:
            columns = CONVERTERS[source.converter](paths)
        except (ValueError, KeyError, IndexError, StopIteration, EOFError) as error:
            message = f"{addresses[0]} does not have the layout of {source.name}: {error!r}."
            raise CalibrantError(message, file=addresses[0]) from error
    dataset = datasets.Dataset.checked(source, columns, addresses[0])
    datasets.cache_folder().mkdir(parents=True, exist_ok=True)
    target = datasets.cache_folder() / f"{source.name}.npz"
    with replaced_when_whole(target) as partial, partial.open("wb") as out:
        np.savez_compressed(out, allow_pickle=False, **dict(dataset.columns))
    return dataset


Columns = dict[str, NDArray[Any]]
Converter = Callable[[Sequence[Path]], Columns]
CONVERTERS: dict[str, Converter] = {}

_MISSING = frozenset({"", "NA", "NaN", "nan"})


def _converter(function: Converter) -> Converter:
    CONVERTERS[function.__name__] = function
    return function


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
                    f"Every row must have {len(header)} values; line {line} of {path.name} has {len(row)}."
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
            raise InputError(f"A file of arrays must hold arrays only; it names {module}.{name}.")
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


def main() -> None:
    for name in sys.argv[1:] or datasets.names():
        source = datasets.describe(name)
        print(f"{name}: {source.title}\n  licence: {source.licence}")
        print(*(f"  cite: {citation}" for citation in source.citations), sep="\n")
        fetch(source)


if __name__ == "__main__":
    main()
