"""One SQL aggregation for a sketch, for warehouses: the rows stay where they are.

`query` writes the text, the warehouse runs it, `read` turns the table that comes back into sketches.
`piecewise_linear` writes a fitted map as an expression, so that recalibration runs there too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from calibrant._arguments import require_choice
from calibrant._files import decoding
from calibrant.data.arrays import as_array
from calibrant.data.cell_sums import DEFAULT_NODES, FRACTION_BITS, require_nodes
from calibrant.data.rows import LARGEST_WEIGHT
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import FLOAT_COLUMNS, INTEGER_COLUMNS, Sketches, from_table
from calibrant.errors import InputError, invalid, show_value
from calibrant.io.group_keys import normal_key
from calibrant.io.request import require_columns
from calibrant.io.sums import invalid_rows, require_weight, sorted_groups

__all__ = [
    "DIALECTS",
    "Dialect",
    "Expression",
    "dialect_named",
    "literal",
    "piecewise_linear",
    "query",
    "read",
]

# -- dialects ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dialect:
    """Templates, with {x} for an operand that has no side effects."""

    name: str
    float_type: str
    integer_type: str
    is_nan: str
    number: str = "CAST({x} AS {float})"
    label: str = "CAST({x} AS {float})"
    floor: str = "CAST(FLOOR({x}) AS {integer})"
    quote_mark: str = '"'
    backslash: bool = False

    def quote(self, name: str) -> str:
        """Name as an identifier, whatever is in it."""
        if not isinstance(name, str) or not name or "\0" in name:
            raise InputError(
                "The name of a table or column must be text, neither empty nor with a NUL character; got "
                f"{show_value(name)}."
            )
        if self.backslash:
            return "`" + name.replace("\\", "\\\\").replace("`", "\\`").replace("\n", "\\n") + "`"
        mark = self.quote_mark
        return mark + name.replace(mark, mark * 2) + mark

    def quote_table(self, table: str | Sequence[str]) -> str:
        """Name of a table; dots of a plain string separate catalogue, schema and table."""
        parts = table.split(".") if isinstance(table, str) else table
        if not isinstance(parts, Sequence) or not parts:
            raise invalid("table", "be the name of a table, or its parts in a list", table)
        return ".".join(self.quote(part) for part in parts)

    def as_float(self, operand: str) -> str:
        """Number as a float; NULL where it is none."""
        return self.number.format(x=operand, float=self.float_type)

    def as_integer(self, operand: str) -> str:
        """Integer part of a float that is not negative."""
        return self.floor.format(x=operand, integer=self.integer_type)

    def missing(self, operand: str) -> str:
        """Condition that a float is NULL or NaN."""
        return f"{operand} IS NULL OR {self.is_nan.format(x=operand)}"


# A boolean cannot be cast to a float everywhere, but every label can be written as text.
_BY_TEXT = (
    "CASE CAST({{x}} AS {text}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 "
    "ELSE CAST(CAST({{x}} AS {text}) AS {{float}}) END"
)
# SQLite casts any text, to 0 where it is no number; but it compares text with a number as a number only
# where it is one.
_IF_NUMBER = (
    "CASE WHEN typeof({x}) IN ('integer', 'real') OR CAST({x} AS {float}) = {x} "
    "THEN CAST({x} AS {float}) END"
)

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("duckdb", "DOUBLE", "BIGINT", "isnan({x})"),
        Dialect(
            "postgres",
            "DOUBLE PRECISION",
            "BIGINT",
            "{x} = CAST('NaN' AS DOUBLE PRECISION)",
            label=_BY_TEXT.format(text="TEXT"),
        ),
        Dialect(
            "bigquery",
            "FLOAT64",
            "INT64",
            "IS_NAN({x})",
            label=_BY_TEXT.format(text="STRING"),
            backslash=True,
        ),
        Dialect(
            "snowflake",
            "DOUBLE",
            "BIGINT",
            "{x} = CAST('NaN' AS DOUBLE)",
            label=_BY_TEXT.format(text="VARCHAR"),
        ),
        Dialect("spark", "DOUBLE", "BIGINT", "isnan({x})", quote_mark="`"),
        Dialect(
            "sqlite",
            "REAL",
            "INTEGER",
            "0",  # SQLite stores NaN as NULL
            number=_IF_NUMBER,
            label=_IF_NUMBER,
            floor="CAST({x} AS {integer})",
            quote_mark="`",  # what stands in double quotes and is no column, it reads as text
        ),
    )
}


def dialect_named(name: str) -> Dialect:
    """Dialect of that name."""
    aliases = {"postgresql": "postgres", "sparksql": "spark", "databricks": "spark"}
    key = str(name).lower().replace(" ", "")
    key = aliases.get(key, key)
    if key not in DIALECTS:
        raise invalid("dialect", f"be one of {', '.join(DIALECTS)}", name)
    return DIALECTS[key]


_OWN_COLUMNS = {*INTEGER_COLUMNS, *FLOAT_COLUMNS, "nodes"}
"""Columns of the result besides the groups."""

# -- the query ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expression:
    """SQL text that is used as it stands, where a column's name would be quoted.

    Examples
    --------
    >>> Expression('"score" / 100')
    Expression(text='"score" / 100')
    >>> print(Expression('"score" / 100'))
    "score" / 100
    """

    text: str

    def __str__(self) -> str:
        return self.text


def query(
    table: str | Sequence[str],
    prob: str | Expression,
    label: str | Expression,
    by: str | Sequence[str] | None = (),
    dialect: str = "duckdb",
    *,
    weight: str | Expression | None = None,
    nodes: int = DEFAULT_NODES,
) -> str:
    """One aggregation that gives the sketch of a table, group by group.

    Parameters
    ----------
    table : str or sequence of str
        The table; dots separate catalogue, schema and table, unless the parts are given apart.
    prob, label, weight : str or Expression
        Columns. Names are quoted, whatever is in them; an `Expression` is not.
    by : str or sequence of str
        Grouping columns.
    dialect : {"duckdb", "postgres", "bigquery", "snowflake", "spark", "sqlite"}
        Quoted names are case-sensitive in PostgreSQL and Snowflake.
    nodes : int
        Cells of the grid, a power of two.

    Returns
    -------
    str
        A query whose result has the group columns and cell, label, count, offset, nodes (and weight,
        squared_weight, weighted_offset). Rows that break a rule are counted under negative cells: -1
        for a missing prediction, and so on as in `calibrant.data.sketches`. The table holds at most
        two rows per cell and group.

    Notes
    -----
    Run for real in the project's tests on DuckDB, SQLite, PostgreSQL and Spark, with the same bits as
    NumPy; for BigQuery and Snowflake the text is checked by a parser of their dialect.

    Examples
    --------
    >>> import duckdb
    >>> warehouse = duckdb.connect()
    >>> _ = warehouse.execute("CREATE TABLE preds AS SELECT 0.25 AS p, 1 AS y FROM range(8)")
    >>> result = warehouse.execute(query("preds", "p", "y", dialect="duckdb"))
    >>> read(result)
    <Sketch of 8 rows, 8 events, in 1 of 65536 cells, scale probability>
    """
    spoken = dialect_named(dialect)
    by = (by,) if isinstance(by, str) else () if by is None else by
    if not isinstance(by, Sequence) or not all(isinstance(name, str) for name in by):
        raise invalid("by", "be the name of a column, or a list of names", by)
    taken = _OWN_COLUMNS & {name.lower() for name in by}
    if taken:
        raise InputError(f"`by` must not name a column {taken.pop()}, as the result has its own.")
    groups = {f"g{place}": spoken.quote(name) for place, name in enumerate(by)}
    columns = {
        "p": spoken.as_float(_operand(prob, spoken)),
        "y": spoken.label.format(x=_operand(label, spoken), float=spoken.float_type),
    }
    if weight is not None:
        columns["w"] = spoken.as_float(_operand(weight, spoken))
    steps = _steps(spoken, spoken.quote_table(table), groups, columns, require_nodes(nodes))
    sums = _sums(spoken, groups, nodes, weight is not None)
    grouped = ", ".join([*groups, "c", "l"])
    return f"WITH {steps}\nSELECT {sums}\nFROM counted\nGROUP BY {grouped}"


def _steps(
    dialect: Dialect, table: str, groups: dict[str, str], columns: dict[str, str], nodes: int
) -> str:
    """Rows, first as floats, then with the rule that each breaks, then with cell and offset."""
    chosen = ", ".join(f"{text} AS {alias}" for alias, text in {**groups, **columns}.items())
    keys = "".join(f"{alias}, " for alias in groups)
    weight = "w, " if "w" in columns else ""
    cell = dialect.as_integer(f"p * {nodes}.0")
    fixed = dialect.as_integer(f"p * {1 << FRACTION_BITS}.0")
    width = (1 << FRACTION_BITS) // nodes
    return (
        f"chosen AS (\n  SELECT {chosen}\n  FROM {table}\n),\n"
        f"judged AS (\n  SELECT {keys}{weight}y, p, {_reason(dialect, 'w' in columns)} AS reason\n"
        "  FROM chosen\n),\n"
        # What is out of range must not reach the casts.
        f"placed AS (\n  SELECT {keys}{weight}y, reason, "
        "CASE WHEN reason = 0 THEN p ELSE 0.0 END AS p\n  FROM judged\n),\n"
        f"counted AS (\n  SELECT {keys}{weight}reason,\n"
        f"    CASE WHEN reason = 0 THEN {cell} ELSE -reason END AS c,\n"
        "    CASE WHEN reason = 0 AND y = 1 THEN 1 ELSE 0 END AS l,\n"
        f"    {fixed} - {cell} * {width} AS o\n  FROM placed\n)"
    )


def _sums(dialect: Dialect, groups: dict[str, str], nodes: int, weighted: bool) -> str:
    columns = {name: alias for alias, name in groups.items()}
    columns |= {dialect.quote("cell"): "c", dialect.quote("label"): "l"}
    columns[dialect.quote("count")] = "COUNT(*)"
    columns[dialect.quote("offset")] = f"CAST(SUM(o) AS {dialect.integer_type})"
    columns[dialect.quote("nodes")] = str(nodes)
    if weighted:
        for name, value in zip(FLOAT_COLUMNS, ("w", "w * w", "w * o"), strict=True):
            columns[dialect.quote(name)] = f"SUM(CASE WHEN reason = 0 THEN {value} ELSE 0.0 END)"
    return ", ".join(f"{value} AS {name}" for name, value in columns.items())


def _operand(column: str | Expression | None, dialect: Dialect) -> str:
    if isinstance(column, Expression):
        return f"({column.text})"
    if not isinstance(column, str):
        raise InputError(f"A column must be a name or an Expression; got {show_value(column)}.")
    return dialect.quote(column)


def _reason(dialect: Dialect, weighted: bool) -> str:
    """0 for a row that breaks no rule, else the number of the first rule that it breaks."""
    rules = [
        dialect.missing("p"),
        "p < 0 OR p > 1",
        dialect.missing("y"),
        "y <> 0 AND y <> 1",
    ]
    if weighted:
        rules += [dialect.missing("w"), f"w < 0 OR w > {LARGEST_WEIGHT:.0e}"]
    cases = " ".join(f"WHEN {rule} THEN {code}" for code, rule in enumerate(rules, start=1))
    return f"CASE {cases} ELSE 0 END"


def read(result: Any, *, on_invalid: str = "drop") -> Sketch | Sketches:
    """Sketch, or sketches by group, in the table that the query gave.

    Parameters
    ----------
    result
        A frame of any library, a dict of columns, or a cursor of a database driver after `execute`.
    on_invalid : {"raise", "drop"}
        Rows that broke a rule are an error, or only counted.

    Examples
    --------
    >>> table = {"cell": [3, 40], "label": [0, 1], "count": [2, 1], "offset": [0, 0], "nodes": [256, 256]}
    >>> read(table).n
    3
    """
    require_choice("on_invalid", on_invalid, ("raise", "drop"))
    columns = {  # Snowflake hands names back in capitals
        name.lower() if name.lower() in _OWN_COLUMNS else name: values
        for name, values in _columns(result).items()
    }
    require_columns((*INTEGER_COLUMNS, "nodes"), columns, "the table")
    by = [name for name in columns if name not in _OWN_COLUMNS]
    for name in columns.keys() & _OWN_COLUMNS:
        columns[name] = _numbers(columns[name], name)
    nodes = np.unique(columns.pop("nodes"))
    if nodes.size == 0:
        raise InputError("`result` must hold rows; the query found none.")
    if nodes.size > 1:
        raise invalid("result", "be of one query, with one number of nodes", nodes.tolist())
    # A missing group is None, whatever it came through.
    columns |= {name: [normal_key((v,))[0] for v in columns[name]] for name in by}
    found = from_table(columns, by=by, nodes=int(nodes[0]))
    if by:  # a database gives its rows in any order
        found = sorted_groups(cast(Sketches, found))
    sketches = list(found.groups.values())
    dropped: Counter[str] = Counter()
    for sketch in sketches:
        dropped.update(sketch.dropped)
    rows = sum(sketch.n for sketch in sketches)
    if dropped and on_invalid == "raise":
        raise invalid_rows(dropped, rows + dropped.total())
    if any(sketch.weighted for sketch in sketches) and rows:
        require_weight(np.array([sketch.total_weight for sketch in sketches]), rows)
    return found


def _columns(result: Any) -> dict[str, Any]:
    if isinstance(result, Mapping):
        return dict(result)
    if hasattr(result, "description") and hasattr(result, "fetchall"):  # a cursor
        if result.description is None:
            raise InputError("`result` must be executed first; this cursor has none.")
        names = [field[0] for field in result.description]
        with decoding("the result of a query"):
            rows = result.fetchall()
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}
    import narwhals as nw

    frame = nw.from_native(result, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, nw.DataFrame):
        raise invalid("result", "be a frame, a dict of columns or a cursor", result)
    return {name: frame[name].to_list() for name in frame.columns}


def _numbers(values: Any, name: str) -> np.ndarray[Any, Any]:
    """Numbers as drivers hand them over: integers, floats or decimals."""
    array = as_array(values, name)
    if array.dtype.kind not in "iuf":
        raise invalid("result", f"hold numbers in column {name!r}", str(array.dtype))
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise InputError(
            f"`result` must not hold missing values; column {name!r} has {int(np.isnan(array).sum())}.",
        )
    return array


def piecewise_linear(
    prob: str | Expression,
    x: Any,
    y: Any,
    dialect: str = "duckdb",
    *,
    beyond: Literal["constant", "unchanged"] = "constant",
) -> Expression:
    """A piecewise-linear map of a column, through the knots (x, y).

    The text is a tree of comparisons, so that n knots cost log n of them per row. NULL stays NULL; what
    lies beyond the ends (NaN too, where the database has it) is given the value of the nearest end, or
    left `"unchanged"`.

    Examples
    --------
    >>> import duckdb
    >>> repaired = piecewise_linear("p", [0.0, 0.5, 1.0], [0.1, 0.4, 0.9])
    >>> duckdb.sql(f"SELECT {repaired.text} AS repaired FROM (SELECT 0.75 AS p)").fetchall()
    [(0.65,)]
    """
    spoken = dialect_named(dialect)
    knots, values = (np.asarray(as_array(a, n), dtype=np.float64) for a, n in ((x, "x"), (y, "y")))
    if knots.ndim != 1 or knots.shape != values.shape or knots.size < 2:
        raise InputError(
            "`x` must be a vector as long as `y`, of 2 numbers or more; their shapes are "
            f"{knots.shape} and {values.shape}.",
        )
    if not (
        np.all(np.isfinite(values)) and np.all(np.diff(knots) > 0) and np.isfinite(knots).all()
    ):
        raise invalid("x", "increase strictly, and it and `y` must be finite", knots.tolist())
    require_choice("beyond", beyond, ("constant", "unchanged"))
    given = _operand(prob, spoken)
    operand = spoken.as_float(given)
    if beyond == "constant":
        return Expression(_tree(operand, knots, values, spoken, -1, knots.size - 1))
    low, high = (literal(knots[end], spoken) for end in (0, -1))
    # Everywhere NaN is above all numbers, or neither above nor below any.
    inside = f"{operand} >= {low} AND {operand} <= {high}"
    number = f"CAST({given} AS {spoken.float_type})"
    tree = _tree(number, knots, values, spoken, 0, knots.size - 1)
    return Expression(f"CASE WHEN {inside} THEN {tree} ELSE {operand} END")


def _tree(operand: str, x: Any, y: Any, dialect: Dialect, low: int, high: int) -> str:
    """Map where x[low] <= operand < x[high + 1]; the ends are constant."""
    if low == high:
        if low < 0 or low == x.size - 1:
            return literal(y[max(low, 0)], dialect)
        slope = (y[low + 1] - y[low]) / (x[low + 1] - x[low])
        start = literal(y[low], dialect)
        return f"{start} + {literal(slope, dialect)} * ({operand} - {literal(x[low], dialect)})"
    middle = (low + high + 1) // 2
    below = _tree(operand, x, y, dialect, low, middle - 1)
    above = _tree(operand, x, y, dialect, middle, high)
    # NULL compares as unknown, so it must be named; it stays NULL.
    null = f"WHEN {operand} IS NULL THEN NULL " if (low, high) == (-1, x.size - 1) else ""
    edge = literal(x[middle], dialect)
    return f"CASE {null}WHEN {operand} < {edge} THEN {below} ELSE {above} END"


def literal(value: float | str, dialect: Dialect) -> str:
    """A float that every dialect reads back to the bit, or a text."""
    if isinstance(value, str):
        text = value.replace("\\", "\\\\") if dialect.backslash else value
        return "'" + text.replace("'", "\\'" if dialect.backslash else "''") + "'"
    return f"CAST('{float(value)!r}' AS {dialect.float_type})"
