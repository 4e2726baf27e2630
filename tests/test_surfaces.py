"""Python, the terminal, JSON and the page say the same, whatever the rows and from whichever file."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.shown import unknown_numbers

import calibrant as cal
from calibrant.cli import main


@dataclass(frozen=True)
class Case:
    """A file, the words that the command line takes, and the same in Python."""

    rows: dict[str, Any]
    options: dict[str, Any]

    @property
    def words(self) -> list[str]:
        """What is typed for these options."""
        typed = {"y_true": "--label", "y_prob": "--prob", "sample_weight": "--weight"}
        words: list[str] = []
        for name, value in self.options.items():
            if name in ("from_logits", "percent"):
                words.append(f"--{name.replace('_', '-')}")
            else:
                each = value if isinstance(value, list) and name == "y_prob" else [value]
                for one in each:
                    text = ",".join(one) if isinstance(one, list) else str(one)
                    words += [typed.get(name, f"--{name.replace('_', '-')}"), text]
        return words


KINDS = ("groups", "two columns of groups", "one sample", "weights", "clusters", "clustered groups",
         "ties", "rare events", "classes", "logits", "small groups", "saturated")  # fmt: skip


def made(kind: str, seed: int) -> Case:
    """Rows of one kind, a part of them miscalibrated."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    n = int(rng.integers(150, 500))
    p = rng.beta(rng.uniform(0.5, 3), rng.uniform(0.5, 3), n)
    if kind == "ties":
        p = np.round(p, 1)
    if kind == "rare events":
        p = p / 30
    if kind == "saturated":
        p = np.where(rng.random(n) < 0.4, np.round(p), p)
    group = rng.choice(["north", "south", "east, and west"], n)
    truth = np.where(group == "north", p ** rng.uniform(1, 2.5), p)
    rows: dict[str, Any] = {"y": (rng.random(n) < truth).astype(int), "p": p}
    options: dict[str, Any] = {"y_true": "y", "y_prob": "p"}
    if kind == "weights":
        rows["w"] = rng.uniform(0.2, 3, n)
        options["sample_weight"] = "w"
    if "cluster" in kind:
        rows["event"] = rng.integers(0, n // 4, n)
        options["cluster"] = "event"
    if kind == "logits":
        rows["p"] = np.log(p / (1 - p))
        options["from_logits"] = True
    if kind == "classes":
        matrix = rng.dirichlet([1.0, 2.0, 0.7], n)
        drawn = (matrix.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        rows = {"y": np.array(["cat", "dog", "owl"])[drawn]}
        rows |= {f"p_{name}": matrix[:, k] for k, name in enumerate(["cat", "dog", "owl"])}
        options["y_prob"] = ["p_cat", "p_dog", "p_owl"]
        options["multiclass"] = "classwise" if seed % 2 else "confidence"
        return Case(rows, options)
    if kind not in ("one sample", "weights", "clusters", "saturated"):
        rows["group"] = group
        options["by"] = ["group"]
    if kind == "two columns of groups":
        rows["year"] = rng.choice([2024, 2025], n)
        options["by"] = ["group", "year"]
    if kind == "small groups":
        rows["group"] = np.where(np.arange(n) < 1, "lone", group)
    return Case(rows, options)


def printed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    output = capsys.readouterr()
    assert ended.value.code in (0, None), output.err
    return output.out


def plain(value: Any) -> Any:
    """As JSON has it: NaN and infinities are null."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@pytest.mark.parametrize("kind", KINDS)
def test_python_the_terminal_json_and_the_page_say_the_same(kind, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    seed = KINDS.index(kind)
    case = made(kind, seed)
    path = tmp_path / ("rows.csv" if seed % 2 else "rows.parquet")
    table = pyarrow.table(case.rows)
    (pyarrow.csv.write_csv if seed % 2 else pyarrow.parquet.write_table)(table, path)

    grouped = "by" in case.options or case.options.get("multiclass") == "classwise"
    found = (cal.assess_by if grouped else cal.assess)(data=path, **case.options)
    document = json.loads(json.dumps(plain(found.to_dict())))
    assert json.loads(printed(capsys, "assess", path, *case.words, "--json")) == document

    lines = printed(capsys, "assess", path, *case.words).split("\n\n")[0].splitlines()[1:]
    groups = document["groups"] if grouped else [document]
    for line, group in zip(lines, groups, strict=True):
        assert line.rstrip().endswith(group["finding"])
        assert unknown_numbers(line, group) == []

    page = cal.report(data=path, title="A page", **case.options).made_by("typed")
    assessed = [group for group in groups if "smooth_ece" in group]
    for shown, group in zip(json.loads(page.json)["groups"], assessed, strict=True):
        assert shown["assessment"] == {key: group[key] for key in shown["assessment"]}
    monkeypatch.setattr("shlex.join", lambda _: "typed")
    form, text = ("md", page.markdown) if seed % 3 else ("html", page.html)
    words = [*case.words, "--title", "A page", "-o", tmp_path / f"page.{form}"]
    printed(capsys, "report", path, *words)
    assert (tmp_path / f"page.{form}").read_text(encoding="utf-8") == text
