"""The Triton kernels of `calibrant.integrations.torch.fused`; importing this needs Triton."""

# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def add_kernel(
    p_ptr,
    y_ptr,
    group_ptr,
    counts_ptr,
    offsets_ptr,
    scratch_ptr,
    refused_ptr,
    start,
    stop,
    ignored,
    classes,
    counters,
    COPIES: tl.constexpr,
    SLOTS: tl.constexpr,
    OFFSET_BITS: tl.constexpr,
    COUNT_SHIFT: tl.constexpr,
    MODE: tl.constexpr,
    PACKED: tl.constexpr,
    IGNORES: tl.constexpr,
    FLOAT_LABELS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add rows start..stop: valid ones to the tables, the others to `refused`."""
    index = start + tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = index < stop
    p = tl.load(p_ptr + index, mask=live, other=0.5)
    if MODE == 2:
        row = index // classes
        group = index - row * classes
        y = tl.load(y_ptr + row, mask=live, other=0)
        label_ok = (y >= 0) & (y < classes)
        if FLOAT_LABELS:
            label_ok = label_ok & (y == y.to(tl.int64))
        positive = y == group
    else:
        y = tl.load(y_ptr + index, mask=live, other=0)
        positive = y == 1
        label_ok = positive | (y == 0)
        group = index * 0
        if MODE == 1:
            group = tl.load(group_ptr + index, mask=live, other=0)
    if IGNORES:
        padding = live & (y == ignored)
        live = live & (y != ignored)
    valid = live & (p >= 0) & (p <= 1) & label_ok

    fixed = (tl.where(valid, p, 0.0) * 68719476736.0).to(tl.int64)  # 2**36: exact, a shift
    slot = group * SLOTS + 2 * (fixed >> OFFSET_BITS) + positive.to(tl.int64)
    offset = fixed & ((1 << OFFSET_BITS) - 1)

    if MODE == 0:
        # Many rows of real models stand at exactly 0 or 1: one atomic per block and label for each.
        at_one = valid & (p == 1)
        at_zero = valid & (p == 0)
        ones = tl.sum(((at_one & positive).to(tl.int32) << 16) + at_one.to(tl.int32))
        zeros = tl.sum(((at_zero & positive).to(tl.int32) << 16) + at_zero.to(tl.int32))
        if ones > 0:
            events = ones >> 16
            tl.atomic_add(counts_ptr + SLOTS - 1, events.to(tl.int64), sem="relaxed")
            tl.atomic_add(
                counts_ptr + SLOTS - 2, ((ones & 65535) - events).to(tl.int64), sem="relaxed"
            )
        if zeros > 0:
            events = zeros >> 16
            tl.atomic_add(counts_ptr + 1, events.to(tl.int64), sem="relaxed")
            tl.atomic_add(counts_ptr, ((zeros & 65535) - events).to(tl.int64), sem="relaxed")
        scattered = valid & (p != 1) & (p != 0)
    else:
        scattered = valid

    if PACKED:
        word = offset + (tl.full([BLOCK], 1, tl.int64) << COUNT_SHIFT)
        own = scratch_ptr + (tl.program_id(0) % COPIES).to(tl.int64) * counters
        tl.atomic_add(own + slot, word, mask=scattered, sem="relaxed")
    else:
        one = tl.full([BLOCK], 1, tl.int64)
        tl.atomic_add(counts_ptr + slot, one, mask=scattered, sem="relaxed")
        tl.atomic_add(offsets_ptr + slot, offset, mask=scattered & (offset > 0), sem="relaxed")

    broken = live & (valid == 0)
    if tl.sum(broken.to(tl.int32)) > 0:
        missing = broken & (p != p)
        outside = broken & (p == p) & ((p < 0) | (p > 1))
        rest = broken & (p >= 0) & (p <= 1)
        if FLOAT_LABELS:  # noqa: SIM108 - decided when the kernel is compiled
            unlabelled = rest & (y != y)
        else:
            unlabelled = rest & (rest == 0)
        wrong = rest & (unlabelled == 0)
        tl.atomic_add(refused_ptr, tl.sum(missing.to(tl.int64)), sem="relaxed")
        tl.atomic_add(refused_ptr + 1, tl.sum(outside.to(tl.int64)), sem="relaxed")
        tl.atomic_add(refused_ptr + 2, tl.sum(unlabelled.to(tl.int64)), sem="relaxed")
        tl.atomic_add(refused_ptr + 3, tl.sum(wrong.to(tl.int64)), sem="relaxed")
    if IGNORES:
        skipped = tl.sum(padding.to(tl.int64))
        if skipped > 0:
            tl.atomic_add(refused_ptr + 6, skipped, sem="relaxed")


@triton.jit
def unpack_kernel(
    scratch_ptr,
    counts_ptr,
    offsets_ptr,
    total,
    COPIES: tl.constexpr,
    COUNT_SHIFT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Move what the scratch tables hold into counts and offsets, and clear them."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = index < total
    count = tl.zeros([BLOCK], tl.int64)
    offset = tl.zeros([BLOCK], tl.int64)
    for copy in range(COPIES):
        place = scratch_ptr + copy * total.to(tl.int64) + index
        word = tl.load(place, mask=live, other=0)
        # The count may reach the sign bit: shift as unsigned.
        count += (word.to(tl.uint64) >> COUNT_SHIFT).to(tl.int64)
        offset += word & ((1 << COUNT_SHIFT) - 1)
        tl.store(place, tl.zeros([BLOCK], tl.int64), mask=live & (word != 0))
    full = live & (count != 0)
    tl.store(counts_ptr + index, tl.load(counts_ptr + index, mask=full, other=0) + count, mask=full)
    tl.store(
        offsets_ptr + index, tl.load(offsets_ptr + index, mask=full, other=0) + offset, mask=full
    )


@triton.jit
def integrate_kernel(r_ptr, parts_ptr, mesh, stride, BLOCKS: tl.constexpr, BLOCK: tl.constexpr):
    """Each block's share of the integral of |r| and of the sum of |r'| over its zeros."""
    block = tl.program_id(0)
    table = tl.program_id(1).to(tl.int64)
    at = block * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(r_ptr + table * stride + at, mask=at < mesh, other=0.0)
    right = tl.load(r_ptr + table * stride + at + 1, mask=at < mesh, other=0.0)
    crossing = (left > 0.0) != (right > 0.0)
    apart = tl.where(crossing, tl.abs(left - right), 0.0)
    triangles = tl.where(crossing, left * right / tl.where(crossing, apart, 1.0), 0.0)
    whole = 0.5 * (tl.abs(left) + tl.abs(right)) + triangles + apart / 6.0
    parts = parts_ptr + (table * BLOCKS + block) * 2
    tl.store(parts, tl.sum(whole))
    tl.store(parts + 1, tl.sum(apart))


@triton.jit
def step_kernel(
    parts_ptr, state_ptr, mesh, BLOCKS: tl.constexpr, PADDED: tl.constexpr, TINY: tl.constexpr
):
    """One of Newton's steps: the state is bandwidth, low and high end, bandwidth before, smECE there."""
    table = tl.program_id(0).to(tl.int64)
    block = tl.arange(0, PADDED)
    parts = parts_ptr + (table * BLOCKS + block) * 2
    value = tl.sum(tl.load(parts, mask=block < BLOCKS, other=0.0))
    slopes = tl.sum(tl.load(parts + 1, mask=block < BLOCKS, other=0.0))
    state = state_ptr + table * 5
    sigma = tl.load(state)
    low = tl.maximum(tl.load(state + 1), tl.minimum(value, sigma))
    high = tl.minimum(tl.load(state + 2), tl.maximum(value, sigma))
    ratio = tl.maximum(value, TINY) / sigma
    cells = mesh.to(tl.float64)
    steepness = ratio + 2.0 * cells * cells * slopes * sigma
    following = sigma * tl.exp(tl.log(ratio) * ratio / steepness)
    tl.store(state, tl.minimum(tl.maximum(following, low), high))
    tl.store(state + 1, low)
    tl.store(state + 2, high)
    tl.store(state + 3, sigma)
    tl.store(state + 4, value)
