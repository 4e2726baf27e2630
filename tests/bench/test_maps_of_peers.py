"""The real packages: venn-abers, betacal, netcal and probmetrics, in an environment of their own."""

import pytest
from bench.peers import maps

from bench import environments

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        not environments.python_of("maps").is_file(),
        reason="needs the peers: python -m bench.environments maps",
    ),
]


def test_maps_are_those_of_the_reference_and_no_peer_has_a_smaller_loss():
    data = maps.drawn()
    rows = maps.compared(data, maps.theirs(data, environments.python_of("maps")))
    assert {row.name.split()[0].strip(",") for row in rows} == {
        "venn-abers",
        "betacal",
        "netcal",
        "probmetrics",
    }
    for row in rows:
        assert row.finished <= maps.SAME, row
        assert row.excess is None or row.excess >= -1e-12, row
