"""Confidences in every form that logs have: log-probabilities, options, samples, judges, words."""

from __future__ import annotations

import json
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant.errors import InputError
from calibrant.io.answers import question_number, read_answers
from calibrant.io.confidence import (
    as_probability,
    share_of_choice,
    stated_confidence,
)


def log(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def refusal(path: Path, **options: Any) -> InputError:
    with pytest.raises(InputError) as error:
        read_answers(path, **options)
    return error.value


@pytest.mark.parametrize(
    "tokens",
    [
        [-0.1, -0.4],
        [{"token": "4", "logprob": -0.1}, {"token": "2", "logprob": -0.4}],
        {"content": [{"token": "4", "logprob": -0.1}, {"token": "2", "logprob": -0.4}]},
        {"tokens": ["4", "2"], "token_logprobs": [-0.1, -0.4]},
        {"token_logprobs": [None, -0.1, -0.4]},
    ],
    ids=["numbers", "tokens", "chat", "completion", "echo"],
)
@pytest.mark.parametrize(("form", "log_p"), [("sum", -0.5), ("mean", -0.25), ("token", -0.1)])
def test_log_probabilities_of_tokens(tmp_path: Path, tokens: Any, form: Any, log_p: float) -> None:
    path = log(tmp_path, {"logprobs": tokens, "correct": 1}, {"logprobs": [-1.0], "correct": 0})
    answers = read_answers(path, form=form)
    assert answers.y_prob == pytest.approx([math.exp(log_p), math.exp(-1.0)])
    assert "'logprobs'" in answers.probability


def test_log_probabilities_above_zero_are_refused(tmp_path: Path) -> None:
    path = log(tmp_path, {"logprobs": [-0.1], "correct": 1}, {"logprobs": [0.9], "correct": 1})
    error = refusal(path, form="sum")
    assert error.argument == "probability"
    assert "0.9 (line 2" in str(error)
    assert read_answers(path, form="sum", on_invalid="drop").unreadable == 1


@given(st.lists(st.floats(-700, 0), min_size=2, max_size=6), st.data())
def test_shares_of_options_add_up_to_one(logs: list[float], data: Any) -> None:
    names = [chr(65 + k) for k in range(len(logs))]
    options = dict(zip(names, logs, strict=True))
    shares = [share_of_choice(options, name) for name in names]
    assert sum(shares) == pytest.approx(1.0)
    assert share_of_choice(options) == pytest.approx(max(shares))
    at = data.draw(st.integers(0, len(logs) - 1))
    assert share_of_choice(logs, at) == pytest.approx(shares[at])


def test_options_with_the_answer_beside_them(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        {"choice_logprobs": {"A": math.log(0.2), "B": math.log(0.2)}, "answer": "B", "correct": 1},
        {"choice_logprobs": [math.log(0.3), math.log(0.1)], "answer": 1, "correct": 0},
        {"choice_logprobs": [math.log(0.3), math.log(0.1)], "correct": 0},
    )
    assert read_answers(path, form="choices").y_prob == pytest.approx([0.5, 0.25, 0.75])
    alone = log(tmp_path, {"logprobs": [-1.0], "correct": 1})
    assert "there are 1" in str(refusal(alone, form="choices"))


def test_agreement_of_samples(tmp_path: Path) -> None:
    rows = [("q1", "Paris"), ("q1", "paris."), ("q1", "Rome"), ("q2", "7")]
    lines = [{"question_id": q, "answer": a, "correct": a != "Rome"} for q, a in rows]
    answers = read_answers(log(tmp_path, *lines), form="agreement")
    assert answers.y_prob == pytest.approx([2 / 3, 2 / 3, 1 / 3, 1.0])
    listed = log(
        tmp_path, {"samples": ["A", "B", "a "], "correct": 1}, {"samples": [1], "correct": 0}
    )
    assert read_answers(listed, form="agreement").y_prob == pytest.approx([2 / 3, 1.0])
    alone = log(tmp_path, {"answer": "A", "correct": 1})
    assert refusal(alone, form="agreement").argument == "question"


def test_judges_and_nested_fields(tmp_path: Path) -> None:
    """As the judge of Humanity's Last Exam writes it."""
    path = log(
        tmp_path,
        {"id": "a", "judge_response": {"correct": "yes", "confidence": 85}},
        {"id": "b", "judge_response": {"correct": "no", "confidence": 100}},
    )
    answers = read_answers(path, form="percent")
    assert answers.y_prob.tolist() == [0.85, 1.0]
    assert answers.y_true.tolist() == [1.0, 0.0]
    deep = log(tmp_path, {"out": [{"p": 0.3}], "meta": {"ok": True}, "q": {"id": 4}})
    named = read_answers(deep, probability="out.0.p", correct="meta.ok", question="q.id")
    assert (named.y_prob.tolist(), named.cluster.tolist()) == ([0.3], [question_number("4")])
    assert refusal(deep, probability="out.1.p", correct="meta.ok").argument == "probability"


def test_scores_of_a_judge_are_shares_of_the_credit(tmp_path: Path) -> None:
    path = log(tmp_path, {"p": 0.9, "score": 5}, {"p": 0.4, "score": 2}, {"p": 0.1, "score": 1})
    assert read_answers(path, score_range=(1, 5)).y_true.tolist() == [1.0, 0.25, 0.0]
    assert "score_range=" in refusal(path).hint
    assert "got 1" in str(refusal(path, score_range=(2, 5)))
    for wrong in ((5, 1), (1,), "15", (1, "5")):
        assert refusal(path, score_range=wrong).argument == "score_range"


def test_words_mean_what_the_user_says_and_nothing_else(tmp_path: Path) -> None:
    path = log(
        tmp_path, {"confidence": "Very likely", "correct": 1}, {"confidence": 0.2, "correct": 0}
    )
    assert "words=" in refusal(path).hint
    table = {"very likely": 0.9}
    assert read_answers(path, words=table).y_prob.tolist() == [0.9, 0.2]
    for wrong in (90, True, "0.9"):
        assert refusal(path, words={"very likely": wrong}).argument == "words"


def test_percentages_run_from_0_to_100(tmp_path: Path) -> None:
    whole = log(tmp_path, {"confidence": 85, "correct": 1}, {"confidence": 1, "correct": 0})
    assert 'form="percent"' in refusal(whole).hint
    beyond = log(tmp_path, {"confidence": 850, "correct": 1})
    assert "850" in str(refusal(beyond, form="percent"))
    fine = log(tmp_path, {"confidence": 1, "correct": 1}, {"confidence": "85%", "correct": 1})
    assert read_answers(fine, form="percent").y_prob.tolist() == [0.01, 0.85]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("85%", 0.85),
        (" 85 % ", 0.85),
        ("0.85", 0.85),
        (".85", 0.85),
        ("85 percent", 0.85),
        ("85 per cent.", 0.85),
        ("85/100", 0.85),
        ("8/10", 0.8),
        ("8 out of 10", 0.8),
        ("85 out of 100", 0.85),
        ("about 85%", 0.85),
        ("~85%", 0.85),
        ("1", 1.0),
    ],
)
def test_forms_in_which_models_write_a_confidence(text: str, value: float) -> None:
    assert as_probability(text) == value
    assert stated_confidence(f"The answer is 12.\nConfidence: {text}") == value


