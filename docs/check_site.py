"""Open every page of the built site in a browser, and say what a visitor would stumble over.

    make docs-check

Fails on a request to another host, a script error, a link or anchor that leads nowhere, what axe calls a
violation of WCAG 2.1 A or AA, and a word that people search for and the search does not find.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

SITE = Path(__file__).parents[1] / "site"
SEARCHED = (
    *("ECE", "reliability diagram", "calibration curve", "Platt", "HLE"),
    *("matplotlib", "subplots", "temperature scaling", "sample size", "survey weights"),
)
READY = 3_000
"""Milliseconds until the search listens: it loads its index after the page."""
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def stumbles(page: Page, path: Path) -> Iterator[str]:
    """What is wrong with one page, as lines for people."""
    outside: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: outside.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    yield from (
        f"asks {url}" for url in outside if urlsplit(url).scheme not in ("file", "data", "blob")
    )
    yield from (f"script error: {error}" for error in errors)
    yield from _violations(Axe().run(page, options=RULES).response)
    links = page.eval_on_selector_all("a[href]", "all => all.map(one => one.href)")
    yield from _dead_links(path, sorted(set(links)))


def _violations(found: dict[str, Any]) -> Iterator[str]:
    for violation in found["violations"]:
        where = "; ".join(" ".join(map(str, node["target"])) for node in violation["nodes"][:3])
        yield f"axe {violation['id']} ({len(violation['nodes'])}): {where}"


def _dead_links(path: Path, links: list[str]) -> Iterator[str]:
    for link in links:
        address, anchor = urldefrag(link)
        if urlsplit(address).scheme != "file":
            continue
        target = Path(unquote(urlsplit(address).path))
        target = target / "index.html" if target.is_dir() else target
        if not target.is_file():
            yield f"links to {target}, which is not there"
        elif anchor and target.suffix == ".html" and f'id="{unquote(anchor)}"' not in _text(target):
            yield f"links to {target.name}#{anchor}, which is not there"


def _text(path: Path, read: dict[Path, str] = {}) -> str:  # noqa: B006
    if path not in read:
        read[path] = path.read_text(encoding="utf-8")
    return read[path]


def missing_words(page: Page) -> Iterator[str]:
    """What the search on the home page does not find."""
    for words in SEARCHED:
        page.goto((SITE / "index.html").as_uri())
        page.wait_for_timeout(READY)
        page.locator("[data-md-component=search-query]").first.fill(words)
        try:
            page.wait_for_selector(".md-search-result__article", timeout=20_000, state="attached")
        except Exception:
            yield f"the search does not find {words!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="by default every page")
    pages = parser.parse_args().pages or [
        path for path in sorted(SITE.rglob("*.html")) if path.name != "404.html"
    ]
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    wrong: Counter[str] = Counter()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for path in pages:
            page = browser.new_page(color_scheme="light")
            for line in stumbles(page, path.resolve()):
                print(f"{path.resolve().relative_to(SITE)}: {line}", flush=True)
                wrong[line.split(":")[0]] += 1
            page.close()
        for line in missing_words(browser.new_page()):
            print(line)
            wrong[line] += 1
        browser.close()
    print(f"{len(pages)} pages, {sum(wrong.values())} to correct")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
