"""Calibration of language models: how often is an answer right that was given with 80% confidence?"""

from calibrant.read.answers.answers import Answers
from calibrant.read.answers.confidence import FORMS, as_probability
from calibrant.read.answers.reading import FORMATS, read_answers

__all__ = ["FORMATS", "FORMS", "Answers", "as_probability", "read_answers"]
