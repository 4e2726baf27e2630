"""Calibration as torch metrics: integer tables of constant size that add up over batches and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import torch

from calibrant._arguments import require_choice, require_count
from calibrant._optional import require
from calibrant.data.rows import REASONS
from calibrant.errors import InputError, invalid
from calibrant.integrations.torch.tables import (
    NOT_COUNTED,
    Batch,
    add_rows,
    binary_rows,
    class_rows,
)

if TYPE_CHECKING:
    from calibrant.data.sketch import Sketch
    from calibrant.data.sketches import Sketches

DEFAULT_NODES = 1 << 16
CLASSWISE_NODES = 1 << 12
MAX_NODES = 1 << 24
GATHERED = 1 << 18
"""Entries of small batches that are counted together: on a GPU, starting an operation costs more than
counting so few. Without it an epoch of `bench.gpu` took 54% longer than without a metric, with it 3 to 8%."""
STATES = frozenset(("counts", "offsets", "refused"))
Kind = Literal["confidence", "top_label", "classwise"]
Average = Literal["mean", "none"]
Task = Literal["binary", "multiclass"]
Metric: Any = require("torchmetrics", caller="calibrant.integrations.torch").Metric


class MetricOptions(TypedDict, total=False):
    """Keywords of `torchmetrics.Metric`."""

    compute_on_cpu: bool
    dist_sync_on_step: bool
    process_group: Any
    dist_sync_fn: Any
    distributed_available_fn: Any
    sync_on_compute: bool
    compute_with_cache: bool


class RowOptions(TypedDict, total=False):
    """Keywords of every metric: cells of the grid, and how a batch is read."""

    nodes: int
    from_logits: bool
    ignore_index: int | None


class ClassOptions(TypedDict, total=False):
    """Keywords of class probabilities."""

    num_classes: int | None
    kind: Kind
    average: Average


class TaskOptions(RowOptions, ClassOptions, MetricOptions, total=False):
    """Keywords of either task's metric."""


