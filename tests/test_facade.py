"""What the lazy packages offer and what type checkers are told of them are the same."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import calibrant

STUBS = sorted(Path(calibrant.__file__).parent.rglob("__init__.pyi"))
PACKAGES = [
    ".".join(stub.parent.relative_to(Path(calibrant.__file__).parents[1]).parts) for stub in STUBS
]


def told(package: str) -> dict[str, str]:
    """Public names of a stub, and the modules that they come from."""
    stub = Path(importlib.import_module(package).__file__).with_suffix(".pyi")
    return {
        alias.name: node.module
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)  # only `import x as x` is public in a stub
        for alias in node.names
        if alias.asname == alias.name
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_offers_what_its_stub_names(package):
    loaded = importlib.import_module(package)
    names = told(package)
    assert sorted(names) == dir(loaded) == list(loaded.__all__)
    for name, home in names.items():
        value = getattr(loaded, name)
        assert value is getattr(importlib.import_module(home), name)
        assert value.__doc__ or not callable(value), name
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        loaded.nothing_of_the_kind  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_a_function_stays_a_function_after_the_module_of_its_name_is_loaded(package):
    loaded = importlib.import_module(package)
    for name, home in told(package).items():
        module = importlib.import_module(home)
        assert getattr(loaded, name) is getattr(module, name), name


def test_functions_of_the_facade_have_few_arguments():
    """Besides those that say what is read: `data`, `names`, `scale` and the reading options in `**options`."""
    many = {}
    for name in told("calibrant"):
        if not callable(getattr(calibrant, name)):
            continue
        parameters = inspect.signature(getattr(calibrant, name)).parameters
        own = [
            key
            for key, one in parameters.items()
            if one.kind is not one.VAR_KEYWORD and key not in ("data", "names", "scale")
        ]
        if len(own) > 10:
            many[name] = own
    assert many == {}
