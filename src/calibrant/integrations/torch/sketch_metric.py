"""What the metrics share: tables of sums as states, how they are read, and rows that are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from calibrant._optional import find
from calibrant.data.rows import REASONS
from calibrant.errors import Code, InputError, MissingDependency, Option
from calibrant.integrations.torch.accumulator import Accumulator
from calibrant.integrations.torch.solve import smooth_ece_of_tables
from calibrant.integrations.torch.tables import NOT_COUNTED, Rows, add_rows

if TYPE_CHECKING:
    from calibrant.data.sketch import Sketch

__all__ = ["SketchMetric"]

MOST_NODES = 1 << 24
SETTLED = 1e-5
MOST_STEPS = 60
_torchmetrics = find("torchmetrics")
Metric: Any = Accumulator if _torchmetrics is None else _torchmetrics.Metric


class SketchMetric(Metric):  # type: ignore[misc]
    """What the metrics share: the tables, how they are read, and refused rows.

    Rows that break a rule are counted on the device by `update`, which never waits for it, and raised
    by `compute` and by calling the metric; what was gathered before stays. Calling it with a batch that
    has no rows, or none but padding, gives NaN.
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0
    reasons: tuple[str, ...] = tuple(REASONS)

    def __init__(
        self,
        *,
        tables: int,
        nodes: int,
        kind: str,
        from_logits: bool,
        ignore_index: int | None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if not isinstance(nodes, int) or not 2 <= nodes <= MOST_NODES or nodes & (nodes - 1):
            raise InputError(
                "must be a power of two between 2 and {most}",
                argument="nodes",
                seen=nodes,
                cure="Leave it out for the default.",
                most=MOST_NODES,
            )
        if not isinstance(from_logits, bool):
            raise InputError(
                "must be True or False",
                argument="from_logits",
                seen=from_logits,
                cure="Pass True where {preds} holds logits.",
                preds=Option("preds"),
            )
        if ignore_index is not None and (
            not isinstance(ignore_index, int) or isinstance(ignore_index, bool)
        ):
            raise InputError(
                "must be a whole number or None",
                argument="ignore_index",
                seen=ignore_index,
                cure="Pass the target that marks padding, such as -100.",
            )
        self._of_batch = False
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
        """The value over everything that was added."""
        try:
            return self._measured()
        except InputError as refusal:
            if self._of_batch:  # `forward` raises it, once what was gathered is back in its place
                return refusal
            if not isinstance(self, Accumulator) and self._is_synced and self._should_unsync:
                self.unsync()
            raise

    def _measured(self) -> Any:
        """What `compute` gives."""
        raise NotImplementedError

    def _values(self) -> tuple[torch.Tensor, torch.Tensor]:
        """SmoothECE and number of rows of each table; NaN where there are none.

        On a GPU the tables stay where they are, and the host waits once, for what was refused. Elsewhere
        the compiled solver is faster.
        """
        states = self._states()
        if not states["counts"].is_cuda:
            sketches = self._sketches_of({name: state.cpu() for name, state in states.items()})
            values = [_smooth_ece(sketch) for sketch in sketches]
            return self._tensor(values), self._tensor([float(sketch.n) for sketch in sketches])
        tables = states["counts"], states["offsets"], self.nodes
        solved = smooth_ece_of_tables(*tables)
        answers = torch.cat([states["refused"], solved[1:].reshape(-1)]).tolist()
        refused, both = answers[: len(REASONS) + 1], answers[len(REASONS) + 1 :]
        rows, moved = both[: len(both) // 2], both[len(both) // 2 :]
        self._require_rows([int(n) for n in refused], int(sum(rows)))
        if max(moved) > SETTLED:
            solved = smooth_ece_of_tables(*tables, steps=MOST_STEPS)
        return solved[0], solved[1]

    def merge_state(self, incoming_state: Any) -> None:
        """Add what another metric has gathered, one that was made with the same options."""
        if isinstance(incoming_state, SketchMetric):
            mine, theirs = (
                (m._reading, m.nodes, m.counts.shape[0]) for m in (self, incoming_state)
            )
            if mine != theirs:
                raise InputError(
                    "must come from a metric that was made with the same options",
                    argument="incoming_state",
                    seen=theirs,
                    saying="this one has {own}, the other {other}",
                    cure="Make both with the same options.",
                    own=_described(*mine),
                    other=_described(*theirs),
                )
        super().merge_state(incoming_state)

    def set_dtype(self, dst_type: torch.dtype | str) -> SketchMetric:
        """Counts stay integers, whatever the model's precision."""
        return self

    def sketches(self) -> list[Sketch]:
        """A sketch for each table, over everything that was added (and every process, in `compute`)."""
        return self._sketches_of({name: state.cpu() for name, state in self._states().items()})

    def _sketches_of(self, states: dict[str, torch.Tensor]) -> list[Sketch]:
        from calibrant.data.cell_sums import Columns
        from calibrant.data.sketch import Sketch

        counts, offsets = (states[name].numpy() for name in ("counts", "offsets"))
        tables = [
            Columns.from_dense(c.reshape(-1, 2), o.reshape(-1, 2))
            for c, o in zip(counts, offsets, strict=True)
        ]
        self._require_rows(states["refused"].tolist(), sum(table.cells.size for table in tables))
        return [Sketch(table, nodes=self.nodes) for table in tables]

    def _require_rows(self, refused: list[int], rows: int) -> None:
        """Raise where rows broke a rule, or where there are none."""
        broken = {reason: n for reason, n in zip(self.reasons, refused, strict=False) if n}
        if broken:
            logits = "If the predictions are logits, construct the metric with {from_logits}."
            padding = "For padding there is {ignore}."
            raise InputError(
                "must lie in [0, 1] and sum to 1 over classes, and {target} must hold classes",
                argument="preds",
                seen=sum(broken.values()),
                saying="{} entries broke this ({reasons})",
                cure=[padding] if self.from_logits else [logits, padding],
                reasons=", ".join(f"{reason}: {n}" for reason, n in broken.items()),
                from_logits=Option("from_logits", True),
                ignore=Option("ignore_index"),
                target=Option("target"),
            )
        if not self._of_batch and not rows:
            raise InputError(
                "a metric needs rows to compute",
                seen=0,
                saying="it was given {} ({ignored} were ignored)",
                cure="Call {update} first.",
                ignored=refused[NOT_COUNTED],
                update=Code("update(preds, target)"),
            )

    def _states(self) -> dict[str, torch.Tensor]:
        if isinstance(self, Accumulator):
            states = self.summed_over_processes()
        else:  # torchmetrics has summed them already
            states = {name: getattr(self, name) for name in ("counts", "offsets", "refused")}
        return states

    def _add(self, rows: Rows) -> None:
        add_rows(self.counts, self.offsets, self.refused, rows, self.nodes)

    def _tensor(self, values: Any) -> torch.Tensor:
        """Floats where the tables are, as precise as can be there."""
        precise = torch.float32 if self.counts.device.type == "mps" else torch.float64
        return torch.tensor(values, dtype=precise, device=self.counts.device)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the value, or the values of several steps, as torchmetrics does."""
        if _torchmetrics is None:
            raise MissingDependency(
                "the plot of a single value needs torchmetrics, which is not installed",
                cure="Install it with {command}.",
                command="`pip install torchmetrics`",
            )
        return self._plot(val, ax)


def _described(reading: str, nodes: int, tables: int) -> str:
    return f"{reading.replace('_', ' ')}, {nodes} nodes, {tables} tables"


def _smooth_ece(sketch: Sketch) -> float:
    """The SmoothECE, or NaN where there are no rows."""
    from calibrant.measures.smooth_ece import smooth_ece

    return smooth_ece(sketch) if sketch.n else float("nan")
