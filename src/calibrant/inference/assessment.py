"""What an assessment found, and how it reads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from html import escape
from textwrap import fill
from typing import Any, Literal

from calibrant._format import decimals, p_equation
from calibrant.inference.direction import Direction
from calibrant.inference.interval import Interval
from calibrant.inference.noise_floor import NoiseFloor
from calibrant.inference.observed_expected import Ratio
from calibrant.inference.profile import Profiled
from calibrant.inference.scores import UNLIMITED, Score
from calibrant.measures.result_record import plain
from calibrant.measures.smooth_ece import Certificate

__all__ = ["FINDINGS", "LINE", "Assessment", "Finding", "finding_of"]

SCHEMA_VERSION = 1
LINE = 80
"""Width of every text."""
SMALL, SMALL_SHARE, LARGE = 0.01, 0.1, 0.05
Finding = Literal["miscalibrated", "slightly off", "no evidence", "inconclusive"]
FINDINGS: Mapping[Finding, str] = {
    "miscalibrated": "more error than chance explains",
    "slightly off": "more error than chance explains, but little of it",
    "no evidence": "no more error than chance explains, and a large error is ruled out",
    "inconclusive": "no more error than chance explains, but too few rows to rule out a large one",
}
"""What an assessment can find, and what that means: the words of every table and page."""
MOST_SHOWN = 3
"""Ranges of predictions that a table names."""


def finding_of(miscalibrated: bool, high: float, event_rate: float) -> Finding:
    """What was found, in the words of `FINDINGS`.

    An error is small below 0.01 and a tenth of the rarer outcome's rate, and large above 0.05 or that
    rate, judged by the upper end of its interval.
    """
    rarer = min(event_rate, 1.0 - event_rate)
    if miscalibrated:
        return "slightly off" if high < min(SMALL, SMALL_SHARE * rarer) else "miscalibrated"
    return "no evidence" if high <= min(LARGE, rarer) else "inconclusive"


@dataclass(frozen=True)
class Assessment:
    """How well calibrated predictions are, and how sure that is.

    Attributes
    ----------
    smooth_ece : float
        SmoothECE of the sample: the plug-in, which is above 0 even for calibrated predictions. Read it
        beside the noise floor.
    interval : Interval
        For the population's SmoothECE. It excludes 0 exactly when calibration is rejected.
    noise_floor : NoiseFloor
        Mean SmoothECE of calibrated predictions like these.
    p_value : float
        P-value of "the predictions are calibrated".
    observed_expected : Ratio
        Events seen over events predicted.
    relative : float
        SmoothECE over the event rate; infinite where no event was seen.
    direction : Direction
        Which way, and where.
    mean_prediction, event_rate : float
        Their difference is the bias.
    brier, log_loss : Score
        With skill, calibration and refinement parts.
    n, dropped, clusters : int, mapping, int or None
        Rows, rows left out by reason, and clusters if rows are dependent.
    bandwidth, certificate, scale : float, Certificate, str
        How SmoothECE was computed, and a bound on its numerical error.
    confidence, seed, margin : float, int, float or None
        As they were asked for.
    corrected_p_value : float or None
        For one of several groups (`assess_by`): corrected for how many there are. The finding is
        then by this one.
    profile : Profiled or None
        The numbers of a profile, if one was asked for.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.assess([0, 0, 1, 1], [0.1, 0.4, 0.6, 0.9])
    >>> found.miscalibrated, found.n
    (False, 4)
    >>> found.interval.low <= found.smooth_ece <= found.interval.high
    True
    """

    smooth_ece: float
    interval: Interval
    noise_floor: NoiseFloor
    p_value: float
    observed_expected: Ratio
    relative: float
    direction: Direction
    mean_prediction: float
    event_rate: float
    brier: Score
    log_loss: Score
    n: int
    dropped: Mapping[str, int]
    clusters: int | None
    bandwidth: float
    certificate: Certificate
    scale: str
    confidence: float
    seed: int
    margin: float | None = None
    corrected_p_value: float | None = None
    profile: Profiled | None = None

    @property
    def level(self) -> float:
        """The largest p-value that rejects calibration: 1 - confidence, up to rounding."""
        return 1.0 - self.confidence + 1e-12

    @property
    def judged_p_value(self) -> float:
        """The p-value by which calibration is judged: the corrected one of a group, else its own."""
        return self.p_value if self.corrected_p_value is None else self.corrected_p_value

    @property
    def miscalibrated(self) -> bool:
        """Whether calibration is rejected at the level 1 - confidence."""
        return self.judged_p_value <= self.level

    def corrected(self, p_value: float) -> Assessment:
        """The same of one group among several, with a p-value that accounts for all of them.

        Where that does not reject calibration any more, the interval starts at 0.
        """
        held = p_value > self.level
        interval = replace(self.interval, low=0.0) if held else self.interval
        return replace(self, corrected_p_value=p_value, interval=interval)

    @property
    def finding(self) -> Finding:
        """What was found, in the words of `FINDINGS`."""
        return finding_of(self.miscalibrated, self.interval.high, self.event_rate)

    @property
    def decision(self) -> Literal["within", "beyond", "inconclusive"] | None:
        """Where the interval lies with respect to the margin; None without one."""
        if self.margin is None:
            return None
        if self.interval.high <= self.margin:
            return "within"
        return "beyond" if self.interval.low > self.margin else "inconclusive"

    @property
    def verdict(self) -> str:
        """The finding in one line."""
        found = self.finding.replace("no evidence", "no evidence of miscalibration")
        line = (
            f"{found}: {self.smooth_ece:.3g}, noise floor {self.noise_floor.value:.2g}, "
            f"{p_equation(self.judged_p_value)}"
        )
        if self.corrected_p_value is not None:
            line += " (corrected)"
        if self.miscalibrated and str(self.direction) != "no clear direction":
            line += f"; {self.direction}"
        if self.decision is not None:
            place = {"within": "within", "beyond": "beyond", "inconclusive": "inconclusive about"}
            line += f"; {place[self.decision]} the margin {self.margin:g}"
        return line

    def rows(self) -> list[tuple[str, str]]:
        """What the text table and the HTML table show, line by line."""
        share = f"{100 * self.confidence:g}%"
        rows = [
            ("SmoothECE", decimals(self.smooth_ece)),
            (
                f"  {share} interval",
                f"{decimals(self.interval.low)} to {decimals(self.interval.high)}",
            ),
            ("  noise floor", decimals(self.noise_floor.value)),
            ("  calibrated?", p_equation(self.p_value)),
        ]
        if self.corrected_p_value is not None:
            rows.append(("    among all groups", p_equation(self.corrected_p_value)))
        rows += [
            (
                "  over the event rate",
                f"{self.relative:.3g}" if self.event_rate > 0 else "no event seen",
            ),
            ("observed / expected", str(self.observed_expected)),
            ("mean prediction", decimals(self.mean_prediction)),
            ("event rate", decimals(self.event_rate)),
            ("direction", str(self.direction)),
        ]
        if self.miscalibrated:
            for region in self.direction.regions[:MOST_SHOWN]:
                rows.append(("  predictions", f"{region.ends}: {region.error}"))
        for name, score in (("Brier score", self.brier), ("log loss", self.log_loss)):
            parts = f"{decimals(score.calibration)} calibration + {decimals(score.refinement)} refinement"
            skill = (
                "none: one outcome only"
                if math.isnan(score.skill)
                else decimals(score.skill, places=3)
            )
            rows += [(name, f"{decimals(score.value)} = {parts}"), ("  skill", skill)]
            if score.at_most is not None and decimals(score.at_most) != decimals(score.value):
                most = f"up to {decimals(score.at_most)}"
                rows.append(
                    ("  of the rows", most if score.at_most < UNLIMITED else "no upper limit")
                )
        size = f"{self.n:,}"
        if self.clusters is not None:
            size += f" in {self.clusters:,} clusters"
        rows.append(("rows", size))
        rows += [("  dropped", f"{k:,}: {reason}") for reason, k in self.dropped.items()]
        rows.append(
            (
                "bandwidth",
                f"{self.bandwidth:.4g} ± {self.certificate.total:.1g}, {self.scale} scale",
            )
        )
        return rows

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows())
        lines = [f"{name:<{width}}  {text}" for name, text in self.rows()]
        beside = [] if self.profile is None else ["", str(self.profile)]
        return "\n".join([fill(self.verdict, LINE), "", *lines, *beside])

    def __repr__(self) -> str:
        low, high = decimals(self.interval.low), decimals(self.interval.high)
        return (
            f"Assessment({decimals(self.smooth_ece)}, {low} to {high}, noise floor "
            f"{decimals(self.noise_floor.value)}, {p_equation(self.p_value)}, n={self.n})"
        )

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name.strip())}</th><td>{escape(text)}</td></tr>"
            for name, text in self.rows()
        )
        beside = "" if self.profile is None else self.profile._repr_html_()
        return f"<p><b>{escape(self.verdict)}</b></p><table>{body}</table>{beside}"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; numbers that are not finite are None."""
        values = {item.name: plain(getattr(self, item.name)) for item in fields(self)}
        if self.profile is None:
            del values["profile"]
        return {
            "schema": SCHEMA_VERSION,
            "verdict": self.verdict,
            "miscalibrated": bool(self.miscalibrated),
            "finding": self.finding,
            "decision": self.decision,
            **values,
        }
