"""The reliability diagram under scikit-learn's contract for displays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack, cast

import numpy as np

from calibrant.data.arrays import is_missing
from calibrant.data.classes import require_known_classes
from calibrant.data.sketch import Sketch, as_sketch
from calibrant.errors import InputError, show_value
from calibrant.plotting.artists import line
from calibrant.plotting.diagram import PICTURE_OPTIONS, Diagram, Look, Style, split_look
from calibrant.plotting.diagrams import Diagrams, reliability_diagrams
from calibrant.plotting.frame import Frame
from calibrant.plotting.reliability import ReliabilityDiagram, reliability_diagram
from calibrant.plotting.themes import Theme

DIAGRAM_OPTIONS = ("bandwidth", "confidence", "design_effect", "on_invalid")
FOLD_ALPHA = 0.35
FOLDS = "Single folds"


class DrawingOptions(Look, total=False):
    """Keywords of a drawing, on axes or in a new figure."""

    theme: str | Theme | None
    figsize: tuple[float, float] | None


class DisplayOptions(DrawingOptions, total=False):
    """Keywords of a drawing, and of the diagram that is drawn."""

    bandwidth: float
    confidence: float
    design_effect: float
    on_invalid: Literal["raise", "drop"]


class ReliabilityDisplay:
    """Smooth reliability diagram of a classifier, used as scikit-learn's displays are.

    Make one with `from_estimator`, `from_predictions` or `from_cv_results`.

    Parameters
    ----------
    diagram : ReliabilityDiagram or Diagrams
        The data; of many classes, one diagram for each.
    name : str, optional
        Label of the curve.
    pos_label : scalar, optional
        The class whose probability is drawn.
    folds : Diagrams, optional
        Of each fold of a cross-validation, drawn as thin lines behind the diagram of all test rows.

    Attributes
    ----------
    line_ : matplotlib artist
        The curve; of many classes or folds, a list of curves.
    ax_, figure_ : matplotlib Axes and Figure
        What was drawn on.
    artists_ : mapping of str to list of artists
        Everything that was drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> display = ReliabilityDisplay.from_estimator(GaussianNB().fit(X_train, y_train), X_test, y_test)
    >>> display.name, display.diagram.n
    ('GaussianNB', 143)
    """

    line_: Any
    ax_: Any
    figure_: Any
    artists_: Any

    def __init__(
        self,
        diagram: ReliabilityDiagram | Diagrams,
        *,
        name: str | None = None,
        pos_label: Any = None,
        folds: Diagrams | None = None,
    ) -> None:
        if not isinstance(diagram, ReliabilityDiagram | Diagrams):
            raise InputError(
                f"`diagram` must be a ReliabilityDiagram; it is {show_value(type(diagram).__name__)}.",
                argument="diagram",
                hint="Make one with `reliability_diagram`; other diagrams have `plot` of their own.",
            )
        self.diagram = diagram
        self.name = name
        self.pos_label = pos_label
        self.folds = folds

    def plot(
        self, ax: Any = None, *, name: str | None = None, **look: Unpack[DrawingOptions]
    ) -> ReliabilityDisplay:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            A new figure, if none is given.
        name : str, optional
            Label of the curve, instead of the display's own.
        **look
            As in `ReliabilityDiagram.plot`: `color`, `linewidth`, `title`, ...
        """
        if isinstance(self.diagram, Diagrams):
            plots = self.diagram.plot(ax, **look)
            self.line_ = [plot.main for plot in plots.values()]
            self.artists_ = {key: plot.artists for key, plot in plots.items()}
            self.figure_ = next(iter(plots.values())).figure
            self.ax_ = [plot.ax for plot in plots.values()] if ax is None else ax
            return self
        look.setdefault("label", self.name if name is None else name)
        drawn = self.diagram if self.folds is None else _WithFolds(self.diagram, self.folds)
        plot = drawn.plot(ax, **look)
        self.ax_, self.figure_, self.line_ = plot.ax, plot.figure, plot.main
        self.artists_ = dict(plot.artists)
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **options: Unpack[DisplayOptions],
    ) -> ReliabilityDisplay:
        """Draw a fitted classifier's predicted probabilities against `y`.

        Parameters
        ----------
        estimator : object
            A fitted classifier with `predict_proba`.
        X, y : array
            Rows and their labels.
        sample_weight : array, optional
            Importance of each row.
        pos_label : scalar, optional
            The class to look at: by default the second of two, and every class against the rest of more.
        name : str, optional
            By default the class of the estimator.
        ax : matplotlib.axes.Axes, optional
            A new figure, if none is given.
        **options
            `bandwidth`, `confidence`, `design_effect` and `on_invalid` as in `reliability_diagram`; all
            others as in `plot`.
        """
        name = type(estimator).__name__ if name is None else name
        y_prob, classes = _probabilities(estimator, X)
        require_known_classes(y, classes)
        return cls._of(y, y_prob, classes, sample_weight, pos_label, name, ax, options)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **options: Unpack[DisplayOptions],
    ) -> ReliabilityDisplay:
        """Draw predicted probabilities against true labels.

        Parameters
        ----------
        y_true : array
            Labels.
        y_prob : array
            Probabilities of `pos_label`; or one column for each of the sorted classes.
        sample_weight : array, optional
            Importance of each row.
        pos_label : scalar, optional
            The label of the event, where labels are not 0 and 1.
        name : str, optional
            Label of the curve.
        ax : matplotlib.axes.Axes, optional
            A new figure, if none is given.
        **options
            `bandwidth`, `confidence`, `design_effect` and `on_invalid` as in `reliability_diagram`; all
            others as in `plot`.
        """
        shape = np.shape(y_prob)
        several = len(shape) == 2 and shape[1] > 1
        labels = np.asarray(y_true)
        classes = np.unique(labels[~is_missing(labels)]).tolist() if several else None
        return cls._of(y_true, y_prob, classes, sample_weight, pos_label, name, ax, options)

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        **options: Unpack[DisplayOptions],
    ) -> ReliabilityDisplay:
        """Draw the test rows of a cross-validation: all of them together, and each fold as a thin line.

        Parameters
        ----------
        cv_results : dict
            As `cross_validate(..., return_estimator=True, return_indices=True)` gives it.
        X, y : array
            The rows that were cross-validated, and their labels.
        sample_weight, pos_label, name, ax, **options
            As in `from_estimator`; of more than two classes, `pos_label` is needed.
        """
        from sklearn.utils import _safe_indexing

        missing = [key for key in ("estimator", "indices") if key not in cv_results]
        if missing:
            raise InputError(
                f"`cv_results` has no {missing[0]!r}.",
                argument="cv_results",
                hint="Call cross_validate with return_estimator=True and return_indices=True.",
            )
        numbers, look = _split(options)
        reading = {"on_invalid": numbers.pop("on_invalid", "raise")}
        labels, every = np.asarray(y), None if sample_weight is None else np.asarray(sample_weight)
        last = max((int(np.max(test)) for test in cv_results["indices"]["test"]), default=-1)
        if last >= len(labels):
            raise InputError(
                f"`y` must be the rows that were cross-validated; it has {len(labels)}, and a fold has row "
                f"{last}.",
                argument="y",
                hint="Pass `X` and `y` as they went into cross_validate.",
            )
        folds_of = cv_results["indices"]["test"]
        read = [
            (*_probabilities(estimator, _safe_indexing(X, test)), test)
            for estimator, test in zip(cv_results["estimator"], folds_of, strict=True)
        ]
        fitted = dict.fromkeys(each for _, classes, _ in read for each in classes)
        require_known_classes(labels, list(fitted))
        sketches: dict[str, Sketch] = {}
        for k, (y_prob, classes, test) in enumerate(read, 1):
            wanted, column = _event_of(classes, pos_label)
            sketches[f"fold {k}"] = as_sketch(
                (labels[test] == wanted).astype(int),
                y_prob[:, column],
                sample_weight=None if every is None else every[test],
                **reading,
            )
        whole = reliability_diagram(sum(sketches.values()), **numbers)
        name = type(cv_results["estimator"][0]).__name__ if name is None else name
        folds = reliability_diagrams(sketches, **numbers)
        return cls(whole, name=name, pos_label=wanted, folds=folds).plot(ax, **look)

    @classmethod
    def _of(
        cls,
        y: Any,
        y_prob: Any,
        classes: list[Any] | None,
        weight: Any,
        pos_label: Any,
        name: str | None,
        ax: Any,
        options: DisplayOptions,
    ) -> ReliabilityDisplay:
        """One event of class probabilities, or every class against the rest."""
        numbers, look = _split(options)
        numbers["sample_weight"] = weight
        if classes is None:
            numbers["pos_label"] = pos_label
        elif len(classes) > 2 and pos_label is None:
            numbers |= {"multiclass": "classwise", "classes": classes}
            return cls(reliability_diagrams(y, y_prob, **numbers), name=name).plot(ax, **look)
        else:
            pos_label, column = _event_of(classes, pos_label)
            labels = np.asarray(y)
            known = ~is_missing(labels)
            y, y_prob = np.full(labels.shape, np.nan), np.asarray(y_prob)[:, column]
            y[known] = labels[known] == pos_label
        diagram = reliability_diagram(y, y_prob, **numbers)
        return cls(diagram, name=name, pos_label=pos_label).plot(ax, **look)


