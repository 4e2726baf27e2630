"""The forest plot: the error of every group with its interval, beside what chance alone would show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import require_count
from calibrant._format import group_text
from calibrant.errors import Function, InputError, TypeName
from calibrant.inference.assessment import Assessment
from calibrant.plotting.axis import Axis
from calibrant.plotting.diagram import Diagram, plain
from calibrant.plotting.looks import as_name, shortened
from calibrant.plotting.panel import Dots, Mark, Panel, Steps
from calibrant.plotting.verdict import verdict_on_assessment

__all__ = ["ForestPlot", "forest_plot"]

Floats = NDArray[np.float64]

MOST_NAMED = 40


@dataclass(frozen=True, eq=False, repr=False)
class ForestPlot(Diagram):
    """The SmoothECE of groups or models, one line for each, in the order in which they came.

    Attributes
    ----------
    names : tuple of str
    estimate, low, high, floor : float64[k]
        SmoothECE, the ends of its interval, and the noise floor.
    miscalibrated : bool[k]
        As the assessments judge it: of groups, corrected for how many there are.
    verdicts : tuple of str
        What is wrong with each, in a few words.
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
        """The finding as the picture writes it."""
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
        out: dict[str, Any] = plain(
            {"kind": "forest", "confidence": self.confidence, "groups": self.columns()}
        )
        return out

    def panel(self, *, name: str = "", most: int = MOST_NAMED) -> Panel:
        """The marks of the picture.

        Parameters
        ----------
        name : str
            Written in a corner.
        most : int
            Lines that are drawn; the first ones, and the caption of the axis says how many are not.
        """
        require_count("most", most)
        count = min(len(self.names), int(most))
        said = zip(self.names[:count], self.verdicts, strict=False)
        names = tuple(f"{shortened(name, 36)}\n{verdict}" for name, verdict in said)[::-1]
        top = max(float(np.max(self.high[:count])), float(np.max(self.floor[:count])), 1e-6)
        left_out = len(self.names) - count
        which = f", the first {count} of {len(self.names)}" if left_out else ""
        label = f"average error (SmoothECE{which})"
        return Panel(
            tuple(self._marks(count)),
            Axis(label, -0.02 * top, 1.06 * top),
            Axis("", -0.7, count - 0.3, names=names),
            notes=(as_name(name),) if as_name(name) else (),
            finding=f"Forest plot of {len(self.names)} groups. {self.label}. {self._worst()}",
        )

    def _worst(self) -> str:
        k = int(np.lexsort((self.estimate, self.low))[-1])
        ends = f"{self.low[k]:.3g} to {self.high[k]:.3g}"
        words = f"{self.estimate[k]:.3g} ({ends}): {self.verdicts[k]}"
        return f"Largest for certain: {self.names[k]}, {words}."

    def _marks(self, count: int) -> list[Mark]:
        y = np.arange(count, dtype=np.float64)[::-1]
        floor = Steps(
            key="floor",
            ink="neutral",
            left=np.zeros(count),
            right=self.floor[:count],
            y=y,
            thick=True,
            says="what chance alone would show",
        )
        marks: list[Mark] = [floor]
        share = f"{100 * self.confidence:g}%"
        words = ("not clearly miscalibrated", "miscalibrated")
        for bad, ink in ((False, "neutral"), (True, "accent")):
            of = self.miscalibrated[:count] == bad
            if not of.any():
                continue
            x, at = self.estimate[:count][of], y[of]
            marks += [
                Steps(
                    key="interval",
                    ink=ink,  # type: ignore[arg-type]
                    left=self.low[:count][of],
                    right=self.high[:count][of],
                    y=at,
                ),
                Dots(
                    key="estimate",
                    ink=ink,  # type: ignore[arg-type]
                    x=x,
                    y=at,
                    low=at,
                    high=at,
                    weight=np.full(x.size, 0.4),
                    details={
                        "SmoothECE": x,
                        "low": self.low[:count][of],
                        "high": self.high[:count][of],
                        "noise floor": self.floor[:count][of],
                        "rows": self.rows[:count][of].astype(np.float64),
                    },
                    says=f"{words[bad]}, with its {share} interval",
                ),
            ]
        return marks


def forest_plot(assessments: Mapping[Any, Assessment]) -> ForestPlot:
    """The error of every group with its interval and noise floor, as a picture.

    Parameters
    ----------
    assessments : GroupAssessments or mapping of name to Assessment
        What `assess_by` gave, the worst first; or assessments by name, in the order in which to draw.

    Returns
    -------
    ForestPlot
        With `plot`, `chart`, `save`, `to_svg` and `to_frame`.

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
            "must map names to assessments",
            argument="assessments",
            seen=TypeName.of(assessments),
            cure="Make them with {assess_by}.",
            assess_by=Function("assess_by"),
        )
    every = list(assessments.values())
    names = [", ".join(map(group_text, k if isinstance(k, tuple) else (k,))) for k in assessments]

    def column(values: Any) -> Floats:
        return np.array(list(values), dtype=np.float64)

    return ForestPlot(
        names=tuple(names),
        estimate=column(one.smooth_ece for one in every),
        low=column(one.interval.low for one in every),
        high=column(one.interval.high for one in every),
        floor=column(one.noise_floor.value for one in every),
        miscalibrated=np.array([one.miscalibrated for one in every]),
        verdicts=tuple(verdict_on_assessment(one).short for one in every),
        rows=np.array([one.n for one in every], dtype=np.int64),
        confidence=every[0].confidence,
    )
