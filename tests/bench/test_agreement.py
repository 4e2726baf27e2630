"""The comparison with other packages asks for nothing that calibrant does not have."""

import numpy as np
from bench.peers.agreement import of_calibrant, sample
from bench.peers.companions import COMPANIONS


def test_every_companion_has_a_value_here_and_an_environment():
    from bench.environments import names

    ours = of_calibrant(*sample())
    for companion in COMPANIONS:
        assert np.isfinite(ours[companion.measure])
        assert companion.environment in names()
    asked = [(companion.measure, companion.peer) for companion in COMPANIONS]
    assert len(set(asked)) == len(asked)
