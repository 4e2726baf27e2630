"""Forest plots: SmoothECE of groups beside the noise floor, and gaps of groups that were found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._format import group_text, p_equation
from calibrant.errors import InputError, show_value
from calibrant.inference.assessment import MISCALIBRATED, UNDETECTED, Assessment
from calibrant.inference.find_groups import FoundGroups
from calibrant.measures.result_record import plain
from calibrant.plotting.artists import display_name
from calibrant.plotting.diagram import Diagram, Style
from calibrant.plotting.frame import NOTE_FONT, Frame, note_in
from calibrant.plotting.verdict import verdict_of

Floats = NDArray[np.float64]

MOST_NAMED = 40
"""Lines that fit a page; of more, the first ones are drawn and the axis label says so."""

NAME_LINE = 26
"""Letters of a name in one line: the longest names have two, for which the distance of names is enough."""


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
        found = f"{int(self.miscalibrated.sum())} of {len(self.names)} miscalibrated"
        return f"{found}, all {self._kinds.pop()}" if self._alike else found

    @property
    def _kinds(self) -> set[str]:
        return {verdict.removeprefix("slightly ") for verdict in self.verdicts}

    @property
    def _alike(self) -> bool:
        """True where several groups are miscalibrated in one way, which is then said once."""
        return len(self.names) > 1 and bool(self.miscalibrated.all()) and len(self._kinds) == 1

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
        share = f"{100 * self.confidence:g}% interval"
        return _frame(
            self.names,
            [np.zeros(1), self.high, self.floor],
            self.miscalibrated,
            title=self.label[0].upper() + self.label[1:],
            notes=() if self._alike else self.verdicts,
            xlabel="SmoothECE",
            legend={
                "floor": "Expected by chance: the noise floor",
                "calibrated": f"{UNDETECTED.capitalize()}, with {share}",
                "off": f"{MISCALIBRATED.capitalize()}, with {share}",
            },
        )

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """Noise floors as bars, estimates with their intervals, and the findings where they differ."""
        count = min(len(self.names), MOST_NAMED)
        y = np.arange(count, dtype=np.float64)[::-1]
        theme = style.theme
        grey = {"color": theme.reference, "alpha": theme.reference_alpha}
        drawn: dict[str, list[Any]] = {
            "floor": [ax.hlines(y, 0.0, self.floor[:count], linewidth=7, **grey)]
        }
        drawn |= _intervals(ax, style, y, self.estimate, self.low, self.high, self.miscalibrated)
        if self._alike:
            return drawn
        inches = ax.bbox.width / ax.figure.dpi
        text = {"fontsize": NOTE_FONT, "color": theme.muted, "linespacing": 1.1, "va": "bottom"}
        drawn["verdicts"] = [
            ax.annotate(
                note_in(verdict, inches),
                (0.0, at),
                xytext=(0, 4),
                textcoords="offset points",
                **text,
            )
            for verdict, at in zip(self.verdicts, y, strict=False)
        ]
        return drawn


@dataclass(frozen=True, eq=False, repr=False)
class GapPlot(Diagram):
    """The gaps of groups that were found, one line for each, the smallest p-value on top.

    Attributes
    ----------
    found : FoundGroups
        What `find_groups` gave.
    """

    kind, source = "gaps", "found"

    found: FoundGroups

    @property
    def label(self) -> str:
        """Number of groups with a gap, among all."""
        return f"{len(self.found.shown)} of {self.found.tested:,} groups have a gap"

    def __repr__(self) -> str:
        return f"GapPlot({self.label})"

    def columns(self) -> dict[str, NDArray[Any]]:
        """A row for each group."""
        names = ("label", "gap", "low", "high", "detectable", "p_value", "n")
        return {name: np.array([getattr(one, name) for one in self.found]) for name in names}

    def frame(self) -> Frame:
        """One named line for each group, and an axis of gaps."""
        columns, share = self.columns(), f"simultaneous {100 * self.found.confidence:g}% interval"
        return _frame(
            columns["label"].tolist(),
            [np.zeros(1), columns["low"], columns["high"]],
            self._shown(),
            title=self.label,
            subtitle=p_equation(self.found.p_value),
            xlabel="Event rate less mean prediction",
            legend={
                "detectable": "Gap that would have been found with a probability below 80%",
                "calibrated": f"No gap detected, with {share}",
                "off": f"Gap, with {share}",
            },
        )

    def _shown(self) -> NDArray[np.bool_]:
        return np.array([one in self.found.shown for one in self.found])

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        """Gaps too small to be found as bars, and every gap with its interval."""
        ax.locator_params(axis="x", nbins=6)  # labels with a sign are wide
        columns = {name: values[:MOST_NAMED] for name, values in self.columns().items()}
        seen, ends = columns["detectable"], self.frame().xlim
        y = np.arange(seen.size, dtype=np.float64)[::-1]
        grey = {"color": style.theme.reference, "alpha": style.theme.reference_alpha}
        bars = ax.hlines(y, *np.clip([-seen, seen], *ends), linewidth=7, **grey)
        gap, low, high = columns["gap"], columns["low"], columns["high"]
        return {"detectable": [bars], **_intervals(ax, style, y, gap, low, high, self._shown())}


def _frame(
    names: Sequence[str],
    ends: Sequence[Floats],
    off: NDArray[np.bool_],
    *,
    legend: dict[str, str],
    xlabel: str,
    **texts: Any,
) -> Frame:
    """Frame of the first lines that fit, wide enough for their ends; legend of the kinds that there are."""
    count = min(len(names), MOST_NAMED)
    if count < len(names):
        xlabel += f" (first {count} of {len(names)})"
    shown = np.concatenate([one[:count] for one in ends])
    room = 0.04 * max(float(np.ptp(shown)), 1e-6)
    absent = {"off"} if not off[:count].any() else {"calibrated"} if off[:count].all() else set()
    return Frame(
        **texts,
        xlabel=xlabel,
        ylabel="",
        xlim=(float(shown.min()) - room, float(shown.max()) + room),
        ylim=(-0.6, count - 0.4),
        legend={key: text for key, text in legend.items() if key not in absent},
        names=tuple(fill(display_name(name, 48), NAME_LINE) for name in names[:count])[::-1],
    )


def _intervals(
    ax: Any, style: Style, y: Floats, estimate: Floats, low: Floats, high: Floats, off: Any
) -> dict[str, list[Any]]:
    """Dots with their intervals, those that are rejected in the accent colour."""
    drawn, width = {}, style.linewidth or 1.8
    kinds = (("calibrated", False, style.theme.reference), ("off", True, style.theme.accent))
    for key, bad, color in kinds:
        of = np.flatnonzero(off[: y.size] == bad)
        if of.size:
            look = {**style.of_point, "color": color}
            label = look.pop("label", None)
            bars = ax.hlines(y[of], low[of], high[of], linewidth=width, **look)
            dots = {"s": 30, "zorder": 3, "linewidths": 0, "label": label, **look}
            drawn[key] = [ax.scatter(estimate[of], y[of], **dots), bars]
    return drawn


def gap_plot(found: FoundGroups) -> GapPlot:
    """Forest plot of found groups: the gap of each with its simultaneous interval.

    Parameters
    ----------
    found : FoundGroups
        What `find_groups` gave.

    Returns
    -------
    GapPlot
        With `plot`, `save`, `to_svg` and `to_frame`.

    Examples
    --------
    >>> from calibrant.inference.find_groups import find_groups
    >>> columns = {"a": np.repeat([0, 1], 2000), "p": np.full(4000, 0.5), "y": np.tile([0, 1], 2000)}
    >>> columns["y"][:1000] = 1
    >>> gap_plot(find_groups(data=columns, y_true="y", y_prob="p", columns=["a"]))
    GapPlot(1 of 2 groups have a gap)
    """
    if not isinstance(found, FoundGroups):
        raise InputError(
            f"`found` must be what `find_groups` gave; it is {show_value(type(found).__name__)}.",
            argument="found",
        )
    if not found.groups:
        raise InputError(
            "`found` has no group with a score to draw.",
            argument="found",
            hint="`found.surprising` names the others whose outcomes differ.",
        )
    return GapPlot(found)


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
        miscalibrated=np.array([one.finding == MISCALIBRATED for one in every]),
        verdicts=tuple(verdict_of(one).short for one in every),
        rows=np.array([one.n for one in every], dtype=np.int64),
        confidence=every[0].confidence,
    )
