"""SmoothECE where scikit-learn expects a scorer, and its diagram under the contract for displays."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.data.arrays import as_column
from calibrant.data.classes import confidence
from calibrant.errors import InputError, show_value
from calibrant.measures.smooth_ece import smooth_ece
from calibrant.plotting.smooth import ReliabilityDiagram, reliability_diagram

__all__ = ["ReliabilityDisplay", "neg_smooth_ece_scorer"]

DIAGRAM_OPTIONS = ("bandwidth", "confidence", "resamples", "curves", "seed")


def neg_smooth_ece_scorer(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """A scorer: minus the SmoothECE of a classifier's predicted probabilities; larger is better.

    Pass it as `scoring=` to `cross_val_score`, `cross_validate` or `GridSearchCV`. With two classes it
    looks at the probability of `estimator.classes_[1]`; with more, at the confidence of the predicted
    class.

    Notes
    -----
    Calibration alone can be had by predicting the event rate for everybody: choose models by a proper
    score, such as the log loss, and look at this one beside it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> cross_val_score(GaussianNB(), X, y, cv=3, scoring=neg_smooth_ece_scorer).round(3)
    array([-0.078, -0.049, -0.047])
    """
    if not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"`estimator` must have `predict_proba` to be scored; {type(estimator).__name__} has none.",
            argument="estimator",
            hint="Wrap it in `RecalibratedClassifier` or `sklearn.calibration.CalibratedClassifierCV`.",
        )
    classes = np.asarray(estimator.classes_)
    _require_known_classes(y, classes.tolist())
    probs = np.asarray(estimator.predict_proba(X))
    if classes.size == 2:
        return -smooth_ece(np.asarray(y) == classes[1], probs[:, 1], sample_weight=sample_weight)
    return -smooth_ece(confidence(y, probs, classes=classes.tolist(), sample_weight=sample_weight))


def _require_known_classes(y: Any, classes: list[Any]) -> None:
    """A label that is not among the classes would count as "no event" without a word."""
    known = set(classes)
    label = as_column(y, "y").tolist()
    wrong = next((row for row, value in enumerate(label) if value not in known), None)
    if wrong is not None:
        raise InputError(
            f"`y` must hold classes on which the estimator was fitted, {show_value(classes)}; row {wrong} is "
            f"{show_value(label[wrong])}.",
            argument="y",
            row=wrong,
        )


class ReliabilityDisplay:
    """Smooth reliability diagram of a classifier, as scikit-learn's displays are used.

    Make one with `from_estimator` or `from_predictions`; it is then in `ax_`.

    Parameters
    ----------
    diagram : ReliabilityDiagram
        The data.
    estimator_name : str, optional
        Written beside the curve.
    pos_label : scalar, optional
        The class whose probability is drawn.

    Attributes
    ----------
    line_ : matplotlib.lines.Line2D
        The curve.
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
    >>> display.estimator_name, display.diagram
    ('GaussianNB', ReliabilityDiagram(SmoothECE 0.064, bandwidth=0.0637, n=143))
    """

    line_: Any
    ax_: Any
    figure_: Any
    artists_: Any

    def __init__(
        self,
        diagram: ReliabilityDiagram,
        *,
        estimator_name: str | None = None,
        pos_label: Any = None,
    ) -> None:
        if not isinstance(diagram, ReliabilityDiagram):
            raise InputError(
                f"`diagram` must be a ReliabilityDiagram; got a {type(diagram).__name__}.",
                argument="diagram",
                hint="Make one with `calibrant.reliability_diagram`.",
            )
        self.diagram = diagram
        self.estimator_name = estimator_name
        self.pos_label = pos_label

    def plot(
        self, *, ax: Any = None, name: str | None = None, ref_line: bool = True, **look: Any
    ) -> ReliabilityDisplay:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            A new figure, if none is given.
        name : str, optional
            Instead of `estimator_name`.
        ref_line : bool
            Draw what a calibrated model would show, and the diagonal.
        **look
            As in `ReliabilityDiagram.picture`: `title`, `legend`, `against`, ...
        """
        label = self.estimator_name if name is None else name
        if not ref_line:
            look = {**look, "reference": None}
        drawn = self.diagram.plot(ax, name=label or "", **look)
        self.ax_, self.figure_, self.artists_ = drawn.ax, drawn.figure, dict(drawn.artists)
        self.line_ = self.artists_["curve"][0]
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
        ref_line: bool = True,
        ax: Any = None,
        **options: Any,
    ) -> ReliabilityDisplay:
        """Draw a fitted binary classifier's predicted probabilities against `y`.

        Parameters
        ----------
        estimator : object
            A fitted classifier with `predict_proba`.
        X, y : array
            Features, and the true labels.
        sample_weight : array, optional
            Importance of each row.
        pos_label : scalar, optional
            The class to look at; by default the second of `estimator.classes_`.
        name : str, optional
            By default the class of the estimator.
        ref_line, ax
            As in `plot`.
        **options
            `bandwidth`, `confidence`, `resamples`, `curves` and `seed` as in `reliability_diagram`; all
            others as in `plot`.
        """
        wanted, column = _event_of(estimator, pos_label)
        y_prob = np.asarray(estimator.predict_proba(X))[:, column]
        return cls.from_predictions(
            y,
            y_prob,
            sample_weight=sample_weight,
            pos_label=wanted,
            name=type(estimator).__name__ if name is None else name,
            ref_line=ref_line,
            ax=ax,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        sample_weight: Any = None,
        pos_label: Any = None,
        name: str | None = None,
        ref_line: bool = True,
        ax: Any = None,
        **options: Any,
    ) -> ReliabilityDisplay:
        """Draw predicted probabilities against true labels.

        Parameters
        ----------
        y_true, y_prob : array
            Labels, and probabilities of `pos_label`.
        sample_weight : array, optional
            Importance of each row.
        pos_label : scalar, optional
            The label of the event, where labels are not 0 and 1.
        name : str, optional
            Written beside the curve.
        ref_line, ax
            As in `plot`.
        **options
            `bandwidth`, `confidence`, `resamples`, `curves` and `seed` as in `reliability_diagram`; all
            others as in `plot`.
        """
        numbers = {key: options.pop(key) for key in DIAGRAM_OPTIONS if key in options}
        diagram = reliability_diagram(
            y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, **numbers
        )
        display = cls(diagram, estimator_name=name, pos_label=pos_label)
        return display.plot(ax=ax, ref_line=ref_line, **options)


