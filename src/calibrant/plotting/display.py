"""The reliability diagram under scikit-learn's contract for displays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.errors import InputError, show_value
from calibrant.plotting.diagram import Plot
from calibrant.plotting.diagrams import Diagrams, reliability_diagrams
from calibrant.plotting.reliability import ReliabilityDiagram, reliability_diagram

__all__ = ["ReliabilityDisplay"]

DIAGRAM_OPTIONS = ("bandwidth", "confidence", "design_effect")
FOLD_ALPHA = 0.35


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

    def plot(self, ax: Any = None, *, name: str | None = None, **look: Any) -> ReliabilityDisplay:
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
        label = self.name if name is None else name
        if isinstance(self.diagram, Diagrams):
            plots = self.diagram.plot(ax, **look)
            first = next(iter(plots.values()))
            self.ax_ = first.ax if ax is not None else [plot.ax for plot in plots.values()]
            self.figure_ = first.figure
            self.artists_ = {key: plot.artists for key, plot in plots.items()}
            self.line_ = [_line(plot) for plot in plots.values()]
            return self
        plot = self.diagram.plot(ax, **{"label": label, **look})
        artists = dict(plot.artists)
        if self.folds is not None:
            artists["folds"] = [self._fold(each, plot) for each in self.folds.values()]
        self.ax_, self.figure_, self.artists_ = plot.ax, plot.figure, artists
        self.line_ = _line(plot)
        return self

    @staticmethod
    def _fold(diagram: Any, plot: Plot) -> Any:
        """The curve of one fold, thin, in the colour of the whole."""
        main = plot.artists.get("curve") or plot.artists["points"]
        curve = diagram.curve
        (drawn,) = plot.ax.plot(
            curve.prediction,
            np.where(curve.drawn, curve.observed, np.nan),
            color=main[0].get_edgecolor()[0],
            alpha=FOLD_ALPHA,
            linewidth=0.8,
            zorder=2.7,
        )
        return drawn

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
        **options: Any,
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
            `bandwidth`, `confidence` and `design_effect` as in `reliability_diagram`; all others as
            in `plot`.
        """
        name = type(estimator).__name__ if name is None else name
        y_prob = _probabilities(estimator, X)
        return cls._of(
            y, y_prob, list(estimator.classes_), sample_weight, pos_label, name, ax, options
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
        ax: Any = None,
        **options: Any,
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
            `bandwidth`, `confidence` and `design_effect` as in `reliability_diagram`; all others as
            in `plot`.
        """
        shape = np.shape(y_prob)
        if len(shape) == 2 and shape[1] > 1:
            classes = np.unique(np.asarray(y_true)).tolist()
            return cls._of(y_true, y_prob, classes, sample_weight, pos_label, name, ax, options)
        numbers = {key: options.pop(key) for key in DIAGRAM_OPTIONS if key in options}
        diagram = reliability_diagram(
            y_true, y_prob, sample_weight=sample_weight, pos_label=pos_label, **numbers
        )
        return cls(diagram, name=name, pos_label=pos_label).plot(ax, **options)

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
        **options: Any,
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
        missing = [key for key in ("estimator", "indices") if key not in cv_results]
        if missing:
            raise InputError(
                f"`cv_results` has no {missing[0]!r}.",
                argument="cv_results",
                hint="Call cross_validate with return_estimator=True and return_indices=True.",
            )
        labels = np.asarray(y)
        parts, rows = [], []
        for estimator, test in zip(
            cv_results["estimator"], cv_results["indices"]["test"], strict=True
        ):
            y_prob = _probabilities(estimator, _rows_at(X, test))
            wanted, column = _event_of(list(estimator.classes_), pos_label, several=False)
            parts.append(((labels[test] == wanted).astype(int), y_prob[:, column]))
            rows.append(test)
        numbers = {key: options.pop(key) for key in DIAGRAM_OPTIONS if key in options}
        weight = None if sample_weight is None else np.asarray(sample_weight)
        settings = [
            {**numbers, "sample_weight": None if weight is None else weight[test]} for test in rows
        ]
        folds = Diagrams(
            {
                f"fold {k}": reliability_diagram(*part, **given)
                for k, (part, given) in enumerate(zip(parts, settings, strict=True), 1)
            }
        )
        whole = reliability_diagram(
            np.concatenate([part[0] for part in parts]),
            np.concatenate([part[1] for part in parts]),
            **numbers,
            sample_weight=None if weight is None else weight[np.concatenate(rows)],
        )
        name = type(cv_results["estimator"][0]).__name__ if name is None else name
        return cls(whole, name=name, pos_label=wanted, folds=folds).plot(ax, **options)

    @classmethod
    def _of(
        cls,
        y: Any,
        y_prob: Any,
        classes: list[Any],
        sample_weight: Any,
        pos_label: Any,
        name: str | None,
        ax: Any,
        options: dict[str, Any],
    ) -> ReliabilityDisplay:
        """One event of class probabilities, or every class against the rest."""
        numbers = {key: options.pop(key) for key in DIAGRAM_OPTIONS if key in options}
        if len(classes) > 2 and pos_label is None:
            diagrams = reliability_diagrams(
                y,
                y_prob,
                multiclass="classwise",
                classes=classes,
                sample_weight=sample_weight,
                **numbers,
            )
            return cls(diagrams, name=name).plot(ax, **options)
        wanted, column = _event_of(classes, pos_label, several=True)
        outcome = (np.asarray(y) == wanted).astype(int)
        diagram = reliability_diagram(
            outcome, np.asarray(y_prob)[:, column], sample_weight=sample_weight, **numbers
        )
        return cls(diagram, name=name, pos_label=wanted).plot(ax, **options)


def _line(plot: Plot) -> Any:
    """The main artist of a plot."""
    for key in ("curve", "points"):
        if plot.artists.get(key):
            return plot.artists[key][0]
    return next(iter(plot.artists.values()))[0]


def _rows_at(X: Any, rows: Any) -> Any:
    from sklearn.utils import _safe_indexing

    return _safe_indexing(X, rows)


def _probabilities(estimator: Any, X: Any) -> Any:
    """Class probabilities of a fitted classifier."""
    given = show_value(type(estimator).__name__)
    if getattr(estimator, "classes_", None) is None and hasattr(estimator, "fit"):
        raise InputError(
            f"`estimator` must be a fitted classifier; {given} is not fitted.",
            argument="estimator",
            hint="Call fit(X, y) first.",
        )
    if not hasattr(estimator, "predict_proba"):
        raise InputError(
            f"`estimator` must have predict_proba; {given} has none.",
            argument="estimator",
            hint="Wrap it in CalibratedClassifierCV, or pass probabilities to `from_predictions`.",
        )
    return np.asarray(estimator.predict_proba(X))


def _event_of(classes: list[Any], pos_label: Any, *, several: bool) -> tuple[Any, int]:
    """The class to look at, and its column."""
    if pos_label is None:
        if len(classes) != 2:
            hint = "`pos_label` names one" if not several else "pass labels of all classes"
            raise InputError(
                f"`pos_label` is needed: there are {len(classes)} classes.",
                argument="pos_label",
                hint=f"{hint[0].upper()}{hint[1:]}.",
            )
        return classes[1], 1
    found = [k for k, one in enumerate(classes) if one == pos_label]
    if len(found) != 1:
        raise InputError(
            f"`pos_label` must be one of the classes, {show_value(classes)}; it is {show_value(pos_label)}.",
            argument="pos_label",
        )
    return classes[found[0]], found[0]
