"""`compare_by`: which of several models is better calibrated, class by class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any, Literal, Unpack

import numpy as np

from calibrant._arguments import CONFIDENCE, require_choice
from calibrant.data.classes import as_class_probabilities, as_weights, top_label
from calibrant.data.rows import InputOptions, as_form, require_forms_of_classes
from calibrant.data.sketches import Sketches
from calibrant.errors import Function, InputError, Option, TooFewRows, TypeName, Where
from calibrant.inference.compare import compare
from calibrant.inference.comparison import Comparison
from calibrant.inference.correction import Correction, adjusted_p_values, require_correction
from calibrant.measures.result_record import plain

__all__ = ["GroupComparisons", "compare_by"]


@dataclass(frozen=True, eq=False)
class GroupComparisons(Mapping[Any, Comparison]):
    """From class to Comparison, the clearest difference first; corrected over all classes and pairs.

    Attributes
    ----------
    comparisons : mapping of class to Comparison
        Comparisons of the classes that have enough rows.
    too_few : tuple
        Classes with fewer than two rows of a model.
    by : str
        "class", or "predicted" where the rows are those for which a model said this class.
    correction : str
        For the number of classes and pairs.
    """

    comparisons: Mapping[Any, Comparison]
    too_few: tuple[Any, ...]
    by: str
    correction: Correction

    def __getitem__(self, name: Any) -> Comparison:
        return self.comparisons[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    @property
    def wins(self) -> dict[str, int]:
        """For how many classes each model is better calibrated than all others."""
        wins = dict.fromkeys(sorted(next(iter(self.values())).assessments), 0)
        for one in self.values():
            best = next(iter(one.assessments))
            rivals = [pair for pair in one.differences if best in (pair.first, pair.second)]
            wins[best] += all(pair.adjusted_p_value <= one.level for pair in rivals)
        return wins

    @property
    def verdict(self) -> str:
        """The finding in one line."""
        tested = f"corrected for testing {sum(len(one.differences) for one in self.values()):,}"
        best = [f"{name} for {number:,}" for name, number in self.wins.items() if number]
        if not best:
            return f"no class tells the models apart ({len(self):,} classes, {tested})"
        return f"better calibrated: {', '.join(best)} of {len(self):,} classes ({tested})"

    def __str__(self) -> str:
        lines = [self.verdict, ""]
        lines += [f"{name}: {one.verdict}" for name, one in self.items()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"GroupComparisons(by {self.by}: {self.verdict})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        out: dict[str, Any] = plain(
            {
                "verdict": self.verdict,
                "by": self.by,
                "correction": self.correction,
                "too_few_rows": list(self.too_few),
                "comparisons": [{self.by: name, **one.to_dict()} for name, one in self.items()],
            }
        )
        return out


def compare_by(
    y_true: Any,
    y_probs: Mapping[str, Any] | None = None,
    *,
    cluster: Any = None,
    confidence: float = CONFIDENCE,
    correction: Correction = "holm",
    seed: int = 0,
    **options: Unpack[InputOptions],
) -> GroupComparisons:
    """Compare the calibration of several models for each class.

    Parameters
    ----------
    y_true : array[n], or mapping of name to Sketches
        The class of each row. Or, with models on rows of their own and no `y_probs`, each model's sketches
        by class, as `classwise` and `top_label` make them.
    y_probs : mapping of name to array[n, classes]
        Each model's class probabilities, or logits with `from_logits=True`.
    cluster : array, optional
        What makes rows dependent; see `compare`.
    confidence, seed
        As in `compare`. Intervals are those of each pair by itself.
    correction : {"holm", "bh", "bonferroni", "none"}
        For the number of classes and pairs of models together.
    **options
        `multiclass="classwise"`, the default, compares each class against the rest, on the same rows;
        "top_label" compares the confidence among the rows for which a model said this class, which differ
        from model to model. `classes`, `from_logits`, `sample_weight` as in `assess`.

    Returns
    -------
    GroupComparisons
        From class to Comparison; `.verdict` is one line.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.dirichlet([1.0, 1.0, 1.0], 3000)
    >>> y = (truth.cumsum(axis=1) > rng.random((3000, 1))).argmax(axis=1)
    >>> timid = 0.5 * truth + 0.5 / 3
    >>> print(compare_by(y, {"sharp": truth, "timid": timid}).verdict)
    better calibrated: sharp for 3 of 3 classes (corrected for testing 3)
    """
    require_correction(correction)
    if isinstance(y_true, Mapping):
        models = _require_models(y_true, "y_true")
        by, classes = _by_of(models, y_probs, cluster, options), _within(models)
    else:
        view = _view(options)
        models = _require_models(y_probs, "y_probs")
        by = "class" if view == "classwise" else "predicted"
        each = _classwise if view == "classwise" else _top_label
        classes = each(y_true, models, cluster, options)
    alone: dict[Any, Comparison] = {}
    too_few = []
    for name, rows in classes:
        try:
            alone[name] = compare(*rows[0], **rows[1], confidence=confidence, correction="none",
                                  seed=seed)  # fmt: skip
        except TooFewRows:
            too_few.append(name)
    if not alone:
        raise TooFewRows(
            "a comparison needs two rows or more of a class, and no class has them for all models",
            seen=len(too_few),
            saying="there are {} classes",
            cure="Pass more rows.",
        )
    return GroupComparisons(_corrected(alone, correction), tuple(too_few), by, correction)


def _require_models(models: Any, argument: str) -> Mapping[str, Any]:
    if not isinstance(models, Mapping) or len(models) < 2:
        raise InputError(
            "must be a mapping of two models or more to their class probabilities",
            argument=argument,
            seen=TypeName.of(models) if not isinstance(models, Mapping) else len(models),
            cure="Name each model, with its predictions for all rows.",
        )
    return models


def _by_of(models: Mapping[str, Any], y_probs: Any, cluster: Any, options: InputOptions) -> str:
    """What the classes of sketches are called, which must be one word for all models."""
    if y_probs is not None or cluster is not None or options:
        raise InputError(
            "cannot be combined with other rows: sketches hold outcomes and predictions",
            argument="y_true",
            cure="Pass the mapping of sketches alone.",
        )
    for name, sketches in models.items():
        if not isinstance(sketches, Sketches) or len(sketches.by) != 1:
            raise InputError(
                "must hold sketches by class",
                argument="y_true",
                seen=TypeName.of(sketches),
                where=Where(group=repr(str(name))),
                cure="Make them with {classwise}, or pass the outcomes first.",
                classwise=Function("classwise"),
            )
    return str(next(iter(models.values())).by[0])


def _view(options: InputOptions) -> Literal["classwise", "top_label"]:
    view: Any = options.get("multiclass") or "classwise"
    require_choice("multiclass", view, ("classwise", "top_label"))
    names = ("from_logits", "from_logprobs", "percent")
    forms: dict[str, Any] = {name: options.get(name, False) for name in names}
    require_forms_of_classes(
        as_form(**forms), options.get("labels", "binary"), options.get("pos_label")
    )
    if options.get("on_invalid", "raise") != "raise":
        raise InputError(
            "cannot leave rows out for one class or model alone",
            argument="on_invalid",
            seen=options.get("on_invalid"),
            cure="Leave such rows out first.",
        )
    return "top_label" if view == "top_label" else "classwise"


def _classwise(
    y_true: Any, y_probs: Mapping[str, Any], cluster: Any, options: InputOptions
) -> Iterator[tuple[Any, tuple[tuple[Any, ...], dict[str, Any]]]]:
    """What `compare` takes for each class: was it this class, and each model's probability of it."""
    reading: dict[str, Any] = {
        k: options[k] for k in ("from_logits", "classes") if options.get(k) is not None
    }
    models = {}
    for name, prob in y_probs.items():
        try:
            matrix = as_class_probabilities(y_true, prob, **reading)
            matrix.top()  # refuses the first bad row
        except InputError as error:
            raise error.at(group=repr(str(name))) from error
        models[str(name)] = matrix
    first = next(iter(models.values()))
    weight = as_weights(options.get("sample_weight"), first.n)
    values = {
        name: np.concatenate([block for _, block in matrix.blocks()])
        for name, matrix in models.items()
    }
    settings = {} if weight is None else {"sample_weight": weight}
    if cluster is not None:
        settings["cluster"] = cluster
    for place, called in enumerate(first.classes):
        probs = {
            name: np.minimum(matrix[:, place].astype(np.float64), 1.0)
            for name, matrix in values.items()
        }
        yield called, ((first.labels == place, probs), settings)


