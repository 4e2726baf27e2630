"""Calibration of language models: how often is an answer right that was given with 80% confidence?"""

from calibrant.integrations.llm.answers import Answers
from calibrant.integrations.llm.confidence import as_probability
from calibrant.integrations.llm.reading import FORMATS, read_answers

__all__ = ["FORMATS", "Answers", "as_probability", "read_answers"]
