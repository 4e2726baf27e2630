"""The contents of a report as blocks, in reading order, laid out as one page of HTML or as Markdown."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._format import decimals, p_text
from calibrant._optional import require
from calibrant.inference.assessment import FINDINGS, MISCALIBRATED, TOO_FEW, WITHIN_MARGIN
from calibrant.inference.compare import Comparison
from calibrant.inference.find_groups import FoundGroups
from calibrant.inference.groups import GroupAssessments
from calibrant.outcomes.distributions import DistributionAssessment
from calibrant.outcomes.quantiles import QuantileAssessment
from calibrant.outcomes.survival import HorizonRisk
from calibrant.plotting.diagram import Diagram
from calibrant.plotting.forest import forest_plot, gap_plot
from calibrant.plotting.outcomes import pit_diagram, quantile_diagram
from calibrant.plotting.themes import DARK, LIGHT, Theme
from calibrant.plotting.verdict import number_text
from calibrant.reporting.classes import CONFIDENT, ClassFindings
from calibrant.reporting.summary import (
    MEASURE_NAMES,
    STARTS,
    GroupSummary,
    Outcome,
    Summary,
    shown_names,
    shown_text,
)

LEVELS: dict[str, str] = {MISCALIBRATED: "bad", WITHIN_MARGIN: "good"}
"""Colours of findings: red, and green only within a margin that was given; all else is grey."""
MOST_SHOWN = 8
"""Small diagrams, and pairs of models, that fit a page; a longer table of pairs is folded away."""
FIRST = ("SmoothECE", "interval", "noise floor", "calibration test", "observed / expected", "rows")
"""Numbers on the first screen, by the ends of their names."""
NUMBER = re.compile(r"([<±]? ?[-+]?(\d[\d,.]*(e[-+]?\d+)?%?|∞)( to )?)+|–")
_SPECIAL = re.compile(r"([\\`*_{}\[\]#|~])")
_OUTLINE = re.compile(r' d="([^"]*)"')
_NEEDLESS = re.compile(r" font-family: [^;]*;| transform=\"rotate\(-0 [^\"]*\"|(?<=>)\s+(?=<)")
"""Fonts, which the style sheet names, rotations by nothing, and indentation."""
STRAIGHT, HALVINGS = 0.05, 4
"""Points off a line that nobody sees, and how often half of an outline's points may go."""
WIDTH = 4.4
"""Inches of a picture: wide enough for its legend, and two fit beside each other."""
TITLES = {
    FoundGroups: "Groups that nobody named",
    HorizonRisk: "Risk by a horizon",
    QuantileAssessment: "Quantile forecasts",
    DistributionAssessment: "Predictive distributions",
}
ADVICE: dict[type, str] = {
    FoundGroups: "in groups: look at the worst of them, and recalibrate by group "
    "(`recalibration.GroupRecalibrator`) or state their gaps with the predictions. One map for all rows does "
    "not close gaps of opposite sign.",
    HorizonRisk: "with the risks: recalibrate them on the rows of `survival.at_horizon`, or state observed "
    "over expected with them.",
    QuantileAssessment: "with the quantiles: fit them again, or state their coverage with them.",
    DistributionAssessment: "with the distributions: recalibrate them (`distributions.PITRecalibrator`), or "
    "state their coverage with them.",
    ClassFindings: "with the classes: recalibrate them together (`choose_recalibrator`), or state the errors "
    "of the worst.",
}
"""Advice on what is miscalibrated beside the predictions of yes or no."""
SCORE_NAMES = {"smooth_ece": "SmoothECE", "brier": "Brier score", "log_loss": "log loss"}


@dataclass(frozen=True)
class Table:
    """A table; with `fold`, it is folded away under that title."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    fold: str = ""
    sortable: bool = False

    @property
    def numeric(self) -> list[bool]:
        """Columns of numbers, which are set to the right."""
        columns = zip(*self.rows, strict=True)
        return [all(NUMBER.fullmatch(cell) for cell in column) for column in columns]


@dataclass(frozen=True)
class Picture:
    """A diagram with the label that screen readers announce, and a caption."""

    diagram: Diagram
    label: str
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A heading and what is below it; with a `line`, it is folded away under both."""

    title: str
    blocks: Sequence[Block]
    line: str = ""