def test_a_field_may_hold_a_sentence_that_states_the_confidence() -> None:
    said = ("I am 85% sure.", "Confidence: 85%", "Confidence: 0.85", "85% confident")
    assert [as_probability(text) for text in said] == [0.85] * 4


@pytest.mark.parametrize("text", ["85", "-5%", "eighty", "5 of 7", "0.5-0.9", "120%", "1.2.3"])
def test_forms_that_could_be_anything_are_refused(text: str) -> None:
    with pytest.raises(InputError) as error:
        as_probability(text)
    assert error.value.argument == "probability"
    assert repr(text) in str(error.value)


def test_nothing_is_dropped_unseen(tmp_path: Path) -> None:
    path = log(
        tmp_path,
        {"confidence": 0.9, "correct": 1},
        {"confidence": "high", "correct": 1},
        {"confidence": None, "correct": 0},
        {"confidence": 0.4, "correct": None},
        {"confidence": "I don't know", "correct": None},
    )
    answers = read_answers(path, on_invalid="drop")
    counted = answers.to_dict()
    assert {name: counted[name] for name in ("abstained", "without_confidence", "unreadable")} == {
        "abstained": 1,
        "without_confidence": 1,
        "unreadable": 1,
    }
    assert counted["unscored"] == 1
    assert "1 unreadable" in repr(answers)
    assert answers.n + answers.abstained == 5


def test_a_long_log_is_never_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    line = {"confidence": 0.5, "correct": 1, "question": "", "response": "x" * 2000}
    with path.open("w") as file:
        for k in range(1_500):
            file.write(json.dumps({**line, "question": f"{k % 50} " + "why " * 200}) + "\n")
    read_answers(log(tmp_path / "..", {**line, "question": "1"}))  # modules are imported by now
    tracemalloc.start()
    answers = read_answers(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (answers.n, answers.questions) == (1_500, 50)
    assert peak < path.stat().st_size / 5  # the columns, and a look at the first megabyte


@pytest.mark.parametrize("said", ["B", "b", "(b)", " B. ", 1])
def test_a_choice_is_named_in_the_ways_models_do(tmp_path: Path, said: object) -> None:
    row = {"option_logprobs": {"A": -0.2, "B": -2.0}, "answer": said, "correct": 1}
    (share,) = read_answers(log(tmp_path, row), form="choices").y_prob
    assert share == pytest.approx(np.exp(-2.0) / (np.exp(-0.2) + np.exp(-2.0)))


def test_an_answer_may_be_the_word_none_and_a_confidence_may_not(tmp_path: Path) -> None:
    rows = [
        {"answer": "None", "confidence": 0.4, "correct": 1},
        {"answer": "3", "confidence": "None", "correct": 0},
    ]
    answers = read_answers(log(tmp_path, *rows))
    assert (answers.y_prob.tolist(), answers.abstained) == ([0.4], 1)


def test_log_probabilities_of_options_suggest_the_share_of_the_chosen_one(tmp_path: Path) -> None:
    scored = {"question_id": 1, "choices": {"A": -0.1, "B": -2.5}, "answer": "A", "correct": True}
    path = log(tmp_path, scored)
    with pytest.raises(InputError) as error:
        read_answers(path)
    assert 'form="choices"' in error.value.hint
    share = np.exp(-0.1) / (np.exp(-0.1) + np.exp(-2.5))
    assert read_answers(path, form="choices").y_prob == pytest.approx([share])
