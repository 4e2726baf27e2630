"""What the lazy facade offers and what type checkers are told of it are the same."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import calibrant

STUB = Path(__file__).parents[1] / "src" / "calibrant" / "__init__.pyi"


def test_the_stub_names_what_the_facade_loads_and_where_from():
    told, overloaded = {"__version__": "calibrant"}, set()
    for node in ast.parse(STUB.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):  # only `import x as x` is public in a stub
            told |= {alias.name: node.module for alias in node.names if alias.asname}
        elif isinstance(node, ast.FunctionDef):
            overloaded.add(node.name)
    loaded = {name: f"calibrant.{home}" for name, home in calibrant._HOME.items()}
    assert overloaded == calibrant._TAKE_DATA & set(loaded)
    told |= {name: loaded[name] for name in overloaded}
    assert told == {"__version__": "calibrant", **loaded}
    assert sorted(told) == sorted(calibrant.__all__)
    assert set(dir(calibrant)) == {*calibrant.__all__, *calibrant._ROOMS}
    assert len(calibrant._HOME) <= 28


@pytest.mark.parametrize("name", calibrant.__all__)
def test_every_public_name_loads_and_has_a_docstring(name):
    value = getattr(calibrant, name)
    assert name == "__version__" or value.__doc__


@pytest.mark.parametrize("room", ["inference", "decisions", "plotting"])
def test_a_verb_stays_a_verb_after_the_module_of_its_name_is_loaded(room):
    package = importlib.import_module(f"calibrant.{room}")
    for name, home in package._HOME.items():
        importlib.import_module(f"calibrant.{home}")
        assert not inspect.ismodule(getattr(package, name)), f"calibrant.{room}.{name}"