def _event_of(estimator: Any, pos_label: Any) -> tuple[Any, int]:
    """The class to look at, and its column in what a fitted classifier of two classes predicts."""
    if getattr(estimator, "classes_", None) is None and hasattr(estimator, "fit"):
        raise InputError(
            f"`estimator` must be a fitted classifier; got a {type(estimator).__name__} without `classes_`.",
            argument="estimator",
            hint="Call `fit(X, y)` first.",
        )
    if not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"`estimator` must have `predict_proba`; {type(estimator).__name__} has none.",
            argument="estimator",
            hint="Pass its probabilities to `ReliabilityDisplay.from_predictions`.",
        )
    classes = np.asarray(estimator.classes_)
    if classes.size != 2:
        raise InputError(
            f"`estimator` must have two classes for a diagram of one event; it has {classes.size}.",
            argument="estimator",
            hint="Pass `calibrant.confidence` of its probabilities to `calibrant.reliability_diagram`.",
        )
    wanted = classes[1] if pos_label is None else pos_label
    column = np.flatnonzero(classes == wanted)
    if column.size != 1:
        raise InputError(
            f"`pos_label` must be one of the estimator's classes, {show_value(classes.tolist())}; got "
            f"{show_value(pos_label)}.",
            argument="pos_label",
        )
    return wanted, int(column[0])
