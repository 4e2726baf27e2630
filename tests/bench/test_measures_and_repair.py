from __future__ import annotations

import numpy as np

from bench import map_bands, measures, repair


def test_costs_are_counted_in_sorts_and_differences_are_small():
    rows = measures.sorted_measures(2000)
    assert [row[0].split(" at ")[0] for row in rows] == ["wCE", "wCE, logit", "kCE"]
    assert measures.worst_difference_from_programs(inputs=8) < 1e-7
    assert measures.kernel_difference() < 1e-10
    assert len(measures.every_measure(500).rows) > 15


def test_maps_are_measured_on_the_half_they_have_not_seen():
    rng = np.random.default_rng(0)
    p = rng.random(600)
    data = repair.Rows("drawn", p, (rng.random(600) < p**3).astype(float))
    first, second = data.halves(0)
    assert first.p.size == second.p.size == 300
    cells = repair.measured(data, 2, tuple(repair.METHODS))
    assert [cell.n for cell in cells] == [100, 300]
    assert cells[1].smooth_ece[repair.DEFAULT] < cells[1].smooth_ece["none"]
    assert cells[1].losses[repair.DEFAULT] < cells[1].losses["none"]
    assert sum(cells[0].ranks().values()) == 28.0
    summary, losses = repair.ranked(cells)
    assert summary.rows[0][1] == f"{min(float(row[1]) for row in summary.rows):.2f}"
    assert len(losses.rows) == 2
    assert len(repair.smooth_eces(cells).rows) == 1


def test_the_interval_of_the_default_holds_what_is_true():
    inside, width = map_bands.covered(map_bands.TRUTHS["calibrated"], 300, 5)
    assert inside > 0.9
    assert 0.0 < width < 0.3
