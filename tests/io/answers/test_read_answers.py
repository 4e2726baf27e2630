"""Evaluation logs, written here as the tools write them, and every way in which they are wrong."""

from __future__ import annotations

import gzip
import json
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import calibrant as cal
from calibrant.errors import InputError
from calibrant.io.answers import log_format, question_number, read_answers


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def refusal(path: Path, **options: Any) -> InputError:
    with pytest.raises(InputError) as error:
        read_answers(path, **options)
    return error.value


def numbers(names: list[str]) -> list[int]:
    return [question_number(name) for name in names]


def choice_sample(doc_id: int, scores: list[Any], acc: float, **more: Any) -> dict[str, Any]:
    return {
        "doc_id": doc_id,
        "doc": {"question": "?"},
        "target": 0,
        "arguments": {
            f"gen_args_{i}": {"arg_0": "Q:", "arg_1": " " + "x" * (i + 1)}
            for i in range(len(scores))
        },
        "resps": [[[score, "False"]] for score in scores],
        "filtered_resps": [[score, "False"] for score in scores],
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "acc": acc,
        "acc_norm": 1 - acc,
        **more,
    }


# -- plain JSON lines ----------------------------------------------------------------------------


def test_stated_confidences_in_plain_lines(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "answers.jsonl",
        [
            {"question_id": 7, "model": "a", "confidence": "85%", "correct": True},
            {"question_id": 7, "model": "b", "confidence": 0.3, "correct": "I"},
            {"question_id": 8, "model": "a", "confidence": ".5", "correct": 0},
            {"question_id": 9, "model": "a", "confidence": None, "correct": None},
            {"question_id": 9, "model": "b", "confidence": "29%", "correct": 1, "abstained": False},
        ],
    )
    answers = read_answers(path)
    np.testing.assert_array_equal(answers.y_prob, [0.85, 0.3, 0.5, 0.29])
    np.testing.assert_array_equal(answers.y_true, [1, 0, 0, 1])
    assert answers.cluster.tolist() == numbers(["7", "7", "8", "9"])
    assert answers.groups["model"].tolist() == ["a", "b", "a", "b"]
    assert (answers.abstained, answers.questions) == (1, 3)
    assert "'confidence'" in answers.probability
    assert "1 abstained" in repr(answers)
    assert "abstained" in answers._repr_html_()


def test_fields_can_be_named_and_a_refusal_is_an_abstention(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "x.jsonl",
        [
            {"sure": 0.9, "ok": True, "item": "q1", "answer": "B"},
            {"sure": 0.1, "ok": False, "item": "q2", "answer": "I don't know."},
        ],
    )
    answers = read_answers(path, probability="sure", correct="ok", question="item")
    assert (answers.n, answers.abstained) == (1, 1)
    assert answers.cluster.tolist() == numbers(["q1"])


@pytest.mark.parametrize(
    "words", ["I don't know", "I’m not sure.", "unsure", "N/A", "IDK", "abstained", "unknown"]
)
def test_a_confidence_or_a_score_that_declines_is_an_abstention(tmp_path: Path, words: str) -> None:
    rows = [
        {"confidence": "80%", "correct": 1},
        {"confidence": words, "correct": 0},
        {"confidence": 0.5, "correct": words},
    ]
    answers = read_answers(write_lines(tmp_path / "x.jsonl", rows))
    assert (answers.y_prob.tolist(), answers.abstained) == ([0.8], 2)


def test_what_cannot_be_read_can_be_dropped_and_counted(tmp_path: Path) -> None:
    rows = [
        {"confidence": 0.8, "correct": 1},
        {"confidence": 0.2, "correct": 0},
        {"confidence": "high", "correct": 1},
        {"confidence": 0.3, "correct": "perhaps"},
    ]
    answers = read_answers(write_lines(tmp_path / "x.jsonl", rows), on_invalid="drop")
    found = cal.assess(answers.y_true, answers.y_prob, on_invalid="drop")
    assert dict(found.dropped) == {"prediction out of range": 1, "invalid label": 1}


