"""Calibration during training: a metric beside the loss, in the manner of Lightning.

Run it with `python docs/examples/torch_training.py`; on several processes with
`torchrun --nproc-per-node 2 docs/examples/torch_training.py`.
"""

from __future__ import annotations

import os

import torch

from calibrant.integrations.torch import BinarySmoothECE, smooth_ece_loss


class Classifier(torch.nn.Module):
    """The hooks of a LightningModule; with Lightning installed, inherit from that instead."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )
        self.calibration = BinarySmoothECE(from_logits=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x).squeeze(1)

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = batch
        logits = self(x)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, y)
        return loss + 0.2 * smooth_ece_loss(logits, y, bandwidth=0.05, from_logits=True)

    def validation_step(self, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        x, y = batch
        self.calibration.update(self(x), y)

    def on_validation_epoch_end(self) -> float:
        value = self.calibration.compute().item()  # summed over all processes
        self.calibration.reset()
        return value


def batches(seed: int, many: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(many):
        x = torch.randn(256, 8, generator=generator)
        chance = torch.sigmoid(2 * x[:, 0] - x[:, 1])
        found.append((x, (torch.rand(256, generator=generator) < chance).float()))
    return found


def main() -> None:
    if "RANK" in os.environ:
        torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    rank = int(os.environ.get("RANK", 0))
    for epoch in range(3):
        for batch in batches(epoch, 20):
            optimizer.zero_grad()
            model.training_step(batch).backward()
            optimizer.step()
        with torch.no_grad():
            for batch in batches(1000 + rank, 8):
                model.validation_step(batch)
        value = model.on_validation_epoch_end()
        if rank == 0:
            print(f"epoch {epoch}: smooth ECE {value:.4f}")
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
