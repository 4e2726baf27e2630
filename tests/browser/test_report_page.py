"""The report in a real browser: opened from disk, without a network, by mouse, keyboard and printer."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal

pytestmark = pytest.mark.heavy

HOSTILE = '</script><img src=x onerror="document.title=1">'
LEAST_CONTRAST = 4.5


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: apt-get install chromium, or set CHROMIUM")
    with sync_api.sync_playwright() as driver:
        # Root may not use the sandbox; the pages are ours.
        yield driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    y = rng.random(4000) < 0.5 + 0.7 * (p - 0.5)
    cal.report(y, p, title="One model").save(folder / "one.html")
    models = {"plain": p, "squared": p**2, "vague": 0.3 + 0.4 * p, HOSTILE: np.sqrt(p)}
    cal.report(y, models, title="Several").save(folder / "several.html")
    sites = {"a": cal.Sketch.from_arrays(y, p), "b": cal.Sketch.from_arrays(y, p**2)}
    sites["lone"] = cal.Sketch.from_arrays([1], [0.4])
    cal.report(cal.Sketches(sites, by="site"), title="Odd").save(folder / "odd.html")
    return folder


class Opened:
    """A page, with what it asked for and what it complained about."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.page = browser.new_context(**context).new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())


@pytest.mark.parametrize("name", ["one", "several"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_from_disk_in_silence(browser: Any, pages: Path, name: str, scheme: str) -> None:
    opened = Opened(browser, pages / f"{name}.html", color_scheme=scheme, offline=True)
    opened.page.wait_for_timeout(300)
    assert opened.complaints == []
    assert opened.requests == [(pages / f"{name}.html").as_uri()]
    assert opened.page.title() in ("One model", "Several")


def test_names_from_the_data_stay_text(browser: Any, pages: Path) -> None:
    opened = Opened(browser, pages / "several.html")
    assert opened.page.locator("main img").count() == 0
    assert opened.page.locator(".sortable th[scope=row]", has_text="onerror").count() == 1


def test_missing_numbers_come_last(browser: Any, pages: Path) -> None:
    opened = Opened(browser, pages / "odd.html")
    for _ in range(2):
        opened.page.click("table.sortable th:has-text('SmoothECE') button")
        names = opened.page.eval_on_selector_all(
            "table.sortable tbody th", "all => all.map(cell => cell.textContent)"
        )
        assert names.index("lone") == 2


def test_sorting_sorts(browser: Any, pages: Path) -> None:
    page = Opened(browser, pages / "several.html").page
    cells = "table.sortable tbody td:nth-child(3)"
    values = "all => all.map(cell => Number(cell.textContent))"
    page.get_by_role("button", name="SmoothECE").click()
    falling = page.eval_on_selector_all(cells, values)
    assert falling == sorted(falling, reverse=True)
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("SmoothECE")
    page.get_by_role("button", name="SmoothECE").press("Enter")
    assert page.eval_on_selector_all(cells, values) == sorted(falling)


CONTRAST = """() => {
  const light = (rgb) => {
    const [r, g, b] = rgb.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (!/, 0\\)$|transparent/.test(color)) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const texts = [...document.querySelectorAll("main *, footer *")].filter((element) =>
    element.getClientRects().length
    && [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
  return texts.map((element) => {
    const style = getComputedStyle(element);
    const ink = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(ink), light(behind(element))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), element.textContent.slice(0, 40)];
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_is_legible(browser: Any, pages: Path, scheme: str) -> None:
    page = Opened(browser, pages / "one.html", color_scheme=scheme).page
    found = page.evaluate(CONTRAST)
    assert len(found) > 50
    assert [pair for pair in found if pair[0] < LEAST_CONTRAST] == []


def test_the_button_switches_the_theme(browser: Any, pages: Path) -> None:
    page = Opened(browser, pages / "one.html", color_scheme="light").page
    paper = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(paper)
    page.get_by_role("button", name="Dark").click()
    assert page.evaluate(paper) != before
    assert page.get_by_role("button", name="Light").count() == 1


def test_it_fits_a_phone(browser: Any, pages: Path) -> None:
    for name in ("one", "several"):
        page = Opened(browser, pages / f"{name}.html", viewport={"width": 380, "height": 800}).page
        assert page.evaluate("document.documentElement.scrollWidth") <= 380


def test_every_figure_and_control_has_a_name(browser: Any, pages: Path) -> None:
    page = Opened(browser, pages / "several.html").page
    titles = page.eval_on_selector_all(
        "[role=img]", "all => all.map(e => e.getAttribute('aria-label') ?? '')"
    )
    assert len(titles) >= 8
    kinds = ("Reliability diagram of ", "Forest plot of ", "Decision curve of ")
    assert all(title.startswith(kinds) for title in titles)
    names = page.eval_on_selector_all("button", "all => all.map(b => b.textContent.trim())")
    assert all(names)
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_it_prints_on_several_pages_with_its_pictures(browser: Any, pages: Path) -> None:
    page = Opened(browser, pages / "several.html", color_scheme="dark").page
    printed = page.pdf(format="A4")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 12
    page.emulate_media(media="print")
    assert page.locator(".static svg").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


def test_it_reads_without_scripts(browser: Any, pages: Path) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto((pages / "one.html").as_uri())
    assert page.locator(".static svg").first.is_visible()
    assert "Miscalibrated" in page.inner_text("#verdict")


def test_fifty_groups_fit_and_open(browser: Any, tmp_path: Path) -> None:
    groups = {}
    for k in range(50):
        rng = np.random.default_rng(k)
        p = rng.random(2000)
        groups[f"group {k}"] = cal.Sketch.from_arrays(rng.random(2000) < p, p)
    path = cal.report(cal.Sketches(groups, by="user"), limit=50).save(tmp_path / "fifty.html")
    assert path.stat().st_size < 3_000_000
    assert Opened(browser, path).complaints == []
