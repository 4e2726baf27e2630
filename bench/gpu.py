"""The torch metric in a real training loop: seconds per epoch with it and without it.

Run on a machine with torch, torchmetrics and scikit-learn, from the repository's root:

    python3 -m bench.gpu

A convolutional network learns handwritten digits (shifted and noisy copies of scikit-learn's). Rounds of
epochs without a metric, with ours and with torchmetrics' binned one take turns, and each round reads the
metric at its end, as a validation would.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch.nn import functional
from torchmetrics.classification import MulticlassCalibrationError

from calibrant.integrations.torch import MulticlassSmoothECE

CLASSES = 10


def digits(copies: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Images [n, 1, 32, 32] and labels on the device."""
    images, labels = load_digits(return_X_y=True)
    generator = torch.Generator().manual_seed(0)
    x = torch.tensor(images, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    x = functional.interpolate(x, size=32, mode="bilinear").repeat(copies, 1, 1, 1)
    x += 0.5 * torch.randn(x.shape, generator=generator)
    return x.to(device), torch.tensor(labels).repeat(copies).to(device)


def network(width: int) -> torch.nn.Module:
    """Three convolutions and a linear layer."""
    layers: list[torch.nn.Module] = []
    for before, after in ((1, width), (width, 2 * width), (2 * width, 4 * width)):
        layers += [
            torch.nn.Conv2d(before, after, 3, stride=2, padding=1),
            torch.nn.BatchNorm2d(after),
            torch.nn.ReLU(),
        ]
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(64 * width, CLASSES))


def epoch(
    model: torch.nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor, metric: Any, size: int
) -> float | None:
    """One pass over the rows; the metric sees every batch, and is read at the end."""
    for rows in torch.randperm(len(y), device=y.device).split(size):
        logits = model(x[rows])
        loss = functional.cross_entropy(logits, y[rows])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if metric is not None:
            metric.update(logits.detach().softmax(1), y[rows])
    if metric is None:
        return None
    value = float(metric.compute())
    metric.reset()
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--copies", type=int, default=40, help="copies of the 1,797 digits")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=32, help="channels of the first convolution")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, y = digits(options.copies, device)
    torch.manual_seed(0)
    model = network(options.width).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    metrics = {
        "without a metric": None,
        "with MulticlassSmoothECE": MulticlassSmoothECE(CLASSES).to(device),
        "with torchmetrics' MulticlassCalibrationError": MulticlassCalibrationError(CLASSES).to(
            device
        ),
    }
    seconds: dict[str, list[float]] = {name: [] for name in metrics}
    for turn in range(options.rounds + 1):  # the first round warms up
        for name, metric in metrics.items():
            start = time.perf_counter()
            epoch(model, optimizer, x, y, metric, options.batch)
            if device == "cuda":
                torch.cuda.synchronize()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    where = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    print(f"{len(y):,} rows, batches of {options.batch}; {where}, torch {torch.__version__}")
    base = statistics.median(seconds["without a metric"])
    for name, times in seconds.items():
        median = statistics.median(times)
        print(f"{name:<46} {median:.4f} s per epoch  {100 * (median / base - 1):+.1f}%")


if __name__ == "__main__":
    main()
