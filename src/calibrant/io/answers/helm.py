"""Runs of HELM: the `scenario_state.json` of a run folder, with every request and what came back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from calibrant.errors import InputError
from calibrant.io.answers.answers import (
    Answer,
    Answers,
    Place,
    collected,
    does_not_apply,
    question_of,
)
from calibrant.io.answers.confidence import Values
from calibrant.io.answers.json_members import document_members

__all__ = ["helm_answers"]

TOOL = "HELM"
STATES = "request_states"
RIGHT = "correct"
"""The tag of a reference that is a right answer."""
Object = dict[str, Any]


def helm_answers(
    path: Path, values: Values, *, probability: str | None, correct: str | None
) -> Answers:
    """The answers of such a run: the probability of the completion, right by the reference it chooses."""
    if values.form not in ("probability", "sum"):
        raise does_not_apply("form", values.form, TOOL, "it holds one probability of a completion")
    if probability not in (None, "tokens"):
        raise does_not_apply("probability", probability, TOOL, "it holds token probabilities alone")
    if correct is not None:
        raise does_not_apply("correct", correct, TOOL, "its references say what is right")
    return collected(
        _answers(path, Values("sum", lenient=values.lenient)),
        probability=f"product of the completion's token probabilities; right by the tag {RIGHT!r}",
        where=str(path),
    )


def _answers(path: Path, values: Values) -> Iterator[Answer]:
    """An answer for every request; one that failed has neither a probability nor a score."""
    about, has_logs = _first_look(path)
    groups = _groups(path, about)
    pattern = about.get("output_mapping_pattern")
    for number, state in enumerate(_states(path)):
        instance = _object(state, "instance")
        name = question_of(
            instance.get("id"), Place(str(path), sample=f"request {number}"), "instance.id"
        )
        place = Place(str(path), sample=instance["id"])
        _require_choices(state, place)
        question = f"{groups['task']}/{name}" if "task" in groups else name
        if _object(state, "result").get("success") is not True:
            yield Answer(question, None, None, groups=groups)
            continue
        chosen = _chosen(state, pattern, place)
        yield Answer(
            question=question,
            probability=values.confidence(_log(state), place) if has_logs else None,
            correct=None if chosen is None else _credit(instance, chosen),
            abstained=chosen is None,
            groups=groups,
        )


def _first_look(path: Path) -> tuple[Object, bool]:
    """What the run says of itself, and whether it holds log-probabilities: HELM writes 0 for none."""
    about, has_logs, whole, states = None, False, True, 0
    for name, value in document_members(path, STATES, "a run of HELM"):
        if name == "adapter_spec":
            about = value
        elif name == STATES:
            states += 1
            whole = whole and isinstance(value, dict)
            log = _log(value) if whole else None
            has_logs = has_logs or (isinstance(log, int | float) and log < 0)
    if not isinstance(about, dict) or not whole or not states:
        raise InputError(
            "{file} is not a run of HELM: it must hold 'adapter_spec' and a list of 'request_states'",
            file=str(path),
            cure="Give the {name} of a run folder.",
            name="`scenario_state.json`",
        )
    return about, has_logs


def _states(path: Path) -> Iterator[Object]:
    members = document_members(path, STATES, "a run of HELM")
    return (value for name, value in members if name == STATES)


def _groups(path: Path, about: Object) -> dict[str, str]:
    """The model, and the task where the folder has the name that HELM gives it.

    Examples
    --------
    >>> _groups(Path("mmlu:subject=anatomy,model=acme_small/scenario_state.json"), {"model": "acme/small"})
    {'model': 'acme/small', 'task': 'mmlu:subject=anatomy'}
    """
    model = about.get("model")
    groups = {"model": model} if isinstance(model, str) and model else {}
    scenario, _, options = path.absolute().parent.name.partition(":")
    parts = options.split(",")
    if any(part.startswith("model=") for part in parts):
        others = [part for part in parts if not part.startswith(("model=", "model_deployment="))]
        groups["task"] = f"{scenario}:{','.join(others)}" if others else scenario
    return groups


def _object(holder: Object, field: str) -> Object:
    value = holder.get(field)
    return value if isinstance(value, dict) else {}


def _objects(holder: Object, field: str) -> list[Object]:
    value = holder.get(field)
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, dict)]


def _require_choices(state: Object, place: Place) -> None:
    """Refuse a request that does not offer all options: its completion is no choice among them."""
    if not _object(state, "output_mapping") or state.get("reference_index") is not None:
        raise place.refuse(
            "a run of HELM must ask multiple-choice questions with all options in one request",
            cure="Run the scenario with {method}.",
            method="`method=multiple_choice_joint`",
        )


def _completion(state: Object) -> Object:
    """The completion that HELM scores: the most probable one, the first of equals."""

    def log(completion: Object) -> float:
        value = completion.get("logprob")
        return float(value) if isinstance(value, int | float) else 0.0

    return max(_objects(_object(state, "result"), "completions"), key=log, default={})


def _log(state: Object) -> Any:
    """The log-probability of a completion, as the run has it; None where the request failed."""
    succeeded = _object(state, "result").get("success") is True
    return _completion(state).get("logprob") if succeeded else None


def _chosen(state: Object, pattern: Any, place: Place) -> str | None:
    """The text of the option that a completion names; None where it names none."""
    text = _completion(state).get("text")
    if not isinstance(text, str):
        return None
    label = text.strip()
    if pattern:
        try:
            match = re.search(pattern, label)
        except (re.error, TypeError, RecursionError) as error:
            raise place.refuse(
                "'output_mapping_pattern' must be a regular expression",
                seen=str(error),
                saying="{}",
                cure="The log is damaged: write it again.",
            ) from error
        label = "" if match is None else match[1 if match.re.groups else 0] or ""
    option = _object(state, "output_mapping").get(label)
    texts = {_text(reference) for reference in _objects(_object(state, "instance"), "references")}
    return option if isinstance(option, str) and option in texts else None


def _text(reference: Object) -> str | None:
    text = _object(reference, "output").get("text")
    return text if isinstance(text, str) else None


def _credit(instance: Object, chosen: str) -> float | None:
    """Whether the chosen text is that of a right reference; None where no reference is."""
    right = {
        _text(reference)
        for reference in _objects(instance, "references")
        if isinstance(reference.get("tags"), list) and RIGHT in reference["tags"]
    }
    return float(chosen in right) if right else None
