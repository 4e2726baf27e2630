"""Confidence as people and models write it: 0.85, "85%", "8 out of 10", log-probabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

from calibrant._arguments import is_number
from calibrant.errors import InputError, invalid, show_value

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

# Every repetition is bounded, so that reading is linear in the length of a text whatever it holds.
_NUMBER = r"(?<![\d.])(\d{1,30}(?:\.\d{1,30})?|\.\d{1,30})"
_UNIT = r"(%|per\s?cent|/\s{0,9}10{1,2}\b|out of\s{1,9}10{1,2}\b)"
_WRITTEN = re.compile(
    rf"(?:about|approximately|around|roughly|~|≈)?\s{{0,9}}{_NUMBER}\s{{0,9}}{_UNIT}?[\s.]{{0,9}}",
    re.IGNORECASE,
)
_STATED = re.compile(
    rf"(?:confidence|probability|certainty|confident)[^\d.%\n]{{0,40}}{_NUMBER}\s{{0,9}}{_UNIT}?"
    rf"|{_NUMBER}\s{{0,9}}(%|per\s?cent)\s{{0,9}}(?:confident|confidence|certain|sure|chance|likely)",
    re.IGNORECASE,
)
_REFUSALS = re.compile(
    r"\W*(?:i (?:do not|don't|don’t) know|(?:(?:i am|i'm|i’m) )?(?:not |un)sure|i (?:cannot|can't) "
    r"(?:answer|say)|unknown|no answer|refused|n/?a|abstain(?:ed|s)?|idk)?\W*",
    re.IGNORECASE,
)
LONGEST_TEXT = 1 << 16
"""Characters at the end of a text in which a confidence is looked for: longer than any answer."""
_CREDIT = {
    **dict.fromkeys(("c", "correct", "true", "yes"), 1.0),
    **dict.fromkeys(("p", "partial"), 0.5),
    **dict.fromkeys(("i", "incorrect", "false", "no"), 0.0),
}
_ROUNDING = 1e-6
"""Log-probabilities may be above 0 by rounding in single precision, and no more."""


class Values:
    """Reader of the confidences and scores of one log.

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
        self.lenient = lenient
        known = {} if words is None else words
        if not isinstance(known, Mapping) or not all(
            isinstance(word, str) and is_number(p) and 0 <= p <= 1 for word, p in known.items()
        ):
            rule = 'be a mapping from words to probabilities, such as {"very likely": 0.9}'
            raise invalid("words", rule, words)
        self._words = {word.strip().lower(): float(p) for word, p in known.items()}
        ends: Any = (0, 1) if score_range is None else score_range
        is_range = isinstance(ends, tuple | list) and len(ends) == 2 and all(map(is_number, ends))
        if not is_range or not -math.inf < ends[0] < ends[1] < math.inf:
            rule = "be the lowest and the highest score, such as (1, 5)"
            raise invalid("score_range", rule, score_range)
        self._range = score_range

    def confidence(self, value: Any, chosen: Any = None) -> float | None:
        """Confidence that a field holds; `chosen` is the answer, where the field has several."""
        return self.read(self._confidence, value, chosen)

    def credit(self, value: Any) -> float | None:
        """Share of the credit that a field gives."""
        return self.read(as_credit, value, self._range)

    def read(self, reader: Callable[..., float | None], *arguments: Any) -> float | None:
        """Number that a reader finds; infinite where it cannot be read and such rows are dropped."""
        try:
            return reader(*arguments)
        except InputError:
            if self.lenient:
                return math.inf
            raise

    def _confidence(self, value: Any, chosen: Any) -> float | None:
        if self.form == "choices":
            return share_of_choice(value, chosen)
        if self.form in LOG_FORMS:
            return from_log_probabilities(value, self.form)
        if isinstance(value, str) and value.strip().lower() in self._words:
            return self._words[value.strip().lower()]
        return as_probability(self._as_share(value) if self.form == "percent" else value)

    def stated(self, text: str) -> float | None:
        """Last confidence that a text states."""
        return stated_confidence(text, percent=self.form == "percent")

    def _as_share(self, value: Any) -> Any:
        """Number from 0 to 100 as a share; text with a unit is read as it stands."""
        if isinstance(value, str):
            match = _WRITTEN.fullmatch(value.strip())
            if match is None or match[2]:
                return value
            value = float(match[1])
        if not is_number(value) or value != value:
            return value
        if not 0 <= value <= 100:
            raise invalid("probability", "be between 0 and 100", value)
        return value / 100


def as_probability(value: Any) -> float | None:
    """Stated confidence as a number in [0, 1]; None where there is none.

    A number above 1 without a per cent sign is refused: 85 could be 85% or a mistake.

    Examples
    --------
    >>> [as_probability(text) for text in ("85%", 0.85, "8 out of 10", "I am 85% sure", "")]
    [0.85, 0.85, 0.8, 0.85, None]
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number = value
    if isinstance(value, str):
        match = _WRITTEN.fullmatch(value.strip())
        number = stated_confidence(value) if match is None else _scaled(match[1], match[2])
    if not is_number(number):
        raise invalid(
            "probability", "be a number or text such as '85%'", value, "For words, pass `words=`."
        )
    if number != number:
        return None
    if not 0 <= number <= 1:
        raise invalid(
            "probability",
            "be between 0 and 1 or carry a per cent sign, as in '85%'",
            value,
            hint='If confidences run from 0 to 100, pass `form="percent"`.',
        )
    return float(number)


def stated_confidence(text: str, *, percent: bool = False) -> float | None:
    """Last confidence that a text states, or None.

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
    for match in _STATED.finditer(text[-LONGEST_TEXT:]):
        number, unit = (match[1], match[2]) if match[1] else (match[3], match[4])
        value = _scaled(number, unit or ("%" if percent else None))
        if 0 <= value <= 1:
            last = value
    return last