@dataclass(frozen=True, eq=False)
class _WithFolds(Diagram):
    """The diagram of all rows over thin lines, one for each fold."""

    whole: ReliabilityDiagram
    folds: Diagrams

    @property
    def label(self) -> str:
        return self.whole.label

    def frame(self) -> Frame:
        frame = self.whole.frame()
        return replace(frame, legend={**frame.legend, "folds": FOLDS})

    def artists(self, ax: Any, style: Style) -> dict[str, list[Any]]:
        drawn = self.whole.artists(ax, style)
        thin = {"color": style.color, "alpha": FOLD_ALPHA, "linewidth": 0.8, "zorder": 2.7}
        curves = [cast(ReliabilityDiagram, fold).curve for fold in self.folds.values()]
        drawn["folds"] = [
            line(ax, curve.prediction, np.where(curve.drawn, curve.observed, np.nan), **thin)
            for curve in curves
        ]
        drawn["folds"][0].set_label(FOLDS)
        return drawn


def _split(options: DisplayOptions) -> tuple[dict[str, Any], Any]:
    """Keywords of the diagram, and of its drawing."""
    numbers = {key: value for key, value in options.items() if key in DIAGRAM_OPTIONS}
    look = {key: value for key, value in options.items() if key not in numbers}
    of_artists = {key: value for key, value in look.items() if key not in PICTURE_OPTIONS}
    split_look(of_artists, new=True, beside=DIAGRAM_OPTIONS)
    return numbers, look


def _probabilities(estimator: Any, X: Any) -> tuple[Any, list[Any]]:
    """Class probabilities of a fitted classifier, and the classes."""
    fitted = getattr(estimator, "classes_", None) is not None
    if not fitted or not hasattr(estimator, "predict_proba"):
        raise InputError(
            "`estimator` must be a fitted classifier that has predict_proba; "
            f"{show_value(type(estimator).__name__)} {'has none' if fitted else 'is not fitted'}.",
            argument="estimator",
            hint="Call fit(X, y), or pass probabilities to `from_predictions`.",
        )
    return np.asarray(estimator.predict_proba(X)), np.asarray(estimator.classes_).tolist()


def _event_of(classes: list[Any], pos_label: Any) -> tuple[Any, int]:
    """The class to look at, the second of two by default, and its column."""
    wanted = classes[-1] if pos_label is None and len(classes) == 2 else pos_label
    if classes.count(wanted) != 1:
        raise InputError(
            f"`pos_label` must be one of the classes, {show_value(classes)}; it is {show_value(pos_label)}.",
            argument="pos_label",
        )
    return wanted, classes.index(wanted)
