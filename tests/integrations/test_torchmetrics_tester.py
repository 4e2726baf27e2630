"""torchmetrics' own tester, where it can be had: it is in its repository, not in its packages.

Set TORCHMETRICS_TESTS to the folder `tests` of a checkout.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import calibrant as cal

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]
torch = pytest.importorskip("torch", reason="torch could not be started: it is not installed")
pytest.importorskip("torchmetrics", reason="torchmetrics could not be started: not installed")

from calibrant.integrations import torch as metrics  # noqa: E402

BATCHES, ROWS, CLASSES = 4, 64, 3


@pytest.fixture(scope="module")
def tester():
    folder = os.environ.get("TORCHMETRICS_TESTS")
    if folder is None:
        pytest.skip("torchmetrics' tester could not be had: TORCHMETRICS_TESTS names no checkout")
    sys.path.insert(0, folder)
    yield pytest.importorskip("unittests._helpers.testers").MetricTester()
    sys.path.remove(folder)


def binary():
    rng = np.random.default_rng(0)
    p = rng.random((BATCHES, ROWS))
    return torch.tensor(p), torch.tensor((rng.random(p.shape) < p).astype(np.int64))


def classes():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(BATCHES, ROWS, CLASSES, generator=generator, dtype=torch.float64)
    return logits.softmax(-1), torch.randint(0, CLASSES, (BATCHES, ROWS), generator=generator)


def curves(preds, target):
    metric = metrics.ReliabilityDiagram()
    metric.update(preds, target)
    return metric.compute()


def class_error(kind):
    def reference(preds, target):
        if kind == "confidence":
            return cal.smooth_ece(cal.confidence(target.numpy(), preds.numpy()))
        parts = getattr(cal, kind)(target.numpy(), preds.numpy(), nodes=256).values()
        return np.average([cal.smooth_ece(s) for s in parts], weights=[s.n for s in parts])

    return reference


CASES = {
    "BinarySmoothECE": (
        binary,
        metrics.BinarySmoothECE,
        {},
        lambda preds, target: cal.smooth_ece(cal.Sketch.from_arrays(target, preds)),
    ),
    "ReliabilityDiagram": (binary, metrics.ReliabilityDiagram, {}, curves),
} | {
    kind: (
        classes,
        metrics.MulticlassSmoothECE,
        {"num_classes": CLASSES, "kind": kind} | ({} if kind == "confidence" else {"nodes": 256}),
        class_error(kind),
    )
    for kind in ("confidence", "top_label", "classwise")
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dist_sync_on_step", [False, True])
def test_the_class_passes(tester, case, dist_sync_on_step):
    data, metric_class, options, reference = CASES[case]
    preds, target = data()
    tester.run_class_metric_test(
        ddp=False,
        preds=preds,
        target=target,
        metric_class=metric_class,
        reference_metric=reference,
        metric_args=options,
        dist_sync_on_step=dist_sync_on_step,
    )


@pytest.mark.parametrize("case", [case for case in CASES if case != "ReliabilityDiagram"])
def test_precision_and_gradients_pass(tester, case):
    data, metric_class, options, _ = CASES[case]
    preds, target = data()
    for dtype in (torch.half, torch.bfloat16, torch.float32):
        tester.run_precision_test_cpu(preds, target, metric_class, metric_args=options, dtype=dtype)
    tester.run_differentiability_test(preds, target, metric_class, metric_args=options)
