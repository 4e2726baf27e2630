"""The torch metrics: the bits of NumPy, torchmetrics' manners, nothing compiled, two processes."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]
torch = pytest.importorskip("torch", reason="torch could not be started: it is not installed")
torchmetrics = pytest.importorskip("torchmetrics")

from tests.refusals import refused  # noqa: E402

from calibrant.integrations import torch as metrics  # noqa: E402

ROOT = Path(__file__).parents[2]


def rows(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.3, 0.3, n)
    p[: n // 10] = 1.0
    p[n // 10 : n // 5] = 0.0
    p[-1] = -0.0
    return p, (rng.random(n) < p).astype(np.int64)


def probabilities(n=3000, classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, classes, generator=generator, dtype=torch.float64)
    logits[:30, 2] = 1000.0
    labels = torch.randint(0, classes, (n,), generator=generator)
    return logits.softmax(1), labels


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("labels", ["int64", "uint8", "bool", "float32"])
def test_binary_tables_hold_the_bits_of_numpy(dtype, labels):
    p, y = rows()
    preds = torch.tensor(p).to(getattr(torch, dtype))
    metric = metrics.BinarySmoothECE()
    for piece in range(0, p.size, 999):
        stop = piece + 999
        metric.update(preds[piece:stop], torch.tensor(y[piece:stop]).to(getattr(torch, labels)))
    expected = cal.Sketch.from_arrays(y, preds.double().numpy())
    assert metric.sketch() == expected
    assert metric.compute().item() == cal.smooth_ece(expected)


def test_multiclass_tables_hold_the_bits_of_numpy():
    probs, labels = probabilities()
    confidence = metrics.MulticlassSmoothECE(5)
    confidence.update(probs, labels)
    expected = cal.Sketch.from_rows(cal.confidence(labels.numpy(), probs.numpy()))
    assert confidence.sketches()[0] == expected
    for kind, reference in (("classwise", cal.classwise), ("top_label", cal.top_label)):
        metric = metrics.MulticlassSmoothECE(5, kind, nodes=1024)
        metric.update(probs, labels)
        expected = reference(labels.numpy(), probs.numpy(), nodes=1024)
        assert dict(metric.sketches_by_class()) == dict(expected)
        alone = metrics.MulticlassSmoothECE(5, kind, nodes=1024, average="none")
        alone.update(probs, labels)
        values = alone.compute()
        assert values.shape == (5,)
        weight = torch.tensor([float(s.n) for s in alone.sketches()], dtype=torch.float64)
        assert metric.compute().item() == pytest.approx(
            float((values * weight).sum() / weight.sum())
        )


def test_logits_are_declared_not_guessed():
    logits = torch.linspace(-4, 4, 101, dtype=torch.float64)
    target = (torch.arange(101) % 3 == 0).long()
    declared = metrics.BinarySmoothECE(from_logits=True)
    declared.update(logits, target)
    assert declared.sketch() == cal.Sketch.from_arrays(target, logits.sigmoid())
    guessed = metrics.BinarySmoothECE()
    guessed.update(logits, target)
    with refused(holds=("prediction out of range: ", "from_logits=True")):
        guessed.compute()


def test_bad_rows_are_counted_in_update_and_raise_in_compute():
    nan = float("nan")
    metric = metrics.BinarySmoothECE(ignore_index=-100)
    metric.update(
        torch.tensor([0.5, nan, 1.5, 0.5, 0.5, 0.5]), torch.tensor([1.0, 1, 1, nan, 3, -100])
    )
    message = (
        "missing prediction: 1, prediction out of range: 1, missing label: 1, invalid label: 1"
    )
    with refused(holds=message):
        metric.compute()
    classes = metrics.MulticlassSmoothECE(2, "classwise")
    classes.update(torch.tensor([[0.5, 0.5], [0.9, 0.9], [nan, 0.5]]), torch.tensor([5, 0, 0]))
    with refused(holds=("missing prediction: 2", "out of range: 2", "label: 2")):
        classes.compute()
    empty = metrics.BinarySmoothECE()
    with refused(seen=0, holds="update"):
        empty.compute()


FORWARDS = {
    "binary": (lambda: metrics.BinarySmoothECE(ignore_index=-1), "binary"),
    "diagram": (lambda: metrics.ReliabilityDiagram(ignore_index=-1), "binary"),
    "sync on step": (
        lambda: metrics.BinarySmoothECE(ignore_index=-1, dist_sync_on_step=True),
        "binary",
    ),
    **{
        kind: (lambda kind=kind: metrics.MulticlassSmoothECE(5, kind, ignore_index=-1), "classes")
        for kind in ("confidence", "top_label", "classwise")
    },
}


def states_of(metric):
    return {name: getattr(metric, name).clone() for name in ("counts", "offsets", "refused")}


@pytest.mark.parametrize("case", FORWARDS)
def test_a_batch_that_is_refused_or_has_no_rows_loses_nothing(case):
    make, shape = FORWARDS[case]
    preds, target = probabilities(300) if shape == "classes" else map(torch.tensor, rows(300))
    metric, whole = make(), make()
    metric(preds, target)
    whole.update(preds, target)
    padding = torch.full((3,), -1)
    for p, y in ((preds[:3], padding), (preds[:0], target[:0])):
        value = metric(p, y)
        value = value["smooth_ece"] if isinstance(value, dict) else value
        assert value.isnan().all()
        whole.update(p, y)
        assert str(metric.compute()) == str(whole.compute())
    with refused("preds", holds="(2,)"):
        metric(preds[:3], target[:2])
    assert all(torch.equal(v, states_of(whole)[k]) for k, v in states_of(metric).items())
    with refused("preds", option="ignore_index"):
        metric(2 + preds[:1], target[:1])
    whole.update(2 + preds[:1], target[:1])
    metric.update(preds, target)
    whole.update(preds, target)
    assert all(torch.equal(v, states_of(whole)[k]) for k, v in states_of(metric).items())
    with refused("preds", option="ignore_index"):
        metric.compute()


def test_a_refusal_in_compute_leaves_the_states_of_this_process():
    metric = metrics.BinarySmoothECE(
        distributed_available_fn=lambda: True, dist_sync_fn=lambda state, group: [state, state]
    )
    metric.update(torch.tensor([0.5, 2.0]), torch.tensor([1, 1]))
    for _ in range(2):
        with refused("preds", 2):
            metric.compute()
        assert metric.refused.sum() == metric.counts.sum() == 1


@pytest.mark.parametrize("kind", ["confidence", "top_label", "classwise"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_a_class_is_a_whole_number(kind, dtype):
    probs = torch.tensor([[0.5, 0.3, 0.2]] * 5)
    labels = torch.tensor([0.0, 2.0, 3.0, -1.0, 7.0], dtype=getattr(torch, dtype))
    if dtype != "int64":
        labels = torch.cat([labels, torch.tensor([0.5, 1.9, float("nan"), float("inf")])])
        probs = probs[:1].repeat(9, 1)
    metric = metrics.MulticlassSmoothECE(3, kind, ignore_index=7, nodes=256)
    metric.update(probs, labels)
    each = 3 if kind == "classwise" else 1
    entries = metric.refused.tolist()
    assert int(metric.counts.sum()) == 2 * each
    expected = [0, 0, each, 5 * each] if dtype != "int64" else [0, 0, 0, 2 * each]
    assert entries == [*expected, 0, 0, each]
    with refused(holds="invalid label"):
        metric.compute()


def test_wrong_shapes_and_types_are_refused_at_once():
    metric = metrics.BinarySmoothECE()
    with refused("preds", (3,), holds="(4,)"):
        metric.update(torch.rand(3), torch.zeros(4))
    with refused("preds", holds="torch.int64"):
        metric.update(torch.ones(3, dtype=torch.long), torch.zeros(3))
    for given in (np.array([0.5]), [0.5]):
        with refused("preds"):
            metric.update(given, torch.zeros(1))
        with refused("target"):
            metrics.MulticlassSmoothECE(3).update(torch.rand(1, 3), given)
    with refused("from_logits"):
        metrics.BinarySmoothECE(from_logits="no")
    for ignored in ("a", 1.5, True):
        with refused("ignore_index"):
            metrics.MulticlassSmoothECE(3, ignore_index=ignored)
    for nodes in (1000, 0, 1 << 25, 16.0):
        with refused("nodes", nodes):
            metrics.BinarySmoothECE(nodes=nodes)
        with refused("nodes", nodes):
            metrics.MulticlassSmoothECE(3, nodes=nodes)
    with refused("preds", (4, 2), holds="3"):
        metrics.MulticlassSmoothECE(3).update(torch.rand(4, 2), torch.zeros(4))


def test_torchmetrics_manners(tmp_path):
    p, y = (torch.tensor(column) for column in rows())
    whole = metrics.BinarySmoothECE()
    whole.update(p, y)
    collection = torchmetrics.MetricCollection(
        {"ece": metrics.BinarySmoothECE(), "curve": metrics.ReliabilityDiagram()}
    )
    batches = [(p[:2000], y[:2000]), (p[2000:], y[2000:])]
    for preds, target in batches:
        alone = cal.smooth_ece(cal.Sketch.from_arrays(target, preds))
        assert collection(preds, target)["ece"].item() == alone
    result = collection.compute()
    assert result["ece"] == result["smooth_ece"] == whole.compute()
    left, right = metrics.BinarySmoothECE(), metrics.BinarySmoothECE()
    left.update(*batches[0])
    right.update(*batches[1])
    left.merge_state(right)
    assert left.sketch() == whole.sketch()
    half = metrics.BinarySmoothECE().set_dtype(torch.float16).half()
    half.update(p, y)
    assert half.sketch() == whole.sketch()
    assert half.counts.dtype == torch.int64
    whole.persistent(True)
    copied = metrics.BinarySmoothECE()
    copied.persistent(True)
    copied.load_state_dict(whole.state_dict())
    assert torch.equal(copied.counts, whole.counts)
    whole.reset()
    assert int(whole.counts.sum()) == 0


def first_and_later_batches():
    """A first batch that all metrics read alike, or that is empty; then one that they do not."""
    p, y = torch.tensor([0.2, 0.9]), torch.tensor([0, 1])
    later = torch.tensor([0.3, 0.7, 0.5]), torch.tensor([0, 1, 7])
    return [[(p, y), later], [(p[:0], y[:0]), (p, y), later]]


@pytest.mark.parametrize("batches", first_and_later_batches())
def test_a_collection_keeps_metrics_apart_that_read_otherwise(batches):
    options = {
        "seven": {"ignore_index": 7},
        "eight": {"ignore_index": 8},
        "again": {"ignore_index": 7},
        "logits": {"ignore_index": 7, "from_logits": True},
    }
    collection = torchmetrics.MetricCollection(
        {name: metrics.BinarySmoothECE(**option) for name, option in options.items()}
    )
    apart = {name: metrics.BinarySmoothECE(**option) for name, option in options.items()}
    for p, y in batches:
        collection.update(p, y)
        for metric in apart.values():
            metric.update(p, y)
    groups = [sorted(group) for group in collection.compute_groups.values()]
    assert ["again", "seven"] in groups
    assert len(groups) == 3
    for name, metric in apart.items():
        assert torch.equal(getattr(collection, name).counts, metric.counts)
        assert torch.equal(getattr(collection, name).refused, metric.refused)


@pytest.mark.parametrize(
    "other", [{"nodes": 256}, {"from_logits": True}, {"ignore_index": 3}], ids=str
)
def test_metrics_of_other_options_do_not_merge(other):
    left, right = metrics.BinarySmoothECE(), metrics.BinarySmoothECE(**other)
    right.update(torch.tensor([0.5]), torch.tensor([1]))
    with refused("incoming_state"):
        left.merge_state(right)
    assert int(left.counts.sum()) == 0


def test_metrics_draw_themselves():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    p, y = (torch.tensor(column) for column in rows(400))
    metric = metrics.BinarySmoothECE()
    metric.update(p, y)
    figure, _ = metric.plot()
    assert figure is not None
    diagram = metrics.ReliabilityDiagram()
    diagram.update(p, y)
    curves = diagram.compute()
    gap = (curves["event_rate"] - curves["prediction"]).abs() * curves["density"]
    area = torch.trapezoid(gap.nan_to_num(), curves["position"])
    assert area.item() == pytest.approx(curves["smooth_ece"].item(), rel=1e-3)
    assert diagram.diagram().n == 400
    assert diagram.plot() is not None


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: metrics.BinarySmoothECE(), "binary"),
        (lambda: metrics.ReliabilityDiagram(), "binary"),
        (lambda: metrics.MulticlassSmoothECE(5), "classes"),
        (lambda: metrics.MulticlassSmoothECE(5, "top_label", nodes=256), "classes"),
        (lambda: metrics.MulticlassSmoothECE(5, "classwise", nodes=256), "classes"),
    ],
)
def test_what_every_metric_of_torchmetrics_does(make, shape):
    """Scripts, pickles, clones, batches in any order, values per batch, resets, hashes, precisions."""
    preds, target = probabilities() if shape == "classes" else map(torch.tensor, rows(3000))
    whole = make()
    torch.jit.script(whole)
    assert whole.state_dict() == {}
    whole.update(preds, target)
    expected = whole.sketches()
    pieces = [(preds[k::4], target[k::4]) for k in range(4)]
    parts = make()
    for piece, (p, y) in enumerate(reversed(pieces)):
        value = parts(p, y)
        parts = pickle.loads(pickle.dumps(parts)) if piece % 2 else copy.deepcopy(parts)
        alone = make()
        alone.update(p, y)
        assert str(value) == str(alone.compute())
    assert parts.sketches() == expected
    assert str(parts.compute()) == str(whole.compute()) == str(whole.compute())
    whole.reset()
    assert int(whole.counts.sum()) == 0
    whole.update(preds.float(), target)
    assert whole.counts.dtype == torch.int64
    assert not whole.is_differentiable
    assert whole.higher_is_better is False


DISTRIBUTED = """
import sys, torch, numpy as np
from calibrant.integrations.torch import BinarySmoothECE, MulticlassSmoothECE
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
data = np.load(sys.argv[1])
p, y = torch.tensor(data["p"])[rank::2], torch.tensor(data["y"])[rank::2]
metric = BinarySmoothECE()
metric.update(p, y)
probs = torch.stack([1 - p, p], 1)
classes = MulticlassSmoothECE(2, "classwise", nodes=256)
classes.update(probs, y)
values = metric.compute().item(), classes.compute().item()
metric.sync()
counts = metric.counts.numpy()
if rank == 0:
    np.savez(sys.argv[2], counts=counts, values=values)
