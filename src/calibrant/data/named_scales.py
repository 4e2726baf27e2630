"""Scales by name, for a base rate, and for a proper loss."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from calibrant.data.scales import MAPS, PROBABILITY, Logistic, Logit, Map, Scale
from calibrant.errors import InputError, Option, TypeName

__all__ = ["as_scale", "loss_scale", "name_for_file", "relative_scale"]


def as_scale(scale: str | Scale, *, base_rate: float | None = None) -> Scale:
    """The scale of that name, or the scale itself; "relative" is made for this base rate.

    Examples
    --------
    >>> as_scale("probability").length
    1.0
    >>> as_scale("relative", base_rate=0.002)
    Scale('relative:0.002')
    """
    if isinstance(scale, Scale):
        return scale
    if isinstance(scale, str):
        relative = scale == "relative" and base_rate is not None
        return relative_scale(base_rate) if relative else _named(scale)  # type: ignore[arg-type]
    raise InputError(
        "must be a name or a Scale",
        argument="scale",
        seen=TypeName.of(scale),
        cure="Pass a name such as probability or logit.",
    )


@cache
def _named(name: str) -> Scale:
    if name == PROBABILITY.name:
        return PROBABILITY
    if name in MAPS:
        return Scale(*MAPS[name], name=name)
    kind, _, rate = name.partition(":")
    if kind == "relative" and rate:
        try:
            return relative_scale(float(rate))
        except ValueError as error:
            raise InputError(
                "needs a base rate between 0 and 1, as in relative:0.002",
                argument="scale",
                seen=name,
                cure="Write the rate of events after the colon.",
            ) from error
    if kind == "relative":
        raise InputError(
            "needs the base rate",
            argument="scale",
            seen=name,
            cure='Give the rate in the name, as in "relative:0.002".',
        )
    raise InputError(
        "must be a Scale, or the name of one: {names}, relative:RATE",
        argument="scale",
        seen=name,
        names=", ".join(MAPS),
        cure="Leave it out for the probability scale.",
    )


def name_for_file(scale: Scale, what: str, cure: str) -> str:
    """The name under which a file holds the scale of `what`, refused where it could not be read again.

    Examples
    --------
    >>> name_for_file(as_scale("logit"), "a sketch", "")
    'logit'
    """
    try:
        known = as_scale(scale.name) == scale
    except InputError:
        known = False
    if not known:
        raise InputError(
            "must be one that calibrant knows by name, to write {what} to a file",
            argument="scale",
            seen=scale.name,
            saying="{} is your own",
            cure=cure,
            what=what,
        )
    return scale.name


def relative_scale(base_rate: float) -> Scale:
    """π(1-π) · logit with π the base rate: a scale whose errors read as those of a rare event.

    Near the base rate one unit of it is one unit of probability, so that an error of 0.001 means
    the same as on the probability scale where events of rate 0.002 live, and far less near ½.

    Examples
    --------
    >>> relative_scale(0.002).length < 2
    True
    """
    if not isinstance(base_rate, float | int | np.number) or not 0.0 < base_rate < 1.0:
        raise InputError(
            "must lie strictly between 0 and 1",
            argument="base_rate",
            seen=base_rate,
            cure="Pass the share of events, such as 0.002.",
        )
    rate = float(base_rate)
    factor = rate * (1.0 - rate)
    return Scale(
        Logit(factor),
        Logistic(factor),
        name=f"relative:{rate!r}",
        widest=min(1.0, 40.0 * factor),
    )


def loss_scale(
    loss: Literal["squared", "log", "exponential"] | Map, inverse: Map | None = None
) -> Scale:
    """The scale of a proper loss: h = φ', the slope of its convex potential φ.

    Parameters
    ----------
    loss : {"squared", "log", "exponential"} or callable
        A loss by name, or φ' itself.
    inverse : callable
        The inverse of φ', where that was given.

    Examples
    --------
    >>> loss_scale("log")
    Scale('logit')
    """
    if callable(loss):
        if inverse is None:
            raise InputError(
                "is missing: a loss given by φ' needs the inverse of φ' too",
                argument="inverse",
                cure="Pass the function that undoes {loss}.",
                loss=Option("loss"),
            )
        return Scale(loss, inverse, name="loss")
    names = {"squared": "unreflected", "log": "logit", "exponential": "boosting"}
    if loss not in names:
        raise InputError(
            "must be {names}, or φ' itself",
            argument="loss",
            seen=loss,
            cure="For φ' itself, pass the function and its {inverse}.",
            names=", ".join(f'"{name}"' for name in names),
            inverse=Option("inverse"),
        )
    return as_scale(names[loss])
