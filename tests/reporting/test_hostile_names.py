"""Names from the data may be anything: they neither inject nor hang, and long lists are summarised."""

from __future__ import annotations

import html as html_module
import re

import numpy as np
import pytest

import calibrant as cal

HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}{% for x in y %}",
    "'];alert(1);//",
    "\x1b[31mred\x1b[0m\x07",
    "‮gnihtemos",
    "a|b\n# c *d* `e`",
    "x" * 10_000_000,
    "",
    "  ",
]


def _sketch(seed: int, n: int = 60) -> cal.Sketch:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return cal.Sketch.from_arrays(rng.random(n) < p, p)


@pytest.fixture(scope="module")
def made():
    groups = {name: _sketch(k) for k, name in enumerate(HOSTILE)}
    return cal.report(cal.Sketches(groups, by="<b onclick=x>"), title=HOSTILE[0]).made_by(
        f"x {HOSTILE[1]}"
    )


def test_no_name_reaches_the_page_as_markup(made) -> None:
    scripts = re.findall(r"<script[^>]*>", made.html)
    assert scripts == ["<script>"]
    outside = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", made.html, flags=re.S)
    assert "<img" not in outside
    assert "<b onclick" not in outside
    assert "onerror=alert(1)&gt;" in outside
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", outside)[0]


def test_control_characters_and_directions_are_gone(made) -> None:
    for text in (made.html, made.markdown, made.json):
        kept = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f‮⁦]", kept)


def test_markdown_shows_names_as_they_are(made) -> None:
    assert "<script>" not in made.markdown
    assert "<img" not in made.markdown
    table = [line for line in made.markdown.splitlines() if line.startswith("| a\\|")]
    assert len(table) == 1
    assert html_module.unescape(table[0]).startswith(r"| a\|b�\# c \*d\* \`e\` |")


def test_a_name_of_ten_megabytes_is_cut(made) -> None:
    assert len(made.html) < 3_000_000
    assert "x" * 59 + "…" in made.html
    assert "x" * 60 not in re.sub(r"<script>.*?</script>", "", made.html, flags=re.S)


def test_twenty_thousand_groups_are_summarised() -> None:
    small = cal.Sketch.from_counts([0.3, 0.7], [2, 1], [1, 1])
    many = dict.fromkeys(range(19_990), small)
    large = {f"large {k}": _sketch(k, 100) for k in range(10)}
    made = cal.report(cal.Sketches({**many, **large}, by="user"), limit=10)
    groups = {group["name"]: group["groups"] for group in made.to_dict()["groups"]}
    assert set(groups) == {*large, "(19,990 others)"}
    assert groups["(19,990 others)"] == 19_990
    assert "The 10 largest groups are shown one by one" in made.markdown
