"""Runs of HELM, in the form that crfm-helm 0.5.16 writes: fields that are None are left out."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from calibrant.errors import InputError
from calibrant.io.answers import log_format, question_number, read_answers

OPTIONS = ("Lyon", "Paris")


def completion(text: str, logprob: float) -> dict[str, Any]:
    return {"text": text, "logprob": logprob, "tokens": [{"text": text, "logprob": logprob}]}


def request(id: str, *completions: dict[str, Any], success: bool = True) -> dict[str, Any]:
    """What was asked and what came back; "Paris", the option B, is right."""
    tags: dict[str, list[str]] = {"Lyon": [], "Paris": ["correct"]}
    failure = {"error": "blocked", "error_flags": {"is_retriable": False, "is_fatal": False}}
    references = [{"output": {"text": option}, "tags": tags[option]} for option in OPTIONS]
    return {
        "instance": {
            "input": {"text": "Capital of France?"},
            "references": references,
            "split": "test",
            "id": id,
        },
        "train_trial_index": 0,
        "output_mapping": dict(zip("AB", OPTIONS, strict=True)),
        "request": {
            "model_deployment": "acme/small",
            "model": "acme/small",
            "prompt": "Capital of France?\nA. Lyon\nB. Paris\nAnswer:",
        },
        "result": {
            "success": success,
            "embedding": [],
            "completions": list(completions),
            "cached": False,
            **({"request_time": 0.1, "request_datetime": 1} if success else failure),
        },
        "num_train_instances": 0,
        "prompt_truncated": False,
        "num_conditioning_tokens": 0,
    }


def run(folder: Path, *states: Any, **about: Any) -> Path:
    """The file of a run with these requests."""
    spec = {
        "method": "multiple_choice_joint",
        "num_outputs": 5,
        "num_train_trials": 1,
        "model_deployment": "acme/small",
        "model": "acme/small",
        "max_tokens": 1,
        "multi_label": False,
        **about,
    }
    folder.mkdir(exist_ok=True)
    path = folder / "scenario_state.json"
    path.write_text(json.dumps({"adapter_spec": spec, "request_states": states}, indent=2))
    return path


def refusal(path: Path, **options: Any) -> InputError:
    with pytest.raises(InputError) as error:
        read_answers(path, **options)
    return error.value


def test_a_run_of_helm(tmp_path: Path) -> None:
    path = run(
        tmp_path,
        request("id0", completion(" B", -0.1)),
        request("id1", completion("A", -0.7)),
        request("id2", completion("M", -1.5)),
        request("id3", completion("", 0), success=False),
        request("id0", completion("A", -2.0), completion("B", -0.5)),
        request("id4", completion("B", 0.0)),
    )
    assert log_format(path) == "helm"
    answers = read_answers(path)
    np.testing.assert_array_equal(
        answers.y_prob, [math.exp(-0.1), math.exp(-0.7), np.nan, math.exp(-0.5), 1.0]
    )
    np.testing.assert_array_equal(answers.y_true, [1, 0, np.nan, 1, 1])
    assert answers.cluster.tolist() == [
        question_number(name) for name in ["id0", "id1", "id3", "id0", "id4"]
    ]
    assert (answers.abstained, answers.unscored, answers.without_confidence) == (1, 1, 1)
    assert set(answers.groups) == {"model"}
    assert set(answers.groups["model"]) == {"acme/small"}

    packed = tmp_path / "scenario_state.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_answers(packed).y_prob, answers.y_prob)


def test_the_folder_of_a_run_names_its_task(tmp_path: Path) -> None:
    """Instances of two tasks have the same names, those of two models are the same questions."""
    state = request("id0", completion("B", -0.1))
    first = run(tmp_path / "mmlu:subject=anatomy,model=acme_small,groups=x", state)
    second = run(tmp_path / "boolq:model=acme_small,model_deployment=acme_small", state)
    assert read_answers(first).groups["task"].tolist() == ["mmlu:subject=anatomy,groups=x"]
    assert read_answers(first).cluster.tolist() == [
        question_number(name) for name in ["mmlu:subject=anatomy,groups=x/id0"]
    ]
    assert read_answers(second).cluster.tolist() == [
        question_number(name) for name in ["boolq/id0"]
    ]


def test_the_pattern_of_a_run_finds_the_option_in_the_text(tmp_path: Path) -> None:
    states = [
        request("a", completion("The answer is (B).", -0.1)),
        request("b", completion("No idea", -1)),
    ]
    answers = read_answers(run(tmp_path, *states, output_mapping_pattern=r"answer is \(([A-B])\)"))
    assert (answers.y_true.tolist(), answers.abstained) == ([1], 1)
    answers = read_answers(run(tmp_path, *states, output_mapping_pattern=r"\b[AB]\b"))
    assert (answers.y_true.tolist(), answers.abstained) == ([1], 1)
    error = refusal(run(tmp_path, *states, output_mapping_pattern="("))
    assert error.file == str(tmp_path / "scenario_state.json")


def test_a_run_without_log_probabilities_is_refused(tmp_path: Path) -> None:
    """HELM writes 0 where a model gives none: certainty in every answer is no confidence."""
    path = run(tmp_path, request("a", completion("B", 0)), request("b", completion("A", 0.0)))
    assert "any of its 2 answers" in str(refusal(path))
    bare = request("a", completion("B", 0))
    del bare["result"]["completions"][0]["logprob"]
    assert "any of its 1 answers" in str(refusal(run(tmp_path, bare)))
    mixed = read_answers(run(tmp_path, bare, request("b", completion("A", -0.3))))
    assert mixed.without_confidence == 1


def test_what_is_no_choice_among_options_is_refused(tmp_path: Path) -> None:
    free = request("a", completion("Paris", -0.1))
    del free["output_mapping"]
    separate = request("a", completion("Paris", -0.1)) | {"reference_index": 0}
    for state in (free, separate):
        error = refusal(run(tmp_path, state))
        assert error.file == str(tmp_path / "scenario_state.json")
        assert "'a'" in str(error)
    unnamed = request("a", completion("B", -0.1))
    del unnamed["instance"]["id"]
    assert refusal(run(tmp_path, unnamed)).argument == "question"


@pytest.mark.parametrize(
    "content", ["{", "[]", "7", '{"adapter_spec": {}, "request_states": [1]}', "[" * 100_000]
)
def test_what_is_no_run_of_helm_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "scenario_state.json"
    path.write_text(content)
    assert refusal(path, format="helm").file == str(path)


def test_a_run_of_any_shape_is_read_or_refused(tmp_path: Path) -> None:
    """Each value of a run in turn is one of another kind: nothing but an InputError is raised."""
    state = request("a", completion("B", -0.1))
    del state["request"]
    path = run(tmp_path, state)
    whole = json.loads(path.read_text())
    outcomes = set()
    kinds: list[Any] = [None, 7, "x", [], {}, [None], 10**400]
    for holder, key in list(_places(whole)):
        before = holder[key]
        for other in kinds:
            holder[key] = other
            path.write_text(json.dumps(whole))
            try:
                read_answers(path, format="helm")
                outcomes.add("read")
            except InputError:
                outcomes.add("refused")
        holder[key] = before
    assert outcomes == {"read", "refused"}


def _places(value: Any) -> Any:
    """Every place inside a document that holds a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])
