"""What a type checker knows of the names that `__init__.py` loads when they are first asked for."""

from calibrant.data.class_sketches import classwise as classwise
from calibrant.data.class_sketches import top_label as top_label
from calibrant.data.multiclass import confidence as confidence
from calibrant.data.scales import Scale as Scale
from calibrant.data.sketch import Sketch as Sketch
from calibrant.data.sketches import Sketches as Sketches
from calibrant.data.wire import load as load
from calibrant.data.wire import save as save
from calibrant.decisions.certify import certify as certify
from calibrant.decisions.selective import selective as selective
from calibrant.diagrams.binned import binned_diagram as binned_diagram
from calibrant.diagrams.cumulative import cumulative_diagram as cumulative_diagram
from calibrant.diagrams.decision_curve import decision_curve as decision_curve
from calibrant.diagrams.group import reliability_diagrams as reliability_diagrams
from calibrant.diagrams.isotonic import isotonic_diagram as isotonic_diagram
from calibrant.diagrams.risk_coverage import risk_coverage_diagram as risk_coverage_diagram
from calibrant.diagrams.smooth import reliability_diagram as reliability_diagram
from calibrant.errors import CalibrationError as CalibrationError
from calibrant.errors import InputError as InputError
from calibrant.errors import MergeError as MergeError
from calibrant.errors import MissingDependency as MissingDependency
from calibrant.errors import TooFewRows as TooFewRows
from calibrant.inference.assess import assess as assess
from calibrant.inference.assess_by import assess_by as assess_by
from calibrant.inference.compare import compare as compare
from calibrant.inference.monitor import Monitor as Monitor
from calibrant.inference.planning import required_n as required_n
from calibrant.measures.catalogue import measure_all as measure_all
from calibrant.measures.distance import distance_to_calibration as distance_to_calibration
from calibrant.measures.smooth_ece import smooth_ece as smooth_ece
from calibrant.measures.smooth_ece import smooth_ece_result as smooth_ece_result
from calibrant.measures.weak import weak_calibration_error as weak_calibration_error
from calibrant.read.scan import scan as scan
from calibrant.recalibration.interface import load_recalibrator as load_recalibrator
from calibrant.recalibration.smooth import SmoothRecalibrator as SmoothRecalibrator
from calibrant.repair.choice import choose_recalibrator as choose_recalibrator
from calibrant.repair.randomized import RandomizedRecalibrator as RandomizedRecalibrator
from calibrant.reporting.html import report as report

__version__: str
