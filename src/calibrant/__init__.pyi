"""What a type checker knows of the names that `__init__.py` loads when they are first asked for."""

from typing import Any, overload

from calibrant.data.classes import classwise as classwise
from calibrant.data.classes import confidence as confidence
from calibrant.data.classes import top_label as top_label
from calibrant.data.sketch import Sketch as Sketch
from calibrant.data.sketch_file import load as load
from calibrant.data.sketch_file import save as save
from calibrant.data.sketches import Sketches as Sketches
from calibrant.decisions.certify import Certified
from calibrant.decisions.selective import Selective
from calibrant.errors import CalibrantError as CalibrantError
from calibrant.errors import InputError as InputError
from calibrant.inference.assess_by import assess_by as assess_by
from calibrant.inference.assessment import Assessment
from calibrant.inference.compare import Comparison
from calibrant.inference.monitor import Monitor as Monitor
from calibrant.inference.planning import required_n as required_n
from calibrant.integrations.classifier import RecalibratedClassifier as RecalibratedClassifier
from calibrant.io.scan import scan as scan
from calibrant.measures.catalogue import Measures
from calibrant.measures.smooth_ece import SmoothECE
from calibrant.plotting.decision_curve import DecisionCurve
from calibrant.plotting.group import Diagrams
from calibrant.plotting.smooth import ReliabilityDiagram
from calibrant.recalibration.adaptive import AdaptiveRecalibrator as AdaptiveRecalibrator
from calibrant.recalibration.choice import Choice
from calibrant.recalibration.learned_map import load_recalibrator as load_recalibrator
from calibrant.reporting.report import Report

__version__: str

@overload
def assess(y_true: Any, y_prob: Any = None, **options: Any) -> Assessment: ...
@overload
def assess(*, data: Any, **options: Any) -> Assessment: ...
@overload
def certify(y_true: Any, y_prob: Any = None, **options: Any) -> Certified: ...
@overload
def certify(*, data: Any, **options: Any) -> Certified: ...
@overload
def choose_recalibrator(y_true: Any, y_prob: Any = None, **options: Any) -> Choice: ...
@overload
def choose_recalibrator(*, data: Any, **options: Any) -> Choice: ...
@overload
def compare(y_true: Any, y_probs: Any = None, **options: Any) -> Comparison: ...
@overload
def compare(*, data: Any, **options: Any) -> Comparison: ...
@overload
def decision_curve(y_true: Any, y_prob: Any = None, **options: Any) -> DecisionCurve: ...
@overload
def decision_curve(*, data: Any, **options: Any) -> DecisionCurve: ...
@overload
def measure_all(y_true: Any, y_prob: Any = None, **options: Any) -> Measures: ...
@overload
def measure_all(*, data: Any, **options: Any) -> Measures: ...
@overload
def reliability_diagram(y_true: Any, y_prob: Any = None, **options: Any) -> ReliabilityDiagram: ...
@overload
def reliability_diagram(*, data: Any, **options: Any) -> ReliabilityDiagram: ...
@overload
def reliability_diagrams(models: Any, **options: Any) -> Diagrams: ...
@overload
def reliability_diagrams(*, data: Any, **options: Any) -> Diagrams: ...
@overload
def report(y_true: Any, y_prob: Any = None, **options: Any) -> Report: ...
@overload
def report(*, data: Any, **options: Any) -> Report: ...
@overload
def selective(y_true: Any, y_prob: Any = None, **options: Any) -> Selective: ...
@overload
def selective(*, data: Any, **options: Any) -> Selective: ...
@overload
def smooth_ece(y_true: Any, y_prob: Any = None, **options: Any) -> float: ...
@overload
def smooth_ece(*, data: Any, **options: Any) -> float: ...
@overload
def smooth_ece_result(y_true: Any, y_prob: Any = None, **options: Any) -> SmoothECE: ...
@overload
def smooth_ece_result(*, data: Any, **options: Any) -> SmoothECE: ...