class _TableMetric(Metric):  # type: ignore[misc]
    """Tables of sums as states, and how they are read.

    Rows that break a rule are counted on the device by `update`, which never waits for it, and raised
    by `compute` and by calling the metric; what was gathered before stays. Calling it with a batch that
    has no rows, or none but padding, gives NaN.
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0
    plot_upper_bound = 1.0

    def __init__(
        self,
        *,
        tables: int,
        nodes: int,
        kind: str,
        from_logits: bool,
        ignore_index: int | None,
        **options: Unpack[MetricOptions],
    ) -> None:
        super().__init__(**options)
        if not isinstance(nodes, int) or not 2 <= nodes <= MAX_NODES or nodes & (nodes - 1):
            raise invalid("nodes", f"be a power of two between 2 and {MAX_NODES}", nodes)
        if not isinstance(from_logits, bool):
            raise invalid("from_logits", "be True or False", from_logits)
        if ignore_index is not None and type(ignore_index) is not int:
            raise invalid("ignore_index", "be a whole number or None", ignore_index)
        self._of_batch = False
        self._gathered: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._entries = 0
        self._form: Any = None
        self.nodes = nodes
        self.from_logits = from_logits
        self.ignore_index = ignore_index
        for name in ("counts", "offsets"):
            table = torch.zeros((tables, 2 * (nodes + 1)), dtype=torch.int64)
            self.add_state(name, table, dist_reduce_fx="sum")
        refused = torch.zeros(len(REASONS) + 1, dtype=torch.int64)
        self.add_state("refused", refused, dist_reduce_fx="sum")
        # A MetricCollection lets metrics share states that are named alike and equal after the first
        # update. This one is always 0; its name keeps metrics apart that read later batches otherwise.
        read_as = "logits" if from_logits else "probabilities"
        self._reading = f"{kind}_{read_as}_ignoring_{ignore_index}"
        self.add_state(self._reading, torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def __getattribute__(self, name: str) -> Any:
        """States as they are with every batch counted, whoever reads them."""
        if name in STATES and self.__dict__.get("_gathered"):
            self._count_gathered()
        return super().__getattribute__(name)

    def update(self, preds: torch.Tensor, target: torch.Tensor) -> None:
        """Add a batch of predictions and targets.

        A small batch of the same form as the one before is kept until there are enough, so the first of each
        form is checked at once.
        """
        tensors = isinstance(preds, torch.Tensor) and isinstance(target, torch.Tensor)
        form = tensors and [(a.shape[1:], a.dtype, a.device, a.ndim) for a in (preds, target)]
        if (
            not form
            or self._of_batch
            or form != self._form
            or preds.shape[:1] != target.shape[:1]
            or preds.numel() * 2 > GATHERED
        ):
            self._count_gathered()
            self._add(self._rows(preds, target))
            self._form = form
            return
        self._gathered.append((preds.detach().clone(), target.detach().clone()))
        self._entries += preds.numel()
        if self._entries > GATHERED:
            self._count_gathered()

    def _count_gathered(self) -> None:
        batches, self._gathered, self._entries = self._gathered, [], 0
        if batches:
            preds, target = (torch.cat(column) for column in zip(*batches, strict=True))
            self._add(self._rows(preds, target))

    def _rows(self, preds: torch.Tensor, target: torch.Tensor) -> Batch:
        """Rows of a batch, as they are counted."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget everything that was added."""
        self._gathered, self._entries = [], 0
        super().reset()

    @torch.jit.unused  # type: ignore[untyped-decorator]
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch, and give the value of that batch alone: NaN where it has no rows."""
        before = dict(self.__dict__)  # torchmetrics puts states and settings aside for the batch
        self._of_batch = True
        try:
            value = super().forward(*args, **kwargs)
        except BaseException:
            self.__dict__.update(before)
            raise
        self._of_batch = False
        if isinstance(value, InputError):
            self._forward_cache = None
            raise value
        return value

    def compute(self) -> Any:
        """Value over everything that was added."""
        try:
            return self._measured()
        except InputError as refusal:
            if self._of_batch:  # `forward` raises it, once what was gathered is back in its place
                return refusal
            if self._is_synced and self._should_unsync:
                self.unsync()
            raise

    def _measured(self) -> Any:
        """Value that `compute` gives."""
        raise NotImplementedError

    def _values(self) -> tuple[torch.Tensor, torch.Tensor]:
        """SmoothECE and number of rows of each table; NaN where there are none."""
        from calibrant.measures.smooth_ece import smooth_ece as exact

        sketches = self.sketches()
        values = [exact(one) if one.n else float("nan") for one in sketches]
        return self._tensor(values), self._tensor([float(one.n) for one in sketches])

    def merge_state(self, incoming_state: Any) -> None:
        """Add the sums of another metric that was made with the same options."""
        if isinstance(incoming_state, _TableMetric):
            mine, theirs = (
                f"{m._reading.replace('_', ' ')}, {m.nodes} nodes, {m.counts.shape[0]} tables"
                for m in (self, incoming_state)
            )
            if mine != theirs:
                raise InputError(
                    "`incoming_state` must come from a metric that was made with the same options; this one "
                    f"has {mine}, the other {theirs}."
                )
        super().merge_state(incoming_state)

    def set_dtype(self, dst_type: torch.dtype | str) -> _TableMetric:
        """The metric itself: counts stay integers, whatever the model's precision."""
        return self

    def sketches(self) -> list[Sketch]:
        """Sketch of each table, over everything that was added (and every process, in `compute`)."""
        from calibrant.data.cell_sums import sums_of_dense
        from calibrant.data.sketch import Sketch

        tables = [
            sums_of_dense(c.reshape(-1, 2), o.reshape(-1, 2))
            for c, o in zip(self.counts.cpu().numpy(), self.offsets.cpu().numpy(), strict=True)
        ]
        self._require_rows(self.refused.tolist(), sum(table[0].size for table in tables))
        return [Sketch(table, nodes=self.nodes) for table in tables]

    def _require_rows(self, refused: list[int], rows: int) -> None:
        """Raise where rows broke a rule, or where there are none."""
        broken = {reason: n for reason, n in zip(REASONS, refused, strict=False) if n}
        if broken:
            reasons = ", ".join(f"{reason}: {n}" for reason, n in broken.items())
            logits = "If the predictions are logits, pass `from_logits=True`. "
            raise InputError(
                "`preds` must lie in [0, 1] (and sum to 1 over classes), and `target` must hold classes; "
                f"{sum(broken.values())} entries broke this ({reasons}).",
                hint=f"{'' if self.from_logits else logits}For padding there is `ignore_index`.",
            )
        if not self._of_batch and not rows:
            raise InputError(
                f"A metric needs rows to compute; it was given 0 ({refused[NOT_COUNTED]} were ignored).",
                hint="Call `update(preds, target)` first.",
            )

    def _add(self, batch: Batch) -> None:
        if batch.p.numel():
            add_rows(self.counts, self.offsets, self.refused, batch, self.nodes)

    def _tensor(self, values: Any) -> torch.Tensor:
        """Floats where the tables are, as precise as can be there."""
        precise = torch.float32 if self.counts.device.type == "mps" else torch.float64
        return torch.tensor(values, dtype=precise, device=self.counts.device)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the value, or the values of several steps, as torchmetrics does."""
        return self._plot(val, ax)


class BinarySmoothECE(_TableMetric):
    """SmoothECE of probabilities of an event.

    Parameters
    ----------
    nodes : int
        Cells of the grid; the state takes 32 bytes for each, 2 MB by default.
    from_logits : bool
        The predictions are log-odds. Nothing is guessed.
    ignore_index : int, optional
        The target of entries that are padding.
    **options
        Of `torchmetrics.Metric`.

    Examples
    --------
    >>> import torch
    >>> metric = BinarySmoothECE()
    >>> metric.update(torch.tensor([0.2, 0.9, 0.6]), torch.tensor([0, 1, 1]))
    >>> round(metric.compute().item(), 3)
    0.183
    """

    def __init__(
        self,
        nodes: int = DEFAULT_NODES,
        *,
        from_logits: bool = False,
        ignore_index: int | None = None,
        **options: Unpack[MetricOptions],
    ) -> None:
        super().__init__(
            tables=1,
            nodes=nodes,
            kind="binary",
            from_logits=from_logits,
            ignore_index=ignore_index,
            **options,
        )

    def _rows(self, preds: torch.Tensor, target: torch.Tensor) -> Batch:
        return binary_rows(preds, target, self.from_logits, self.ignore_index)

    def _measured(self) -> Any:
        return self._values()[0][0]

    def sketch(self) -> Sketch:
        """Sketch of everything that was added, for any other measure."""
        return self.sketches()[0]


class MulticlassSmoothECE(_TableMetric):
    """SmoothECE of class probabilities.

    Parameters
    ----------
    num_classes : int
        Columns of the predictions.
    kind : {"confidence", "top_label", "classwise"}
        The largest probability against "was it right?", over all rows or apart by predicted class; or
        every class against the rest.
    average : {"mean", "none"}
        For `top_label`, the mean weighted by rows; for `classwise`, the plain mean; or one value for each
        class, NaN for those without rows.
    nodes : int, optional
        Cells of the grid: 65536 for one table, 4096 where there is one for each class (131 kB each).
    from_logits, ignore_index, **options
        As for `BinarySmoothECE`.

    Examples
    --------
    >>> import torch
    >>> metric = MulticlassSmoothECE(num_classes=3)
    >>> probs = torch.tensor([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]])
    >>> metric.update(probs, torch.tensor([0, 2]))
    >>> metric.sketches()[0].n
    2
    """

    def __init__(
        self,
        num_classes: int,
        kind: Kind = "confidence",
        *,
        average: Average = "mean",
        nodes: int | None = None,
        from_logits: bool = False,
        ignore_index: int | None = None,
        **options: Unpack[MetricOptions],
    ) -> None:
        require_choice("kind", kind, ("confidence", "top_label", "classwise"))
        require_choice("average", average, ("mean", "none"))
        require_count("num_classes", num_classes, least=2)
        single = kind == "confidence"
        super().__init__(
            tables=1 if single else num_classes,
            nodes=(DEFAULT_NODES if single else CLASSWISE_NODES) if nodes is None else nodes,
            kind=kind,
            from_logits=from_logits,
            ignore_index=ignore_index,
            **options,
        )
        self.num_classes = num_classes
        self.kind = kind
        self.average = average

    def _rows(self, preds: torch.Tensor, target: torch.Tensor) -> Batch:
        settings = self.kind, self.num_classes, self.from_logits, self.ignore_index
        return class_rows(preds, target, *settings)

    def _measured(self) -> torch.Tensor:
        values, rows = self._values()
        if self.kind == "confidence":
            return values[0]
        if self.average == "none":
            return values
        return (values.nan_to_num() * rows).sum() / rows.sum()

    def sketches_by_class(self) -> Sketches:
        """Sketches of the classes that have rows, keyed by class."""
        from calibrant.data.sketches import Sketches

        found = {place: sketch for place, sketch in enumerate(self.sketches()) if sketch.n}
        return Sketches(found, by="class")


class ReliabilityDiagram(BinarySmoothECE):
    """Smooth reliability diagram of probabilities of an event, gathered over a run.

    `compute` gives the curves as tensors, `diagram` the object of `calibrant.reliability_diagram`, and
    `plot` draws it. The parameters are those of `BinarySmoothECE`.

    Examples
    --------
    >>> import torch
    >>> metric = ReliabilityDiagram()
    >>> metric.update(torch.tensor([0.2, 0.9, 0.6]), torch.tensor([0, 1, 1]))
    >>> sorted(metric.compute())
    ['density', 'event_rate', 'position', 'prediction', 'smooth_ece']
    """

    def compute(self) -> dict[str, torch.Tensor]:
        """Event rate and mean prediction, both smoothed, along the predictions, and the density there.

        The SmoothECE is the area between the first two, weighted by the third.
        """
        curves: dict[str, torch.Tensor] = super().compute()
        return curves

    def _measured(self) -> dict[str, torch.Tensor]:
        from calibrant.measures.smooth_ece import smooth_ece_result
        from calibrant.smoothing.curves import smooth_curves

        sketch = self.sketch()
        if not sketch.n:
            names = ("position", "density", "event_rate", "prediction", "smooth_ece")
            return {name: self._tensor(float("nan")) for name in names}
        result = smooth_ece_result(sketch)
        curves = smooth_curves(sketch, result.bandwidth)
        values = {
            "position": curves.position,
            "density": curves.density,
            "event_rate": curves.regression,
            "prediction": curves.smoothed_predictions,
            "smooth_ece": result.value,
        }
        return {name: self._tensor(value) for name, value in values.items()}

    def diagram(self) -> Any:
        """Diagram, as `calibrant.reliability_diagram` gives it."""
        import calibrant

        return calibrant.reliability_diagram(self.sketch())

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the diagram with matplotlib."""
        return self.diagram().plot(ax=ax)


