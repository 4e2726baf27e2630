"""Every surface says the same: Python, the terminal, JSON, Markdown and the page, on forty inputs."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.inference.assessment import FINDINGS, Assessment
from calibrant.inference.groups import GroupAssessments


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


CASES = [(kind, seed) for place, kind in enumerate(KINDS) for seed in range(4 if place < 8 else 2)]
assert len(CASES) >= 40


@dataclass(frozen=True)
class Said:
    """What a surface says of one group: texts, as a person reads them."""

    n: str
    smooth_ece: str
    interval: tuple[str, str]
    floor: str
    p: str
    ratio: str
    finding: str


def agree(said: Said, one: Assessment | None, finding: str, n: int, where: str) -> None:
    """Each text is the number of the finding, rounded to the digits that the text has."""
    assert (said.n, said.finding) == (f"{n:,}", finding), where
    if one is None:
        return
    texts = {
        "value": (said.smooth_ece, one.smooth_ece),
        "low": (said.interval[0], one.interval.low),
        "high": (said.interval[1], one.interval.high),
        "floor": (said.floor, one.noise_floor.value),
        "p": (said.p, one.p_value_judged),
        "ratio": (said.ratio, one.observed_expected.value),
    }
    if not said.ratio:  # the table of groups has none
        del texts["ratio"]
    for name, (text, value) in texts.items():
        assert shows(text, value), f"{where}: {name} is {value!r}, shown as {text!r}"


def shows(text: str, value: float) -> bool:
    """Whether the text is the number, to the last digit that it has."""
    if math.isnan(value):
        return text == "–"
    if math.isinf(value):
        return text == "∞"
    if text.startswith("<"):
        return value < float(text[1:])
    number = re.fullmatch(r"(\d*)(?:\.(\d+))?(?:e([+-]\d+))?", text)
    assert number, text
    digits = len(number[2] or "") - int(number[3] or 0)
    return abs(float(text) - value) <= 0.5 * 10.0**-digits + 1e-12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("surfaces")


def printed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    output = capsys.readouterr()
    assert ended.value.code in (0, None), output.err
    return output.out


@pytest.mark.parametrize(("kind", "seed"), CASES, ids=lambda value: str(value).replace(" ", "-"))
def test_all_surfaces_say_the_same(kind, seed, folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    case = made(kind, seed)
    path = folder / (f"{kind}-{seed}.csv" if seed % 2 else f"{kind}-{seed}.parquet")
    table = pyarrow.table(case.rows)
    (pyarrow.csv.write_csv if seed % 2 else pyarrow.parquet.write_table)(table, path)

    grouped = "by" in case.options or case.options.get("multiclass") == "classwise"
    verb = cal.assess_by if grouped else cal.assess
    finding = verb(data=path, **case.options)
    expected = expectations(finding)

    words = case.words
    from_json = json.loads(printed(capsys, "assess", path, *words, "--json"))
    assert from_json == json.loads(json.dumps(plain(finding.to_dict())))

    terminal = read_terminal(printed(capsys, "assess", path, *words), finding)
    compare(terminal, expected, "terminal")

    page = cal.report(data=path, title="A page", **case.options).made_by("typed")
    assessed = [value for value in expected.values() if value[0] is not None]
    for group, (one, _, _) in zip(json.loads(page.json)["groups"], assessed, strict=True):
        assert group["assessment"] == json.loads(json.dumps(plain(one.to_dict())))
    compare(read_markdown(page.markdown, grouped), expected, "Markdown")
    compare(read_page(page.html, grouped), expected, "page")
    if seed == 0:  # the command writes the same page
        monkeypatch.setattr("shlex.join", lambda _: "typed")
        form, text = (".md", page.markdown) if KINDS.index(kind) % 3 else (".html", page.html)
        printed(capsys, "report", path, *words, "--title", "A page", "-o", folder / f"page{form}")
        assert (folder / f"page{form}").read_text(encoding="utf-8") == text


Expected = dict[str, tuple[Assessment | None, str, int]]


def expectations(finding: GroupAssessments | Assessment) -> Expected:
    """What Python says of each group, in order."""
    if isinstance(finding, Assessment):
        return {"": (finding, finding.finding, finding.n)}
    return {
        ", ".join(map(str, g.key if isinstance(g.key, tuple) else (g.key,))): (
            g.assessment, g.finding, g.n,
        )
        for g in finding.groups
    }  # fmt: skip


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def compare(said: dict[str, Said], expected: Expected, surface: str) -> None:
    assert len(said) == len(expected), surface
    for (name, words), (key, (one, finding, n)) in zip(said.items(), expected.items(), strict=True):
        assert len(expected) == 1 or name == key, surface
        agree(words, one, finding, n, f"{surface}, {key}")


def read_terminal(text: str, finding: GroupAssessments | Assessment) -> dict[str, Said]:
    """The table that was printed, back into words."""
    lines = text.split("\n\n")[0].splitlines()
    by = isinstance(finding, GroupAssessments)
    said = {}
    for line in lines[1:]:
        cells = re.split(r"\s{2,}", line.strip())
        rows, value, interval, floor, p, ratio, verdict = cells[by:]
        low, _, high = interval.partition("–")
        name = cells[0] if by else ""
        said[name] = Said(rows, value, (low, high), floor, p, ratio, verdict)
    return said


class Tables(HTMLParser):
    """Rows of the tables of a page, and the figures of a page about one sample."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.text: list[str] = []
        self._in_cell = False

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data):
        if self._in_cell:
            self.tables[-1][-1][-1] += data.strip()
        elif data.strip():
            self.text.append(data.strip())


def read_page(text: str, grouped: bool) -> dict[str, Said]:
    """The table of all groups, or the figures of the only sample."""
    page = Tables()
    page.feed(text[: text.index("<script")])
    for table in page.tables:
        if grouped and table[0][1:3] == ["n", "SmoothECE"]:
            return {row[0]: as_said(row) for row in table[1:]}
    return {"": figures(page.text)}


def read_markdown(text: str, grouped: bool) -> dict[str, Said]:
    plainly = text.replace("&lt;", "<").replace("\\", "")
    blocks = [block.splitlines() for block in plainly.split("\n\n") if block.startswith("|")]
    for block in blocks:
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in block]
        if grouped and rows[0][1:3] == ["n", "SmoothECE"]:
            return {row[0]: as_said(row) for row in rows[2:]}
    first = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in blocks[0]]
    headline = plainly.split("**")[1]
    return {"": figures([headline, *(cell for row in first[2:] for cell in row[:2])])}


def as_said(row: list[str]) -> Said:
    _, rows, value, interval, floor, _, _, p, finding = row
    low, _, high = interval.partition(" to ")
    return Said(rows, value, (low, high), floor, p, "", finding)


def figures(texts: list[str]) -> Said:
    """The figures of one sample: a name and its text, one after the other."""
    names = (
        "SmoothECE",
        "95% interval",
        "noise floor",
        "calibrated?",
        "observed / expected",
        "rows",
    )
    value, interval, floor, p, ratio, rows = (texts[texts.index(name) + 1] for name in names)
    low, _, high = interval.partition(" to ")
    finding = next(word for text in texts for word in FINDINGS if text.lower().startswith(word))
    p = p.removeprefix("p ").removeprefix("= ")
    return Said(rows.split()[0], value, (low, high), floor, p, ratio.split()[0], finding)