def _top_label(
    y_true: Any, y_probs: Mapping[str, Any], cluster: Any, options: InputOptions
) -> Iterator[tuple[Any, tuple[tuple[Any, ...], dict[str, Any]]]]:
    """The sketches of each class that every model said."""
    if cluster is not None:
        raise InputError(
            "needs the same rows for all models, and each has those for which it said a class",
            argument="cluster",
            cure="Compare with {option}.",
            option=Option("multiclass", "classwise"),
        )
    names = ("from_logits", "classes", "sample_weight")
    reading = {k: v for k, v in dict[str, Any](options).items() if k in names and v is not None}
    yield from _within({name: top_label(y_true, p, **reading) for name, p in y_probs.items()})


def _within(
    by_model: Mapping[str, Sketches],
) -> Iterator[tuple[Any, tuple[tuple[Any, ...], dict[str, Any]]]]:
    """The sketches of each class that every model has."""
    models = {str(name): sketches for name, sketches in by_model.items()}
    said = dict.fromkeys(key for sketches in models.values() for key in sketches)
    for called in said:
        own = {name: sketches[called] for name, sketches in models.items() if called in sketches}
        if len(own) == len(models):
            yield called, ((own,), {})


def _corrected(alone: Mapping[Any, Comparison], correction: Correction) -> dict[Any, Comparison]:
    """The comparisons with p-values corrected over all of them, the clearest first."""
    pairs = [(name, pair) for name, one in alone.items() for pair in one.differences]
    adjusted = adjusted_p_values([pair.p_value for _, pair in pairs], correction)
    found: dict[Any, list[Any]] = {name: [] for name in alone}
    for (name, pair), p in zip(pairs, adjusted, strict=True):
        found[name].append(replace(pair, adjusted_p_value=p))
    order = sorted(alone, key=lambda name: found[name][0].p_value)
    return {
        name: replace(alone[name], differences=tuple(found[name]), correction=correction)
        for name in order
    }
