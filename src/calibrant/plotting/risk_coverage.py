"""The risk-coverage diagram: how often answers are wrong, by the share that is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import CONFIDENCE
from calibrant._format import decimals
from calibrant.data.rows import InputOptions
from calibrant.decisions.certify import OperatingPoint
from calibrant.decisions.selective import Selective, selective
from calibrant.errors import Code, Function, InputError
from calibrant.measures.result_record import rows_text
from calibrant.plotting.axis import Axis
from calibrant.plotting.diagram import Diagram, laid_out, series_of, who
from calibrant.plotting.legend_words import UNCERTAIN
from calibrant.plotting.looks import Color, as_name
from calibrant.plotting.panel import Band, Line, Mark, Panel

__all__ = ["RiskCoverageDiagram", "risk_coverage_diagram"]


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverageDiagram(Diagram):
    """The picture of a `Selective`.

    Attributes
    ----------
    selective : Selective
        The curve and the areas under it.
    point : OperatingPoint or None
        A certified threshold to mark, as `certify(...).above`.

    Examples
    --------
    >>> diagram = risk_coverage_diagram([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5])
    >>> diagram.to_svg().startswith("<svg")
    True
    """

    selective: Selective
    point: OperatingPoint | None = None

    def __post_init__(self) -> None:
        """The curve is read-only already."""

    @property
    def label(self) -> str:
        """The number as the picture writes it."""
        return f"AURC {decimals(self.selective.aurc)}"

    def __repr__(self) -> str:
        rows = rows_text(self.selective.n, self.selective.dropped)
        return f"RiskCoverageDiagram({self.label}, {rows})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """The curve, by name."""
        return self.selective.curve._asdict()

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        point = None if self.point is None else self.point.to_dict()
        return {"kind": "risk-coverage", **self.selective.to_dict(), "point": point}

    def panel(self, *, name: str = "", color: Color | None = None, interval: bool = True) -> Panel:
        """The marks of the picture: the curve, its limits, and the risk of answering everything."""
        name = as_name(name)
        series = series_of(name)
        curve, risk = self.selective.curve, self.selective.risk
        marks: list[Mark] = [
            Line(
                key="diagonal",
                ink="neutral",
                x=np.array([0.0, 1.0]),
                y=np.array([risk, risk]),
                says="if every case were answered",
            ),
            *self._band(interval),
            Line(
                key="curve",
                series=series,
                x=curve.coverage,
                y=curve.risk,
                details={
                    "threshold": curve.threshold,
                    "share answered": curve.coverage,
                    "share wrong": curve.risk,
                },
                says=f"{who(name)}, surest answers first",
            ),
        ]
        notes = [self.label, f"n = {self.selective.n:,}"]
        if self.point is not None:
            at = np.full(2, self.point.coverage)
            ends = np.array([0.0, self.point.risk_bound])
            says = "the certified threshold"
            marks.append(Line(key="point", ink="accent", x=at, y=ends, dash="dashed", says=says))
            notes.append(f"certified at {decimals(self.point.threshold, places=3)}")
        top = max(float(np.quantile(curve.high, 0.9)), 1.2 * risk, 0.02)
        axes = (
            Axis("share of cases answered", -0.02, 1.02),
            Axis("share of answers wrong", -0.04 * top, min(1.15 * top, 1.04)),
        )
        return laid_out(marks, axes, notes, name=name, color=color)

    def _band(self, interval: bool) -> list[Mark]:
        curve, says = self.selective.curve, UNCERTAIN
        if not interval:
            return []
        return [
            Band(
                key="interval",
                ink="neutral",
                x=curve.coverage,
                low=curve.low,
                high=curve.high,
                says=says,
            )
        ]


def risk_coverage_diagram(
    y_true: Any,
    y_prob: Any = None,
    *,
    point: OperatingPoint | None = None,
    cluster: Any = None,
    abstained: int = 0,
    confidence: float = CONFIDENCE,
    **options: Unpack[InputOptions],
) -> RiskCoverageDiagram:
    """The risk-coverage curve as a picture.

    Parameters
    ----------
    y_true : array, Sketch, Sketches or Selective
        1 for a right answer, 0 for a wrong one; or what `selective` gave, and nothing else.
    y_prob : array
        Confidence in each answer.
    point : OperatingPoint, optional
        A certified threshold to mark: `certify(...).above`.
    cluster, abstained, confidence, **options
        As in `selective`.

    Returns
    -------
    RiskCoverageDiagram
        With `plot`, `chart`, `save` and `to_frame`.

    Examples
    --------
    >>> risk_coverage_diagram([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5])
    RiskCoverageDiagram(AURC 0.1967, n=5)
    """
    if point is not None and not isinstance(point, OperatingPoint):
        raise InputError(
            "must be an operating point",
            argument="point",
            seen=point,
            cure="Take one from {certify}, such as {example}.",
            certify=Function("certify"),
            example=Code("certify(...).above"),
        )
    if isinstance(y_true, Selective):
        if y_prob is not None or cluster is not None or abstained or options:
            raise InputError(
                "must be left out beside a Selective", argument="y_prob", cure="Pass it alone."
            )
        return RiskCoverageDiagram(y_true, point)
    curve = selective(
        y_true, y_prob, cluster=cluster, abstained=abstained, confidence=confidence, **options
    )
    return RiskCoverageDiagram(curve, point)