def _scaled(number: str, unit: str | None) -> float:
    """Written number; per cent are divided in decimal, so that "29%" is the float 0.29."""
    from decimal import Decimal

    if not unit:
        return float(number)
    tenths = unit[-3:].strip(" /f") == "10"
    return float(Decimal(number) / (10 if tenths else 100))


def is_refusal(text: Any) -> bool:
    """Answer that says nothing: empty, "I don't know", "N/A".

    Examples
    --------
    >>> is_refusal("I don't know."), is_refusal(None), is_refusal("42")
    (True, True, False)
    """
    return text is None or (isinstance(text, str) and _REFUSALS.fullmatch(text[:200]) is not None)


def is_empty(value: Any) -> bool:
    """Confidence or score that says nothing: a refusal, or None as text, which as an answer may be meant.

    Examples
    --------
    >>> is_empty("None"), is_refusal("None"), is_empty("0.3")
    (True, False, False)
    """
    nothing = isinstance(value, str) and value.strip().lower() in ("none", "null", "nan")
    return nothing or is_refusal(value)


def from_log_probabilities(value: Any, form: str) -> float | None:
    """Probability of an answer from the log-probabilities of its tokens: Σ, mean or first, exponentiated.

    Examples
    --------
    >>> tokens = [{"token": "4", "logprob": -0.1}, {"token": "2", "logprob": -0.3}]
    >>> [round(from_log_probabilities(tokens, form), 4) for form in ("sum", "mean", "token")]
    [0.6703, 0.8187, 0.9048]
    """
    logs = _log_probabilities(value)
    if not logs:
        return None
    if form == "token":
        return math.exp(min(logs[0], 0.0))
    total = math.fsum(logs)
    return math.exp(min(total / len(logs) if form == "mean" else total, 0.0))


def share_of_choice(value: Any, chosen: Any = None) -> float | None:
    """Softmax probability of the chosen option, given the log-probabilities of all options.

    Without a choice, the option of the largest probability is the answer. A choice is an option's name,
    without regard to case and to what stands around it, as in "(b)", or its number.

    Examples
    --------
    >>> options = {"A": -0.2, "B": -2.0}
    >>> [round(share_of_choice(options, chosen), 4) for chosen in ("B", "(b)", None)]
    [0.1419, 0.1419, 0.8581]
    """
    if value is None:
        return None
    names = list(value) if isinstance(value, dict) else []
    logs = _log_probabilities(list(value.values()) if names else value)
    if len(logs) < 2:
        raise InputError(
            f"`probability` must hold two log-probabilities or more; there are {len(logs)}.",
        )
    best = max(logs)
    if best == -math.inf:
        return None
    at = logs.index(best) if chosen is None else _option(names, len(logs), chosen)
    if at is None:
        options = ", ".join(map(show_value, names[:20])) or f"0 to {len(logs) - 1}"
        raise InputError(
            f"The answer must be one of the options, {options}; got {show_value(chosen)}."
        )
    return math.exp(logs[at] - best) / math.fsum(math.exp(log - best) for log in logs)


def _option(names: list[Any], options: int, chosen: Any) -> int | None:
    """Index of the option that an answer names."""
    if isinstance(chosen, int) and not isinstance(chosen, bool) and chosen not in names:
        return chosen if 0 <= chosen < options else None
    bare = [str(name).strip(" \t\n.:,;()[]*'\"").lower() for name in (*names, chosen)]
    found = names if chosen in names else bare[:-1]
    wanted = chosen if chosen in names else bare[-1]
    return found.index(wanted) if found.count(wanted) == 1 else None


def _log_probabilities(value: Any) -> list[float]:
    """Numbers of a field: one, a list, or the shapes in which model APIs give tokens."""
    if isinstance(value, dict):
        shapes = ("content", "token_logprobs", "logprobs")
        value = next((value[name] for name in shapes if name in value), value)
    items = value if isinstance(value, list) else [value]
    logs = [item.get("logprob") if isinstance(item, dict) else item for item in items]
    # The first token of a completion that repeats its prompt has none.
    if len(logs) > 1 and logs[0] is None:
        logs = logs[1:]
    for log in logs:
        if log is not None and not (is_number(log) and log <= _ROUNDING):
            raise invalid("probability", "hold log-probabilities, which are at most 0", log)
    return [] if None in logs else [float(log) for log in logs if log is not None]


def as_credit(value: Any, score_range: tuple[float, float] | None = None) -> float | None:
    """Score as a share of the credit: booleans, numbers, "C", "I", "P", "yes"; None where missing.

    Examples
    --------
    >>> as_credit("C"), as_credit(True), as_credit(4, (1, 5))
    (1.0, 1.0, 0.75)
    """
    number = value
    if isinstance(value, str):
        number = _CREDIT.get(value.strip().lower())
        if number is None:
            with suppress(ValueError):
                number = float(value)
    elif value is None:
        return None
    if isinstance(number, bool | int | float):
        if number != number:
            return None
        if score_range is not None and not isinstance(number, bool):
            number = (number - score_range[0]) / (score_range[1] - score_range[0])
        if 0 <= number <= 1:
            return float(number)
    raise invalid(
        "correct",
        "be true, false, 'C', 'I', 'P' or a number from 0 to 1",
        value,
        hint="For the scores of a judge, pass `score_range=`.",
    )
