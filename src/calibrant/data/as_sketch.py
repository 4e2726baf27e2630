"""What functions take that take arrays or a Sketch."""

from __future__ import annotations

from typing import Any, Unpack

from calibrant.data.cell_sums import DEFAULT_NODES
from calibrant.data.input_forms import InputOptions
from calibrant.data.named_scales import as_scale
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch
from calibrant.errors import Code, InputError, Option

__all__ = ["as_sketch", "require_alone"]


def as_sketch(
    first: Any,
    y_prob: Any = None,
    *,
    nodes: int = DEFAULT_NODES,
    scale: str | Scale | None = None,
    **options: Unpack[InputOptions],
) -> Sketch:
    """A Sketch as it is, or the sketch of `(y_true, y_prob)`.

    For functions that take either. With a Sketch, everything that describes rows is refused: it has
    been settled when the sketch was made.
    """
    if not isinstance(first, Sketch):
        chosen = PROBABILITY if scale is None else scale
        return Sketch.from_arrays(first, y_prob, nodes=nodes, scale=chosen, **options)
    require_alone(first, y_prob, options)
    if scale is not None and as_scale(scale) != first.scale:
        raise InputError(
            "must be that of the sketch",
            argument="scale",
            seen=as_scale(scale).name,
            saying="it was made on {own}, and cannot be read on {}",
            cure="Build it again with {option}.",
            own=repr(first.scale.name),
            option=Option("scale", ...),
        )
    if first.n == 0 or (first.weighted and not first.total_weight > 0.0):
        raise InputError(
            "the sketch must not be empty",
            seen=first.n,
            saying="its {} rows have no weight" if first.n else "it has {} rows",
            cure="Add rows with {update} first.",
            update=Code("Sketch.update"),
        )
    return first


def require_alone(first: Any, y_prob: Any, options: InputOptions) -> None:
    """Refuse what describes rows beside something that holds them already."""
    rows = {"y_prob": y_prob, **options}
    beside = [name for name, value in rows.items() if value is not None]
    if beside:
        kind = type(first).__name__
        raise InputError(
            "cannot be passed beside {article} {kind}, which holds predictions, outcomes and weights "
            "already",
            argument=beside[0],
            cure="Leave out {options}.",
            article="an" if kind[0] in "AEIOU" else "a",
            kind=kind,
            options=tuple(map(Option, beside)),
        )
