"""A fitted map as text, SQL or Python, so that the repair runs where calibrant is not."""

from __future__ import annotations

import ast
import keyword
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import is_number
from calibrant.data.scales import Scale, as_scale
from calibrant.errors import Code, InputError
from calibrant.io.sql import Expression, piecewise_linear
from calibrant.recalibration.logistic import AN_END, NEAREST_TO_THE_ENDS, expit
from calibrant.recalibration.smooth import SmoothRecalibrator

if TYPE_CHECKING:
    from calibrant.recalibration.learned_map import Recalibrator

__all__ = ["as_module", "knots_of", "places_of", "to_python", "to_sql"]

Floats = NDArray[np.float64]
EVEN_STEPS = 1 << 13
SMALLEST = 1e-9
RELATIVE = 100.0
"""How far off the map may be next to its distance from 0 or 1, in units of the tolerance."""


def to_sql(
    recalibrator: Recalibrator,
    prob: str | Expression,
    dialect: str = "duckdb",
    *,
    tolerance: float = 1e-5,
) -> Expression:
    """The map of a fitted recalibrator as an SQL expression of a column.

    The text is a piecewise-linear map with as few knots as keep it close to `transform`, found by a tree
    of comparisons: it needs no function that a warehouse may lack. What is no prediction (NULL, NaN,
    below 0, above 1) is left as it is, so that a query over it still counts such rows by reason.

    Parameters
    ----------
    recalibrator : Recalibrator
        One that is fitted.
    prob : str or Expression
        The column of the predictions.
    dialect : str
        As for `calibrant.io.sql.query`.
    tolerance : float
        The largest distance from `transform`. Near 0 and 1 the map is also kept within 100 times this
        share, 0.1% by default, of its distance from them; for predictions closer to them than 1e-9,
        that is not promised.

    Examples
    --------
    >>> import duckdb
    >>> from calibrant.recalibration import IsotonicRecalibrator
    >>> steps = IsotonicRecalibrator().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> text = to_sql(steps, "p").text
    >>> duckdb.sql(f"SELECT round({text}, 6) FROM (SELECT 0.25 AS p)").fetchall()
    [(0.5,)]
    """
    x, y = knots_of(recalibrator, tolerance)
    return piecewise_linear(prob, x, y, dialect, beyond="unchanged")


def to_python(
    recalibrator: Recalibrator, name: str = "recalibrate", *, tolerance: float = 1e-5
) -> str:
    """The map of a fitted recalibrator as the text of a Python module that needs nothing else.

    Maps with few parameters are written as their formula, to the last digit; others are straight between as
    few knots as keep them close to `transform`.

    Parameters
    ----------
    recalibrator : Recalibrator
        One that is fitted.
    name : str
        Name of the function, which takes one prediction and gives back one.
    tolerance : float
        As for `to_sql`.

    Examples
    --------
    >>> from calibrant.recalibration import PlattRecalibrator
    >>> platt = PlattRecalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> module = {}
    >>> exec(to_python(platt), module)
    >>> bool(abs(module["recalibrate"](0.4) - platt.transform([0.4])[0]) < 1e-15)
    True
    """
    _require_deployable(recalibrator, tolerance)
    head = f'"""Recalibrates a probability ({recalibrator.kind}). Made by calibrant; needs only Python."""'
    check = (
        "(p):\n"
        '    """The recalibrated probability of p."""\n'
        "    if not 0.0 <= p <= 1.0:\n"
        '        raise ValueError(f"p must lie in [0, 1]; got {p!r}")\n'
    )
    formula = _formula(recalibrator)
    if formula is not None:
        nearest = f"min(max(p, {NEAREST_TO_THE_ENDS!r}), {1.0 - NEAREST_TO_THE_ENDS!r})"
        return as_module(
            f"{head}\n\nfrom math import exp, log, log1p\n\n\n",
            name,
            f"{check}    p = {nearest}\n    low, high = log(p), log1p(-p)\n    z = {formula}\n"
            "    return 1.0 / (1.0 + exp(-z)) if z > 0.0 else exp(z) / (1.0 + exp(z))\n",
        )
    x, y = knots_of(recalibrator, tolerance)
    return as_module(
        f"{head}\n\nfrom bisect import bisect_right\n\nX = {_tuple(x)}\nY = {_tuple(y)}\n\n\n",
        name,
        f"{check}    k = min(max(bisect_right(X, p), 1), len(X) - 1)\n"
        "    share = (p - X[k - 1]) / (X[k] - X[k - 1])\n"
        "    return Y[k - 1] + share * (Y[k] - Y[k - 1])\n",
    )


