"""The tools in which language models are evaluated, each run as its users run it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calibrant as cal
from calibrant.integrations.scores import NUMBERS, calibration_scores
from calibrant.io.answers import read_answers

pytestmark = [
    pytest.mark.heavy,
    # What other packages warn of while they are imported is not ours.
    pytest.mark.filterwarnings("ignore"),
]


def installed(module: str) -> Any:
    return pytest.importorskip(module, reason=f"{module} could not be installed")


def rows(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p**1.5).astype(int), p


def test_hugging_face_evaluate_loads_the_module_from_its_path(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    evaluate = installed("evaluate")
    from calibrant.integrations.hugging_face import path

    y, p = rows()
    metric = evaluate.load(path())
    metric.add_batch(predictions=p[:100].tolist(), references=y[:100].tolist())
    metric.add_batch(predictions=p[100:].tolist(), references=y[100:].tolist())
    assert metric.compute() == calibration_scores(y, p)


def test_mlflow_logs_value_floor_and_interval(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = installed("mlflow")
    pandas = installed("pandas")
    from calibrant.integrations.mlflow import smooth_ece_metric

    y, p = rows()
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("calibration")
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            data=pandas.DataFrame({"p": p, "y": y}),
            predictions="p",
            targets="y",
            extra_metrics=[smooth_ece_metric()],
            evaluators="default",
        )
    expected = {f"calibration/{name}": value for name, value in calibration_scores(y, p).items()}
    assert {name: result.metrics[name] for name in expected} == pytest.approx(expected)
    logged = mlflow.get_run(run.info.run_id).data.metrics
    assert {name: logged[name] for name in expected} == pytest.approx(expected)


def test_mlflow_runs_the_evaluator_where_it_is_asked_for(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = installed("mlflow")
    pandas = installed("pandas")
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry

    from calibrant.integrations.mlflow import CalibrationEvaluator

    _model_evaluation_registry.register("calibrant", CalibrationEvaluator)
    y, p = rows()
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("calibration")
    data = pandas.DataFrame({"p": p, "y": y})
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(
            data=data,
            predictions="p",
            targets="y",
            model_type="classifier",
            evaluators=["calibrant"],
            evaluator_config={"calibrant": {"name": "own"}},
        )
    expected = {f"own/{name}": value for name, value in calibration_scores(y, p).items()}
    assert result.metrics == pytest.approx(expected)
    assert mlflow.get_run(run.info.run_id).data.metrics == pytest.approx(expected)


def test_inspect_scores_what_the_model_says_of_itself(tmp_path: Path) -> None:
    inspect_ai = installed("inspect_ai")
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import match

    from calibrant.integrations.inspect import with_confidence

    rng = np.random.default_rng(0)
    outputs = []
    for k in range(120):
        sure = float(rng.choice([0.5, 0.7, 0.9]))
        letter = "A" if rng.random() < sure else "B"
        said = "" if k % 40 == 0 else f"Confidence: {sure:.0%}\n"
        output = ModelOutput.from_content("mockllm/model", f"{said}{letter}")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        outputs.append(output)
    task = inspect_ai.Task(
        dataset=MemoryDataset([Sample(input=f"q{k}", target="A", id=k) for k in range(60)]),
        scorer=with_confidence(match(location="end")),
    )
    (log,) = inspect_ai.eval(
        task,
        model=get_model("mockllm/model", custom_outputs=outputs),
        log_dir=str(tmp_path),
        epochs=2,
        max_samples=1,
        display="none",
    )
    assert log.status == "success", log.error
    metrics = {
        name: metric.value for score in log.results.scores for name, metric in score.metrics.items()
    }
    answers = read_answers(log.location)
    known = ~np.isnan(answers.y_prob)
    expected = calibration_scores(
        answers.y_true[known], answers.y_prob[known], cluster=answers.cluster[known]
    )
    for name in ("smooth_ece", "interval_low", "interval_high"):
        assert metrics[name] == pytest.approx(expected[name])
    for name in ("noise_floor", "p_value"):  # drawn, in another order of the rows
        assert metrics[name] == pytest.approx(expected[name], rel=0.3)
    assert metrics["without_confidence"] == answers.without_confidence == 3
    assert answers.questions == 60


def test_the_harness_aggregates_the_shares_of_the_choices(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    lm_eval = installed("lm_eval")
    datasets = installed("datasets")
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.models.dummy import DummyLM

    from calibrant.integrations.lm_eval import metric_list, process_choices

    rng = np.random.default_rng(0)
    documents = [
        {"q": f"Q{k}", "choices": ["a", "b", "c"], "answer": int(rng.integers(3))}
        for k in range(120)
    ]
    task = ConfigurableTask(
        config={
            "task": "calibrated",
            "custom_dataset": lambda **_: {"test": datasets.Dataset.from_list(documents)},
            "test_split": "test",
            "output_type": "multiple_choice",
            "doc_to_text": "{{q}}",
            "doc_to_choice": "{{choices}}",
            "doc_to_target": "answer",
            "process_results": process_choices("answer"),
            "metric_list": metric_list(),
        }
    )
    found = lm_eval.simple_evaluate(
        model=DummyLM(), tasks=[task], log_samples=True, bootstrap_iters=0
    )
    samples = found["samples"]["calibrated"]
    right, sure = zip(*(sample["smooth_ece"] for sample in samples), strict=True)
    for sample, one in zip(samples, sure, strict=True):
        likelihoods = np.exp([log for log, _ in sample["filtered_resps"]])
        assert one == pytest.approx(likelihoods.max() / likelihoods.sum())
    numbers = {name: found["results"]["calibrated"][f"{name},none"] for name in NUMBERS}
    assert numbers == pytest.approx(calibration_scores(right, sure))
    assert found["results"]["calibrated"]["acc,none"] == pytest.approx(np.mean(right))


@pytest.fixture
def double_precision() -> Iterator[Any]:
    torch = installed("torch")
    torch.set_default_dtype(torch.float64)
    yield torch
    torch.set_default_dtype(torch.float32)


def test_areas_are_those_of_torch_uncertainty(double_precision: Any) -> None:
    torch = double_precision
    spec = importlib.util.find_spec("torch_uncertainty")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("torch-uncertainty could not be installed")
    # Its package imports what these metrics have no need of.
    folder = Path(spec.submodule_search_locations[0]) / "metrics" / "classification"
    module = importlib.util.spec_from_file_location("theirs", folder / "risk_coverage.py")
    theirs = importlib.util.module_from_spec(module)
    module.loader.exec_module(theirs)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, classes = int(rng.integers(20, 2000)), int(rng.integers(2, 8))
        probabilities = rng.dirichlet(np.full(classes, 0.7), n)
        labels = np.array([rng.choice(classes, p=row) for row in probabilities])
        found = cal.selective(cal.confidence(labels, probabilities))
        expected = []
        for metric in (theirs.AURC(), theirs.AUGRC()):
            metric.set_dtype(torch.float64)
            metric.update(torch.tensor(probabilities), torch.tensor(labels))
            expected.append(float(metric.compute()))
        assert [found.aurc_trapezoid, found.augrc_trapezoid] == pytest.approx(expected, abs=1e-9)
