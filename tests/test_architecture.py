"""The architecture holds: data flows one way, each extension point is one place, the map's paths exist."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

from calibrant.cli.options import app, load_verbs
from calibrant.inference.profile import PROFILES, as_profile
from calibrant.io.files import formats
from calibrant.recalibration.learned_map import registered_maps

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "calibrant"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}

UPWARD = {
    ("inference/profile.py", "calibrant.profiles"),  # loads the built-in profiles: a registry
}


def layers():
    """Room to the number of its layer, 0 at the top, as import-linter reads them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return {
        name: depth
        for depth, layer in enumerate(contract["layers"])
        for name in re.findall(r"calibrant\.(\w+)", layer)
    }


def imported(tree):
    """Modules of calibrant that a module imports anywhere, by a statement or by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "calibrant":
            yield from (f"calibrant.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            name = node.args[0]
            if called in ("import_module", "__import__") and isinstance(name, ast.Constant):
                yield name.value


def room_of(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


def test_every_room_has_a_layer():
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    modules = {path.stem for path in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    assert rooms | modules == set(layers())


def test_imports_go_down_even_inside_functions():
    layer, wrong, exceptions = layers(), [], set()
    for path, tree in TREES.items():
        own = room_of(path)
        if own not in layer:  # the facade and `python -m calibrant`
            continue
        for module in imported(tree):
            top, _, rest = module.partition(".")
            other = rest.partition(".")[0]
            if top != "calibrant" or other == own or other not in layer:
                continue
            place = path.relative_to(SOURCE).as_posix(), module
            if layer[other] <= layer[own]:
                (exceptions.add if place in UPWARD else wrong.append)(place)
    assert wrong == []
    assert exceptions == UPWARD


def decorated(decorator, folder):
    """Functions and classes under a decorator, which stand in one room."""
    found = []
    for path, tree in TREES.items():
        for node in tree.body:
            for one in getattr(node, "decorator_list", ()):
                call = one.func if isinstance(one, ast.Call) else one
                if getattr(call, "id", None) == decorator:
                    assert path.is_relative_to(SOURCE / folder), path
                    found.append(node.name)
    return sorted(found)


def test_a_decorator_is_all_that_a_map_a_format_a_profile_or_a_verb_needs():
    maps = sorted(one.__name__ for one in registered_maps().values())
    assert decorated("register", "recalibration") == maps
    readers = sorted(reader.__name__ for reader, _ in formats().values())
    assert decorated("file_format", "io") == readers
    as_profile("clinical")
    assert decorated("profile", "profiles") == sorted(PROFILES)
    load_verbs()
    verbs = sorted(one.callback.__name__ for one in app.registered_commands)
    assert decorated("verb", "cli") == verbs


@pytest.mark.parametrize(
    "name", ["register", "file_format", "profile", "register_theme", "verb", "MEASURES", "DIALECTS"]
)
def test_an_extension_point_is_single(name):
    homes = [
        path
        for path, tree in TREES.items()
        for node in tree.body
        if getattr(node, "name", None) == name
        or name in [getattr(t, "id", None) for t in getattr(node, "targets", ())]
        or getattr(getattr(node, "target", None), "id", None) == name
    ]
    assert len(homes) == 1, homes


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("HistogramRecalibrator", "recalibration/histogram.py"),
        ("orc", "io/columnar.py"),
        ("dark", "plotting/themes.py"),
        ("kernel_rbf", "measures/catalogue.py"),
    ],
)
def test_what_an_extension_point_takes_is_named_in_one_file(name, home):
    """As a class or as a word."""
    homes = {
        path.relative_to(SOURCE).as_posix()
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if name in (getattr(node, "value", None), getattr(node, "name", None))
    }
    assert homes == {home}


def test_every_path_of_the_map_exists():
    named = re.findall(r"`([\w.-]+/[\w./-]*|\w+\.(?:py|md|toml))`", TEXT)
    assert len(named) > 80
    missing = [name for name in named if not any((at / name).exists() for at in (ROOT, SOURCE))]
    assert missing == []


def test_every_room_is_on_the_map():
    rooms = [path.parent.name for path in SOURCE.glob("*/__init__.py")]
    assert [room for room in rooms if f"`{room}/`" not in TEXT] == []


def test_docstrings_begin_with_a_noun():
    riddle = re.compile(r"(What|Whether|How|Of|Where|Who|The same|So|As)\b")
    wrong = [
        f"{path.relative_to(SOURCE)}:{node.body[0].lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
        and riddle.match(ast.get_docstring(node) or "")
    ]
    assert wrong == []
