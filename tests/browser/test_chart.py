"""The interactive chart in a real browser: hover, slider, legend."""

from __future__ import annotations

import os
import re
import shutil

import numpy as np
import pytest

from calibrant.plotting.group import reliability_diagrams

pytestmark = pytest.mark.heavy


def _rows(slope: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.random(800)
    return (rng.random(800) < 0.1 + slope * p).astype(int), p


@pytest.fixture
def page(tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: apt-get install chromium, or set CHROMIUM")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))

        def show(chart):
            chart.save(tmp_path / "chart.html", inline=True, embed_options={"renderer": "svg"})
            page.goto((tmp_path / "chart.html").as_uri())
            page.wait_for_selector("svg.marks")
            return page

        page.show = show
        yield page
        browser.close()


def test_slider_moves_through_bandwidths_and_hover_reads_the_curve(page) -> None:
    (diagram,) = reliability_diagrams({"one": _rows(0.7)}, resamples=50).values()
    page.show(diagram.chart())
    own = page.locator("svg.marks").inner_html()
    assert "bandwidth: σ* = " in own
    described = page.locator("[aria-label]").first.get_attribute("aria-label")
    assert "how often it happened against the predicted probability" in described
    assert diagram.label in described
    slider = page.locator("input[type=range]")
    slider.focus()
    slider.press("ArrowRight")
    page.wait_for_function("document.querySelector('svg.marks').innerHTML.includes('σ* × 1.4')")
    box = page.locator("svg.marks").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    page.wait_for_selector("#vg-tooltip-element.visible")
    read = page.locator("#vg-tooltip-element").inner_text()
    for name in ("prediction", "observed", "low", "high", "rows"):
        assert name in read
    assert not page.errors


def test_hover_names_a_model_and_the_legend_hides_and_shows_it(page) -> None:
    models = reliability_diagrams({"a": _rows(0.8), "b": _rows(0.5)}, resamples=50)
    page.show(models.chart(slider=False))
    box = page.locator("svg.marks").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.4)
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert re.search(r"series:?\s+[ab]\b", page.locator("#vg-tooltip-element").inner_text())

    def visible() -> int:
        return page.evaluate(
            "[...document.querySelectorAll('svg.marks .mark-trail path')]"
            ".filter(p => +(p.getAttribute('opacity') ?? 1) > 0 && p.getAttribute('d')).length"
        )

    assert visible() == 2
    entry = page.locator("svg.marks .role-legend-label text").first
    entry.click(force=True)
    page.wait_for_timeout(300)
    assert visible() == 1
    entry.click(force=True)
    page.wait_for_timeout(300)
    assert visible() == 2
    assert not page.errors
