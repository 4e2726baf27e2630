from __future__ import annotations

import numpy as np

from bench import measures, repair


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
    found = repair.measured(data, cuts=2)
    assert found["none"].rise == 0.0
    assert found["calibrant smooth"].smooth_ece < found["none"].smooth_ece
    shown = repair.tables([(data, data.p_value, found)])
    assert shown[2].rows[0][2] == "falls"
