"""A panel with one mark of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.plotting.axis import Axis
from calibrant.plotting.panel import Band, Bundle, Dots, Hill, Line, Panel, Steps, Ticks, Trail


@pytest.fixture
def panel() -> Panel:
    x = np.linspace(0.0, 1.0, 11)
    y = x**2
    y[5] = np.nan
    marks = (
        Hill(key="hill", ink="neutral", x=x, height=1 - x),
        Hill(key="hill", series="a", x=x, height=x, side="top"),
        Ticks(key="ticks", ink="neutral", x=np.array([0.1, 0.7]), side="top"),
        Line(key="line", ink="faint", x=x, y=x, dash="dashed"),
        Band(key="band", series="a", x=x, low=y - 0.1, high=y + 0.1),
        Bundle(key="bundle", series="a", x=x, ys=np.stack([y, y + 0.05])),
        Steps(
            key="steps",
            series="b",
            left=np.array([0.0, 0.5]),
            right=np.array([0.5, 1.0]),
            y=np.array([0.2, np.nan]),
        ),
        Trail(key="trail", series="a", x=x, y=y, weight=x, details={"value": y}),
        Dots(
            key="points",
            series="b",
            x=np.array([0.25]),
            y=np.array([0.2]),
            low=np.array([0.1]),
            high=np.array([0.3]),
            weight=np.array([1.0]),
        ),
    )
    return Panel(marks, Axis("x axis", -0.02, 1.02), Axis("y axis", -0.08, 1.08), ("a note",))