@pytest.mark.parametrize(
    ("row", "argument", "cure"),
    [
        ({"confidence": 85, "correct": 1}, "probability", "form"),
        ({"confidence": "high", "correct": 1}, "probability", "words"),
        ({"confidence": True, "correct": 1}, "probability", "words"),
        ({"confidence": 0.5, "correct": "maybe"}, "correct", "score_range"),
        ({"confidence": 0.5, "correct": 7}, "correct", "score_range"),
        ({"confidence": "-5%", "correct": 1}, "probability", "words"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, row: dict[str, Any], argument: str, cure: str
) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"confidence": 0.5, "correct": 1}, row])
    error = refusal(path)
    assert (error.argument, error.file) == (argument, str(path))
    seen = row["confidence" if argument == "probability" else "correct"]
    assert f"{seen!r} (line 2 of" in str(error)
    assert f"`{cure}=" in error.hint


def test_missing_fields_broken_lines_and_empty_files(tmp_path: Path) -> None:
    error = refusal(write_lines(tmp_path / "a.jsonl", [{"prompt": "?"}]))
    assert "'prompt'" in str(error)
    assert "`probability=`" in error.hint
    named = write_lines(tmp_path / "b.jsonl", [{"sureness": 0.5, "correct": 1}])
    error = refusal(named, probability="surenes")
    assert error.argument == "probability"
    assert "'sureness'" in error.hint
    broken = tmp_path / "c.jsonl"
    broken.write_text('{"confidence": 0.5, "correct": 1}\n{"confidence"\n')
    assert "line 2 of" in str(refusal(broken))
    broken.write_text("[1]\n")
    assert "got [1]" in str(refusal(broken))
    broken.write_text("")
    assert "it has []" in str(refusal(broken))
    declined = write_lines(tmp_path / "d.jsonl", [{"p": None, "correct": None}])
    assert "all 1 are abstentions" in str(refusal(declined))
    silent = write_lines(tmp_path / "e.jsonl", [{"p": None, "correct": 1}])
    assert "any of its 1 answers" in str(refusal(silent))
    assert refusal(broken, format="csv").argument == "format"
    assert refusal(broken, form="odds").argument == "form"
    assert refusal(broken, filter="none").argument == "filter"
    assert refusal(broken, on_invalid="skip").argument == "on_invalid"


# -- lm-evaluation-harness -----------------------------------------------------------------------


def test_shares_of_the_choices(tmp_path: Path) -> None:
    rows = [
        choice_sample(0, ["-1.0", "-2.0", "-3.0"], 1.0),
        choice_sample(1, [-5.0, -1.0, -1.0], 0.0),
    ]
    answers = read_answers(
        write_lines(tmp_path / "samples_arc_easy_2026-01-01T00-00-00.jsonl", rows)
    )
    expected = [1 / (1 + math.exp(-1) + math.exp(-2)), 1 / (2 + math.exp(-4))]
    np.testing.assert_allclose(answers.y_prob, expected, rtol=1e-15)
    np.testing.assert_array_equal(answers.y_true, [1, 0])
    assert answers.cluster.tolist() == numbers(["arc_easy/0", "arc_easy/1"])
    assert answers.groups["task"].tolist() == ["arc_easy"] * 2
    assert "likelihoods of all choices" in answers.probability
    assert "'acc'" in answers.probability


def test_choices_that_are_asked_again_without_the_question_do_not_count(tmp_path: Path) -> None:
    """As the harness does for `acc_mutual_info`."""
    prompts = [["Q", " yes"], ["Q", " no"], ["", " yes"], ["", " no"]]
    rows = [choice_sample(0, [-1.0, -2.0, -9.0, -0.1], 1.0, arguments=prompts)]
    folder = tmp_path / "org__model"
    folder.mkdir()
    answers = read_answers(write_lines(folder / "samples_t.jsonl", rows))
    np.testing.assert_allclose(answers.y_prob, [1 / (1 + math.exp(-1))])
    assert answers.groups["model"].tolist() == ["org/model"]