Block: TypeAlias = str | list[str] | Table | Picture | list[Picture] | Section


@dataclass(frozen=True)
class Contents:
    """Contents of a page, from top to bottom."""

    level: str
    headline: str
    sentences: Sequence[str]
    figures: Sequence[tuple[str, str]]
    picture: Picture | None
    sections: Sequence[Section]


def contents_of(summary: Summary) -> Contents:
    """Everything that is shown."""
    groups, finding = summary.groups, summary.finding
    figures: list[tuple[str, str]] = []
    picture: Picture | None = None
    if not groups:
        level, headline = "unsure", _sentence(summary.verdict)
        sentences, sections = [], []
    elif finding is None:
        (group,) = groups
        level = level_of(group.assessment.finding)
        headline, sentences = _headline(group), [f"What to do: {_advice(group)}"]
        names = [(name.strip(), text) for name, text in group.assessment.rows()]
        figures = [(name, text) for name, text in names if name.endswith(FIRST)]
        picture, sections = _diagram(group), _particulars(group)
    else:
        levels = {level_of(group.assessment.finding) for group in groups}
        unsure = "unsure" in levels or summary.too_few
        level = "bad" if "bad" in levels else "unsure" if unsure else "good"
        headline, sentences = finding.sentences[0], _sentences_on_many(summary, finding)
        plot = forest_plot({group.name: group.assessment for group in groups})
        picture = Picture(plot, f"Forest plot of {summary.noun}")
        sections = _sections_on_many(summary, finding)
    if wrong := summary.elsewhere:
        level = "bad"
        if groups:
            headline = _with_others(summary, headline, [text for _, text in wrong])
        alone = groups and summary.calibrated  # "nothing" is no advice beside what is wrong
        sentences = [*([] if alone else sentences), *_advice_on({kind for kind, _ in wrong})]
    sections += [_outcome(one) for one in summary.outcomes]
    if summary.classes is not None:
        sections.append(_classes(summary.classes))
    made = [
        f"calibrant {summary.version}, seed {summary.seed}, scale {summary.scale}. "
        "The same data and seed give the same page, byte for byte.",
        "Every interval and p-value takes the rows for independent, unless clusters were given. "
        "Several predictions of one event are not independent.",
    ]
    sections.append(Section("How this was made", [made]))
    return Contents(level, headline, sentences, figures, picture, sections)


def _with_others(summary: Summary, headline: str, others: Sequence[str]) -> str:
    """The headline, and what other sections find to be miscalibrated."""
    first, *rest = map(_sentence, others)
    if summary.calibrated and others[0].startswith(STARTS[FoundGroups]):
        first = f"Calibrated on average, but not {others[0]}."
    elif summary.calibrated:
        first = f"{headline} But {others[0]}."
    else:
        first = f"{headline} {first}"
    return " ".join([first, *rest])


def _advice_on(kinds: set[type]) -> list[str]:
    return [f"What to do {advice}" for kind, advice in ADVICE.items() if kind in kinds]


def level_of(finding: str) -> str:
    """Colour of a finding: bad, good or unsure."""
    return LEVELS.get(finding, "unsure")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# -- one sample ----------------------------------------------------------------------------------


def _headline(group: GroupSummary) -> str:
    """The finding, in the words of the diagram's title."""
    sentence = _sentence(group.diagram.verdict.sentence)
    return f"Miscalibrated. {sentence}" if group.diagram.verdict.clear else sentence


def _advice(group: GroupSummary) -> str:
    """Advice on what to do."""
    one = group.assessment
    below = f"below {number_text(one.interval.high)} with {100 * one.confidence:g}% confidence"
    if one.finding == WITHIN_MARGIN:
        return f"use the predictions as they are. The error is {below}."
    if one.finding == TOO_FEW:
        return f"collect more rows. So far the error is only known to be {below}."
    if one.finding != MISCALIBRATED:
        return f"nothing. The error is {below}; state that number, not that there is no error."
    helps = group.recalibration is not None and group.recalibration.helps
    return f"{'recalibrate' if helps else 'state the error with the predictions'}. {_gain(group)}"


