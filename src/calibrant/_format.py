"""Text of numbers and of groups: no zero where there is something, no group without a name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from math import floor, isinf, isnan, log10
from sys import float_info

from calibrant.errors import show_value

MOST_DECIMALS = 12
"""Of a share: beyond, what is left of the whole is rounding."""
ROUNDING = 1e-12
"""Below it, a number that is shown is 0."""
SMALLEST_P_VALUE = float_info.min
"""Least p-value: smaller ones would be 0 in floating point."""


def decimals(value: float, places: int = 4) -> str:
    """Number with so many decimals, or two digits where these would hide them; rounding errors are 0.

    Examples
    --------
    >>> decimals(0.07787), decimals(0.000023), decimals(-0.02, places=3), decimals(0.0)
    ('0.0779', '2.3e-05', '-0.020', '0.0000')
    >>> decimals(float("nan")), decimals(float("inf"))
    ('–', '∞')
    """
    if isnan(value):
        return "–"
    if isinf(value):
        return "∞" if value > 0 else "-∞"
    value = value if abs(value) > ROUNDING else 0.0
    shown = value == 0 or abs(value) >= 10.0 ** (1 - places)
    return f"{value:.{places}f}" if shown else f"{value:.2g}"


def p_text(p: float, *, short: bool = False) -> str:
    """P-value as papers write it; for narrow tables without blanks and leading zeros.

    Examples
    --------
    >>> p_text(0.0002), p_text(0.034), p_text(0.41), p_text(0.0002, short=True), p_text(1.0, short=True)
    ('< 0.001', '0.034', '0.41', '<.001', '1.00')
    """
    text = "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
    return text.replace(" ", "").replace("0.", ".", 1) if short and p < 1.0 else text


def p_equation(p: float) -> str:
    """P-value after its name.

    Examples
    --------
    >>> p_equation(0.0002), p_equation(0.034)
    ('p < 0.001', 'p = 0.034')
    """
    return f"p {p_text(p)}" if p < 0.001 else f"p = {p_text(p)}"


def percent(share: float) -> str:
    """Share as a percentage: two digits, and near the whole enough to show what is left.

    Examples
    --------
    >>> percent(0.0778), percent(0.00002), percent(0.997), percent(0.9999), percent(1.0)
    ('7.8%', '0.002%', '99.7%', '99.99%', '100%')
    """
    left = 1.0 - share
    if share <= 0.0 or left < 10.0**-MOST_DECIMALS:
        return f"{100.0 * share:.0f}%"
    digits = 1 - floor(log10(100.0 * share)) if share < 0.5 else -floor(log10(100.0 * left))
    text = f"{100.0 * share:.{max(digits, 0)}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def common_length(names: Sequence[str]) -> int:
    """Number of characters that all names begin with.

    Examples
    --------
    >>> common_length(["p_dog", "p_deer"]), common_length(["dog", "cat"])
    (3, 0)
    """
    shortest = min(map(len, names))
    return next((k for k in range(shortest) if len({name[k] for name in names}) > 1), shortest)


def common_start(names: Sequence[str]) -> int:
    """Number of characters that all names begin with, up to the end of a word.

    Examples
    --------
    >>> common_start(["p_dog", "p_deer"]), common_start(["dog", "deer"])
    (2, 0)
    """
    same = common_length(names)
    while same and names[0][same - 1].isalnum():
        same -= 1
    return same


def distinct_parts(names: Sequence[str]) -> list[str]:
    """Names without the words that all of them begin or end with.

    Examples
    --------
    >>> distinct_parts(["p_dog", "p_deer"]), distinct_parts(["p_dog_new", "p_deer_new"])
    (['dog', 'deer'], ['dog', 'deer'])
    """
    starts_off = [name[common_start(names) :] for name in names]
    end = common_start([name[::-1] for name in starts_off])
    return [name[: len(name) - end] for name in starts_off]


def group_text(value: object) -> str:
    """Text of a group's value, or of a tuple of values: whole numbers without a point, a word for nothing.

    Text that only has blanks stands between quotes.

    Examples
    --------
    >>> group_text(2016.0), group_text(""), group_text(" "), group_text(None), group_text(float("nan"))
    ('2016', '(empty)', "' '", '(missing)', '(missing)')
    >>> group_text(("north", 3.0))
    'north, 3'
    """
    if type(value) is tuple:
        return ", ".join(map(group_text, value))
    if value is None:
        return "(missing)"
    try:
        if bool(value != value):
            return "(missing)"
        text = str(value)
    except Exception:  # an array, or an object without text
        return show_value(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if not isinstance(value, str) or text.strip():
        return text
    return f"'{text}'" if text else "(empty)"


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> str:
    """Text table whose columns are to the right, but for these.

    Examples
    --------
    >>> print(aligned([["name", "n"], ["a", "10"]]))
    name   n
    a     10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if k in left else text.rjust(width)
            for k, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def html_table(rows: Sequence[Sequence[str]]) -> str:
    """HTML table with a header first."""
    header, *body = rows
    lines = ["".join(f"<th>{escape(text)}</th>" for text in header)]
    lines += ["".join(f"<td>{escape(text)}</td>" for text in row) for row in body]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