def test_generated_text_that_states_a_confidence(tmp_path: Path) -> None:
    rows = [
        {
            "doc_id": i,
            "resps": [[text]],
            "filtered_resps": ["12"],
            "filter": f,
            "exact_match": 1.0 if f == "strict" else 0.0,
        }
        for i, text in enumerate(["It is 12. Confidence: 85%", "12; I'm 60% sure", "I don't know"])
        for f in ("strict", "flexible")
    ]
    path = tmp_path / "samples_gsm8k_2026-01-01T00-00-00.123.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    assert "'strict', 'flexible'" in str(refusal(path))
    assert refusal(path, filter="lenient").argument == "filter"
    answers = read_answers(path, filter="strict")
    np.testing.assert_array_equal(answers.y_prob, [0.85, 0.6])
    np.testing.assert_array_equal(answers.y_true, [1, 1])
    assert answers.abstained == 1
    assert answers.groups["task"].tolist() == ["gsm8k", "gsm8k"]


def test_wrong_harness_logs(tmp_path: Path) -> None:
    path = tmp_path / "samples_x.jsonl"
    write_lines(path, [choice_sample(0, [-1.0], 1.0)])
    assert "there are 1" in str(refusal(path))
    write_lines(path, [{"doc_id": 0, "filtered_resps": ["a"], "resps": [["a"]], "bleu": 0.3}])
    error = refusal(path)
    assert "['doc_id', 'bleu']" in str(error)
    assert "`correct=`" in error.hint
    write_lines(
        path, [choice_sample(0, [-1.0, -2.0], 1.0), {"filtered_resps": [], "filter": "none"}]
    )
    assert "(line 2 of" in str(refusal(path))
    write_lines(path, [choice_sample(0, [-1.0, -2.0], 1.0, arguments=[["Q"], ["Q"]])])
    assert "(line 1 of" in str(refusal(path, probability="normalised"))
    assert refusal(path, probability="logits").argument == "probability"
    assert refusal(path, form="mean").argument == "form"
    path.write_text("")
    assert refusal(path, format="lm-eval").file == str(path)


# -- Inspect -------------------------------------------------------------------------------------


def inspect_sample(
    id: Any, value: Any, text: Any, *, epoch: int = 1, logprobs: Any = None, **metadata: Any
) -> dict[str, Any]:
    return {
        "id": id,
        "epoch": epoch,
        "input": "?",
        "target": "B",
        "output": {
            "choices": [{"message": {"role": "assistant", "content": text}, "logprobs": logprobs}]
        },
        "scores": {"match": {"value": value, "answer": "B", "metadata": metadata or None}},
    }


def inspect_log(samples: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"model": "m/1", "task": "t"},
        "samples": samples,
    }


def test_inspect_json_with_stated_confidence_and_epochs(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(
        json.dumps(
            inspect_log(
                [
                    inspect_sample("q1", "C", "B. Confidence: 90%"),
                    inspect_sample(
                        "q1", "I", [{"type": "text", "text": "confidence 40%"}], epoch=2
                    ),
                    inspect_sample("q2", "P", "C. Confidence: 0.7"),
                    inspect_sample("q3", "N", "no idea"),
                ]
            )
        )
    )
    answers = read_answers(path)
    np.testing.assert_array_equal(answers.y_prob, [0.9, 0.4, 0.7])
    np.testing.assert_array_equal(answers.y_true, [1, 0, 0.5])
    assert answers.cluster.tolist() == numbers(["t/q1", "t/q1", "t/q2"])
    assert answers.abstained == 1
    assert answers.has_partial_credit
    assert answers.groups["model"].tolist() == ["m/1"] * 3
    assert "stated in the answer" in answers.probability


def test_inspect_archive_with_token_probabilities(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    tokens = {"content": [{"token": "B", "logprob": -0.5}, {"token": ".", "logprob": -0.25}]}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "m", "task": "t"}}))
        archive.writestr(
            "samples/q1_epoch_1.json", json.dumps(inspect_sample("q1", "C", "B.", logprobs=tokens))
        )
        archive.writestr("samples/q2_epoch_1.json", json.dumps(inspect_sample("q2", 0, "A.")))
        archive.writestr("summaries.json", "[]")
    answers = read_answers(path)
    np.testing.assert_allclose(answers.y_prob, [math.exp(-0.75), math.nan])
    assert "token probabilities" in answers.probability


