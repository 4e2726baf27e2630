"""A fitted map of class probabilities as Python text, and in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.recalibration.deploy import knots_of, require_name

if TYPE_CHECKING:
    from calibrant.recalibration.multiclass import OneVsRestRecalibrator
    from calibrant.recalibration.scaling import LogitScaling

__all__ = ["explain_scaling", "one_vs_rest_to_python", "scaling_to_python"]

MAY_CHANGE = "the most likely class may change"
SOFTMAX = (
    "    top = max(z)\n    e = [exp(v - top) for v in z]\n    total = sum(e)\n"
    "    return [v / total for v in e]\n"
)
OF_ONE = (
    "def _mapped(p, knots):\n    if knots is None:\n        return p\n    x, y = knots\n"
    "    k = min(max(bisect_right(x, p), 1), len(x) - 1)\n"
    "    return y[k - 1] + (p - x[k - 1]) / (x[k] - x[k - 1]) * (y[k] - y[k - 1])\n"
)


def explain_scaling(scaling: LogitScaling) -> str:
    """What the map does to logits, in one sentence."""
    state = scaling.state
    if "weights" in state:
        k = int(np.sqrt(state["weights"].size))
        weights = state["weights"].reshape(k, k + 1)
        others = ", lets them act on each other" if getattr(scaling, "matrix", False) else ""
        return (
            f"This {scaling.kind} divides the logits by {1.0 / state['slope']:.3g}, multiplies those of "
            f"the classes by {_range(np.diagonal(weights))}{others} and adds {_range(weights[:, k])}; "
            f"{MAY_CHANGE}."
        )
    if np.ndim(state["slope"]):
        return (
            f"This {scaling.kind} multiplies the logits of the classes by {_range(state['slope'])} and adds "
            f"{_range(state['intercept'])}; {MAY_CHANGE}."
        )
    sure = "less" if state["slope"] < 1.0 else "more"
    return (
        f"This {scaling.kind} divides the logits by {1.0 / state['slope']:.3g}: predictions become {sure} "
        "sure, and the most likely class stays."
    )


def _range(values: Any) -> str:
    return f"{np.min(values):.3g} to {np.max(values):.3g}"


def scaling_to_python(scaling: LogitScaling, name: str, floor: float) -> str:
    """The text of a function of one row; `floor` is the logarithm of a class probability of 0."""
    require_name(name)
    state = scaling.state
    given = "logits" if scaling.from_logits else "probs"
    lines = [f"    s = [max(log(p), {floor!r}) if p > 0.0 else {floor!r} for p in probs]"]
    if scaling.from_logits:
        lines = ["    s = [float(v) for v in logits]"]
    constants = []
    if "weights" in state:
        k = int(np.sqrt(state["weights"].size))
        constants = [f"WEIGHTS = {_nested(state['weights'].reshape(k, k + 1))}"]
        uniform = float(state["uniform"])
        lines += [
            f"    z = [{float(state['slope'])!r} * v for v in s]",
            "    top = max(z)",
            "    e = [exp(v - top) for v in z]",
            "    total = sum(e)",
            f"    x = [log({1.0 - uniform!r} * v / total + {uniform / k!r}) for v in e]",
            "    z = [sum(w * v for w, v in zip(row, x)) + row[-1] for row in WEIGHTS]",
        ]
    elif np.ndim(state["slope"]):
        k = state["slope"].size
        constants = [f"WEIGHTS = {_nested(np.stack([state['slope'], state['intercept']], axis=1))}"]
        lines += ["    z = [a * v + b for (a, b), v in zip(WEIGHTS, s)]"]
    else:
        k = None
        lines += [f"    z = [{float(state['slope'])!r} * v for v in s]"]
    body = "\n".join(lines) + "\n" + SOFTMAX
    return _module(scaling.kind, "from math import exp, log", constants, name, given, k, body)


def one_vs_rest_to_python(made: OneVsRestRecalibrator, name: str, tolerance: float) -> str:
    """The text of a function of one row: each class by the knots of its map, then divided by the sum."""
    require_name(name)
    maps = made.state["maps"]
    knots = [None if one is None else knots_of(one, tolerance) for one in maps]
    listed = ", ".join("None" if pair is None else _nested(np.stack(pair)) for pair in knots)
    body = (
        "    q = [_mapped(p, knots) for p, knots in zip(probs, MAPS)]\n    total = sum(q)\n"
        "    return [v / total for v in q] if total > 0.0 else [1.0 / len(q)] * len(q)\n"
    )
    constants = [f"MAPS = ({listed},)", f"\n\n{OF_ONE.rstrip()}"]
    head = "from bisect import bisect_right"
    return _module(made.kind, head, constants, name, "probs", len(maps), body)


def _module(
    kind: str, head: str, constants: list[str], name: str, given: str, k: int | None, body: str
) -> str:
    what = "logits" if given == "logits" else "class probabilities"
    check = "" if k is None else (
        f"    if len({given}) != {k}:\n"
        f'        raise ValueError(f"must have {k} values; got {{len({given})}}")\n'
    )  # fmt: skip
    above = "\n".join([head, "", *constants]) if constants else head
    return (
        f'"""A {kind} map of class probabilities, made by calibrant; needs Python alone."""\n\n{above}\n\n\n'
        f'def {name}({given}):\n    """The recalibrated class probabilities of one row of {what}."""\n'
        f"{check}{body}"
    )


def _nested(values: Any) -> str:
    rows = ("(" + ", ".join(repr(float(v)) for v in row) + ")" for row in values)
    return "(" + ", ".join(rows) + ")"
