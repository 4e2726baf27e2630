"""Values of grouping columns as words."""

from __future__ import annotations

__all__ = ["group_text"]


def group_text(value: object) -> str:
    """A group's value as people would write it: whole numbers without a point, nothing by name.

    Text that only has blanks stands between quotes.

    Examples
    --------
    >>> group_text(2016.0), group_text(""), group_text(" "), group_text(None), group_text(float("nan"))
    ('2016', '(empty)', "' '", '(missing)', '(missing)')
    """
    if value is None or value != value:
        return "(missing)"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    text = str(value)
    if not isinstance(value, str) or text.strip():
        return text
    return f"'{text}'" if text else "(empty)"