def test_inspect_archive_as_inspect_packs_it(tmp_path: Path) -> None:
    """With Zstandard, the header last: as version 0.3.285 wrote one that was looked into."""
    path = tmp_path / "log.eval"
    members = {
        "_journal/start.json": {"version": 2, "eval": {"model": "m", "task": "t"}},
        "samples/1_epoch_1.json": inspect_sample(1, "C", "B. Confidence: 90%"),
        "samples/2_epoch_1.json": inspect_sample(2, "I", "I don't know."),
        "samples/3_epoch_1.json": {"id": 3, "epoch": 1, "scores": {}, "error": {"message": "down"}},
        "header.json": {"eval": {"model": "m", "task": "t"}, "status": "success"},
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            text = json.dumps(content).encode()
            archive.writestr(name, pyarrow.compress(text, codec="zstd", asbytes=True))
            packed = archive.getinfo(name)
            packed.compress_type, packed.file_size, packed.CRC = 93, len(text), zlib.crc32(text)
    answers = read_answers(path)
    np.testing.assert_array_equal(answers.y_prob, [0.9, math.nan])  # an error is no abstention
    assert (answers.abstained, answers.cluster.tolist()) == (1, numbers(["t/1", "t/3"]))


def test_a_confidence_in_metadata_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    samples = [inspect_sample(1, "C", "x", confidence="high"), inspect_sample(2, "I", "y", p=0.4)]
    path.write_text(json.dumps(inspect_log(samples)))
    error = refusal(path)
    assert "'high' (sample 1 of" in str(error)
    assert error.file == str(path)
    answers = read_answers(path, on_invalid="drop")
    assert answers.y_prob.tolist() == [math.inf, 0.4]


def test_wrong_inspect_logs(tmp_path: Path) -> None:
    path = tmp_path / "log.json"

    def refused(content: Any, **options: Any) -> InputError:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return refusal(path, format="inspect", **options)

    for wrong in ("{", {"samples": 3}, inspect_log([]), inspect_log([{"id": 1}])):
        assert refused(wrong).file == str(path)
    both = inspect_sample(1, "C", "x")
    both["scores"]["other"] = {"value": "I"}
    assert refused(inspect_log([both])).hint == "Choose one with `correct=`."
    assert refused(inspect_log([both]), correct="third").argument == "correct"
    unclear = inspect_log([inspect_sample(1, "??", "x", confidence=0.5)])
    assert "'??'" in str(refused(unclear))
    plain = inspect_log([inspect_sample(1, "C", "x")])
    assert "any of its 1 answers" in str(refused(plain))
    assert refused(plain, probability="choices").argument == "probability"
    assert refused(plain, filter="a").argument == "filter"
    assert refused(plain, form="choices").argument == "form"
    damaged = tmp_path / "log.eval"
    with zipfile.ZipFile(damaged, "w") as archive:
        archive.writestr("samples/a.json", "{")
    assert "inspect log convert" in refusal(damaged).hint


@pytest.mark.parametrize("missing", [None, math.nan, "", ...], ids=str)
@pytest.mark.parametrize(
    ("format", "field"), [("jsonl", "id"), ("lm-eval", "doc_id"), ("inspect", "id")]
)
def test_answers_without_a_question_are_no_cluster(
    tmp_path: Path, format: str, field: str, missing: Any
) -> None:
    make: Any = {
        "jsonl": lambda k: {"id": k, "confidence": 0.5, "correct": 1},
        "lm-eval": lambda k: choice_sample(k, [-1.0, -2.0], 1.0),
        "inspect": lambda k: inspect_sample(k, "C", "Confidence: 10%"),
    }[format]
    rows = [make(1), make(2)]
    if missing is ...:
        del rows[1][field]
    else:
        rows[1][field] = missing
    path = tmp_path / "answers"
    if format == "inspect":
        path.write_text(json.dumps(inspect_log(rows)))
    else:
        write_lines(path, rows)
    error = refusal(path, format=format)
    assert error.argument == "question"
    assert f"must name its question in {field!r} (" in str(error)
    assert ("(line 2 of" in str(error)) == (format != "inspect")


def test_a_missing_group_is_named_as_everywhere(tmp_path: Path) -> None:
    rows = [
        {"confidence": 0.5, "correct": 1, "model": model} for model in ("a", None, math.nan, "None")
    ]
    found = read_answers(
        write_lines(tmp_path / "x.jsonl", [*rows, {"confidence": 1, "correct": 1}])
    )
    assert found.groups["model"].tolist() == ["a", "", "", "None", ""]


def evals_log(path: Path, events: list[tuple[str, str, dict[str, Any]]]) -> Path:
    """A run of OpenAI's evals as its recorder writes it: the final report may come before the events."""
    spec = {"completion_fns": ["gpt"], "eval_name": "sums.dev.v0", "run_config": {}, "run_id": "r"}
    rows = [
        {"run_id": "r", "event_id": k, "sample_id": sample, "type": kind, "data": data}
        for k, (sample, kind, data) in enumerate(events)
    ]
    return write_lines(path, [{"spec": spec}, {"final_report": {"accuracy": 0.5}}, *rows])


def test_a_log_of_openais_evals(tmp_path: Path) -> None:
    path = evals_log(
        tmp_path / "run.jsonl",
        [
            ("a", "sampling", {"prompt": "2+2?", "sampled": ["4. Confidence: 95%"]}),
            ("a", "match", {"correct": True, "sampled": "4. Confidence: 95%", "picked": "4"}),
            ("b", "sampling", {"prompt": "3+3?", "sampled": ["7. Confidence: 60%"]}),
            ("b", "match", {"correct": False, "expected": "6", "picked": None}),
            ("c", "match", {"correct": False, "sampled": "I don't know."}),
            ("d", "match", {"correct": False, "picked": None}),
            ("a", "metrics", {"f1": 0.3}),
        ],
    )
    answers = read_answers(path)
    np.testing.assert_array_equal(answers.y_prob, [0.95, 0.6, np.nan])
    assert answers.y_true.tolist() == [1, 0, 0]
    assert answers.cluster.tolist() == numbers(["a", "b", "d"])
    assert (answers.abstained, answers.without_confidence) == (1, 1)
    assert set(answers.groups["model"]) == {"gpt"}
    assert answers.abstained_groups["task"].tolist() == ["sums.dev.v0"]


def test_what_a_log_of_openais_evals_lacks(tmp_path: Path) -> None:
    path = evals_log(tmp_path / "run.jsonl", [("a", "match", {"sampled": "Confidence: 95%"})])
    assert refusal(path).argument == "correct"
    assert refusal(path, probability="tokens").argument == "probability"
    assert refusal(path, form="sum").argument == "form"
    assert refusal(path, question="id").argument == "question"
    assert refusal(evals_log(path, [("", "match", {"correct": True})])).argument == "question"


# -- a document that is one object --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"question_id": 1, "p": 0.9, "correct": True}, "jsonl"),
        ({"id": 1, "confidence": 0.9, "correct": True}, "jsonl"),
        ({"id": 1, "p": 0.9, "correct": True}, None),
        ({"id": 1, "confidence": 0.9, "label": 1}, None),
    ],
)
def test_a_log_is_told_from_rows_by_its_first_line(tmp_path, line, kind):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(line) + "\n")
    assert log_format(path) == kind
