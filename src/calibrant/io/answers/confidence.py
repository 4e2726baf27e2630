"""Confidence as people and models write it: 0.85, "85%", "8 out of 10", log-probabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Literal

from calibrant._arguments import is_number
from calibrant.errors import Code, InputError, Option, TypeName
from calibrant.io.answers.answers import Place

__all__ = [
    "FORMS",
    "LOG_FORMS",
    "Form",
    "Values",
    "as_credit",
    "as_probability",
    "from_log_probabilities",
    "share_of_choice",
    "stated_confidence",
]

Form = Literal["probability", "percent", "sum", "mean", "token", "choices", "agreement"]
FORMS: Mapping[str, str] = {
    "probability": "a number in [0, 1], or text such as '85%'",
    "percent": "a number from 0 to 100",
    "sum": "product of the answer's token probabilities",
    "mean": "geometric mean of the answer's token probabilities",
    "token": "probability of the answer's first token",
    "choices": "share of the chosen option in the probabilities of all options",
    "agreement": "share of the samples that give this answer",
}
"""How a confidence is written in a log."""
LOG_FORMS = ("sum", "mean", "token", "choices")

_NUMBER = r"(\d+(?:\.\d+)?|\.\d+)"
_UNIT = r"(%|per\s?cent|/\s*10{1,2}\b|out of\s+10{1,2}\b)"
_WRITTEN = re.compile(
    rf"[\s~≈]*(?:about|approximately|around|roughly)?\s*{_NUMBER}\s*{_UNIT}?[\s.]*", re.IGNORECASE
)
_STATED = re.compile(
    rf"(?:confidence|probability|certainty|confident)[^\d.%\n]{{0,40}}{_NUMBER}\s*{_UNIT}?"
    rf"|{_NUMBER}\s*(%|per\s?cent)\s*(?:confident|confidence|certain|sure|chance|likely)",
    re.IGNORECASE,
)
_CREDIT = {"c": 1.0, "i": 0.0, "p": 0.5, "correct": 1.0, "incorrect": 0.0, "partial": 0.5}
_TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
_POSITIVE = 1e-6
"""Log-probabilities may be above 0 by rounding, and no more."""


class Values:
    """Reads the confidences and scores of one log, and notices two scales in one column.

    Parameters
    ----------
    form : str
        How confidences are written, of `FORMS`.
    words : mapping, optional
        What words stand for, such as {"very likely": 0.9}. None is known unless it is given.
    score_range : (float, float), optional
        The lowest and the highest score of a judge: these are 0 and 1.
    lenient : bool
        What cannot be read is infinite, so that it can be dropped and counted, and no error.
    """

    def __init__(
        self,
        form: Form = "probability",
        *,
        words: Mapping[str, float] | None = None,
        score_range: tuple[float, float] | None = None,
        lenient: bool = False,
    ) -> None:
        self.form = form
        self._words = _checked_words(words)
        self._range = _checked_range(score_range)
        self.lenient = lenient
        self._share: tuple[float, Place] | None = None
        self._above: tuple[float, Place] | None = None

    def confidence(self, value: Any, place: Place, chosen: Any = None) -> float | None:
        """The confidence that a field holds; `chosen` is the answer, where the field has several."""
        try:
            if self.form == "choices":
                return share_of_choice(value, place, chosen)
            if self.form in LOG_FORMS:
                return from_log_probabilities(value, place, self.form)
            if isinstance(value, str) and value.strip().lower() in self._words:
                return self._words[value.strip().lower()]
            if self.form == "percent":
                value = self._as_share(value, place)
            return as_probability(value, place)
        except InputError:
            if self.lenient:
                return math.inf
            raise

    def credit(self, value: Any, place: Place) -> float | None:
        """The share of the credit that a field gives."""
        try:
            return as_credit(value, place, self._range)
        except InputError:
            if self.lenient:
                return math.inf
            raise

    def stated(self, text: str) -> float | None:
        """The last confidence that a text states."""
        return stated_confidence(text, percent=self.form == "percent")

    def require_one_scale(self) -> None:
        """Refuse a column of percentages among which are probabilities."""
        if self._share is None or self._above is None:
            return
        value, place = self._share
        raise place.refuse(
            "must be on one scale; there is also {other}",
            argument="probability",
            seen=value,
            other=self._above[0],
            cure="Write all confidences as percentages or all as probabilities.",
        )

    def _as_share(self, value: Any, place: Place) -> Any:
        if isinstance(value, str):
            match = _WRITTEN.fullmatch(value)
            if match is None or match[2]:
                return value
            value = float(match[1])
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            return value
        if not 0 <= value <= 100:
            raise place.refuse("must lie in [0, 100]", argument="probability", seen=value)
        if 0 < value < 1:
            self._share = self._share or (value, place)
        elif value > 1:
            self._above = self._above or (value, place)
        return value / 100


def as_probability(value: Any, place: Place) -> float | None:
    """A stated confidence as a number in [0, 1]; None where there is none.

    A number above 1 without a per cent sign is refused: 85 could be 85% or a mistake.

    Examples
    --------
    >>> here = Place("x.jsonl", 1)
    >>> [as_probability(text, here) for text in ("85%", 0.85, "8 out of 10", "I am 85% sure", "")]
    [0.85, 0.85, 0.8, 0.85, None]
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number = value
    if isinstance(value, str):
        match = _WRITTEN.fullmatch(value)
        number = stated_confidence(value) if match is None else _scaled(match[1], match[2])
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise place.refuse(
            "must be a number or text such as '85%'",
            argument="probability",
            seen=value[:80] if isinstance(value, str) else value,
            cure="Words mean nothing by themselves: say what they stand for with {words}.",
            words=Option("words", ...),
        )
    if number != number:
        return None
    if not 0 <= number <= 1:
        raise place.refuse(
            "must lie in [0, 1] or carry a per cent sign, as in '85%'",
            argument="probability",
            seen=value,
            cure="If confidences run from 0 to 100, pass {form}.",
            form=Option("form", "percent"),
        )
    return float(number)


