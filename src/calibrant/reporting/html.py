"""`report`: everything that can be said about predictions, as one page."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Unpack

from calibrant._files import replaced_when_whole
from calibrant.data.pairs import InputOptions
from calibrant.data.scales import Scale
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.data.sketches import Sketches
from calibrant.errors import InputError
from calibrant.inference.assess import assess, read_clustered
from calibrant.inference.assessment import Assessment
from calibrant.reporting.repair import cluster_halves
from calibrant.reporting.summary import MOST_GROUPS, Halves, Summary, summarise

__all__ = ["Report", "report"]

FORMATS = (".html", ".md", ".json")


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
        from calibrant.reporting.page import render

        return render(self.summary)

    @cached_property
    def markdown(self) -> str:
        """The same in Markdown, without the pictures."""
        from calibrant.reporting.markdown import render

        return render(self.summary)

    @property
    def json(self) -> str:
        """The same as JSON; `to_dict` says what is in it."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite are None."""
        return self.summary.to_dict()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a file whose ending (.html, .md, .json) chooses the form.

        The file appears whole or not at all.
        """
        target = Path(path)
        if target.suffix.lower() not in FORMATS:
            raise InputError(
                f"a report is saved as {', '.join(FORMATS)}; got {target.name!r}. Give the file one "
                "of these endings."
            )
        text = {".html": "html", ".md": "markdown", ".json": "json"}[target.suffix.lower()]
        with replaced_when_whole(target) as file:
            file.write_text(getattr(self, text), encoding="utf-8")
        return target

    def __repr__(self) -> str:
        names = ", ".join(group.name for group in self.summary.groups[:3])
        more = ", ..." if len(self.summary.groups) > 3 else ""
        return f"<Report {self.summary.title!r} on {names}{more}>"

    def _repr_html_(self) -> str:
        lines = "".join(
            f"<li><b>{escape(group.name)}</b>: {escape(group.assessment.verdict)}</li>"
            for group in self.summary.groups
        )
        return f"<p><b>{escape(self.summary.title)}</b></p><ul>{lines}</ul>"


def report(
    y_true: Any,
    y_prob: Any = None,
    *,
    title: str = "Calibration report",
    cluster: Any = None,
    confidence: float = 0.95,
    scale: str | Scale | None = None,
    seed: int = 0,
    limit: int = MOST_GROUPS,
    assessments: Mapping[Any, Assessment] | None = None,
    command: str = "",
    **options: Unpack[InputOptions],
) -> Report:
    """Assess predictions and lay out everything that was found.

    Parameters
    ----------
    y_true : array, Sketch, Sketches or mapping of Sketch
        Outcomes, 0 or 1; or sketches by model or group, as `calibrant.scan` gives them, and no
        `y_prob`.
    y_prob : array or mapping of arrays
        Predicted probabilities of outcome 1; for several models, name to predictions.
    title : str
        Of the page.
    cluster : array, optional
        What makes rows dependent (see `calibrant.assess`): recalibration is then tried on clusters
        that it has not seen. From sketches, give `assessments` instead; of these, the gain of
        recalibration is not estimated.
    confidence, seed
        Of intervals and draws.
    scale : str or Scale, default "probability"
        Where the smoothing happens.
    limit : int
        Most groups that are shown one by one: the largest. All others are taken together.
    assessments : mapping, optional
        Assessments that have been made already, by the keys of the sketches.
    command : str
        What was typed, to be shown at the end.
    **options
        How to read the arrays (see `InputOptions`).

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
    <Report 'Calibration report' on plain, squared>
    >>> made.save("report.html").name
    'report.html'
    """
    parts: dict[Hashable, Halves] = {}
    if isinstance(y_true, Mapping):
        if (
            y_prob is not None
            or cluster is not None
            or any(v is not None for v in options.values())
        ):
            raise InputError(
                "sketches already hold predictions, outcomes and weights; leave out `y_prob`, "
                "`cluster` and everything that describes rows."
            )
        groups = {key: _own(key, sketch, scale) for key, sketch in y_true.items()}
        by = y_true.by if isinstance(y_true, Sketches) else ()
    else:
        groups, found, parts = _from_rows(y_true, y_prob, cluster, confidence, scale, seed, options)
        assessments, by = {**found, **(assessments or {})}, ()
    return Report(
        summarise(
            groups,
            title=title,
            by=by,
            confidence=confidence,
            seed=seed,
            limit=limit,
            assessments=assessments or {},
            parts=parts,
            command=command,
        )
    )


def _own(key: Any, sketch: Any, scale: str | Scale | None) -> Sketch:
    """The sketch of a group, which may be empty."""
    if not isinstance(sketch, Sketch):
        raise InputError(
            f"a mapping without `y_prob` must hold sketches; {key!r} is a {type(sketch).__name__}. For "
            "arrays: `report(y_true, {name: y_prob})`."
        )
    return as_sketch(sketch, scale=scale) if sketch.n else sketch


def _from_rows(
    y_true: Any,
    y_prob: Any,
    cluster: Any,
    confidence: float,
    scale: str | Scale | None,
    seed: int,
    options: InputOptions,
) -> tuple[dict[Hashable, Sketch], dict[Hashable, Assessment], dict[Hashable, Halves]]:
    """A sketch of each model's rows and, where these are dependent, its assessment and two halves."""
    models = y_prob if isinstance(y_prob, Mapping) else {"predictions": y_prob}
    groups: dict[Hashable, Sketch] = {}
    found: dict[Hashable, Assessment] = {}
    parts: dict[Hashable, Halves] = {}
    for name, p in models.items():
        groups[name] = as_sketch(y_true, p, scale=scale, **options)
        if cluster is not None:
            found[name] = assess(
                y_true, p, cluster=cluster, confidence=confidence, seed=seed, scale=scale, **options
            )
            pairs, codes = read_clustered(y_true, p, cluster, **options)
            assert codes is not None
            parts[name] = cluster_halves(pairs, codes[0], groups[name].scale, seed=seed)
    return groups, found, parts
