"""The risk-coverage diagram: the share of wrong answers against the share of answers given."""

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
from calibrant.errors import InputError, show_value
from calibrant.measures.result_record import plain
from calibrant.plotting.artists import band, line, straight
from calibrant.plotting.diagram import Diagram, Style
from calibrant.plotting.frame import Frame


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverageDiagram(Diagram):
    """The picture of a `Selective`.

    Attributes
    ----------
    selective : Selective
        The curve and the areas under it.
    point : OperatingPoint or None
        A certified threshold to mark, as `certify(...).above`.
    bands : bool
        Whether the curve's limits are drawn; not for dependent rows.

    Examples
    --------
    >>> diagram = risk_coverage_diagram([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5])
    >>> diagram.to_svg().startswith("<svg")
    True
    """

    kind, source = "risk-coverage", "selective"

    selective: Selective
    point: OperatingPoint | None = None
    bands: bool = True

    @property
    def label(self) -> str:
        """The number as text."""
        return f"AURC {decimals(self.selective.aurc)}"

    def columns(self) -> dict[str, NDArray[Any]]:
        """The curve, by name."""
        return self.selective.curve._asdict()

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, for JSON."""
        return {**super().to_dict(), "point": plain(self.point)}

    def frame(self) -> Frame:
        """Shares of answers given and of wrong ones among them."""
        curve, risk = self.selective.curve, self.selective.risk
        top = max(float(np.quantile(curve.high, 0.9)), 1.2 * risk, 0.02)
        legend = {"curve+confidence_band": "This model, most confident answers first"}
        legend["diagonal"] = "All cases answered"
        note = ""
        if self.point is not None:
            legend["point"] = "Certified threshold"
            note = f", certified at {decimals(self.point.threshold, places=3)}"
        return Frame(
            title=self.label,
            subtitle=f"n = {self.selective.n:,}{note}",
            xlabel="Coverage: share of cases answered",
            ylabel="Risk: share of answers wrong",
            ylim=(-0.04 * top, min(1.15 * top, 1.04)),
            legend=legend,
        )

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """The curve with its limits, and the risk of answering everything."""
        curve, risk, theme = self.selective.curve, self.selective.risk, style.theme
        drawn: dict[str, list[Any]] = {}
        if not style.beside_others:
            drawn["diagonal"] = [straight(ax, theme, (risk, risk))]
        if self.bands:
            drawn["confidence_band"] = [
                band(ax, curve.coverage, curve.low, curve.high, **style.of_band)
            ]
        drawn["curve"] = [line(ax, curve.coverage, curve.risk, **style.of_line(1.8))]
        if self.point is not None:
            at, top = self.point.coverage, self.point.risk_bound
            dashed = {"color": theme.accent, "linewidth": 1.4, "linestyle": "--", "zorder": 2.8}
            drawn["point"] = [straight(ax, theme, (0, top), (at, at), **dashed)]
        return drawn


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
        With `plot`, `save` and `to_frame`.

    Examples
    --------
    >>> risk_coverage_diagram([1, 1, 0, 1, 0], [0.9, 0.8, 0.7, 0.6, 0.5])
    RiskCoverageDiagram(AURC 0.1967, n=5)
    """
    if point is not None and not isinstance(point, OperatingPoint):
        raise InputError(
            f"`point` must be an operating point; it is {show_value(point)}.",
            argument="point",
            hint="Take one from `certify`, such as certify(...).above.",
        )
    if isinstance(y_true, Selective):
        if y_prob is not None or cluster is not None or abstained or options:
            raise InputError(
                "Beside a Selective, everything else must be left out.", argument="y_prob"
            )
        return RiskCoverageDiagram(y_true, point)
    curve = selective(
        y_true, y_prob, cluster=cluster, abstained=abstained, confidence=confidence, **options
    )
    return RiskCoverageDiagram(curve, point)