def _gain(group: GroupSummary) -> str:
    """Gain from recalibration, by the scores of its table."""
    effect = group.recalibration
    if effect is None:
        return (
            "What recalibration would gain is not known: it needs single rows, or sketches without "
            "clusters, and both outcomes in either half of them."
        )
    if effect.left_alone:
        return "Recalibration would leave these predictions as they are: its map finds nothing to gain."
    if group.assessment.finding == TOO_FEW:
        return "There are too few rows to tell whether recalibration would help."
    if not effect.helps:
        return "Recalibration would not help: on rows left out of the fit, not all scores improve."
    before, after = (number_text(one.smooth_ece) for one in (effect.before, effect.after))
    return f"Recalibration would bring SmoothECE from {before} to {after}, on rows left out of the fit."


def _diagram(group: GroupSummary, caption: str = "") -> Picture:
    sentence, label = group.diagram.verdict.sentence, group.diagram.label
    text = f"Reliability diagram of {group.name}: {sentence}. {label}, {group.diagram.n:,} rows."
    return Picture(group.diagram, text, caption)


def _particulars(group: GroupSummary) -> list[Section]:
    """Sections on one sample, or one group."""
    one = group.assessment
    regions = [_sentence(str(region)) for region in one.direction.regions]
    where: list[Block] = [regions if regions else "No range of predictions stands out."]
    if regions and not one.miscalibrated:
        where.insert(0, "Chance may explain all of this: calibration is not rejected.")
    if not group.diagram.bands:
        where.append(
            "The diagram has no bands: they would take rows of one cluster to be independent."
        )
    if group.curve:
        columns = [name.replace("_", " ") for name in group.curve[0]]
        points = [
            [decimals(value, 3 if value <= 1.0 else 0) for value in point.values()]
            for point in group.curve
        ]
        where.append(Table(columns, points, "The curve as a table"))
    numbers = [[name.strip(), text] for name, text in one.rows()]
    where.append(Table(["", ""], numbers, "All numbers"))
    measures = [
        [MEASURE_NAMES[line.name], decimals(line.value), line.misses] for line in group.measures
    ]
    other = Table(["Measure", "Value", "What it misses"], measures)
    sections = [
        Section("Where the error is", where),
        Section("What recalibration would gain", _recalibration(group)),
    ]
    if group.decisions is not None:
        header, *rows = group.decisions.benefit.rows()
        label = f"Decision curve of {group.name}: {group.decisions.label}"
        curve = Picture(group.decisions, label)
        table = Table(header, rows, "The decision curve as a table")
        blocks: list[Block] = [f"Net benefit: {group.decisions.label}.", curve, table]
        sections.append(Section("If you act on these predictions", blocks))
    sections += _profile(group)
    return [
        *sections,
        Section("Other measures, side by side", [other]),
        Section("Notes on the data", [list(group.notes)]),
    ]


def _recalibration(group: GroupSummary) -> list[Block]:
    """Scores and diagrams before and after."""
    effect = group.recalibration
    of = "" if group.assessment.classes is None else "confidence: "
    few = group.assessment.finding == TOO_FEW
    if effect is None or effect.left_alone or few:
        return [_gain(group)]
    scores = [
        [
            shown if name == "smooth_ece" else of + shown,
            *(decimals(getattr(one, name)) for one in (effect.before, effect.after)),
        ]
        for name, shown in SCORE_NAMES.items()
    ]
    halves = "clusters" if group.assessment.clusters else "rows"
    label = f"Reliability diagram of {group.name}, recalibrated"
    after = Picture(effect.diagram, label, "Recalibrated, on rows left out of the fit")
    return [
        _gain(group),
        Table(["On rows left out of the fit", "as they are", "recalibrated"], scores),
        f"The {halves} were split into two halves at random; each was recalibrated by a map learned from "
        "the other (the default one).",
        [_diagram(group, "As they are"), after],
    ]


