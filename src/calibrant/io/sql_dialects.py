"""How each SQL dialect quotes names and writes the few expressions that differ between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.errors import InputError

__all__ = ["DIALECTS", "Dialect", "dialect_named"]


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
        """The name as an identifier, whatever is in it."""
        if not isinstance(name, str) or not name or "\0" in name:
            raise InputError(
                "the name of a table or column must be text, neither empty nor with a NUL character",
                seen=name,
                cure="Pass the name as the database knows it.",
            )
        if self.backslash:
            return "`" + name.replace("\\", "\\\\").replace("`", "\\`").replace("\n", "\\n") + "`"
        mark = self.quote_mark
        return mark + name.replace(mark, mark * 2) + mark

    def quote_table(self, table: str | Sequence[str]) -> str:
        """A table's name; dots of a plain string separate catalogue, schema and table."""
        parts = table.split(".") if isinstance(table, str) else table
        if not isinstance(parts, Sequence) or not parts:
            raise InputError(
                "must be the name of a table, or its parts in a list",
                argument="table",
                seen=table,
                cure='Pass a name such as "schema.predictions".',
            )
        return ".".join(self.quote(part) for part in parts)

    def as_float(self, operand: str) -> str:
        """A number, as a float; NULL where it is none."""
        return self.number.format(x=operand, float=self.float_type)

    def as_outcome(self, operand: str) -> str:
        """A label, which may be boolean, as a float."""
        return self.label.format(x=operand, float=self.float_type)

    def as_integer(self, operand: str) -> str:
        """The whole part of a float that is not negative."""
        return self.floor.format(x=operand, integer=self.integer_type)

    def missing(self, operand: str) -> str:
        """Whether a float is NULL or NaN."""
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
    """The dialect of that name."""
    aliases = {"postgresql": "postgres", "sparksql": "spark", "databricks": "spark"}
    key = str(name).lower().replace(" ", "")
    key = aliases.get(key, key)
    if key not in DIALECTS:
        raise InputError(
            "must be one of {dialects}",
            argument="dialect",
            seen=name,
            cure="Pass the nearest: most databases read {standard}.",
            dialects=", ".join(DIALECTS),
            standard="postgres",
        )
    return DIALECTS[key]
