"""A layered Altair chart that can stand beside a copy of itself; needs Altair.

Altair tells the parameters of composed charts apart by their names. Every chart that is built therefore
gets names of its own, and a chart that is written alone gives them up again: the same picture is the
same JSON, and two of the same picture side by side do not share a slider or a legend.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import altair as alt

__all__ = ["LayeredChart", "parameter_tag"]

_numbers = itertools.count(1)
_NAMED = re.compile(r'"name": "[a-z]+(_[0-9a-f]{10})(n\d+)"')


def parameter_tag(digest: str) -> str:
    """An ending for parameter names from ten hexadecimal digits: no other chart has the same."""
    return f"{digest}n{next(_numbers)}"


class LayeredChart(alt.LayerChart):  # type: ignore[misc]
    """Layers whose parameters are named after their data alone, unless part of a larger chart."""

    def to_dict(self, *args: Any, context: dict[str, Any] | None = None, **options: Any) -> Any:
        """The specification as a dictionary, as of any Altair chart."""
        spec = super().to_dict(*args, context=context, **options)
        if context is not None and not context.get("top_level", True):
            return spec
        text = json.dumps(spec)
        for digest, number in set(_NAMED.findall(text)):  # names in the data may look like these
            text = re.sub(rf"{digest}{number}(?!\d)", digest, text)
        return json.loads(text)
