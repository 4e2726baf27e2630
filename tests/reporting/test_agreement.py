"""Random reports: no number on a page that is not in `to_dict()`, and no two statements that differ."""

from __future__ import annotations

import json
import os
import re
from html import unescape
from typing import Any

import numpy as np
import pytest
from tests.shown import unknown_numbers

import calibrant as cal
from calibrant.reporting.report import Report

CONSTANTS = {0.0, 1.0, 15.0, 0.05, 0.00002}
"""Of the page's own words: 15 bins, rows at 0 and 1 or within 0.00002 of it, a p-value below 0.05."""


REPORTS = 50 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 14
SEED = int(os.environ.get("CALIBRANT_SEED", "7"))


def made(seed: int) -> Report:
    """A report on random rows of a random kind, calibrated or not."""
    rng = np.random.default_rng([SEED, seed])
    n = int(rng.choice([30, 200, 1000, 3000]))
    p = rng.beta(rng.uniform(0.4, 3.0), rng.uniform(0.4, 5.0), n)
    if seed % 4 == 3:
        p = np.round(p, 1)
    logit = np.log(np.clip(p, 1e-6, 1 - 1e-6) / np.clip(1 - p, 1e-6, 1))
    slope, shift = rng.choice([1.0, 0.5, 1.6]), rng.choice([0.0, 0.0, 0.6, -0.6])
    truth = 1.0 / (1.0 + np.exp(-(slope * logit + shift)))
    y = (rng.random(n) < truth).astype(int)
    kind = seed % 8
    if kind == 7:
        wide, time = rng.choice([0.7, 1.0, 1.4]), rng.exponential(size=n)
        forecasts = np.array([-1.0, 0.0, 1.0]) * wide
        found = (
            cal.distributions.assess(rng.normal(size=n), mean=np.zeros(n), sd=np.full(n, wide)),
            cal.quantiles.assess(
                rng.normal(size=n),
                dict(zip((0.16, 0.5, 0.84), np.tile(forecasts, (n, 1)).T, strict=True)),
            ),
            cal.survival.observed_expected(time, np.ones(n), np.full(n, 0.63 * wide), horizon=1.0),
        )
        return cal.report(rng.random(n) < p, p).with_outcomes(*found)
    if kind == 0:
        sketch = cal.Sketch.from_arrays(y, p)
        return cal.report(sketch, assessment=cal.assess(sketch, margin=0.05))
    if kind == 1:
        return cal.report(y, {"one": p, "two": np.clip(p**1.5, 0, 1), "three": truth})
    if kind == 2:
        rows = {"y": y, "p": p, "site": rng.choice(list("abc"), n)}
        return cal.report(data=rows, y_true="y", y_prob="p", by="site")
    if kind == 3:
        return cal.report(y, p, sample_weight=rng.uniform(0.5, 2.0, n))
    if kind == 4:  # rejected or not, the error is small
        slight = np.clip(p + rng.uniform(-0.02, 0.02), 0, 1)
        columns = {"y": rng.random(n) < p, "p": slight, "site": rng.choice(list("ab"), n)}
        return cal.report(
            cal.assess_by(data=columns, y_true="y", y_prob="p", by="site", margin=0.08)
        )
    if kind == 5:
        classes = rng.dirichlet([0.5, 1.0, 1.5], n)
        drawn = (classes.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        sharp = classes ** rng.choice([1.0, 1.8])
        return cal.report(drawn, sharp / sharp.sum(axis=1, keepdims=True))
    return cal.report(y, p, cluster=np.arange(n) // 3 if n > 30 else None)


def words_of(page: str) -> str:
    """The text of a page before its glossary, with the labels of its pictures."""
    page = page[page.index("<h1>") : page.index('<h2 id="reading">')]
    labels = " . ".join(re.findall(r'aria-label="([^"]*)"', page))
    page = re.sub(r"<(svg|style|script).*?</\1>", " ", page, flags=re.S)
    return unescape(re.sub(r"<[^>]*>", " . ", page) + labels)


@pytest.mark.parametrize("seed", range(REPORTS))
def test_no_two_surfaces_contradict_each_other(seed: int) -> None:
    page = made(seed)
    document = json.loads(page.json)
    assert document == page.to_dict()
    assert unknown_numbers(words_of(page.html), document, CONSTANTS) == []

    plain = unescape(re.sub(r"\\(.)", r"\1", page.markdown))
    for group, one in zip(document["groups"], page.summary.groups, strict=True):
        finding, sentence = group["assessment"]["finding"], one.diagram.verdict.sentence
        assert group["sentence"] == sentence
        assert finding == one.assessment.finding
        assert group["assessment"]["verdict"].startswith(finding)
        assert sentence in unescape(page.html)
        assert one.diagram.verdict.clear == (finding == "miscalibrated")
        assert one.diagram.frame().title == sentence
        if finding != "miscalibrated":
            assert sentence.lower().startswith(finding)
        agree_on_recalibration(page, one)
        agree_on_direction(sentence, group["assessment"]["direction"]["label"])
        agree_on_direction(sentence, group["assessment"]["verdict"])
        if len(document["groups"]) == 1:
            level = {"miscalibrated": "bad", "within the margin": "good"}.get(finding, "unsure")
            classes = document["classes"]
            wrong = [one.verdict for one in page.summary.outcomes if one.miscalibrated]
            if classes and any(one["miscalibrated"] for one in classes["worst"]):
                wrong.append(classes["sentences"][0])
            headline = plain.split("\n")[4]
            assert f'class="verdict {"bad" if wrong else level}"' in page.html
            assert f"{sentence}." in headline
            assert ("Miscalibrated" in headline) == (level == "bad")
            assert all(text.rstrip(".")[1:] in headline for text in wrong)
            assert not (wrong and "What to do: nothing" in plain)
        else:
            row = next(line for line in plain.splitlines() if line.startswith(f"| {one.name} |"))
            assert row.endswith(f"| {finding} |")
    wrong = [group["assessment"]["finding"] == "miscalibrated" for group in document["groups"]]
    if len(wrong) > 1:
        assert page.summary.finding is not None
        assert len(page.summary.finding.miscalibrated) == sum(wrong)
        assert (
            f"{sum(wrong)} of {len(wrong)} miscalibrated" in page.html
        )  # title of the forest plot
        start = f"{sum(wrong)} of" if any(wrong) else "None of"
        assert document["sentences"][0].startswith(start)
    for text in document["sentences"][1:]:
        assert text in plain
        assert text in unescape(page.html)


def agree_on_recalibration(page: Report, group: Any) -> None:
    """Advice to recalibrate where recalibration helps, and nowhere else."""
    effect, finding = group.recalibration, group.assessment.finding
    if len(page.summary.groups) == 1:
        advised = "What to do: recalibrate." in page.html
        helps = effect is not None and effect.helps
        assert advised == (finding == "miscalibrated" and helps)
        assert ("would bring SmoothECE" in page.html) == (finding != "too few rows" and helps)
        assert ("Chance may explain" in page.html) <= (group.assessment.p_value > 0.05)


def agree_on_direction(sentence: str, label: str) -> None:
    """A title and a label name the same direction, or only one of them names one."""
    opposite = {"too high": "too low", "overconfident": "underconfident"}
    for one, other in [*opposite.items(), *((b, a) for a, b in opposite.items())]:
        if re.search(rf"\b{one}\b", label):
            assert not re.search(rf"\b{other}\b.* on average", sentence.lower()), (sentence, label)
            assert not sentence.lower().startswith(other), (sentence, label)
    if "predictions are too" in label:
        assert "confident" not in sentence, (sentence, label)
    if "confident" in label:
        assert "on average" not in sentence, (sentence, label)
