"""A SmoothECE to train against: differentiable in the predictions, at a bandwidth that is given."""

from __future__ import annotations

import math

import torch

from calibrant.errors import InputError
from calibrant.integrations.torch.tables import require_same_shape

SMALLEST_BANDWIDTH = 1e-3
MESH_PER_BANDWIDTH = 16
LAST_DAMPING = 2.8
"""Waves above 2.8 / bandwidth are damped below 1e-16 and left out."""


def smooth_ece_loss(
    preds: torch.Tensor,
    target: torch.Tensor,
    bandwidth: float = 0.05,
    *,
    from_logits: bool = False,
) -> torch.Tensor:
    """smECE at a fixed bandwidth, as a scalar through which gradients flow.

    Add it, times a small factor, to a proper loss: alone it is least where the predictions say nothing
    but the base rate.

    Parameters
    ----------
    preds : Tensor
        Probabilities, or log-odds with `from_logits=True`.
    target : Tensor
        Outcomes 0 and 1, or probabilities of them, of the same shape.
    bandwidth : float
        The width of the kernel; at least 0.001.
    from_logits : bool
        Whether `preds` holds log-odds.

    Notes
    -----
    The reflected Gaussian kernel is diagonal in the cosine basis (equation 3 of the paper, with the
    kernel of its section 3.2): with w = (f - y) / n, the smoothed residual is r(t) = c0 + 2 sum_k c_k
    exp(-(k pi sigma)^2 / 2) cos(k pi t) with c_k = sum_i w_i cos(k pi f_i), and smECE is the integral
    of its modulus. The integral is a mean over 16 points per bandwidth, which is within 1e-5 of
    `calibrant.smooth_ece(..., bandwidth=...)`. Memory grows with rows times 2.8 / bandwidth: it is
    meant for batches. Values out of range are an error, so the host waits for the device once.

    Examples
    --------
    >>> import torch
    >>> logits = torch.zeros(4, requires_grad=True)
    >>> loss = smooth_ece_loss(logits, torch.tensor([1.0, 1, 1, 0]), from_logits=True)
    >>> loss.backward()
    >>> round(loss.item(), 4), logits.grad.sign().tolist()
    (0.25, [-1.0, -1.0, -1.0, -1.0])
    """
    require_same_shape(preds, target)
    if preds.numel() == 0:
        raise InputError("`preds` must not be empty; it has 0 entries.")
    if not SMALLEST_BANDWIDTH <= bandwidth < math.inf:
        raise InputError(f"`bandwidth` must be at least {SMALLEST_BANDWIDTH}; got {bandwidth}.")
    p = preds.reshape(-1)
    p = p if p.dtype in (torch.float32, torch.float64) else p.float()
    p = p.sigmoid() if from_logits else p
    y = target.reshape(-1).to(p.dtype)
    _require_probabilities("preds", p, "If they are log-odds, pass `from_logits=True`.")
    _require_probabilities("target", y, "Leave padding out first.")
    residual = (p - y) / p.numel()
    last = max(1, math.ceil(LAST_DAMPING / bandwidth))
    mesh = max(64, math.ceil(MESH_PER_BANDWIDTH / bandwidth))
    waves = math.pi * torch.arange(last + 1, dtype=p.dtype, device=p.device)
    damping = torch.exp(-0.5 * (waves * bandwidth) ** 2)
    damping = torch.where(waves > 0, 2 * damping, damping)
    coefficients = damping * (torch.cos(p.unsqueeze(1) * waves).T @ residual)
    middles = (torch.arange(mesh, dtype=p.dtype, device=p.device) + 0.5) / mesh
    smoothed = torch.cos(middles.unsqueeze(1) * waves) @ coefficients
    return smoothed.abs().mean()


def _require_probabilities(name: str, values: torch.Tensor, hint: str) -> None:
    low, high = (bound.item() for bound in torch.aminmax(values.detach()))
    if not 0 <= low <= high <= 1:
        raise InputError(
            f"`{name}` must lie in [0, 1], and not be NaN; its values run from {low:g} to {high:g}.",
            hint=hint,
        )
