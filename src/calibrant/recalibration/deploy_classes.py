"""A fitted map of class probabilities as Python text, and in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.data.classes import SMALLEST_LOGARITHM, SUM_TOLERANCE
from calibrant.recalibration.deploy import as_module, knots_of

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


def scaling_to_python(scaling: LogitScaling, name: str) -> str:
    """The text of a function of one row."""
    state = scaling.state
    k = scaling._columns(state) or scaling.columns
    constants: list[str] = []
    if "weights" in state:
        k = int(np.sqrt(state["weights"].size))
        constants = [f"WEIGHTS = {_nested(state['weights'].reshape(k, k + 1))}"]
        uniform = float(state["uniform"])
        lines = [
            f"    z = [{float(state['slope'])!r} * v for v in s]",
            "    top = max(z)",
            "    e = [exp(v - top) for v in z]",
            "    total = sum(e)",
            f"    x = [log({1.0 - uniform!r} * v / total + {uniform / k!r}) for v in e]",
            "    z = [sum(w * v for w, v in zip(row, x)) + row[-1] for row in WEIGHTS]",
        ]
    elif np.ndim(state["slope"]):
        constants = [f"WEIGHTS = {_nested(np.stack([state['slope'], state['intercept']], axis=1))}"]
        lines = ["    z = [a * v + b for (a, b), v in zip(WEIGHTS, s)]"]
    else:
        lines = [f"    z = [{float(state['slope'])!r} * v for v in s]"]
    given = _logits(k) if scaling.from_logits else _distribution(k) + _LOGARITHMS
    body = given + "\n".join(lines) + "\n" + SOFTMAX
    called = "logits" if scaling.from_logits else "probs"
    head = "from math import exp, inf, log" if scaling.from_logits else "from math import exp, log"
    return _module(scaling.kind, head, constants, name, called, body)


def one_vs_rest_to_python(made: OneVsRestRecalibrator, name: str, tolerance: float) -> str:
    """The text of a function of one row: each class by the knots of its map, then divided by the sum."""
    maps = made.state["maps"]
    knots = [None if one is None else knots_of(one, tolerance) for one in maps]
    listed = ", ".join("None" if pair is None else _nested(np.stack(pair)) for pair in knots)
    body = _distribution(len(maps)) + (
        "    q = [_mapped(v, knots) for v, knots in zip(p, MAPS)]\n    total = sum(q)\n"
        "    return [v / total for v in q] if total > 0.0 else [1.0 / len(q)] * len(q)\n"
    )
    constants = [f"MAPS = ({listed},)", f"\n\n{OF_ONE.rstrip()}"]
    head = "from bisect import bisect_right"
    return _module(made.kind, head, constants, name, "probs", body)


def _length(called: str, k: int | None) -> str:
    if k is None:
        return ""
    return (
        f"    if len({called}) != {k}:\n"
        f'        raise ValueError(f"must have {k} values; got {{len({called})}}")\n'
    )


def _distribution(k: int | None) -> str:
    """The lines that check a row of probabilities, by the rule of `as_distributions`."""
    return (
        "    p = [float(v) for v in probs]\n"
        + _length("p", k)
        + "    if not (all(v >= 0.0 for v in p) "
        f"and abs(sum(p) - 1.0) <= {SUM_TOLERANCE!r}):\n"
        '        raise ValueError(f"must lie in [0, 1] and sum to 1; got {p!r}")\n'
        "    p = [min(v, 1.0) for v in p]\n"
    )


_LOGARITHMS = (
    f"    least = {SMALLEST_LOGARITHM!r}\n"
    "    s = [max(log(v), least) if v > 0.0 else least for v in p]\n"
)


def _logits(k: int | None) -> str:
    """The lines that check a row of logits, by the rule of `finite_logits`."""
    return (
        "    s = [float(v) for v in logits]\n" + _length("s", k) + "    top = max(s)\n"
        "    if not (all(v < inf for v in s) and top > -inf):\n"
        '        raise ValueError(f"must be finite or -inf, and not -inf alone; got {s!r}")\n'
        f"    least = top + log(sum(exp(v - top) for v in s)) + {SMALLEST_LOGARITHM!r}\n"
        "    s = [v if v > -inf else least for v in s]\n"
    )


def _module(kind: str, head: str, constants: list[str], name: str, given: str, body: str) -> str:
    what = "logits" if given == "logits" else "class probabilities"
    above = "\n".join([head, "", *constants]) if constants else head
    return as_module(
        f'"""A {kind} map of class probabilities, made by calibrant; needs Python alone."""\n\n{above}\n\n\n',
        name,
        f'({given}):\n    """The recalibrated class probabilities of one row of {what}."""\n{body}',
    )


def _nested(values: Any) -> str:
    rows = ("(" + ", ".join(repr(float(v)) for v in row) + ")" for row in values)
    return "(" + ", ".join(rows) + ")"