def _profile(group: GroupSummary) -> list[Section]:
    profile, diagram = group.assessment.profile, group.profile_diagram
    if profile is None:
        return []
    tables = [profile.cells()] if profile.quantities else []
    tables += [table.cells() for table in profile.tables]
    blocks: list[Block] = [Table(header, rows) for header, *rows in tables]
    if diagram is not None:
        blocks.append(Picture(diagram, f"{group.name}: {diagram.label}"))
    blocks += [f"{name}: {note}" for name, note in profile.notes]
    sources = dict.fromkeys(entry.source for entry in profile.entries if entry.source)
    blocks += [f"Sources: {'; '.join(sources)}."] if sources else []
    return [Section(f"Profile: {profile.name}", blocks)]


def _outcome_diagram(found: Outcome) -> Diagram | None:
    """Gaps, coverage of quantiles, or the histogram of the transform; a risk has the reliability diagram."""
    if isinstance(found, FoundGroups):
        return gap_plot(found) if found.groups else None
    if isinstance(found, QuantileAssessment):
        return quantile_diagram(found)
    return pit_diagram(found) if isinstance(found, DistributionAssessment) else None


def _outcome(found: Outcome) -> Section:
    """Verdict, picture and table of found groups, survival, quantiles or distributions."""
    header, *rows = found.rows()
    rows = [[shown_text(name), *row] for name, *row in rows]
    title, diagram = TITLES[type(found)], _outcome_diagram(found)
    picture = [] if diagram is None else [Picture(diagram, f"{title}: {diagram.label}")]
    table = [Table(header, rows)] if rows else []
    return Section(title, [_sentence(shown_text(found.verdict, longest=200)), *picture, *table])


# -- several models, classes or groups -----------------------------------------------------------


def _sentences_on_many(summary: Summary, finding: GroupAssessments) -> list[str]:
    """Sentences beside the headline: the finding, groups left out, advice on the worst."""
    groups = summary.groups
    sentences = list(finding.sentences[1:])
    if summary.comparison is not None:
        sentences.append(_sentence(summary.comparison.verdict))
    rest = next((group for group in groups if group.stands_for > 1), None)
    if rest is not None:
        sentences.append(
            f"The {len(groups) - 1} largest groups are shown one by one; the other {rest.stands_for:,} are "
            "taken together."
        )
    if len(finding) > len(groups):
        sentences.append(f"The {len(groups)} worst are shown, of {len(finding):,}.")
    if finding.miscalibrated:
        name, label = groups[0].name, groups[0].diagram.label
        sentences.append(f"The worst is {name}, {label}. What to do with it: {_advice(groups[0])}")
    return sentences


def _sections_on_many(summary: Summary, finding: GroupAssessments) -> list[Section]:
    """A table of all, pairs of models, small multiples, and a folded section on each."""
    groups, nouns = summary.groups, summary.noun
    multiples = [
        _diagram(group, f"{group.name}: {group.assessment.finding}")
        for group in groups[:MOST_SHOWN]
    ]
    few = f" (the {MOST_SHOWN} worst)" if len(groups) > MOST_SHOWN else ""
    each = [
        Section(
            _heading(finding.by, key, group),
            _particulars(group),
            f"{group.diagram.label}, {group.assessment.finding}",
        )
        for key, group in zip(finding, groups, strict=False)  # the worst, of many classes
    ]
    adjusted = (
        "The finding goes by the corrected p-value: among many calibrated ones about one in twenty has a "
        "p-value below 0.05 by chance. Intervals are for the error of the population."
    )
    return [
        Section(f"All {nouns}", [_table(finding, len(groups)), adjusted]),
        *_comparison(summary.comparison),
        Section(f"Reliability diagrams{few}", [multiples]),
        Section(f"The {nouns} one by one", each),
    ]


