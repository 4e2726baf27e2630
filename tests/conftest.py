"""Settings that every test shares."""

import os

from hypothesis import HealthCheck, settings
from tests.absent import (
    pytest_make_collect_report,
    pytest_runtest_makereport,
    pytest_runtest_setup,
)

__all__ = ["pytest_make_collect_report", "pytest_runtest_makereport", "pytest_runtest_setup"]

# Whether a machine is slow is nothing that a law is about.
AT_ANY_SPEED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=25, derandomize=True, **AT_ANY_SPEED)
settings.register_profile("thorough", max_examples=1000, **AT_ANY_SPEED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
