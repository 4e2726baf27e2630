"""A metric without torchmetrics: the same methods on a plain module, for those who have only torch."""

from __future__ import annotations

import copy
from typing import Any

import torch

__all__ = ["Accumulator"]


class Accumulator(torch.nn.Module):  # type: ignore[misc]  # torch is not there when this is checked
    """Tensors that add up over batches, devices and processes.

    Takes the place of `torchmetrics.Metric` where that is not installed, as far as a training loop
    needs it: `update`, `compute`, `reset`, calling it, `merge_state`, `to`, and a sum over the
    processes of `torch.distributed` in `compute`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__()
        if options:
            raise TypeError(f"{', '.join(options)}: these options need torchmetrics")
        self._names: list[str] = []

    def add_state(self, name: str, default: torch.Tensor, dist_reduce_fx: str = "sum") -> None:
        """A tensor that is summed; `dist_reduce_fx` must be "sum"."""
        if dist_reduce_fx != "sum":
            raise ValueError(f'`dist_reduce_fx` must be "sum"; got {dist_reduce_fx!r}.')
        self.register_buffer(name, default, persistent=False)
        self._names.append(name)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add a batch."""
        raise NotImplementedError

    def compute(self) -> Any:
        """The value over everything that was added."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget everything."""
        for name in self._names:
            getattr(self, name).zero_()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch, and give the value of that batch alone."""
        alone = copy.deepcopy(self)
        alone.reset()
        alone.update(*args, **kwargs)
        self.merge_state(alone)
        return alone.compute()

    def merge_state(self, incoming: Accumulator) -> None:
        """Add what another one has gathered."""
        for name in self._names:
            getattr(self, name).add_(getattr(incoming, name))

    def summed_over_processes(self) -> dict[str, torch.Tensor]:
        """The tensors, summed over all processes where there are several."""
        states = {name: getattr(self, name) for name in self._names}
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            states = {name: state.clone() for name, state in states.items()}
            for state in states.values():
                torch.distributed.all_reduce(state)
        return states
