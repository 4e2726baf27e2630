"""What a stranger meets first: links that lead somewhere, one version, pinned workflows."""

import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import calibrant

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_of_the_project_files_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text("utf-8"))
    outside = ("http://", "https://")
    assert [to for to in links if not to.startswith(outside) and not (ROOT / to).exists()] == []


def test_the_readme_fits_in_120_lines():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) < 120


def test_there_is_one_version():
    said = {
        "meson.build": r"^  version: '([^']+)'",
        "mkdocs.yml": r"^copyright: calibrant (\S+)",
        "CITATION.cff": r"^version: (\S+)",
        "docs/reporting-in-a-paper.md": r"^  version = \{([^}]+)\}",
    }
    for name, pattern in said.items():
        (version,) = re.findall(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE)
        assert version == PROJECT["version"] == calibrant.__version__, name


def test_the_package_says_where_it_lives():
    urls = PROJECT["urls"]
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} <= set(urls)
    assert all(re.fullmatch(r"https://[\w.]+(/[\w./-]+)?", url) for url in urls.values())


def test_actions_are_pinned_by_hash():
    used = [
        line
        for workflow in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in re.findall(r"uses: (.+)", workflow.read_text("utf-8"))
    ]
    assert used
    assert [line for line in used if not re.match(r"[\w./-]+@[0-9a-f]{40}  # v[\d.]+$", line)] == []


def test_the_front_page_of_all_versions_leads_to_the_newest(tmp_path):
    for name in ("dev", "0.9.0", "0.10.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text("")
    runpy.run_path(str(ROOT / "docs" / "versions.py"))["index"](tmp_path)
    versions = json.loads((tmp_path / "versions.json").read_text())
    assert [one["version"] for one in versions] == ["0.10.0", "0.9.0", "dev"]
    assert [one["aliases"] for one in versions] == [["latest"], [], []]
    assert "url=0.10.0/" in (tmp_path / "index.html").read_text()
