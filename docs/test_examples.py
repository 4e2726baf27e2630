"""Every example of the documentation, the README and the docstrings runs: `make docs-test`."""

from __future__ import annotations

import ast
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
from notebook_rendering import render
from runner import LENIENT, needs_of, run_page

import calibrant

DOCS = Path(__file__).parent
PAGES = sorted([DOCS.parent / "README.md", *DOCS.rglob("*.md")])
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.ipynb"))
LOOKED_UP = {"cli.md", "migrating.md", "test-construction.md", "theory.md"}
"""Pages of reference beside those in docs/reference and docs/evidence."""
GUIDES = [page for page in sorted(DOCS.glob("*.md")) if page.name not in LOOKED_UP]
LONGEST_GUIDE = 1_200
PROGRAMS = sorted(DOCS.glob("examples/*.py"))
ENGINES = {
    *("dask", "pyspark", "ray", "torch", "torchmetrics", "triton"),
    *("inspect_ai", "lm_eval", "evaluate", "datasets", "mlflow"),
}
"""What only `make test-all` installs."""
SOURCE = DOCS.parent / "src"
SHOWN = sorted(
    shown
    for page in DOCS.glob("reference/*.md")
    for shown in re.findall(r"^::: (\S+)", page.read_text("utf-8"), re.M)
)
"""What the pages of the reference document: functions, classes and whole modules."""
Documented = ast.ClassDef | ast.FunctionDef
MODULES = sorted(
    module.name for module in pkgutil.walk_packages(calibrant.__path__, prefix="calibrant.")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_page(page: Path, tmp_path: Path) -> None:
    missing = [name for name in needs_of(page.read_text("utf-8")) if not _is_installed(name)]
    if missing:
        pytest.skip(f"{page.name} needs {', '.join(missing)}")
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_is_short(page: Path) -> None:
    """Its words without those of the examples; what is looked up may be longer."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    assert len(text.split()) <= LONGEST_GUIDE


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


def test_a_docstring_masks_no_digits() -> None:
    """The reference shows docstrings as they are: a reader wants the number, and not `0.0...`."""
    masked = [
        f"{path.relative_to(SOURCE)}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if re.search(r"\d\.\.\.", line) and ">>>" not in line
    ]
    assert masked == []


@pytest.mark.parametrize(
    "room",
    ["", "data", "decisions", "inference", "measures", "plotting"],
)
def test_the_reference_lists_every_public_name(room: str) -> None:
    pages = "".join(page.read_text("utf-8") for page in DOCS.glob("reference/*.md"))
    stub = SOURCE.joinpath("calibrant", room, "__init__.pyi").read_text("utf-8")
    homes = re.findall(r"^from (calibrant\.\S+) import \(?\s*(\w+)", stub, re.M)
    assert homes
    for home, name in homes:
        thing = getattr(importlib.import_module(home), name, None)
        if getattr(thing, "__name__", "") == name:  # neither a constant nor a second name
            assert f"::: {home}.{name}\n" in pages, f"no page of docs/reference shows {name}"


def test_the_reference_lists_every_map() -> None:
    pages = "".join(page.read_text("utf-8") for page in DOCS.glob("reference/*.md"))
    for name in dir(calibrant.recalibration):
        home = getattr(calibrant.recalibration, name).__module__
        assert f"::: {home}.{name}\n" in pages, f"no page of docs/reference shows {name}"
        assert f"`][{home}.{name}] | " in pages, f"no table of docs/reference has {name}"


@pytest.mark.parametrize("page", sorted(DOCS.glob("reference/*.md")), ids=lambda page: page.stem)
def test_tables_of_the_reference_are_the_first_lines_of_docstrings(page: Path) -> None:
    text = page.read_text("utf-8")
    for name, home, line in re.findall(r"^\| \[`(\S+)`\]\[(\S+)\] \| (.*) \|$", text, re.M):
        where, members = _source_of(home)
        first = (ast.get_docstring(members[0]) or "").splitlines()[0]
        assert line.replace(r"\|", "|") == first, f"{name}, as {where} has it: {first}"
        assert f"::: {home}\n" in text, f"{page.name} has {name} in a table and does not show it"


@pytest.mark.parametrize("shown", SHOWN)
def test_every_name_in_the_reference_has_an_example(shown: str) -> None:
    """Functions, classes that readers make, and modules; results are shown by what returns them."""
    where, members = _source_of(shown)
    texts = [ast.get_docstring(node) or "" for node in members if not _is_result(node)]
    assert members, f"{shown} shows nothing"
    assert not texts or any(">>> " in text for text in texts), f"no example of {shown} in {where}"


def _is_result(node: Documented) -> bool:
    """Dataclasses come out of functions, and abstract classes are made by nobody."""
    if not isinstance(node, ast.ClassDef):
        return False
    names = [ast.unparse(one) for one in (*node.decorator_list, *node.bases)]
    return any(name.startswith(("dataclass", "ABC", "LearnedMap")) for name in names)


def _source_of(shown: str) -> tuple[str, list[Documented]]:
    """The file of what the reference shows, and the definition; of a module, all in its `__all__`.

    They are read and not imported, so that the engines need not be installed.
    """
    path = SOURCE.joinpath(*shown.split("."))
    for module in (path / "__init__.py", path.with_suffix(".py")):
        if module.is_file():
            wanted = _exports(module)
            break
    else:
        module, wanted = path.parent.with_suffix(".py"), {path.name}
    members = []
    for file in sorted(module.parent.glob("*.py")) if module.stem == "__init__" else [module]:
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, Documented) and node.name in wanted:
                members.append(node)
    return str(module.relative_to(SOURCE)), members


def _exports(module: Path) -> set[str]:
    for node in ast.parse(module.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
