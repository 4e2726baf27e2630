"""The same tables on CUDA in one kernel: each row is read once, and touches one counter once.

A row adds one machine word, with the count in its high bits and the offset in its low bits, to a
scratch table that a second kernel unpacks before either half can overflow. Rows at exactly 0 or 1, which
would queue for one counter, are summed inside each block first.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from calibrant.data.cell_sums import FRACTION_BITS

if TYPE_CHECKING:
    from calibrant.integrations.torch.tables import Rows

__all__ = ["fused_add", "is_available"]

BLOCK = 1024
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
    add, unpack = _kernels()
    offset_bits = FRACTION_BITS - (nodes.bit_length() - 1)
    carry_bits = (64 - offset_bits) // 2
    p, y = rows.p.contiguous(), rows.y.contiguous()
    y = y.view(torch.uint8) if y.dtype == torch.bool else y
    mode = CLASSWISE if rows.classes > 1 else PLAIN if rows.group is None else GROUPED
    group = rows.group.contiguous() if rows.group is not None else y
    packed = p.numel() > counts.numel()
    chunk = ((1 << carry_bits) - 1) * rows.classes if packed else p.numel()
    scratch = torch.zeros_like(counts) if packed else counts
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
                    COUNT_SHIFT=offset_bits + carry_bits,
                    BLOCK=BLOCK,
                )


@cache
def _kernels() -> tuple[Any, Any]:
    from calibrant.integrations.torch import kernels

    return kernels.add_kernel, kernels.unpack_kernel
