"""Fitted maps as SQL or Python text, which needs no calibrant; and the order that they keep."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_number
from calibrant.data.cells import Cells, column_sets
from calibrant.data.classes import SMALLEST_LOGARITHM, SUM_TOLERANCE
from calibrant.errors import InputError, invalid
from calibrant.inference.logistic import NEAREST_TO_THE_ENDS
from calibrant.io.sql import Dialect, Expression, dialect_named, literal, piecewise_linear

if TYPE_CHECKING:
    from calibrant.recalibration.class_map import ClassRecalibrator
    from calibrant.recalibration.learned_map import Recalibrator

Floats = NDArray[np.float64]
Monotonicity = Literal["increasing", "non-decreasing", "not monotone"]
EVEN_STEPS = 1 << 13
"""Places, besides those near the ends and where it bends, at which a map is compared with its text."""
SMALLEST = 1e-9
"""Distance from 0 and 1 down to which a map is followed."""
RELATIVE = 100.0
"""Error that is allowed next to the distance from 0 or 1, in units of the tolerance."""
ROUNDING = 1e-12
"""Mapped predictions may fall by so much before they count as out of order."""
AT_THE_ENDS = 1e-4
"""So close to 0 or 1, predictions may become equal where a map counts as increasing."""


def to_sql(
    made: Recalibrator, prob: str | Expression, dialect: str, tolerance: float
) -> Expression:
    """Piecewise-linear SQL expression, found by a tree of comparisons.

    Values that are no prediction are left as they are, so that a query still counts such rows by reason.
    """
    return piecewise_linear(prob, *interpolation(made, tolerance), dialect, beyond="unchanged")


def group_sql(
    prob: str,
    state: Mapping[str, Any],
    cells: Mapping[str, Cells],
    depth: int,
    dialect: str,
    tolerance: float,
) -> Expression:
    """SQL expression of a map by group: that of the map, and effects looked up by the codes of cells."""
    spoken = dialect_named(dialect)
    own = to_sql(state["map"], prob, dialect, tolerance).text
    sizes = [len(cell) for cell in cells.values()]
    codes = [_cell_code(spoken, name, cell) for name, cell in cells.items()]
    sums, start = {"offsets": "0", "slopes": "1"}, 0
    for columns in column_sets(len(sizes), depth):
        code, size = codes[columns[0]], sizes[columns[0]]
        for k in columns[1:]:
            code, size = f"({code}) * {sizes[k]} + {codes[k]}", size * sizes[k]
        for part in sums:
            effects = state[part][start : start + size]
            cases = " ".join(
                f"WHEN {k} THEN {literal(value, spoken)}"
                for k, value in enumerate(effects)
                if value
            )
            if cases:
                sums[part] += f" + CASE {code} {cases} ELSE 0 END"
        start += size
    low, high = (literal(end, spoken) for end in (NEAREST_TO_THE_ENDS, 1.0 - NEAREST_TO_THE_ENDS))
    inside = f"CASE WHEN {own} < {low} THEN {low} WHEN {own} > {high} THEN {high} ELSE {own} END"
    center = literal(state["center"], spoken)
    operand = spoken.as_float(spoken.quote(prob))
    odds = f"(LN({inside}) - LN(1 - ({inside})) - {center})"
    mapped = f"1 / (1 + EXP(-({center} + {odds} * ({sums['slopes']}) + {sums['offsets']})))"
    return Expression(
        f"CASE WHEN {operand} >= 0 AND {operand} <= 1 THEN {mapped} ELSE {operand} END"
    )


def _cell_code(dialect: Dialect, name: str, cells: Cells) -> str:
    """Number of a row's cell, NULL where it has none, so that it has no effect."""
    operand, missing = dialect.quote(name), f"{dialect.quote(name)} IS NULL"
    if cells.edges or not all(isinstance(value, str) for value in cells.values):
        operand = dialect.as_float(operand)
        missing = dialect.missing(operand)
    cases = [f"WHEN {missing} THEN {len(cells) - 1 if cells.missing else 'NULL'}"]
    cases += [
        f"WHEN {operand} < {literal(edge, dialect)} THEN {k}"
        for k, edge in enumerate(cells.edges[1:-1])
    ]
    cases += [
        f"WHEN {operand} = {literal(value, dialect)} THEN {k}"
        for k, value in enumerate(cells.values)
    ]
    rest = len(cells.edges) - 2 if cells.edges else len(cells.values) if cells.other else "NULL"
    return f"CASE {' '.join(cases)} ELSE {rest} END"


