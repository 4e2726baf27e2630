"""Class probabilities: sketches of the confidence, of each predicted class, of each class, of each mix-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from calibrant.data.classes import as_class_probabilities, classwise, top_label
from calibrant.data.rows import InputOptions, as_form, require_forms_of_classes
from calibrant.data.scales import PROBABILITY, Scale
from calibrant.data.sketch import Sketch
from calibrant.data.sketches import Sketches
from calibrant.io.scan import scan

__all__ = ["ClassSketches", "class_columns", "scan_classes", "sketches_of_classes"]

SAID, TRUE = "predicted", "true class"


@dataclass(frozen=True)
class ClassSketches:
    """All classes of the same rows.

    Attributes
    ----------
    each : Sketches
        By class, one against the rest.
    said : Sketches
        The confidence, by the class that was predicted and the true one.
    """

    each: Sketches
    said: Sketches


def scan_classes(data: Any, *, y_true: Any, y_prob: Any, **reading: Any) -> ClassSketches:
    """Sketches of every class, and of every mix-up of two, from what `scan` reads; two passes.

    Examples
    --------
    >>> rows = {"y": ["a", "b", "b"], "a": [0.7, 0.2, 0.9], "b": [0.3, 0.8, 0.1]}
    >>> found = scan_classes(rows, y_true="y", y_prob=["a", "b"])
    >>> found.each, list(found.said)
    (<Sketches of 2 groups by class: 'a', 'b'>, [('a', 'a'), ('a', 'b'), ('b', 'b')])
    """
    reading = {**reading, "y_true": y_true, "y_prob": y_prob}
    each = scan(data, **{**reading, "multiclass": "classwise"})
    said = scan(data, **{**reading, "multiclass": "top_label"}, by={TRUE: y_true})
    assert isinstance(each, Sketches)
    assert isinstance(said, Sketches)
    return ClassSketches(each, said)


def class_columns(
    y_true: Any, y_prob: Any, options: InputOptions
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    """A matrix as columns of one batch, the names of those with predictions, and how `scan` reads them.

    Weights are not among the columns.
    """
    settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    forms = ("from_logits", "from_logprobs", "percent")
    form = as_form(**{name: settings.get(name, False) for name in forms})
    require_forms_of_classes(form, settings.get("labels", "binary"), settings.get("pos_label"))
    matrix = as_class_probabilities(
        y_true, y_prob, classes=settings.get("classes"), from_logits=form == "logit"
    )
    names = [f"class {place}" for place in range(len(matrix.classes))]
    columns = {"y_true": matrix.given_labels}
    columns |= {name: matrix.raw[:, place] for place, name in enumerate(names)}
    settings.setdefault("multiclass", "confidence")
    if "classes" in settings or matrix.classes != list(range(len(names))):
        settings["classes"] = matrix.classes
    settings.pop("sample_weight", None)
    return columns, names, settings


def sketches_of_classes(
    y_true: Any,
    y_prob: Any,
    *,
    scale: str | Scale | None = None,
    **options: Unpack[InputOptions],
) -> Sketch | Sketches:
    """The sketch of the confidence, or sketches by predicted class or by class.

    Examples
    --------
    >>> probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> sketches_of_classes([0, 2], probs, multiclass="classwise")
    <Sketches of 3 groups by class: 0, 1, 2>
    """
    columns, names, settings = class_columns(y_true, y_prob, options)
    weight = options.get("sample_weight")
    if settings["multiclass"] != "confidence" and scale is None:
        direct = classwise if settings.pop("multiclass") == "classwise" else top_label
        known = {name: settings[name] for name in _KNOWN if name in settings}
        return direct(y_true, y_prob, sample_weight=weight, **known)
    if weight is not None:
        columns["sample_weight"], settings["sample_weight"] = np.asarray(weight), "sample_weight"
    chosen = PROBABILITY if scale is None else scale
    return scan(columns, y_true="y_true", y_prob=names, scale=chosen, **settings)


_KNOWN = ("from_logits", "classes", "on_invalid")