def _heading(by: tuple[str, ...], key: Any, group: GroupSummary) -> str:
    """Heading of a group: its values after the names of their columns."""
    if by == ("model",) or group.stands_for > 1:
        return group.name
    if len(by) == 1:
        return f"{shown_text(by[0])} {group.name}"
    return ", ".join(
        map(shown_text, (f"{name} {value}" for name, value in zip(by, key, strict=True)))
    )


def _table(finding: GroupAssessments, shown: int) -> Table:
    """The table of the finding, under names that are fit to be shown."""
    header, *rows = finding.rows()
    names = shown_names(group.key for group in finding.groups)
    named = [[name, *row[1:]] for name, row in zip(names, rows, strict=True)]
    chosen = [*named[:shown], *named[len(finding) :]]
    return Table([shown_text(header[0]), *header[1:]], chosen, sortable=True)


def _comparison(found: Comparison | None) -> list[Section]:
    """Differences of SmoothECE between models on the same rows, the clearest first."""
    if found is None:
        return []
    names = dict(zip(found.assessments, shown_names(found.assessments), strict=True))
    rows = [
        [
            f"{names[one.first]} less {names[one.second]}",
            decimals(one.value),
            f"{decimals(one.low)} to {decimals(one.high)}",
            p_text(one.p_value_adjusted),
        ]
        for one in found.differences
    ]
    columns = ["models", "difference", f"{100 * found.confidence:g}% interval", "p, corrected"]
    note = "Differences of SmoothECE. The interval leaves 0 exactly where the test rejects."
    fold = f"All {len(rows)} pairs" if len(rows) > MOST_SHOWN else ""
    table = Table(columns, rows, fold)
    return [Section("Comparison in pairs", [_sentence(found.verdict), table, note])]


def _classes(found: ClassFindings) -> Section:
    """The worst classes, and what is mixed up with confidence."""
    blocks: list[Block] = []
    if found.finding is not None:
        diagrams = found.diagrams
        worst = [
            Picture(diagram, f"Reliability diagram of {name}: {diagram.label}", name)
            for name, diagram in zip(shown_names(diagrams), diagrams.values(), strict=True)
        ]
        table = _table(found.finding, len(found.worst))
        title = "The worst classes, each against the rest"
        blocks += [*found.sentences, Section(title, [table, worst])]
    sentence = f"No prediction was made with a confidence of {CONFIDENT:g} or more."
    if found.confident:
        sentence = (
            f"Of the {found.confident:,} predictions at a confidence of {CONFIDENT:g} or more, "
            f"{found.wrong:,} are wrong; calibrated ones would be wrong {found.expected:.1f} times."
        )
    errors = [
        [
            *shown_names([error.said]),
            *shown_names([error.true]),
            f"{error.rows:,}",
            decimals(error.confidence),
        ]
        for error in found.errors
    ]
    table = Table(["Predicted", "True", "Rows", "Mean confidence"], errors)
    blocks.append(Section("Wrong with confidence", [sentence, *([table] if errors else [])]))
    return Section("Classes", blocks)


# -- the page and the text -----------------------------------------------------------------------


def _colors(theme: Theme) -> list[str]:
    named = [getattr(theme, f.name) for f in fields(theme) if f.type == "str" and f.name != "name"]
    return [*named, *theme.series]


DARK_OF_LIGHT = dict(zip(_colors(LIGHT), _colors(DARK), strict=True))
"""Each colour of a light picture, and its counterpart in the dark."""


