"""Result of an assessment, as text, HTML, dictionary and data frame."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from html import escape
from textwrap import fill
from typing import Any, Literal

from calibrant._arguments import is_number
from calibrant._format import decimals, p_equation
from calibrant.errors import invalid
from calibrant.inference.calibration_test import Interval, NoiseFloor
from calibrant.inference.direction import NO_DIRECTION, Direction
from calibrant.inference.observed_expected import Ratio
from calibrant.inference.profile import LINE, Profiled
from calibrant.inference.scores import ClassScores, ProperScores, Score
from calibrant.measures.result_record import frame_of, plain
from calibrant.measures.smooth_ece import Certificate

SCHEMA_VERSION = 1
LARGE = 0.1
"""An error this large matters in nearly all uses: 30% that may be 20% or 40%."""
Finding = Literal[
    "miscalibrated", "within the margin", "no miscalibration detected", "too few rows"
]
FINDINGS: Mapping[Finding, str] = {
    "miscalibrated": "calibration is rejected",
    "within the margin": "the interval ends below the margin",
    "no miscalibration detected": "calibration is not rejected, and a large error is ruled out",
    "too few rows": "calibration is not rejected, and a large error is not ruled out",
}
"""Findings of an assessment, and their meaning: their only home, for every test and diagram."""
MISCALIBRATED, WITHIN_MARGIN, UNDETECTED, TOO_FEW = FINDINGS
MOST_SHOWN = 3
"""Ranges of predictions that a table names."""


def finding_of(
    miscalibrated: bool, high: float, event_rate: float, margin: float | None = None
) -> Finding:
    """Finding from the test and the upper end of the interval.

    An error is large above 0.1, or above the rate of the rarer outcome.
    """
    if margin is not None and high <= margin:
        return WITHIN_MARGIN
    if miscalibrated:
        return MISCALIBRATED
    large = min(LARGE, event_rate, 1.0 - event_rate)
    return UNDETECTED if high <= large else TOO_FEW


@dataclass(frozen=True)
class Assessment:
    """Assessment of calibration.

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
    scores : ProperScores
        `brier` and `log_loss`, each a Score: with skill, calibration and refinement parts.
    n, dropped, clusters : int, mapping, int or None
        Rows, rows left out by reason, and clusters if rows are dependent.
    bandwidth, certificate, scale : float, Certificate, str
        How SmoothECE was computed, and a bound on its numerical error.
    confidence, margin : float, float or None
        As they were asked for.
    p_value_adjusted : float or None
        Of one of several groups (`assess_by`), adjusted for their number. The finding is then by this one.
    profile : Profiled or None
        The numbers of a profile, if one was asked for.
    classes : ClassScores or None
        Scores of the whole distribution, where class probabilities were given, from files the accuracy
        alone; all else is of the confidence in the likeliest class.

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
    scores: ProperScores = field(repr=False, compare=False)
    n: int
    dropped: Mapping[str, int]
    clusters: int | None
    bandwidth: float
    certificate: Certificate
    scale: str
    confidence: float
    margin: float | None = None
    p_value_adjusted: float | None = None
    profile: Profiled | None = None
    classes: ClassScores | None = None

    @property
    def brier(self) -> Score:
        """Mean of (f - y)², with its parts."""
        return self.scores.brier

    @property
    def log_loss(self) -> Score:
        """Mean of -log of the probability given to what happened, with its parts."""
        return self.scores.log_loss

    @property
    def level(self) -> float:
        """The largest p-value that rejects calibration: 1 - confidence, up to rounding."""
        return 1.0 - self.confidence + 1e-12

    @property
    def p_value_judged(self) -> float:
        """The p-value of the finding: the adjusted one of a group, else its own."""
        return self.p_value if self.p_value_adjusted is None else self.p_value_adjusted

    @property
    def miscalibrated(self) -> bool:
        """True where calibration is rejected at the level 1 - confidence."""
        return self.p_value_judged <= self.level

    def corrected(self, p_value: float) -> Assessment:
        """Assessment of one group among several, with a p-value that accounts for all of them.

        Where that does not reject calibration any more, the interval starts at 0.
        """
        if not (is_number(p_value) and 0.0 <= p_value <= 1.0):
            raise invalid("p_value", "be a number between 0 and 1", p_value)
        held = p_value > self.level
        interval = replace(self.interval, low=0.0) if held else self.interval
        return replace(self, p_value_adjusted=p_value, interval=interval)

    def of_confidence(self) -> Assessment:
        """Assessment of the confidence in the likeliest class, with the accuracy at least of all classes."""
        if self.classes is not None:
            return self
        return replace(self, classes=ClassScores(math.nan, math.nan, self.event_rate))

    @property
    def finding(self) -> Finding:
        """Finding, one of `FINDINGS`."""
        return finding_of(self.miscalibrated, self.interval.high, self.event_rate, self.margin)

    @property
    def decision(self) -> Literal["within", "beyond", "inconclusive"] | None:
        """Position of the interval with respect to the margin; None without one."""
        if self.margin is None:
            return None
        if self.interval.high <= self.margin:
            return "within"
        return "beyond" if self.interval.low > self.margin else "inconclusive"

    @property
    def verdict(self) -> str:
        """The finding in one line, with the numbers that it rests on."""
        line: str = self.finding
        if not self.miscalibrated:
            line += f" (could be up to {self.interval.high:.2g})"
        line += (
            f": {self.smooth_ece:.3g}, noise floor {self.noise_floor.value:.2g}, "
            f"{p_equation(self.p_value_judged)}"
        )
        if self.p_value_adjusted is not None:
            line += " (adjusted)"
        if self.miscalibrated and self.direction.label != NO_DIRECTION:
            line += f"; {self.direction.label}"
        if self.decision in ("beyond", "inconclusive"):
            place = "beyond" if self.decision == "beyond" else "not shown to be within"
            line += f"; {place} the margin {self.margin:g}"
        if self.direction.backwards:
            line += "; predictions rank backwards: are labels flipped?"
        if self.event_rate in (0.0, 1.0):
            line += f"; all outcomes are {self.event_rate:g}"
        return line

    def rows(self) -> list[tuple[str, str]]:
        """Lines of the text table and of the HTML table."""
        share = f"{100 * self.confidence:g}%"
        rows = [
            ("SmoothECE", decimals(self.smooth_ece)),
            (
                f"  {share} interval",
                f"{decimals(self.interval.low)} to {decimals(self.interval.high)}",
            ),
            ("  noise floor", decimals(self.noise_floor.value)),
            ("  calibration test", p_equation(self.p_value)),
        ]
        if self.p_value_adjusted is not None:
            rows.append(("    among all groups", p_equation(self.p_value_adjusted)))
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
        if self.classes is not None:
            scores = (
                ("log loss", self.classes.log_loss),
                ("Brier score", self.classes.brier),
                ("accuracy", self.classes.accuracy),
            )
            rows += [
                (f"all classes: {name}", decimals(score))
                for name, score in scores
                if not math.isnan(score)
            ]
        of = "" if self.classes is None else "confidence: "
        for name, score in ((f"{of}Brier score", self.brier), (f"{of}log loss", self.log_loss)):
            parts = f"{decimals(score.calibration)} calibration + {decimals(score.refinement)} refinement"
            skill = (
                "none: one outcome only"
                if math.isnan(score.skill)
                else decimals(score.skill, places=3)
            )
            rows += [(name, f"{decimals(score.value)} = {parts}"), ("  skill", skill)]
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

    def to_frame(self, backend: Any = None) -> Any:
        """Data frame with one row; see `frame_of` for the backend."""
        of_classes = {} if self.classes is None else vars(self.classes)
        row = {
            "smooth_ece": self.smooth_ece,
            "low": self.interval.low,
            "high": self.interval.high,
            "confidence": self.confidence,
            "noise_floor": self.noise_floor.value,
            "p_value": self.p_value,
            "p_value_adjusted": self.p_value_adjusted,
            "observed_expected": self.observed_expected.value,
            "relative": self.relative,
            "direction": self.direction.label,
            "mean_prediction": self.mean_prediction,
            "event_rate": self.event_rate,
            "brier": self.brier.value,
            "log_loss": self.log_loss.value,
            **{f"class_{name}": score for name, score in of_classes.items()},
            "n": self.n,
            "dropped": sum(self.dropped.values()),
            "clusters": self.clusters,
            "bandwidth": self.bandwidth,
            "scale": self.scale,
            "margin": self.margin,
            "finding": self.finding,
            "verdict": self.verdict,
        }
        return frame_of([row], backend)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; numbers that are not finite are None."""
        values: dict[str, Any] = {}
        for item in fields(self):
            shown = ("brier", "log_loss") if item.name == "scores" else (item.name,)
            values |= {name: plain(getattr(self, name)) for name in shown}
        for name in ("profile", "classes"):
            if getattr(self, name) is None:
                del values[name]
        return {
            "schema": SCHEMA_VERSION,
            "verdict": self.verdict,
            "miscalibrated": bool(self.miscalibrated),
            "finding": self.finding,
            "decision": self.decision,
            **values,
        }
