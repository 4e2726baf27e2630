from __future__ import annotations

from bench.scale import growth
from bench.scale.__main__ import picture, table, trillion


def test_rows_in_one_block_and_in_several_cost_more_than_the_sum(monkeypatch):
    monkeypatch.setattr(growth, "BLOCK", 1 << 14)
    grown = growth.rows([1000, 40_000])
    assert all(own > least > 0 for own, least in zip(grown.seconds, grown.limit, strict=True))


def test_groups_and_resamples_are_timed_beside_their_limits(tmp_path):
    by_group = growth.groups([10], 1000)
    drawn = growth.resamples([10])
    for grown in (by_group, drawn):
        shown = table(grown)
        assert [row[0] for row in shown.rows] == [f"{size:,}" for size in grown.sizes]
        assert (tmp_path / picture(grown, tmp_path)).stat().st_size > 1000


def test_a_trillion_rows_follow_from_the_constants():
    measured = growth.Constants(fill_ns=2.0, merge_s=0.001, solve_s=0.002, sketch_bytes=1_500_000)
    text, costs = trillion(measured)
    assert "15.0 GB in all" in text.body
    assert "8.8e+12" in text.body
    thousand = next(row for row in costs.rows if row[0] == "1,000")
    assert thousand[1] == "2 s"
    assert thousand[2] == "24 ms"


def test_constants_are_measured_on_a_full_sketch():
    filled = growth.Growth("rows", [10**6], [0.004], [0.001], "the sum")
    measured = growth.constants(filled)
    assert measured.fill_ns >= 4.0
    assert measured.sketch_bytes > 100_000
    assert measured.merge_s > 0
    assert measured.solve_s > 0
