"""Every example of the documentation, the README and the docstrings runs: `make docs-test`."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rendering import render
from runner import LENIENT, needs_of, run_page

import calibrant

DOCS = Path(__file__).parent
PAGES = sorted([DOCS.parent / "README.md", *DOCS.rglob("*.md")])
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.ipynb"))
PROGRAMS = sorted(DOCS.glob("examples/*.py"))
ENGINES = {
    *("dask", "pyspark", "ray", "torch", "torchmetrics", "triton"),
    *("inspect_ai", "lm_eval", "evaluate", "datasets"),
}
"""What only `make test-all` installs."""
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(calibrant.__path__, prefix="calibrant.")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_page(page: Path, tmp_path: Path) -> None:
    missing = [name for name in needs_of(page.read_text("utf-8")) if not _is_installed(name)]
    if missing:
        pytest.skip(f"{page.name} needs {', '.join(missing)}")
    run_page(page, tmp_path)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook(notebook: Path, tmp_path: Path) -> None:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
    assert render(notebook, tmp_path).pictures


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_program(program: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    missing = re.search(r"ModuleNotFoundError: No module named '(\w+)", done.stderr)
    if missing and missing[1] in ENGINES:
        pytest.skip(f"{program.name} needs {missing[1]}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if name.endswith("__main__"):
        pytest.skip("runs the program")
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        missing = error.name or getattr(error.__cause__, "name", None)
        if str(missing).split(".")[0] not in ENGINES:
            raise
        pytest.skip(f"{name} needs {missing}")
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=LENIENT, verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


@pytest.mark.parametrize(
    "room", ["", "data", "decisions", "diagrams", "inference", "measures", "recalibration"]
)
def test_the_reference_lists_every_public_name(room: str) -> None:
    pages = "".join(page.read_text("utf-8") for page in DOCS.glob("reference/*.md"))
    homes = importlib.import_module(f"calibrant.{room}".rstrip("."))._HOME
    for name, home in homes.items():
        assert f"::: calibrant.{home}.{name}\n" in pages, f"no page of docs/reference shows {name}"


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