def stated_confidence(text: str, *, percent: bool = False) -> float | None:
    """The last confidence that a text states, or None.

    Examples
    --------
    >>> stated_confidence("Answer: B. Confidence: 85%")
    0.85
    >>> stated_confidence("I am 90% sure that it is 12.")
    0.9
    >>> stated_confidence("Confidence: 8/10"), stated_confidence("Confidence: 85", percent=True)
    (0.8, 0.85)
    >>> stated_confidence("It rose by 40%.") is None
    True
    """
    last = None
    for match in _STATED.finditer(text):
        number, unit = (match[1], match[2]) if match[1] else (match[3], match[4])
        value = _scaled(number, unit or ("%" if percent else None))
        if 0 <= value <= 1:
            last = value
    return last


def from_log_probabilities(value: Any, place: Place, form: str) -> float | None:
    """The probability of an answer from the log-probabilities of its tokens.

    Examples
    --------
    >>> tokens = [{"token": "4", "logprob": -0.1}, {"token": "2", "logprob": -0.3}]
    >>> here = Place("x.jsonl", 1)
    >>> [round(from_log_probabilities(tokens, here, form), 4) for form in ("sum", "mean", "token")]
    [0.6703, 0.8187, 0.9048]
    """
    logs = _log_probabilities(value, place)
    if not logs:
        return None
    if form == "token":
        return math.exp(min(logs[0], 0.0))
    total = math.fsum(logs)
    return math.exp(min(total / len(logs) if form == "mean" else total, 0.0))


def share_of_choice(value: Any, place: Place, chosen: Any = None) -> float | None:
    """The chosen option's share of the probability of all options, given their log-probabilities.

    Without a choice, the option of the largest probability is the answer. A choice is an option's name,
    without regard to case and to what stands around it, as in "(b)", or its number.

    Examples
    --------
    >>> options = {"A": -0.2, "B": -2.0}
    >>> [round(share_of_choice(options, Place("x.jsonl", 1), said), 4) for said in ("B", "(b)", None)]
    [0.1419, 0.1419, 0.8581]
    """
    if value is None:
        return None
    names = list(value) if isinstance(value, dict) else []
    logs = _log_probabilities(list(value.values()) if names else value, place)
    if len(logs) < 2:
        raise place.refuse(
            "must hold the log-probabilities of at least two options",
            argument="probability",
            seen=len(logs),
            saying="{} are there",
        )
    best = max(logs)
    if best == -math.inf:
        return None
    at = logs.index(best) if chosen is None else _option(names, len(logs), chosen)
    if at is None:
        raise place.refuse(
            "the answer must be one of the options, {options}",
            options=", ".join(map(repr, names)) or f"0 to {len(logs) - 1}",
            seen=str(chosen)[:80],
            cure="Give each answer as the name of an option.",
        )
    return math.exp(logs[at] - best) / math.fsum(math.exp(log - best) for log in logs)


