from __future__ import annotations

import pytest

from bench import costs, pages


def table():
    return pages.Table("Things", ["name", "value"], [["a | b", "1"], ["`c`", "**2**"]], ["A note."])


def test_a_page_is_dated_and_says_what_made_it(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "RESULTS", tmp_path / "results")
    page = pages.Page(
        "things", "Things", "python -m bench.things", "Lead.", [table()], {"x": "1.0"}
    )
    text = page.write(tmp_path).read_text()
    assert "python -m bench.things" in text
    assert "x 1.0" in text
    assert "| a \\| b | 1 |" in text
    html = (tmp_path / "results" / "things.html").read_text()
    assert "<tr><td>a | b</td><td>1</td></tr>" in html
    assert "<td><code>c</code></td><td><b>2</b></td>" in html
    assert "<li>A note.</li>" in html


def test_a_ragged_table_is_refused():
    with pytest.raises(ValueError, match="2 columns"):
        pages.Table("T", ["a", "b"], [["1"]])


def test_costs_are_told_in_times_and_where_a_peer_is_better():
    own = {"seconds": 0.01, "cpu": 0.02, "sum": 0.005, "sum cpu": 0.005, "megabytes": 3.0}
    fast = {**own, "seconds": 0.002, "cpu": 0.002, "megabytes": 90.0, "version": "2"}
    own["version"] = "1"
    measured = {
        "calibrant": {10_000_000: own},
        "probcal": {10_000_000: fast},
        "relplot": {10_000_000: {"none": "no answer in 300 s"}},
    }
    first, second, third, limit = costs.rows(measured, [10_000_000])
    assert first[2:] == ["10 ms", "20 ms", "1", "4.0", "3.0"]
    assert second[2:] == ["2 ms", "2 ms", "0.1", "0.4", "90.0"]
    assert third[2:] == ["no answer in 300 s", "", "", "", ""]
    assert limit[0] == "(physical limit)"
    assert costs.better(measured, [10_000_000])[0].endswith(": probcal.")
    assert costs.versions(measured) == {"calibrant": "1", "probcal": "2"}


@pytest.mark.parametrize(
    ("value", "text"), [(2.0, "2 s"), (0.0015, "1.5 ms"), (2.5e-6, "2.5 µs"), (3e-9, "3 ns")]
)
def test_seconds_are_written_in_a_fitting_unit(value, text):
    assert costs.seconds(value) == text
