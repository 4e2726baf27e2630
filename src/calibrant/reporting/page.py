"""The report as one self-contained page: it opens from disk and sends no request."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from calibrant._optional import require
from calibrant.reporting.charts import (
    DARK_OF_LIGHT,
    MOST_EXPLORED,
    MOST_SHOWN,
    Look,
    color_variable,
    explored,
    looks,
    main_spec,
    overview,
    small_svg,
    svg,
)
from calibrant.reporting.summary import GroupSummary, Summary
from calibrant.reporting.view import view_of

__all__ = ["json_in_html", "render"]


def render(summary: Summary) -> str:
    """The page, as text; equal summaries give equal bytes."""
    jinja2 = require("jinja2", caller="report")
    markup = jinja2.filters.Markup
    diagrams = {group.name: group.diagram for group in summary.groups}
    worst = worst_first(summary.groups)
    told_apart = looks(worst)
    shown = {name: diagrams[name] for name in worst[:MOST_SHOWN]}
    explore, steps = explored({name: diagrams[name] for name in worst[:MOST_EXPLORED]}, told_apart)
    charts = {
        "colors": DARK_OF_LIGHT,
        "steps": steps,
        "charts": {"main": main_spec(diagrams, told_apart), "explore": explore},
    }
    scripts = [_libraries(), _text("page.js")]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_text("page.html"))
    html: str = template.render(
        page=view_of(summary),
        legend=_legend(worst, shown, told_apart),
        picture=markup(svg(overview(shown, told_apart), _title(", ".join(shown)))),
        pictures=[_pictures(group, len(diagrams) > 1, markup) for group in summary.groups],
        policy=_policy(scripts),
        style=markup(_text("page.css") + _colors()),
        charts=markup(json_in_html(charts)),
        scripts=[markup(script) for script in scripts],
    )
    return html


def worst_first(groups: Sequence[GroupSummary]) -> list[str]:
    """Names in the order of their error, the largest first."""
    return [g.name for g in sorted(groups, key=lambda group: -group.assessment.smooth_ece)]


def _legend(
    diagrams: Collection[str], shown: Collection[str], looks: Mapping[str, Look]
) -> list[dict[str, Any]]:
    """Names with the look of their curve, the largest error first; none for a single one."""
    if len(diagrams) == 1:
        return []
    return [
        {
            "name": name,
            "color": color_variable(looks[name].color),
            "dash": looks[name].dash,
            "shown": name in shown,
        }
        for name in diagrams
    ]


def _pictures(group: GroupSummary, several: bool, markup: Any) -> dict[str, Any]:
    """Small pictures of one group: with its regions marked, and before and after recalibration."""
    own = markup(small_svg(group.diagram, group.name, _title(group.name)))
    repaired, after = group.repaired_diagram, ""
    if repaired is not None:
        title = _title(f"{group.name}, recalibrated")
        after = markup(small_svg(repaired, group.name, title))
    return {"marked": own if several else "", "before": "" if several else own, "after": after}


def _title(name: str) -> str:
    return f"Reliability diagram of {name}"


def json_in_html(value: Any) -> str:
    r"""JSON that cannot end the script element that holds it.

    Examples
    --------
    >>> json_in_html({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _policy(scripts: list[str]) -> str:
    """Only these scripts may run, and nothing may be fetched: the browser enforces it."""
    hashes = " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"
        for script in scripts
    )
    return (
        f"default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'unsafe-inline'; "
        f"img-src data:; script-src {hashes}"
    )


def _colors() -> str:
    """Variables for the colours of the pictures; print is always light."""
    light = "".join(f"{color_variable(color)}:{color};" for color in DARK_OF_LIGHT)
    dark = "".join(f"{color_variable(color)}:{other};" for color, other in DARK_OF_LIGHT.items())
    return (
        f":root{{{light}}}"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
    )


def _text(name: str) -> str:
    return (files("calibrant.reporting") / name).read_text(encoding="utf-8")


@cache
def _libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script."""
    bundle: str = require("vl_convert", caller="report").javascript_bundle()
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