def _option(names: list[str], options: int, chosen: Any) -> int | None:
    """The place of the option that an answer names."""
    if chosen in names:
        return names.index(chosen)
    if isinstance(chosen, int) and not isinstance(chosen, bool):
        return chosen if 0 <= chosen < options else None
    said = [_bare(name) for name in names]
    return said.index(_bare(chosen)) if said.count(_bare(chosen)) == 1 else None


def _bare(name: Any) -> str:
    return str(name).strip(" \t\n.:,;()[]*'\"").lower()


def as_credit(
    value: Any, place: Place, score_range: tuple[float, float] | None = None
) -> float | None:
    """A score as a share of the credit: booleans, numbers, "C", "I", "P", "yes"; None where missing.

    Examples
    --------
    >>> here = Place("x.jsonl", 1)
    >>> as_credit("C", here), as_credit(True, here), as_credit(4, here, (1, 5))
    (1.0, 1.0, 0.75)
    """
    if value is None:
        return None
    if isinstance(value, bool | int | float):
        if value != value:
            return None
        number = float(value)
        if score_range is not None and not isinstance(value, bool):
            number = (number - score_range[0]) / (score_range[1] - score_range[0])
        if 0 <= number <= 1:
            return number
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _CREDIT or word in _TRUTH:
            return _CREDIT.get(word, _TRUTH.get(word))
        try:
            return as_credit(float(word), place, score_range)
        except ValueError:
            pass
    raise place.refuse(
        "must say that an answer is right (true, 1, 'C'), wrong (false, 0, 'I') or partly right (a "
        "number between 0 and 1)",
        argument="correct",
        seen=str(value)[:80],
        cure="For the scores of a judge, give the lowest and the highest with {range}.",
        range=Option("score_range", ...),
    )


def _scaled(number: str, unit: str | None) -> float:
    """A written number; per cent are divided in decimal, so that "29%" is the float 0.29."""
    from decimal import Decimal

    if not unit:
        return float(number)
    tenths = unit[-3:].strip(" /f") == "10"
    return float(Decimal(number) / (10 if tenths else 100))


def _log_probabilities(value: Any, place: Place) -> list[float]:
    """The numbers of a field: one, a list, or the shapes in which model APIs give tokens."""
    if isinstance(value, dict):
        value = next(
            (value[name] for name in ("content", "token_logprobs", "logprobs") if name in value),
            value,
        )
    items = value if isinstance(value, list) else [value]
    logs = [item.get("logprob") if isinstance(item, dict) else item for item in items]
    # The first token of a completion that repeats its prompt has none.
    if len(logs) > 1 and logs[0] is None:
        logs = logs[1:]
    for log in logs:
        number = isinstance(log, int | float) and not isinstance(log, bool)
        if log is not None and not (number and log <= _POSITIVE):
            raise place.refuse(
                "must hold log-probabilities, which are at most 0", argument="probability", seen=log
            )
    return [] if None in logs else [float(log) for log in logs if log is not None]


def _checked_words(words: Mapping[str, float] | None) -> dict[str, float]:
    if words is not None and not isinstance(words, Mapping):
        raise InputError(
            "must say what each word stands for",
            argument="words",
            seen=TypeName.of(words),
            cure="Pass a mapping such as {example}.",
            example=Code('{"very likely": 0.9}'),
        )
    for word, value in (words or {}).items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not isinstance(word, str) or not 0 <= value <= 1:
            raise InputError(
                "must give each word a number in [0, 1]",
                argument="words",
                seen=value,
                saying="{word} has {}",
                word=repr(word),
                cure="Pass a probability for each word.",
            )
    return {word.strip().lower(): float(value) for word, value in (words or {}).items()}


def _checked_range(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    if ends is None:
        return None
    valid = isinstance(ends, tuple | list) and len(ends) == 2
    if not valid or not all(map(is_number, ends)) or not -math.inf < ends[0] < ends[1] < math.inf:
        raise InputError(
            "must be the lowest and the highest score, such as (1, 5)",
            argument="score_range",
            seen=ends,
            cure="Pass both ends of the scale, the lower first.",
        )
    return float(ends[0]), float(ends[1])