class SmoothECE:
    """SmoothECE for a task: `BinarySmoothECE` or `MulticlassSmoothECE`, as torchmetrics' own classes choose.

    Examples
    --------
    >>> SmoothECE(task="multiclass", num_classes=3).num_classes
    3
    """

    def __new__(cls, task: Task, **options: Unpack[TaskOptions]) -> Any:
        """Metric of the task; `num_classes`, `kind` and `average` are of class probabilities."""
        require_choice("task", task, ("binary", "multiclass"))
        given: Any = {name: value for name, value in options.items() if value is not None}
        if task == "multiclass":
            if "num_classes" not in given:
                raise InputError('`task="multiclass"` needs `num_classes`.', argument="num_classes")
            return MulticlassSmoothECE(**given)
        if given.keys() & ClassOptions.__annotations__.keys():
            raise InputError('`num_classes`, `kind` and `average` are for `task="multiclass"`.')
        return BinarySmoothECE(**given)


def smooth_ece(
    preds: torch.Tensor, target: torch.Tensor, task: Task, **options: Unpack[TaskOptions]
) -> torch.Tensor:
    """SmoothECE of one batch for a task, with the options of that task's metric.

    Examples
    --------
    >>> import torch
    >>> value = smooth_ece(torch.tensor([0.2, 0.9, 0.6]), torch.tensor([0, 1, 1]), task="binary")
    >>> round(value.item(), 3)
    0.183
    """
    return _value(SmoothECE(task, **options), preds, target)


def binary_smooth_ece(
    preds: torch.Tensor, target: torch.Tensor, **options: Unpack[RowOptions]
) -> torch.Tensor:
    """SmoothECE of one batch of probabilities of an event, with the options of `BinarySmoothECE`."""
    return _value(BinarySmoothECE(**options), preds, target)


def multiclass_smooth_ece(
    preds: torch.Tensor,
    target: torch.Tensor,
    num_classes: int,
    kind: Kind = "confidence",
    *,
    average: Average = "mean",
    **options: Unpack[RowOptions],
) -> torch.Tensor:
    """SmoothECE of one batch of class probabilities, with the options of `MulticlassSmoothECE`."""
    metric = MulticlassSmoothECE(num_classes, kind, average=average, **options)
    return _value(metric, preds, target)


def _value(metric: Any, preds: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Value of a metric that sees one batch."""
    metric = metric.to(preds.device)
    metric.update(preds, target)
    value: torch.Tensor = metric.compute()
    return value
