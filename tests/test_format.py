"""Numbers as they are written: what is not nothing does not read as nothing, nor what is left of a whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrant._format import decimals, percent


@given(st.floats(1e-11, 1e6), st.integers(2, 4), st.sampled_from([1, -1]))
def test_what_is_written_is_within_five_percent(value: float, places: int, sign: int) -> None:
    assert float(decimals(sign * value, places)) == pytest.approx(sign * value, rel=0.051)


@given(st.floats(1e-9, 1 - 1e-9))
def test_a_percentage_shows_what_there_is_and_what_is_left(share: float) -> None:
    written = float(percent(share).removesuffix("%")) / 100
    assert written == pytest.approx(share, rel=0.051)
    assert 1 - written == pytest.approx(1 - share, rel=0.51)
    assert 0 < written < 1
