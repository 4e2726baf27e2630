"""Cross-fitting, and the effect of a map: scores before and after on rows that it was not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._arguments import (
    CONFIDENCE,
    generator,
    require_confidence,
    require_count,
    require_seed,
)
from calibrant._format import decimals, percent
from calibrant.data.arrays import as_array
from calibrant.data.classes import as_class_probabilities
from calibrant.data.classes import confidence as confidence_of
from calibrant.data.points import Points
from calibrant.data.rows import InputOptions, Rows, require_same_index
from calibrant.data.sketch import Sketch
from calibrant.errors import InputError, TooFewRows, invalid
from calibrant.inference.assess import read_clustered
from calibrant.inference.clusters import cluster_codes
from calibrant.inference.logistic import NEAREST_TO_THE_ENDS, logarithms
from calibrant.measures.result_record import Record
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.recalibration.class_map import ClassRecalibrator, called_classes
from calibrant.recalibration.learned_map import (
    LearnedMap,
    Recalibrator,
    event_column,
    hints_of_maps,
    require_map,
    shape_of,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Scores(Record):
    """Scores of the same rows.

    Attributes
    ----------
    log_loss, brier : float
        Mean losses; the Brier score of more than two classes is summed over classes.
    smooth_ece : float
        SmoothECE; of more than two classes, that of the confidence.
    accuracy : float
        Share of rows whose most likely class is the true one.
    auc : float
        Area under the ROC curve; NaN of more than two classes.
    """

    log_loss: float
    brier: float
    smooth_ece: float
    accuracy: float
    auc: float


@dataclass(frozen=True, repr=False)
class Effect(Record):
    """Scores before and after a map, and what it gains.

    Attributes
    ----------
    before, after : Scores
        Scores of the predictions as they are, and mapped.
    gain : float
        By how much the mean log loss falls.
    low, high : float
        Confidence interval of the gain.
    confidence : float
        Its confidence.
    n : int
        Number of rows.
    """

    before: Scores
    after: Scores
    gain: float
    low: float
    high: float
    confidence: float
    n: int

    @property
    def verdict(self) -> str:
        """One of "better", "worse" and "no clear difference", by the interval of the gain."""
        if self.low > 0.0:
            return "better"
        return "worse" if self.high < 0.0 else "no clear difference"

    @property
    def auc_cost(self) -> float:
        """Fall of the area under the ROC curve, by ties or a changed order."""
        return self.before.auc - self.after.auc

    @property
    def accuracy_cost(self) -> float:
        """Fall of the accuracy."""
        return self.before.accuracy - self.after.accuracy

    def __repr__(self) -> str:
        ranked = "accuracy" if np.isnan(self.before.auc) else "auc"
        names = {"log_loss": "log loss", "smooth_ece": "SmoothECE", ranked: ranked}
        scores = ", ".join(
            f"{shown} {decimals(getattr(self.before, name))} → {decimals(getattr(self.after, name))}"
            for name, shown in names.items()
        )
        return (
            f"Effect({self.verdict}: gain {self.gain:+.4f} ({percent(self.confidence)} interval "
            f"{self.low:+.4f} to {self.high:+.4f}), {scores}, n={self.n})"
        )


def evaluate(
    recalibrator: LearnedMap,
    y_true: Any,
    y_prob: Any = None,
    *,
    cluster: Any = None,
    cv: int | None = None,
    confidence: float = CONFIDENCE,
    random_state: int = 0,
    **options: Unpack[InputOptions],
) -> Effect:
    """Scores before and after a map on rows that it was not learned from, with an interval for the gain.

    Parameters
    ----------
    recalibrator : Recalibrator or map of classes
        One that was fitted to other rows; with `cv`, the kind of map, fitted here.
    y_true : array or Sketch
        Outcomes, 0 or 1, or classes; or a Sketch that counts rows, and no `y_prob`.
    y_prob, **options
        As for `assess`. For a map of classes, `y_prob` is what the map takes (class probabilities, or
        logits) and the options are `classes` and `on_invalid`.
    cluster : array, optional
        Which rows belong together: they are held out together, and the interval counts clusters.
    cv : int, optional
        Cross-fitting, for rows that are too few to set some aside: each row is judged by a map of the other
        `cv` - 1 folds.
    confidence : float
        Confidence of the interval of the gain.
    random_state : int
        Seed of the folds.

    Returns
    -------
    Effect

    Notes
    -----
    The interval is Student's for the mean change of the loss per row, or per cluster. Predictions of 0 and 1
    count as 6e-8 away from them. A map of all rows is a little better than those that cross-fitting judges.
    The maps of two folds do not rank rows alike: AUC, before and after, is then that of rows within a fold.

    Examples
    --------
    >>> from calibrant.recalibration import PlattRecalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(4000)
    >>> y = rng.random(4000) < p**2
    >>> platt = PlattRecalibrator().fit(p[:2000], y[:2000])
    >>> evaluate(platt, y[2000:], p[2000:]).verdict
    'better'
    >>> evaluate(PlattRecalibrator(), y, p, cv=5).verdict
    'better'
    """
    require_confidence(confidence)
    if not isinstance(recalibrator, ClassRecalibrator):
        require_map(recalibrator, "recalibrator")
    with hints_of_maps() if isinstance(recalibrator, ClassRecalibrator) else nullcontext():
        sample = Sample.read(y_true, y_prob, made=recalibrator, cluster=cluster, **options)
    fold = None if cv is None else stratified_folds(sample, cv, random_state)
    if fold is not None:
        mapped = cross_fit(recalibrator, sample, fold)
    elif isinstance(recalibrator, ClassRecalibrator):
        mapped = recalibrator.mapped(sample.given, classes=sample.names)
    else:
        mapped = recalibrator.mapped(sample.given)
    saved = log_losses(sample.y, sample.probs) - log_losses(sample.y, mapped)
    gain, error, units = mean_and_error(saved, sample.ones, sample.unit)
    from scipy.special import stdtrit

    degrees = max(units - 1.0, 1e-9)
    reach = (
        float(stdtrit(degrees, 0.5 + 0.5 * confidence)) * error * float(np.sqrt(units / degrees))
    )
    before, after = scores_of(sample, sample.probs, fold), scores_of(sample, mapped, fold)
    return Effect(before, after, gain, gain - reach, gain + reach, float(confidence), sample.n)


# -- rows --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sample:
    """Checked rows that maps are fitted to and judged on.

    Attributes
    ----------
    given : array[n] or array[n, classes]
        What a map takes: probabilities of an event, class probabilities, or logits.
    probs : float64[n] or float64[n, classes]
        The probabilities before any map.
    y : float64[n] or int64[n]
        Outcomes in [0, 1], or columns of the true classes.
    weight : float64[n] or None
        Importance of each row.
    unit : int64[n]
        Number of the row, or of the cluster that it belongs to.
    clustered, soft : bool
        Whether rows come in clusters, and whether outcomes may be fractions.
    names : list of str or None
        Names of the columns, where they are known.
    classes : sequence
        The classes as they were given.
    """

    given: NDArray[Any]
    probs: Floats
    y: NDArray[Any]
    weight: Floats | None
    unit: Integers
    clustered: bool
    soft: bool = False
    names: list[str] | None = None
    classes: Sequence[Any] = ()

    @classmethod
    def read(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        made: LearnedMap | None = None,
        cluster: Any = None,
        **options: Any,
    ) -> Sample:
        """Check rows for a map of one event, or of classes."""
        if isinstance(made, ClassRecalibrator):
            return cls._of_classes(y_true, y_prob, made, cluster, options)
        if isinstance(y_true, Sketch):
            y_true, y_prob = _rows_of_sketch(
                y_true,
                y_prob=y_prob,
                sample_weight=options.get("sample_weight"),
                cluster=cluster,
            )
        if options.get("multiclass") is None:
            y_prob = event_column(y_prob)
        rows, codes = read_clustered(y_true, y_prob, cluster, **options)
        unit = np.arange(rows.n) if codes is None else codes[0]
        return cls(rows.p, rows.p, rows.y, rows.weight, unit, codes is not None, rows.soft)

    @classmethod
    def _of_classes(
        cls,
        y_true: Any,
        y_prob: Any,
        made: ClassRecalibrator,
        cluster: Any,
        options: dict[str, Any],
    ) -> Sample:
        for name in options.keys() - {"sample_weight", "classes", "from_logits", "on_invalid"}:
            raise InputError(f"`{name}` is not known for class probabilities.", argument=name)
        shape = shape_of(y_prob)
        if len(shape) != 2:
            raise InputError(
                f"`y_prob` must have a column for each class, as the map has; its shape is {shape}.",
                argument="y_prob",
                hint="Pass class probabilities, or for one event a map such as `PlattRecalibrator()`.",
            )
        classes = options.get("classes")
        if classes is None and not hasattr(y_prob, "columns"):
            classes = made.classes_ if as_array(y_true, "y_true").dtype.kind not in "biuf" else None
        reading = {"from_logits": made.from_logits, **options, "classes": classes}
        rows = as_class_probabilities(y_true, y_prob, **reading).valid()
        n = rows.n
        unit = np.arange(n)
        require_same_index(y_true=y_true, cluster=cluster)
        if cluster is not None:
            codes = cluster_codes(cluster, n + sum(rows.dropped.values()))[0]
            unit = cluster_codes(codes if rows.kept is None else codes[rows.kept], n)[0]
        probs = rows.distributions
        return cls(
            rows.raw if made.from_logits else probs,
            probs,
            rows.labels,
            rows.weight,
            unit,
            cluster is not None,
            names=called_classes(y_prob, classes),
            classes=rows.classes,
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.y.size)

    @property
    def binary(self) -> bool:
        """True if predictions are of one event."""
        return self.probs.ndim == 1

    @property
    def ones(self) -> Floats:
        """Weights; 1 for every row where there are none."""
        return np.ones(self.n) if self.weight is None else self.weight

    def counts(self, rows: NDArray[np.bool_] | slice = slice(None)) -> Integers:
        """Number of rows of each class, among these, that have any weight."""
        used = self.y[rows][self.ones[rows] > 0.0]
        return np.bincount(used.astype(np.int64), minlength=self.probs.shape[1])


def _rows_of_sketch(sketch: Sketch, **rows: Any) -> tuple[Integers, Floats]:
    """Outcomes and predictions of a sketch that counts rows: those of a cell are alike."""
    hint = "Pass `y_true` and `y_prob` as arrays."
    for name, value in rows.items():
        if value is not None:
            raise InputError(f"`{name}` must be left out with a Sketch.", argument=name, hint=hint)
    if sketch.weighted:
        raise invalid("y_true", "count rows to be split into folds, not weights", sketch, hint)
    points = Points.of(sketch)
    counts = np.rint(points.mass).astype(np.int64)
    labels = np.repeat(np.tile([0, 1], points.p.size), counts.ravel())
    return labels, np.repeat(np.repeat(points.p, 2), counts.ravel())


# -- cross-fitting -----------------------------------------------------------------------------


def stratified_folds(sample: Sample, cv: int, random_state: int) -> Integers:
    """Fold of each row: units in random order, those of every class spread evenly, clusters whole.

    A cluster counts for the class of its first row; with one event, for having it always, sometimes or never.
    """
    require_count("cv", cv, least=2)
    units = int(sample.unit.max()) + 1
    called = "clusters" if sample.clustered else "rows"
    if cv > units:
        raise InputError(
            f"`cv` must lie between 2 and the {units} {called}; got {cv}.",
            argument="cv",
            hint="Pass fewer folds, or more rows.",
        )
    if sample.binary:
        events = np.bincount(sample.unit, sample.y, minlength=units)
        some, others = events > 0.0, np.bincount(sample.unit, minlength=units) > events
        for having, what in ((some, "with the event"), (others, "without it")):
            if np.count_nonzero(having) < 2:
                raise TooFewRows(
                    f"`y_true` must hold two or more {called} {what}, to judge a map on {called} that it has "
                    f"not seen; there are {np.count_nonzero(having)} among {units}.",
                    argument="y_true",
                    hint="Pass more rows.",
                )
        stratum = some * 1 + ~others
    else:
        stratum = sample.y[np.unique(sample.unit, return_index=True)[1]]
    order = generator(require_seed(random_state, "random_state")).permutation(units)
    order = order[np.argsort(stratum[order], kind="stable")]
    fold = np.empty(units, dtype=np.int64)
    fold[order] = np.arange(units) % cv
    return np.asarray(fold[sample.unit])


def fit_to(made: LearnedMap, sample: Sample, rows: NDArray[np.bool_] | slice = slice(None)) -> Any:
    """Copy of the map, fitted to these rows of a sample."""
    weight = None if sample.weight is None else sample.weight[rows]
    learned: Any = deepcopy(made)
    if isinstance(learned, LearnedMap):
        learned.set_output(transform="default")
    if isinstance(learned, Recalibrator):
        labels: Literal["binary", "soft"] = "soft" if sample.soft else "binary"
        return learned.fit(sample.given[rows], sample.y[rows], weight, labels=labels)
    learned.fit(sample.given[rows], sample.y[rows], weight)
    learned.classes_ = sample.names
    return learned


def cross_fit(made: LearnedMap, sample: Sample, fold: Integers) -> Floats:
    """Every row mapped by the map of the rows outside its fold."""
    mapped = np.empty_like(sample.probs)
    for one in np.unique(fold):
        held_out = fold == one
        mapped[held_out] = fit_to(made, sample, ~held_out).transform(sample.given[held_out])
    return mapped


# -- losses and scores -------------------------------------------------------------------------


def log_losses(y: NDArray[Any], p: Floats) -> Floats:
    """Log loss of each row, with 0 and 1 as far away as float32 can tell; of events, or of classes."""
    if p.ndim == 2:
        return np.asarray(-np.log(np.maximum(p[np.arange(y.size), y], NEAREST_TO_THE_ENDS)))
    low, high = logarithms(p)
    return np.asarray(-(y * low + (1.0 - y) * high))


def brier_losses(y: NDArray[Any], p: Floats) -> Floats:
    """Squared error of each row; of classes, summed over them."""
    if p.ndim == 2:
        return np.asarray(np.sum(p**2, axis=1) - 2.0 * p[np.arange(y.size), y] + 1.0)
    return np.asarray((p - y) ** 2)


def mean_and_error(
    values: Floats, weight: Floats, unit: NDArray[np.int64]
) -> tuple[float, float, float]:
    """Weighted mean, its standard error over units, and Kish's number of units.

    Examples
    --------
    >>> mean_and_error(np.array([1.0, 2.0, 3.0]), np.ones(3), np.arange(3))[0]
    2.0
    """
    share = weight / weight.sum()
    mean = float(share @ values)
    size = np.bincount(unit, share)
    error = float(np.linalg.norm(np.bincount(unit, share * (values - mean))))
    return mean, error, 1.0 / float(size @ size)


def scores_of(sample: Sample, p: Floats, fold: Integers | None = None) -> Scores:
    """Scores of these predictions; AUC is that of rows within a fold."""
    y, weight = sample.y, sample.ones
    log_loss = float(np.average(log_losses(y, p), weights=weight))
    brier = float(np.average(brier_losses(y, p), weights=weight))
    if not sample.binary:
        error = smooth_ece(confidence_of(y, p, sample_weight=sample.weight))
        accuracy = float(np.average(p.argmax(axis=1) == y, weights=weight))
        return Scores(log_loss, brier, error, accuracy, float("nan"))
    rows = Rows(p, y, sample.weight, soft=True)
    accuracy = float(np.average(np.where(p >= 0.5, y, 1.0 - y), weights=weight))
    folds = [rows] if fold is None else [rows.select(fold == k) for k in np.unique(fold)]
    auc = _auc([Points.of(one) for one in folds])
    return Scores(log_loss, brier, smooth_ece(rows), accuracy, auc)


def _auc(folds: list[Points]) -> float:
    """Chance that an event has the higher prediction than another row of its fold; a tie counts half."""
    won = total = 0.0
    for points in folds:
        others, events = points.mass.T
        won += float(events @ (np.cumsum(others) - 0.5 * others))
        total += float(others.sum() * events.sum())
    return won / total if total else float("nan")