def to_python(made: Recalibrator, name: str, tolerance: float) -> str:
    """Text of a Python module with the map as a function of one probability."""
    _require_exportable(made, tolerance)
    head = f'"""Recalibrates a probability ({made.kind}). Made by calibrant; needs only Python."""'
    check = (
        "(p):\n"
        '    """The recalibrated probability of p."""\n'
        "    if not 0.0 <= p <= 1.0:\n"
        '        raise ValueError(f"p must lie in [0, 1]; got {p!r}")\n'
    )
    formula = made._formula(made.state)
    if formula is not None:
        nearest = f"min(max(p, {NEAREST_TO_THE_ENDS!r}), {1.0 - NEAREST_TO_THE_ENDS!r})"
        return _module(
            f"{head}\n\nfrom math import exp, log, log1p\n\n\n",
            name,
            f"{check}    p = {nearest}\n    low, high = log(p), log1p(-p)\n    z = {formula}\n"
            "    return 1.0 / (1.0 + exp(-z)) if z > 0.0 else exp(z) / (1.0 + exp(z))\n",
        )
    x, y = (nested([values])[1:-2] for values in interpolation(made, tolerance))
    return _module(
        f"{head}\n\nfrom bisect import bisect_right\n\nX = {x}\nY = {y}\n\n\n",
        name,
        f"{check}    k = min(max(bisect_right(X, p), 1), len(X) - 1)\n"
        "    share = (p - X[k - 1]) / (X[k] - X[k - 1])\n"
        "    return Y[k - 1] + share * (Y[k] - Y[k - 1])\n",
    )


def class_map_to_python(made: ClassRecalibrator, name: str, tolerance: float) -> str:
    """Text of a Python module with the map as a function of one row of probabilities or logits."""
    state, k = made.state, made.n_features_in_
    constants, body = made._python(state, k, tolerance)
    argument = "logits" if made.from_logits else "probs"
    what = "logits" if made.from_logits else "class probabilities"
    check = (
        f"    p = [float(v) for v in {argument}]\n    if len(p) != {k}:\n"
        f'        raise ValueError(f"must have {k} values; got {{len(p)}}")\n'
    )
    if made.from_logits:
        check += (
            "    top = max(p)\n"
            "    if not (all(v < inf for v in p) and top > -inf):\n"
            '        raise ValueError(f"must be finite or -inf, and not -inf alone; got {p!r}")\n'
            f"    least = top + log(sum(exp(v - top) for v in p)) + {SMALLEST_LOGARITHM!r}\n"
            "    s = [v if v > -inf else least for v in p]\n"
        )
    else:
        check += (
            f"    if not (all(v >= 0.0 for v in p) and abs(sum(p) - 1.0) <= {SUM_TOLERANCE!r}):\n"
            '        raise ValueError(f"must lie in [0, 1] and sum to 1; got {p!r}")\n'
            "    p = [min(v, 1.0) for v in p]\n"
            f"    least = {SMALLEST_LOGARITHM!r}\n"
            "    s = [max(log(v), least) if v > 0.0 else least for v in p]\n"
        )
    head = "\n".join(["from math import exp, inf, log", "", *constants])
    return _module(
        f'"""A {made.kind} map of class probabilities, made by calibrant; needs Python alone."""\n\n'
        f"{head}\n\n\n",
        name,
        f'({argument}):\n    """The recalibrated class probabilities of one row of {what}."""\n{check}{body}'
        "    return q\n",
    )


