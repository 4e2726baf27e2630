"""Messages are data: their texts are constant, and nothing reads the words."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import calibrant.errors
from calibrant.errors import Message

SOURCE = Path(calibrant.errors.__file__).parent
MODULES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
MESSAGES = {
    "CalibrantWarning",
    "CalibrantError",
    "DependenceWarning",
    "HardLabelWarning",
    "FormWarning",
    "InputError",
    "MergeError",
    "MissingDependency",
    "TooFewRows",
    "Unavailable",
}


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node


def _texts(name: str, call: ast.Call) -> list[ast.expr]:
    """The rule, what is said of what was seen, and the cures."""
    if name == "Cure":
        return call.args[:1]
    if name not in MESSAGES:
        return []
    return [
        *call.args[:1],
        *(word.value for word in call.keywords if word.arg in ("saying", "cure")),
    ]


def _parts(text: ast.expr) -> Iterator[ast.expr]:
    """A text that depends on a condition, or a list of several, as its parts."""
    if isinstance(text, ast.IfExp):
        yield from _parts(text.body)
        yield from _parts(text.orelse)
    elif isinstance(text, ast.List | ast.Tuple):
        for one in text.elts:
            yield from _parts(one)
    else:
        yield text


def _all_texts() -> Iterator[tuple[str, ast.expr]]:
    for path, tree in MODULES.items():
        for name, call in _calls(tree):
            for text in _texts(name, call):
                for part in _parts(text):
                    yield f"{path.relative_to(SOURCE)}:{part.lineno}", part


def _subclasses(kind: type) -> set[str]:
    return {kind.__name__}.union(*(_subclasses(one) for one in kind.__subclasses__()))


def test_every_kind_of_message_is_looked_at():
    import calibrant.cli.errors
    import calibrant.data.rows
    import calibrant.datasets
    import calibrant.inference.dependence  # noqa: F401  # each has kinds of its own

    assert _subclasses(Message) - {"Message", "InvalidRows"} <= MESSAGES
    assert len(list(_all_texts())) > 500


def test_what_varies_in_a_message_is_a_field():
    """An f-string would hide a value in the words, where only a reader can find it."""
    made = [place for place, text in _all_texts() if isinstance(text, ast.JoinedStr)]
    assert not made


def test_names_of_arguments_are_fields_and_not_words():
    """Each audience has its own names for them; the command line may name its commands, but no option."""
    named = [
        place
        for place, text in _all_texts()
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
        if ("`--" if place.startswith("cli") else "`") in text.value
    ]
    assert not named


def test_the_rule_goes_on_from_the_argument():
    """ "`y_prob` must lie in [0, 1]": with an argument, the rule is the rest of a sentence."""
    wrong = []
    for path, tree in MODULES.items():
        for name, call in _calls(tree):
            if name not in MESSAGES or not call.args:
                continue
            if any(word.arg == "argument" for word in call.keywords):
                wrong += [
                    f"{path.name}:{part.lineno} {part.value}"
                    for part in _parts(call.args[0])
                    if isinstance(part, ast.Constant)
                    if str(part.value).split()[0] in ("a", "an", "the", "there", "every", "this")
                ]
    assert not wrong


def test_no_code_reads_the_words_of_an_error():
    """Neither compares nor searches what an exception says, nor looks at its arguments."""
    readers = []
    for path, tree in MODULES.items():
        caught = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)}

        def is_words(node: ast.AST, caught: set[str | None] = caught) -> bool:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                said = node.func.id in ("str", "repr") and node.args
                return (
                    bool(said) and isinstance(node.args[0], ast.Name) and node.args[0].id in caught
                )
            is_field = isinstance(node, ast.Attribute) and node.attr in ("args", "rule", "message")
            return is_field and isinstance(node.value, ast.Name) and node.value.id in caught

        for node in ast.walk(tree):
            read: list[ast.AST] = []
            if isinstance(node, ast.Compare):
                read = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                searching = node.func.attr in (
                    "match",
                    "search",
                    "fullmatch",
                    "startswith",
                    "endswith",
                )
                read = [*node.args, node.func.value] if searching else []
            readers += [
                f"{path.relative_to(SOURCE)}:{node.lineno}" for one in read if is_words(one)
            ]
    assert not readers


def test_what_a_cure_names_exists():
    named = {
        call.args[0].value
        for tree in MODULES.values()
        for name, call in _calls(tree)
        if name == "Function" and isinstance(call.args[0], ast.Constant)
    }
    for path in sorted(named):
        *parents, name = path.split(".")
        held = pkgutil.resolve_name(".".join(["calibrant", *parents]))
        assert callable(getattr(held, name, None)), path
