"""Settings that every test shares."""

import os

from hypothesis import settings
from tests.other_words import reword

settings.register_profile("quick", max_examples=50, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# `make test-words`: tests of behaviour pass whatever the messages say.
if os.environ.get("CALIBRANT_OTHER_WORDS"):
    reword()
