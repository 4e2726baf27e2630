"""Calibration of language models: how often is an answer right that was given with 80% confidence?"""

from calibrant.io.answers.answers import Answers
from calibrant.io.answers.confidence import FORMS, as_probability
from calibrant.io.answers.reading import FORMATS, read_answers

__all__ = ["FORMATS", "FORMS", "Answers", "as_probability", "read_answers"]
