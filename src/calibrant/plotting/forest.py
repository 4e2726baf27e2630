"""The forest plot: the SmoothECE of every group with its interval, beside the noise floor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._format import group_text
from calibrant.errors import InputError, show_value
from calibrant.inference.assessment import Assessment
from calibrant.measures.result_record import plain
from calibrant.plotting.artists import display_name
from calibrant.plotting.diagram import Diagram, Style
from calibrant.plotting.frame import SMALL, Frame
from calibrant.plotting.verdict import verdict_of

__all__ = ["ForestPlot", "forest_plot"]

Floats = NDArray[np.float64]

MOST_NAMED = 40
"""Lines that fit a page; of more, the first ones are drawn and the axis label says so."""


@dataclass(frozen=True, eq=False, repr=False)
class ForestPlot(Diagram):
    """The SmoothECE of groups or models, one line for each, in the order in which they came.

    Attributes
    ----------
    names : tuple of str
    estimate, low, high, floor : float64[k]
        SmoothECE, the ends of its interval, and the noise floor: the mean of calibrated predictions.
    miscalibrated : bool[k]
        As the assessments judge it: of groups, corrected for how many there are.
    verdicts : tuple of str
        The finding for each, in a few words.
    rows : int64[k]
    confidence : float
        Confidence of the intervals.
    """

    names: tuple[str, ...]
    estimate: Floats
    low: Floats
    high: Floats
    floor: Floats
    miscalibrated: NDArray[np.bool_]
    verdicts: tuple[str, ...]
    rows: NDArray[np.int64]
    confidence: float

    @property
    def label(self) -> str:
        """The finding over all groups."""
        return f"{int(self.miscalibrated.sum())} of {len(self.names)} miscalibrated"

    def __repr__(self) -> str:
        return f"ForestPlot({self.label})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """A row for each group."""
        return {
            "name": np.array(self.names, dtype=object),
            "smooth_ece": self.estimate,
            "low": self.low,
            "high": self.high,
            "noise_floor": self.floor,
            "miscalibrated": self.miscalibrated,
            "verdict": np.array(self.verdicts, dtype=object),
            "rows": self.rows,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        groups = {"kind": "forest", "confidence": self.confidence, "groups": self.columns()}
        return dict(plain(groups))

    def frame(self) -> Frame:
        """One named line for each group, and an axis of SmoothECE."""
        count = min(len(self.names), MOST_NAMED)
        which = f" (first {count} of {len(self.names)})" if count < len(self.names) else ""
        top = max(float(self.high[:count].max()), float(self.floor[:count].max()), 1e-6)
        share = f"{100 * self.confidence:g}%"
        legend = {"floor": "Noise floor: mean of calibrated predictions"}
        for key, text in (("calibrated", "No miscalibration detected"), ("off", "Miscalibrated")):
            if (self.miscalibrated[:count] == (key == "off")).any():
                legend[key] = f"{text}, with {share} interval"
        return Frame(
            title=self.label[0].upper() + self.label[1:],
            subtitle="",
            xlabel=f"SmoothECE{which}",
            ylabel="",
            xlim=(-0.02 * top, 1.06 * top),
            ylim=(-0.6, count - 0.4),
            legend=legend,
            names=tuple(display_name(name, 32) for name in self.names[:count])[::-1],
        )

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """Noise floors as bars, estimates with their intervals, and the finding above each."""
        count = min(len(self.names), MOST_NAMED)
        y = np.arange(count, dtype=np.float64)[::-1]
        theme, width = style.theme, style.linewidth or 1.8
        grey = {"color": theme.reference, "alpha": theme.reference_alpha}
        drawn: dict[str, list[Any]] = {
            "floor": [ax.hlines(y, 0.0, self.floor[:count], linewidth=7, **grey)]
        }
        kinds = (("calibrated", False, theme.reference), ("off", True, theme.accent))
        for key, bad, color in kinds:
            of = np.flatnonzero(self.miscalibrated[:count] == bad)
            if of.size:
                look = {**style.of_point, "color": color}
                label = look.pop("label", None)
                bars = ax.hlines(y[of], self.low[of], self.high[of], linewidth=width, **look)
                dots = {"s": 30, "zorder": 3, "linewidths": 0, "label": label, **look}
                drawn[key] = [ax.scatter(self.estimate[of], y[of], **dots), bars]
        text = {"fontsize": SMALL - 1.0, "color": theme.muted, "textcoords": "offset points"}
        drawn["verdicts"] = [
            ax.annotate(verdict, (0.0, at), xytext=(0, 6), **text)
            for verdict, at in zip(self.verdicts, y, strict=False)
        ]
        return drawn


def forest_plot(assessments: Mapping[Any, Assessment]) -> ForestPlot:
    """Forest plot of assessments: SmoothECE with its interval and noise floor, for each group.

    Parameters
    ----------
    assessments : GroupAssessments or mapping of name to Assessment
        What `assess_by` gave, the worst first; or assessments by name, in the order in which to draw.

    Returns
    -------
    ForestPlot
        With `plot`, `save`, `to_svg` and `to_frame`.

    Examples
    --------
    >>> from calibrant.inference.assess import assess
    >>> y = [0, 0, 1, 1, 0, 1]
    >>> forest_plot({"a": assess(y, [0.1, 0.3, 0.4, 0.8, 0.6, 0.9]), "b": assess(y, [0.5] * 6)})
    ForestPlot(0 of 2 miscalibrated)
    """
    valid = isinstance(assessments, Mapping) and assessments
    if not valid or not all(isinstance(one, Assessment) for one in assessments.values()):
        raise InputError(
            f"`assessments` must map names to assessments; it is {show_value(type(assessments).__name__)}.",
            argument="assessments",
            hint="Make them with `assess_by`.",
        )
    every = list(assessments.values())
    names = [", ".join(map(group_text, k if isinstance(k, tuple) else (k,))) for k in assessments]
    return ForestPlot(
        names=tuple(names),
        estimate=np.array([one.smooth_ece for one in every]),
        low=np.array([one.interval.low for one in every]),
        high=np.array([one.interval.high for one in every]),
        floor=np.array([one.noise_floor.value for one in every]),
        miscalibrated=np.array([one.miscalibrated for one in every]),
        verdicts=tuple(verdict_of(one).short for one in every),
        rows=np.array([one.n for one in every], dtype=np.int64),
        confidence=every[0].confidence,
    )
