"""Which of two values is the earlier one: "now it's 1,250, last year it was 1,100". Pure.

By the tense and the words of time near each, for functions that take a value before and one after.
"""

from __future__ import annotations

import re

from text_to_num import alpha2digit

from toolsrv_registry.api import Api, Parameter
from toolsrv_runtime.planner.reading.wish import Wish
from toolsrv_runtime.values import kinds
from toolsrv_runtime.values.facts import words

_EARLIER = re.compile(r"\b(?:old|before|initial|start(?:ing)?|previous|original|earlier)\b")
_LATER = re.compile(r"\b(?:new|after|final|end(?:ing)?|current|later)\b")

_NUMBER = re.compile(
    r"(?<![\w.,])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s?(?:k|thousand|million|billion)\b)?"
    r"(?![\d%]|[.,]\d|\s(?:%|percent|per cent)|(?:st|nd|rd|th)\b)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:in|of|since|during|year) ((?:19|20)\d\d)(?![\d,.]\d)", re.IGNORECASE)
_TIME = (
    r"(?:time|day|night|week(?:end)?|month|quarter|season|year|term|spring|summer|autumn|fall|winter|"
    r"monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|may|june|"
    r"july|august|september|october|november|december)"
)
_ABOUT = r"(?:(?:only|just|about|around|nearly|almost|some|a|an|the)\s)*[$€£]?#"
_WAS = re.compile(
    r"\bused to\b|\bha(?:d|ving) (?:been|cost|had|made|paid|sold|stood|\w+ed)\b"
    r"|\b(?:previous|former|original|initial)(?:ly)?\b|\bat first\b|\bbefore\b|\bearlier\b|\bprior\b"
    rf"|\bago\b|\byesterday\b|\blast {_TIME}\b|\bback then\b|\bonce\b|\bthe old\b|\binstead of\b"
    rf"|\b(?:started|starting|began|opened|opening)\b|\bfrom {_ABOUT}|\bafter (?:\w+ing\b|{_ABOUT})",
    re.IGNORECASE,
)
_IS = re.compile(
    r"\bnow(?:adays)?\b|\btoday\b|\b(?:current|present)(?:ly)?\b|\bthese days\b|\bat the moment\b"
    rf"|\bthis {_TIME}\b|\b(?:ended|finished|closed|closing)\b|\bin the end\b|\bfinal(?:ly)?\b"
    rf"|\blater\b|\bafter(?:wards?)?\b|\bthe new\b|(?<!compared )(?<!opposed )\bto {_ABOUT}",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:was|were|had|did|paid|cost)\b", re.IGNORECASE)
_PRESENT = re.compile(r"\b(?:is|are|has|have|pays?|costs|it['’]s)\b", re.IGNORECASE)

_STOP = re.compile(r"[.;?!]\s")
_APART = (
    re.compile(r"[.,;:?!]\s|\s[-–—]\s|\s(?:and|but|while|whereas)\s", re.IGNORECASE),
    re.compile(r"\s(?:up |down )?(?:from|to|after|compared|against|instead)\s", re.IGNORECASE),
)
_ENDS = re.compile(r"[.,;:?!](?:\s|$)|\s[-–—]\s|\b(?:how|what|by)\b", re.IGNORECASE)


def told(parameter: Parameter, api: Api, wish: Wish) -> str:
    """Return the value of a pair that is a parameter's by its time, "" where nothing says so.

    Of the two numbers of the part, or of what leads up to it too.
    """
    numbers = [one for one in api.required if kinds.value_kind(one, api) == "number"]
    times = [_is_later(one) for one in numbers]
    later = _is_later(parameter)
    pairs = times.count(True) == times.count(False) == 1
    if parameter not in numbers or later is None or not pairs:
        return ""
    for text in (wish.part, wish.context):
        if pair := _pair(text if re.search(r"\d", text) else alpha2digit(text, "en")):
            return kinds.normalise_value("number", pair[later])
    return ""


def _is_later(parameter: Parameter) -> bool | None:
    """Whether a parameter takes the later of two values, by its name, else its document."""
    for text in (words(parameter.name), parameter.description.lower()):
        was, now = bool(_EARLIER.search(text)), bool(_LATER.search(text))
        if was != now:
            return now
    return None


def _pair(text: str) -> tuple[str, str] | None:
    """Return the earlier and the later one of the two numbers of a text, None where not sure."""
    years = {match.start(1) for match in _YEAR.finditer(text)}
    found = [match for match in _NUMBER.finditer(text) if match.start() not in years]
    if len(found) != 2:
        return None
    first, second = found
    between = text[first.end() : second.start()] + " "
    cut = next((match for one in _APART if (match := one.search(between))), None)
    if cut is None:
        return None
    begin = max((match.end() for match in _STOP.finditer(text, 0, first.start())), default=0)
    end = _ENDS.search(text, second.end())
    sides = (
        f"{text[begin : first.start()]}#{text[first.end() : first.end() + cut.start()]}",
        f"{between[cut.start() :].rstrip()} #{text[second.end() : end.start() if end else None]}",
    )
    order = _order(*sides)
    if not order:
        return None
    return (first[0], second[0]) if order > 0 else (second[0], first[0])


def _order(left: str, right: str) -> int:
    """Return above 0 where the left side is the earlier one, below where the right is, else 0."""
    one, other = _lean(left), _lean(right)
    if one != other:
        return other - one
    one, other = _tense(left), _tense(right)
    return other if one == -other else 0


def _lean(side: str) -> int:
    """Return 1 for the later value, -1 for the earlier, 0 where nothing or both is said."""
    was = bool(_WAS.search(side))
    return bool(_IS.search(_WAS.sub(" ", side))) - was


def _tense(side: str) -> int:
    return bool(_PRESENT.search(side)) - bool(_PAST.search(side))
