"""The same as in plain tensor operations, on CUDA, in few kernels.

Rows into tables: each row is read once, and touches one counter once. It adds one machine word, with the
count in its high bits and the offset in its low bits, to a scratch table that a second kernel unpacks
before either half can overflow. Where predictions take few values, all rows queue for few counters: many
rows have several scratch tables, one for each of as many neighbouring blocks, and rows at exactly 0 or 1
are summed inside each block first.

Steps to the fixed point: one kernel reads the smoothed residual once, another decides where to go next.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from calibrant.data.cell_sums import FRACTION_BITS

if TYPE_CHECKING:
    from calibrant.integrations.torch.tables import Rows

__all__ = ["fused_add", "fused_step", "is_available"]

BLOCK = 1024
TINY = 1e-300
MOST_COPIES = 32
ROWS_PER_COUNTER = 2
"""Another scratch table for each time that there are so many rows for each of its counters."""
PLAIN, GROUPED, CLASSWISE = 0, 1, 2


@cache
def is_available() -> bool:
    """Whether Triton can compile for this GPU."""
    if importlib.util.find_spec("triton") is None:
        return False
    return bool(torch.cuda.get_device_capability()[0] >= 7)


def fused_add(
    counts: torch.Tensor, offsets: torch.Tensor, refused: torch.Tensor, rows: Rows, nodes: int
) -> None:
    """As `calibrant.integrations.torch.tables.add_rows`, for contiguous tables on CUDA."""
    add, unpack, *_ = _kernels()
    offset_bits = FRACTION_BITS - (nodes.bit_length() - 1)
    carry_bits = (64 - offset_bits) // 2
    p, y = rows.p.contiguous(), rows.y.contiguous()
    y = y.view(torch.uint8) if y.dtype == torch.bool else y
    mode = CLASSWISE if rows.classes > 1 else PLAIN if rows.group is None else GROUPED
    group = rows.group.contiguous() if rows.group is not None else y
    packed = p.numel() > counts.numel()
    copies, chunk, scratch = 1, p.numel(), counts
    if packed:
        copies = _copies(p.numel(), counts.numel())
        blocks = (
            ((1 << carry_bits) - 1) * rows.classes // BLOCK
        )  # of which one counter has room for all
        chunk = copies * blocks * BLOCK
        scratch = torch.zeros(copies * counts.numel(), dtype=counts.dtype, device=counts.device)
    with torch.cuda.device(p.device):
        for start in range(0, p.numel(), chunk):
            stop = min(start + chunk, p.numel())
            add[(-(-(stop - start) // BLOCK),)](
                p,
                y,
                group,
                counts,
                offsets,
                scratch,
                refused,
                start,
                stop,
                -1 if rows.ignored is None else rows.ignored,
                rows.classes,
                counts.numel(),
                COPIES=copies,
                SLOTS=counts.shape[1],
                OFFSET_BITS=offset_bits,
                COUNT_SHIFT=offset_bits + carry_bits,
                MODE=mode,
                PACKED=packed,
                IGNORES=rows.ignored is not None,
                FLOAT_LABELS=y.is_floating_point(),
                BLOCK=BLOCK,
            )
            if packed:
                total = counts.numel()
                unpack[(-(-total // BLOCK),)](
                    scratch,
                    counts,
                    offsets,
                    total,
                    COPIES=copies,
                    COUNT_SHIFT=offset_bits + carry_bits,
                    BLOCK=BLOCK,
                )


def _copies(rows: int, counters: int) -> int:
    """A power of two of scratch tables."""
    return min(MOST_COPIES, 1 << max(rows // (ROWS_PER_COUNTER * counters), 1).bit_length() - 1)


def fused_step(r: torch.Tensor, state: torch.Tensor, mesh: int) -> torch.Tensor:
    """As `calibrant.integrations.torch.solve.newton_step`, in place; sums in the same order every time."""
    *_, integrate, step = _kernels()
    tables, blocks = len(r), -(-mesh // BLOCK)
    parts = torch.empty((tables, blocks, 2), dtype=torch.float64, device=r.device)
    padded = 1 << (blocks - 1).bit_length()
    with torch.cuda.device(r.device):
        integrate[(blocks, tables)](r, parts, mesh, r.stride(0), BLOCKS=blocks, BLOCK=BLOCK)
        step[(tables,)](parts, state, mesh, BLOCKS=blocks, PADDED=padded, TINY=TINY)
    return state


@cache
def _kernels() -> tuple[Any, Any, Any, Any]:
    from calibrant.integrations.torch import kernels

    return (
        kernels.add_kernel,
        kernels.unpack_kernel,
        kernels.integrate_kernel,
        kernels.step_kernel,
    )