def as_module(head: str, name: str, function: str) -> str:
    """The text of a module: what stands above a function, and the function from its arguments on.

    Names that Python does not accept are refused, and those that the text itself uses.
    """
    if not (isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)):
        raise InputError(
            "must be a name that Python accepts",
            argument="name",
            seen=name,
            cure="Pass a name such as recalibrated.",
        )
    if name in _names_in(f"{head}def _{function}"):
        raise InputError(
            "must be another name than those that the function itself uses",
            argument="name",
            seen=name,
            cure="Pass a name such as recalibrated.",
        )
    return f"{head}def {name}{function}"


def _names_in(text: str) -> set[str]:
    """Every name that Python text uses, defines or imports."""
    nodes = list(ast.walk(ast.parse(text)))
    kinds = {ast.Name: "id", ast.FunctionDef: "name", ast.alias: "name", ast.arg: "arg"}
    return {getattr(node, kinds[type(node)]) for node in nodes if type(node) in kinds}


def _tuple(values: Floats) -> str:
    return "(" + ", ".join(repr(float(value)) for value in values) + ")"


def _formula(recalibrator: Recalibrator) -> str | None:
    """The log-odds of the map, of `low` = log p and `high` = log(1 - p)."""
    kind, state = recalibrator.kind, recalibrator.state
    if kind == "platt":
        return f"{state['slope']!r} * (low - high) + {state['intercept']!r}"
    if kind == "temperature":
        return f"(low - high) / {state['temperature']!r}"
    if kind == "beta":
        return f"{state['a']!r} * low - {state['b']!r} * high + {state['c']!r}"
    if kind == "offset":
        return f"low - high + {state['offset']!r}"
    return None


def _require_deployable(recalibrator: Recalibrator, tolerance: float) -> None:
    if not (is_number(tolerance) and 0 < tolerance < 1):
        raise InputError(
            "must lie between 0 and 1",
            argument="tolerance",
            seen=tolerance,
            cure="Leave it out for the default.",
        )
    if recalibrator.kind == "randomized":
        raise InputError(
            "a randomised map cannot be written as an expression",
            seen=recalibrator.kind,
            saying="",
            cure="Fit a map that draws nothing, such as {other}.",
            other=Code("AdaptiveRecalibrator()"),
        )


def knots_of(recalibrator: Recalibrator, tolerance: float) -> tuple[Floats, Floats]:
    """Points that the map passes through, and between which it is as good as straight."""
    _require_deployable(recalibrator, tolerance)
    x = places_of(recalibrator)
    y = recalibrator.transform(x)
    kept = _thinned(x, y, tolerance)
    return x[kept], y[kept]


def places_of(recalibrator: Recalibrator) -> Floats:
    """Where the map is looked at: evenly, ever closer to the ends, at its knots and beside its jumps."""
    near = np.logspace(np.log10(SMALLEST), -2, 2000)
    state = recalibrator.state
    own = np.asarray(state.get("p", []), dtype=np.float64)
    if recalibrator.kind == "cross venn-abers":
        own = np.concatenate([one.state["p"] for one in state["maps"]])
    jumps = np.empty(0)
    if recalibrator.kind.endswith("venn-abers"):  # a third value at the jump
        jumps = own
    if recalibrator.kind == "adaptive":  # where predictions count as exactly 0 or 1
        own, jumps = expit(state["x"]), np.array([AN_END, 1.0 - AN_END])
    if isinstance(recalibrator, SmoothRecalibrator):
        given = recalibrator.scale
        scale = given if isinstance(given, Scale) else as_scale(state["scale"])
        own = scale.prediction(np.linspace(0.0, 1.0, len(state["values"])))
    even = np.arange(EVEN_STEPS + 1) / EVEN_STEPS
    beside = np.nextafter(jumps, 0.0), jumps, np.nextafter(jumps, 1.0)
    return np.unique(np.clip(np.concatenate([even, near, 1.0 - near, own, *beside]), 0.0, 1.0))


def _thinned(x: Floats, y: Floats, tolerance: float) -> NDArray[np.int64]:
    """Points between which straight lines stay close to all others."""
    from_ends = np.maximum(np.minimum(y, 1.0 - y), SMALLEST)
    allowed = tolerance * np.minimum(1.0, RELATIVE * from_ends)
    kept = {0, x.size - 1}
    waiting = [(0, x.size - 1)]
    while waiting:
        low, high = waiting.pop()
        if high - low < 2:
            continue
        inside = slice(low + 1, high)
        line = np.interp(x[inside], x[[low, high]], y[[low, high]])
        gap = np.abs(line - y[inside]) / allowed[inside]
        worst = int(np.argmax(gap))
        if gap[worst] > 1.0:
            middle = low + 1 + worst
            kept.add(middle)
            waiting += [(low, middle), (middle, high)]
    return np.array(sorted(kept), dtype=np.int64)