@cache
def _template() -> Any:
    """The page, compiled once."""
    jinja2 = require("jinja2", caller="report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["svg"] = lambda picture: jinja2.filters.Markup(_svg(picture))
    return environment.from_string(_file("page.html"))


def render_html(summary: Summary) -> str:
    """One self-contained page, as text: it opens from disk and sends no request."""
    script = _file("page.js")
    html: str = _template().render(
        page=contents_of(summary),
        made=summary,
        levels=LEVELS,
        findings=FINDINGS,
        policy=_policy(script),
        style=_file("page.css") + _variables(),
        script=script,
    )
    return html


def _svg(picture: Picture) -> str:
    """The picture, in colours that follow the theme of the page, with its label for screen readers."""
    svg = picture.diagram.to_svg(width=WIDTH)
    svg = _NEEDLESS.sub("", _OUTLINE.sub(_short_outline, svg))
    for color in DARK_OF_LIGHT:
        svg = svg.replace(color, f"var({_variable(color)})")
    label = escape(picture.label, quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)


def _short_outline(outline: re.Match[str]) -> str:
    """Path to a tenth of a point, without points that lie on the line between their neighbours."""
    if {"C", "Q"} & set(outline[1]):  # circles are short as they are
        return outline[0]
    parts = []
    for part in outline[1].split("M")[1:]:
        points = np.array(re.findall(r"-?[\d.]+", part), dtype=np.float64).reshape(-1, 2)
        for _ in range(HALVINGS):
            points = points[_bends(points)]
        places = " ".join(f"{place:.1f}".removesuffix(".0") for place in points.ravel())
        parts.append(f"M{places}{'z' * ('z' in part)}")
    return f' d="{"".join(parts)}"'


def _bends(points: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Every second point, and of the others those that are off the line between their neighbours."""
    kept = np.ones(len(points), dtype=bool)
    before, between, after = points[:-2:2], points[1:-1:2], points[2::2]
    (dx, dy), (x, y) = (after - before).T, (between - before).T
    kept[1:-1:2] = np.abs(dx * y - dy * x) > STRAIGHT * np.hypot(dx, dy)
    return kept


def _policy(script: str) -> str:
    """Only this script may run, and nothing may be fetched: the browser enforces it."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
        f"img-src data:; script-src 'sha256-{digest}'"
    )


def _variable(color: str) -> str:
    """Name of the style sheet's variable that holds a colour of the light theme."""
    return f"--c-{color[1:]}"


def _variables() -> str:
    """Variables for the colours of the pictures; print is always light."""
    light = "".join(f"{_variable(color)}:{color};" for color in DARK_OF_LIGHT)
    dark = "".join(f"{_variable(color)}:{other};" for color, other in DARK_OF_LIGHT.items())
    return (
        f":root{{{light}}}"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
    )


def _file(name: str) -> str:
    return (files("calibrant.reporting") / name).read_text(encoding="utf-8")


def render_markdown(summary: Summary) -> str:
    """The report as Markdown; equal summaries give equal bytes."""
    page = contents_of(summary)
    parts = [f"# {escaped(summary.title)}"]
    parts += [escaped(summary.subject)] * bool(summary.subject)
    parts.append(f"**{escaped(page.headline)}**")
    parts += map(escaped, page.sentences)
    if page.figures:
        parts.append(_markdown_table(("", ""), page.figures))
    for section in page.sections:
        parts += _block(section, 2)
    if summary.command:
        parts.append(f"Command: {escaped(summary.command)}")
    return "\n\n".join(parts) + "\n"


def _block(block: Block, level: int) -> Iterator[str]:
    """Paragraphs of a block, without the pictures."""
    if isinstance(block, str):
        yield escaped(block)
    elif isinstance(block, list):
        lines = [f"- {escaped(line)}" for line in block if isinstance(line, str)]
        yield from ["\n".join(lines)] if lines else []
    elif isinstance(block, Table):
        yield from [f"{block.fold}:"] if block.fold else []
        yield _markdown_table(block.columns, block.rows)
    elif isinstance(block, Section):
        yield f"{'#' * level} {escaped(block.title)}"
        if block.line:
            yield f"{escaped(block.line)}."
        for one in block.blocks:
            yield from _block(one, level + 1)


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(escaped(cell) for cell in cells) + " |"

    return "\n".join([line(heads), "|" + "---|" * len(heads), *map(line, rows)])


def escaped(text: str) -> str:
    r"""Text that Markdown shows as it is.

    Examples
    --------
    >>> escaped("a|b <script> *c*")
    'a\\|b &lt;script&gt; \\*c\\*'
    """
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", plain)
