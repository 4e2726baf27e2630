"""Report on predictions: everything that was found, as one page."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from calibrant._arguments import CONFIDENCE, require_count, require_seed
from calibrant._files import write_whole
from calibrant.data.rows import InputOptions, has_classes, is_frame
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import Sketches, is_summed
from calibrant.errors import InputError, invalid, show_value
from calibrant.inference.assess import assess, read_clustered
from calibrant.inference.assess_by import assess_by
from calibrant.inference.assessment import Assessment
from calibrant.inference.compare import compare, models_of, require_arrays
from calibrant.inference.groups import GroupAssessments
from calibrant.inference.profile import Profile
from calibrant.io.from_data import refuse_groups, sample_from
from calibrant.io.request import CLASS_COLUMN
from calibrant.io.scan import ClassSketches, ReadingOptions, class_columns, scan_classes
from calibrant.recalibration.halves import cluster_halves
from calibrant.reporting.classes import class_finding, classes_of
from calibrant.reporting.summary import (
    Halves,
    Outcome,
    Summary,
    outcomes_alone,
    shown_text,
    summarise,
)

FORMATS = {".html": "html", ".md": "markdown", ".json": "json"}
MOST_COMPARED = 8
"""Models that are compared in pairs: 28 pairs are a table that can be read."""


@dataclass(frozen=True, eq=False)
class Report:
    """A summary that can be read as a page, as Markdown or as JSON.

    Attributes
    ----------
    summary : Summary
        Everything that is said, as data.
    """

    summary: Summary

    @cached_property
    def html(self) -> str:
        """One self-contained page: it opens from disk and sends no request."""
        from calibrant.reporting.contents import render_html

        return render_html(self.summary)

    @cached_property
    def markdown(self) -> str:
        """Report in Markdown, without the pictures."""
        from calibrant.reporting.contents import render_markdown

        return render_markdown(self.summary)

    @property
    def json(self) -> str:
        """Report as JSON; `to_dict` says what is in it."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite are None."""
        return self.summary.to_dict()

    def to_frame(self, backend: Any = None) -> Any:
        """Data frame with a row for each group, or for the only sample; see `frame_of` for the backend."""
        summary = self.summary
        found = summary.finding or [*(g.assessment for g in summary.groups), *summary.outcomes][0]
        return found.to_frame(backend)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a file whose ending (.html, .md, .json) chooses the form.

        The file appears whole or not at all.
        """
        target = Path(path)
        if target.suffix.lower() not in FORMATS:
            raise invalid("path", f"end in {', '.join(FORMATS)}", target.name)
        text = getattr(self, FORMATS[target.suffix.lower()])
        return write_whole(target, text)

    def with_classes(self, sketches: ClassSketches) -> Report:
        """Report with a section on classes: the worst first, and what is mixed up with confidence.

        A report by class has their findings already, and one by predicted class has others.
        """
        finding, one = self.summary.finding, self.summary.groups[0].assessment
        if self.summary.by == CLASS_COLUMN["top_label"]:
            finding = None
        elif self.summary.by != CLASS_COLUMN["classwise"]:
            finding = class_finding(sketches.each, confidence=one.confidence)
        return Report(replace(self.summary, classes=classes_of(sketches, finding)))

    def with_outcomes(self, *found: Outcome) -> Report:
        """Report with sections on groups that `find_groups` found, survival, quantiles or distributions."""
        for one in found:
            if not isinstance(one, Outcome):
                raise InputError(
                    "`found` must be what `find_groups`, `survival.observed_expected`, `quantiles.assess` "
                    f"or `distributions.assess` gave; it is {show_value(one)}."
                )
        return Report(replace(self.summary, outcomes=found))

    def made_by(self, command: str) -> Report:
        """Report with the command that made it shown at the end."""
        return Report(replace(self.summary, command=shown_text(command, longest=2000)))

    def __repr__(self) -> str:
        if not self.summary.groups:
            return f"<Report {self.summary.title!r}: {self.summary.verdict}>"
        names = ", ".join(group.name for group in self.summary.groups[:3])
        more = ", ..." if len(self.summary.groups) > 3 else ""
        return f"<Report {self.summary.title!r} on {names}{more}>"

    def _repr_html_(self) -> str:
        summary = self.summary
        verdicts = [(group.name, group.assessment.verdict) for group in summary.groups]
        if summary.elsewhere or not verdicts:
            verdicts = [("all rows", summary.verdict)]
        lines = "".join(
            f"<li><b>{escape(name)}</b>: {escape(verdict)}</li>" for name, verdict in verdicts
        )
        return f"<p><b>{escape(self.summary.title)}</b></p><ul>{lines}</ul>"


def report(
    y_true: Any = None,
    y_prob: Any = None,
    *,
    data: Any = None,
    by: Any = None,
    names: Sequence[str] | None = None,
    title: str = "Calibration report",
    cluster: Any = None,
    confidence: float = CONFIDENCE,
    scale: str | Scale | None = None,
    random_state: int = 0,
    limit: int = 20,
    assessment: Assessment | None = None,
    profile: str | Profile | None = None,
    **options: Unpack[ReadingOptions],
) -> Report:
    """Assess predictions and lay out everything that was found.

    Parameters
    ----------
    y_true : array, Sketch, Sketches, mapping of Sketch, or GroupAssessments
        Outcomes, 0 or 1; sketches by model or group, as `calibrant.scan` gives them; or what
        `calibrant.assess_by` found, which is then shown and not computed again.
    y_prob : array, or mapping, frame or array of several models
        Predicted probabilities of outcome 1; for several models, name to predictions, a frame, or an array
        with `names`. An array with a column for each class, or a frame with `multiclass` or `classes`, are
        class probabilities: `y_true` holds classes, and the page has a section on them.
    data : frame, files, Sketch or other source, optional
        What `scan` reads; `y_true`, `y_prob`, `cluster` and `sample_weight` then name columns.
    by : str or several, optional
        With `data`, the columns whose values make the groups.
    names : sequence of str, optional
        Names of the models in the columns of an array.
    title : str
        Title of the page.
    cluster : array, optional
        What makes rows dependent (see `calibrant.assess`): recalibration is then tried on clusters
        that it has not seen. Of Sketches, one of their columns; the gain of recalibration is then not
        estimated.
    confidence : float
        Of intervals.
    random_state : int
        Of the halves of rows on which recalibration is tried.
    scale : str or Scale, default "probability"
        Where the smoothing happens.
    limit : int
        How many groups to show one by one, the largest first. All others are combined. Of classes, how
        many of the worst have a section; all of them are assessed.
    assessment : Assessment, optional
        The assessment of the same rows, if you have it already.
    profile : str or Profile, optional
        The numbers your field asks for (see `calibrant.assess`), as a section of the page.
    **options
        How to read the arrays (see `calibrant.data.InputOptions`).

    Returns
    -------
    Report
        With `html`, `markdown`, `json` and `save(path)`.

    Notes
    -----
    The same data, seed and versions give the same bytes. Names from the data are shortened, cleared of
    control characters, and escaped.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(1000)
    >>> made = report(rng.random(1000) < p, {"plain": p, "squared": p**2})
    >>> made
    <Report 'Calibration report' on squared, plain>
    >>> made.save("report.html").name
    'report.html'
    """
    if isinstance(y_true, Outcome):
        _require_nothing_else(y_prob=y_prob, data=data, cluster=cluster, assessment=assessment)
        return Report(outcomes_alone(y_true, title=title))
    reading: Any = options
    by_class = paired = None
    if data is not None:
        require_arrays(data, names)
        again = by is None and not (is_summed(data) or isinstance(data, Iterator))
        again = again and not options.get("per_file")
        if again and options.get("multiclass") is None:
            if (
                isinstance(y_prob, list | dict)
                and 1 < len(y_prob) <= MOST_COMPARED
                and _is_local(data)
            ):
                paired = partial(compare, y_true, y_prob, data=data, cluster=cluster, **options)
        elif again and cluster is None:
            by_class = partial(scan_classes, data, y_true=y_true, y_prob=y_prob, **options)
        y_true, y_prob, cluster, reading = sample_from(
            data,
            y_true,
            y_prob,
            options,
            by=by,
            cluster=cluster,
            scale=scale,
            rows=profile is not None and by is None,
            groups=True,
        )
    else:
        refuse_groups(by)
    require_seed(random_state, "random_state")
    if names is not None or (is_frame(y_prob) and not {"multiclass", "classes"} & set(reading)):
        y_prob = models_of(y_prob, names)
    held = {"cluster": cluster, "assessment": assessment, **reading}
    if not isinstance(assessment, Assessment | None):
        raise invalid("assessment", "be an Assessment", assessment)
    settings: dict[str, Any] = {"confidence": confidence, "profile": profile}
    several = isinstance(y_prob, Mapping)
    many = not several and has_classes(y_prob, reading.get("multiclass"), reading.get("classes"))
    finding: GroupAssessments | Assessment
    sketches: Mapping[Any, Sketch]
    if isinstance(y_true, GroupAssessments):
        _require_nothing_else(y_prob=y_prob, **held)
        finding, sketches = y_true, y_true.sketches
    elif isinstance(y_true, Mapping):
        _require_nothing_else(y_prob=y_prob, **{**held, "cluster": None})
        if is_summed(y_true) and y_true.by == (cluster,):  # clusters are one sample
            finding = assess(y_true, cluster=cluster, scale=scale, **settings)
            sketches = {"predictions": y_true.total()}
        else:
            finding = _groups(y_true, cluster, scale, limit, settings)
            sketches = finding.sketches
    elif several or (many and reading.get("multiclass") in ("top_label", "classwise")):
        _require_nothing_else(assessment=assessment)
        settings |= {"limit": limit} if several else {}
        finding = assess_by(y_true, y_prob, cluster=cluster, scale=scale, **settings, **reading)
        sketches = finding.sketches
    else:
        sketches = {"predictions": as_sketch(y_true, y_prob, scale=scale, **reading)}
        finding = assessment or assess(
            y_true, y_prob, cluster=cluster, scale=scale, **settings, **reading
        )
    if options.get("multiclass") in ("confidence", "top_label"):
        finding = finding.of_confidence()
    parts: dict[Hashable, Halves] = {}
    if cluster is not None and y_prob is not None and not many:
        models = y_prob if several else {"predictions": y_prob}
        for name in models.keys() & sketches.keys():
            pairs, codes = read_clustered(y_true, models[name], cluster, **reading)
            assert codes is not None
            own = sketches[name].scale
            parts[name] = cluster_halves(pairs, codes[0], own, seed=random_state)
    # Of classes, which are assessed all, the worst have a section.
    of_classes = isinstance(finding, GroupAssessments) and finding.by in CLASS_COLUMN.values()
    most = require_count("limit", limit) if of_classes else None
    made = Report(
        summarise(finding, sketches, title=title, seed=random_state, parts=parts, most=most)
    )
    if several and 1 < len(y_prob) <= MOST_COMPARED:
        paired = partial(compare, y_true, y_prob, cluster=cluster, **reading)
    if paired is not None:
        compared = paired(confidence=confidence, scale=scale)
        made = Report(replace(made.summary, comparison=compared))
    if by_class is None and many and cluster is None:
        by_class = partial(_classes, y_true, y_prob, reading)
    return made if by_class is None else made.with_classes(by_class())


def _is_local(data: Any) -> bool:
    """True of files, columns by name and frames in memory, whose rows can be read again as arrays."""
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True, pass_through=True)
    return isinstance(data, str | os.PathLike | list | Mapping) or isinstance(frame, nw.DataFrame)


def _classes(y_true: Any, y_prob: Any, options: InputOptions) -> ClassSketches:
    """Every class, and every mix-up of two, of arrays."""
    columns, names, reading = class_columns(y_true, y_prob, options)
    if options.get("sample_weight") is not None:
        columns["sample_weight"] = np.asarray(options["sample_weight"])
        reading["sample_weight"] = "sample_weight"
    return scan_classes(columns, y_true="y_true", y_prob=names, **reading)


def _require_nothing_else(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"`{name}` cannot be passed beside sketches or assessments, which hold it already."
            )


def _groups(
    y_true: Mapping[Any, Any],
    cluster: Any,
    scale: str | Scale | None,
    limit: int,
    settings: dict[str, Any],
) -> GroupAssessments:
    """Groups of sketches, which may be empty."""
    own = {}
    for key, sketch in y_true.items():
        if not isinstance(sketch, Sketch):
            raise InputError(
                "`y_true` must hold sketches, where there are no predictions beside it; group "
                f"{show_value(key)} is a {type(sketch).__name__}.",
                hint='Pass arrays of models as `calibrant.report(y_true, {"a": p, "b": q})`.',
            )
        own[key] = as_sketch(sketch, scale=scale) if sketch.n else sketch
    groups = Sketches(own, by=getattr(y_true, "by", "group"))
    apart = tuple(name for name in groups.by if name != cluster)
    most = None if apart in CLASS_COLUMN.values() else limit
    return assess_by(groups, cluster=cluster, limit=most, **settings)