def _module(head: str, name: str, function: str) -> str:
    """Text of a module with a function of this name, which must not be one that the text itself uses."""
    if not (isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)):
        problem = "a name that Python accepts"
    elif name in _names_in(f"{head}def _{function}"):
        problem = "another name than those that the function itself uses"
    else:
        return f"{head}def {name}{function}"
    raise invalid("name", f"be {problem}", name)


def _names_in(text: str) -> set[str]:
    """Names that Python text uses, defines or imports."""
    nodes = list(ast.walk(ast.parse(text)))
    kinds = {ast.Name: "id", ast.FunctionDef: "name", ast.alias: "name", ast.arg: "arg"}
    return {getattr(node, kinds[type(node)]) for node in nodes if type(node) in kinds}


def nested(rows: Any) -> str:
    """Rows of numbers as the text of a tuple of tuples."""
    texts = ("(" + ", ".join(repr(float(value)) for value in row) + ")" for row in rows)
    return "(" + ", ".join(texts) + ",)"


def _require_exportable(made: Recalibrator, tolerance: float) -> None:
    require_number("tolerance", tolerance, 0.0, float(np.nextafter(1.0, 0.0)))
    if not made.exportable:
        raise InputError(
            f"A {made.kind} map cannot be written as an expression.",
            hint="Fit a map that draws nothing, such as `AdaptiveRecalibrator()`.",
        )


def interpolation(made: Recalibrator, tolerance: float) -> tuple[Floats, Floats]:
    """Points of the map between which it is linear up to the tolerance."""
    _require_exportable(made, tolerance)
    x = _grid_of(made)
    y = made._apply(x, made.state)
    kept = _thinned(x, y, tolerance)
    return x[kept], y[kept]


def _grid_of(made: Recalibrator) -> Floats:
    """Points to evaluate a map at: evenly, ever closer to the ends, where it bends and beside its jumps."""
    near = np.logspace(np.log10(SMALLEST), -2, 2000)
    bends, jumps = made._breaks(made.state)
    even = np.arange(EVEN_STEPS + 1) / EVEN_STEPS
    beside = np.nextafter(jumps, 0.0), jumps, np.nextafter(jumps, 1.0)
    return np.unique(np.clip(np.concatenate([even, near, 1.0 - near, bends, *beside]), 0.0, 1.0))


def _thinned(x: Floats, y: Floats, tolerance: float) -> NDArray[np.int64]:
    """Points between which straight lines stay close to all others (Ramer, Douglas and Peucker)."""
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


def monotonicity(p: Floats, mapped: Floats) -> Monotonicity:
    """Order of mapped predictions next to that of the predictions.

    Examples
    --------
    >>> p = np.array([0.2, 0.4, 0.6])
    >>> monotonicity(p, p**2), monotonicity(p, np.array([0.3, 0.3, 0.7])), monotonicity(p, 1 - p)
    ('increasing', 'non-decreasing', 'not monotone')
    """
    distinct, first = np.unique(p, return_index=True)
    steps = np.diff(mapped[first]) if distinct.size > 1 else np.ones(1)
    if steps.min() < -ROUNDING:
        return "not monotone"
    return "increasing" if steps.min() > 0.0 else "non-decreasing"


def monotonicity_of_map(made: Recalibrator) -> Monotonicity:
    """Order of a map's values between 1e-4 and 1 - 1e-4; not monotone if it falls anywhere."""
    x = _grid_of(made)
    x = x[np.diff(x, prepend=-1.0) > 1e-6 * np.minimum(x, 1.0 - x)]  # rounding merges closer ones
    mapped = made._apply(x, made.state)
    inside = (x > AT_THE_ENDS) & (x < 1.0 - AT_THE_ENDS)
    whole = monotonicity(x, mapped)
    return whole if whole == "not monotone" else monotonicity(x[inside], mapped[inside])