torch.distributed.destroy_process_group()
"""


def test_two_processes_give_the_bits_of_one(tmp_path):
    p, y = rows()
    np.savez(tmp_path / "data.npz", p=p, y=y)
    script = tmp_path / "two.py"
    script.write_text(DISTRIBUTED)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += [str(script), str(tmp_path / "data.npz"), str(tmp_path / "out.npz")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    found = np.load(tmp_path / "out.npz")
    alone = metrics.BinarySmoothECE()
    alone.update(torch.tensor(p), torch.tensor(y))
    assert np.array_equal(found["counts"], alone.counts.numpy())
    assert found["values"][0] == alone.compute().item() == cal.smooth_ece(alone.sketch())


def test_the_training_example_runs():
    script = ROOT / "docs" / "examples" / "torch_training.py"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("smooth ECE") == 3


def test_functions_and_the_task_give_the_value_of_the_metric():
    probs, labels = probabilities(300)
    labels[:20] = -100
    for options in ({"kind": "confidence"}, {"kind": "classwise", "average": "none"}):
        metric = metrics.MulticlassSmoothECE(5, ignore_index=-100, **options)
        metric.update(probs, labels)
        value = metric.compute()
        options["ignore_index"] = -100
        assert torch.equal(metrics.multiclass_smooth_ece(probs, labels, 5, **options), value)
        of_task = metrics.smooth_ece(probs, labels, "multiclass", num_classes=5, **options)
        assert torch.equal(of_task, value)
    p, y = (torch.tensor(column) for column in rows(300))
    binary = metrics.SmoothECE(task="binary")
    binary.update(p, y)
    assert metrics.binary_smooth_ece(p, y) == metrics.smooth_ece(p, y, task="binary")
    assert binary.compute() == metrics.binary_smooth_ece(p, y)
    with refused("task", "multilabel"):
        metrics.smooth_ece(p, y, task="multilabel")
