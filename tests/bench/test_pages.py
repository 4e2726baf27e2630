from __future__ import annotations

import pytest

from bench import pages


def table():
    return pages.Table("Things", ["name", "value"], [["a | b", "1"], ["`c`", "**2**"]], ["A note."])


def test_a_page_is_dated_and_says_what_made_it(tmp_path):
    page = pages.Page(
        "things", "Things", "python -m bench.things", "Lead.", [table()], {"x": "1.0"}
    )
    text = page.write(tmp_path).read_text()
    assert "python -m bench.things" in text
    assert "x 1.0" in text
    assert "| a \\| b | 1 |" in text
    assert "- A note." in text


def test_a_ragged_table_is_refused():
    with pytest.raises(ValueError, match="2 columns"):
        pages.Table("T", ["a", "b"], [["1"]])
