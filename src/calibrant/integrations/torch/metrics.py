"""Calibration as torch metrics: integer tables of constant size that add up over batches and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch

from calibrant._arguments import require_choice, require_count
from calibrant.data.rows import REASONS
from calibrant.integrations.torch.reading import binary_rows, class_rows
from calibrant.integrations.torch.sketch_metric import SketchMetric
from calibrant.integrations.torch.tables import Rows, class_outcome

if TYPE_CHECKING:
    from calibrant.data.sketch import Sketch
    from calibrant.data.sketches import Sketches

__all__ = ["BinarySmoothECE", "MulticlassSmoothECE", "ReliabilityDiagram"]

DEFAULT_NODES = 1 << 16
CLASSWISE_NODES = 1 << 12
Kind = Literal["confidence", "top_label", "classwise"]


class BinarySmoothECE(SketchMetric):
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
        Of `torchmetrics.Metric`, where that is installed.

    Examples
    --------
    >>> import torch
    >>> metric = BinarySmoothECE()
    >>> metric.update(torch.tensor([0.2, 0.9, 0.6]), torch.tensor([0, 1, 1]))
    >>> round(metric.compute().item(), 3)
    0.183
    """

    plot_upper_bound = 1.0

    def __init__(
        self,
        nodes: int = DEFAULT_NODES,
        *,
        from_logits: bool = False,
        ignore_index: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            tables=1,
            nodes=nodes,
            kind="binary",
            from_logits=from_logits,
            ignore_index=ignore_index,
            **options,
        )

    def update(self, preds: torch.Tensor, target: torch.Tensor) -> None:
        """Add a batch: predictions and targets of one shape."""
        self._add(binary_rows(preds, target, self.from_logits, self.ignore_index))

    def _measured(self) -> Any:
        return self._values()[0][0]

    def sketch(self) -> Sketch:
        """The sketch of everything that was added, for any other measure."""
        return self.sketches()[0]


class MulticlassSmoothECE(SketchMetric):
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

    plot_upper_bound = 1.0
    reasons = tuple(
        "probabilities out of range or not of sum 1" if r == "prediction out of range" else r
        for r in REASONS
    )

    def __init__(
        self,
        num_classes: int,
        kind: Kind = "confidence",
        *,
        average: Literal["mean", "none"] = "mean",
        nodes: int | None = None,
        from_logits: bool = False,
        ignore_index: int | None = None,
        **options: Any,
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

    def update(self, preds: torch.Tensor, target: torch.Tensor) -> None:
        """Add a batch: predictions [n, classes, ...] and class indices [n, ...]."""
        probs, labels = class_rows(preds, target, self.num_classes, self.from_logits)
        if self.kind == "classwise":
            self._add(Rows(probs.reshape(-1), labels, None, self.num_classes, self.ignore_index))
            return
        top, predicted = probs.max(dim=1)
        correct = class_outcome(labels, predicted == labels, self.num_classes)
        if self.ignore_index is not None:
            correct = torch.where(labels == self.ignore_index, -2, correct)
        group = predicted if self.kind == "top_label" else None
        ignored = None if self.ignore_index is None else -2
        self._add(Rows(top, correct, group, 1, ignored))

    def _measured(self) -> torch.Tensor:
        values, rows = self._values()
        if self.kind == "confidence":
            return values[0]
        if self.average == "none":
            return values
        return (values.nan_to_num() * rows).sum() / rows.sum()

    def sketches_by_class(self) -> Sketches:
        """The sketches of the classes that have rows, keyed by class."""
        from calibrant.data.sketches import Sketches

        found = {place: sketch for place, sketch in enumerate(self.sketches()) if sketch.n}
        return Sketches(found, by="class")


class ReliabilityDiagram(BinarySmoothECE):
    """The smooth reliability diagram of probabilities of an event, gathered over a run.

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
        """The diagram, as `calibrant.reliability_diagram` gives it."""
        import calibrant

        return calibrant.reliability_diagram(self.sketch())

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the diagram with matplotlib."""
        return self.diagram().plot(ax=ax)
